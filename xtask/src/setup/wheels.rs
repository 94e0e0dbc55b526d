//! The CUDA toolkit without an installer: its Python wheels, downloaded by pip and unpacked (not installed) into `target/cuda`.
//!
//! Everything happens in a temporary folder next to it, which takes its place by a rename at the end, so an interrupted set-up leaves
//! nothing that looks complete.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::pieces::python_with_pip;
use crate::context::Context;
use crate::failure::Failure;
use crate::tool;

/// The wheels and their versions. clang includes curand's headers in every CUDA file, therefore curand.
const WHEELS: &[(&str, &str)] = &[
    ("nvidia-cuda-nvcc", "13.0.88"),
    ("nvidia-cuda-crt", "13.0.88"),
    ("nvidia-nvvm", "13.0.88"),
    ("nvidia-cuda-runtime", "13.0.96"),
    ("nvidia-cuda-cccl", "13.0.85"),
    ("nvidia-curand", "10.4.5.25"),
];

/// What all of these wheels unpack below.
const INSIDE: &str = "nvidia/cu13";

/// A file in the unpacked toolkit that holds [`identity`].
const MARK: &str = ".echo-wheels";

/// The wheels' names and versions as pip wants them, one a line.
pub(crate) fn identity() -> String {
    requirements().join("\n")
}

fn requirements() -> Vec<String> {
    WHEELS.iter().map(|(name, version)| format!("{name}=={version}")).collect()
}

/// `cuda` was unpacked from these very wheels.
pub(crate) fn is_unpacked(cuda: &Path) -> bool {
    fs::read_to_string(cuda.join(MARK)).is_ok_and(|mark| mark == identity())
}

/// The toolkit's parts that Echo uses.
pub(crate) fn programs(cuda: &Path) -> Vec<PathBuf> {
    [
        "bin/ptxas",
        "bin/fatbinary",
        "bin/nvcc",
        "nvvm/libdevice/libdevice.10.bc",
        "include/cuda_runtime.h",
        "lib/libcudart.so",
    ]
    .iter()
    .map(|part| cuda.join(part))
    .collect()
}

/// Downloads (or takes from `offline`) and unpacks the wheels.
pub(crate) fn unpack(context: &Context, offline: Option<&Path>) -> Result<(), Failure> {
    remove_leftovers(&context.target);
    let work = tempfile::Builder::new()
        .prefix("cuda.tmp-")
        .tempdir_in(&context.target)
        .map_err(|error| Failure::io("create a folder in", &context.target, &error))?;
    let python = python_with_pip().ok_or_else(|| Failure::Setup("no python3 with pip; install python3-pip".into()))?;

    let folder = match offline {
        Some(folder) => folder.to_path_buf(),
        None => download(context, &python, work.path())?,
    };
    let step = context.ui.step("unpacking the CUDA toolkit");
    for (name, version) in WHEELS {
        let wheel = find_wheel(&folder, name, version)?;
        tool::run(Command::new(&python).args(["-m", "zipfile", "-e"]).arg(&wheel).arg(work.path()))?;
    }
    let unpacked = work.path().join(INSIDE);
    complete_layout(&unpacked).map_err(|error| Failure::io("complete", &unpacked, &error))?;
    fs::write(unpacked.join(MARK), identity()).map_err(|error| Failure::io("write", &unpacked, &error))?;
    put_in_place(&unpacked, &context.cuda(), work.path())?;
    step.done();
    Ok(())
}

/// pip's download of all wheels; the folder that they are in.
fn download(context: &Context, python: &Path, work: &Path) -> Result<PathBuf, Failure> {
    let folder = work.join("wheels");
    let mut command = Command::new(python);
    command
        .args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest"])
        .arg(&folder)
        .args(requirements());
    let step = context.ui.step(format!("downloading the CUDA toolkit ({} wheels, about 180 MB)", WHEELS.len()));
    let finished = std::sync::atomic::AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !finished.load(std::sync::atomic::Ordering::Relaxed) {
                let ready = fs::read_dir(&folder).map_or(0, Iterator::count);
                step.detail(&format!("{ready} of {}", WHEELS.len()));
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        let outcome = tool::run(&mut command);
        finished.store(true, std::sync::atomic::Ordering::Relaxed);
        outcome
    });
    outcome.map_err(|error| {
        Failure::Setup(format!(
            "The CUDA toolkit could not be downloaded.\n{error}\nOn a machine of the same kind that has network, run\n  python3 -m pip download --no-deps --dest wheels {}\nthen copy the folder here and run\n  cargo xtask setup --wheels wheels",
            requirements().join(" ")
        ))
    })?;
    step.done();
    Ok(folder)
}

