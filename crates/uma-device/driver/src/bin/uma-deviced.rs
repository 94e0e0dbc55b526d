//! The device process. Programs don't start it: the runtime library does.

use cuda::device_process::{run, startup::StartOptions};
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(options) = StartOptions::from_arguments(std::env::args().skip(1)) else {
        eprintln!("uma-deviced is started by the CPU device's libcuda of the same build, not by hand");
        return ExitCode::FAILURE;
    };
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("uma-device: the device process could not start: {error}");
            ExitCode::FAILURE
        }
    }
}
