//! The compilers: which clang analyses a unit, and whether it can load the plugin.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::plugin::Plugin;

/// What a program of a compile command is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// clang, of that major.
    Clang(u32),
    /// NVIDIA's driver.
    Nvcc,
    /// Another compiler, or none.
    Other,
}

/// Programs that run a compiler and stand before it.
const LAUNCHERS: [&str; 6] = ["ccache", "sccache", "distcc", "icecc", "buildcache", "ccache-clang"];

/// What was found out about compilers.
pub(crate) struct Compilers<'a> {
    plugin: &'a Plugin,
    /// `--clang`
    chosen: Option<String>,
    kinds: HashMap<String, Kind>,
    default: Option<String>,
    /// Those that ran the plugin.
    probed: Vec<String>,
    options: &'a str,
}

impl<'a> Compilers<'a> {
    /// `chosen`: the user's clang, for every unit. `options`: the plugin's, as the user gave them.
    pub(crate) fn new(plugin: &'a Plugin, chosen: Option<String>, options: &'a str) -> Self {
        Self { plugin, chosen, kinds: HashMap::new(), default: None, probed: vec![], options }
    }

    /// The number of arguments at the start of a command that are launchers (ccache …).
    pub(crate) fn launchers(arguments: &[String]) -> usize {
        let is_launcher = |argument: &String| LAUNCHERS.contains(&base_name(argument));
        let count = arguments.iter().take_while(|argument| is_launcher(argument)).count();
        if count < arguments.len() { count } else { 0 }
    }

    /// What `program` is.
    pub(crate) fn kind(&mut self, program: &str) -> Kind {
        if base_name(program).starts_with("nvcc") {
            return Kind::Nvcc;
        }
        self.kinds.entry(program.to_owned()).or_insert_with(|| kind_of(program)).clone()
    }

    /// The clang for a unit whose command calls `program`, which can load the plugin.
    pub(crate) fn choose(&mut self, program: &str, directory: &Path) -> Result<String, Failure> {
        let program = if program.contains('/') {
            directory.join(program).to_string_lossy().into_owned()
        } else {
            program.to_owned()
        };
        let compiler = match self.chosen.clone() {
            Some(chosen) => {
                self.demand(&chosen)?;
                chosen
            }
            None => match self.kind(&program) {
                Kind::Clang(_) => {
                    self.demand(&program)?;
                    program
                }
                Kind::Nvcc | Kind::Other => self.default()?,
            },
        };
        self.probe(&compiler)?;
        Ok(compiler)
    }

    /// A clang of the plugin's LLVM that is installed.
    pub(crate) fn default(&mut self) -> Result<String, Failure> {
        if let Some(chosen) = &self.chosen {
            return Ok(chosen.clone());
        }
        if let Some(found) = &self.default {
            return Ok(found.clone());
        }
        let major = self.plugin.major;
        let tried = [format!("clang++-{major}"), format!("/usr/lib/llvm-{major}/bin/clang++"), "clang++".to_owned()];
        let found = tried.iter().find(|name| self.kind(name) == Kind::Clang(major));
        let found = found.cloned().ok_or_else(|| Failure::NoClang { major, tried: tried.to_vec() })?;
        self.default = Some(found.clone());
        Ok(found)
    }

    /// A host compiler that nvcc was given, if it is a clang of the right version.
    pub(crate) fn suits(&mut self, program: &str) -> bool {
        self.chosen.is_none() && self.kind(program) == Kind::Clang(self.plugin.major)
    }

    fn demand(&mut self, compiler: &str) -> Result<(), Failure> {
        let found = match self.kind(compiler) {
            Kind::Clang(major) if major == self.plugin.major => return Ok(()),
            Kind::Clang(major) => format!("is clang {major}"),
            Kind::Nvcc | Kind::Other => "is no clang, or can't be run".to_owned(),
        };
        let (plugin, major) = (self.plugin.path.clone(), self.plugin.major);
        Err(Failure::Compiler { compiler: compiler.to_owned(), found, plugin, major })
    }

    /// Compiles nothing with the plugin and its options, so that what is wrong with either is said once and not for each unit.
    pub(crate) fn probe(&mut self, compiler: &str) -> Result<(), Failure> {
        if self.probed.iter().any(|known| known == compiler) {
            return Ok(());
        }
        let mut command = Command::new(compiler);
        command.args(["-x", "c++", "/dev/null", "-O1", "-c", "-o", "/dev/null"]).arg(load(&self.plugin.path));
        command.env("ECHO_SR_OPTIONS", self.options).stdin(Stdio::null());
        let failed = |output: String| Failure::Probe { compiler: compiler.to_owned(), output };
        let output = command.output().map_err(|error| failed(error.to_string()))?;
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).trim_end().to_owned()));
        }
        self.probed.push(compiler.to_owned());
        Ok(())
    }
}

/// The option that loads the plugin.
pub(crate) fn load(plugin: &Path) -> String {
    format!("-fpass-plugin={}", plugin.display())
}

/// The CUDA toolkit that a program `…/bin/nvcc` belongs to.
pub(crate) fn toolkit_of(nvcc: &str, directory: &Path) -> Option<PathBuf> {
    let path = if nvcc.contains('/') {
        directory.join(nvcc)
    } else {
        let folders = std::env::var_os("PATH")?;
        std::env::split_paths(&folders).map(|folder| folder.join(nvcc)).find(|path| path.is_file())?
    };
    let path = path.canonicalize().unwrap_or(path);
    Some(path.parent()?.parent()?.to_owned())
}

fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

fn kind_of(program: &str) -> Kind {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let Ok(output) = output else { return Kind::Other };
    clang_major(&String::from_utf8_lossy(&output.stdout)).map_or(Kind::Other, Kind::Clang)
}

/// The major in what `clang --version` prints. (Apple's numbers are not LLVM's.)
fn clang_major(version: &str) -> Option<u32> {
    let line = version.lines().next()?;
    let (before, number) = line.split_once("clang version ")?;
    if before.contains("Apple") {
        return None;
    }
    number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_is_read_from_what_clang_says() {
        assert_eq!(clang_major("Debian clang version 22.1.8 (1~deb12u1)\nTarget: x"), Some(22));
        assert_eq!(clang_major("clang version 19.1.7"), Some(19));
        assert_eq!(clang_major("Apple clang version 17.0.0"), None);
        assert_eq!(clang_major("g++ (Debian 12.2.0) 12.2.0"), None);
        assert_eq!(clang_major(""), None);
    }

    #[test]
    fn launchers_are_skipped() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(Compilers::launchers(&words("/usr/bin/ccache clang++ -c a.cu")), 1);
        assert_eq!(Compilers::launchers(&words("clang++ -c a.cu")), 0);
        assert_eq!(Compilers::launchers(&words("ccache")), 0);
    }

    #[test]
    fn the_toolkit_is_the_folder_above_nvcc() {
        assert_eq!(toolkit_of("/opt/cuda-x/bin/nvcc", Path::new("/")), Some(PathBuf::from("/opt/cuda-x")));
        assert_eq!(toolkit_of("no-such-nvcc-anywhere", Path::new("/")), None);
    }
}
