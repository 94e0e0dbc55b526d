//! The pass `echo-sr` over one host module: lower → analyse → rewrite → report, function by function.

use super::ir::Module;
use crate::options::Options;

/// Runs the pass; true if the module changed.
pub fn run(module: Module<'_>, level: i32, options: &Options) -> bool {
    let _ = (module, level, options);
    false
}
