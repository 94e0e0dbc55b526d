//! Whether a program's calls would reach the library: what its file and its libraries' files say. Nothing is run but the loader's listing.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::Finding;
use crate::elf::{self, Executable, Reaches};
use crate::failure::Failure;
use crate::program::obstacle;

/// What was seen.
pub(crate) struct Seen {
    pub(crate) findings: Vec<Finding>,
    /// The shared libcudart that the program would get.
    pub(crate) runtime: Option<PathBuf>,
}

const AREA: &str = "program";

/// Looks at a program.
pub(crate) fn look(program: &Path) -> Result<Seen, Failure> {
    let mut seen = Seen { findings: Vec::new(), runtime: None };
    if let Some(found) = obstacle(program)? {
        seen.findings.push(Finding::problem(AREA, format!("{}: {}", program.display(), found.what), found.help));
        return Ok(seen);
    }
    let path = match elf::executable(program)? {
        Executable::Script { interpreter } => {
            let what = format!("{} is a script; the program is {}", program.display(), interpreter.display());
            seen.findings.push(Finding::ok(AREA, what));
            interpreter
        }
        _ => program.to_owned(),
    };
    let Executable::Elf(file) = elf::executable(&path)? else { return Ok(seen) };
    seen.findings.push(Finding::ok(AREA, format!("{} is a dynamic executable: LD_PRELOAD works", path.display())));
    if file.build_id.is_none() {
        let what =
            "it has no build-id: call sites are known by its path, and a plan ends when the file moves".to_owned();
        seen.findings.push(Finding::note(AREA, what, "link with -Wl,--build-id"));
    }
    if !file.exported_malloc.is_empty() {
        seen.findings.push(Finding::problem(
            AREA,
            format!(
                "it has its own {} and exports it, which wins over a preloaded one: its host allocations are not seen",
                file.exported_malloc.join(", ")
            ),
            "link the allocator as a shared library, or without exporting it (no -rdynamic)",
        ));
    }
    let libraries = file.interpreter.as_deref().map(|loader| elf::libraries(loader, &path)).unwrap_or_default();
    seen.runtime = libraries.iter().find(|path| is_runtime(path)).cloned();
    seen.findings.push(way_to_cuda(&path, file.reaches(), &libraries));
    if let Ok(library) = crate::library::find() {
        let hooked = elf::exports(&library)?;
        let of_libraries = libraries.iter().filter(|path| !is_cuda(path));
        seen.findings.extend(std::iter::once(&path).chain(of_libraries).filter_map(|path| unknown(path, &hooked)));
    }
    Ok(seen)
}

fn is_runtime(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libcudart.so"))
}

/// How the program, or else the first of its libraries that does, reaches CUDA.
fn way_to_cuda(program: &Path, own: Reaches, libraries: &[PathBuf]) -> Finding {
    let of_libraries = libraries.iter().filter(|path| !is_cuda(path)).filter_map(|path| match elf::executable(path) {
        Ok(Executable::Elf(file)) if file.reaches() != Reaches::Nothing => Some((path.as_path(), file.reaches())),
        _ => None,
    });
    let found = std::iter::once((program, own)).chain(of_libraries).find(|(_, reaches)| *reaches != Reaches::Nothing);
    match found {
        Some((path, Reaches::SharedRuntime)) => {
            Finding::ok(AREA, format!("{} uses a shared libcudart: calls of the runtime API are seen", path.display()))
        }
        Some((path, Reaches::StaticRuntime)) => Finding::ok(
            AREA,
            format!("{} has libcudart linked into it: its calls of the driver are seen", path.display()),
        ),
        Some((path, _)) => Finding::ok(AREA, format!("{} uses the driver API: its calls are seen", path.display())),
        None => Finding::note(
            AREA,
            "neither it nor a library that it names uses CUDA; a library that it loads later may".to_owned(),
            "if it is not the CUDA program but starts it, give that one",
        ),
    }
}

/// Functions that touch memory and aren't hooked, of a program or library.
fn unknown(path: &Path, hooked: &HashSet<String>) -> Option<Finding> {
    let Ok(Executable::Elf(file)) = elf::executable(path) else { return None };
    let names: Vec<_> = file.imports_memory_calls.into_iter().filter(|name| !hooked.contains(name)).collect();
    (!names.is_empty()).then(|| {
        Finding::note(
            AREA,
            format!(
                "{} uses {}, which this Echo-DR does not know: no pair will be merged",
                path.display(),
                names.join(", ")
            ),
            "see `echo-dr explain EDR331`",
        )
    })
}

/// A CUDA library itself.
fn is_cuda(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("libcudart.so") || name.starts_with("libcuda.so")
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn a_program_without_cuda_is_told_so() {
        let seen = look(Path::new("/bin/sh")).unwrap();
        assert!(seen.findings.iter().any(|finding| finding.what.contains("LD_PRELOAD works")), "{:?}", seen.findings);
        let last = seen.findings.last().unwrap();
        assert!(last.level == Level::Note && last.what.contains("uses CUDA"), "{last:?}");
    }
}
