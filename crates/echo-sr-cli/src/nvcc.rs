//! nvcc's command lines in clang's words. What has no counterpart is named, so that nothing is analysed as something else; what only
//! concerns later steps (assembler, linker), files beside the object, or messages is left out.

/// A command line for clang.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Translated {
    /// Options and inputs.
    pub(crate) arguments: Vec<String>,
    /// The host compiler that nvcc was told to use (`-ccbin`).
    pub(crate) host_compiler: Option<String>,
}

/// How an option of nvcc is called, short and long, and what it means.
struct Option_ {
    names: &'static [&'static str],
    meaning: Meaning,
}

#[derive(Clone, Copy)]
enum Meaning {
    /// Left out; it has no value.
    Drop,
    /// Left out with its value.
    DropValue,
    /// These options of clang.
    Is(&'static [&'static str]),
    /// This option of clang, with the value appended.
    Joined(&'static str),
    /// This option of clang, with the value as the next argument.
    Separate(&'static str),
    /// `-gencode arch=…,code=…` and `-arch=…`
    Architecture,
    /// Values for the host compiler, separated by commas.
    Host,
    /// `-rdc=true`
    Relocatable,
    /// `-x cu`
    Language,
    /// `-ccbin`
    HostCompiler,
    /// `--default-stream`
    DefaultStream,
    /// `-fmad=false`
    Contraction,
    /// Unknown options are for the host compiler.
    Forward,
    /// The command makes no host code.
    NoHostCode,
}

const fn option(names: &'static [&'static str], meaning: Meaning) -> Option_ {
    Option_ { names, meaning }
}

use Meaning as M;

static OPTIONS: &[Option_] = &[
    option(&["c", "compile", "dc", "device-c"], M::Drop),
    option(&["dw", "device-w"], M::Drop),
    option(&["o", "output-file", "odir", "output-directory", "MF", "dependency-output"], M::DropValue),
    option(&["MT", "dependency-target-name", "keep-dir"], M::DropValue),
    option(&["M", "MM", "MD", "MMD", "MP", "generate-dependencies", "generate-nonsystem-dependencies"], M::Drop),
    option(&["generate-dependencies-with-compile", "generate-nonsystem-dependencies-with-compile"], M::Drop),
    option(
        &[
            "generate-dependency-targets",
            "objdir-as-tempdir",
            "k",
            "keep",
            "save-temps",
            "dryrun",
            "v",
            "verbose",
            "time",
        ],
        M::Drop,
    ),
    option(&["g", "debug", "G", "device-debug"], M::Is(&["-g"])),
    option(&["lineinfo", "generate-line-info", "pg", "profile", "src-in-ptx", "source-in-ptx"], M::Drop),
    option(&["O", "optimize"], M::Joined("-O")),
    option(&["dopt", "Ofast-compile", "Ofc"], M::DropValue),
    option(&["I", "include-path"], M::Joined("-I")),
    option(&["isystem", "system-include"], M::Separate("-isystem")),
    option(&["include", "pre-include"], M::Separate("-include")),
    option(&["D", "define-macro"], M::Joined("-D")),
    option(&["U", "undefine-macro"], M::Joined("-U")),
    option(&["L", "library-path", "l", "library", "cudart", "cudadevrt", "ldir", "libdevice-directory"], M::DropValue),
    option(&["std"], M::Joined("-std=")),
    option(&["m"], M::Joined("-m")),
    option(&["machine"], M::Joined("-m")),
    option(&["m64"], M::Is(&["-m64"])),
    option(&["x"], M::Language),
    option(&["arch", "gpu-architecture", "gencode", "generate-code"], M::Architecture),
    option(&["code", "gpu-code"], M::DropValue),
    option(&["rdc", "relocatable-device-code"], M::Relocatable),
    option(&["Xcompiler", "compiler-options"], M::Host),
    option(&["Xptxas", "ptxas-options", "Xlinker", "linker-options", "Xnvlink", "nvlink-options"], M::DropValue),
    option(&["Xarchive", "archive-options", "Xcudafe", "cudafe-args", "Xfatbin", "fatbin-options"], M::DropValue),
    option(&["Xopencc", "maxrregcount", "t", "threads", "split-compile", "split-compile-extended"], M::DropValue),
    option(&["jobserver", "fdevice-time-trace", "lto", "dlto", "dlink-time-opt", "gen-opt-lto"], M::Drop),
    option(&["diag-suppress", "diag-error", "diag-warn", "Werror", "target-dir"], M::DropValue),
    option(&["w", "disable-warnings", "Wno-deprecated-gpu-targets", "Wno-deprecated-declarations"], M::Drop),
    option(&["Wreorder", "Wdefault-stream-launch", "Wmissing-launch-bounds", "Wext-lambda-captures-this"], M::Drop),
    option(&["res-usage", "resource-usage", "err-no", "display-error-number"], M::Drop),
    option(&["no-err-no", "no-display-error-number", "extra-device-vectorization"], M::Drop),
    // clang has both without asking.
    option(&["expt-relaxed-constexpr", "extended-lambda", "expt-extended-lambda"], M::Drop),
    option(&["allow-unsupported-compiler", "restrict", "no-compress"], M::Drop),
    option(
        &["compress-mode", "arch-list", "idp", "input-drive-prefix", "ddp", "dependency-drive-prefix"],
        M::DropValue,
    ),
    option(&["noeh", "no-exceptions"], M::Is(&["-fno-exceptions"])),
    option(&["ftz", "prec-div", "prec-sqrt"], M::DropValue),
    option(&["fmad"], M::Contraction),
    option(&["use_fast_math"], M::Is(&["-fgpu-flush-denormals-to-zero", "-fgpu-approx-transcendentals"])),
    option(&["ftemplate-depth"], M::Joined("-ftemplate-depth=")),
    option(&["ftemplate-backtrace-limit"], M::DropValue),
    option(&["default-stream"], M::DefaultStream),
    option(&["ccbin", "compiler-bindir"], M::HostCompiler),
    option(&["forward-unknown-to-host-compiler", "forward-unknown-opts"], M::Forward),
    option(&["forward-unknown-to-host-linker"], M::Drop),
    option(&["ptx", "cubin", "fatbin", "optix-ir", "ltoir", "dlink", "device-link", "lib"], M::NoHostCode),
];

