//! Why a command can't do its work: what happened, where, and what to do.

use std::io;
use std::path::{Path, PathBuf};

/// How a command ended, as its exit code. `run` ends as the program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// As asked.
    Done = 0,
    /// The work was done, and the answer is no: nothing to merge, nothing enabled, outputs that differ, something that stands in the way.
    No = 1,
}

/// An error of usage or set-up (exit code 2), or of the program that was run (exit code 3).
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The library is not where it is looked for.
    #[error("the library libecho_dr.so was not found (looked at {}). Build it with `cargo xtask build`, or set ECHO_DR_LIBRARY to its path", list(.0))]
    NoLibrary(Vec<PathBuf>),
    /// There is no such program.
    #[error("there is no program `{0}` in PATH. Give its path, as in `-- ./{0}`")]
    NoProgram(String),
    /// The library can't be loaded into the program.
    #[error("{path} can't be run with Echo: {reason}. `echo-dr doctor -- {path}` says more", path = .path.display())]
    NotPreloadable {
        /// The program.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The program failed.
    #[error("{program} {what}, while {during}{said}")]
    Program {
        /// The program.
        program: String,
        /// How it ended.
        what: String,
        /// What it was run for.
        during: String,
        /// The end of its standard error, or nothing.
        said: String,
    },
    /// A file is not what it should be.
    #[error("{path}: {reason}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The command's arguments do not fit together.
    #[error("{0}")]
    Usage(String),
}

impl Failure {
    /// A file that can't be read or written.
    pub(crate) fn io(path: &Path, action: &str, error: &io::Error) -> Self {
        Self::File { path: path.to_owned(), reason: format!("can't {action} it: {error}") }
    }

    /// The command's exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Program { .. } => 3,
            _ => 2,
        }
    }
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// To standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    echo_cli::print(text).map_err(|error| Failure::io(Path::new("standard output"), "write to", &error))
}

/// JSON to standard output, one line.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    echo_cli::lines(&[value]).map_err(|error| Failure::io(Path::new("standard output"), "write to", &error))
}
