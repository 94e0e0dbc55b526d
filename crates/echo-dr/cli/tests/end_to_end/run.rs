//! A plan is followed where it was made, and nowhere else.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::common::{Run, command, counters, echo_dr, enable, own, plain, plan, text, write_plan};
use echo_dr_format::event::{Call, Event};
use echo_dr_format::plan::Plan;
use echo_dr_format::trace::{Mode, Trace};

const ARGUMENTS: [&str; 2] = ["none", "5"];

/// A folder with a plan for `touch none 5` in which the pair is enabled.
struct Tuned {
    folder: tempfile::TempDir,
    program: PathBuf,
    /// What the program prints.
    expected: String,
}

impl Tuned {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = own("touch");
        let expected = plain(&program, &ARGUMENTS, &[]).ends(0).out;
        echo_dr(folder.path(), &[&["profile", "--", text(&program)], &ARGUMENTS[..]].concat()).ends(0);
        echo_dr(folder.path(), &["analyze", "echo-dr.trace"]).ends(0);
        echo_dr(folder.path(), &[&["validate", "echo-dr.plan.json", "--", text(&program)], &ARGUMENTS[..]].concat())
            .ends(0);
        let tuned = Self { folder, program, expected };
        assert_eq!(enable(&tuned.plan()).enabled().count(), 1);
        tuned
    }

    fn plan(&self) -> PathBuf {
        self.folder.path().join("echo-dr.plan.json")
    }

    fn counters(&self) -> PathBuf {
        self.folder.path().join("counters.json")
    }

    fn run(&self, program: &Path, arguments: &[&str]) -> Run {
        let _ = fs::remove_file(self.counters());
        let head = ["run", "--counters", "counters.json", "echo-dr.plan.json", "--", text(program)];
        echo_dr(self.folder.path(), &[&head[..], arguments].concat())
    }

    /// With this plan the program runs unchanged, and that is said once, with this number.
    #[track_caller]
    fn refuses(&self, change: impl FnOnce(&mut Plan), number: &str) {
        let mut changed = plan(&self.plan());
        change(&mut changed);
        write_plan(&changed, &self.plan());
        self.is_refused(self.run(&self.program, &ARGUMENTS), number);
    }

    #[track_caller]
    fn is_refused(&self, run: Run, number: &str) {
        let run = run.ends(0);
        assert_eq!(run.out, self.expected);
        let said: Vec<_> = run.err.lines().filter(|line| line.contains("echo")).collect();
        assert_eq!(said.len(), 1, "{number}: {}", run.err);
        assert!(said[0].contains("unchanged") && said[0].contains(number), "{number}: {}", said[0]);
        if self.counters().exists() {
            let counted = counters(&self.counters());
            assert!(counted.pairs.iter().all(|pair| pair.merged == 0 && pair.copies_skipped == 0), "{counted:?}");
        }
    }
}

#[test]
fn where_the_plan_was_made_the_copies_go_and_the_output_stays() {
    let tuned = Tuned::new();
    let run = tuned.run(&tuned.program, &ARGUMENTS).ends(0);
    assert_eq!((run.out.as_str(), run.err.as_str()), (tuned.expected.as_str(), ""));
    let counted = counters(&tuned.counters());
    let pair = counted.pairs[0];
    assert_eq!((pair.merged, pair.met, pair.released), (1, 1, 1), "{counted:?}");
    assert_eq!((pair.copies_skipped, pair.bytes_skipped), (10, 10 << 20), "{counted:?}");
    assert_eq!(counted.refused, None);
    assert!(counted.deviations.is_empty(), "{counted:?}");
}

#[test]
fn a_recorded_run_with_the_plan_shows_what_is_left_of_its_calls() {
    let tuned = Tuned::new();
    let head = ["run", "--trace", "with.trace", "--counters", "counters.json", "echo-dr.plan.json", "--"];
    let run = echo_dr(tuned.folder.path(), &[&head[..], &[text(&tuned.program)], &ARGUMENTS].concat()).ends(0);
    assert_eq!((run.out.as_str(), run.err.as_str()), (tuned.expected.as_str(), ""));
    let trace = Trace::read(fs::read(tuned.folder.path().join("with.trace")).unwrap().as_slice()).unwrap();
    assert_eq!((trace.header.mode, trace.end.map(|end| end.lost)), (Mode::Optimise, Some(0)));
    let waits = |event: &Event| match event.call {
        Call::Skipped { bytes, wait } => Some((bytes, wait.is_some())),
        _ => None,
    };
    let skipped: Vec<(u64, bool)> = trace.events.iter().filter_map(waits).collect();
    let counted = counters(&tuned.counters()).pairs[0];
    assert_eq!(skipped.len() as u64, counted.copies_skipped);
    assert_eq!(skipped.iter().map(|&(bytes, _)| bytes).sum::<u64>(), counted.bytes_skipped);
    assert_eq!(skipped.iter().filter(|&&(_, waits)| waits).count() as u64, counted.waits);
    let count = |is: fn(&Call) -> bool| trace.events.iter().filter(|event| is(&event.call)).count();
    let blocks =
        (count(|call| matches!(call, Call::HostAlloc { .. })), count(|call| matches!(call, Call::HostFree { .. })));
    assert_eq!(blocks, (1, 1), "merged host blocks");
    assert_eq!(count(|call| matches!(call, Call::Launch { .. })), 5);

    // Copies are missing from it, so it is nothing to analyze.
    let refused = echo_dr(tuned.folder.path(), &["analyze", "with.trace", "-o", "other.json"]).ends(2);
    assert!(refused.err.contains("with.trace") && refused.err.contains("echo-dr profile"), "{}", refused.err);

    echo_dr(tuned.folder.path(), &["report", "echo-dr.plan.json", "echo-dr.trace", "with.trace"]).ends(0);
    let page = fs::read_to_string(tuned.folder.path().join("echo-dr.html")).unwrap();
    assert!(page.contains("Recorded in a run with the plan") && page.contains("in the place of a copy"), "{page}");
}

