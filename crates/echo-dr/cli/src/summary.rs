//! A plan for people: one table of its pairs, and a list of what can't be merged. The same data is the JSON of `tune`, `analyze`, `validate`
//! and `calibrate`.

use std::path::Path;

use comfy_table::{ContentArrangement, Table, presets};
use echo_dr_format::SCHEMA;
use echo_dr_format::measure::Measurement;
use echo_dr_format::plan::{Direction, Note, Pair, Plan, State};
use echo_dr_format::report::{IneligibleLine, PairLine, TuneReport};

use crate::failure::{Failure, print, print_json};
use crate::places::Places;

/// The plan as data, with the places of its sites.
pub(crate) fn report(plan: &Plan, file: &Path, places: &mut Places) -> TuneReport {
    let iterations = iterations(plan);
    let pairs = plan.pairs.iter().map(|pair| line(pair, iterations, places)).collect();
    let ineligible = plan
        .ineligible
        .iter()
        .map(|group| IneligibleLine {
            host: group.host.map(|site| places.place(site)),
            device: group.device.map(|site| places.place(site)),
            copy: group.copy.map(|site| places.place(site)),
            bytes: group.bytes,
            count: group.count,
            reasons: group.reasons.iter().map(Into::into).collect(),
        })
        .collect();
    TuneReport {
        schema: SCHEMA,
        command: command(plan),
        plan: file.display().to_string(),
        pairs,
        ineligible,
        notes: plan.notes.clone(),
        together: plan.together,
    }
}

fn command(plan: &Plan) -> Vec<String> {
    let process = &plan.context.process;
    std::iter::once(&process.executable.path).chain(&process.arguments).cloned().collect()
}

fn line(pair: &Pair, iterations: u64, places: &mut Places) -> PairLine {
    let copies: u64 = pair.copies.iter().map(|copy| copy.count).sum();
    let rejection = match &pair.state {
        State::Rejected(rejection) => Some(rejection),
        State::Candidate | State::Validated | State::Enabled => None,
    };
    PairLine {
        id: pair.id,
        host: places.place(pair.host),
        device: places.place(pair.device),
        bytes: pair.bytes,
        direction: pair.direction,
        copies_per_iteration_milli: copies.saturating_mul(1000) / iterations.max(1),
        backend: pair.backend,
        measured: pair.measured.clone(),
        state: pair.state.clone(),
        why_not: rejection.map(|rejection| (&rejection.reason).into()),
        access: rejection.and_then(|rejection| rejection.site).map(|site| places.place(site)),
    }
}

/// How often the loop's dominant copy ran; 1 for a program without a loop.
fn iterations(plan: &Plan) -> u64 {
    let copies = plan.pairs.iter().flat_map(|pair| &pair.copies);
    copies.filter(|copy| Some(copy.site) == plan.loop_site).map(|copy| copy.count).max().unwrap_or(1)
}

/// Shows a report; `said` goes to standard error.
pub(crate) fn show(report: &TuneReport, json: bool, said: &[String]) -> Result<(), Failure> {
    if json {
        print_json(report)?;
    } else {
        print(&text(report))?;
    }
    for sentence in said {
        eprintln!("note: {sentence}");
    }
    Ok(())
}

/// The table and what stands under it.
fn text(report: &TuneReport) -> String {
    let mut text = String::new();
    if report.pairs.is_empty() {
        text += "No pair of a host and a device buffer can be merged.\n";
    } else {
        text += &format!("{}\n", table(report));
    }
    for sentence in why(report) {
        text += &format!("{sentence}\n");
    }
    if let Some(why) = report.pairs.iter().find_map(|pair| pair.why_not.as_ref()) {
        text += &format!("(`echo-dr explain {}` says what to do.)\n", why.number);
    }
    if let Some(together) = &report.together {
        text += &format!("All enabled pairs together gain {}.\n", gain(together.gain_ppm, together.gain_range_ppm));
    }
    if !report.ineligible.is_empty() {
        text += "\nNot merged:\n";
        for group in &report.ineligible {
            text += &format!("  {}\n", ineligible(group));
        }
    }
    for note in &report.notes {
        text += &format!("note: {}\n", sentence(*note));
    }
    text
}

fn table(report: &TuneReport) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    // In less than this, broken into many lines, it can't be read at all.
    if table.width().is_none_or(|columns| columns >= 80) {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    table.set_header([
        "pair",
        "host buffer",
        "device buffer",
        "size",
        "copies skipped\nan iteration",
        "backend",
        "gain",
        "state",
    ]);
    for pair in &report.pairs {
        table.add_row([
            format!("{} {}", pair.id, arrow(pair.direction)),
            pair.host.text.clone(),
            pair.device.text.clone(),
            echo_cli::size(pair.bytes),
            copies(pair.copies_per_iteration_milli),
            backend(pair),
            measured(pair).map_or_else(|| "-".to_owned(), |found| gain(found.gain_ppm, found.gain_range_ppm)),
            brief(pair),
        ]);
    }
    table
}

