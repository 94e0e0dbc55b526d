//! Finds the LLVM that the plugin is built for and compiles the C++ shim against its headers.
//!
//! The plugin itself (the cdylib) names no LLVM library: the `opt` or `clang` that loads it provides the symbols. Only test programs,
//! which run alone, are linked with libLLVM.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Majors that a cargo feature exists for.
const MAJORS: [u32; 2] = [22, 19];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/pass/shim.cpp");
    println!("cargo::rerun-if-env-changed=LLVM_CONFIG");
    let enabled: Vec<u32> =
        MAJORS.into_iter().filter(|major| env::var_os(format!("CARGO_FEATURE_LLVM{major}")).is_some()).collect();
    // Without a feature only the pure parts are built; with two, lib.rs says so.
    let [major] = enabled[..] else { return };
    match Llvm::find(major) {
        Ok(llvm) => {
            compile_shim(&llvm);
            link(&llvm);
        }
        Err(message) => {
            println!("cargo::error={message}");
            std::process::exit(1);
        }
    }
}

/// An installed LLVM.
struct Llvm {
    major: u32,
    include: PathBuf,
    lib: PathBuf,
}

impl Llvm {
    /// `LLVM_CONFIG` if it is set, else `llvm-config-<major>`, else `llvm-config`; its version must be `major`.
    fn find(major: u32) -> Result<Self, String> {
        let advice = format!(
            "Install the development files of LLVM {major} (Debian, Ubuntu: apt-get install llvm-{major}-dev), set LLVM_CONFIG to the \
             llvm-config of LLVM {major}, or choose another version with --no-default-features --features llvm<major>."
        );
        let named = env::var("LLVM_CONFIG").ok().filter(|path| !path.is_empty());
        let candidates = match &named {
            Some(path) => vec![path.clone()],
            None => vec![format!("llvm-config-{major}"), "llvm-config".to_owned()],
        };
        let mut tried = Vec::new();
        for program in &candidates {
            match ask(program, "--version") {
                Err(reason) => tried.push(format!("{program}: {reason}")),
                Ok(version) if version.split('.').next() == Some(&major.to_string()) => {
                    return Ok(Self {
                        major,
                        include: ask(program, "--includedir").map_err(|reason| format!("{program}: {reason}"))?.into(),
                        lib: ask(program, "--libdir").map_err(|reason| format!("{program}: {reason}"))?.into(),
                    });
                }
                Ok(version) => tried.push(format!("{program}: is LLVM {version}, not {major}")),
            }
        }
        Err(format!("echo-sr is built for LLVM {major}, which was not found ({}). {advice}", tried.join("; ")))
    }

    /// The header that declares `PassPluginLibraryInfo`: LLVM 22 moved it.
    fn plugin_header(&self) -> &'static str {
        if self.major >= 22 { "llvm/Plugins/PassPlugin.h" } else { "llvm/Passes/PassPlugin.h" }
    }
}

fn ask(program: &str, question: &str) -> Result<String, String> {
    let output = Command::new(program).arg(question).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("{question} failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn compile_shim(llvm: &Llvm) {
    let header = llvm.plugin_header();
    if !llvm.include.join(header).exists() {
        let include = llvm.include.display();
        println!("cargo::error={include} has no {header}: install llvm-{}-dev", llvm.major);
        std::process::exit(1);
    }
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .file("src/pass/shim.cpp")
        .flag("-isystem")
        .flag(llvm.include.to_string_lossy().as_ref())
        .flag("-fno-rtti")
        .flag("-fno-exceptions")
        .flag("-fvisibility=hidden")
        .define("ECHO_SR_PLUGIN_HEADER", format!("<{header}>").as_str())
        .compile("echo_sr_shim");
}

/// What each kind of output is linked with.
fn link(llvm: &Llvm) {
    println!("cargo::rustc-env=ECHO_SR_LLVM_MAJOR={}", llvm.major);
    println!("cargo::rustc-link-search=native={}", llvm.lib.display());
    // A plugin of the wrong LLVM must load far enough to say so: functions bind when they are first called.
    println!("cargo::rustc-link-arg-cdylib=-Wl,-z,lazy");
    // Unit tests name the library in src/pass/mod.rs, under cfg(test); integration tests and benchmarks get it here.
    for (folder, kind) in [("tests", "tests"), ("benches", "benches")] {
        if Path::new(folder).is_dir() {
            println!("cargo::rustc-link-arg-{kind}=-lLLVM-{}", llvm.major);
        }
    }
}
