//! Runs of the program for a command: with its output out of the way, its end judged, and a limit of time.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use crate::failure::Failure;
use crate::program::Program;

/// How the program is run; the same for each of a command's runs.
#[derive(Clone, Debug, Args)]
pub(crate) struct Launch {
    #[command(flatten)]
    pub(crate) program: Program,
    /// Standard input of each run [default: nothing]
    #[arg(long, value_name = "FILE")]
    stdin: Option<PathBuf>,
    /// Show what the program writes, on standard error
    #[arg(long)]
    show_output: bool,
    /// Stop a run that takes longer than this; it counts as failed
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// The exit code of a run that went well
    #[arg(long, value_name = "CODE", default_value_t = 0)]
    exit_code: u8,
}

/// A run that ended well.
#[derive(Debug)]
pub(crate) struct Run {
    /// Standard output, if it was asked to be kept.
    pub(crate) stdout: Option<File>,
    /// From start to end.
    pub(crate) wall: Duration,
}

/// What the library reads; none of it comes from the surroundings of a command.
pub(crate) const VARIABLES: [&str; 7] = [
    "ECHO_DR_MODE",
    "ECHO_DR_TRACE",
    "ECHO_DR_PLAN",
    "ECHO_DR_COUNTERS",
    "ECHO_DR_THETA_MIN",
    "ECHO_DR_TIMES",
    "ECHO_DR_EXCLUSIVE",
];

/// What tells the process that a command starts from that one's children: the library puts its number in the place of the zeroes.
pub(crate) const FIRST: (&str, &str) = ("ECHO_DR_FIRST", "0000000000");

/// Bytes of standard error that a failure shows.
const SHOWN: u64 = 2000;

impl Launch {
    /// Runs the program. `during` says what for; `environment` is added to ours; `preload` is loaded first.
    pub(crate) fn run(
        &self,
        during: &str,
        preload: &Path,
        environment: &[(&str, &OsStr)],
        keep_stdout: bool,
    ) -> Result<Run, Failure> {
        let path = self.program.preloadable()?;
        let mut command = Command::new(&path);
        command.args(self.program.arguments());
        for variable in VARIABLES {
            command.env_remove(variable);
        }
        command.env(FIRST.0, FIRST.1);
        command.envs(environment.iter().copied());
        command.env("LD_PRELOAD", with_preload(preload, std::env::var_os("LD_PRELOAD"))?);
        command.stdin(match &self.stdin {
            Some(file) => File::open(file).map_err(|error| Failure::io(file, "read", &error))?.into(),
            None => Stdio::null(),
        });
        let stdout = if keep_stdout { Some(temporary()?) } else { None };
        let stderr = if self.show_output { None } else { Some(temporary()?) };
        command.stdout(match &stdout {
            Some(file) => duplicate(file)?,
            None if self.show_output => duplicate_stderr()?,
            None => Stdio::null(),
        });
        command.stderr(match &stderr {
            Some(file) => duplicate(file)?,
            None => Stdio::inherit(),
        });

        let failed = |what: String, stderr: Option<File>| Failure::Program {
            program: path.display().to_string(),
            what,
            during: during.to_owned(),
            said: stderr.map(tail).unwrap_or_default(),
        };
        let start = Instant::now();
        let mut child = command.spawn().map_err(|error| Failure::io(&path, "run", &error))?;
        let status = wait(&mut child, Duration::from_secs(self.timeout))
            .map_err(|error| Failure::io(&path, "wait for", &error))?;
        let wall = start.elapsed();
        match status {
            Some(status) if status.code() == Some(i32::from(self.exit_code)) => Ok(Run { stdout, wall }),
            Some(status) => Err(failed(described(status), stderr)),
            None => Err(failed(format!("did not end within {} s (--timeout)", self.timeout), stderr)),
        }
    }
}

/// Ends a program that takes too long: `None`.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

