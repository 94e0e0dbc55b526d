//! Options of the pass, and their one syntax: `name=value` or `name`, separated by `;`.
//!
//! `opt -passes='echo-sr<target=managed;repair=off>'` and the environment variable `ECHO_SR_OPTIONS` take the same text.

use std::path::PathBuf;

use crate::analysis::{self, AccessMode, Target};

/// What a user can choose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `off`: the pass leaves every module as it is.
    pub off: bool,
    /// `target`, `access`, `repair`, `theta-min`: what the decision depends on.
    pub analysis: analysis::Options,
    /// `report`: one JSON object a pair is appended to this file.
    pub report: Option<PathBuf>,
    /// `merge-limit`: at most this many pairs of a module are merged, to bisect a fault.
    pub merge_limit: Option<usize>,
    /// `analyse-only`: pairs are judged and reported, nothing is changed.
    pub analyse_only: bool,
    /// `verbose`: the text report goes to standard error.
    pub verbose: bool,
}

/// Why a text is not a list of options. Each message names what is valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// No such option.
    #[error("unknown option `{0}`; valid are {VALID}")]
    Unknown(String),
    /// The option has no such value.
    #[error("option `{name}` can't be `{value}`; valid: {valid}")]
    Value {
        /// The option.
        name: &'static str,
        /// What was given.
        value: String,
        /// What can be given.
        valid: &'static str,
    },
}

/// Every option, for messages.
const VALID: &str = "target=managed|adaptive, access=exclusive|concurrent, repair=on|off, theta-min=BYTES, report=FILE, merge-limit=N, \
                     analyse-only, verbose, off";

impl Options {
    /// Reads `text`.
    ///
    /// # Errors
    /// The first thing in `text` that is no option; the message says what is valid.
    pub fn parse(text: &str) -> Result<Self, OptionsError> {
        let mut options = Self::default();
        for item in text.split(';').map(str::trim).filter(|item| !item.is_empty()) {
            let (name, value) = match item.split_once('=') {
                Some((name, value)) => (name.trim(), Some(value.trim())),
                None => (item, None),
            };
            options.set(item, name, value)?;
        }
        Ok(options)
    }

    fn set(&mut self, item: &str, name: &str, value: Option<&str>) -> Result<(), OptionsError> {
        let wrong = |name, valid| OptionsError::Value { name, value: value.unwrap_or("(nothing)").to_owned(), valid };
        match (name, value) {
            ("off", None) => self.off = true,
            ("verbose", None) => self.verbose = true,
            ("analyse-only", None) => self.analyse_only = true,
            ("target", Some("managed")) => self.analysis.target = Target::Managed,
            ("target", Some("adaptive")) => self.analysis.target = Target::Adaptive,
            ("target", _) => return Err(wrong("target", "managed, adaptive")),
            ("access", Some("exclusive")) => self.analysis.access = AccessMode::Exclusive,
            ("access", Some("concurrent")) => self.analysis.access = AccessMode::Concurrent,
            ("access", _) => return Err(wrong("access", "exclusive, concurrent")),
            ("repair", Some("on")) => self.analysis.repair = true,
            ("repair", Some("off")) => self.analysis.repair = false,
            ("repair", _) => return Err(wrong("repair", "on, off")),
            ("theta-min", value) => {
                self.analysis.theta_min =
                    number(value).ok_or_else(|| wrong("theta-min", "a number of bytes, 0 or more"))?;
            }
            ("merge-limit", value) => {
                let limit = number(value).ok_or_else(|| wrong("merge-limit", "a number of pairs, 0 or more"))?;
                self.merge_limit = Some(limit);
            }
            ("report", Some(file)) if !file.is_empty() => self.report = Some(file.into()),
            ("report", _) => return Err(wrong("report", "the path of a file")),
            ("off", _) => return Err(wrong("off", "it takes no value")),
            ("verbose", _) => return Err(wrong("verbose", "it takes no value")),
            ("analyse-only", _) => return Err(wrong("analyse-only", "it takes no value")),
            _ => return Err(OptionsError::Unknown(item.to_owned())),
        }
        Ok(())
    }
}

fn number<N: std::str::FromStr>(value: Option<&str>) -> Option<N> {
    value?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_read() {
        let text = "target=managed; access=concurrent;repair=on;theta-min=0;report=/tmp/a b.jsonl;merge-limit=3;analyse-only;verbose;off;";
        let expected = Options {
            off: true,
            analysis: analysis::Options {
                target: Target::Managed,
                access: AccessMode::Concurrent,
                repair: true,
                theta_min: 0,
                max_merges: None,
            },
            report: Some("/tmp/a b.jsonl".into()),
            merge_limit: Some(3),
            analyse_only: true,
            verbose: true,
        };
        assert_eq!(Options::parse(text), Ok(expected));
        assert_eq!(Options::parse(" ; "), Ok(Options::default()));
        let adaptive = Options::parse("target=adaptive").map(|options| options.analysis.target);
        assert_eq!(adaptive, Ok(Target::Adaptive));
    }

    #[test]
    fn an_unknown_option_is_named_with_the_valid_ones() {
        let message = Options::parse("repair=on;trget=managed").unwrap_err().to_string();
        assert!(message.contains("`trget=managed`"), "{message}");
        for name in
            ["target", "access", "repair", "theta-min", "report", "merge-limit", "analyse-only", "verbose", "off"]
        {
            assert!(message.contains(name), "{message} does not name {name}");
        }
    }

    #[test]
    fn a_wrong_value_is_named_with_the_valid_ones() {
        for (text, part) in [
            ("access=shared", "exclusive, concurrent"),
            ("access", "exclusive, concurrent"),
            ("repair=yes", "on, off"),
            ("theta-min=-1", "bytes"),
            ("theta-min=200K", "bytes"),
            ("theta-min", "bytes"),
            ("merge-limit=all", "pairs"),
            ("report=", "path"),
            ("target=mapped", "managed, adaptive"),
            ("off=1", "no value"),
            ("analyse-only=on", "no value"),
        ] {
            let message = Options::parse(text).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
