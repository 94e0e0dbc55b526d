//! Where libecho_dr.so is.

use std::path::PathBuf;

use crate::failure::Failure;

/// What the file is called.
const NAME: &str = "libecho_dr.so";

/// The library: `ECHO_DR_LIBRARY`, or next to this program (a build), or in `lib` beside its folder (an installation).
pub(crate) fn find() -> Result<PathBuf, Failure> {
    let named = std::env::var_os("ECHO_DR_LIBRARY").filter(|path| !path.is_empty());
    let mut places = Vec::new();
    if let Some(path) = named {
        places.push(PathBuf::from(path));
    } else if let Ok(program) = std::env::current_exe().and_then(std::fs::canonicalize) {
        places.extend(program.parent().map(|folder| folder.join(NAME)));
        places.extend(program.ancestors().nth(2).map(|prefix| prefix.join("lib").join(NAME)));
    }
    let found = places.iter().find(|path| path.is_file());
    // The loader takes a name without a slash for one to search; and a relative path must hold in the program's folder too.
    found.and_then(|path| std::fs::canonicalize(path).ok()).ok_or(Failure::NoLibrary(places))
}
