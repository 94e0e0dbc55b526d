//! What the commands say, and how they end, where nothing has to be merged.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::{echo_dr, own, root, text};

const COMMANDS: [&str; 9] =
    ["tune", "run", "profile", "analyze", "validate", "calibrate", "report", "doctor", "explain"];

#[test]
fn every_command_has_help_with_its_exit_codes_and_json() {
    let folder = tempfile::tempdir().unwrap();
    let general = echo_dr(folder.path(), &["--help"]).ends(0);
    for command in COMMANDS {
        assert!(general.out.contains(command), "{command} is not in\n{}", general.out);
        let help = echo_dr(folder.path(), &[command, "--help"]).ends(0).out;
        for part in ["Exit codes:", "--json", "Usage: echo-dr"] {
            assert!(help.contains(part), "`{command} --help` has no {part}:\n{help}");
        }
    }
}

#[test]
fn every_number_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let list = echo_dr(folder.path(), &["explain"]).ends(0).out;
    assert!(list.contains("EDR340 host-touched") && list.contains("EDR389"), "{list}");
    let page = echo_dr(folder.path(), &["explain", "host-touched"]).ends(0).out;
    assert!(page.starts_with("# EDR340") && page.contains("What to do"), "{page}");
    assert_eq!(echo_dr(folder.path(), &["explain", "EDR363", "--json"]).ends(0).json()["name"], "executable");
    echo_dr(folder.path(), &["explain", "EDR999"]).ends(2);
}

#[test]
fn wrong_usage_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let run = echo_dr(folder.path(), &["tune", "--", "./no-such-program"]).ends(2);
    assert!(run.err.contains("./no-such-program"), "{}", run.err);
    let run = echo_dr(folder.path(), &["analyze", "absent.trace"]).ends(2);
    assert!(run.err.contains("absent.trace"), "{}", run.err);
    let run = echo_dr(folder.path(), &["run", "absent.json", "--", "true"]).ends(125);
    assert!(run.err.contains("echo-dr tune"), "{}", run.err);
    let run = echo_dr(folder.path(), &["tune", "--", "sh", "-c", "echo complained >&2; exit 9"]).ends(3);
    assert!(run.err.contains("exit code 9") && run.err.contains("complained"), "{}", run.err);
}

#[test]
fn files_that_are_none_of_ours_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("text"), "no trace\n").unwrap();
    let run = echo_dr(folder.path(), &["analyze", "text"]).ends(2);
    assert!(run.err.contains("text"), "{}", run.err);
    let run = echo_dr(folder.path(), &["validate", "text", "--", "true"]).ends(2);
    assert!(run.err.contains("no plan"), "{}", run.err);
    // Others may write it, so others may have written it.
    fs::set_permissions(folder.path().join("text"), fs::Permissions::from_mode(0o666)).unwrap();
    let run = echo_dr(folder.path(), &["validate", "text", "--", "true"]).ends(2);
    assert!(run.err.contains("EDR369"), "{}", run.err);
}

#[test]
fn a_set_uid_program_is_refused_before_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    fs::copy("/bin/true", &copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).unwrap();
    let run = echo_dr(folder.path(), &["profile", "--", "./copy"]).ends(2);
    assert!(run.err.contains("set-uid") && run.err.contains("echo-dr doctor"), "{}", run.err);
}

#[test]
fn doctor_describes_a_program_of_the_cpu_device() {
    let folder = tempfile::tempdir().unwrap();
    let program = own("managed");
    let run = echo_dr(folder.path(), &["doctor", "--json", "--", text(&program)]).ends(0);
    let diagnosis = run.json();
    assert_eq!(diagnosis["usable"], true);
    let findings = diagnosis["findings"].to_string();
    assert!(findings.contains("uses a shared libcudart") && findings.contains("share one memory"), "{findings}");
    let backends = diagnosis["backends"].as_array().unwrap();
    let possible = |name: &str| backends.iter().find(|backend| backend["name"] == name).unwrap()["possible"].clone();
    assert_eq!([possible("managed"), possible("mapped"), possible("system")], [true, true, false]);
    let shown = echo_dr(folder.path(), &["doctor", "--", text(&program)]).ends(0).out;
    assert!(shown.contains("Echo can be used"), "{shown}");
}

/// Compiles a C program in a folder.
fn cc(folder: &Path, source: &str, arguments: &[&str]) {
    fs::write(folder.join("a.c"), source).unwrap();
    let built =
        std::process::Command::new("cc").current_dir(folder).args(["a.c", "-o", "app"]).args(arguments).status();
    assert!(built.unwrap().success());
}

#[test]
fn doctor_says_what_stands_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    cc(folder.path(), "int main(void) { return 0; }\n", &["-static"]);
    let run = echo_dr(folder.path(), &["doctor", "--", "./app"]).ends(1);
    assert!(run.out.contains("PROBLEM") && run.out.contains("static executable"), "{}", run.out);

    let own = "#include <stddef.h>\nvoid *malloc(size_t n) { (void)n; return NULL; }\nint main(void) { return 0; }\n";
    cc(folder.path(), own, &["-rdynamic"]);
    let run = echo_dr(folder.path(), &["doctor", "--", "./app"]).ends(1);
    assert!(run.out.contains("its own malloc and exports it"), "{}", run.out);
}

#[test]
fn doctor_knows_a_cudart_that_is_linked_in() {
    let folder = tempfile::tempdir().unwrap();
    let source = "#include <cuda_runtime.h>\nint main(void) { void *p; return cudaMalloc(&p, 1); }\n";
    let cuda = root().join("target/cuda");
    let (headers, library) = (cuda.join("include"), cuda.join("lib/libcudart_static.a"));
    assert!(library.exists(), "no CUDA toolkit in target/cuda: run `cargo xtask setup`");
    cc(folder.path(), source, &["-I", text(&headers), text(&library), "-lpthread", "-ldl", "-lrt"]);
    let run = echo_dr(folder.path(), &["doctor", "--", "./app"]).ends(0);
    assert!(run.out.contains("libcudart linked into it"), "{}", run.out);
}

#[test]
fn doctor_names_functions_that_it_does_not_know() {
    let folder = tempfile::tempdir().unwrap();
    cc(
        folder.path(),
        "int cuMemcpyOfTomorrow(void) { return 0; }\nint cuMemPoolCreate(void) { return 0; }\n",
        &["-shared", "-fPIC", "-Wl,-soname,libcudatomorrow.so", "-o", "libcudatomorrow.so"],
    );
    let source = "int cuMemcpyOfTomorrow(void);\nint cuMemPoolCreate(void);\nint cuMemFree_v2(void);\n\
                  int main(void) { return cuMemcpyOfTomorrow() + cuMemPoolCreate() + (cuMemFree_v2 != 0); }\n";
    let weak = "-Wl,--unresolved-symbols=ignore-all";
    cc(folder.path(), source, &["-L.", "-lcudatomorrow", weak]);
    let run = echo_dr(folder.path(), &["doctor", "--", "./app"]);
    assert!(run.out.contains("./app uses cuMemcpyOfTomorrow, which this Echo-DR does not know"), "{}", run.out);
}
