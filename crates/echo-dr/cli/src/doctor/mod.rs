//! `echo-dr doctor`: can Echo be used here, on this program, and if not, what to do?

mod backends;
mod host;
mod interception;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use crate::device::Device;
use crate::failure::{Failure, Status, print, print_json};
use crate::library;
use crate::program;

/// Can Echo be used on this machine, and on a program?
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  nothing stands in the way
  1  something does; what to do is said
  2  wrong usage

Examples:
  echo-dr doctor
  echo-dr doctor --json -- ./app")]
pub(crate) struct Doctor {
    /// As one JSON object
    #[arg(long)]
    json: bool,
    /// A program to look at; it is not run
    #[arg(last = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing.
    Note,
    /// Stands in the way.
    Problem,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Finding {
    /// `host`, `device`, `backend` or `program`.
    pub(crate) area: &'static str,
    /// How much it matters.
    pub(crate) level: Level,
    /// What was found.
    pub(crate) what: String,
    /// What to do, where something can be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) help: Option<String>,
}

impl Finding {
    fn ok(area: &'static str, what: String) -> Self {
        Self { area, level: Level::Ok, what, help: None }
    }

    fn note(area: &'static str, what: String, help: impl Into<Option<&'static str>>) -> Self {
        Self { area, level: Level::Note, what, help: help.into().map(str::to_owned) }
    }

    fn problem(area: &'static str, what: String, help: &str) -> Self {
        Self { area, level: Level::Problem, what, help: Some(help.to_owned()) }
    }
}

/// All that was found.
#[derive(Debug, Serialize)]
struct Diagnosis {
    usable: bool,
    findings: Vec<Finding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<Device>,
    backends: Vec<backends::Possible>,
}

impl Doctor {
    /// Runs the command.
    pub(crate) fn run(&self) -> Result<Status, Failure> {
        let program = match self.command.split_first() {
            None => None,
            Some((name, _)) => Some(program::find(Path::new(name))?),
        };
        let diagnosis = diagnose(program.as_deref())?;
        if self.json {
            print_json(&diagnosis)?;
        } else {
            print(&text(&diagnosis))?;
        }
        Ok(if diagnosis.usable { Status::Done } else { Status::No })
    }
}

fn diagnose(program: Option<&Path>) -> Result<Diagnosis, Failure> {
    let mut findings = host::look();
    findings.push(match library::find() {
        Ok(path) => Finding::ok("host", format!("the library is {}", path.display())),
        Err(failure) => {
            Finding::problem("host", failure.to_string(), "cargo xtask build, or cargo xtask install --prefix DIR")
        }
    });
    let mut runtime: Option<PathBuf> = None;
    if let Some(program) = program {
        let seen = interception::look(program)?;
        findings.extend(seen.findings);
        runtime = seen.runtime;
    }
    let device = match Device::ask(runtime) {
        Ok(device) => {
            findings.push(backends::describe(&device));
            Some(device)
        }
        Err(reasons) => {
            findings.push(Finding::problem(
                "device",
                format!("no CUDA library says anything of a device ({})", reasons.join("; ")),
                "install the driver (its libcuda.so.1), or name a folder with libcudart in LD_LIBRARY_PATH",
            ));
            None
        }
    };
    let backends = device.as_ref().map(|device| backends::possible(device.facts())).unwrap_or_default();
    if device.is_some() && !backends.iter().any(|backend| backend.possible) {
        findings.push(Finding::problem(
            "backend",
            "no kind of merged buffer is possible".to_owned(),
            "Echo can't help here",
        ));
    }
    let usable = findings.iter().all(|finding| finding.level != Level::Problem);
    Ok(Diagnosis { usable, findings, device, backends })
}

fn text(diagnosis: &Diagnosis) -> String {
    let mut text = String::new();
    for area in ["host", "program", "device", "backend"] {
        for finding in diagnosis.findings.iter().filter(|finding| finding.area == area) {
            let mark = match finding.level {
                Level::Ok => "ok",
                Level::Note => "note",
                Level::Problem => "PROBLEM",
            };
            text += &format!("{area:8} {mark:8} {}\n", finding.what);
            if let Some(help) = &finding.help {
                text += &format!("{:17} -> {help}\n", "");
            }
        }
    }
    for backend in &diagnosis.backends {
        let mark = if backend.possible { "ok" } else { "no" };
        text += &format!("{:8} {mark:8} {}: {}\n", "backend", backend.name, backend.why);
    }
    text += if diagnosis.usable { "Echo can be used.\n" } else { "Something stands in the way; see PROBLEM above.\n" };
    text
}