/// Options whose value may follow without a separator, as in `-I/usr`, `-O3`.
const JOINED: [&str; 8] = ["I", "D", "U", "L", "l", "O", "x", "t"];

/// Translates arguments (without the program's name). `read` gives the text of a file of options.
///
/// # Errors
/// Everything that can't be translated.
pub(crate) fn translate(
    arguments: &[String],
    read: &dyn Fn(&str) -> std::io::Result<String>,
) -> Result<Translated, Vec<String>> {
    let mut untranslatable = Vec::new();
    let arguments = expand(arguments, read, &mut untranslatable, 0);
    let forwards = arguments
        .iter()
        .any(|argument| matches!(lookup(argument).map(|(known, _)| known.meaning), Some(Meaning::Forward)));
    let mut translated = Translated::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if !argument.starts_with('-') || argument == "-" {
            translated.arguments.push(argument.clone());
            continue;
        }
        let Some((known, joined)) = lookup(argument) else {
            if forwards {
                translated.arguments.push(argument.clone());
            } else {
                untranslatable.push(argument.clone());
            }
            continue;
        };
        let value = match (takes_value(known.meaning), joined) {
            (true, None) => match rest.next() {
                Some(value) => value.clone(),
                None => {
                    untranslatable.push(format!("{argument} (its value is missing)"));
                    continue;
                }
            },
            (_, joined) => joined.unwrap_or_default().to_owned(),
        };
        if let Err(()) = apply(known.meaning, &value, &mut translated) {
            untranslatable.push(if value.is_empty() { argument.clone() } else { format!("{argument} ({value})") });
        }
    }
    if untranslatable.is_empty() { Ok(translated) } else { Err(untranslatable) }
}

