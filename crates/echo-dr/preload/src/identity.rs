//! What this process is, for comparison with a plan's.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use echo_dr_format::context::{FileIdentity, Process};
use echo_dr_format::site::{Fnv1a, Hash64};

use crate::modules::{self, Module};

/// Of a larger file, this many bytes from each end enter the hash, and all of a smaller one: the hash is taken when the program starts,
/// and CUDA's libraries have hundreds of megabytes. Their build-ids and sizes are compared too.
const HASHED: u64 = 4 << 20;

/// The process now: libraries that it loads later are not in it.
pub(crate) fn process() -> Process {
    let modules = modules::current();
    let executable = modules.executable().map_or_else(|| identity(Path::new(""), None), of_module);
    let libraries = modules.all().filter(|module| takes_part(&module.path)).map(of_module).collect();
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    Process { executable, libraries, host: host(), arguments }
}

fn takes_part(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    ["libcu", "libnv", "libecho_dr"].iter().any(|start| name.starts_with(start))
}

fn of_module(module: &Module) -> FileIdentity {
    identity(&module.path, module.build_id.as_deref())
}

fn identity(path: &Path, build_id: Option<&[u8]>) -> FileIdentity {
    let build_id = build_id.unwrap_or_default().iter().map(|byte| format!("{byte:02x}")).collect();
    // A file that can't be read has no size and the hash of nothing: it is like itself only, and a plan for it holds.
    let (bytes, hash) = hash(path).unwrap_or((0, Fnv1a::default().finish()));
    FileIdentity { path: path.to_string_lossy().into_owned(), build_id, bytes, hash: Hash64(hash) }
}

fn hash(path: &Path) -> std::io::Result<(u64, u64)> {
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
    take(&mut file, HASHED)?;
    if bytes > HASHED {
        file.seek(SeekFrom::Start(HASHED.max(bytes.saturating_sub(HASHED))))?;
        take(&mut file, HASHED)?;
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
        let before = hash(&path).expect("read");
        for at in [0, contents.len() - 1] {
            contents[at] ^= 1;
            std::fs::write(&path, &contents).expect("written");
            assert_ne!(hash(&path).expect("read").1, before.1);
            contents[at] ^= 1;
        }
        assert_eq!(before.0, 3 * HASHED);
    }

    #[test]
    fn this_process_is_itself() {
        let process = process();
        assert!(process.executable.bytes > 0 && !process.host.is_empty());
        assert_eq!(process.admits(&super::process()), Ok(()));
    }
}
