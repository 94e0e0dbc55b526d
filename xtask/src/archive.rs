//! Hides the symbols of a static archive: a program that links it defines them and exports none. rustc has no stable option for this.
//!
//! Only the visibility in each symbol's entry is changed, in place, so nothing in the archive moves.

use object::elf::{FileHeader64, SHN_UNDEF, SHT_SYMTAB, STB_LOCAL, STV_HIDDEN, Sym64};
use object::read::archive::ArchiveFile;
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{Endianness, Error};
use std::mem::{offset_of, size_of};

/// Bits of a symbol's `st_other` that are its visibility.
const VISIBILITY: u8 = 3;

/// Hides every symbol that a member of the archive defines for others; how many there are.
pub(crate) fn hide_symbols(archive: &mut [u8]) -> Result<usize, Error> {
    let mut entries = Vec::new();
    let members = ArchiveFile::parse(&*archive)?;
    for member in members.members() {
        let (start, length) = member?.file_range();
        let (start, length) = (start as usize, length as usize);
        let bytes = archive.get(start..).and_then(|rest| rest.get(..length)).unwrap_or_default();
        // Archives also hold members of other kinds, such as rustc's list of symbols.
        if bytes.starts_with(&object::elf::ELFMAG) {
            entries.extend(defined(bytes)?.into_iter().map(|entry| start + entry));
        }
    }
    for entry in &entries {
        let other = &mut archive[entry + offset_of!(Sym64<Endianness>, st_other)];
        *other = *other & !VISIBILITY | STV_HIDDEN;
    }
    Ok(entries.len())
}

/// Where in an object file the entries of symbols are that it defines for others.
fn defined(bytes: &[u8]) -> Result<Vec<usize>, Error> {
    let header = FileHeader64::<Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    let mut entries = Vec::new();
    for section in header.sections(endian, bytes)?.iter().filter(|s| s.sh_type(endian) == SHT_SYMTAB) {
        let symbols: &[Sym64<Endianness>] = section.data_as_array(endian, bytes)?;
        let table = section.sh_offset(endian) as usize;
        let others = symbols
            .iter()
            .enumerate()
            .filter(|(_, symbol)| symbol.st_bind() != STB_LOCAL && symbol.st_shndx(endian) != SHN_UNDEF);
        entries.extend(others.map(|(index, _)| table + index * size_of::<Sym64<Endianness>>()));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::hide_symbols;
    use std::process::Command;

    /// Of a program that links the archive and exports all it can, the archive's symbols are no part of what is exported.
    #[test]
    fn hidden_symbols_are_linked_and_not_exported() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = |command: &mut Command| {
            let output = command.current_dir(folder.path()).output().expect("it runs");
            assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).expect("text")
        };
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
        write("part.c", "int shown = 1; int other(void); int part(void) { return other() + shown; }");
        write("other.c", "__attribute__((weak)) int other(void) { return 41; }");
        write("main.c", "int part(void); int own(void) { return part(); } int main(void) { return own() != 42; }");
        run(Command::new("clang-22").args(["-c", "part.c", "other.c"]));
        run(Command::new("ar").args(["crs", "libpart.a", "part.o", "other.o"]));
        let exported = || {
            run(Command::new("clang-22").args(["main.c", "libpart.a", "-rdynamic", "-o", "main"]));
            run(&mut Command::new("./main"));
            let names = run(Command::new("nm").args(["-D", "--defined-only", "main"]));
            ["part", "other", "shown", "own"].map(|name| names.lines().any(|line| line.ends_with(&format!(" {name}"))))
        };
        assert_eq!(exported(), [true, true, true, true]);
        let mut archive = std::fs::read(folder.path().join("libpart.a")).expect("the archive");
        assert_eq!(hide_symbols(&mut archive).expect("an archive"), 3);
        std::fs::write(folder.path().join("libpart.a"), archive).expect("a file");
        assert_eq!(exported(), [false, false, false, true]);
    }

    #[test]
    fn what_is_no_archive_is_an_error() {
        assert!(hide_symbols(&mut b"no archive".to_vec()).is_err());
    }
}