fn arrow(direction: Direction) -> &'static str {
    match direction {
        Direction::Input => "→",
        Direction::Output => "←",
        Direction::Both => "↔",
    }
}

/// CUDA's version numbers as people write them: 13000 is 13.0.
pub(crate) fn cuda_version(number: impl Into<i64>) -> String {
    let number = number.into();
    format!("{}.{}", number / 1000, number % 1000 / 10)
}

/// 2, 0.5.
pub(crate) fn copies(milli: u64) -> String {
    if milli.is_multiple_of(1000) { (milli / 1000).to_string() } else { format!("{:.2}", milli as f64 / 1000.0) }
}

/// The backend that is used, or would have been best.
pub(crate) fn backend(pair: &PairLine) -> String {
    match (&pair.state, measured(pair)) {
        (State::Enabled, _) => pair.backend.name().to_owned(),
        (_, Some(measurement)) => measurement.backend.name().to_owned(),
        _ => "-".to_owned(),
    }
}

/// The measurement of the pair's backend, or the best one.
pub(crate) fn measured(pair: &PairLine) -> Option<&Measurement> {
    let own = pair.measured.iter().find(|found| pair.state == State::Enabled && found.backend == pair.backend);
    own.or_else(|| pair.measured.iter().max_by_key(|found| found.gain_ppm))
}

/// `41.2 % (40.8 to 41.5)`.
pub(crate) fn gain(ppm: i64, (low, high): (i64, i64)) -> String {
    let percent = |ppm: i64| ppm as f64 / 10_000.0;
    format!("{:.1} % ({:.1} to {:.1})", percent(ppm), percent(low), percent(high))
}

/// Enabled, or why not, briefly: for a table's cell, with [`why`] below the table.
fn brief(pair: &PairLine) -> String {
    match &pair.why_not {
        Some(why) => {
            let at = pair.access.as_ref().map(|place| format!("\nat {}", place.text)).unwrap_or_default();
            format!("{} {}{at}", why.number, why.name)
        }
        None => state(pair),
    }
}

/// The sentences behind the numbers, each once.
fn why(report: &TuneReport) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for why in report.pairs.iter().filter_map(|pair| pair.why_not.as_ref()) {
        let sentence = format!("{}: {}", why.number, why.text);
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    sentences
}

/// Enabled, or why not, in full.
pub(crate) fn state(pair: &PairLine) -> String {
    match (&pair.state, &pair.why_not) {
        (State::Enabled, _) => "enabled".to_owned(),
        (State::Validated, _) => "validated, not calibrated".to_owned(),
        (State::Candidate, _) => "candidate, not validated".to_owned(),
        (State::Rejected(_), None) => "not enabled".to_owned(),
        (State::Rejected(_), Some(why)) => {
            let at = pair.access.as_ref().map(|place| format!(", at {}", place.text)).unwrap_or_default();
            format!("{} {}: {}{at}", why.number, why.name, why.text)
        }
    }
}

/// What it is and why it stays.
pub(crate) fn ineligible(group: &IneligibleLine) -> String {
    format!("{}: {}", subject(group), reasons(group))
}

/// What can't be merged.
pub(crate) fn subject(group: &IneligibleLine) -> String {
    let text = |place: &Option<echo_dr_format::report::Place>, none: &str| {
        place.as_ref().map_or_else(|| none.to_owned(), |place| place.text.clone())
    };
    format!(
        "{} copies of {} at {} (host {}, device {})",
        group.count,
        echo_cli::size(group.bytes),
        text(&group.copy, "an unknown place"),
        text(&group.host, "memory that is not recorded"),
        text(&group.device, "memory that is not recorded"),
    )
}

/// All reasons, in one line.
pub(crate) fn reasons(group: &IneligibleLine) -> String {
    let reasons: Vec<_> = group.reasons.iter().map(|reason| format!("{} {}", reason.number, reason.text)).collect();
    reasons.join("; ")
}

/// A fact about the run.
pub(crate) fn sentence(note: Note) -> &'static str {
    match note {
        Note::UsesManagedMemory => "the program uses managed memory, which needs no copies",
        Note::TraceTruncated => "the trace ends in the middle: the run was killed",
        Note::NoCuda => "the program never used CUDA; if it starts another program that does, give that one",
    }
}
