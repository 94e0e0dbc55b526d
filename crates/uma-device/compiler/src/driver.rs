//! The command line: clang++'s, plus a few options of its own.
//!
//! A .cu input is compiled in two halves, everything else is clang++'s business. The options of a user go to both halves, except those
//! that only make sense in one.

use crate::image::{self, ImageOptions};
use crate::retarget::RetargetError;
use crate::toolchain::Toolchain;
use crate::{device_half, host_half};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const HELP: &str = "\
uma-clang++: clang++ for CUDA programs that run on the CPU device

Takes clang++'s options. Its own:
  --image-only      write the kernels of one .cu file as an image, without a host half
  --save-ir=PREFIX  keep the device IR of each step as PREFIX.STEP.ll
  --target=TRIPLE   the CPU to compile for: that of another machine (aarch64-linux-gnu), for which its C library must be installed
  --verbose         show the commands that are run
  --cuda-path=DIR   CUDA toolkit (headers); default: CUDA_PATH, then `cuda` next to the build
  -cudart=KIND      the runtime that a program is linked with: shared (-lcudart, the default), static
                    (-lcudart_static) or none; -L says where it is";

/// What a command line asks for.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Request {
    /// Inputs and options in their order.
    pub(crate) items: Vec<Item>,
    output: Option<String>,
    /// `-c`, `-S`, `-E` or `-fsyntax-only`; `None` links.
    mode: Option<String>,
    image_only: bool,
    verbose: bool,
    help: bool,
    save_ir: Option<String>,
    cuda_path: Option<String>,
    cudart: Cudart,
}

/// The runtime library that a program is linked with (nvcc's `-cudart`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Cudart {
    #[default]
    Shared,
    Static,
    None,
}

impl Cudart {
    fn parse(kind: &str) -> Result<Cudart, String> {
        match kind {
            "shared" => Ok(Cudart::Shared),
            "static" => Ok(Cudart::Static),
            "none" => Ok(Cudart::None),
            other => Err(format!("error: -cudart={other} is not known; it may be shared, static or none")),
        }
    }

    /// What the linker is given; the archive needs what nvcc adds for it, too.
    fn libraries(self) -> &'static [&'static str] {
        match self {
            Cudart::Shared => &["-lcudart"],
            Cudart::Static => &["-lcudart_static", "-lrt", "-lpthread", "-ldl"],
            Cudart::None => &[],
        }
    }
}

/// One thing on the command line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    /// A file in CUDA C++.
    Cuda(String),
    /// Any other file, with the language that `-x` gave.
    Other { file: String, language: Option<String> },
    /// An option with its value.
    Flag(Vec<String>),
}

/// Options whose value is the next argument.
const WITH_VALUE: &[&str] = &[
    "-I",
    "-D",
    "-U",
    "-L",
    "-l",
    "-F",
    "-T",
    "-u",
    "-z",
    "-Xclang",
    "-Xlinker",
    "-Xassembler",
    "-Xpreprocessor",
    "-mllvm",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-isysroot",
    "-iprefix",
    "-MF",
    "-MT",
    "-MQ",
    "-MJ",
    "-arch",
    "-e",
    "-rpath",
    "-dumpdir",
    "-Xcuda-ptxas",
    "-Xcuda-fatbinary",
];

/// Splits a command line.
pub(crate) fn split(arguments: Vec<String>) -> Result<Request, String> {
    let mut request = Request::default();
    let mut language = None;
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let mut value = |option: &str| arguments.next().ok_or(format!("error: {option} needs a value"));
        match argument.as_str() {
            "--image-only" => request.image_only = true,
            "--verbose" => request.verbose = true,
            "--help" => request.help = true,
            "-cudart" | "--cudart" => request.cudart = Cudart::parse(&value("-cudart")?)?,
            "-c" | "-S" | "-E" | "-fsyntax-only" => request.mode = Some(argument),
            "-o" => request.output = Some(value("-o")?),
            "-x" => language = Some(value("-x")?).filter(|language| language != "none"),
            "-fgpu-rdc" | "-dc" => {
                return Err(format!(
                    "error: {argument} is not supported by the CPU device: each file must define the device functions that it calls"
                ));
            }
            "-target" => request.items.push(Item::Flag(vec![format!("--target={}", value("-target")?)])),
            option if WITH_VALUE.contains(&option) => {
                let value = value(option)?;
                // The architecture is this device's, whichever was asked for.
                request.items.push(Item::Flag(vec![argument, value]));
            }
            option if option.starts_with("--cuda-gpu-arch") || option.starts_with("--offload-arch") => {}
            option => {
                let cudart = option.strip_prefix("-cudart=").or_else(|| option.strip_prefix("--cudart="));
                if let Some(kind) = cudart {
                    request.cudart = Cudart::parse(kind)?;
                } else if let Some(path) = option.strip_prefix("--cuda-path=") {
                    request.cuda_path = Some(path.to_owned());
                } else if let Some(prefix) = option.strip_prefix("--save-ir=") {
                    request.save_ir = Some(prefix.to_owned());
                } else if let Some(output) = option.strip_prefix("-o").filter(|rest| !rest.is_empty()) {
                    request.output = Some(output.to_owned());
                } else if let Some(name) = option.strip_prefix("-x").filter(|rest| !rest.is_empty()) {
                    language = Some(name.to_owned()).filter(|language| language != "none");
                } else if option.starts_with(['-', '@']) && option != "-" {
                    request.items.push(Item::Flag(vec![argument]));
                } else if language.as_deref().map_or(option.ends_with(".cu"), |language| language == "cuda") {
                    request.items.push(Item::Cuda(argument));
                } else {
                    request.items.push(Item::Other { file: argument, language: language.clone() });
                }
            }
        }
    }
    Ok(request)
}

