//! The program that a command is given after `--`, and whether libecho_dr.so can be preloaded into it.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::elf::{self, Executable};
use crate::failure::Failure;

/// A program and its arguments.
#[derive(Clone, Debug, Args)]
pub(crate) struct Program {
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

impl Program {
    /// As the user wrote it.
    pub(crate) fn words(&self) -> String {
        let words: Vec<_> = self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
    }

    /// The file that would be executed.
    pub(crate) fn path(&self) -> Result<PathBuf, Failure> {
        find(Path::new(&self.command[0]))
    }

    /// Its arguments, without its name.
    pub(crate) fn arguments(&self) -> &[OsString] {
        &self.command[1..]
    }

    /// The file that would be executed, once it is sure that the library can be loaded into it.
    pub(crate) fn preloadable(&self) -> Result<PathBuf, Failure> {
        let path = self.path()?;
        match obstacle(&path)? {
            None => Ok(path),
            Some(reason) => Err(Failure::NotPreloadable { path, reason: reason.what }),
        }
    }
}

/// The file that a name stands for, as `execvp` has it.
pub(crate) fn find(name: &Path) -> Result<PathBuf, Failure> {
    if name.components().count() > 1 {
        return if name.is_file() {
            Ok(name.to_owned())
        } else {
            Err(Failure::File { path: name.to_owned(), reason: "there is no such program".to_owned() })
        };
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(|path| is_executable(path))
        .ok_or_else(|| Failure::NoProgram(name.display().to_string()))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Something that keeps the library out of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Obstacle {
    /// What it is.
    pub(crate) what: String,
    /// What to do.
    pub(crate) help: &'static str,
}

/// What keeps the library out of the program in this file, if anything does.
pub(crate) fn obstacle(path: &Path) -> Result<Option<Obstacle>, Failure> {
    let found = |what: String, help| Ok(Some(Obstacle { what, help }));
    let data = path.metadata().map_err(|error| Failure::io(path, "look at", &error))?;
    if !is_executable(path) {
        return found("it is no executable file".to_owned(), "give the program itself; `chmod +x` if it is one");
    }
    if data.permissions().mode() & 0o6000 != 0 {
        return found(
            "it is set-uid or set-gid, and the loader ignores LD_PRELOAD for such programs (AT_SECURE)".to_owned(),
            "run a copy without the bit, as the user that it would run as",
        );
    }
    if rustix::fs::getxattr(path, "security.capability", &mut [0_u8; 64]).is_ok_and(|length| length > 0) {
        return found(
            "it has file capabilities, and the loader ignores LD_PRELOAD for such programs (AT_SECURE)".to_owned(),
            "run a copy without capabilities (`setcap -r`)",
        );
    }
    match elf::executable(path)? {
        Executable::Elf(elf) if elf.machine != std::env::consts::ARCH => found(
            format!("it is for {}, and this echo-dr is for {}", elf.machine, std::env::consts::ARCH),
            "use the echo-dr of the program's architecture",
        ),
        Executable::Elf(elf) if elf.interpreter.is_none() => found(
            "it is a static executable: no loader runs, so LD_PRELOAD has no effect".to_owned(),
            "link it dynamically (cudart may stay static), or rebuild it with Echo-SR",
        ),
        Executable::Elf(_) => Ok(None),
        Executable::Script { interpreter } if interpreter.is_file() && interpreter != path => obstacle(&interpreter),
        Executable::Script { interpreter } => found(
            format!("it is a script for {}, which is not there", interpreter.display()),
            "install the interpreter, or give it as the program",
        ),
        Executable::Other(reason) => found(reason, "give the program itself"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn program(words: &[&str]) -> Program {
        Program { command: words.iter().map(OsString::from).collect() }
    }

    #[test]
    fn a_name_is_looked_for_in_path_and_a_path_is_taken_as_it_is() {
        assert!(program(&["sh", "-c", "true"]).path().unwrap().ends_with("sh"));
        assert!(matches!(program(&["no-such-program"]).path(), Err(Failure::NoProgram(_))));
        assert!(matches!(program(&["./no-such-program"]).path(), Err(Failure::File { .. })));
        assert_eq!(program(&["sh", "-c", "exit 1"]).words(), "sh -c 'exit 1'");
    }

    #[test]
    fn what_keeps_a_library_out_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
        let mode = |mode| fs::set_permissions(&copy, fs::Permissions::from_mode(mode)).unwrap();
        mode(0o755);
        assert_eq!(obstacle(&copy).unwrap(), None);
        mode(0o4755);
        assert!(obstacle(&copy).unwrap().unwrap().what.contains("set-uid"));
        mode(0o644);
        assert!(obstacle(&copy).unwrap().unwrap().what.contains("no executable"));
        fs::write(&copy, "#!/no/such/shell\n").unwrap();
        mode(0o755);
        assert!(obstacle(&copy).unwrap().unwrap().what.contains("/no/such/shell"));
    }
}
