//! Programs run as ever with the library preloaded, and the trace is whole however they end.

mod common;

use std::path::Path;
use std::process::Command;

use common::{heap_blocks, preloaded, profiled, program, read, run, scratch, traces};
use echo_dr_format::event::Call;

#[test]
fn without_a_mode_nothing_changes_and_nothing_is_said() {
    let output = run(preloaded(program("blocks", &[])).arg("huge"));
    assert_eq!(output.stdout, b"blocks\n");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_malloc_family_works_and_its_large_blocks_are_recorded() {
    let folder = scratch();
    let path = folder.path().join("trace");
    let output = run(profiled(program("blocks", &[]), &path).arg("huge"));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let trace = read(&path);
    assert!(trace.end.is_some_and(|end| end.lost == 0));
    assert!(heap_blocks(&trace, 100).is_empty(), "below the threshold");
    // malloc, 7 aligned_alloc, posix_memalign and memalign each, valloc, pvalloc, and one that realloc refuses to enlarge.
    let apis: Vec<_> = heap_blocks(&trace, 300_000).iter().map(|event| event.api.to_string()).collect();
    let count = |api: &str| apis.iter().filter(|known| *known == api).count();
    assert_eq!(
        (count("malloc"), count("calloc"), count("posix_memalign"), count("aligned_alloc")),
        (2, 1, 7, 16),
        "{apis:?}"
    );
    // Every block that lives at the end of the trace would be one that the family forgot.
    let mut live = std::collections::BTreeSet::new();
    for event in &trace.events {
        match event.call {
            Call::HostAlloc { ptr, .. } => assert!(live.insert(ptr), "{event:?} is alive already"),
            Call::HostRealloc { old, ptr, .. } => assert!(live.remove(&old) && live.insert(ptr), "{event:?}"),
            Call::HostFree { ptr } => assert!(live.remove(&ptr), "{event:?} of no block"),
            _ => {}
        }
    }
    assert!(live.is_empty(), "{live:?}");
}

#[test]
fn a_trace_is_whole_however_the_program_ends() {
    for (how, ends) in [
        ("return", true),
        ("exit", true),
        ("_exit", true),
        ("abort", false),
        ("segv", false),
        ("term", false),
        ("_Exit", true),
        ("quick_exit", true),
        ("exit_group", true),
        ("abort-handled", false),
        ("prof", false),
        ("execv", false),
        ("execve", false),
        ("execvp", false),
        ("execvpe", false),
        ("execl", false),
        ("execle", false),
        ("execlp", false),
        ("exec-file", false),
        ("execveat", false),
        ("exec-syscall", false),
        ("spawn", true),
        ("system", true),
        ("vfork-exec", true),
        ("vfork", true),
    ] {
        let folder = scratch();
        let path = folder.path().join("trace");
        let plain = Command::new(program("ending", &[])).arg(how).output().expect("the program runs");
        let with = profiled(program("ending", &[]), &path).arg(how).output().expect("the program runs");
        assert_eq!(with.status, plain.status, "{how}");
        assert!(plain.status.success() || !how.starts_with("exec"), "{how}: {plain:?}");
        let trace = read(&path);
        let blocks = if how == "vfork" { 4 } else { 3 };
        assert_eq!(heap_blocks(&trace, 700_001).len(), blocks, "{how}");
        assert_eq!(trace.end.is_some(), ends, "{how}: only a program that ends by itself writes an end");
        assert!(!trace.truncated, "{how}");
        assert_eq!(traces(&path), std::slice::from_ref(&path), "{how}: no other process has anything to tell");
    }
}

#[test]
fn a_killed_program_leaves_a_readable_trace() {
    let folder = scratch();
    let path = folder.path().join("trace");
    let output = profiled(program("ending", &[]), &path).arg("kill").output().expect("the program runs");
    assert!(!output.status.success());
    let trace = read(&path);
    assert_eq!(heap_blocks(&trace, 700_001).len(), 3, "all was written long before");
    assert!(trace.end.is_none());
}

#[test]
fn a_programs_own_handlers_work_and_it_sees_only_them() {
    let folder = scratch();
    let path = folder.path().join("trace");
    let plain = Command::new(program("own_handler", &[])).output().expect("the program runs");
    let with = profiled(program("own_handler", &[]), &path).output().expect("the program runs");
    assert_eq!(String::from_utf8_lossy(&with.stdout), "own handler\n", "{}", String::from_utf8_lossy(&with.stderr));
    assert_eq!(with.status, plain.status);
    assert_eq!(heap_blocks(&read(&path), 500_000).len(), 1);
}

#[test]
fn each_of_100_children_has_a_trace_of_its_own() {
    let folder = scratch();
    let path = folder.path().join("trace");
    run(&mut profiled(program("forks", &[]), &path));
    let own = read(&path);
    assert!(own.header.forked_from.is_none() && own.end.is_some());
    let children: Vec<_> = traces(&path).into_iter().filter(|other| *other != path).collect();
    assert_eq!(children.len(), 100);
    for child in &children {
        let trace = read(child);
        assert_eq!(trace.header.forked_from, Some(own.header.pid));
        assert_eq!(child.to_string_lossy(), format!("{}.{}", path.display(), trace.header.pid));
        let large: Vec<_> = trace.events.iter().filter(|event| matches!(event.call, Call::HostAlloc { .. })).collect();
        assert_eq!(large.len(), 1, "nothing of the parent's: {large:?}");
        // Children ended by SIGTERM have no end, and have their free all the same.
        assert!(trace.events.iter().any(|event| matches!(event.call, Call::HostFree { .. })));
        assert!(trace.frames.iter().any(|frames| frames.site == large[0].site), "frames are told again in the child");
    }
}

#[test]
fn threads_that_allocate_hard_lose_nothing() {
    let folder = scratch();
    let path = folder.path().join("trace");
    run(&mut profiled(program("threads", &[]), &path));
    let trace = read(&path);
    let large =
        |event: &&echo_dr_format::event::Event| matches!(event.call, Call::HostAlloc { bytes: 250_000..250_064, .. });
    assert_eq!(trace.events.iter().filter(large).count(), 2 * 64 * 30);
    let frees = trace.events.iter().filter(|event| matches!(event.call, Call::HostFree { .. })).count();
    assert_eq!(frees, 2 * 64 * 30);
    assert_eq!(trace.end.map(|end| end.lost), Some(0));
}

/// An arena takes 64 MiB of addresses, and the program's large blocks then lie elsewhere than without Echo: figure1's copies took five times as
/// long in every second profiled run.
#[test]
fn the_writer_makes_no_arena_in_the_programs_allocator() {
    let folder = scratch();
    let path = folder.path().join("trace");
    let plain = run(&mut Command::new(program("arenas", &[])));
    let with = run(&mut profiled(program("arenas", &[]), &path));
    assert_eq!(String::from_utf8_lossy(&plain.stdout), "1\n");
    assert_eq!(with.stdout, plain.stdout);
    assert_eq!(heap_blocks(&read(&path), 1_000_000).len(), 1, "the writer was at work");
}

#[test]
fn a_first_access_inside_malloc_does_not_go_round() {
    // The loader enlarges a thread's table of thread-local storage by malloc, while the thread is inside a hook or before it ever was.
    let folder = scratch();
    let library = program("local_library", &["-shared", "-fPIC"]);
    let path = folder.path().join("trace");
    let mut command = profiled(program("locals", &[]), &path);
    let output = run(command.arg(&library).env("ECHO_DR_THETA_MIN", "1"));
    assert_eq!(output.stdout, b"locals\n");
    let trace = read(&path);
    assert_eq!(trace.header.threshold, 4096, "what is smaller isn't looked at");
    assert_eq!(heap_blocks(&trace, 50_000).len(), 40 * 4, "each thread's blocks are seen, before and after");
}

#[test]
fn another_allocator_that_is_a_library_works_below() {
    let folder = scratch();
    let path = folder.path().join("trace");
    let plain = run(&mut Command::new(program("threads", &["-ljemalloc"])));
    let with = run(&mut profiled(program("threads", &["-ljemalloc"]), &path));
    assert_eq!((with.stdout, with.stderr), (plain.stdout, plain.stderr));
    let is =
        |event: &&echo_dr_format::event::Event| matches!(event.call, Call::HostAlloc { bytes: 250_000..250_064, .. });
    assert_eq!(read(&path).events.iter().filter(is).count(), 2 * 64 * 30);
}

#[test]
fn a_program_with_its_own_malloc_keeps_it_and_the_user_is_told_once() {
    let folder = scratch();
    let path = folder.path().join("trace");
    let output = run(&mut profiled(program("own_malloc", &["-rdynamic"]), &path));
    assert_eq!(output.stdout, b"own malloc\n");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.contains("malloc of its own"), "{told}");
}

