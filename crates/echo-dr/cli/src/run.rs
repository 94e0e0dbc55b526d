//! `echo-dr run`: becomes the program, with the library in it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde::Serialize;

use crate::failure::{Failure, Status};
use crate::files;
use crate::launch::{self, FIRST, VARIABLES};
use crate::library;
use crate::program::Program;

/// Run a program with a plan's pairs merged
#[derive(Debug, Args)]
#[command(after_help = "\
This process becomes the program. The library in it compares the program, its arguments, the machine, the GPU and the CUDA versions with those
of the plan; if one differs, the program runs unchanged, and that is said once on standard error. So is a plan that is damaged, or that other
users could have written.

Exit codes:
  as the program's
  125  the program was not run: there is no plan or no library
  126  the program can't be run
  127  there is no such program")]
pub(crate) struct Run {
    /// The plan of `echo-dr tune`
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// Write what was merged and skipped to this file at exit, as JSON
    #[arg(long, value_name = "FILE")]
    counters: Option<PathBuf>,
    /// Record the run in this file, for `echo-dr report`: which calls are made, what is skipped, and how long each takes
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Say what is about to be done on standard error, as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    program: Program,
}

/// What is about to be done.
#[derive(Serialize)]
struct Intent {
    plan: String,
    program: String,
    /// Numbers of the pairs to merge.
    enabled: Vec<u32>,
    /// Why none are, if the plan can't be used.
    refused: Option<String>,
}

impl Run {
    /// Runs the command: returns only if the program could not be run.
    pub(crate) fn run(&self) -> Result<Status, Failure> {
        let path = self.program.path()?;
        let library = library::find()?;
        if !self.plan.exists() {
            let reason = "there is no such plan; `echo-dr tune -- PROGRAM` makes one".to_owned();
            return Err(Failure::File { path: self.plan.clone(), reason });
        }
        // A plan that the library would refuse is refused here, in the same words; the program runs all the same.
        let refused = files::plan(&self.plan).map(|plan| plan.enabled().map(|pair| pair.id).collect::<Vec<_>>());
        let mut command = Command::new(&path);
        command.args(self.program.arguments());
        for variable in VARIABLES {
            command.env_remove(variable);
        }
        let (enabled, refused) = match refused {
            Ok(enabled) => (enabled, None),
            Err(failure) => (Vec::new(), Some(failure.to_string())),
        };
        let intent = Intent { plan: self.plan.display().to_string(), program: self.program.words(), enabled, refused };
        self.say(&intent)?;
        if !intent.enabled.is_empty() {
            self.program.preloadable()?;
            command.env(FIRST.0, FIRST.1);
            command.env("ECHO_DR_MODE", "optimise").env("ECHO_DR_PLAN", absolute(&self.plan)?);
            command.env("LD_PRELOAD", launch::with_preload(&library, std::env::var_os("LD_PRELOAD"))?);
            if let Some(counters) = &self.counters {
                command.env("ECHO_DR_COUNTERS", absolute(counters)?);
            }
            if let Some(trace) = &self.trace {
                command.env("ECHO_DR_TRACE", absolute(trace)?);
            }
        }
        Err(Failure::io(&path, "run", &command.exec()))
    }

    fn say(&self, intent: &Intent) -> Result<(), Failure> {
        if self.json {
            let text = serde_json::to_string(intent).map_err(|error| Failure::Usage(error.to_string()))?;
            eprintln!("{text}");
        } else if let Some(refused) = &intent.refused {
            eprintln!("echo-dr: {refused}; the program runs unchanged");
        } else if intent.enabled.is_empty() {
            eprintln!("echo-dr: {} merges nothing; the program runs unchanged", intent.plan);
        }
        Ok(())
    }
}

/// The exit code of a failure: those that env, timeout and nohup have.
pub(crate) fn code(failure: &Failure) -> u8 {
    match failure {
        Failure::NoProgram(_) => 127,
        Failure::NotPreloadable { .. } => 126,
        _ => 125,
    }
}

fn absolute(path: &Path) -> Result<OsString, Failure> {
    std::path::absolute(path).map(Into::into).map_err(|error| Failure::io(path, "find", &error))
}