impl Request {
    fn cuda_inputs(&self) -> Vec<&str> {
        self.items
            .iter()
            .filter_map(|item| match item {
                Item::Cuda(file) => Some(file.as_str()),
                _ => None,
            })
            .collect()
    }

    /// All options, without inputs.
    pub(crate) fn flags(&self) -> impl Iterator<Item = &[String]> {
        self.items.iter().filter_map(|item| match item {
            Item::Flag(flag) => Some(flag.as_slice()),
            _ => None,
        })
    }

    fn image_options(&self) -> ImageOptions {
        let single =
            |prefix: &str| self.flags().filter_map(|flag| flag[0].strip_prefix(prefix).map(str::to_owned)).last();
        ImageOptions {
            triple: single("--target="),
            cpu: single("-march="),
            debug: single("-g").is_some_and(|level| level != "0"),
            save_ir: self.save_ir.as_ref().map(PathBuf::from),
        }
    }
}

/// Runs the command; `arguments` without the program's name.
pub fn run(arguments: Vec<String>) -> ExitCode {
    match split(arguments).and_then(|request| execute(&request)) {
        Ok(code) => code,
        Err(message) => {
            // A compiler that was run has said for itself what is wrong.
            if !message.is_empty() {
                eprintln!("{message}");
            }
            ExitCode::FAILURE
        }
    }
}