/// Puts what files of options hold in their place. They may name files themselves; eight deep is a mistake.
fn expand(
    arguments: &[String],
    read: &dyn Fn(&str) -> std::io::Result<String>,
    failed: &mut Vec<String>,
    depth: usize,
) -> Vec<String> {
    let mut expanded = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let names = ["-optf", "--options-file"];
        let file = match argument.split_once('=') {
            Some((name, file)) if names.contains(&name) => Some(file.to_owned()),
            _ if names.contains(&argument.as_str()) => rest.next().cloned(),
            _ => argument.strip_prefix('@').map(str::to_owned),
        };
        let Some(file) = file else {
            expanded.push(argument.clone());
            continue;
        };
        let text = if depth < 8 { read(&file) } else { Err(std::io::Error::other("files of options name each other")) };
        match text.map(|text| shlex::split(&text)) {
            Ok(Some(inner)) => expanded.extend(expand(&inner, read, failed, depth + 1)),
            Ok(None) => failed.push(format!("{argument} ({file} has a quote that is not closed)")),
            Err(error) => failed.push(format!("{argument} ({file}: {error})")),
        }
    }
    expanded
}

/// The option, and a value that stands in the same argument.
fn lookup(argument: &str) -> Option<(&'static Option_, Option<&str>)> {
    let bare = argument.trim_start_matches('-');
    let find = |name: &str| OPTIONS.iter().find(|option| option.names.contains(&name));
    if let Some(option) = find(bare) {
        return Some((option, None));
    }
    if let Some((name, value)) = bare.split_once('=')
        && let Some(option) = find(name)
    {
        return Some((option, Some(value)));
    }
    let first = bare.get(..1).filter(|first| JOINED.contains(first) && !argument.starts_with("--"))?;
    find(first).map(|option| (option, bare.get(1..)))
}

fn takes_value(meaning: Meaning) -> bool {
    !matches!(meaning, M::Drop | M::Is(_) | M::Forward | M::NoHostCode)
}

fn apply(meaning: Meaning, value: &str, to: &mut Translated) -> Result<(), ()> {
    let out = &mut to.arguments;
    match meaning {
        M::Drop | M::DropValue | M::Forward => {}
        M::Is(options) => out.extend(options.iter().map(|option| (*option).to_owned())),
        M::Joined(option) => out.extend(value.split(',').map(|value| format!("{option}{value}"))),
        M::Separate(option) => {
            out.extend(value.split(',').flat_map(|value| [option.to_owned(), value.to_owned()]));
        }
        M::Architecture => {
            for architecture in architectures(value)? {
                let option = format!("--cuda-gpu-arch={architecture}");
                if !out.contains(&option) {
                    out.push(option);
                }
            }
        }
        M::Host => {
            let split = |part: &str| shlex::split(part).unwrap_or_else(|| vec![part.to_owned()]);
            out.extend(value.split(',').flat_map(split).filter(|option| !option.is_empty()));
        }
        M::Relocatable => match value {
            "true" => out.push("-fgpu-rdc".to_owned()),
            "false" => {}
            _ => return Err(()),
        },
        M::Language => match value {
            "cu" => out.extend(["-x".to_owned(), "cuda".to_owned()]),
            "c" | "c++" => out.extend(["-x".to_owned(), value.to_owned()]),
            _ => return Err(()),
        },
        M::HostCompiler => to.host_compiler = Some(value.to_owned()),
        M::DefaultStream => match value {
            "per-thread" => out.extend([
                "-fgpu-default-stream=per-thread".to_owned(),
                "-DCUDA_API_PER_THREAD_DEFAULT_STREAM=1".to_owned(),
            ]),
            "legacy" | "null" => {}
            _ => return Err(()),
        },
        M::Contraction => {
            if value == "false" {
                out.push("-ffp-contract=off".to_owned());
            }
        }
        M::NoHostCode => return Err(()),
    }
    Ok(())
}

