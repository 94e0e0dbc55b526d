//! Reads the effects records out of what the host half embeds of the device half.
//!
//! Four containers are known: the fat binary of CUDA, LLVM's offload binary (relocatable device code), the image of the CPU device, and a
//! bare ELF. A container may hold code for several architectures, and the driver picks one at run time, so:
//! - every image must carry a record of its own, also PTX, which the driver compiles; otherwise nothing is known;
//! - the effect of a kernel is the join over all images; a kernel that some image does not know is not in the table.
//!
//! An image may hold several records (relocatable units that were linked): each is the statement of the unit that defines its kernels.

use std::collections::BTreeMap;
use std::io::Read;

use super::record::{self, RecordError};
use super::{EffectTable, KernelEffects};

/// Why nothing is known of the kernels of a container.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FatbinError {
    /// The bytes are none of the known containers, or damaged.
    #[error("the embedded device code has an unknown format ({0})")]
    Format(&'static str),
    /// An image carries no record.
    #[error("the device code for {0} carries no effects record: compile the device half with clang and this plugin")]
    NoRecord(String),
    /// An image is compressed in a way that is not known.
    #[error("the device code for {0} is compressed in a way that Echo can't read")]
    Compressed(String),
    /// A record can't be believed.
    #[error("{0}")]
    Record(#[from] RecordError),
    /// There is no device code.
    #[error("the module embeds no device code that Echo can see")]
    NoImage,
}

/// What an image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ImageKind {
    /// Machine code: the record is in it as bytes.
    Binary,
    /// PTX: the record is in it as a list of numbers.
    Ptx,
}

/// One architecture's code.
#[derive(Debug)]
struct Image {
    kind: ImageKind,
    /// For messages.
    name: String,
    bytes: Vec<u8>,
}

const FATBIN_MAGIC: [u8; 4] = 0xba55_ed50_u32.to_le_bytes();
const OFFLOAD_MAGIC: [u8; 4] = [0x10, 0xff, 0x10, 0xad];
const ELF_MAGIC: [u8; 4] = *b"\x7fELF";

/// Effects of the kernels in an embedded container.
///
/// # Errors
/// Nothing is known of any kernel in it, for the given reason.
pub fn effects_of_container(bytes: &[u8]) -> Result<EffectTable, FatbinError> {
    let images = images(bytes)?;
    let tables = images.iter().map(effects_of_image).collect::<Result<Vec<_>, _>>()?;
    tables.into_iter().reduce(intersect).ok_or(FatbinError::NoImage)
}

fn images(bytes: &[u8]) -> Result<Vec<Image>, FatbinError> {
    let abi_header = size_of::<uma_abi::ImageHeader>();
    if bytes.starts_with(&FATBIN_MAGIC) {
        fat_binary(bytes)
    } else if bytes.starts_with(&OFFLOAD_MAGIC) {
        offload_binary(bytes)
    } else if bytes.starts_with(&uma_abi::IMAGE_MAGIC) {
        let elf = bytes.get(abi_header..).filter(|elf| elf.starts_with(&ELF_MAGIC));
        let elf = elf.ok_or(FatbinError::Format("an image of the CPU device without an ELF"))?;
        Ok(vec![Image { kind: ImageKind::Binary, name: "the CPU device".into(), bytes: elf.to_vec() }])
    } else if bytes.starts_with(&ELF_MAGIC) {
        Ok(vec![Image { kind: ImageKind::Binary, name: "its architecture".into(), bytes: bytes.to_vec() }])
    } else {
        Err(FatbinError::Format("its first bytes"))
    }
}

