//! `cargo xtask test`: set-up, build, then the whole suite. The last lines are cargo's own.

use crate::context::Context;
use crate::failure::Failure;
use crate::products::{self, cargo};
use crate::setup::{self, LLVM_OLD};
use crate::tool;

/// Runs everything. [`Failure::Result`] if a test fails.
pub(crate) fn run(context: &Context) -> Result<(), Failure> {
    setup::complete(context, None)?;
    products::build(context)?;
    products::plugin(context, LLVM_OLD)?;

    let arguments = ["test", "--workspace", "--no-fail-fast"];
    tool::run_visibly(cargo(context).args(arguments)).map_err(|_| Failure::Result("tests failed; see above".into()))
}
