//! The steps from a program to a plan. Each command runs one of them, `tune` runs all.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::Args;
use echo_dr_engine::Options;
use echo_dr_format::finding::Trouble;
use echo_dr_format::plan::{Pair, Plan, Rejection, State};
use echo_dr_format::reason::Decline;
use echo_dr_format::trace::Trace;

use crate::calibrate::Calibration;
use crate::failure::Failure;
use crate::files;
use crate::launch::Launch;
use crate::library;

/// What is recorded, and what counts as a pair.
#[derive(Clone, Debug, Args)]
pub(crate) struct Finding {
    /// Buffers smaller than this are left alone: their copies cost too little
    #[arg(long, value_name = "BYTES", default_value_t = echo_dr_engine::DEFAULT_THRESHOLD)]
    pub(crate) threshold: u64,
}

/// What counts as a pair.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Asking {
    /// A pair's most frequent copy must occur so often
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    k_min: u64,
}

/// Runs the program once and records it.
pub(crate) fn profile(launch: &Launch, finding: &Finding, to: &Path) -> Result<Trace, Failure> {
    let threshold = finding.threshold.to_string();
    let mode = [("ECHO_DR_MODE", OsStr::new("profile")), ("ECHO_DR_THETA_MIN", OsStr::new(&threshold))];
    recorded(launch, "it was profiled", &mode, to)
}

/// What could be merged, by a trace alone.
pub(crate) fn analyze(trace: &Trace, asking: Asking) -> Plan {
    echo_dr_engine::analyze(trace, Options { threshold: trace.header.threshold, recurrences: asking.k_min })
}

/// Runs the program once with the plan's host buffers watched, and puts what was seen into the plan.
pub(crate) fn validate(launch: &Launch, plan: &mut Plan, to: &Path) -> Result<Trace, Failure> {
    // Whatever an earlier validation or calibration said of a pair that may be merged is tried again.
    for pair in &mut plan.pairs {
        if matches!(pair.state, State::Validated | State::Enabled) {
            pair.state = State::Candidate;
        }
    }
    let folder = temporary()?;
    let file = folder.path().join("plan.json");
    // What the host does while any GPU work is in flight matters where it must not touch managed memory then, and where the GPU could touch h.
    let is_exclusive =
        plan.context.device.as_ref().is_some_and(|device| {
            !device.attributes.concurrent_managed_access || device.attributes.pageable_memory_access
        });
    let mode = [
        ("ECHO_DR_MODE", OsStr::new("validate")),
        ("ECHO_DR_PLAN", file.as_os_str()),
        ("ECHO_DR_EXCLUSIVE", OsStr::new(if is_exclusive { "1" } else { "0" })),
    ];
    files::write_plan(plan, &file)?;
    let mut trace = recorded(launch, "it was validated", &mode, to);
    // The GPU is kept from host blocks that it could reach. If the program failed, or its GPU work did, that may be why. With those blocks as they were
    // it is the program's own failure, and a failed run says nothing of the other pairs.
    if gpu_may_have_failed(&trace) && reject_reachable(plan) {
        files::write_plan(plan, &file)?;
        trace = recorded(launch, "it was validated", &mode, to);
    }
    let trace = trace?;
    echo_dr_engine::judge(plan, &trace).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(trace)
}

fn gpu_may_have_failed(trace: &Result<Trace, Failure>) -> bool {
    match trace {
        Ok(trace) => trace.findings.iter().any(|finding| finding.trouble == Trouble::ReachedByGpu),
        Err(failure) => matches!(failure, Failure::Program { .. }),
    }
}

/// Rejects the candidates whose host blocks a kernel could use without a copy; false if there was none.
fn reject_reachable(plan: &mut Plan) -> bool {
    let reaches_all = plan.context.device.as_ref().is_some_and(|device| device.attributes.pageable_memory_access);
    let mut any = false;
    let is_reachable = |pair: &&mut Pair| pair.state == State::Candidate && (pair.page_locked || reaches_all);
    for pair in plan.pairs.iter_mut().filter(is_reachable) {
        pair.state = State::Rejected(Rejection { reason: Decline::ReachedByGpu, site: None });
        any = true;
    }
    any
}

/// Measures the plan's pairs and switches them on or off.
pub(crate) fn calibrate(launch: &Launch, plan: &mut Plan, calibration: &Calibration) -> Result<Vec<String>, Failure> {
    calibration.run(launch, plan)
}

/// Runs the program once with the plan, and records what is left of its calls.
pub(crate) fn follow(launch: &Launch, plan: &Path, to: &Path) -> Result<Trace, Failure> {
    let plan = std::path::absolute(plan).map_err(|error| Failure::io(plan, "find", &error))?;
    let mode = [("ECHO_DR_MODE", OsStr::new("optimise")), ("ECHO_DR_PLAN", plan.as_os_str())];
    recorded(launch, "it was run with the plan", &mode, to)
}

/// A run that writes a trace.
fn recorded(launch: &Launch, during: &str, mode: &[(&str, &OsStr)], to: &Path) -> Result<Trace, Failure> {
    // The program may change its folder before the library opens the file.
    let to = std::path::absolute(to).map_err(|error| Failure::io(to, "find", &error))?;
    match std::fs::remove_file(&to) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(Failure::io(&to, "replace", &error)),
        _ => {}
    }
    let folder = temporary()?;
    let counted = folder.path().join("counters.json");
    let mut environment = vec![("ECHO_DR_TRACE", to.as_os_str()), ("ECHO_DR_COUNTERS", counted.as_os_str())];
    environment.extend(mode);
    let bar = echo_cli::spinner(format!("{} ({})", launch.program.words(), during.trim_start_matches("it was ")));
    let ended = launch.run(during, &library::find()?, &environment, false);
    bar.finish_and_clear();
    ended?;
    let counters = counted.exists().then(|| files::counters(&counted)).transpose()?;
    let trouble = counters.and_then(|counters| match counters.refused {
        Some(refusal) => Some(format!("it did not use the plan: {refusal}")),
        None => counters.trouble,
    });
    if let Some(trouble) = trouble {
        return Err(Failure::Program {
            program: launch.program.words(),
            what: format!("ran, but the library says: {trouble}"),
            during: during.to_owned(),
            said: String::new(),
        });
    }
    if !to.exists() {
        return Err(Failure::NotPreloadable {
            path: launch.program.path()?,
            reason: "it ran, and the library in it wrote no trace".to_owned(),
        });
    }
    files::trace(&to)
}

/// A folder for the files of a run; the library trusts only what the user owns.
pub(crate) fn temporary() -> Result<tempfile::TempDir, Failure> {
    tempfile::Builder::new()
        .prefix("echo-dr-")
        .tempdir()
        .map_err(|error| Failure::io(&std::env::temp_dir(), "write to", &error))
}

/// Where a plan is written that the user named, or the one that it came from.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlanFile {
    /// The plan
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    /// Write the changed plan here, not over PLAN
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl PlanFile {
    /// The file to write.
    pub(crate) fn output(&self) -> &Path {
        self.output.as_deref().unwrap_or(&self.plan)
    }
}
