//! `cargo xtask oracle`: builds the oracle for speed and runs it. It has its own options and its own output.

use std::ffi::OsString;

use crate::context::Context;
use crate::failure::Failure;
use crate::products::cargo;

/// [`Failure::Result`] if the prover is wrong about a program; the oracle has then printed it.
pub(crate) fn run(context: &Context, arguments: &[OsString]) -> Result<(), Failure> {
    let mut command = cargo(context);
    command.args(["run", "--release", "--quiet", "-p", "echo-oracle", "--bin", "echo-oracle", "--"]).args(arguments);
    let status = command.status().map_err(|error| Failure::Build(format!("cannot run cargo: {error}")))?;
    match status.code() {
        Some(0) => Ok(()),
        Some(1) => Err(Failure::Result("the prover is wrong about a program; see above".to_owned())),
        Some(2) => Err(Failure::Arguments("bad arguments; see above".to_owned())),
        _ => Err(Failure::Build(format!("the oracle ended with {status}"))),
    }
}
