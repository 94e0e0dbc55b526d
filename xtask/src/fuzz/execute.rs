//! Runs a build in a mode of the device and finds the programs that do not print what they must.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::build::Build;
use super::emit;
use super::machine::Expected;
use super::preloaded::{self, Step};
use crate::context::Context;
use crate::failure::Failure;

/// A file of programs takes well under a second; on a busy machine, some.
const LIMIT: Duration = Duration::from_secs(120);

/// A mode of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mode {
    pub(super) schedule: String,
    pub(super) access: &'static str,
    /// New memory is not zero but full of other numbers.
    pub(super) poison: bool,
    /// What the runtime of the adaptive target mixes kinds of memory by.
    /// (Preloaded programs: what the kinds of memory are chosen by.)
    pub(super) mixture: Option<u64>,
    /// What Echo-DR's library does in it.
    pub(super) step: Option<Step>,
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let poison = if self.poison { " UMA_DEVICE_POISON=1 MALLOC_PERTURB_=165" } else { "" };
        write!(f, "UMA_DEVICE_SCHEDULE={} UMA_DEVICE_ACCESS={}{poison}", self.schedule, self.access)?;
        match (self.step, self.mixture) {
            (Some(step), _) => write!(f, " {step}"),
            (None, Some(seed)) => write!(f, " MIXED_RUNTIME_SEED={seed}"),
            (None, None) => Ok(()),
        }
    }
}

/// The modes that a build is run in. `number` chooses the random schedules.
pub(super) fn modes(build: Build, number: u64) -> Vec<Mode> {
    if build == Build::Preloaded {
        return preloaded::modes(number);
    }
    let accesses: &[&'static str] = match build {
        Build::Plain | Build::Exclusive | Build::Adaptive | Build::Preloaded => &["exclusive", "concurrent"],
        Build::Concurrent => &["concurrent"],
    };
    // Each mode of a build gets a mixture of its own.
    let mixture = |position: usize| (build == Build::Adaptive).then_some(8 * number + position as u64);
    let schedules = [
        ("lazy".to_owned(), true),
        ("eager".to_owned(), false),
        (format!("random:{}", 2 * number + 1), false),
        (format!("random:{}", 2 * number + 2), true),
    ];
    let both = accesses.iter().flat_map(|access| schedules.clone().map(|schedule| (*access, schedule)));
    let mode = |(position, (access, (schedule, poison)))| Mode {
        schedule,
        access,
        poison,
        mixture: mixture(position),
        step: None,
    };
    both.enumerate().map(mode).collect()
}

/// A program that did not do what it must.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// Its position in the file.
    pub(super) position: usize,
    pub(super) input: usize,
    pub(super) mode: Mode,
    /// What it did instead.
    pub(super) got: String,
}

/// What a process left.
#[derive(Clone, Debug)]
pub(super) struct Process {
    /// Standard output.
    output: String,
    /// How it ended, if not well.
    end: String,
}

impl Process {
    /// It has done something wrong besides.
    pub(super) fn but(mut self, what: &str) -> Self {
        self.end = format!("{}{what}\n", self.end);
        self
    }
}

/// Runs all programs of a file in one mode on one input. `expected`: by position. `run` runs those from a position on.
pub(super) fn differences(
    mode: &Mode,
    input: usize,
    expected: &[&Expected],
    mut run: impl FnMut(usize) -> Result<Process, Failure>,
) -> Result<Vec<Difference>, Failure> {
    let mut found = Vec::new();
    let mut first = 0;
    while first < expected.len() {
        let Process { output, end } = run(first)?;
        // What follows a program that went wrong is no evidence: it may have left the device broken. So those behind it run again.
        let wrong = (first..expected.len()).find_map(|position| {
            let got = section(&output, position);
            (got != text(expected[position])).then_some((position, got))
        });
        // A process that ends badly behind its last program is that program's.
        let wrong = wrong.or_else(|| {
            let last = expected.len() - 1;
            (!end.is_empty()).then(|| (last, section(&output, last)))
        });
        let Some((position, got)) = wrong else { break };
        let got = format!("{got}{end}");
        found.push(Difference { position, input, mode: mode.clone(), got });
        first = position + 1;
    }
    Ok(found)
}

/// What a program must leave, in the form of [`section`].
pub(super) fn text(expected: &Expected) -> String {
    let lines: String = expected.lines.iter().map(|line| format!("{line}\n")).collect();
    format!("{lines}{}{}\n", emit::END, expected.code)
}

