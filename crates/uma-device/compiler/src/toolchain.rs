//! The programs and folders that compiling needs.

use std::env;
use std::path::{Path, PathBuf};

/// The programs and folders that compiling needs.
pub(crate) struct Toolchain {
    /// clang++ 22.
    pub(crate) clang: PathBuf,
    /// CUDA toolkit: headers, and no more.
    pub(crate) cuda: PathBuf,
    /// Say what is run.
    pub(crate) verbose: bool,
}

impl Toolchain {
    /// Finds the tools. `cuda` is what `--cuda-path` says.
    pub(crate) fn find(cuda: Option<&str>, verbose: bool) -> Result<Toolchain, String> {
        let cuda = match cuda.map(PathBuf::from).or_else(|| env::var_os("CUDA_PATH").map(PathBuf::from)) {
            Some(named) => is_toolkit(&named).then_some(named.clone()).ok_or(named),
            None => search().ok_or(PathBuf::from("target/cuda")),
        };
        let cuda = cuda.map_err(|tried| {
            format!(
                "error: no CUDA headers in {}: name the folder that has include/cuda.h with --cuda-path= or CUDA_PATH, or run `cargo xtask setup`",
                tried.display()
            )
        })?;
        let built_with = Path::new(env!("UMA_LLVM_BINDIR")).join("clang++");
        let clang = if built_with.exists() { built_with } else { PathBuf::from("clang++-22") };
        Ok(Toolchain { clang, cuda, verbose })
    }
}

impl Toolchain {
    /// The version of the toolkit as clang is told it: at most the newest that clang 22 knows.
    pub(crate) fn cuda_version(&self) -> String {
        const NEWEST_KNOWN: u32 = 12_090;
        let header = std::fs::read_to_string(self.cuda.join("include/cuda.h")).unwrap_or_default();
        let version =
            header.lines().find_map(|line| line.strip_prefix("#define CUDA_VERSION ")?.trim().parse::<u32>().ok());
        let version = version.unwrap_or(NEWEST_KNOWN).min(NEWEST_KNOWN);
        format!("{}.{}", version / 1000, version % 1000 / 10)
    }
}

fn is_toolkit(folder: &Path) -> bool {
    folder.join("include/cuda.h").exists()
}

/// `cuda` next to this program or above it, else the place where NVIDIA's installer puts it.
fn search() -> Option<PathBuf> {
    let program = env::current_exe().ok()?;
    let near = program.ancestors().map(|folder| folder.join("cuda")).find(|folder| is_toolkit(folder));
    near.or_else(|| Some(PathBuf::from("/usr/local/cuda")).filter(|folder| is_toolkit(folder)))
}
