//! The plugin's file: where it is, and which LLVM it is for.

use std::fs;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection, ObjectSymbol};

use crate::failure::Failure;

/// Names another place for the plugin.
pub(crate) const VARIABLE: &str = "ECHO_SR_PLUGIN";

const FILE: &str = "libecho_sr.so";

/// The symbol whose four bytes are the LLVM major.
const MAJOR_SYMBOL: &str = "echo_sr_llvm_major";

/// Echo's plugin.
#[derive(Clone, Debug)]
pub(crate) struct Plugin {
    pub(crate) path: PathBuf,
    /// The LLVM that it is built for.
    pub(crate) major: u32,
}

/// `ECHO_SR_PLUGIN` if it is set; else next to this program, in `lib` beside its folder, or in a folder `lib` of it.
pub(crate) fn find() -> Result<PathBuf, Failure> {
    let named = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let candidates = match named {
        Some(path) => vec![path],
        None => beside(&std::env::current_exe().unwrap_or_default()),
    };
    let found = candidates.iter().find(|path| path.is_file());
    let path = found.ok_or_else(|| Failure::NoPlugin(candidates.clone()))?;
    std::path::absolute(path).map_err(|error| Failure::io(path, "find", &error))
}

fn beside(program: &Path) -> Vec<PathBuf> {
    let Some(folder) = program.parent() else { return vec![] };
    let mut places = vec![folder.join(FILE)];
    places.extend(folder.parent().map(|above| above.join("lib").join(FILE)));
    places.push(folder.join("lib").join(FILE));
    places
}

impl Plugin {
    /// The plugin that [`find`] finds.
    pub(crate) fn load() -> Result<Self, Failure> {
        let path = find()?;
        let data = fs::read(&path).map_err(|error| Failure::io(&path, "read", &error))?;
        let major = major(&data).map_err(|reason| Failure::NotAPlugin { path: path.clone(), reason })?;
        Ok(Self { path, major })
    }
}

fn major(data: &[u8]) -> Result<u32, String> {
    let file = object::File::parse(data).map_err(|error| error.to_string())?;
    let symbol = file
        .dynamic_symbols()
        .find(|symbol| symbol.name() == Ok(MAJOR_SYMBOL))
        .ok_or_else(|| format!("it has no symbol {MAJOR_SYMBOL}"))?;
    let section = symbol.section_index().and_then(|index| file.section_by_index(index).ok());
    let bytes = section.and_then(|section| section.data_range(symbol.address(), 4).ok().flatten());
    let bytes = bytes.and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
    bytes.map(u32::from_le_bytes).ok_or_else(|| format!("its symbol {MAJOR_SYMBOL} has no value"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_is_looked_for_next_to_the_program_first() {
        let places = beside(Path::new("/opt/echo/bin/echo-sr"));
        let expected =
            ["/opt/echo/bin/libecho_sr.so", "/opt/echo/lib/libecho_sr.so", "/opt/echo/bin/lib/libecho_sr.so"];
        assert_eq!(places, expected.map(PathBuf::from));
    }

    #[test]
    fn a_file_that_is_no_plugin_is_refused_with_the_reason() {
        assert!(major(b"text").is_err());
        let own = fs::read(std::env::current_exe().expect("a path")).expect("readable");
        assert!(major(&own).is_err_and(|reason| reason.contains(MAJOR_SYMBOL)));
    }
}
