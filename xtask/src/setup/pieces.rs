//! What must be on the machine besides Rust: one row a piece, with the Debian package that has it.

use std::path::{Path, PathBuf};

use crate::tool;

/// The LLVM major that the samples and the CPU device are built with.
pub(crate) const LLVM_PREFERRED: u32 = 22;
/// The older LLVM major that the plugin is also built for and tested with.
pub(crate) const LLVM_OLD: u32 = 19;

/// One piece.
#[derive(Debug)]
pub(crate) struct Piece {
    /// The Debian package that has it.
    pub(crate) package: &'static str,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// An executable of an LLVM major.
    Llvm(&'static str, u32),
    /// A file below LLVM's prefix.
    LlvmFile(&'static str, u32),
    /// compiler-rt's profile library of an LLVM major; its path holds the machine's name.
    CompilerRt(u32),
    /// An executable in PATH.
    Program(&'static str),
    /// A file or a folder.
    At(&'static str),
    /// A Python that can run pip.
    Pip,
}

/// The pieces that Echo is built and tested with.
pub(crate) const ALL: &[Piece] = &[
    Piece { package: "clang-22", kind: Kind::Llvm("clang++", LLVM_PREFERRED) },
    Piece { package: "llvm-22", kind: Kind::Llvm("opt", LLVM_PREFERRED) },
    Piece { package: "llvm-22", kind: Kind::Llvm("llvm-config", LLVM_PREFERRED) },
    Piece { package: "llvm-22-dev", kind: Kind::LlvmFile("include/llvm/IR/Module.h", LLVM_PREFERRED) },
    Piece { package: "llvm-22-dev", kind: Kind::LlvmFile("lib/libLLVM.so", LLVM_PREFERRED) },
    Piece { package: "llvm-22-tools", kind: Kind::Llvm("FileCheck", LLVM_PREFERRED) },
    Piece { package: "lld-22", kind: Kind::Llvm("ld.lld", LLVM_PREFERRED) },
    Piece { package: "clang-tools-22", kind: Kind::Llvm("clang-linker-wrapper", LLVM_PREFERRED) },
    Piece { package: "libclang-rt-22-dev", kind: Kind::CompilerRt(LLVM_PREFERRED) },
    Piece { package: "clang-19", kind: Kind::Llvm("clang++", LLVM_OLD) },
    Piece { package: "llvm-19", kind: Kind::Llvm("opt", LLVM_OLD) },
    Piece { package: "llvm-19", kind: Kind::Llvm("llvm-config", LLVM_OLD) },
    Piece { package: "llvm-19-dev", kind: Kind::LlvmFile("include/llvm/IR/Module.h", LLVM_OLD) },
    Piece { package: "g++", kind: Kind::Program("g++") },
    Piece { package: "cmake", kind: Kind::Program("cmake") },
];

/// What builds for aarch64 and runs it on another machine, with Debian's Rust compiler, which comes with a standard library for it.
pub(crate) const AARCH64: &[Piece] = &[
    Piece { package: "rustc-web", kind: Kind::At(AARCH64_RUSTC) },
    Piece { package: "libstd-rust-web-dev", kind: Kind::At("/usr/lib/rustlib/x86_64-unknown-linux-gnu/lib") },
    Piece { package: "libstd-rust-web-dev:arm64", kind: Kind::At("/usr/lib/rustlib/aarch64-unknown-linux-gnu/lib") },
    Piece { package: "gcc-aarch64-linux-gnu", kind: Kind::Program(AARCH64_GCC) },
    Piece { package: "g++-aarch64-linux-gnu", kind: Kind::Program("aarch64-linux-gnu-g++") },
    Piece { package: "libc6:arm64", kind: Kind::At("/lib/ld-linux-aarch64.so.1") },
    Piece { package: "libstdc++6:arm64", kind: Kind::At("/usr/lib/aarch64-linux-gnu/libstdc++.so.6") },
    Piece { package: "qemu-user", kind: Kind::Program("qemu-aarch64") },
];

/// What the tests of Echo-DR run with its library preloaded, and what counts the instructions that it adds.
pub(crate) const GUESTS: &[Piece] = &[
    Piece { package: "libjemalloc-dev", kind: Kind::At("/usr/include/jemalloc/jemalloc.h") },
    Piece { package: "valgrind", kind: Kind::Program("valgrind") },
    Piece { package: "python3-numpy", kind: Kind::At("/usr/lib/python3/dist-packages/numpy") },
];

/// The Rust compiler of [`AARCH64`].
pub(crate) const AARCH64_RUSTC: &str = "/usr/bin/rustc";

/// The C compiler of [`AARCH64`].
pub(crate) const AARCH64_GCC: &str = "aarch64-linux-gnu-gcc";

/// Needed only while the CUDA toolkit is not unpacked yet.
pub(crate) const PIP: Piece = Piece { package: "python3-pip", kind: Kind::Pip };

impl Piece {
    /// Where it is; `None` if it is missing.
    pub(crate) fn find(&self) -> Option<PathBuf> {
        match self.kind {
            Kind::Llvm(name, major) => llvm_tool(name, major),
            Kind::LlvmFile(file, major) => Some(llvm_prefix(major)?.join(file)).filter(|path| path.is_file()),
            Kind::CompilerRt(major) => {
                let machine = std::env::consts::ARCH;
                let path = format!("lib/clang/{major}/lib/linux/libclang_rt.profile-{machine}.a");
                Some(llvm_prefix(major)?.join(path)).filter(|path| path.is_file())
            }
            Kind::Program(name) => tool::find(name),
            Kind::At(path) => Some(PathBuf::from(path)).filter(|path| path.exists()),
            Kind::Pip => python_with_pip(),
        }
    }
}

/// The pieces that are not on this machine; `toolkit_unpacked` says whether the CUDA toolkit is.
pub(crate) fn missing(toolkit_unpacked: bool) -> Vec<&'static Piece> {
    let pip = if toolkit_unpacked { None } else { Some(&PIP) };
    ALL.iter().chain(pip).filter(|piece| piece.find().is_none()).collect()
}

/// An executable of an LLVM major, under the name that build scripts and tests look for it: `opt-22`.
pub(crate) fn llvm_tool(name: &str, major: u32) -> Option<PathBuf> {
    tool::find(&format!("{name}-{major}"))
}

/// The folder that holds LLVM's `bin`, `include` and `lib`.
fn llvm_prefix(major: u32) -> Option<PathBuf> {
    Some(llvm_tool("opt", major)?.canonicalize().ok()?.parent()?.parent()?.to_path_buf())
}

/// A Python 3 that has pip: the first in PATH, else the system's (a version manager's Python often has none).
pub(crate) fn python_with_pip() -> Option<PathBuf> {
    tool::find("python3").into_iter().chain([PathBuf::from("/usr/bin/python3")]).find(|python| has_pip(python))
}

fn has_pip(python: &Path) -> bool {
    tool::run(std::process::Command::new(python).args(["-m", "pip", "--version"])).is_ok()
}
