//! Are the outputs of two runs the same? The user says how to tell.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::process::{Command, Stdio};

use clap::Args;

use crate::failure::Failure;

/// How outputs are compared.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Comparison {
    /// The standard outputs of all runs must be equal, byte for byte
    #[arg(long)]
    compare_stdout: bool,
    /// After each run, this shell command must end with exit code 0; its standard input is the run's standard output
    #[arg(long, value_name = "COMMAND")]
    check: Option<String>,
}

impl Comparison {
    /// Standard output is needed.
    pub(crate) fn keeps_stdout(&self) -> bool {
        self.compare_stdout || self.check.is_some()
    }

    /// What is wrong with a run, compared with the first one without a plan.
    pub(crate) fn judge(&self, run: Option<&File>, reference: Option<&File>) -> Result<Option<String>, Failure> {
        let Some(run) = run else { return Ok(None) };
        if let (true, Some(reference)) = (self.compare_stdout, reference)
            && let Some(at) =
                difference(run, reference).map_err(|error| Failure::io(Path::new("the output"), "read", &error))?
        {
            return Ok(Some(format!("standard output differs from byte {at} on")));
        }
        let Some(check) = &self.check else { return Ok(None) };
        let input = rewound(run).map_err(|error| Failure::io(Path::new("the output"), "read", &error))?;
        let status =
            Command::new("/bin/sh").args(["-c", check]).stdin(Stdio::from(input)).stdout(Stdio::null()).status();
        let status = status.map_err(|error| Failure::io(Path::new("/bin/sh"), "run", &error))?;
        Ok((!status.success()).then(|| format!("`{check}` says no ({status})")))
    }
}

fn rewound(file: &File) -> io::Result<File> {
    let mut file = file.try_clone()?;
    file.rewind()?;
    Ok(file)
}

/// The first byte in which two files differ.
fn difference(one: &File, other: &File) -> io::Result<Option<u64>> {
    const CHUNK: u64 = 1 << 16;
    let (mut one, mut other) = (rewound(one)?, rewound(other)?);
    let mut at = 0;
    loop {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        (&mut one).take(CHUNK).read_to_end(&mut left)?;
        (&mut other).take(CHUNK).read_to_end(&mut right)?;
        if left != right {
            let same = left.iter().zip(&right).take_while(|(a, b)| a == b).count();
            return Ok(Some(at + same as u64));
        }
        if left.is_empty() {
            return Ok(None);
        }
        at += left.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(text: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        file
    }

    #[test]
    fn the_first_difference_is_told() {
        let long = vec![b'a'; 200_000];
        let mut changed = long.clone();
        changed[150_000] = b'b';
        assert_eq!(difference(&file(&long), &file(&long)).unwrap(), None);
        assert_eq!(difference(&file(&long), &file(&changed)).unwrap(), Some(150_000));
        assert_eq!(difference(&file(&long), &file(&long[..7])).unwrap(), Some(7));
        assert_eq!(difference(&file(b""), &file(b"")).unwrap(), None);
    }

    #[test]
    fn a_check_sees_the_output_and_its_exit_code_decides() {
        let check = Comparison { compare_stdout: false, check: Some("grep -q right".to_owned()) };
        assert_eq!(check.judge(Some(&file(b"right\n")), None).unwrap(), None);
        assert!(check.judge(Some(&file(b"wrong\n")), None).unwrap().unwrap().contains("says no"));
        let compare = Comparison { compare_stdout: true, check: None };
        assert_eq!(compare.judge(Some(&file(b"1")), Some(&file(b"1"))).unwrap(), None);
        assert!(compare.judge(Some(&file(b"1")), Some(&file(b"2"))).unwrap().unwrap().contains("byte 0"));
        assert!(!Comparison::default().keeps_stdout());
    }
}
