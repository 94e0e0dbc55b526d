//! The modes of the device, read once from `UMA_DEVICE_*`. A value that is not known is an error that names the known ones.

use crate::layout::REGION_BYTES;
use crate::mapping::page_size;
use std::fmt;

/// Who may touch managed memory while the device works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The host may not (`concurrentManagedAccess` is 0).
    Exclusive,
    /// Both may.
    Concurrent,
}

/// When queued work runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// As soon as it can.
    Eager,
    /// When a wait needs it, and only what that wait needs.
    Lazy,
    /// Ready streams are interleaved by a seed, and so is how much runs at each call.
    Random(u64),
}

/// What lies between host and device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// One DRAM.
    Uma,
    /// A slow link: copies are throttled, and before each launch that follows a time in which the host could touch managed memory, all of
    /// it moves to the device at the speed of the link (as before Pascal; what the host really touched is not looked at).
    Discrete,
}

/// All modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `UMA_DEVICE_ACCESS`
    pub access: Access,
    /// `UMA_DEVICE_SCHEDULE`
    pub schedule: Schedule,
    /// `UMA_DEVICE_LINK`
    pub link: Link,
    /// `UMA_DEVICE_POISON`: new memory is filled with [`POISON`].
    pub poison: bool,
    /// `UMA_DEVICE_MEMORY`: bytes that the device has; `None` is what the machine has. Little memory also takes little address space, of
    /// which an emulator (qemu-user) keeps a table.
    pub memory: Option<usize>,
}

/// What fills new memory with `UMA_DEVICE_POISON=1`: as a float it is about -1.3e7, as an integer it is clearly no index.
pub const POISON: u8 = 0xCB;

/// A variable with a value that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSetting {
    /// Name of the variable.
    pub variable: &'static str,
    /// Its value.
    pub value: String,
    /// What it may be.
    pub valid: &'static str,
}

impl fmt::Display for BadSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={} is not known; it may be {}", self.variable, self.value, self.valid)
    }
}

impl std::error::Error for BadSetting {}

impl Settings {
    /// Bytes of memory that the device has: where nothing is said, those of this machine are the device's too.
    pub fn total_memory(&self) -> usize {
        self.memory.unwrap_or_else(|| {
            // SAFETY: sysconf has no preconditions.
            let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
            usize::try_from(pages).unwrap_or(0).saturating_mul(page_size())
        })
    }

    /// Reads the environment of this process.
    pub fn from_environment() -> Result<Settings, BadSetting> {
        Settings::from_lookup(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    /// Reads from `lookup`; a variable that is unset or empty has its default.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Settings, BadSetting> {
        let access = choose(&lookup, "UMA_DEVICE_ACCESS", "exclusive or concurrent", |text| match text {
            "" | "exclusive" => Some(Access::Exclusive),
            "concurrent" => Some(Access::Concurrent),
            _ => None,
        })?;
        let schedule =
            choose(&lookup, "UMA_DEVICE_SCHEDULE", "eager, lazy or random:SEED (a whole number)", |text| match text {
                "" | "eager" => Some(Schedule::Eager),
                "lazy" => Some(Schedule::Lazy),
                _ => text.strip_prefix("random:")?.parse().ok().map(Schedule::Random),
            })?;
        let link = choose(&lookup, "UMA_DEVICE_LINK", "uma or discrete", |text| match text {
            "" | "uma" => Some(Link::Uma),
            "discrete" => Some(Link::Discrete),
            _ => None,
        })?;
        let poison = choose(&lookup, "UMA_DEVICE_POISON", "0 or 1", |text| match text {
            "" | "0" => Some(false),
            "1" => Some(true),
            _ => None,
        })?;
        let memory =
            choose(&lookup, "UMA_DEVICE_MEMORY", "a number of bytes, with K, M or G behind it", |text| match text {
                "" => Some(None),
                _ => bytes(text).filter(|bytes| (1..=REGION_BYTES / 2).contains(bytes)).map(Some),
            })?;
        Ok(Settings { access, schedule, link, poison, memory })
    }
}

/// `512M` → bytes.
fn bytes(text: &str) -> Option<usize> {
    let shift = match text.chars().last()? {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        _ => 0,
    };
    let digits = if shift == 0 { text } else { &text[..text.len() - 1] };
    digits.parse::<usize>().ok()?.checked_mul(1 << shift)
}

fn choose<T>(
    lookup: &impl Fn(&str) -> Option<String>,
    variable: &'static str,
    valid: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, BadSetting> {
    let value = lookup(variable).unwrap_or_default();
    parse(&value).ok_or(BadSetting { variable, value, valid })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: &'static str) -> Result<Settings, BadSetting> {
        Settings::from_lookup(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn defaults_are_the_strict_ones() {
        let settings = Settings::from_lookup(|_| None).unwrap();
        assert_eq!(settings.access, Access::Exclusive);
        assert_eq!(settings.schedule, Schedule::Eager);
        assert_eq!(settings.link, Link::Uma);
        assert!(!settings.poison);
        assert_eq!(settings.memory, None);
    }

    #[test]
    fn known_values() {
        assert_eq!(with("UMA_DEVICE_SCHEDULE", "random:17").unwrap().schedule, Schedule::Random(17));
        assert_eq!(with("UMA_DEVICE_SCHEDULE", "lazy").unwrap().schedule, Schedule::Lazy);
        assert_eq!(with("UMA_DEVICE_ACCESS", "concurrent").unwrap().access, Access::Concurrent);
        assert_eq!(with("UMA_DEVICE_LINK", "discrete").unwrap().link, Link::Discrete);
        for (text, bytes) in [("4096", 4096), ("3K", 3 << 10), ("512M", 512 << 20), ("24G", 24 << 30)] {
            assert_eq!(with("UMA_DEVICE_MEMORY", text).unwrap().memory, Some(bytes));
        }
    }

    #[test]
    fn unknown_value_names_the_known_ones() {
        for (name, value, valid) in [
            ("UMA_DEVICE_SCHEDULE", "random:x", "eager, lazy or random:SEED"),
            ("UMA_DEVICE_ACCESS", "shared", "exclusive or concurrent"),
            ("UMA_DEVICE_LINK", "pcie", "uma or discrete"),
            ("UMA_DEVICE_POISON", "yes", "0 or 1"),
            ("UMA_DEVICE_MEMORY", "much", "a number of bytes"),
            ("UMA_DEVICE_MEMORY", "0", "a number of bytes"),
            ("UMA_DEVICE_MEMORY", "99999999G", "a number of bytes"),
        ] {
            let text = with(name, value).unwrap_err().to_string();
            assert!(text.contains(name) && text.contains(value) && text.contains(valid), "{text}");
        }
    }
}
