//! What an executable or library says of itself before it runs: how it is loaded, and how it reaches CUDA. Only the file is read.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use echo_dr_format::functions::concerns_memory;
use object::elf;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, ReadCache};
use serde::Serialize;

use crate::failure::Failure;

/// An ELF file, as far as a preloaded library cares.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Elf {
    /// The machine it is for, as `std::env::consts::ARCH` has it, or a number.
    pub(crate) machine: String,
    /// The program interpreter, that is the dynamic loader. `None` in a static executable and in most libraries.
    pub(crate) interpreter: Option<PathBuf>,
    /// Libraries that it asks for.
    pub(crate) needed: Vec<String>,
    /// GNU build-id, in hexadecimal.
    pub(crate) build_id: Option<String>,
    /// Functions of `malloc`'s family that it defines for others.
    pub(crate) exported_malloc: Vec<String>,
    /// Functions of the CUDA runtime that it takes from a library.
    pub(crate) imports_runtime: bool,
    /// Functions of the CUDA driver that it takes from a library.
    pub(crate) imports_driver: bool,
    /// Functions of CUDA that it takes from a library, and whose names say that they copy, set, free or map memory.
    pub(crate) imports_memory_calls: Vec<String>,
    /// It names the driver's file, and so opens it by itself: a static cudart inside does.
    pub(crate) names_driver: bool,
    /// It names calls of the runtime in its data, as a static cudart does (for its error messages and its tracing).
    pub(crate) names_runtime: bool,
    /// It has kernels in it.
    pub(crate) has_kernels: bool,
}

/// What the file is that the system would execute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Executable {
    /// An ELF file.
    Elf(Box<Elf>),
    /// A script; the program is its interpreter.
    Script {
        /// The interpreter, by path.
        interpreter: PathBuf,
    },
    /// Neither; the reason.
    Other(String),
}

/// How a file reaches CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reaches {
    /// By a shared libcudart: the runtime layer sees its calls.
    SharedRuntime,
    /// By a libcudart linked into it: the driver layer sees its calls.
    StaticRuntime,
    /// By the driver API alone: the driver layer sees its calls.
    Driver,
    /// Not at all, as far as the file shows.
    Nothing,
}

const MALLOC_FAMILY: [&str; 6] = ["malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc"];

/// Reads what would be executed. Of an ELF file only what is asked for: libraries of CUDA programs have gigabytes.
pub(crate) fn executable(path: &Path) -> Result<Executable, Failure> {
    let failed = |error: std::io::Error| Failure::io(path, "read", &error);
    let mut file = File::open(path).map_err(failed)?;
    let mut first = Vec::new();
    (&mut file).take(FIRST_LINE).read_to_end(&mut first).map_err(failed)?;
    if let Some(rest) = first.strip_prefix(b"#!") {
        let line = String::from_utf8_lossy(rest.split(|byte| *byte == b'\n').next().unwrap_or_default()).into_owned();
        let interpreter = line.split_whitespace().next().unwrap_or_default();
        return Ok(Executable::Script { interpreter: interpreter.into() });
    }
    Ok(match parse(&ReadCache::new(file)) {
        Ok(elf) => Executable::Elf(Box::new(elf)),
        Err(reason) => Executable::Other(reason),
    })
}

/// Linux looks for the interpreter's name in so many bytes.
const FIRST_LINE: u64 = 256;

fn parse(bytes: &ReadCache<File>) -> Result<Elf, String> {
    let file: ElfFile64<'_, Endianness, &ReadCache<File>> =
        ElfFile64::parse(bytes).map_err(|error| format!("it is no 64-bit ELF file ({error})"))?;
    let endian = file.endian();
    let mut found = Elf { machine: machine(file.elf_header().e_machine(endian)), ..Elf::default() };
    for segment in file.elf_program_headers() {
        if let Ok(Some(path)) = segment.interpreter(endian, bytes) {
            found.interpreter = Some(PathBuf::from(String::from_utf8_lossy(path).into_owned()));
        }
    }
    if let Ok(Some((entries, strings))) = file.elf_section_table().dynamic(endian, bytes) {
        let strings = file.elf_section_table().strings(endian, bytes, strings).unwrap_or_default();
        for entry in entries {
            if entry.tag32(endian) == Some(elf::DT_NEEDED)
                && let Some(Ok(name)) = entry.val32(endian).map(|at| strings.get(at))
            {
                found.needed.push(String::from_utf8_lossy(name).into_owned());
            }
        }
    }
    found.build_id = file.build_id().ok().flatten().map(hexadecimal);
    for symbol in file.dynamic_symbols() {
        let Ok(name) = symbol.name() else { continue };
        if symbol.is_definition() && MALLOC_FAMILY.contains(&name) {
            found.exported_malloc.push(name.to_owned());
        }
        found.imports_runtime |= symbol.is_undefined() && is_runtime_call(name);
        if symbol.is_undefined() && concerns_memory(name) {
            found.imports_memory_calls.push(name.to_owned());
        }
        found.imports_driver |= symbol.is_undefined() && is_driver_call(name);
    }
    for section in file.sections() {
        let Ok(name) = section.name() else { continue };
        found.has_kernels |= name == ".nv_fatbin" || name == "__nv_relfatbin";
        if name == ".rodata" || name == ".data" {
            let data = section.data().unwrap_or_default();
            found.names_driver |= contains(data, b"libcuda.so");
            found.names_runtime |= contains(data, b"cudaMallocAsync");
        }
    }
    Ok(found)
}

