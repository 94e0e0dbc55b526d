//! The driver API as a program in C uses it.

mod support;
use std::process::Command;
use support::{Bench, cuda, program, succeeds};

#[test]
fn driver_api() {
    let bench = Bench::empty();
    let image = bench.compile_image("driver_kernels.cu");
    let mut command = Command::new("clang-22");
    command
        .args(["-std=c17", "-Wall", "-Wextra", "-Werror", "-Wno-deprecated-declarations", "-O1", "-I"])
        .arg(cuda().join("include"));
    command.arg(program("driver_api.c")).arg("-o").arg(bench.path().join("driver_api"));
    succeeds(command.arg("-L").arg(bench.path()).args(["-lcuda", "-ldl"]));

    let cases =
        ["contexts", "device", "memory", "pointers", "modules", "libraries", "streams", "faults", "entry_points"];
    for case in cases {
        for modes in [&[][..], &["SCHEDULE=lazy"], &["SCHEDULE=random:3", "ACCESS=concurrent"]] {
            let output = bench.output("driver_api", &[case, &image], modes);
            let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert!(output.status.success(), "{case} {modes:?}: {}\n{text}{errors}", output.status);
            let refused = errors.contains("cuArrayCreate_v2 is not supported by the CPU device");
            assert_eq!(refused, case == "device", "{errors}");
        }
    }
}