/// CUDA's fat binary: a header of 16 bytes (magic, version, size of this header, size of all entries), then entries, each a header of its
/// own that gives kind, its size, the size of the data, architecture and compression.
fn fat_binary(bytes: &[u8]) -> Result<Vec<Image>, FatbinError> {
    const CUT: FatbinError = FatbinError::Format("a fat binary that is cut off");
    const PTX: u16 = 1;
    const ELF: u16 = 2;
    const LZ4: u64 = 0x2000;
    const ZSTD: u64 = 0x8000;
    let header = usize::from(u16::from_le_bytes(field(bytes, 6).ok_or(CUT)?));
    let size = offset(bytes, 8).ok_or(CUT)?;
    let mut rest = bytes.get(header..).and_then(|rest| rest.get(..size)).ok_or(CUT)?;
    if bytes[header + size..].iter().any(|byte| *byte != 0) {
        return Err(FatbinError::Format("data after a fat binary"));
    }
    let mut images = Vec::new();
    while !rest.is_empty() {
        let kind = u16::from_le_bytes(field(rest, 0).ok_or(CUT)?);
        let entry_header = u32::from_le_bytes(field(rest, 4).ok_or(CUT)?) as usize;
        let padded = offset(rest, 8).ok_or(CUT)?;
        let compressed = u32::from_le_bytes(field(rest, 16).ok_or(CUT)?) as usize;
        let arch = u32::from_le_bytes(field(rest, 28).ok_or(CUT)?);
        let flags = u64::from_le_bytes(field(rest, 40).ok_or(CUT)?);
        let end = entry_header.checked_add(padded).ok_or(CUT)?;
        let data = rest.get(entry_header..end).ok_or(CUT)?;
        let (kind, name) = match kind {
            PTX => (ImageKind::Ptx, format!("compute_{arch}")),
            ELF => (ImageKind::Binary, format!("sm_{arch}")),
            _ => return Err(FatbinError::Format("an entry that is neither PTX nor ELF")),
        };
        let bytes = if flags & LZ4 != 0 {
            return Err(FatbinError::Compressed(name));
        } else if flags & ZSTD != 0 {
            let data = data.get(..compressed).ok_or(CUT)?;
            unpack(data).ok_or_else(|| FatbinError::Compressed(name.clone()))?
        } else {
            data.to_vec()
        };
        images.push(Image { kind, name, bytes });
        rest = &rest[end..];
    }
    Ok(images)
}

