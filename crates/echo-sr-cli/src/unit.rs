//! From a compile command to the command that analyses the same source: clang, the plugin, and no output.

use std::fs;
use std::path::{Path, PathBuf};

use crate::clang::{self, Compilers, Kind};
use crate::database::Entry;
use crate::failure::Failure;
use crate::nvcc;

/// One source and how it is analysed.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    /// Where the command runs.
    pub(crate) directory: PathBuf,
    /// The source's path.
    pub(crate) source: PathBuf,
    /// The clang.
    pub(crate) compiler: String,
    /// Its arguments, without output and report.
    pub(crate) arguments: Vec<String>,
    /// The command has no optimisation of its own.
    pub(crate) unoptimised: bool,
    /// Why it can't be analysed.
    pub(crate) refused: Option<String>,
}

/// What the user said that concerns every unit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    /// Host-only units are analysed even where nothing in their text looks like CUDA.
    pub(crate) all: bool,
    /// `--cuda-path`
    pub(crate) cuda: Option<PathBuf>,
    /// `--arch`
    pub(crate) arch: Option<String>,
    /// Arguments that are added.
    pub(crate) extra: Vec<String>,
}

/// What an entry of the database is to the lint.
#[derive(Debug)]
pub(crate) enum Prepared {
    /// It is analysed.
    Unit(Box<Unit>),
    /// It holds no CUDA code, or makes no host code.
    Skipped,
}

/// The language that an entry's command compiles its source as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Cuda,
    Host,
    Other,
}

/// The level at which a unit without optimisation is analysed.
const LEVEL: &str = "-O2";

/// Makes a unit of an entry.
pub(crate) fn prepare(entry: &Entry, compilers: &mut Compilers<'_>, wishes: &Wishes) -> Result<Prepared, Failure> {
    let start = Compilers::launchers(&entry.arguments);
    let program = &entry.arguments[start];
    let source = entry.path();
    let kind = compilers.kind(program);
    let relevant = match language(&entry.arguments[start + 1..], &entry.file) {
        Language::Cuda => true,
        Language::Host => wishes.all || mentions_cuda(&source),
        Language::Other => false,
    };
    if !relevant {
        return Ok(Prepared::Skipped);
    }
    let mut unit = Unit {
        directory: entry.directory.clone(),
        source,
        compiler: compilers.choose(program, &entry.directory)?,
        arguments: vec![],
        unoptimised: false,
        refused: None,
    };
    let given = &entry.arguments[start + 1..];
    let mut arguments = if kind == Kind::Nvcc {
        let read = |file: &str| fs::read_to_string(entry.directory.join(file));
        let mut translated = match nvcc::translate(given, &read) {
            Ok(translated) => translated,
            Err(untranslatable) => {
                unit.refused = Some(format!(
                    "this command line of nvcc can't be translated for clang: {}",
                    untranslatable.join(", ")
                ));
                return Ok(Prepared::Unit(Box::new(unit)));
            }
        };
        if let Some(host) = translated.host_compiler.take().filter(|host| compilers.suits(host)) {
            unit.compiler = compilers.choose(&host, &entry.directory)?;
        }
        if let Some(toolkit) = clang::toolkit_of(program, &entry.directory) {
            translated.arguments.push(format!("--cuda-path={}", toolkit.display()));
            translated.arguments.push(format!("-I{}", toolkit.join("include").display()));
        }
        translated.arguments
    } else {
        given.to_vec()
    };
    if arguments.iter().any(|argument| argument == "--cuda-device-only") {
        return Ok(Prepared::Skipped);
    }
    arguments = clean(&arguments, &entry.file);
    let cuda = language(&arguments, &entry.file) == Language::Cuda;
    unit.unoptimised = is_unoptimised(&arguments);
    if unit.unoptimised {
        arguments.push(LEVEL.to_owned());
    }
    if let Some(cuda) = &wishes.cuda {
        arguments.push(format!("--cuda-path={}", cuda.display()));
    }
    if let (Some(arch), true) = (&wishes.arch, cuda) {
        arguments.retain(|argument| !is_architecture(argument));
        arguments.push(format!("--cuda-gpu-arch={arch}"));
    }
    // Names of variables are in full debug information only; what the device code has of it is not looked at.
    arguments.extend(if cuda { &["-Xarch_host", "-g"][..] } else { &["-g"] }.iter().map(|word| (*word).to_owned()));
    arguments.extend(wishes.extra.iter().cloned());
    // The project's own warnings are not what was asked for, and must not end the compilation.
    let quiet = ["-Wno-everything", "-Wbackend-plugin", "-Wno-error", "-Qunused-arguments", "-fno-color-diagnostics"];
    arguments.extend(quiet.map(str::to_owned));
    unit.arguments = arguments;
    Ok(Prepared::Unit(Box::new(unit)))
}

