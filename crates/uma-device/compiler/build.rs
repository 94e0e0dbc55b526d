//! Finds LLVM 22, links its shared library, and compiles the device library (`devlib/`) to bitcode.

use std::env;
use std::mem::offset_of;
use std::path::PathBuf;
use std::process::Command;
use uma_abi::{Services, ThreadContext};

const SOURCES: [&str; 5] = ["atomics.c", "math.c", "rounding.c", "integer.c", "warp.c"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=devlib");
    println!("cargo:rerun-if-env-changed=LLVM_CONFIG");
    let config = find_llvm_config();
    println!("cargo:rustc-link-search=native={}", ask(&config, "--libdir"));
    println!("cargo:rustc-link-lib=dylib=LLVM-22");
    let clang = PathBuf::from(ask(&config, "--bindir")).join("clang");
    assert!(clang.exists(), "{} is missing: install clang 22 next to the LLVM that {config} names", clang.display());
    println!("cargo:rustc-env=UMA_LLVM_BINDIR={}", ask(&config, "--bindir"));
    for source in SOURCES {
        compile(&clang, source);
    }
}

/// The `llvm-config` of LLVM 22: `LLVM_CONFIG`, else by its usual names.
fn find_llvm_config() -> String {
    let named = env::var("LLVM_CONFIG").ok();
    let candidates = named.iter().map(String::as_str).chain(["llvm-config-22", "llvm-config"]);
    for candidate in candidates {
        let output = Command::new(candidate).arg("--version").output();
        if output.is_ok_and(|output| output.stdout.starts_with(b"22.")) {
            return candidate.to_owned();
        }
    }
    panic!("LLVM 22 is needed: install llvm-22-dev and clang-22, or set LLVM_CONFIG to the path of its llvm-config");
}

fn ask(config: &str, what: &str) -> String {
    let output = Command::new(config).arg(what).output().expect("llvm-config ran a moment ago");
    String::from_utf8(output.stdout).expect("llvm-config prints text").trim().to_owned()
}

/// Compiles one file of the device library. The offsets that it shares with Rust are checked by its static assertions.
fn compile(clang: &PathBuf, source: &str) {
    let output = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join(source).with_extension("bc");
    let offsets = [
        ("UMA_OFFSET_SHARED", offset_of!(ThreadContext, shared)),
        ("UMA_OFFSET_DYNAMIC", offset_of!(ThreadContext, dynamic)),
        ("UMA_OFFSET_SERVICES", offset_of!(ThreadContext, services)),
        ("UMA_OFFSET_RUNNER", offset_of!(ThreadContext, runner)),
        ("UMA_OFFSET_BALLOT", offset_of!(Services, ballot)),
        ("UMA_OFFSET_CLOCK", offset_of!(Services, clock)),
    ];
    let status = Command::new(clang)
        .args(["-c", "-emit-llvm", "-O2", "-std=c17", "-fPIC", "-Wall", "-Wextra", "-Werror"])
        // Device code has neither errno nor floating-point traps, and rounds as each operation says.
        .args(["-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fno-vectorize", "-fno-slp-vectorize"])
        .args(["-fno-stack-protector", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables"])
        .args(offsets.map(|(name, value)| format!("-D{name}={value}")))
        .arg(PathBuf::from("devlib").join(source))
        .arg("-o")
        .arg(&output)
        .status()
        .expect("clang exists");
    assert!(status.success(), "devlib/{source} does not compile");
}
