//! The CMake package: a project that finds it in an installation builds with the plugin and runs as it did without, and wrong use is an
//! error that says what to do.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the repository")
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[track_caller]
fn succeed(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{command:?}:\n{}", text(&output));
    text(&output)
}

/// A project of `figure1.cu` (as C++ in CUDA mode, which every CMake knows) with these lines; gives its folder's configuration.
fn configure(folder: &Path, prefix: &Path, lines: &str) -> Output {
    let project = format!(
        "cmake_minimum_required(VERSION 3.22)
         project(app LANGUAGES CXX)
         find_package(EchoSR 0.1 REQUIRED)
         set(source {}/cuda-samples/figure1.cu)
         set_source_files_properties(${{source}} PROPERTIES LANGUAGE CXX)
         foreach(name plain managed adaptive)
           add_executable(${{name}} ${{source}})
           target_compile_options(${{name}} PRIVATE \"SHELL:-x cuda\" -O2 -g)
           target_link_libraries(${{name}} PRIVATE cudart)
         endforeach()
         {lines}\n",
        root().display()
    );
    fs::write(folder.join("CMakeLists.txt"), project).expect("the project");
    let uma = root().join("target/uma");
    Command::new("cmake")
        .args(["-G", "Unix Makefiles", "-S"])
        .arg(folder)
        .arg("-B")
        .arg(folder.join("build"))
        .arg(format!("-DCMAKE_CXX_COMPILER={}", uma.join("bin/uma-clang++").display()))
        .arg(format!("-DCMAKE_EXE_LINKER_FLAGS=-L{}", uma.join("lib").display()))
        .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()))
        .env_remove("ECHO_SR_OPTIONS")
        .output()
        .expect("cmake starts")
}

#[test]
fn a_project_builds_with_the_package_from_an_installation() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (prefix, project) = (folder.path().join("usr"), folder.path().join("app"));
    fs::create_dir(&project).expect("a folder");
    succeed(Command::new(env!("CARGO_BIN_EXE_xtask")).args(["install", "--prefix"]).arg(&prefix));

    let wrong = configure(&project, &prefix, "echo_sr_enable(managed ACCESS shared)");
    assert!(!wrong.status.success());
    assert!(text(&wrong).contains("ACCESS can't be `shared`; valid: exclusive, concurrent"), "{}", text(&wrong));
    let wrong = configure(&project, &prefix, "echo_sr_enable(nothing)");
    assert!(text(&wrong).contains("there is no target `nothing`"), "{}", text(&wrong));

    let lines =
        "echo_sr_enable(managed THETA_MIN 1024 REPORT \"it's a pair.jsonl\")\necho_sr_enable(adaptive TARGET adaptive)";
    let right = configure(&project, &prefix, lines);
    assert!(right.status.success(), "{}", text(&right));
    let build = project.join("build");
    succeed(Command::new("cmake").arg("--build").arg(&build).args(["--parallel", "2"]));

    let report = fs::read_to_string(build.join("it's a pair.jsonl")).expect("the report");
    assert_eq!(report.lines().count(), 1, "{report}");
    assert!(report.contains("\"outcome\":\"merged\""), "{report}");
    let run = |program: &str| {
        let mut command = Command::new(build.join(program));
        command.env("LD_LIBRARY_PATH", root().join("target/uma/lib")).env("ECHO_RT_VERBOSE", "1").arg("60001");
        let output = command.output().expect("the program starts");
        assert!(output.status.success(), "{program}: {}", text(&output));
        let notes = String::from_utf8_lossy(&output.stderr).lines().filter(|line| line.starts_with("echo-rt:")).count();
        (output.stdout, notes)
    };
    let (plain, managed, adaptive) = (run("plain"), run("managed"), run("adaptive"));
    assert_eq!((&plain.0, plain.1), (&managed.0, 0));
    assert_eq!((&plain.0, 1), (&adaptive.0, adaptive.1), "the runtime is linked, and tells of the pair");

    // The program that was built without the plugin, as it is: the installed command finds the installed library.
    let mut profile = Command::new(prefix.join("bin/echo-dr"));
    profile.args(["profile", "--threshold", "1024", "--"]).arg(build.join("plain")).arg("60001").current_dir(&project);
    profile.env("LD_LIBRARY_PATH", root().join("target/uma/lib")).env_remove("ECHO_DR_LIBRARY");
    let said = succeed(&mut profile);
    assert!(said.contains("20 copies between host and device"), "{said}");
}