/// The entries of one command line `clang++ … a.cu b.cu`: one a source.
pub(crate) fn entries_of_command(arguments: &[String], directory: &Path) -> Vec<Entry> {
    let mut sources: Vec<String> = Vec::new();
    let mut words = arguments.iter().skip(1);
    while let Some(word) = words.next() {
        if SEPARATE_VALUE.contains(&word.as_str()) {
            words.next();
        } else if !word.starts_with('-') && by_extension(word) != Language::Other {
            sources.push(word.clone());
        }
    }
    let entry = |file: &String| Entry {
        directory: directory.to_owned(),
        file: file.clone(),
        arguments: arguments.iter().filter(|word| *word == file || !sources.contains(word)).cloned().collect(),
    };
    sources.iter().map(entry).collect()
}

/// Options of clang, gcc and nvcc whose value is the next argument, so that it is not taken for an input.
const SEPARATE_VALUE: [&str; 34] = [
    "-o",
    "-I",
    "-D",
    "-U",
    "-L",
    "-l",
    "-x",
    "-T",
    "-u",
    "-z",
    "-include",
    "-imacros",
    "-isystem",
    "-isysroot",
    "-iquote",
    "-idirafter",
    "-Xclang",
    "-mllvm",
    "-Xlinker",
    "-Xarch_host",
    "-Xarch_device",
    "-Xcuda-ptxas",
    "-Xcuda-fatbinary",
    "-Xcompiler",
    "-Xptxas",
    "-MF",
    "-MT",
    "-MQ",
    "-target",
    "-arch",
    "-gencode",
    "-ccbin",
    "--options-file",
    "--param",
];

/// Left out: what selects or names outputs, files beside the object, link-time optimisation (a unit is analysed alone), instrumentation.
fn clean(arguments: &[String], source: &str) -> Vec<String> {
    const EXACT: [&str; 26] = [
        "-c",
        "-S",
        "-E",
        "-M",
        "-MM",
        "-MD",
        "-MMD",
        "-MP",
        "-MG",
        "-MV",
        "-emit-llvm",
        "-fsyntax-only",
        "-flto",
        "-gsplit-dwarf",
        "-save-temps",
        "--save-temps",
        "--coverage",
        "-fprofile-arcs",
        "-ftest-coverage",
        "-ftime-trace",
        "-fsave-optimization-record",
        "-Werror",
        "-v",
        "-###",
        "-fpch-preprocess",
        "-pipe",
    ];
    const WITH_VALUE: [&str; 5] = ["-o", "-MF", "-MT", "-MQ", "--serialize-diagnostics"];
    const PREFIXES: [&str; 13] = [
        "-MF",
        "-MT",
        "-MQ",
        "-flto=",
        "-gsplit-dwarf=",
        "-save-temps=",
        "-ftime-trace=",
        "-Rpass",
        "-fsave-optimization-record=",
        "-foptimization-record-file=",
        "-Werror=",
        "-fprofile-",
        "-Wp,-M",
    ];
    let mut kept = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let is_plugin = word.starts_with("-fpass-plugin=") && word.contains("echo_sr");
        let is_other_input = word != source && [".o", ".a", ".so"].iter().any(|kind| word.ends_with(kind));
        if WITH_VALUE.contains(&word.as_str()) {
            words.next();
        } else if SEPARATE_VALUE.contains(&word.as_str()) {
            kept.push(word.clone());
            kept.extend(words.next().cloned());
        } else if EXACT.contains(&word.as_str()) || is_plugin || PREFIXES.iter().any(|prefix| word.starts_with(prefix))
        {
            // left out
        } else if !is_other_input || word.starts_with('-') {
            kept.push(word.clone());
        }
    }
    kept
}