/// The file of one wheel: its name starts with the package's, with underscores.
fn find_wheel(folder: &Path, name: &str, version: &str) -> Result<PathBuf, Failure> {
    let start = format!("{}-{version}-", name.replace('-', "_"));
    let files = fs::read_dir(folder).map_err(|error| Failure::io("read", folder, &error))?;
    files
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&start)))
        .ok_or_else(|| Failure::Setup(format!("{} has no wheel of {name}=={version}", folder.display())))
}

/// Zip archives of wheels keep no run bits, and some names that compilers look for are not in them.
fn complete_layout(cuda: &Path) -> std::io::Result<()> {
    for folder in ["bin", "nvvm/bin"] {
        for entry in fs::read_dir(cuda.join(folder))? {
            let path = entry?.path();
            if path.is_file() {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
            }
        }
    }
    symlink("lib", cuda.join("lib64"))?;
    symlink("libcudart.so.13", cuda.join("lib/libcudart.so"))?;
    for entry in fs::read_dir(cuda.join("include/cccl"))? {
        let name = entry?.file_name();
        let link = cuda.join("include").join(&name);
        if !link.exists() {
            symlink(Path::new("cccl").join(&name), link)?;
        }
    }
    Ok(())
}

/// Moves `unpacked` to `cuda`, and what was there out of the way.
fn put_in_place(unpacked: &Path, cuda: &Path, work: &Path) -> Result<(), Failure> {
    if cuda.is_symlink() {
        fs::remove_file(cuda).map_err(|error| Failure::io("remove", cuda, &error))?;
    } else if cuda.exists() {
        fs::rename(cuda, work.join("old")).map_err(|error| Failure::io("move away", cuda, &error))?;
    }
    fs::rename(unpacked, cuda).map_err(|error| Failure::io("create", cuda, &error))
}

/// Folders of set-ups that were killed. Safe under the set-up's lock.
fn remove_leftovers(target: &Path) {
    for entry in fs::read_dir(target).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with("cuda.tmp-") {
            // A leftover that cannot be removed only takes room.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wheel_is_found_by_package_and_exact_version() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("nvidia_nvvm-13.0.880-py3-none-x.whl"), "").unwrap();
        assert!(find_wheel(folder.path(), "nvidia-nvvm", "13.0.88").is_err());
        fs::write(folder.path().join("nvidia_nvvm-13.0.88-py3-none-x.whl"), "").unwrap();
        let found = find_wheel(folder.path(), "nvidia-nvvm", "13.0.88").unwrap();
        assert_eq!(found.file_name().unwrap(), "nvidia_nvvm-13.0.88-py3-none-x.whl");
    }

    #[test]
    fn an_old_toolkit_gives_way_to_the_new_one() {
        let work = tempfile::tempdir().unwrap();
        let (unpacked, cuda) = (work.path().join("new"), work.path().join("cuda"));
        for (folder, mark) in [(&unpacked, identity()), (&cuda, "nvidia-cuda-nvcc==12.9.0".into())] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join(MARK), mark).unwrap();
        }
        assert!(!is_unpacked(&cuda));
        put_in_place(&unpacked, &cuda, work.path()).unwrap();
        assert!(is_unpacked(&cuda));
        assert!(!unpacked.exists());
    }

    #[test]
    fn a_link_in_the_toolkits_place_is_replaced_and_what_it_points_to_stays() {
        let work = tempfile::tempdir().unwrap();
        let (unpacked, cuda, elsewhere) =
            (work.path().join("new"), work.path().join("cuda"), work.path().join("elsewhere"));
        fs::create_dir(&unpacked).unwrap();
        fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, &cuda).unwrap();
        put_in_place(&unpacked, &cuda, work.path()).unwrap();
        assert!(cuda.is_dir() && !cuda.is_symlink() && elsewhere.is_dir());
    }

    #[test]
    fn an_unfinished_folder_is_not_taken_for_the_toolkit() {
        let target = tempfile::tempdir().unwrap();
        let half = target.path().join("cuda.tmp-killed");
        fs::create_dir(&half).unwrap();
        assert!(!is_unpacked(&target.path().join("cuda")));
        remove_leftovers(target.path());
        assert!(!half.exists());
    }
}
