//! Expressions: names, ranges, sizes, conditions. The machine's meaning of each is in `language`.

use super::super::language::{BufferId, Condition, Form, Length, Program, Range, Spot, StmtId, StreamId, StreamKind};

/// Where an expression stands.
pub(super) struct Scene<'a> {
    pub(super) program: &'a Program,
    /// The round of the innermost loop.
    pub(super) round: String,
}

impl Scene<'_> {
    pub(super) fn name(&self, buffer: BufferId) -> String {
        format!("{}{buffer}", if self.program.is_host(buffer) { "h" } else { "d" })
    }

    pub(super) fn stream(&self, stream: StreamId) -> String {
        match self.program.streams[stream] {
            StreamKind::Legacy => "0".into(),
            StreamKind::PerThread => "cudaStreamPerThread".into(),
            StreamKind::Blocking | StreamKind::NonBlocking => format!("s{stream}"),
        }
    }

    /// Factor and addend.
    pub(super) fn form(&self, form: Form) -> (String, String) {
        let addend = match (form.round, self.round.as_str()) {
            (false, _) | (true, "0") => form.addend.to_string(),
            (true, round) => format!("{} + {round}", form.addend),
        };
        (form.factor.to_string(), addend)
    }

    /// The shortest length of some buffers, as an expression of `n`.
    fn length(&self, buffers: &[BufferId]) -> Length {
        let length = |buffer: &BufferId| self.program.buffers[*buffer].length;
        buffers.iter().map(length).min_by_key(|length| length.of(self.program.n)).unwrap_or(Length::N)
    }

    pub(super) fn bounds(&self, buffers: &[BufferId], range: Range) -> (String, String) {
        let length = self.length(buffers);
        let count = count(length);
        match range {
            Range::Whole => ("0".into(), count),
            Range::FirstHalf => ("0".into(), format!("{count} / 2")),
            Range::SecondHalf => (format!("{count} / 2"), count),
            Range::Most => ("0".into(), format!("{count} - 1")),
            Range::Dynamic => ("0".into(), count.replace('n', "length")),
            Range::Constant { .. } => {
                let (low, high) = range.bounds(length.of(self.program.n), 0);
                (low.to_string(), high.to_string())
            }
            Range::Row => {
                let low = format!("{} % 4 * ({count} / 4)", self.round);
                let high = format!("{low} + {count} / 4");
                (low, high)
            }
        }
    }

    pub(super) fn place(&self, buffer: BufferId, buffers: &[BufferId], range: Range, shift: usize) -> String {
        let (low, _) = self.bounds(buffers, range);
        let place = plus(&self.name(buffer), &low);
        if shift == 0 { place } else { format!("{place} + {shift}") }
    }

    /// Bytes of a range, in one of the ways that people write it.
    pub(super) fn size(&self, buffers: &[BufferId], range: Range, id: StmtId) -> String {
        let (low, high) = self.bounds(buffers, range);
        let length = self.length(buffers);
        let simple = range == Range::Whole && length == Length::N;
        let count = match (simple, low.as_str()) {
            (true, _) => "n".into(),
            (false, "0") if high.starts_with('(') && !high.contains(") ") => high,
            (false, "0") => format!("({high})"),
            (false, _) => format!("({high} - ({low}))"),
        };
        match id % 4 {
            0 => format!("{count} * sizeof(T)"),
            1 => format!("sizeof(T) * {count}"),
            2 if simple => "bytes".into(),
            _ => format!("(size_t){count} * sizeof(T)"),
        }
    }

    pub(super) fn spot(&self, buffer: BufferId, at: Spot) -> String {
        let count = count(self.program.buffers[buffer].length);
        match at {
            Spot::First => "0".into(),
            Spot::Middle => format!("{count} / 2"),
            Spot::Last => format!("{count} - 1"),
            Spot::Round => format!("{} % ({count})", self.round),
        }
    }

    pub(super) fn element_at(&self, buffer: BufferId, at: Spot) -> String {
        format!("{}[{}]", self.name(buffer), self.spot(buffer, at))
    }

    pub(super) fn condition(&self, condition: Condition) -> String {
        match condition {
            Condition::Flag => "flag".into(),
            Condition::NotFlag => "!flag".into(),
            Condition::RoundIs(round) => format!("{} == {round}", self.round),
            Condition::RoundOdd => format!("{} % 2 == 1", self.round),
            Condition::AccOdd => "acc & 1".into(),
            Condition::Data { buffer, at } => format!("{} & 1", self.element_at(buffer, at)),
        }
    }
}

pub(super) fn count(length: Length) -> String {
    match length {
        Length::N => "n",
        Length::Half => "(n / 2)",
        Length::More => "(n + 16)",
    }
    .into()
}

pub(super) fn plus(name: &str, offset: &str) -> String {
    if offset == "0" { name.into() } else { format!("{name} + {offset}") }
}
