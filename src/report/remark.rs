//! The remark form: a short name and one line, for `-Rpass=echo-sr`, `-Rpass-missed=echo-sr` and `-fsave-optimization-record`.

use super::pair::{Outcome, PairReport};

/// A remark, without the compiler that shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// `true`: done (`-Rpass`); `false`: not done (`-Rpass-missed`).
    pub passed: bool,
    /// Stable name of the remark: `Merged`, `MergeLimit`, or the code of the first broken condition.
    pub name: String,
    /// The line.
    pub text: String,
}

/// The remark of a pair.
#[must_use]
pub fn of(pair: &PairReport) -> Remark {
    let (host, device) = (&pair.host, &pair.device);
    let names = format!("host buffer `{}` and device buffer `{}` ({})", host.name, device.name, device.site);
    match pair.outcome {
        Outcome::Merged => {
            let (copies, waits) = (pair.copies.len(), pair.waits.len());
            let text = format!("{names} are one buffer now: {copies} copies removed, {waits} waits kept [ESR101]");
            Remark { passed: true, name: "Merged".to_owned(), text }
        }
        Outcome::OverLimit => {
            let text = format!("{names} could be merged, but merge-limit is reached [ESR102]");
            Remark { passed: false, name: "MergeLimit".to_owned(), text }
        }
        Outcome::Declined => {
            let reasons: Vec<_> = pair
                .reasons
                .iter()
                .map(|reason| format!("{} at {} [{} {}]", reason.message, reason.at, reason.number, reason.code))
                .collect();
            let name = pair.reasons.first().map_or_else(|| "Declined".to_owned(), |reason| reason.code.clone());
            Remark { passed: false, name, text: format!("{names} are not merged: {}", reasons.join("; ")) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pair::samples;
    use super::*;

    #[test]
    fn merged_and_declined_pairs_have_their_remark() {
        let merged = of(&samples::merged());
        assert!(merged.passed && merged.name == "Merged");
        assert!(
            merged.text.contains("`h`") && merged.text.contains("a.cu:4") && merged.text.contains("2 copies removed")
        );
        let declined = of(&samples::declined());
        assert!(!declined.passed);
        assert_eq!(declined.name, "S1-device-value-overwritten");
        assert!(declined.text.contains("ESR210") && declined.text.contains("ESR220"), "{}", declined.text);
    }
}