fn execute(request: &Request) -> Result<ExitCode, String> {
    if request.help {
        println!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    }
    let tools = Toolchain::find(request.cuda_path.as_deref(), request.verbose)?;
    let inputs = request.cuda_inputs();
    if request.image_only {
        let [input] = inputs[..] else { return Err("error: --image-only takes one .cu file".into()) };
        let output = request.output.clone().unwrap_or(with_extension(input, "img"));
        image::write(&make_image(request, &tools, input)?, Path::new(&output))?;
        return Ok(ExitCode::SUCCESS);
    }
    let folder = tempfile::tempdir().map_err(|error| format!("error: temporary files: {error}"))?;
    if let Some(mode) = &request.mode {
        if inputs.is_empty() {
            return pass_on(request, &tools);
        }
        if inputs.len() > 1 && request.output.is_some() {
            return Err("error: one output for several files: give -o with one file only".into());
        }
        for (number, input) in inputs.into_iter().enumerate() {
            let image = folder.path().join(format!("{number}.img"));
            if mode != "-fsyntax-only" && mode != "-E" {
                image::write(&make_image(request, &tools, input)?, &image)?;
            }
            let output = match (&request.output, mode.as_str()) {
                (Some(output), _) => Some(output.clone()),
                (None, "-c") => Some(with_extension(input, "o")),
                (None, _) => None,
            };
            host_half::compile(request, &tools, input, &image, mode, output.map(OsString::from))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut objects = Vec::new();
    for (number, input) in inputs.into_iter().enumerate() {
        let image = folder.path().join(format!("{number}.img"));
        let object = folder.path().join(format!("{number}.o"));
        image::write(&make_image(request, &tools, input)?, &image)?;
        host_half::compile(request, &tools, input, &image, "-c", Some(object.clone().into()))?;
        objects.push(object);
    }
    link(request, &tools, objects)?;
    Ok(ExitCode::SUCCESS)
}

fn make_image(request: &Request, tools: &Toolchain, input: &str) -> Result<Vec<u8>, String> {
    let bitcode = device_half::compile(request, tools, input)?;
    image::build(&bitcode, tools, &request.image_options()).map_err(|error| match error {
        RetargetError::Failed(_) => format!("{input}: {error}"),
        refused => refused.to_string(),
    })
}

/// A command without CUDA files that does not link.
fn pass_on(request: &Request, tools: &Toolchain) -> Result<ExitCode, String> {
    let mut command = Command::new(&tools.clang);
    command.args(&request.mode);
    add_items(&mut command, request, &[]);
    if let Some(output) = &request.output {
        command.arg("-o").arg(output);
    }
    spawn(command, tools)?;
    Ok(ExitCode::SUCCESS)
}

fn link(request: &Request, tools: &Toolchain, objects: Vec<PathBuf>) -> Result<(), String> {
    let mut command = Command::new(&tools.clang);
    add_items(&mut command, request, &objects);
    if let Some(output) = &request.output {
        command.arg("-o").arg(output);
    }
    // Options of the compile steps mean nothing to the linker.
    command.args(request.cudart.libraries()).arg("-Wno-unused-command-line-argument");
    spawn(command, tools)
}

/// The items in their order, with an object in the place of each CUDA file.
fn add_items(command: &mut Command, request: &Request, objects: &[PathBuf]) {
    let mut objects = objects.iter();
    for item in &request.items {
        match item {
            Item::Cuda(_) => {
                command.args(objects.next());
            }
            Item::Other { file, language: Some(language) } => {
                command.args(["-x", language, file, "-x", "none"]);
            }
            Item::Other { file, language: None } => {
                command.arg(file);
            }
            Item::Flag(flag) => {
                command.args(flag);
            }
        }
    }
}

/// `dir/name.cu` → `name.ext`, as clang names outputs.
fn with_extension(input: &str, extension: &str) -> String {
    let name = Path::new(input).with_extension(extension);
    name.file_name().map_or_else(|| format!("a.{extension}"), |name| name.to_string_lossy().into_owned())
}

/// Runs a compiler, which prints its own messages; an empty error where it fails.
pub(crate) fn spawn(mut command: Command, tools: &Toolchain) -> Result<(), String> {
    if tools.verbose {
        eprintln!("{command:?}");
    }
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(String::new()),
        Err(error) => Err(format!("error: {}: {error}", tools.clang.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::{Cudart, Item, split};

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn inputs_and_options_keep_their_order() {
        let request = split(words("-O2 a.cu -I inc b.cpp -Wl,-rpath,lib -lm -o prog")).unwrap();
        assert_eq!(request.output.as_deref(), Some("prog"));
        assert_eq!(
            request.items,
            [
                Item::Flag(words("-O2")),
                Item::Cuda("a.cu".into()),
                Item::Flag(words("-I inc")),
                Item::Other { file: "b.cpp".into(), language: None },
                Item::Flag(words("-Wl,-rpath,lib")),
                Item::Flag(words("-lm")),
            ]
        );
    }

    #[test]
    fn languages_hold_until_none() {
        let request = split(words("-x cuda a.cpp -x none b.cpp -xc c.in")).unwrap();
        assert_eq!(
            request.items,
            [
                Item::Cuda("a.cpp".into()),
                Item::Other { file: "b.cpp".into(), language: None },
                Item::Other { file: "c.in".into(), language: Some("c".into()) },
            ]
        );
    }

    #[test]
    fn the_runtime_is_chosen_as_for_nvcc() {
        let cudart = |options: &str| split(words(options)).map(|request| request.cudart);
        assert_eq!(cudart("a.cu"), Ok(Cudart::Shared));
        for options in ["-cudart static a.cu", "-cudart=static a.cu", "--cudart=static a.cu", "a.cu --cudart static"] {
            let request = split(words(options)).unwrap();
            assert_eq!((request.cudart, request.cuda_inputs()), (Cudart::Static, vec!["a.cu"]));
        }
        assert_eq!(cudart("-cudart=none a.cu"), Ok(Cudart::None));
        assert!(cudart("-cudart=dynamic a.cu").unwrap_err().contains("shared, static or none"));
    }

    #[test]
    fn a_missing_value_and_separate_device_code_are_errors() {
        assert!(split(words("a.cu -o")).unwrap_err().contains("-o needs a value"));
        assert!(split(words("-fgpu-rdc a.cu")).unwrap_err().contains("-fgpu-rdc"));
    }

    #[test]
    fn the_architecture_of_a_gpu_is_dropped() {
        let request = split(words("--cuda-gpu-arch=sm_90 --offload-arch=sm_80 a.cu -march=native -g")).unwrap();
        assert_eq!(request.cuda_inputs(), ["a.cu"]);
        let options = request.image_options();
        assert_eq!((options.cpu.as_deref(), options.debug), (Some("native"), true));
        for named in ["--target=aarch64-linux-gnu a.cu", "-target aarch64-linux-gnu a.cu"] {
            let request = split(words(named)).unwrap();
            assert_eq!(request.image_options().triple.as_deref(), Some("aarch64-linux-gnu"));
        }
    }
}
