//! Files that are damaged, edited, foreign or of another version.

use echo_dr_format::SCHEMA;
use echo_dr_format::context::Context;
use echo_dr_format::plan::{Direction, Pair, Plan, Way};
use echo_dr_format::reason::Refusal;
use echo_dr_format::trace::{LINE_LIMIT, Trace, TraceError};
use proptest::strategy::Strategy;

use crate::arbitrary::{context, plan};
use crate::round_trip::{sample, sample_trace};

/// SplitMix64: fast, and the same everywhere.
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

const PIECES: [&str; 16] = [
    "\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "null",
    "-1",
    "1e999",
    "18446744073709551616",
    "\\u0000",
    "\n",
    "true",
    "\"enabled\"",
    "\"schema\":1,",
];

/// A few random changes.
fn mutate(text: &[u8], random: &mut Random) -> Vec<u8> {
    let mut text = text.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(text.len() + 1);
        let len = random.below(12).min(text.len() - at);
        match random.below(6) {
            0 if at < text.len() => text[at] ^= 1 << random.below(8),
            1 if at < text.len() => text[at] = b"0123456789abcdef"[random.below(16)],
            2 => drop(text.drain(at..at + len)),
            3 => {
                let piece = text[at..at + len].to_vec();
                let to = random.below(text.len() + 1);
                text.splice(to..to, piece);
            }
            4 => text.truncate(at),
            _ => drop(text.splice(at..at, PIECES[random.below(PIECES.len())].bytes())),
        }
    }
    text
}

fn plan_with_pairs() -> Plan {
    sample(plan().prop_filter("pairs", |plan| plan.pairs.len() > 1))
}

fn written(plan: &Plan) -> Vec<u8> {
    let mut text = Vec::new();
    plan.write(&mut text).expect("a vector takes all");
    text
}

fn damaged_plans(count: u64) {
    let plan = plan_with_pairs();
    let text = written(&plan);
    let mut accepted = 0;
    for seed in 0..count {
        if let Ok(read) = Plan::read(&mutate(&text, &mut Random(seed))) {
            assert_eq!(read, plan, "seed {seed}: a plan that nobody wrote is followed");
            accepted += 1;
        }
    }
    // Changes of blank space, and pieces that land where they were, change nothing.
    assert!(accepted < count / 4, "{accepted} of {count} changes changed nothing");
}

fn damaged_traces(count: u64) {
    let text = sample_trace(6);
    let mut refused = 0;
    for seed in 0..count {
        refused += u64::from(Trace::read(mutate(&text, &mut Random(seed)).as_slice()).is_err());
    }
    assert!(refused > count / 2, "only {refused} of {count} were refused");
}

#[test]
fn damaged_plans_are_never_followed() {
    damaged_plans(10_000);
}

#[test]
fn damaged_traces_are_survived() {
    damaged_traces(10_000);
}

#[test]
#[ignore = "takes minutes"]
fn a_million_damaged_plans_are_never_followed() {
    damaged_plans(1_000_000);
}

#[test]
#[ignore = "takes minutes"]
fn a_million_damaged_traces_are_survived() {
    damaged_traces(1_000_000);
}

#[test]
fn each_single_byte_of_a_plan_matters() {
    let plan = plan_with_pairs();
    let text = written(&plan);
    for at in 0..text.len() {
        for bit in [0, 1, 5] {
            let mut changed = text.clone();
            changed[at] ^= 1 << bit;
            if let Ok(read) = Plan::read(&changed) {
                assert_eq!(read, plan);
                assert!(text[at].is_ascii_whitespace(), "byte {at} is not looked at");
            }
        }
    }
}

#[test]
fn a_plan_that_was_edited_is_refused() {
    let text = String::from_utf8(written(&plan_with_pairs())).expect("JSON");
    let edited = text.replacen("\"threshold\": 1,", "\"threshold\": 0,", 1);
    assert_ne!(edited, text);
    assert_eq!(Plan::read(edited.as_bytes()), Err(Refusal::Checksum));
}

#[test]
fn other_versions_are_refused_with_a_sentence() {
    let text = String::from_utf8(written(&plan_with_pairs())).expect("JSON");
    for other in [0, 2] {
        let other_text = text.replacen("\"schema\": 1,", &format!("\"schema\": {other},"), 1);
        let refused = Plan::read(other_text.as_bytes()).expect_err("another version");
        assert_eq!(refused, Refusal::Version { found: other, readable: SCHEMA });
        assert!(refused.to_string().contains("tune"), "{refused}");
    }
    // Whatever else a newer version has, its version is what is said of it.
    let newer = br#"{"schema": 7, "new_idea": [1, 2], "plan": {"other": true}}"#;
    assert!(matches!(Plan::read(newer), Err(Refusal::Version { found: 7, .. })));

    let newer = b"{\"header\":{\"schema\":9,\"new_idea\":1}}\n{\"event2\":{}}\n";
    let error = Trace::read(newer.as_slice()).expect_err("another version");
    assert!(matches!(error, TraceError::Version { found: 9 }) && error.to_string().contains("profile again"));
}

