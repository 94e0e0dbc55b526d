//! How a command ends when it does not succeed: one sentence for the user, and an exit code that scripts can rely on.

use std::path::Path;
use std::process::ExitCode;

/// Exit codes, as `--help` lists them. (0 is success, 2 is clap's own for bad arguments.)
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  everything is as it should be
  1  a result is wrong: outputs differ, a verdict is not the expected one, a test failed
  2  bad arguments
  3  set-up cannot be completed; the message says what to install
  4  Echo or a sample cannot be built, or a tool cannot be run";

/// Why a command stops.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A result is wrong.
    #[error("{0}")]
    Result(String),
    /// Another command that was given our arguments did not like them, and has said so.
    #[error("{0}")]
    Arguments(String),
    /// Something is not installed and could not be installed here.
    #[error("{0}")]
    Setup(String),
    /// A build failed or a tool could not be run.
    #[error("{0}")]
    Build(String),
}

impl Failure {
    /// The exit code that [`EXIT_CODES`] documents.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Result(_) => 1,
            Failure::Arguments(_) => 2,
            Failure::Setup(_) => 3,
            Failure::Build(_) => 4,
        })
    }

    /// A file operation failed: `doing` is what was tried ("write", "read", …).
    pub(crate) fn io(doing: &str, path: &Path, error: &std::io::Error) -> Self {
        Failure::Build(format!("cannot {doing} {}: {error}", path.display()))
    }
}
