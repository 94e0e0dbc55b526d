//! What must fail does, the same way every time; and what a program leaves behind.

mod support;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use support::Bench;

#[test]
fn faults() {
    let bench = Bench::new("faults");
    for schedule in ["SCHEDULE=eager", "SCHEDULE=lazy", "SCHEDULE=random:7"] {
        for case in [
            "host_pointer_in_kernel",
            "stack_pointer_in_kernel",
            "null_in_kernel",
            "trap",
            "failed_assert",
            "error_of_queued_work",
            "freed_pointers_on_host",
            "managed_after_wrong_wait",
            "attached",
        ] {
            bench.run("faults", case, &[schedule]);
        }
        managed_memory_during_a_kernel(&bench, schedule);
    }
    a_device_pointer_on_the_host_is_a_fault(&bench);
    the_address_of_a_fault_is_named(&bench);
    the_device_process_ends_with_a_killed_program(&bench);
    an_idle_program_uses_no_cpu(&bench);
    a_killed_device_process_is_an_error(&bench);
}

fn managed_memory_during_a_kernel(bench: &Bench, schedule: &str) {
    let text = bench.run("faults", "managed_during_kernel", &[schedule]);
    assert_eq!(text, "during: fault\nnew: fault\n");
    let text = bench.run("faults", "managed_during_kernel", &[schedule, "ACCESS=concurrent"]);
    assert_eq!(text, "during: fine\nnew: fine\n");
}

fn a_device_pointer_on_the_host_is_a_fault(bench: &Bench) {
    let output = bench.output("faults", &["device_pointer_on_host"], &[]);
    // `timeout` passes the signal of its child on as 128 + number, or dies of it too.
    let signal = output.status.signal().or(output.status.code().map(|code| code - 128));
    assert_eq!(signal, Some(libc::SIGSEGV), "{}", String::from_utf8_lossy(&output.stdout));
}

fn the_address_of_a_fault_is_named(bench: &Bench) {
    let output = bench.output("faults", &["null_in_kernel"], &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        errors.matches("kernel _Z3setPii touched 0x0, which is not memory of the device").count(),
        1,
        "{errors}"
    );
    let output = bench.output("faults", &["failed_assert"], &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("x == 1") && errors.contains("faults.cu"), "{errors}");
}

/// Device processes whose program links to the library of this bench.
fn device_processes(bench: &Bench) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let program = bench.path().join("uma-deviced");
    let runs_it = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.split(|byte| *byte == 0).next() == Some(program.as_os_str().as_encoded_bytes()))
    };
    pids.filter(runs_it).collect()
}

fn start(bench: &Bench, case: &str) -> (Child, i32) {
    let mut command = bench.command("faults", &[case], &[]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    // The child is `timeout`, the program is its child.
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).expect("children");
    let program = children.trim().parse().expect("one child");
    (child, program)
}

fn the_device_process_ends_with_a_killed_program(bench: &Bench) {
    let (mut child, program) = start(bench, "wait_for_death");
    assert_eq!(device_processes(bench).len(), 1);
    // SAFETY: kill has no memory effects; the process is our own child's child.
    assert_eq!(unsafe { libc::kill(program, libc::SIGKILL) }, 0);
    child.wait().expect("it ends");
    let start = Instant::now();
    while !device_processes(bench).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(5), "the device process goes on");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn an_idle_program_uses_no_cpu(bench: &Bench) {
    let (mut child, program) = start(bench, "idle");
    let devices = device_processes(bench);
    assert_eq!(devices.len(), 1);
    let ticks = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process lives");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        // utime and stime, fields 14 and 15 of all.
        fields[11].parse::<u64>().expect("a number") + fields[12].parse::<u64>().expect("a number")
    };
    std::thread::sleep(Duration::from_millis(50));
    let before = ticks(devices[0]) + ticks(program as u32);
    std::thread::sleep(Duration::from_millis(500));
    assert!(ticks(devices[0]) + ticks(program as u32) - before <= 1);
    // SAFETY: as above.
    assert_eq!(unsafe { libc::kill(program, libc::SIGKILL) }, 0);
    child.wait().expect("it ends");
}

fn a_killed_device_process_is_an_error(bench: &Bench) {
    let (mut child, _) = start(bench, "device_killed");
    let devices = device_processes(bench);
    assert_eq!(devices.len(), 1);
    // SAFETY: kill has no memory effects; the process was started by our own child.
    assert_eq!(unsafe { libc::kill(devices[0] as i32, libc::SIGKILL) }, 0);
    assert!(child.wait().expect("it ends").success());
}
