//! `cargo xtask test`: set-up, build, then the whole suite. The last lines are cargo's own.
//!
//! The mutants come first: their builds of the plugin are not those that the other tests take.

use crate::context::Context;
use crate::failure::Failure;
use crate::products::{self, cargo};
use crate::setup;
use crate::tool;

/// Runs everything. [`Failure::Result`] if a test fails.
pub(crate) fn run(context: &Context) -> Result<(), Failure> {
    setup::complete(context, None)?;
    setup::complete_for_tests(context)?;
    products::build(context)?;

    let mutants = ["test", "--package", "echo-sr", "--features", "mutants", "--test", "mutants"];
    let all = ["test", "--workspace", "--no-fail-fast"];
    let results = [mutants.as_slice(), &all].map(|arguments| tool::run_visibly(cargo(context).args(arguments)));
    if results.iter().all(Result::is_ok) { Ok(()) } else { Err(Failure::Result("tests failed; see above".into())) }
}
