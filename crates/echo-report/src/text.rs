//! The text form: one block a pair, for people.

use std::fmt::{self, Display, Formatter};

use crate::pair::{Outcome, PairReport};

impl Display for PairReport {
    /// ```text
    /// figure1.cu:12 h_a <-> figure1.cu:14 d_a in main: merged (ESR101)
    ///   size         1048576 bytes
    ///   copies gone  figure1.cu:20, figure1.cu:26
    ///   waits kept   figure1.cu:26 (device)
    /// ```
    /// and for a declined pair, for each broken condition, its number and code, its place, its sentence, the path that shows it and what
    /// would help.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { host, device, .. } = self;
        writeln!(
            f,
            "{} {} <-> {} {} in {}: {}",
            host.site,
            host.name,
            device.site,
            device.name,
            self.function,
            self.headline()
        )?;
        match self.bytes {
            Some(bytes) => writeln!(f, "  size         {bytes} bytes")?,
            None => writeln!(f, "  size         known at run time")?,
        }
        if let Some(saved) = self.saved_per_iteration {
            let verb = if self.outcome == Outcome::Declined { "would save" } else { "saves" };
            writeln!(f, "  {verb:<11}  {saved} bytes each time around the loop")?;
        }
        let copies: Vec<_> = self.copies.iter().map(ToString::to_string).collect();
        let title = if self.outcome == Outcome::Merged { "copies gone" } else { "copies     " };
        writeln!(f, "  {title}  {}", if copies.is_empty() { "none".to_owned() } else { copies.join(", ") })?;
        let waits: Vec<_> = self.waits.iter().map(|wait| format!("{} ({})", wait.site, wait.scope)).collect();
        if !waits.is_empty() {
            writeln!(f, "  waits kept   {}", waits.join(", "))?;
        }
        for note in &self.notes {
            writeln!(f, "  note         {note}")?;
        }
        for reason in &self.reasons {
            writeln!(f, "  {} {} at {}: {}", reason.number, reason.code, reason.at, reason.message)?;
            for step in &reason.witness {
                writeln!(f, "    {}: {}", step.site, step.text)?;
            }
            if let Some(suggestion) = &reason.suggestion {
                writeln!(f, "    repair: {suggestion}")?;
            }
            writeln!(f, "    help: {}", reason.help)?;
        }
        Ok(())
    }
}

impl PairReport {
    /// The number of what became of it (`ESR101` …); a declined pair has one a reason instead.
    #[must_use]
    pub fn number(&self) -> Option<&'static str> {
        match self.outcome {
            Outcome::Merged => Some("ESR101"),
            Outcome::OverLimit => Some("ESR102"),
            Outcome::Mergeable => Some("ESR103"),
            Outcome::Declined => None,
        }
    }

    /// The verdict in a few words, with its number.
    #[must_use]
    pub fn headline(&self) -> String {
        let first = self.reasons.first();
        match self.outcome {
            Outcome::Merged => "merged (ESR101)".to_owned(),
            Outcome::OverLimit => "could be merged, but merge-limit is reached (ESR102)".to_owned(),
            Outcome::Mergeable => "can be merged (ESR103)".to_owned(),
            Outcome::Declined => match (first, self.reasons.len()) {
                (None, _) => "declined".to_owned(),
                (Some(reason), 1) => format!("declined, {} ({})", reason.code, reason.number),
                (Some(reason), count) => {
                    format!("declined, {} ({}) and {} more", reason.code, reason.number, count - 1)
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::samples;

    #[test]
    fn a_merged_pair_shows_what_went_and_what_stays() {
        assert_eq!(
            samples::merged().to_string(),
            "a.cu:3 h <-> a.cu:4 d in main: merged (ESR101)\n  \
               size         4096 bytes\n  \
               copies gone  a.cu:7, a.cu:9\n  \
               waits kept   a.cu:9 (device)\n  \
               note         right only on devices with concurrentManagedAccess\n"
        );
    }

    #[test]
    fn a_declined_pair_shows_each_broken_condition_with_its_path() {
        assert_eq!(
            samples::declined().to_string(),
            "a.cu:3 h <-> a.cu:4 d in main: declined, S1-device-value-overwritten (ESR210) and 1 more\n  \
               size         known at run time\n  \
               copies       a.cu:7\n  \
               ESR210 S1-device-value-overwritten at a.cu:8: `h` is written while `d` is needed\n    \
                 a.cu:8: writes `h`\n    \
                 a.cu:9: kernel reads `d`\n    \
                 help: write another buffer\n  \
               ESR220 S2-kernel-pending at a.cu:10: a kernel may be running\n    \
                 repair: wait for the stream before a.cu:10\n    \
                 help: wait for the work\n"
        );
    }
}
