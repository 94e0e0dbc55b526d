//! The command `uma-clang++`.

use std::process::ExitCode;

fn main() -> ExitCode {
    uma_compiler::run(std::env::args().skip(1).collect())
}
