//! Traces that no library wrote, through the reader and the analysis: no crash, and no plan that its own reader refuses.

use echo_dr_engine::{Options, analyze};
use echo_dr_format::event::{CopyKind, Stream};
use echo_dr_format::plan::Plan;
use echo_dr_format::trace::{Record, Trace, write_record};

use crate::common::{DOWNLOAD, N, Tracer};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((value ^ (value >> 31)) % limit.max(1) as u64).unwrap_or(0)
    }
}

/// Lines of a trace that has a pair.
fn lines() -> Vec<String> {
    let mut tracer = Tracer::new();
    for (h, d) in [(0x10_0000, 0x90_0000), (0x20_0000, 0xa0_0000)] {
        tracer.malloc(h).cuda_malloc(d);
        for _ in 0..2 {
            tracer.upload(d, h).launch(Stream::LEGACY).download(h, d).wait();
        }
        tracer.copy(DOWNLOAD, 16, d, 64, CopyKind::Default).free(h).cuda_free(d);
    }
    let trace = tracer.trace();
    let records = [Record::Header(trace.header)].into_iter().chain(trace.events.into_iter().map(Record::Event));
    let text = records.chain(trace.end.map(Record::End)).map(|record| {
        let mut line = Vec::new();
        write_record(&record, &mut line).expect("a vector takes all");
        String::from_utf8(line).expect("JSON")
    });
    text.collect()
}

/// Other lines in another order, with other numbers: still a trace to the reader, mostly.
fn mangle(lines: &[String], random: &mut Random) -> String {
    let mut lines = lines.to_vec();
    for _ in 0..=random.below(8) {
        let (a, b) = (1 + random.below(lines.len() - 1), 1 + random.below(lines.len() - 1));
        match random.below(5) {
            0 => lines.swap(a, b),
            1 if lines.len() > 3 => drop(lines.remove(a)),
            2 => lines.insert(a, lines[b].clone()),
            3 => {
                // Another value for one of its numbers.
                let value = [0, 1, 4095, N as u64, 0x10_0008, 0x90_0000, u64::MAX][random.below(7)];
                let digits = |at: usize, text: &str| text[at..].bytes().take_while(u8::is_ascii_digit).count();
                let starts: Vec<usize> = lines[a].match_indices(':').map(|(at, _)| at + 1).collect();
                let at = starts[random.below(starts.len())];
                let len = digits(at, &lines[a]);
                if len > 0 {
                    lines[a].replace_range(at..at + len, &value.to_string());
                }
            }
            _ => {
                let words = [
                    "host_to_device",
                    "device_to_host",
                    "device_to_device",
                    "host_free",
                    "device_free",
                    "plain",
                    "managed",
                ];
                let (from, to) = (words[random.below(7)], words[random.below(7)]);
                lines[a] = lines[a].replace(from, to);
            }
        }
    }
    lines.concat()
}

fn analyse_mangled(count: u64) {
    let lines = lines();
    let (mut read, mut paired) = (0, 0);
    for seed in 0..count {
        let Ok(trace) = Trace::read(mangle(&lines, &mut Random(seed)).as_bytes()) else { continue };
        read += 1;
        let plan = analyze(&trace, Options { threshold: 1, recurrences: 2 });
        paired += u64::from(!plan.pairs.is_empty());
        let mut text = Vec::new();
        plan.write(&mut text).expect("a vector takes all");
        assert_eq!(Plan::read(&text).as_ref(), Ok(&plan), "seed {seed}");
    }
    assert!(read > count / 2 && paired > count / 20, "{read} read, {paired} with pairs, of {count}");
}

#[test]
fn mangled_traces_are_analysed() {
    analyse_mangled(5_000);
}

#[test]
#[ignore = "takes minutes"]
fn a_million_mangled_traces_are_analysed() {
    analyse_mangled(1_000_000);
}
