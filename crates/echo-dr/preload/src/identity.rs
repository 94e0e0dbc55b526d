//! What this process is, for comparison with a plan's.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use echo_dr_format::context::{FileIdentity, Process};
use echo_dr_format::site::{Fnv1a, Hash64};

use crate::modules::{self, Module};

/// Of a larger file, this many bytes from each end enter the hash, and all of a smaller one: the hash is taken when the program starts,
/// and CUDA's libraries have hundreds of megabytes. Their build-ids and sizes are compared too. Files without a build-id are hashed whole.
const HASHED: u64 = 4 << 20;

/// The process now: libraries that it loads later are not in it.
pub(crate) fn process() -> Process {
    let modules = modules::current();
    let executable = modules.executable().map_or_else(|| identity(Path::new(""), None, true), of_module);
    // (The kernel's own object is no file.)
    let is_library = |module: &&Module| !module.is_executable && module.path.is_absolute();
    let libraries = modules.all().filter(is_library).map(of_module).collect();
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    Process { executable, libraries, host: host(), arguments }
}

/// CUDA's libraries and Echo's own, whose contents are compared besides; of all others the build-id says it, and hashing dozens of libraries would be
/// felt at each start.
fn takes_part(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    ["libcu", "libnv", "libecho_dr"].iter().any(|start| name.starts_with(start))
}

fn of_module(module: &Module) -> FileIdentity {
    identity(&module.path, module.build_id.as_deref(), module.is_executable || takes_part(&module.path))
}

fn identity(path: &Path, build_id: Option<&[u8]>, by_content: bool) -> FileIdentity {
    let most = match build_id {
        None => u64::MAX,
        Some(_) if by_content => HASHED,
        Some(_) => 0,
    };
    let build_id = build_id.unwrap_or_default().iter().map(|byte| format!("{byte:02x}")).collect();
    // A file that can't be read has no size and the hash of nothing: it is like itself only, and a plan for it holds.
    let (bytes, hash) = hash(path, most).unwrap_or((0, Fnv1a::default().finish()));
    FileIdentity { path: path.to_string_lossy().into_owned(), build_id, bytes, hash: Hash64(hash) }
}

/// Size, and the hash of at most as many bytes from each end.
fn hash(path: &Path, most: u64) -> std::io::Result<(u64, u64)> {
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let mut hash = Fnv1a::default();
    let mut piece = vec![0; 1 << 16];
    let mut take = |file: &mut File, mut left: u64| -> std::io::Result<()> {
        while left > 0 {
            let read = file.read(&mut piece)?.min(usize::try_from(left).unwrap_or(usize::MAX));
            if read == 0 {
                break;
            }
            hash.write(&piece[..read]);
            left -= read as u64;
        }
        Ok(())
    };
    take(&mut file, most)?;
    if bytes > most {
        file.seek(SeekFrom::Start(most.max(bytes.saturating_sub(most))))?;
        take(&mut file, most)?;
    }
    Ok((bytes, hash.finish()))
}

fn host() -> String {
    // SAFETY: uname fills the structure with strings that end in NUL.
    unsafe {
        let mut names: libc::utsname = std::mem::zeroed();
        if libc::uname(&raw mut names) != 0 {
            return String::new();
        }
        std::ffi::CStr::from_ptr(names.nodename.as_ptr()).to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_at_either_end_changes_the_hash() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let mut contents = vec![7_u8; usize::try_from(3 * HASHED).expect("a size")];
        std::fs::write(&path, &contents).expect("written");
        let before = hash(&path, HASHED).expect("read");
        let middle = contents.len() / 2;
        let without_build_id = identity(&path, None, false);
        for at in [0, contents.len() - 1, middle] {
            contents[at] ^= 1;
            std::fs::write(&path, &contents).expect("written");
            assert_eq!(hash(&path, HASHED).expect("read").1 == before.1, at == middle);
            assert_ne!(identity(&path, None, false), without_build_id, "byte {at}");
            contents[at] ^= 1;
        }
        assert_eq!(before.0, 3 * HASHED);
    }

    #[test]
    fn this_process_is_itself() {
        let process = process();
        assert!(process.executable.bytes > 0 && !process.host.is_empty());
        let libraries: Vec<_> = process.libraries.iter().map(|library| library.path.as_str()).collect();
        assert!(libraries.iter().any(|path| path.contains("libc.so")), "{libraries:?}");
        assert_eq!(process.admits(&super::process()), Ok(()));
    }
}
