//! The command `echo-dr`: unmodified CUDA programs with their host and device buffers merged.
//!
//! | file | |
//! | --- | --- |
//! | `profile.rs`, `analyze.rs`, `validate.rs`, `calibrate/`, `tune.rs`, `run.rs`, `report/`, `doctor/`, `explain.rs` | the commands |
//! | `steps.rs` | what the commands and `tune` have in common |
//! | `launch.rs`, `program.rs`, `library.rs` | the program that is run, and the library that is loaded into it |
//! | `files.rs`, `summary.rs` | traces and plans, for reading and for people |
//! | `places.rs`, `symbols.rs`, `elf.rs` | what files say: what stands at an address, how they reach CUDA |
//! | `device.rs` | what the GPU says of itself |
//!
//! What is decided is decided by `echo-dr-engine`; what a program does is seen by the library that is preloaded. They meet in files.

mod analyze;
mod calibrate;
mod device;
mod doctor;
mod elf;
mod explain;
mod failure;
mod files;
mod launch;
mod library;
mod places;
mod profile;
mod program;
mod report;
mod run;
mod steps;
mod summary;
mod symbols;
mod tune;
mod validate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Echo-DR merges host and device buffers of CUDA programs as they are, without rebuilding them: it watches a run, tests in another that
/// merging is right, measures that it pays, and then runs the program with the copies gone.
#[derive(Debug, Parser)]
#[command(version, name = "echo-dr")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Tune(Box<tune::Tune>),
    Run(run::Run),
    Profile(Box<profile::Profile>),
    Analyze(analyze::Analyze),
    Validate(Box<validate::Validate>),
    Calibrate(Box<calibrate::Calibrate>),
    Report(report::Report),
    Doctor(doctor::Doctor),
    Explain(explain::Explain),
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    let status = match &command {
        Command::Tune(tune) => tune.run(),
        Command::Run(run) => run.run(),
        Command::Profile(profile) => profile.run(),
        Command::Analyze(analyze) => analyze.run(),
        Command::Validate(validate) => validate.run(),
        Command::Calibrate(calibrate) => calibrate.run(),
        Command::Report(report) => report.run(),
        Command::Doctor(doctor) => doctor.run(),
        Command::Explain(explain) => explain.run(),
    };
    match status {
        Ok(status) => ExitCode::from(status as u8),
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(if let Command::Run(_) = command { run::code(&failure) } else { failure.code() })
        }
    }
}