#[test]
fn a_trace_that_cannot_be_written_does_not_keep_a_plan_from_being_followed() {
    let tuned = Tuned::new();
    let head = ["run", "--trace", "no/such/folder", "--counters", "counters.json", "echo-dr.plan.json", "--"];
    let run = echo_dr(tuned.folder.path(), &[&head[..], &[text(&tuned.program)], &ARGUMENTS].concat()).ends(0);
    assert_eq!(run.out, tuned.expected);
    assert!(run.err.contains("no/such/folder") && run.err.contains("not recorded"), "{}", run.err);
    assert_eq!(counters(&tuned.counters()).pairs[0].copies_skipped, 10);
}

#[test]
fn in_every_order_of_the_device_the_output_stays() {
    let tuned = Tuned::new();
    for schedule in ["lazy", "eager", "random:1", "random:2"] {
        let mut run = command(tuned.folder.path());
        run.args(["run", "echo-dr.plan.json", "--", text(&tuned.program)])
            .args(ARGUMENTS)
            .env("UMA_DEVICE_SCHEDULE", schedule);
        let run = Run::from(run.output().unwrap()).ends(0);
        assert_eq!(run.out, tuned.expected, "{schedule}");
    }
}

#[test]
fn another_argument_list_runs_unchanged() {
    let tuned = Tuned::new();
    let other = Tuned { expected: plain(&tuned.program, &["none", "4"], &[]).ends(0).out, ..tuned };
    let run = other.run(&other.program, &["none", "4"]);
    other.is_refused(run, "EDR366");
}

#[test]
fn another_binary_runs_unchanged() {
    let tuned = Tuned::new();
    let copy = tuned.folder.path().join("touch");
    let mut bytes = fs::read(&tuned.program).unwrap();
    bytes.push(0);
    fs::write(&copy, bytes).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    tuned.is_refused(tuned.run(&copy, &ARGUMENTS), "EDR363");
}

#[test]
fn another_machine_gpu_runtime_or_library_runs_unchanged() {
    let tuned = Tuned::new();
    let original = plan(&tuned.plan());
    tuned.refuses(|plan| plan.context.process.host.push_str("-other"), "EDR365");
    write_plan(&original, &tuned.plan());
    tuned.refuses(|plan| plan.context.device.as_mut().unwrap().name.push_str(" other"), "EDR367");
    write_plan(&original, &tuned.plan());
    tuned.refuses(|plan| plan.context.device.as_mut().unwrap().runtime = Some(12_060), "EDR368");
    write_plan(&original, &tuned.plan());
    let change = |plan: &mut Plan| {
        let libraries = &mut plan.context.process.libraries;
        libraries.iter_mut().find(|library| library.path.contains("libecho_dr")).expect("our library").bytes += 1;
    };
    tuned.refuses(change, "EDR364");
}

#[test]
fn a_damaged_plan_runs_unchanged() {
    let tuned = Tuned::new();
    let text = fs::read_to_string(tuned.plan()).unwrap().replacen("\"threshold\": 200000", "\"threshold\": 200001", 1);
    fs::write(tuned.plan(), text).unwrap();
    tuned.is_refused(tuned.run(&tuned.program, &ARGUMENTS), "EDR362");
    fs::write(tuned.plan(), "{}").unwrap();
    tuned.is_refused(tuned.run(&tuned.program, &ARGUMENTS), "EDR360");
}

#[test]
fn a_plan_that_others_could_have_written_runs_unchanged() {
    let tuned = Tuned::new();
    fs::set_permissions(tuned.plan(), fs::Permissions::from_mode(0o666)).unwrap();
    tuned.is_refused(tuned.run(&tuned.program, &ARGUMENTS), "EDR369");
    // Only root can give a file away.
    if rustix::process::geteuid().is_root() {
        fs::set_permissions(tuned.plan(), fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::chown(tuned.plan(), Some(65534), None).unwrap();
        tuned.is_refused(tuned.run(&tuned.program, &ARGUMENTS), "EDR369");
    }
}

#[test]
fn the_exit_code_is_the_programs() {
    let tuned = Tuned::new();
    let run = echo_dr(tuned.folder.path(), &["run", "echo-dr.plan.json", "--", "sh", "-c", "exit 42"]).ends(42);
    assert!(run.err.contains("unchanged"), "{}", run.err);
    echo_dr(tuned.folder.path(), &["run", "echo-dr.plan.json", "--", "no-such-program"]).ends(127);
}
