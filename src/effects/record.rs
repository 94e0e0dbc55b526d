//! The bytes in which the effects of a translation unit travel from the device half to the host half.
//!
//! ```text
//! 0   16  magic
//! 16   4  version, little endian
//! 20   4  length of the payload in bytes, little endian
//! 24   8  FNV-1a (64 bits) of the payload, little endian
//! 32   …  payload: an EffectTable as JSON
//! ```
//!
//! A record is a constant of the device module; it ends up somewhere in the image that the device toolchain makes, so it is found by its
//! magic and believed for its checksum.

use super::EffectTable;

/// Name of the device constant that holds the record. It has internal linkage, so that linking several units makes no clash.
pub const SYMBOL: &str = "__echo_effects";

/// First bytes of a record.
pub const MAGIC: [u8; 16] = *b"\x7fECHO-SR-EFFECT\0";

/// Version of the format and of what the claims in it mean.
pub const VERSION: u32 = 2;

const HEADER: usize = 32;

/// What is wrong with bytes that begin like a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The image ends inside the record.
    #[error("an effects record is cut off")]
    Truncated,
    /// Another version of Echo wrote it.
    #[error(
        "an effects record has version {0}, this Echo reads version {VERSION}: compile both halves with the same plugin"
    )]
    Version(u32),
    /// It was changed.
    #[error("an effects record is damaged (its checksum is wrong)")]
    Checksum,
    /// The payload is no table.
    #[error("an effects record can't be read: {0}")]
    Payload(String),
}

/// The record of a table.
///
/// # Panics
/// Never for tables of real modules: the payload would have to pass 4 GiB.
#[must_use]
pub fn encode(table: &EffectTable) -> Vec<u8> {
    let payload = serde_json::to_vec(table).expect("a table of strings and numbers is JSON");
    let length = u32::try_from(payload.len()).expect("a record is below 4 GiB");
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(checksum(&payload).to_le_bytes());
    bytes.extend(payload);
    bytes
}

/// Every record in an image, in order.
pub fn scan(image: &[u8]) -> Vec<Result<EffectTable, RecordError>> {
    let mut found = Vec::new();
    let mut start = 0;
    while let Some(offset) = find(&image[start..], &MAGIC) {
        found.push(decode(&image[start + offset..]));
        start += offset + MAGIC.len();
    }
    found
}

/// Reads the record that `bytes` begin with.
fn decode(bytes: &[u8]) -> Result<EffectTable, RecordError> {
    let version = u32::from_le_bytes(field(bytes, 16)?);
    if version != VERSION {
        return Err(RecordError::Version(version));
    }
    let length = u32::from_le_bytes(field(bytes, 20)?) as usize;
    let sum = u64::from_le_bytes(field(bytes, 24)?);
    let payload = bytes.get(HEADER..).and_then(|rest| rest.get(..length)).ok_or(RecordError::Truncated)?;
    if checksum(payload) != sum {
        return Err(RecordError::Checksum);
    }
    serde_json::from_slice(payload).map_err(|error| RecordError::Payload(error.to_string()))
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], RecordError> {
    bytes.get(at..at + N).and_then(|slice| slice.try_into().ok()).ok_or(RecordError::Truncated)
}

/// Where `needle` first occurs. (The first byte is rare in text and code, so looking for it first is quick.)
pub(super) fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    let first = *needle.first()?;
    let mut start = 0;
    while let Some(offset) = haystack[start..].iter().position(|byte| *byte == first) {
        if haystack[start + offset..].starts_with(needle) {
            return Some(start + offset);
        }
        start += offset + 1;
    }
    None
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::super::{KernelEffects, ParamEffect};
    use super::*;

    fn table() -> EffectTable {
        let read_only = ParamEffect { reads: true, writes: false, captures: false, writes_all: None };
        let kernel = KernelEffects { params: vec![None, Some(read_only)], touches_other_memory: false };
        EffectTable { kernels: [("_Z1kPf".to_owned(), kernel)].into() }
    }

    #[test]
    fn a_record_is_found_anywhere_in_an_image() {
        let mut image = b"\x7fELF some code \x7fECHO".to_vec();
        image.extend(encode(&table()));
        image.extend([0; 7]);
        image.extend(encode(&EffectTable::default()));
        assert_eq!(scan(&image), [Ok(table()), Ok(EffectTable::default())]);
        assert_eq!(scan(b"\x7fELF"), []);
    }

    #[test]
    fn the_checksum_is_fnv_1a() {
        // The published value for the text "a".
        assert_eq!(checksum(b"a"), 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn a_change_of_any_byte_is_noticed() {
        let good = encode(&table());
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert_ne!(scan(&bad), [Ok(table())], "byte {at}");
        }
    }

    #[test]
    fn each_fault_has_its_error() {
        let good = encode(&table());
        assert_eq!(scan(&good[..good.len() - 1]), [Err(RecordError::Truncated)]);
        assert_eq!(scan(&good[..18]), [Err(RecordError::Truncated)]);
        let mut newer = good.clone();
        newer[16] = 9;
        assert_eq!(scan(&newer), [Err(RecordError::Version(9))]);
        let mut damaged = good;
        *damaged.last_mut().unwrap() ^= 4;
        assert_eq!(scan(&damaged), [Err(RecordError::Checksum)]);
    }
}
