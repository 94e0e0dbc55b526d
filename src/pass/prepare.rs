//! prepare
use super::ir::Module;
/// Runs the pass; true if the module changed.
pub fn run(module: Module<'_>) -> bool {
    let _ = module;
    false
}
