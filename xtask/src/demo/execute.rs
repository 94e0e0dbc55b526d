//! Runs a sample on the CPU device: what it printed, and how long its loop took.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::context::Context;
use crate::failure::Failure;

/// A run that takes longer hangs: the slowest takes seconds.
const LIMIT: Duration = Duration::from_secs(180);

/// The device's modes for a run; `None` is its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Modes {
    /// `UMA_DEVICE_SCHEDULE`
    pub(crate) schedule: Option<String>,
    /// `UMA_DEVICE_ACCESS`
    pub(crate) access: Option<&'static str>,
}

impl std::fmt::Display for Modes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SCHEDULE={} ACCESS={}", self.schedule.as_deref().unwrap_or("-"), self.access.unwrap_or("-"))
    }
}

/// A run that ended well.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// Standard output: results alone, no times.
    pub(crate) output: String,
    /// Milliseconds that the program's loop took, as it says on standard error.
    pub(crate) loop_ms: f64,
    /// Copies between host and device memory, as the device counted them.
    pub(crate) copies: u64,
    /// Bytes that these copies moved.
    pub(crate) copied_bytes: u64,
}

/// What the device writes to the file that `UMA_DEVICE_STATS` names.
#[derive(Debug, Deserialize)]
struct Statistics {
    copies: u64,
    copied_bytes: u64,
}

/// Runs `program` with `arguments`. [`Failure::Result`] if it fails, hangs or says no time.
pub(crate) fn run(context: &Context, program: &Path, arguments: &[String], modes: &Modes) -> Result<Run, Failure> {
    let wrong = |what: &str| Failure::Result(format!("{} {} ({modes}) {what}", program.display(), arguments.join(" ")));
    let file = || tempfile::tempfile().map_err(|error| wrong(&format!("cannot be run: no temporary file: {error}")));
    let (mut stdout, mut stderr) = (file()?, file()?);
    let statistics =
        tempfile::NamedTempFile::new().map_err(|error| wrong(&format!("cannot be run: no temporary file: {error}")))?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).env("LD_LIBRARY_PATH", context.uma().join("lib"));
    command.env("UMA_DEVICE_STATS", statistics.path());
    for name in ["UMA_DEVICE_SCHEDULE", "UMA_DEVICE_ACCESS", "UMA_DEVICE_LINK", "UMA_DEVICE_POISON"] {
        command.env_remove(name);
    }
    if let Some(schedule) = &modes.schedule {
        command.env("UMA_DEVICE_SCHEDULE", schedule);
    }
    if let Some(access) = modes.access {
        command.env("UMA_DEVICE_ACCESS", access);
    }
    let duplicate =
        |file: &File| file.try_clone().map(Stdio::from).map_err(|error| wrong(&format!("cannot be run: {error}")));
    command.stdout(duplicate(&stdout)?).stderr(duplicate(&stderr)?);
    let mut child = command.spawn().map_err(|error| wrong(&format!("cannot be run: {error}")))?;

    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if start.elapsed() < LIMIT => std::thread::sleep(pause),
            outcome => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(wrong(&match outcome {
                    Err(error) => format!("cannot be waited for: {error}"),
                    _ => format!("did not end within {} s", LIMIT.as_secs()),
                }));
            }
        }
        pause = (pause * 2).min(Duration::from_millis(10));
    };
    let (output, messages) = (read(&mut stdout), read(&mut stderr));
    if !status.success() {
        return Err(wrong(&format!("ended with {status}\n{messages}")));
    }
    let loop_ms = loop_time(&messages).ok_or_else(|| wrong(&format!("did not say its loop time\n{messages}")))?;
    let text = std::fs::read_to_string(statistics.path()).unwrap_or_default();
    let Statistics { copies, copied_bytes } = serde_json::from_str(&text)
        .map_err(|error| wrong(&format!("left no statistics of the device ({error}): {text}")))?;
    Ok(Run { output, loop_ms, copies, copied_bytes })
}

fn read(file: &mut File) -> String {
    let mut bytes = Vec::new();
    if file.rewind().and_then(|()| file.read_to_end(&mut bytes)).is_err() {
        bytes.clear();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The number in `loop time: 12.345 ms`, which ends a line. (Where both of a program's outputs go to one place, it need not begin one.)
pub(crate) fn loop_time(messages: &str) -> Option<f64> {
    messages.lines().find_map(|line| line.split_once("loop time: ")?.1.strip_suffix(" ms")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_time_is_found_among_other_messages() {
        assert_eq!(loop_time("warning\nloop time: 12.345 ms\n"), Some(12.345));
        assert_eq!(loop_time("result 43cloop time: 12.345 ms\n00000\n"), Some(12.345));
        assert_eq!(loop_time("loop time: long\n"), None);
        assert_eq!(loop_time(""), None);
    }

    #[test]
    fn a_failing_program_is_a_wrong_result_with_its_messages() {
        let arguments = ["-c".to_string(), "echo spoke >&2; exit 3".to_string()];
        let failure = run(&Context::new(false), Path::new("/bin/sh"), &arguments, &Modes::default()).unwrap_err();
        assert!(matches!(failure, Failure::Result(_)));
        assert!(failure.to_string().contains("spoke") && failure.to_string().contains('3'), "{failure}");
    }

    #[test]
    fn output_and_time_are_kept_apart_and_the_modes_reach_the_program() {
        let script = "echo $UMA_DEVICE_SCHEDULE $UMA_DEVICE_ACCESS; echo 'loop time: 1.5 ms' >&2
            echo '{\"copies\":2,\"copied_bytes\":4096}' > $UMA_DEVICE_STATS";
        let modes = Modes { schedule: Some("random:7".into()), access: Some("exclusive") };
        let run = run(&Context::new(false), Path::new("/bin/sh"), &["-c".into(), script.into()], &modes).unwrap();
        assert_eq!(run.output, "random:7 exclusive\n");
        assert!((run.loop_ms - 1.5).abs() < 1e-9);
        assert_eq!((run.copies, run.copied_bytes), (2, 4096));
    }
}