fn is_architecture(argument: &str) -> bool {
    argument.starts_with("--cuda-gpu-arch=") || argument.starts_with("--offload-arch=")
}

fn is_unoptimised(arguments: &[String]) -> bool {
    let level = arguments.iter().rfind(|argument| argument.starts_with("-O") && !argument.starts_with("-Object"));
    level.is_none_or(|level| level == "-O0")
}

fn language(arguments: &[String], file: &str) -> Language {
    let mut words = arguments.iter();
    let mut named = None;
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("-x") {
            Some("") => words.next().map(String::as_str),
            value => value,
        };
        named = value.filter(|value| *value != "none").or(named);
    }
    match named {
        Some("cu" | "cuda") => Language::Cuda,
        Some("c" | "c++") => Language::Host,
        Some(_) => Language::Other,
        None => by_extension(file),
    }
}

fn by_extension(file: &str) -> Language {
    match Path::new(file).extension().and_then(|extension| extension.to_str()) {
        Some("cu") => Language::Cuda,
        Some("c" | "cc" | "cpp" | "cxx" | "C" | "c++" | "cp") => Language::Host,
        _ => Language::Other,
    }
}

/// A cheap look: a host file that calls the CUDA runtime itself says so.
fn mentions_cuda(source: &Path) -> bool {
    fs::read(source).is_ok_and(|text| {
        let includes = |word: &[u8]| text.windows(word.len()).any(|window| window == word);
        includes(b"cudaMalloc") || includes(b"cuda_runtime")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn outputs_and_files_beside_them_are_left_out() {
        let given = "-O3 -c -o a.o -MD -MT a.o -MF a.d -I /i -flto=thin -Werror=all -fpass-plugin=/x/libecho_sr.so \
                     -include c.h b.o a.cu -gsplit-dwarf -fprofile-instr-generate -o b.o";
        assert_eq!(clean(&words(given), "a.cu"), words("-O3 -I /i -include c.h a.cu"));
    }

    #[test]
    fn a_level_counts_if_it_is_the_last() {
        assert!(is_unoptimised(&words("-g a.cu")));
        assert!(is_unoptimised(&words("-O2 -O0 a.cu")));
        assert!(!is_unoptimised(&words("-O0 -O1 a.cu")));
        assert!(!is_unoptimised(&words("-Og a.cu")));
    }

    #[test]
    fn the_language_is_named_or_follows_from_the_file() {
        assert!(language(&words("-x cuda a.cpp"), "a.cpp") == Language::Cuda);
        assert!(language(&words("-xcu a.cpp"), "a.cpp") == Language::Cuda);
        assert!(language(&words("-x none a.cu"), "a.cu") == Language::Cuda);
        assert!(language(&words("-c a.cc"), "a.cc") == Language::Host);
        assert!(language(&words("-x hip a.cu"), "a.cu") == Language::Other);
        assert!(language(&words("-c a.f90"), "a.f90") == Language::Other);
    }

    #[test]
    fn each_source_of_a_command_becomes_an_entry() {
        let entries = entries_of_command(&words("clang++ -O2 a.cu -I b.cu x.o c.cpp -o prog"), Path::new("/d"));
        let files: Vec<_> = entries.iter().map(|entry| entry.file.as_str()).collect();
        assert_eq!(files, ["a.cu", "c.cpp"]);
        assert_eq!(entries[0].arguments, words("clang++ -O2 a.cu -I b.cu x.o -o prog"));
    }
}