/// Zstandard, which CUDA 13 compresses PTX with.
fn unpack(data: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(data).ok()?.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// LLVM's offload binaries, one after the other: a header of 32 bytes (magic, version, size of all, place and size of the entry) and one
/// entry, which says where the image is.
fn offload_binary(bytes: &[u8]) -> Result<Vec<Image>, FatbinError> {
    const CUT: FatbinError = FatbinError::Format("an offload binary that is cut off");
    const VERSION: u32 = 1;
    let mut all = Vec::new();
    let mut rest = bytes;
    while rest.iter().any(|byte| *byte != 0) {
        if !rest.starts_with(&OFFLOAD_MAGIC) {
            return Err(FatbinError::Format("data after an offload binary"));
        }
        if u32::from_le_bytes(field(rest, 4).ok_or(CUT)?) != VERSION {
            return Err(FatbinError::Format("an offload binary of another version"));
        }
        let size = offset(rest, 8).ok_or(CUT)?;
        let binary = rest.get(..size).filter(|binary| !binary.is_empty()).ok_or(CUT)?;
        let image = offload_image(binary).ok_or(CUT)?;
        if image.starts_with(&OFFLOAD_MAGIC) {
            return Err(FatbinError::Format("an offload binary inside another"));
        }
        // The entry also says what kind of image it is, but not reliably; the first bytes do. What is left is bitcode for link-time
        // optimisation, in which a record is not aligned to bytes.
        all.extend(images(image)?);
        rest = &rest[size..];
    }
    Ok(all)
}

fn offload_image(binary: &[u8]) -> Option<&[u8]> {
    let entry = binary.get(offset(binary, 16)?..)?;
    binary.get(offset(entry, 24)?..)?.get(..offset(entry, 32)?)
}

fn effects_of_image(image: &Image) -> Result<EffectTable, FatbinError> {
    let records = match image.kind {
        ImageKind::Binary => record::scan(&image.bytes),
        ImageKind::Ptx => ptx_records(&image.bytes).iter().flat_map(|bytes| record::scan(bytes)).collect(),
    };
    let tables = records.into_iter().collect::<Result<Vec<_>, _>>()?;
    tables.into_iter().reduce(union).ok_or_else(|| FatbinError::NoRecord(image.name.clone()))
}

/// The initialisers of the records in PTX: `….b8 __echo_effects[N] = {127, 69, …};`.
fn ptx_records(text: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(text);
    let mut records = Vec::new();
    for (at, symbol) in text.match_indices(record::SYMBOL) {
        let Some((_, list)) = text[at + symbol.len()..].split_once('{') else { continue };
        let Some((list, _)) = list.split_once('}') else { continue };
        records.extend(list.split(',').map(|number| number.trim().parse().ok()).collect::<Option<Vec<u8>>>());
    }
    records
}

/// Kernels that both images know.
fn intersect(left: EffectTable, mut right: EffectTable) -> EffectTable {
    let kernels = left.kernels.into_iter().filter_map(|(name, effects)| {
        let joined = effects.join(&right.kernels.remove(&name)?)?;
        Some((name, joined))
    });
    EffectTable { kernels: kernels.collect() }
}

/// Kernels that either unit defines. Where both do (a template), either copy may be the one that runs.
pub(super) fn union(left: EffectTable, right: EffectTable) -> EffectTable {
    let mut kernels: BTreeMap<String, Option<KernelEffects>> =
        left.kernels.into_iter().map(|(name, effects)| (name, Some(effects))).collect();
    for (name, effects) in right.kernels {
        let entry = kernels.entry(name).or_insert_with(|| Some(effects.clone()));
        *entry = entry.take().and_then(|known| known.join(&effects));
    }
    let known = kernels.into_iter().filter_map(|(name, effects)| Some((name, effects?)));
    EffectTable { kernels: known.collect() }
}

/// A size or an offset of 64 bits.
fn offset(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(field(bytes, at)?)).ok()
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::super::ParamEffect;
    use super::*;

    const READS: ParamEffect = ParamEffect { reads: true, ..ParamEffect::NOTHING };
    const WRITES: ParamEffect = ParamEffect { writes: true, ..ParamEffect::NOTHING };
    const BOTH: ParamEffect = ParamEffect { reads: true, ..WRITES };

    fn table(kernels: &[(&str, ParamEffect)]) -> EffectTable {
        let kernels = kernels.iter().map(|(name, effect)| {
            ((*name).to_owned(), KernelEffects { params: vec![Some(*effect)], touches_other_memory: false })
        });
        EffectTable { kernels: kernels.collect() }
    }

    fn elf(tables: &[EffectTable]) -> Vec<u8> {
        let mut bytes = b"\x7fELF some headers and code".to_vec();
        tables.iter().for_each(|table| bytes.extend(record::encode(table)));
        bytes.extend(b"more code");
        bytes
    }

    fn ptx(table: &EffectTable) -> Vec<u8> {
        let numbers: Vec<_> = record::encode(table).iter().map(ToString::to_string).collect();
        let (count, list) = (numbers.len(), numbers.join(", "));
        format!(".version 8.8\n.global .align 16 .b8 __echo_effects[{count}] = {{{list}}};\n").into_bytes()
    }

    /// An entry of a fat binary.
    fn entry(kind: u16, arch: u32, flags: u64, data: &[u8]) -> Vec<u8> {
        let padded = data.len().next_multiple_of(8);
        let mut bytes = Vec::new();
        bytes.extend(kind.to_le_bytes());
        bytes.extend(0x0101_u16.to_le_bytes());
        bytes.extend(64_u32.to_le_bytes());
        bytes.extend((padded as u64).to_le_bytes());
        bytes.extend((data.len() as u32).to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(arch.to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(flags.to_le_bytes());
        bytes.resize(64, 0);
        bytes.extend(data);
        bytes.resize(64 + padded, 0);
        bytes
    }

    fn fatbin(entries: &[Vec<u8>]) -> Vec<u8> {
        let body = entries.concat();
        let mut bytes = FATBIN_MAGIC.to_vec();
        bytes.extend(1_u16.to_le_bytes());
        bytes.extend(16_u16.to_le_bytes());
        bytes.extend((body.len() as u64).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    #[test]
    fn the_join_over_all_architectures_counts() {
        let sm80 = entry(2, 80, 0x11, &elf(&[table(&[("k", READS), ("only80", READS)])]));
        let sm90 = entry(2, 90, 0x11, &elf(&[table(&[("k", WRITES)])]));
        assert_eq!(effects_of_container(&fatbin(&[sm80, sm90])), Ok(table(&[("k", BOTH)])));
    }

    #[test]
    fn one_architecture_without_a_record_makes_all_unknown() {
        let with = entry(2, 90, 0x11, &elf(&[table(&[("k", READS)])]));
        for (without, name) in [
            (entry(2, 80, 0x11, b"\x7fELF code"), "sm_80"),
            (entry(1, 90, 0x11, b".version 8.8\n.entry k() {}"), "compute_90"),
        ] {
            let found = effects_of_container(&fatbin(&[with.clone(), without]));
            assert_eq!(found, Err(FatbinError::NoRecord(name.to_owned())));
        }
    }

    #[test]
    fn ptx_is_read_plain_and_compressed() {
        let known = table(&[("k", READS)]);
        let text = ptx(&known);
        let packed =
            ruzstd::encoding::compress_to_vec(text.as_slice(), ruzstd::encoding::CompressionLevel::Uncompressed);
        for entry in [entry(1, 90, 0x11, &text), entry(1, 90, 0x8011, &packed)] {
            assert_eq!(effects_of_container(&fatbin(&[entry])), Ok(known.clone()));
        }
        let damaged = entry(1, 90, 0x8011, &packed[..packed.len() / 2]);
        assert_eq!(effects_of_container(&fatbin(&[damaged])), Err(FatbinError::Compressed("compute_90".to_owned())));
        let lz4 = entry(2, 90, 0x2011, b"whatever");
        assert_eq!(effects_of_container(&fatbin(&[lz4])), Err(FatbinError::Compressed("sm_90".to_owned())));
    }

    #[test]
    fn units_that_were_linked_add_up() {
        let image = elf(&[table(&[("a", READS), ("shared", READS)]), table(&[("b", WRITES), ("shared", WRITES)])]);
        assert_eq!(effects_of_container(&image), Ok(table(&[("a", READS), ("b", WRITES), ("shared", BOTH)])));
    }

    #[test]
    fn a_damaged_record_is_not_passed_over() {
        let mut image = elf(&[table(&[("k", READS)]), table(&[("l", READS)])]);
        let at = image.len() - 20;
        image[at] ^= 1;
        assert_eq!(effects_of_container(&image), Err(FatbinError::Record(RecordError::Checksum)));
    }

    #[test]
    fn an_image_of_the_cpu_device_is_an_elf_after_its_header() {
        let known = table(&[("k", WRITES)]);
        let elf = elf(std::slice::from_ref(&known));
        let mut image = uma_abi::IMAGE_MAGIC.to_vec();
        image.extend((elf.len() as u64).to_le_bytes());
        image.extend(elf);
        assert_eq!(effects_of_container(&image), Ok(known));
        assert!(effects_of_container(&image[..16]).is_err());
    }

    #[test]
    fn offload_binaries_are_read_one_after_the_other() {
        let offload = |image: &[u8]| {
            let size = (72 + image.len()).next_multiple_of(8);
            let mut bytes = OFFLOAD_MAGIC.to_vec();
            bytes.extend(1_u32.to_le_bytes());
            for number in [size as u64, 32, 40, 0x0002_0002, 72, 0, 72, image.len() as u64] {
                bytes.extend(number.to_le_bytes());
            }
            bytes.extend(image);
            bytes.resize(size, 0);
            bytes
        };
        let known = table(&[("k", READS)]);
        let one = offload(&elf(std::slice::from_ref(&known)));
        let other = offload(&elf(&[table(&[("k", READS), ("l", READS)])]));
        assert_eq!(effects_of_container(&[one.clone(), other].concat()), Ok(known));
        assert!(matches!(effects_of_container(&offload(b"BC\xc0\xde")), Err(FatbinError::Format(_))));
        assert!(matches!(effects_of_container(&offload(&one)), Err(FatbinError::Format(_))));
    }

    #[test]
    fn cut_off_and_strange_containers_are_errors() {
        let good = fatbin(&[entry(2, 90, 0x11, &elf(&[table(&[("k", READS)])]))]);
        for length in 0..good.len() {
            assert!(effects_of_container(&good[..length]).is_err(), "{length} bytes");
        }
        assert!(effects_of_container(b"not a container").is_err());
        assert_eq!(effects_of_container(&fatbin(&[])), Err(FatbinError::NoImage));
        assert!(effects_of_container(&fatbin(&[entry(8, 90, 0, b"new kind")])).is_err());
        assert!(effects_of_container(&[good, b"tail".to_vec()].concat()).is_err());
    }
}
