//! Finds the LLVM that the plugin is built for. (The C++ shim is compiled here too.)
fn main() {}