impl Elf {
    /// How it reaches CUDA.
    pub(crate) fn reaches(&self) -> Reaches {
        let needs = |prefix: &str| self.needed.iter().any(|name| name.starts_with(prefix));
        if self.imports_runtime || needs("libcudart.so") {
            Reaches::SharedRuntime
        } else if self.imports_driver || needs("libcuda.so") {
            Reaches::Driver
        } else if self.has_kernels || (self.names_driver && self.names_runtime) {
            Reaches::StaticRuntime
        } else if self.names_driver {
            Reaches::Driver
        } else {
            Reaches::Nothing
        }
    }
}

/// The functions that a library defines for others.
pub(crate) fn exports(library: &Path) -> Result<HashSet<String>, Failure> {
    let bytes = ReadCache::new(File::open(library).map_err(|error| Failure::io(library, "read", &error))?);
    let Ok(file) = ElfFile64::<'_, Endianness, &ReadCache<File>>::parse(&bytes) else { return Ok(HashSet::new()) };
    let names = file.dynamic_symbols().filter(ObjectSymbol::is_definition);
    Ok(names.filter_map(|symbol| symbol.name().ok().map(str::to_owned)).collect())
}

/// The files that the loader would map with an executable, as the loader itself says. None if it can't say.
pub(crate) fn libraries(loader: &Path, program: &Path) -> Vec<PathBuf> {
    let Ok(output) = Command::new(loader).arg("--list").arg(program).env_remove("LD_PRELOAD").output() else {
        return Vec::new();
    };
    let listing = String::from_utf8_lossy(&output.stdout).into_owned();
    listing.lines().filter_map(|line| loaded(line).map(PathBuf::from)).collect()
}

/// The path in a line `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f…)`.
fn loaded(line: &str) -> Option<&str> {
    let (_, file) = line.split_once("=> ")?;
    let (path, _) = file.rsplit_once(" (")?;
    path.starts_with('/').then_some(path)
}

/// `cudaMalloc`, `__cudaRegisterFunction`: the runtime's names.
fn is_runtime_call(name: &str) -> bool {
    let name = name.strip_prefix("__").unwrap_or(name);
    name.strip_prefix("cuda").is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
}

/// `cuMemAlloc_v2`: the driver's names.
fn is_driver_call(name: &str) -> bool {
    name.strip_prefix("cu").is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
}

fn machine(number: u16) -> String {
    match number {
        elf::EM_X86_64 => "x86_64".to_owned(),
        elf::EM_AARCH64 => "aarch64".to_owned(),
        other => format!("machine {other}"),
    }
}

fn contains(data: &[u8], text: &[u8]) -> bool {
    memchr::memmem::find(data, text).is_some()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_is_a_dynamic_executable_without_cuda() {
        let path = PathBuf::from("/bin/sh");
        let Executable::Elf(elf) = executable(&path).unwrap() else { panic!("the shell is an ELF file") };
        assert_eq!(elf.machine, std::env::consts::ARCH);
        assert!(elf.needed.iter().any(|name| name.starts_with("libc.so")), "{elf:?}");
        assert!(elf.exported_malloc.is_empty());
        assert_eq!(elf.reaches(), Reaches::Nothing);
        let libraries = libraries(&elf.interpreter.unwrap(), &path);
        assert!(libraries.iter().any(|path| path.to_string_lossy().contains("libc.so")), "{libraries:?}");
    }

    #[test]
    fn scripts_and_texts_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        std::fs::write(&script, "#! /bin/sh -e\necho\n").unwrap();
        assert_eq!(executable(&script).unwrap(), Executable::Script { interpreter: "/bin/sh".into() });
        std::fs::write(&script, "text").unwrap();
        assert!(matches!(executable(&script).unwrap(), Executable::Other(_)));
    }

    #[test]
    fn the_way_to_cuda_is_read_from_names_and_sections() {
        let elf = |change: fn(&mut Elf)| {
            let mut elf = Elf::default();
            change(&mut elf);
            elf.reaches()
        };
        assert_eq!(elf(|elf| elf.needed = vec!["libcudart.so.13".into()]), Reaches::SharedRuntime);
        assert_eq!(elf(|elf| elf.imports_driver = true), Reaches::Driver);
        assert_eq!(elf(|elf| elf.has_kernels = true), Reaches::StaticRuntime);
        assert_eq!(elf(|elf| (elf.names_driver, elf.names_runtime) = (true, true)), Reaches::StaticRuntime);
        assert_eq!(elf(|elf| elf.names_driver = true), Reaches::Driver);
        assert_eq!(elf(|_| ()), Reaches::Nothing);
    }

    #[test]
    fn names_of_both_layers_are_not_confused() {
        assert!(is_runtime_call("cudaMalloc") && is_runtime_call("__cudaRegisterFunction"));
        assert!(is_driver_call("cuMemAlloc_v2") && !is_driver_call("cudaMalloc") && !is_driver_call("curl_easy_init"));
        assert!(!is_runtime_call("cudart_version"));
    }

    #[test]
    fn the_loaders_listing_gives_paths() {
        assert_eq!(loaded("\tlibm.so.6 => /lib/libm.so.6 (0x00007f)"), Some("/lib/libm.so.6"));
        assert_eq!(loaded("\tlinux-vdso.so.1 (0x00007ffd)"), None);
        assert_eq!(loaded("\tlibcudart.so.13 => not found"), None);
    }
}
