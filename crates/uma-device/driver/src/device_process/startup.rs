//! What the program tells the device process when it starts it.

use crate::control::Control;
use crate::settings::{Link, Schedule};
use std::ffi::CString;
use std::os::fd::RawFd;

/// Descriptors of the device process: control block, socket, then a file for each region.
pub const FIRST_FD: RawFd = 3;

/// What library and device process must agree on: a library from another build lays the shared block out otherwise.
fn build() -> String {
    format!("{}-{}", env!("CARGO_PKG_VERSION"), size_of::<Control>())
}

/// The arguments of the device process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartOptions {
    /// Process id of the program.
    pub host_pid: i32,
    /// When work runs.
    pub schedule: Schedule,
    /// What lies between the memories.
    pub link: Link,
}

impl StartOptions {
    /// As command-line arguments.
    pub fn to_arguments(&self) -> Vec<CString> {
        let schedule = match self.schedule {
            Schedule::Eager => "eager".to_owned(),
            Schedule::Lazy => "lazy".to_owned(),
            Schedule::Random(seed) => format!("random:{seed}"),
        };
        let link = match self.link {
            Link::Uma => "uma",
            Link::Discrete => "discrete",
        };
        // None of these texts holds a NUL, so none is left out.
        [build(), self.host_pid.to_string(), schedule, link.to_owned()]
            .into_iter()
            .filter_map(|s| CString::new(s).ok())
            .collect()
    }

    /// From command-line arguments; `None` when they are not ours.
    pub fn from_arguments(mut arguments: impl Iterator<Item = String>) -> Option<StartOptions> {
        let same_build = arguments.next()? == build();
        let host_pid = arguments.next()?.parse().ok().filter(|_| same_build)?;
        let schedule = match arguments.next()?.as_str() {
            "eager" => Schedule::Eager,
            "lazy" => Schedule::Lazy,
            other => Schedule::Random(other.strip_prefix("random:")?.parse().ok()?),
        };
        let link = match arguments.next()?.as_str() {
            "uma" => Link::Uma,
            "discrete" => Link::Discrete,
            _ => return None,
        };
        arguments.next().is_none().then_some(StartOptions { host_pid, schedule, link })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_survive_the_command_line() {
        for schedule in [Schedule::Eager, Schedule::Lazy, Schedule::Random(u64::MAX)] {
            let options = StartOptions { host_pid: 77, schedule, link: Link::Discrete };
            let arguments = options.to_arguments().into_iter().map(|s| s.into_string().unwrap());
            assert_eq!(StartOptions::from_arguments(arguments), Some(options));
        }
        let other_build = ["0.0.0-1", "77", "eager", "uma"].map(str::to_owned);
        assert_eq!(StartOptions::from_arguments(other_build.into_iter()), None);
    }
}
