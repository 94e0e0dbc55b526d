//! Programs that close descriptors, have limits, cancel threads or read what their children say: the library must not be in their way.

mod common;

use std::path::Path;
use std::process::Command;

use echo_dr_format::counters::Counters;

fn recorded(how: &[&str], folder: &Path, limit: Option<u32>) -> std::process::Output {
    let program = common::program("surroundings", &[]);
    let trace = folder.join("trace");
    let mut command = match limit {
        None => common::profiled(&program, &trace),
        Some(files) => {
            let mut shell = common::profiled("sh", &trace);
            shell.args(["-c", &format!("ulimit -n {files}; exec \"$@\""), "sh"]).arg(&program);
            shell
        }
    };
    common::run(command.args(how))
}

/// The number of the trace's descriptor became the number of a file of the program's, and its lines went there.
#[test]
fn a_file_of_the_programs_is_never_written() {
    // With few descriptors the trace has a small number, as a program's first file has.
    for limit in [None, Some(256)] {
        let folder = common::scratch();
        let files = folder.path().join("files");
        std::fs::create_dir(&files).expect("a folder");
        recorded(&["descriptors", files.to_str().expect("text")], folder.path(), limit);
        let written = std::fs::read_dir(&files)
            .expect("a folder")
            .filter(|file| file.as_ref().expect("a file").metadata().expect("its size").len() > 0);
        assert_eq!(written.count(), 0);
    }
}

#[test]
fn a_trace_whose_descriptor_was_closed_goes_on() {
    let folder = common::scratch();
    let files = folder.path().join("files");
    std::fs::create_dir(&files).expect("a folder");
    recorded(&["descriptors", files.to_str().expect("text")], folder.path(), Some(4096));
    let trace = common::read(&folder.path().join("trace"));
    assert!(trace.end.is_some(), "the trace has an end");
    assert_eq!(common::heap_blocks(&trace, 300_000).len(), 3010);
}

/// Our write beyond the limit sent SIGXFSZ, which ended the program.
#[test]
fn a_limit_on_the_size_of_files_ends_the_trace_only() {
    let folder = common::scratch();
    let output = recorded(&["size-limit"], folder.path(), None);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "alive\n");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.matches("can't be written").count(), 1, "{said}");
    assert!(common::read(&folder.path().join("trace")).end.is_none());
}

/// An allocation of ours that failed ended the program; and a trace without the rest of its calls must not look whole.
#[test]
fn a_program_that_copes_without_memory_goes_on() {
    let folder = common::scratch();
    recorded(&["memory-limit"], folder.path(), None);
    let trace = common::read(&folder.path().join("trace"));
    assert!(trace.end.is_none_or(|end| end.lost > 0), "the trace is whole: {:?}", trace.end);
}

/// What a thread remembers was made on its stack first.
#[test]
fn threads_with_small_stacks_are_recorded() {
    let folder = common::scratch();
    recorded(&["small-stacks"], folder.path(), None);
    assert_eq!(common::heap_blocks(&common::read(&folder.path().join("trace")), 300_000).len(), 200);
}

#[test]
fn threads_that_are_cancelled_end_as_they_do_alone() {
    recorded(&["cancelled"], common::scratch().path(), None);
}

/// A plan that was not made for a child is refused in it, and it said so where its parent was reading.
#[test]
fn children_of_the_first_process_say_nothing_and_leave_its_counters() {
    let folder = common::scratch();
    let counters = folder.path().join("counters");
    // No plan at all is refused as well, in each process.
    let mut command: Command = common::preloaded(common::program("surroundings", &[]));
    command.env("ECHO_DR_MODE", "optimise").env("ECHO_DR_PLAN", folder.path().join("none"));
    command.env("ECHO_DR_COUNTERS", &counters).env("ECHO_DR_FIRST", "0000000000").arg("children");
    let output = common::run(&mut command);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "hello\n");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.matches("is not used").count(), 1, "{said}");
    let counters = Counters::read(&std::fs::read(&counters).expect("counters")).expect("counters that can be read");
    assert!(counters.refused.is_some());
}
