//! From return addresses to places that a person knows: function, file and line where the module has them, else module and offset.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use addr2line::Loader;

/// A place in a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The module's file.
    pub(crate) module: String,
    /// Offset in the module.
    pub(crate) offset: u64,
    /// The function, demangled.
    pub(crate) function: Option<String>,
    /// The source file.
    pub(crate) file: Option<String>,
    /// Its line.
    pub(crate) line: Option<u32>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base =
            |path: &str| Path::new(path).file_name().map_or(path.to_owned(), |name| name.to_string_lossy().into());
        if let Some(function) = &self.function {
            write!(f, "{} ", short(function))?;
        }
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{}:{line}", base(file)),
            _ => write!(f, "{}+{:#x}", base(&self.module), self.offset),
        }
    }
}

/// Without parameters and template arguments: for tables.
fn short(function: &str) -> String {
    let (mut text, mut depth) = (String::new(), 0_u32);
    for character in function.replace("(anonymous namespace)", "{anonymous}").chars() {
        match character {
            '(' if depth == 0 && !text.is_empty() && !text.ends_with("operator") => break,
            '<' if !text.ends_with("operator") => depth += 1,
            '>' if depth > 0 => depth -= 1,
            _ if depth == 0 => text.push(character),
            _ => {}
        }
    }
    // A template's demangled name starts with its return type.
    text.rsplit(' ').next().filter(|name| !name.is_empty()).unwrap_or(function).to_owned()
}

/// Reads symbols of modules, each once.
#[derive(Default)]
pub(crate) struct Symbols {
    modules: HashMap<PathBuf, Option<Loader>>,
}

impl Symbols {
    /// The place of a return address: the innermost function, inlined ones included, that is the program's own and not a header of the
    /// C++ library or of CUDA.
    pub(crate) fn place(&mut self, module: &Path, offset: u64) -> Place {
        let mut place = Place { module: module.display().to_string(), offset, ..Place::default() };
        let loader = self.modules.entry(module.to_owned()).or_insert_with(|| Loader::new(module).ok());
        let Some(loader) = loader else { return place };
        // The call stands before the address that it returns to.
        let probe = offset.saturating_sub(1);
        let mut innermost: Option<Place> = None;
        if let Ok(mut frames) = loader.find_frames(probe) {
            while let Ok(Some(frame)) = frames.next() {
                let location = frame.location.as_ref();
                let found = Place {
                    function: frame.function.as_ref().and_then(|name| Some(demangled(&name.raw_name().ok()?))),
                    file: location.and_then(|location| location.file).map(str::to_owned),
                    line: location.and_then(|location| location.line),
                    ..place.clone()
                };
                let own = found.file.as_deref().is_some_and(|file| !is_library_header(file));
                if own {
                    return found;
                }
                innermost.get_or_insert(found);
            }
        }
        if let Some(found) = innermost.filter(|found| found.function.is_some()) {
            return found;
        }
        place.function = loader.find_symbol(probe).map(demangled);
        place
    }

    /// The place of a call stack, innermost frame first: that of the first frame in a module of the program's own, or of the first one there
    /// that has a source file: the frames before it are of a library that is linked in without.
    pub(crate) fn of_stack<'a>(&mut self, frames: impl IntoIterator<Item = (&'a Path, u64)>) -> Option<Place> {
        let (mut first, mut bare) = (None, None);
        for (module, offset) in frames {
            first.get_or_insert((module, offset));
            if is_library(module) || bare.as_ref().is_some_and(|(of, _)| *of != module) {
                continue;
            }
            let place = self.place(module, offset);
            if place.file.as_deref().is_some_and(|file| !is_library_header(file)) {
                return Some(place);
            }
            if place.file.is_none() && !is_linked_runtime(&place) {
                bare.get_or_insert((module, place));
            }
        }
        bare.map(|(_, place)| place).or_else(|| first.map(|(module, offset)| self.place(module, offset)))
    }
}

fn demangled(name: &str) -> String {
    cpp_demangle::Symbol::new(name).ok().and_then(|symbol| symbol.demangle().ok()).unwrap_or_else(|| name.to_owned())
}

/// A header (or a part of Rust's library) whose inline functions allocate for the program that includes them.
fn is_library_header(file: &str) -> bool {
    ["/include/c++/", "/usr/include/", "/rustc/", "/cuda_runtime.h", "/cuda_runtime_api.h", "/thrust/", "/cub/"]
        .iter()
        .any(|part| file.contains(part))
}

/// A function of the CUDA runtime that is linked into the program, which comes without source files.
fn is_linked_runtime(place: &Place) -> bool {
    let named = |function: &str| {
        let api = function.strip_prefix("cuda").and_then(|rest| rest.chars().next()).is_some_and(char::is_uppercase);
        api || function.starts_with("libcudart_static_") || function.starts_with("__cuda")
    };
    place.file.is_none() && place.function.as_deref().is_some_and(named)
}

/// A library that allocates or copies for whoever calls it.
fn is_library(module: &Path) -> bool {
    let name = module.file_name().unwrap_or_default().to_string_lossy();
    ["libc.so", "libstdc++.so", "libc++.so", "libgcc_s.so", "ld-linux", "libcudart.so", "libcuda.so", "libecho_dr.so"]
        .iter()
        .any(|library| name.starts_with(library))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_in_tables() {
        for (name, expected) in [
            ("main", "main"),
            ("infer(float const*, int, int)", "infer"),
            ("DeviceBuffer<Body>::DeviceBuffer(unsigned long)", "DeviceBuffer::DeviceBuffer"),
            ("void check<cudaError>(cudaError, char const*)", "check"),
            ("(anonymous namespace)::run(int)", "{anonymous}::run"),
        ] {
            assert_eq!(short(name), expected);
        }
    }

    #[inline(never)]
    fn the_place_of_this_function() -> u32 {
        std::hint::black_box(line!())
    }

    #[test]
    fn an_address_of_this_program_has_a_function_and_a_line() {
        let program = std::env::current_exe().unwrap();
        let bytes = std::fs::read(&program).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let symbol = {
            use object::{Object, ObjectSymbol};
            let name = "the_place_of_this_function";
            let is = |found: &str| found.contains(name);
            file.symbols().find(|symbol| symbol.name().is_ok_and(is)).expect("that function").address()
        };
        let place = Symbols::default().place(&program, symbol + 1);
        assert!(place.to_string().contains("the_place_of_this_function symbols.rs:"), "{place:?}");
        assert!(place.line.is_some_and(|line| line.abs_diff(the_place_of_this_function()) <= 1), "{place:?}");
    }

    #[test]
    fn functions_of_a_linked_runtime_are_not_the_programs() {
        let place = |function: &str, file: Option<&str>| Place {
            function: Some(function.to_owned()),
            file: file.map(str::to_owned),
            ..Place::default()
        };
        for function in ["cudaMalloc", "libcudart_static_5382377d5c772c9d", "__cudaPushCallConfiguration"] {
            assert!(is_linked_runtime(&place(function, None)), "{function}");
            assert!(!is_linked_runtime(&place(function, Some("mine.cu"))), "{function}");
        }
        assert!(!is_linked_runtime(&place("cudaless", None)) && !is_linked_runtime(&place("infer", None)));
    }

    #[test]
    fn without_symbols_the_module_and_the_offset_are_left() {
        let place = Symbols::default().place(Path::new("/nonexistent/libfoo.so"), 0x1234);
        assert_eq!(place.to_string(), "libfoo.so+0x1234");
    }
}
