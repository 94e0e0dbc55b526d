//! The remark form: a short name and one line, for `-Rpass=echo-sr`, `-Rpass-missed=echo-sr` and `-fsave-optimization-record`.

use super::pair::{Outcome, PairReport};

/// A remark, without the compiler that shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// `true`: done (`-Rpass`); `false`: not done (`-Rpass-missed`).
    pub passed: bool,
    /// Stable name of the remark: `Merged`, `Mergeable`, `MergeLimit`, or the code of the first broken condition.
    pub name: String,
    /// The line, in pieces: what is between the facts, and the facts with the keys that they have in the optimization record.
    pub pieces: Vec<Piece>,
}

/// A piece of a remark's line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its key in the optimization record; `String`, as LLVM calls it, where it is no fact of its own.
    pub key: &'static str,
    /// What is shown.
    pub text: String,
}

impl Remark {
    /// The whole line.
    #[must_use]
    pub fn text(&self) -> String {
        self.pieces.iter().map(|piece| piece.text.as_str()).collect()
    }

    fn say(&mut self, text: &str) {
        self.fact("String", text);
    }

    fn fact(&mut self, key: &'static str, text: &str) {
        self.pieces.push(Piece { key, text: text.to_owned() });
    }
}

/// The remark of a pair.
#[must_use]
pub fn of(pair: &PairReport) -> Remark {
    let (passed, name) = match pair.outcome {
        Outcome::Merged => (true, "Merged"),
        Outcome::Mergeable => (false, "Mergeable"),
        Outcome::OverLimit => (false, "MergeLimit"),
        Outcome::Declined => (false, pair.reasons.first().map_or("Declined", |reason| reason.code.as_str())),
    };
    let mut remark = Remark { passed, name: name.to_owned(), pieces: Vec::new() };
    remark.say("host buffer `");
    remark.fact("HostBuffer", &pair.host.name);
    remark.say("` and device buffer `");
    remark.fact("DeviceBuffer", &pair.device.name);
    remark.say("` (");
    remark.fact("DeviceAllocation", &pair.device.site.to_string());
    remark.say(") ");
    match pair.outcome {
        Outcome::Merged => {
            remark.say("are one buffer now: ");
            remark.fact("CopiesRemoved", &pair.copies.len().to_string());
            remark.say(" copies removed, ");
            remark.fact("WaitsKept", &pair.waits.len().to_string());
            remark.say(" waits kept");
        }
        Outcome::Mergeable => remark.say("can be merged"),
        Outcome::OverLimit => remark.say("could be merged, but merge-limit is reached"),
        Outcome::Declined => remark.say("are not merged: "),
    }
    if let Some(number) = pair.number() {
        remark.say(" [");
        remark.fact("Number", number);
        remark.say("]");
    }
    for (index, reason) in pair.reasons.iter().enumerate() {
        remark.say(if index == 0 { "" } else { "; " });
        remark.fact("Reason", &reason.message);
        remark.say(" at ");
        remark.fact("At", &reason.at.to_string());
        remark.say(" [");
        remark.fact("Number", &reason.number);
        remark.say(" ");
        remark.fact("Code", &reason.code);
        remark.say("]");
    }
    remark.pieces.retain(|piece| piece.key != "String" || !piece.text.is_empty());
    remark
}

#[cfg(test)]
mod tests {
    use echo_report::samples;

    use super::*;

    #[test]
    fn merged_and_declined_pairs_have_their_remark() {
        let merged = of(&samples::merged());
        assert!(merged.passed && merged.name == "Merged");
        assert_eq!(
            merged.text(),
            "host buffer `h` and device buffer `d` (a.cu:4) are one buffer now: 2 copies removed, 1 waits kept [ESR101]"
        );
        let declined = of(&samples::declined());
        assert!(!declined.passed);
        assert_eq!(declined.name, "S1-device-value-overwritten");
        assert!(declined.text().contains("ESR210") && declined.text().contains("ESR220"), "{}", declined.text());
    }

    #[test]
    fn the_facts_have_keys_of_their_own() {
        let declined = of(&samples::declined());
        let facts = |key| declined.pieces.iter().filter(move |piece| piece.key == key).map(|piece| piece.text.as_str());
        assert_eq!(facts("HostBuffer").collect::<Vec<_>>(), ["h"]);
        assert_eq!(facts("Code").collect::<Vec<_>>(), ["S1-device-value-overwritten", "S2-kernel-pending"]);
        assert_eq!(facts("At").collect::<Vec<_>>(), ["a.cu:8", "a.cu:10"]);
    }
}
