//! `compile_commands.json`: the compile commands of a project, as CMake, Meson, Bear and others write them.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::failure::Failure;

/// One command as the database has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Where it runs.
    pub(crate) directory: PathBuf,
    /// The source, as the command names it.
    pub(crate) file: String,
    /// The compiler and its arguments.
    pub(crate) arguments: Vec<String>,
}

impl Entry {
    /// The source's path.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join(&self.file)
    }
}

#[derive(Deserialize)]
struct Raw {
    directory: PathBuf,
    file: String,
    command: Option<String>,
    arguments: Option<Vec<String>>,
}

/// Reads a database; a folder means the database in it.
pub(crate) fn read(path: &Path) -> Result<Vec<Entry>, Failure> {
    let path = if path.is_dir() { path.join("compile_commands.json") } else { path.to_owned() };
    let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::File {
            path: path.clone(),
            reason: "there is no such file. CMake writes it with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON; or lint one \
                     command with `echo-sr lint -- clang++ …`, or a folder with `echo-sr survey DIR`"
                .to_owned(),
        },
        _ => Failure::io(&path, "read", &error),
    })?;
    let base = path.parent().map(Path::to_owned).unwrap_or_default();
    parse(&text, &base).map_err(|reason| Failure::File { path, reason })
}

fn parse(text: &str, base: &Path) -> Result<Vec<Entry>, String> {
    let raw: Vec<Raw> = serde_json::from_str(text).map_err(|error| format!("is not a compile database: {error}"))?;
    raw.into_iter().map(|raw| entry(raw, base)).collect()
}

fn entry(raw: Raw, base: &Path) -> Result<Entry, String> {
    let arguments = match (raw.arguments, &raw.command) {
        (Some(arguments), _) => arguments,
        (None, Some(command)) => shlex::split(command)
            .ok_or_else(|| format!("the command of {} has a quote that is not closed", raw.file))?,
        (None, None) => return Err(format!("the entry of {} has neither `command` nor `arguments`", raw.file)),
    };
    if arguments.is_empty() {
        return Err(format!("the command of {} is empty", raw.file));
    }
    let directory = std::path::absolute(base.join(raw.directory)).map_err(|error| error.to_string())?;
    Ok(Entry { directory, file: raw.file, arguments })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_argument_lists_are_read() {
        let text = r#"[
            {"directory": "/b", "file": "a.cu", "command": "clang++ -DX='a b' -c a.cu -o \"o ut.o\""},
            {"directory": "sub", "file": "/s/b.cu", "arguments": ["clang++", "-c", "/s/b.cu"], "output": "b.o"}
        ]"#;
        let entries = parse(text, Path::new("/base")).expect("two entries");
        assert_eq!(entries[0].arguments, ["clang++", "-DX=a b", "-c", "a.cu", "-o", "o ut.o"]);
        assert_eq!(entries[0].path(), Path::new("/b/a.cu"));
        assert_eq!(entries[1].directory, Path::new("/base/sub"));
        assert_eq!(entries[1].path(), Path::new("/s/b.cu"));
    }

    #[test]
    fn what_is_no_database_is_refused_with_the_reason() {
        for (text, part) in [
            ("{}", "not a compile database"),
            (r#"[{"directory": "/", "file": "a.cu"}]"#, "neither"),
            (r#"[{"directory": "/", "file": "a.cu", "command": "x 'y"}]"#, "quote"),
            (r#"[{"directory": "/", "file": "a.cu", "arguments": []}]"#, "empty"),
        ] {
            let reason = parse(text, Path::new("/")).unwrap_err();
            assert!(reason.contains(part), "{reason}");
        }
    }
}
