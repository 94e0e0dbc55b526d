//! `cargo xtask test`: set-up, build, then the whole suite. The last lines are cargo's own.

use crate::context::Context;
use crate::failure::Failure;
use crate::products::{self, cargo};
use crate::setup;
use crate::tool;

/// Runs everything. [`Failure::Result`] if a test fails.
pub(crate) fn run(context: &Context) -> Result<(), Failure> {
    setup::complete(context, None)?;
    products::build(context)?;

    let arguments = ["test", "--workspace", "--no-fail-fast"];
    tool::run_visibly(cargo(context).args(arguments)).map_err(|_| Failure::Result("tests failed; see above".into()))
}
