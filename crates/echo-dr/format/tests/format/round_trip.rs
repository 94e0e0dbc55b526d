//! What was written is read back as it was.

use echo_dr_format::SCHEMA;
use echo_dr_format::counters::{Counters, PairCounters};
use echo_dr_format::event::Event;
use echo_dr_format::plan::Plan;
use echo_dr_format::reason::Refusal;
use echo_dr_format::trace::{LINE_LIMIT, Record, Trace, TraceError, write_record};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

use crate::arbitrary::{header, plan, record};

fn text(records: &[Record]) -> Vec<u8> {
    let mut text = Vec::new();
    for record in records {
        write_record(record, &mut text).expect("a vector takes all");
    }
    text
}

/// One value, always the same.
pub(crate) fn sample<S: Strategy>(strategy: S) -> S::Value {
    let mut runner = TestRunner::deterministic();
    strategy.new_tree(&mut runner).expect("a value").current()
}

/// A trace with `events` records after its header.
pub(crate) fn sample_trace(events: usize) -> Vec<u8> {
    let mut records = vec![Record::Header(sample(header()))];
    records.extend(sample(vec(record(), events)));
    text(&records)
}

proptest! {
    #![proptest_config(Config { cases: 64, failure_persistence: None, ..Config::default() })]

    #[test]
    fn an_events_line_is_what_serde_writes(records in vec(record(), 100), api in "[A-Za-z0-9_]{0,40}", took in 0..3_u64) {
        for record in records {
            let Record::Event(event) = record else { continue };
            let event = Event { api: api.clone().into(), took: event.took.wrapping_mul(took), ..event };
            let mut line = b"before".to_vec();
            prop_assert!(event.write_line(&mut line));
            prop_assert_eq!(&line[6..], text(&[Record::Event(event.clone())]));
            let odd = Event { api: "a\"b".into(), ..event };
            prop_assert!(!odd.write_line(&mut line), "it would need an escape");
        }
    }

    #[test]
    fn traces(header in header(), records in vec(record(), 0..30)) {
        let mut lines = vec![Record::Header(header.clone())];
        lines.extend(records.iter().cloned());
        let trace = Trace::read(text(&lines).as_slice()).expect("what was written is read");
        prop_assert!(!trace.truncated);

        let of = |pick: fn(&Record) -> bool| records.iter().filter(move |record| pick(record)).cloned();
        let mut events: Vec<_> = of(|record| matches!(record, Record::Event(_))).collect();
        events.sort_by_key(|record| match record { Record::Event(event) => event.time, _ => 0 });
        prop_assert!(events.into_iter().eq(trace.events.into_iter().map(Record::Event)));
        prop_assert!(of(|record| matches!(record, Record::Module(_))).eq(trace.modules.into_iter().map(Record::Module)));
        prop_assert!(of(|record| matches!(record, Record::Frames(_))).eq(trace.frames.into_iter().map(Record::Frames)));
        prop_assert!(of(|record| matches!(record, Record::Finding(_))).eq(trace.findings.into_iter().map(Record::Finding)));
        prop_assert!(of(|record| matches!(record, Record::Seen(_))).eq(trace.seen.into_iter().map(Record::Seen)));
        prop_assert_eq!(of(|record| matches!(record, Record::End(_))).next_back(), trace.end.map(Record::End));
        let device = of(|record| matches!(record, Record::Device(_))).next_back();
        let expected = device.or_else(|| header.context.device.clone().map(Record::Device));
        prop_assert_eq!(expected, trace.header.context.device.map(Record::Device));
        prop_assert_eq!(header.context.process, trace.header.context.process);
    }

    #[test]
    fn plans(plan in plan()) {
        let mut text = Vec::new();
        plan.write(&mut text).expect("a vector takes all");
        prop_assert_eq!(Plan::read(&text), Ok(plan));
    }

    #[test]
    fn a_trace_that_was_cut_off_anywhere_is_read_up_to_there(cut in 0..4000_usize) {
        let whole = sample_trace(12);
        let cut = cut.min(whole.len());
        let lines = whole[..cut].iter().filter(|&&byte| byte == b'\n').count();
        match Trace::read(&whole[..cut]) {
            Ok(trace) => {
                prop_assert!(lines > 0);
                prop_assert_eq!(trace.truncated, !whole[..cut].ends_with(b"\n"));
                let read = trace.modules.len() + trace.frames.len() + trace.events.len() + trace.findings.len() + trace.seen.len();
                prop_assert!(read < lines);
            }
            Err(error) => prop_assert!(lines == 0 && matches!(error, TraceError::Empty), "{error}"),
        }
    }
}

#[test]
fn counters() {
    let mut counters = Counters { schema: SCHEMA, mode: "optimise".into(), events: 3, ..Counters::default() };
    counters.refused = Some(Refusal::Host { planned: "a".into(), found: "b".into() });
    counters.pairs.push(PairCounters { pair: 1, copies_skipped: 7, ..PairCounters::default() });
    counters.deviations.insert("EDR370".into(), 2);
    let mut text = Vec::new();
    counters.write(&mut text).expect("a vector takes all");
    assert_eq!(Counters::read(&text), Ok(counters.clone()));
    counters.schema += 1;
    text.clear();
    counters.write(&mut text).expect("a vector takes all");
    assert!(Counters::read(&text).is_err_and(|error| error.contains("version")));
}

#[test]
fn a_record_that_nobody_would_read_is_not_written() {
    let Record::Header(mut header) = Record::Header(sample(header())) else { unreachable!("just made") };
    header.context.process.arguments = vec!["x".repeat(LINE_LIMIT)];
    let mut text = Vec::new();
    assert!(write_record(&Record::Header(header), &mut text).is_err());
    assert!(text.is_empty());
}