/// The part of an output that a program wrote.
fn section(output: &str, position: usize) -> String {
    let begin = format!("{}{position}\n", emit::BEGIN);
    let Some((_, rest)) = output.split_once(&begin) else { return String::new() };
    let mut section = String::new();
    for line in rest.lines().take_while(|line| !line.starts_with(emit::BEGIN)) {
        section.push_str(line);
        section.push('\n');
    }
    section
}

/// Runs a program.
pub(super) fn run(
    context: &Context,
    program: &Path,
    mode: &Mode,
    arguments: &[usize],
    environment: &[(&str, OsString)],
) -> Result<Process, Failure> {
    let file = || {
        tempfile::tempfile().map_err(|error| Failure::io("create a temporary file in", &std::env::temp_dir(), &error))
    };
    let (mut stdout, mut stderr) = (file()?, file()?);
    let failed = |error| Failure::io("run", program, &error);
    let mut command = Command::new(program);
    command.args(arguments.iter().map(usize::to_string)).stdin(Stdio::null());
    command.stdout(stdout.try_clone().map_err(failed)?).stderr(stderr.try_clone().map_err(failed)?);
    command.env("LD_LIBRARY_PATH", context.uma().join("lib"));
    command.env("UMA_DEVICE_SCHEDULE", &mode.schedule).env("UMA_DEVICE_ACCESS", mode.access);
    command.env("UMA_DEVICE_POISON", if mode.poison { "1" } else { "0" }).env_remove("UMA_DEVICE_LINK");
    command.env("MIXED_RUNTIME_SEED", mode.mixture.unwrap_or(0).to_string());
    command.env("MALLOC_PERTURB_", if mode.poison { "165" } else { "0" });
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let mut child = command.spawn().map_err(failed)?;
    let start = Instant::now();
    let mut pause = Duration::from_micros(500);
    let status = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => break Some(status),
            None if start.elapsed() < LIMIT => std::thread::sleep(pause),
            None => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
        }
        pause = (pause * 2).min(Duration::from_millis(10));
    };
    let (output, messages) = (read(&mut stdout), read(&mut stderr));
    let end = match status {
        Some(status) if status.success() => String::new(),
        Some(status) => format!("ended with {status}\n{messages}"),
        None => format!("did not end within {} s\n{messages}", LIMIT.as_secs()),
    };
    Ok(Process { output, end })
}

fn read(file: &mut File) -> String {
    let mut bytes = Vec::new();
    if file.rewind().and_then(|()| file.read_to_end(&mut bytes)).is_err() {
        bytes.clear();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_told_apart() {
        let output = "# 3\nab\n= 4\n# 4\ncd\nef\n= 1\n";
        assert_eq!(section(output, 3), "ab\n= 4\n");
        assert_eq!(section(output, 4), "cd\nef\n= 1\n");
        assert_eq!(section(output, 5), "");
        let expected = Expected { lines: vec!["cd".into(), "ef".into()], code: 1 };
        assert_eq!(text(&expected), section(output, 4));
    }

    #[test]
    fn a_program_that_goes_wrong_does_not_hide_those_behind_it() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("program");
        let text = "#!/bin/sh\nfor p in $(seq $1 $2); do echo \"# $p\"; [ $p = 1 ] && kill -9 $$; [ $p = 3 ] && echo x; \
                    echo \"= 0\"; done\n";
        std::fs::write(&script, text).unwrap();
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let fine = Expected { lines: vec![], code: 0 };
        let mode = Mode { schedule: "lazy".into(), access: "exclusive", poison: false, mixture: None, step: None };
        let context = Context::new(false);
        let found =
            differences(&mode, 0, &[&fine; 5], |first| run(&context, &script, &mode, &[first, 4, 0], &[])).unwrap();
        assert_eq!(found.iter().map(|found| found.position).collect::<Vec<_>>(), [1, 3]);
        assert!(found[0].got.contains("signal: 9"), "{found:?}");
        assert_eq!(found[1].got, "x\n= 0\n");
    }

    #[test]
    fn a_build_that_needs_concurrent_access_runs_there_only() {
        assert_eq!(modes(Build::Exclusive, 0).len(), 8);
        assert!(modes(Build::Concurrent, 0).iter().all(|mode| mode.access == "concurrent"));
    }
}