#[test]
fn what_is_no_plan_is_refused() {
    for text in ["", "null", "[]", "{", "{}", "{\"schema\":\"1\"}", "\u{feff}{}", "{\"schema\":1}", "\0\0\0"] {
        assert!(matches!(Plan::read(text.as_bytes()), Err(Refusal::Malformed(_))), "{text}");
    }
    let deep = format!("{{\"schema\":1,\"checksum\":\"0000000000000000\",\"plan\":{}", "[".repeat(100_000));
    assert!(matches!(Plan::read(deep.as_bytes()), Err(Refusal::Malformed(_))));
    let long = vec![b' '; echo_dr_format::plan::PLAN_LIMIT + 1];
    assert!(matches!(Plan::read(&long), Err(Refusal::Malformed(_))));
}

#[test]
fn what_no_analysis_makes_is_refused_even_with_a_checksum() {
    type Change = fn(&mut Vec<Pair>);
    let changes: [(&str, Change); 9] = [
        ("size", |pairs| pairs[0].bytes = 0),
        ("number", |pairs| pairs[1].id = 7),
        ("waiting", |pairs| pairs[0].waiting = 0),
        ("waiting", |pairs| (pairs[0].same_thread, pairs[0].waiting, pairs[0].alive) = (false, 2, 64)),
        ("alive", |pairs| pairs[0].alive = 1_000_000),
        ("no copies", |pairs| pairs[0].copies.clear()),
        ("direction", |pairs| {
            pairs[0].direction = Direction::Input;
            pairs[0].copies[0].way = Way::Download;
        }),
        ("a site twice", |pairs| {
            let copy = pairs[0].copies[0];
            pairs[0].copies.push(copy);
        }),
        ("one site", |pairs| (pairs[1].host, pairs[1].bytes) = (pairs[0].host, pairs[0].bytes)),
    ];
    for (what, change) in changes {
        let mut plan = plan_with_pairs();
        change(&mut plan.pairs);
        assert!(matches!(Plan::read(&written(&plan)), Err(Refusal::Malformed(_))), "{what}");
    }
}

#[test]
fn traces_that_are_wrong_name_the_line() {
    let good = String::from_utf8(sample_trace(3)).expect("JSON");
    let (first, rest) = good.split_once('\n').expect("lines");
    let line = |text: &str| match Trace::read(text.as_bytes()) {
        Err(TraceError::Line { line, .. } | TraceError::TooLong { line }) => line,
        other => panic!("{other:?}"),
    };
    assert_eq!(line(&format!("{first}\nnonsense\n{rest}")), 2);
    assert_eq!(line(&format!("{first}\n\n{rest}")), 2);
    assert_eq!(line(&format!("{good}{first}\n")), 5, "a second header");
    assert_eq!(line(&format!("{first}\n{}\n", "x".repeat(LINE_LIMIT))), 2);
    assert_eq!(line(&format!("{first}\n{{\"event\":{{\"time\":1}}}}\n")), 2);
    assert!(matches!(Trace::read(rest.as_bytes()), Err(TraceError::NoHeader(_))));
    assert!(matches!(Trace::read(b"".as_slice()), Err(TraceError::Empty)));
}

/// Each part of the context decides.
#[test]
fn a_plan_of_another_context_is_refused() {
    let planned = sample(
        context().prop_filter("all there", |context| context.device.is_some() && !context.process.libraries.is_empty()),
    );
    let check = |change: fn(&mut Context)| {
        let mut now = planned.clone();
        change(&mut now);
        let process = planned.process.admits(&now.process);
        process.and_then(|()| now.device.map_or(Ok(()), |device| planned.admits_device(&device)))
    };
    assert_eq!(check(|_| {}), Ok(()));
    assert_eq!(check(|now| now.process.executable.path = "/moved".into()), Ok(()), "the same file elsewhere");
    assert_eq!(check(|now| now.process.libraries.clear()), Ok(()), "not loaded yet");
    assert_eq!(check(|now| now.process.executable.hash.0 ^= 1), Err(Refusal::Executable));
    assert_eq!(check(|now| now.process.executable.build_id.push('0')), Err(Refusal::Executable));
    assert_eq!(check(|now| now.process.arguments.push(String::new())), Err(Refusal::Arguments));
    assert!(matches!(check(|now| now.process.host.push('2')), Err(Refusal::Host { .. })));
    assert!(matches!(check(|now| now.process.libraries[0].hash.0 ^= 1), Err(Refusal::Library { .. })));
    assert!(matches!(check(|now| now.device.as_mut().expect("there").name.push('2')), Err(Refusal::Device { .. })));
    assert!(matches!(
        check(|now| now.device.as_mut().expect("there").attributes.integrated ^= true),
        Err(Refusal::Device { .. })
    ));
    assert_eq!(check(|now| now.device.as_mut().expect("there").driver ^= 1), Err(Refusal::Runtime));
    assert_eq!(check(|now| now.device.as_mut().expect("there").runtime = Some(1)), Err(Refusal::Runtime));

    let without = Context { device: None, ..planned.clone() };
    let device = planned.device.clone().expect("there");
    assert!(matches!(without.admits_device(&device), Err(Refusal::Device { .. })));
}
