//! `echo-dr report`: a plan and the runs behind it, as one HTML file.

mod page;
mod timeline;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use echo_dr_format::plan::{Plan, State, Wait};
use echo_dr_format::report::TuneReport;
use echo_dr_format::trace::{Mode, Trace};

use crate::failure::{Failure, Status, print, print_json};
use crate::files;
use crate::places::Places;
use crate::summary;
use page::{Page, Row, duration};
use timeline::{Kind, Timeline};

/// Show a plan as one HTML file: an iteration before and after, the pairs, and why others are none
#[derive(Debug, Args)]
#[command(after_help = "\
The file needs no network, no script and no other file. `echo-dr tune --report FILE` writes it too; to write it later, keep the traces
(`echo-dr tune --keep DIR`).

Exit codes:
  0  the report was written
  2  the plan or a trace can't be read

Example:
  echo-dr report echo-dr.plan.json DIR/*.trace -o app.html")]
pub(crate) struct Report {
    /// The plan
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// Traces of the program: of profiling (the iteration and the places of the pairs), of validation (places of accesses),
    /// of a run with the plan (the iteration after merging)
    #[arg(value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// The report
    #[arg(short, long, value_name = "FILE", default_value = "echo-dr.html")]
    output: PathBuf,
    /// The pairs as one JSON object, on standard output
    #[arg(long)]
    json: bool,
}

impl Report {
    /// Runs the command.
    pub(crate) fn run(&self) -> Result<Status, Failure> {
        let plan = files::plan(&self.plan)?;
        let traces = self.traces.iter().map(|path| files::trace(path)).collect::<Result<Vec<_>, _>>()?;
        let report = summary::report(&plan, &self.plan, &mut Places::of(&traces));
        write(&self.output, &plan, &report, &traces)?;
        if self.json {
            print_json(&report)?;
        } else {
            print(&format!("{}\n", self.output.display()))?;
        }
        Ok(Status::Done)
    }
}

/// Writes the report.
pub(crate) fn write(to: &Path, plan: &Plan, report: &TuneReport, traces: &[Trace]) -> Result<(), Failure> {
    fs::write(to, page::render(&page(plan, report, traces))).map_err(|error| Failure::io(to, "write", &error))
}

fn page(plan: &Plan, report: &TuneReport, traces: &[Trace]) -> Page {
    let of = |mode| traces.iter().find(|trace| trace.header.mode == mode);
    let iteration = |trace: &Trace| {
        let span = timeline::typical(&trace.events, plan.loop_site?)?;
        Some(timeline::between(&trace.events, span))
    };
    let before = of(Mode::Profile).and_then(iteration);
    let measured = of(Mode::Optimise).and_then(iteration);
    let enabled = plan.enabled().count();
    let computed =
        || before.as_ref().filter(|_| enabled > 0).map(|before| timeline::without_copies(before, &skipped(plan)));
    let (after, after_is) = match measured {
        Some(after) => (Some(after), "Recorded in a run with the plan.".to_owned()),
        None => (computed(), computed_note(plan)),
    };
    Page {
        command: report.command.join(" "),
        outcome: match enabled {
            0 => "Nothing is merged.".to_owned(),
            1 => "1 pair of a host and a device buffer is merged.".to_owned(),
            count => format!("{count} pairs of a host and a device buffer are merged."),
        },
        figures: figures(plan, before.as_ref()),
        before,
        after,
        after_is,
        pairs: report.pairs.iter().map(row).collect(),
        rejected: rejected(report),
        context: context(plan),
    }
}

/// Sites whose copies go, each with the wait that stays.
fn skipped(plan: &Plan) -> Vec<(echo_dr_format::site::Site, Wait)> {
    plan.enabled().flat_map(|pair| &pair.copies).map(|copy| (copy.site, copy.wait)).collect()
}

fn computed_note(plan: &Plan) -> String {
    let mut text = "Computed from the iteration above: the skipped copies are taken out, and what follows moves up. A wait that stays \
                    in the place of a copy is drawn without length, since the copy's time contains it."
        .to_owned();
    if let Some((without, with)) = latency(plan) {
        text += &format!(" Measured: {} an iteration without the plan, {} with it.", duration(without), duration(with));
    }
    text
}

/// Median iteration without and with everything that is enabled.
fn latency(plan: &Plan) -> Option<(u64, u64)> {
    if let Some(together) = &plan.together {
        return Some((together.without.median, together.with.median));
    }
    let pair = plan.enabled().next()?;
    let measurement = pair.measured.iter().find(|measurement| measurement.backend == pair.backend)?;
    Some((measurement.without.median, measurement.with.median))
}

fn figures(plan: &Plan, before: Option<&Timeline>) -> Vec<(String, String)> {
    let mut figures = Vec::new();
    if let Some((without, with)) = latency(plan) {
        figures.push(("an iteration without the plan".to_owned(), duration(without)));
        figures.push(("an iteration with it".to_owned(), duration(with)));
        figures.push(("speed-up".to_owned(), format!("{:.2}×", without as f64 / with.max(1) as f64)));
    }
    if let Some(before) = before {
        let share = before.spent(Kind::Copy) as f64 / before.length.max(1) as f64;
        figures.push(("of an iteration is spent in copies".to_owned(), format!("{:.0} %", share * 100.0)));
    }
    figures
}

fn row(pair: &echo_dr_format::report::PairLine) -> Row {
    Row {
        number: pair.id.to_string(),
        host: pair.host.text.clone(),
        device: pair.device.text.clone(),
        size: echo_cli::size(pair.bytes),
        copies: summary::copies(pair.copies_per_iteration_milli),
        backend: summary::backend(pair),
        gain: summary::measured(pair)
            .map_or_else(String::new, |found| summary::gain(found.gain_ppm, found.gain_range_ppm)),
        state: summary::state(pair),
    }
}

/// Rejected pairs, then what was no pair.
fn rejected(report: &TuneReport) -> Vec<(String, String)> {
    let is_rejected = |state: &State| matches!(state, State::Rejected(_));
    let pairs = report.pairs.iter().filter(|pair| is_rejected(&pair.state)).map(|pair| {
        let what = format!("pair {}: {} and {}", pair.id, pair.host.text, pair.device.text);
        (what, summary::state(pair))
    });
    let groups = report.ineligible.iter().map(|group| (summary::subject(group), summary::reasons(group)));
    pairs.chain(groups).collect()
}

fn context(plan: &Plan) -> Vec<(String, String)> {
    let process = &plan.context.process;
    let mut rows = vec![
        ("executable".to_owned(), process.executable.path.clone()),
        ("arguments".to_owned(), process.arguments.join(" ")),
        ("machine".to_owned(), process.host.clone()),
    ];
    if let Some(device) = &plan.context.device {
        rows.push(("GPU".to_owned(), format!("{} (compute {}.{})", device.name, device.compute.0, device.compute.1)));
        rows.push(("CUDA driver".to_owned(), summary::cuda_version(device.driver)));
        rows.extend(device.runtime.map(|version| ("CUDA runtime".to_owned(), summary::cuda_version(version))));
    }
    rows
}
