//! Allocation, attributes, error codes, and the library as a whole.

mod support;
use std::os::unix::process::ExitStatusExt;
use support::Bench;

#[test]
fn memory() {
    let bench = Bench::new("memory");
    let cases = [
        "allocation",
        "async_allocation",
        "registration",
        "pointers",
        "hints",
        "launches",
        "errors",
        "reset",
        "forked",
    ];
    for case in cases {
        for modes in [&[][..], &["SCHEDULE=lazy"], &["ACCESS=concurrent", "SCHEDULE=random:5"], &["LINK=discrete"]] {
            bench.run("memory", case, modes);
        }
    }
    bench.run("memory", "poison", &["POISON=1"]);
    modes_show_in_the_attributes(&bench);
    text_of_kernels_is_in_order(&bench);
    a_slow_link_is_slow(&bench);
    a_bad_mode_is_named(&bench);
    a_refused_call_names_itself_once(&bench);
    a_missing_device_process_is_named(&bench);
    nothing_is_left_behind(&bench);
}

fn modes_show_in_the_attributes(bench: &Bench) {
    assert_eq!(bench.run("memory", "device", &[]), "integrated 1 concurrent 0\n");
    let modes = ["ACCESS=concurrent", "LINK=discrete"];
    assert_eq!(bench.run("memory", "device", &modes), "integrated 0 concurrent 1\n");
}

fn text_of_kernels_is_in_order(bench: &Bench) {
    for schedule in ["SCHEDULE=eager", "SCHEDULE=lazy"] {
        let text = bench.run("memory", "text", &[schedule]);
        assert_eq!(text, "a\nb\nkernel 1\nc\nkernel 2\nkernel 2\nd\n");
    }
}

fn a_slow_link_is_slow(bench: &Bench) {
    assert_eq!(bench.run("memory", "link", &["LINK=discrete"]), "copy slow, launch slow\n");
    assert_eq!(bench.run("memory", "link", &["LINK=uma"]), "copy quick, launch quick\n");
}

fn a_bad_mode_is_named(bench: &Bench) {
    for mode in ["SCHEDULE=sometimes", "ACCESS=all", "LINK=pcie"] {
        let output = bench.output("memory", &["allocation"], &[mode]);
        let (name, value) = mode.split_once('=').unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1));
        assert!(errors.contains(&format!("UMA_DEVICE_{name}={value} is not known; it may be")), "{errors}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("cudaErrorInitializationError"));
    }
}

fn a_refused_call_names_itself_once(bench: &Bench) {
    let output = bench.output("memory", &["device"], &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(errors.matches("cudaGraphCreate").count(), 1, "{errors}");
}

fn a_missing_device_process_is_named(bench: &Bench) {
    let output = bench.output("memory", &["allocation"], &["PROCESS=/nowhere/uma-deviced"]);
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("can't start /nowhere/uma-deviced"), "{errors}");
}

/// No files, and two programs at once do not meet.
fn nothing_is_left_behind(bench: &Bench) {
    let shm = || std::fs::read_dir("/dev/shm").map(|entries| entries.count()).unwrap_or(0);
    let before = shm();
    let mut children: Vec<_> =
        (0..4).map(|_| bench.command("memory", &["async_allocation"], &[]).spawn().unwrap()).collect();
    for child in &mut children {
        let status = child.wait().unwrap();
        assert!(status.success() && status.signal().is_none(), "{status}");
    }
    assert_eq!(shm(), before);
}
