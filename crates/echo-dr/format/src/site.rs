//! Call sites β: a name for a place in the program that is the same in every run.
//!
//! A site is the 64-bit FNV-1a hash of the top return addresses of the stack, each as (build-id of the module, offset in it). Absolute addresses
//! change from run to run (ASLR), offsets do not. The hash must be fed in the same way everywhere, so it is made here only.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How many return addresses make a site.
pub const SITE_DEPTH: usize = 16;

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// 64-bit FNV-1a. Two texts of one length that differ in one byte always have different hashes.
#[derive(Clone, Copy, Debug)]
pub struct Fnv1a(u64);

impl Default for Fnv1a {
    fn default() -> Self {
        Self(OFFSET_BASIS)
    }
}

impl Fnv1a {
    /// Goes on with `bytes`.
    pub fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }

    /// The hash of all that was written.
    #[must_use]
    pub fn finish(self) -> u64 {
        self.0
    }

    /// The hash of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> u64 {
        let mut hash = Self::default();
        hash.write(bytes);
        hash.finish()
    }
}

/// A call site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Hex", into = "String")]
pub struct Site(pub u64);

impl Site {
    /// The site of a stack of (hash of the module's build-id, offset), innermost frame first. Frames beyond [`SITE_DEPTH`] do not count.
    pub fn of_frames(frames: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut hash = Fnv1a::default();
        for (module, offset) in frames.into_iter().take(SITE_DEPTH) {
            hash.write(&module.to_le_bytes());
            hash.write(&offset.to_le_bytes());
        }
        Self(hash.finish())
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A text that is no hash.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a hash has 16 lower-case hex digits")]
pub struct BadHash;

impl FromStr for Site {
    type Err = BadHash;

    fn from_str(text: &str) -> Result<Self, BadHash> {
        parse_hash(text).map(Self)
    }
}

impl From<Site> for String {
    fn from(site: Site) -> Self {
        site.to_string()
    }
}

/// A hash of contents (a file, a plan), written as 16 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Hex", into = "String")]
pub struct Hash64(pub u64);

impl fmt::Display for Hash64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl From<Hash64> for String {
    fn from(hash: Hash64) -> Self {
        hash.to_string()
    }
}

/// The text of a hash in a file.
#[derive(Deserialize)]
struct Hex(String);

impl TryFrom<Hex> for Site {
    type Error = BadHash;

    fn try_from(hex: Hex) -> Result<Self, BadHash> {
        parse_hash(&hex.0).map(Self)
    }
}

impl TryFrom<Hex> for Hash64 {
    type Error = BadHash;

    fn try_from(hex: Hex) -> Result<Self, BadHash> {
        parse_hash(&hex.0).map(Self)
    }
}

/// Exactly the form that is written, so that a hash has one text.
fn parse_hash(text: &str) -> Result<u64, BadHash> {
    let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if text.len() != 16 || !digits {
        return Err(BadHash);
    }
    u64::from_str_radix(text, 16).map_err(|_| BadHash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv1a_gives_the_published_values() {
        assert_eq!(Fnv1a::of(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(Fnv1a::of(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(Fnv1a::of(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn a_site_depends_on_each_of_its_frames_and_on_no_other() {
        let frames: Vec<(u64, u64)> = (0..20).map(|i| (i % 3, 64 * i)).collect();
        let site = Site::of_frames(frames.clone());
        for changed in 0..frames.len() {
            let mut other = frames.clone();
            other[changed].1 += 1;
            assert_eq!(Site::of_frames(other) == site, changed >= SITE_DEPTH, "frame {changed}");
        }
    }

    #[test]
    fn a_site_has_one_text() {
        let site = Site(0xab);
        assert_eq!(site.to_string(), "00000000000000ab");
        assert_eq!("00000000000000ab".parse(), Ok(site));
        for wrong in ["ab", "00000000000000AB", "+0000000000000ab", "00000000000000ab0", "0x000000000000ab", ""] {
            assert_eq!(wrong.parse::<Site>(), Err(BadHash), "{wrong}");
        }
    }
}
