//! One run of `opt`: processor time, memory, and what LLVM's own timers say of Echo's passes.
//!
//! Processor time, not time on the clock: `opt` has one thread, and a busy machine then changes little.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use wait4::Wait4;

use crate::failure::Failure;
use crate::tool;

/// What one run took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// Processor time of the whole process, in seconds.
    pub(super) cpu_s: f64,
    /// That of Echo's passes in it.
    pub(super) passes_s: f64,
    /// The most memory that it had.
    pub(super) memory_mib: f64,
}

/// The name that `-time-passes` has for each of Echo's passes.
const PASS: &str = "RustPass";

/// `opt -O2`.
pub(super) fn optimise(opt: &Path, module: &Path, plugin: Option<&Path>) -> Result<Run, Failure> {
    let mut command = super::opt(opt, module, plugin);
    command.arg("-O2");
    run(command, plugin.is_some())
}

/// Processor time of the two passes over host modules, in seconds, without any other pass.
pub(super) fn passes_alone(opt: &Path, module: &Path, plugin: &Path) -> Result<f64, Failure> {
    let mut command = super::opt(opt, module, Some(plugin));
    command.arg("-passes=echo-sr-prepare,echo-sr");
    Ok(run(command, true)?.passes_s)
}

/// Seconds on the clock from the start of `opt` to its end, with no pass to run.
pub(super) fn start(opt: &Path, module: &Path, plugin: Option<&Path>) -> Result<f64, Failure> {
    let mut command = super::opt(opt, module, plugin);
    let begin = Instant::now();
    tool::run(command.arg("-passes=no-op-module"))?;
    Ok(begin.elapsed().as_secs_f64())
}

fn run(mut command: Command, passes: bool) -> Result<Run, Failure> {
    let failed = |command: &Command, what: String| Failure::Build(format!("{} {what}", tool::line(command)));
    let timers = tempfile::NamedTempFile::new()
        .map_err(|error| Failure::Build(format!("cannot make a temporary file: {error}")))?;
    if passes {
        command.arg("-time-passes").arg(format!("-info-output-file={}", timers.path().display()));
    }
    let mut child =
        command.stdout(Stdio::null()).spawn().map_err(|error| failed(&command, format!("cannot be run: {error}")))?;
    let used = child.wait4().map_err(|error| failed(&command, format!("cannot be waited for: {error}")))?;
    if !used.status.success() {
        return Err(failed(&command, format!("ended with {}", used.status)));
    }
    let passes_s = if passes {
        let text =
            std::fs::read_to_string(timers.path()).map_err(|error| Failure::io("read", timers.path(), &error))?;
        pass_time(&text).ok_or_else(|| failed(&command, format!("timed no pass of Echo:\n{text}")))?
    } else {
        0.0
    };
    Ok(Run {
        cpu_s: (used.rusage.utime + used.rusage.stime).as_secs_f64(),
        passes_s,
        memory_mib: used.rusage.maxrss as f64 / (1024.0 * 1024.0),
    })
}

/// Seconds of processor time that the report of `-time-passes` has for Echo's passes. Its lines are
/// `0.0112 (  2.5%)   0.0000 (  0.0%)   0.0112 (  2.4%)   0.0560 (  4.6%)  {anonymous}::RustPass`: user, system, both, clock; a column in
/// which all is 0 is left out.
fn pass_time(report: &str) -> Option<f64> {
    // There is a report for analyses too, with columns of its own.
    let mut column = None;
    let mut total = None;
    for line in report.lines() {
        if line.contains("--- Name ---") {
            let before = ["---User Time---", "--System Time--"].iter().filter(|name| line.contains(**name)).count();
            // Where no processor time was seen at all there is only the clock's.
            column = Some(if line.contains("--User+System--") { before } else { 0 });
        } else if line.trim_end().ends_with(PASS) {
            let numbers: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            *total.get_or_insert(0.0) += numbers.get(column?)?;
        }
    }
    total
}

/// The middle one of the values; 0 of none.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_the_passes_is_read_from_llvms_report() {
        let report = "\
===---===
                          Pass execution timing report
  Total Execution Time: 0.6826 seconds (1.3707 wall clock)

   ---User Time---   --System Time--   --User+System--   ---Wall Time---  --- Name ---
   0.6710 ( 98.9%)   0.0116 (100.0%)   0.6716 ( 98.9%)   1.3607 ( 98.9%)  InstCombinePass
   0.0074 (  1.1%)   0.0010 (  0.0%)   0.0084 (  1.1%)   0.0154 (  1.1%)  {anonymous}::RustPass
   0.6710 (100.0%)   0.0116 (100.0%)   0.6826 (100.0%)   1.3707 (100.0%)  Total
";
        assert_eq!(pass_time(report), Some(0.0084));
        let user_only = "   ---User Time---   --User+System--   ---Wall Time---  --- Name ---
   0.0003 (100.0%)   0.0004 (100.0%)   0.0005 (100.0%)  {anonymous}::RustPass
   0.0003 (100.0%)   0.0004 (100.0%)   0.0005 (100.0%)  Total\n";
        assert_eq!(pass_time(user_only), Some(0.0004));
        assert_eq!(pass_time(&user_only.replace("RustPass", "OtherPass")), None);
        assert_eq!(pass_time(""), None);
    }

    #[test]
    fn the_median_is_the_middle_value() {
        assert_eq!(median(&[3.0, 1.0, 9.0]), 3.0);
        assert_eq!(median(&[]), 0.0);
    }
}
