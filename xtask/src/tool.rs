//! Runs other programs: output captured, and an error that names the command line, how it ended, and the end of what it said.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::failure::Failure;

/// Lines of a failed command's output that its error shows.
const SHOWN_LINES: usize = 25;

/// Runs `command` to its end without standard input; its output is captured. An error if it cannot be started or ends with another code than 0.
pub(crate) fn run(command: &mut Command) -> Result<Output, Failure> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failure::Build(format!("cannot run {}: {error}", command.get_program().to_string_lossy())))?;
    if output.status.success() {
        return Ok(output);
    }
    Err(Failure::Build(format!("{} ended with {}\n{}", line(command), output.status, tail(&output))))
}

/// Runs `command` with its output going where ours goes. For cargo, which shows its own progress.
pub(crate) fn run_visibly(command: &mut Command) -> Result<(), Failure> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|error| Failure::Build(format!("cannot run {}: {error}", command.get_program().to_string_lossy())))?;
    if status.success() { Ok(()) } else { Err(Failure::Build(format!("{} ended with {status}", line(command)))) }
}

/// The command as one would type it (without quoting).
pub(crate) fn line(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

/// The last lines that a command said, standard error first.
pub(crate) fn tail(output: &Output) -> String {
    let all = format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    let lines: Vec<&str> = all.lines().collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}

/// Looks for an executable in PATH.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| is_executable(path))
}

/// A file with a run bit.
pub(crate) fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}