/// Our library first: it must see the calls before another library changes them. The loader splits the variable at colons and spaces.
pub(crate) fn with_preload(library: &Path, present: Option<OsString>) -> Result<OsString, Failure> {
    let name = library.as_os_str();
    if name.as_encoded_bytes().iter().any(|byte| matches!(byte, b' ' | b':')) {
        let reason = "LD_PRELOAD can't name a path with a space or a colon; move the library, or make a link to it and set \
                      ECHO_DR_LIBRARY to that";
        return Err(Failure::File { path: library.to_owned(), reason: reason.to_owned() });
    }
    let mut value = name.to_owned();
    if let Some(present) = present.filter(|present| !present.is_empty()) {
        value.push(":");
        value.push(present);
    }
    Ok(value)
}

fn described(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code} (--exit-code says which code is right)"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended in an unknown way".to_owned(),
    }
}

fn temporary() -> Result<File, Failure> {
    tempfile::tempfile().map_err(|error| Failure::io(&std::env::temp_dir(), "write to", &error))
}

fn duplicate(file: &File) -> Result<Stdio, Failure> {
    file.try_clone().map(Stdio::from).map_err(|error| Failure::io(&std::env::temp_dir(), "write to", &error))
}

fn duplicate_stderr() -> Result<Stdio, Failure> {
    rustix::io::dup(std::io::stderr())
        .map(Stdio::from)
        .map_err(|error| Failure::io(Path::new("standard error"), "write to", &error.into()))
}

/// The end of what the program said, on lines of its own.
fn tail(mut file: File) -> String {
    let mut bytes = Vec::new();
    let length = file.metadata().map_or(0, |data| data.len());
    let read = file.seek(SeekFrom::Start(length.saturating_sub(SHOWN))).and_then(|_| file.read_to_end(&mut bytes));
    match (read, String::from_utf8_lossy(&bytes).trim_end()) {
        (Err(_), _) | (_, "") => String::new(),
        (Ok(_), text) => format!("; it said\n{text}"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        launch: Launch,
    }

    fn launch(arguments: &[&str]) -> Launch {
        Cli::parse_from([&["test"], arguments].concat()).launch
    }

    fn run(arguments: &[&str], keep: bool) -> Result<Run, Failure> {
        // An empty name would be no library; this one is in the process already.
        launch(arguments).run("testing", Path::new("libc.so.6"), &[("GIVEN", OsStr::new("value"))], keep)
    }

    #[test]
    fn standard_output_is_kept_and_the_environment_is_given() {
        let mut text = String::new();
        let mut file = run(&["--", "sh", "-c", "echo $GIVEN; echo no >&2"], true).unwrap().stdout.unwrap();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "value\n");
    }

    #[test]
    fn a_wrong_end_is_a_failure_with_what_the_program_said() {
        let text = run(&["--", "sh", "-c", "echo spoke >&2; exit 4"], false).unwrap_err().to_string();
        assert!(text.contains("exit code 4") && text.contains("spoke") && text.contains("testing"), "{text}");
        assert!(run(&["--exit-code", "4", "--", "sh", "-c", "exit 4"], false).is_ok());
        let text = run(&["--", "sh", "-c", "kill -9 $$"], false).unwrap_err().to_string();
        assert!(text.contains("signal 9"), "{text}");
    }

    #[test]
    fn a_run_without_end_is_stopped() {
        let start = Instant::now();
        let text = run(&["--timeout", "1", "--", "sleep", "60"], false).unwrap_err().to_string();
        assert!(text.contains("within 1 s") && start.elapsed() < Duration::from_secs(20), "{text}");
    }

    #[test]
    fn our_library_comes_first_and_odd_paths_are_refused() {
        let library = Path::new("/lib/libecho_dr.so");
        assert_eq!(with_preload(library, None).unwrap(), "/lib/libecho_dr.so");
        assert_eq!(with_preload(library, Some("a.so".into())).unwrap(), "/lib/libecho_dr.so:a.so");
        let text = with_preload(Path::new("/my lib/libecho_dr.so"), None).unwrap_err().to_string();
        assert!(text.contains("ECHO_DR_LIBRARY"), "{text}");
    }
}