#[test]
fn a_program_that_takes_mallocs_address_has_no_malloc_of_its_own() {
    let folder = scratch();
    let path = folder.path().join("trace");
    let output = run(&mut profiled(program("stub_malloc", &["-no-pie", "-fno-pie"]), &path));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(heap_blocks(&read(&path), 1_234_567).len(), 1);
}

#[test]
fn sites_are_the_same_in_20_runs_at_random_addresses() {
    let mut first = None;
    let mut addresses = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let folder = scratch();
        let path = folder.path().join("trace");
        run(&mut profiled(program("blocks", &[]), &path));
        let trace = read(&path);
        let sites: Vec<_> = trace.events.iter().map(|event| event.site).collect();
        assert!(sites.iter().filter(|site| site.0 != 0).count() > 20);
        let allocated = trace.events.iter().find_map(|event| match event.call {
            Call::HostAlloc { ptr, .. } => Some(ptr),
            _ => None,
        });
        addresses.extend(allocated);
        assert_eq!(*first.get_or_insert(sites.clone()), sites);
    }
    assert!(addresses.len() > 1, "addresses were not random, so the runs prove nothing");
}

#[test]
fn ordinary_programs_run_as_ever() {
    let folder = scratch();
    let source = folder.path().join("empty.c");
    std::fs::write(&source, "int main(void) { return 0; }\n").expect("written");
    let source = source.to_string_lossy().into_owned();
    let binary = folder.path().join("empty").to_string_lossy().into_owned();
    let python = "import json, threading, subprocess, ctypes\n\
                  import numpy; a = numpy.ones((600, 600)); assert (a @ a)[0, 0] == 600\n\
                  blocks = []\n\
                  ts = [threading.Thread(target=lambda: blocks.append(bytearray(10**6))) for _ in range(8)]\n\
                  [t.start() for t in ts]; [t.join() for t in ts]\n\
                  assert subprocess.run(['/bin/echo', 'x'], capture_output=True).stdout == b'x\\n'\n\
                  print(len(json.dumps(list(range(100000)))), len(blocks))";
    let here = env!("CARGO_MANIFEST_DIR");
    let commands: [(&str, Vec<&str>); 4] = [
        // Debian's: it is set up with NumPy (`cargo xtask setup`).
        ("/usr/bin/python3", vec!["-c", python]),
        ("gcc", vec!["-O2", &source, "-o", &binary]),
        ("git", vec!["-C", here, "log", "--oneline", "-3"]),
        (
            "bash",
            vec![
                "-c",
                "x=$(for i in 1 2 3; do echo $i | cat; done); echo $x; trap 'echo trapped' USR1; kill -USR1 $$; exit 0",
            ],
        ),
    ];
    for (name, arguments) in commands {
        let path = folder.path().join(Path::new(name).file_name().expect("a program")).with_extension("trace");
        let plain = run(Command::new(name).args(&arguments));
        let with = run(profiled(name, &path).args(&arguments));
        assert_eq!((with.stdout, with.stderr), (plain.stdout, plain.stderr), "{name}");
        assert!(!traces(&path).is_empty(), "{name}");
        for trace in traces(&path) {
            read(&trace);
        }
    }
    run(&mut Command::new(&binary));
}

#[test]
fn a_thread_is_cancelled_in_a_system_call_as_ever() {
    // The hooks' frames are unwound through; one with something to drop would end the program.
    let output = run(&mut preloaded(program("cancelled", &[])));
    assert_eq!(output.stdout, b"cancelled\n");
    let folder = scratch();
    let path = folder.path().join("trace");
    let output = run(&mut profiled(program("cancelled", &[]), &path));
    assert_eq!(output.stdout, b"cancelled\n");
    assert!(read(&path).end.is_some());
}

#[test]
fn system_calls_by_number_work_as_ever() {
    let folder = scratch();
    let path = folder.path().join("trace");
    for mut command in [preloaded(program("by_number", &[])), profiled(program("by_number", &[]), &path)] {
        assert_eq!(run(&mut command).stdout, b"by number\n");
    }
}
