//! The command `echo-dr`: unmodified CUDA programs with their host and device buffers merged.
//!
//! | file | |
//! | --- | --- |
//! | `doctor/` | can Echo be used here, on this program? |
//! | `program.rs`, `library.rs` | the program that is run, and the library that is loaded into it |
//! | `elf.rs`, `symbols.rs` | what files say: how they reach CUDA, what stands at an address |
//! | `device.rs` | what the GPU says of itself |
//!
//! The library decides nothing here, and this command touches no memory of the program: they meet in files.

mod device;
mod doctor;
mod elf;
mod failure;
mod library;
mod program;
mod symbols;

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
    Doctor(doctor::Doctor),
}

fn main() -> ExitCode {
    let status = match Cli::parse().command {
        Command::Doctor(doctor) => doctor.run(),
    };
    match status {
        Ok(status) => ExitCode::from(status as u8),
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.code())
        }
    }
}
