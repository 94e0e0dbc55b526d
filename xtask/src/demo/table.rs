//! The demo's table, and under it a sentence for each pair that was left alone.

use std::fmt::Write;

use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table, presets};

use super::matrix;
use super::report::{Report, SampleReport};
use super::verdicts::Pair;
use crate::samples::Outcome;

const HEADER: [&str; 9] = [
    "sample",
    "pair (host, device)",
    "verdict",
    "copies\nremoved",
    "MiB saved\na run",
    "before\nms",
    "after\nms",
    "by hand\nms",
    "outputs\nequal",
];

/// The whole text.
pub(super) fn render(report: &Report) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(HEADER.map(|title| Cell::new(title).add_attribute(Attribute::Bold)));
    for sample in &report.samples {
        table.add_row(row(sample));
    }
    for column in 3..8 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = table.to_string();
    for sample in &report.samples {
        for pair in sample.pairs.iter().filter(|pair| pair.outcome == Outcome::Declined) {
            let _ = write!(text, "\n{}: {}", sample.name, pair.describe()); // Writing to a String cannot fail.
        }
    }
    text
}

/// A sample is one row; its pairs share it, one a line, since times and copies are the whole program's.
fn row(sample: &SampleReport) -> Vec<Cell> {
    let lines = |text: &dyn Fn(&Pair) -> String| sample.pairs.iter().map(text).collect::<Vec<_>>().join("\n");
    // A verdict may take two lines; then its pair does, too.
    let place = |pair: &Pair| pair.place() + &"\n".repeat(pair.short_verdict().matches('\n').count());
    let ms = |value: f64| format!("{value:.2}");
    let mut equal = if sample.outputs_equal { "yes".to_string() } else { "NO".to_string() };
    if let Some(found) = &sample.schedules {
        equal = format!("{equal}\n{}", matrix::summary(found));
    }
    vec![
        Cell::new(&sample.name),
        Cell::new(lines(&place)),
        Cell::new(lines(&Pair::short_verdict)),
        Cell::new(sample.copies_removed),
        Cell::new(format!("{:.1}", sample.mib_saved)),
        Cell::new(ms(sample.before_ms)),
        Cell::new(ms(sample.after_ms)),
        Cell::new(sample.merged_ms.map_or("-".into(), ms)),
        Cell::new(equal),
    ]
}
