//! What the command asks of the library, in the environment.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `ECHO_DR_MODE` | `profile`, `validate` or `optimise`; without it, or with anything else, the library only forwards |
//! | `ECHO_DR_TRACE` | file that profile and validate write, and optimise where it is set |
//! | `ECHO_DR_PLAN` | plan that validate and optimise follow |
//! | `ECHO_DR_COUNTERS` | file for the counters, at exit |
//! | `ECHO_DR_THETA_MIN` | θ_min in bytes, of profile |
//! | `ECHO_DR_TIMES` | file for the times at which the plan's loop site was passed, in optimise: one number a line, nanoseconds |
//! | `ECHO_DR_EXCLUSIVE` | `1`: validate also watches for host accesses while any GPU work is in flight |

use std::ffi::OsString;
use std::path::PathBuf;

use echo_dr_engine::DEFAULT_THRESHOLD;
use echo_dr_format::trace::Mode;

/// The settings of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) mode: Mode,
    pub(crate) trace: Option<PathBuf>,
    pub(crate) plan: Option<PathBuf>,
    pub(crate) counters: Option<PathBuf>,
    pub(crate) threshold: usize,
    pub(crate) times: Option<PathBuf>,
    pub(crate) exclusive: bool,
}

impl Settings {
    /// Reads them; `Ok(None)` where no mode is asked for.
    ///
    /// # Errors
    /// A sentence on the variable that can't be understood.
    pub(crate) fn read(get: impl Fn(&str) -> Option<OsString>) -> Result<Option<Self>, String> {
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        let Some(mode) = get("ECHO_DR_MODE") else { return Ok(None) };
        let mode = match mode.to_str() {
            Some("profile") => Mode::Profile,
            Some("validate") => Mode::Validate,
            Some("optimise") => Mode::Optimise,
            _ => return Err(format!("ECHO_DR_MODE={} is no mode; valid: profile, validate, optimise", mode.display())),
        };
        let threshold = match get("ECHO_DR_THETA_MIN") {
            None => usize::try_from(DEFAULT_THRESHOLD).unwrap_or(usize::MAX),
            Some(text) => match text.to_str().and_then(|text| text.parse().ok()) {
                Some(bytes) if bytes > 0 => bytes,
                _ => return Err(format!("ECHO_DR_THETA_MIN={} is no number of bytes above 0", text.display())),
            },
        };
        let path = |name| get(name).map(PathBuf::from);
        let is_on = |name| get(name).is_some_and(|value| value != "0");
        let settings = Self {
            mode,
            trace: path("ECHO_DR_TRACE"),
            plan: path("ECHO_DR_PLAN"),
            counters: path("ECHO_DR_COUNTERS"),
            threshold,
            times: path("ECHO_DR_TIMES"),
            exclusive: is_on("ECHO_DR_EXCLUSIVE"),
        };
        let missing = |what| Err(format!("ECHO_DR_MODE is set, {what} is not"));
        if mode != Mode::Optimise && settings.trace.is_none() {
            return missing("ECHO_DR_TRACE");
        }
        if mode != Mode::Profile && settings.plan.is_none() {
            return missing("ECHO_DR_PLAN");
        }
        Ok(Some(settings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Settings>, String> {
        Settings::read(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn without_a_mode_nothing_is_asked_for() {
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[("ECHO_DR_MODE", ""), ("ECHO_DR_TRACE", "t")]), Ok(None));
    }

    #[test]
    fn each_mode_needs_its_files() {
        let profile = [("ECHO_DR_MODE", "profile"), ("ECHO_DR_TRACE", "t"), ("ECHO_DR_THETA_MIN", "4096")];
        let settings = read(&profile).expect("valid").expect("a mode");
        assert_eq!((settings.mode, settings.threshold), (Mode::Profile, 4096));
        for wrong in
            [&profile[..1], &[("ECHO_DR_MODE", "validate"), ("ECHO_DR_TRACE", "t")], &[("ECHO_DR_MODE", "optimise")]]
        {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
        assert!(read(&[("ECHO_DR_MODE", "optimise"), ("ECHO_DR_PLAN", "p")]).is_ok());
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        assert!(read(&[("ECHO_DR_MODE", "fast")]).expect_err("no mode").contains("fast"));
        let zero = [("ECHO_DR_MODE", "profile"), ("ECHO_DR_TRACE", "t"), ("ECHO_DR_THETA_MIN", "0")];
        assert!(read(&zero).expect_err("no size").contains("ECHO_DR_THETA_MIN=0"));
    }
}