/// `sm_90`, `compute_90`, `arch=compute_90,code=[sm_90,compute_90]`, `native`: what clang calls them. Several machines that are only known
/// where nvcc runs (`native`, `all`) are left to clang's choice.
fn architectures(value: &str) -> Result<Vec<String>, ()> {
    if ["native", "all", "all-major"].contains(&value) {
        return Ok(vec![]);
    }
    let numbers = |text: &str, prefix: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.filter_map(|word| word.strip_prefix(prefix)).map(|number| format!("sm_{number}")).collect()
    };
    let real = numbers(value, "sm_");
    let found = if real.is_empty() { numbers(value, "compute_") } else { real };
    if found.is_empty() { Err(()) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        shlex::split(text).expect("quotes are closed")
    }

    fn clang(text: &str) -> Result<String, Vec<String>> {
        let read = |file: &str| match file {
            "includes.rsp" => Ok("-I/a --options-file=more.rsp".to_owned()),
            "more.rsp" => Ok("-isystem \"/b c\"".to_owned()),
            "loop.rsp" => Ok("@loop.rsp".to_owned()),
            _ => Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
        };
        translate(&words(text), &read).map(|translated| translated.arguments.join(" "))
    }

    #[test]
    fn a_command_of_cmake_is_translated() {
        let command = "-forward-unknown-to-host-compiler -DNDEBUG --options-file includes.rsp -O3 -DNDEBUG -std=c++17 \
                       --generate-code=arch=compute_80,code=[compute_80,sm_80] --generate-code=arch=compute_90,code=[sm_90] \
                       -Xcompiler=-fPIC -Xcompiler -Wall,-Wextra --expt-relaxed-constexpr --extended-lambda -lineinfo \
                       -march=native -MD -MT a.o -MF a.o.d -x cu -rdc=true -c a.cu -o a.o";
        assert_eq!(
            clang(command).unwrap(),
            "-DNDEBUG -I/a -isystem /b c -O3 -DNDEBUG -std=c++17 --cuda-gpu-arch=sm_80 --cuda-gpu-arch=sm_90 -fPIC \
             -Wall -Wextra -march=native -x cuda -fgpu-rdc a.cu"
        );
    }

    #[test]
    fn values_stand_joined_separate_or_behind_an_equals_sign() {
        for same in ["-arch sm_90", "-arch=sm_90", "--gpu-architecture sm_90", "-gencode arch=compute_90,code=sm_90"] {
            assert_eq!(clang(same).unwrap(), "--cuda-gpu-arch=sm_90", "{same}");
        }
        for same in ["-I/a", "-I /a", "-I=/a", "--include-path=/a", "--include-path /a"] {
            assert_eq!(clang(same).unwrap(), "-I/a", "{same}");
        }
        assert_eq!(clang("-I/a,/b -t0 -t 4 -O2").unwrap(), "-I/a -I/b -O2");
        assert_eq!(clang("-arch=native -Xptxas -v,-O3 -maxrregcount=32").unwrap(), "");
        assert_eq!(clang("-gencode=arch=compute_75,code=compute_75").unwrap(), "--cuda-gpu-arch=sm_75");
    }

    #[test]
    fn what_can_not_be_translated_is_named_all_at_once() {
        let untranslatable = clang("-O2 --no-such-thing -ptx -x fortran -arch=fast -rdc=maybe a.cu -o").unwrap_err();
        let expected = ["--no-such-thing", "-ptx", "-x (fortran)", "-arch=fast (fast)", "-rdc=maybe (maybe)"];
        assert_eq!(untranslatable[..5], expected);
        assert!(untranslatable[5].contains("-o (its value is missing)"));
    }

    #[test]
    fn a_file_of_options_that_can_not_be_read_is_named() {
        assert!(clang("--options-file missing.rsp").unwrap_err()[0].contains("missing.rsp"));
        assert!(clang("@loop.rsp").unwrap_err()[0].contains("name each other"));
    }

    #[test]
    fn the_default_stream_and_the_host_compiler_are_kept() {
        assert!(clang("--default-stream per-thread").unwrap().contains("-fgpu-default-stream=per-thread"));
        let read = |_: &str| Ok(String::new());
        let translated = translate(&words("-ccbin /usr/bin/clang++-22 a.cu"), &read).unwrap();
        assert_eq!(translated.host_compiler.as_deref(), Some("/usr/bin/clang++-22"));
        assert_eq!(translated.arguments, ["a.cu"]);
    }

    #[test]
    fn every_option_has_one_meaning() {
        let mut names: Vec<_> = OPTIONS.iter().flat_map(|option| option.names).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
