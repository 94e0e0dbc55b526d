//! Programs that try to be merged wrongly, and some that must be merged (`tests/programs`): the plugin's verdict on each is what its head
//! says, and with the plugin each prints what it prints without, in schedules that show a lost wait and both access modes.
//!
//! Lines of a program's head:
//! ```text
//! // EXPECT h d accept            the pair of host buffer h and device buffer d is merged (a * stands for any name)
//! // EXPECT h d decline [PREFIX]  no such pair is merged; if PREFIX is given, some reason of each has a code that starts with it
//! // EXPECT h * one               just one pair of h is merged
//! // EXPECT h * either            only the outputs count
//! // OPTIONS access=concurrent    options of the plugin
//! // ACCESS concurrent            with them, the program runs in this access mode only
//! ```
//! Names are those of variables; the plugin knows them from debug information.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

/// Floats a buffer has: above θ_min, where the work still takes several blocks.
const SIZE: &str = "60001";
const SCHEDULES: [&str; 4] = ["lazy", "eager", "random:1", "random:2"];
const ACCESS: [&str; 2] = ["exclusive", "concurrent"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the repository")
}

/// `cargo xtask` with arguments; it has to succeed.
fn xtask(arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(arguments).output().expect("xtask starts");
    assert!(output.status.success(), "xtask {arguments:?}:\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Builds `source` with the CPU device's driver, with a plugin and its options or without.
fn build(source: &Path, program: &Path, plugin: Option<(&Path, &str)>) {
    let object = program.with_extension("o");
    compile(source, &object, plugin, None);
    link(&object, None, program);
}

/// `mutant`: what the plugin is to forget (src/mutants.rs).
fn compile(source: &Path, object: &Path, plugin: Option<(&Path, &str)>, mutant: Option<&str>) {
    let mut command = driver();
    command.args(["-O2", "-g", "-c"]).arg(source).arg("-o").arg(object);
    command.env_remove("ECHO_SR_OPTIONS").env_remove("ECHO_SR_MUTANT");
    command.envs(mutant.map(|name| ("ECHO_SR_MUTANT", name)));
    if let Some((plugin, options)) = plugin {
        command.arg(format!("-fpass-plugin={}", plugin.display())).env("ECHO_SR_OPTIONS", options);
        // A module that the rewrite left invalid may still run; LLVM's verifier after each pass tells.
        command.args(["-Xclang", "-llvm-verify-each"]);
    }
    succeed(&mut command);
}

/// `runtime`: what stands for libecho_rt.a.
fn link(object: &Path, runtime: Option<&Path>, program: &Path) {
    let library = root().join("target/uma/lib");
    let mut command = driver();
    command.arg(object).args(runtime).arg("-o").arg(program).arg("-L").arg(library).arg("-lcudart");
    succeed(&mut command);
}

fn driver() -> Command {
    Command::new(root().join("target/uma/bin/uma-clang++"))
}

fn succeed(command: &mut Command) {
    let output = command.output().expect("the driver starts");
    assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
}

/// What a program prints and how it ends, in one mode of the device.
fn run(program: &Path, schedule: &str, access: &str, more: &[(&str, &str)]) -> String {
    let output = Command::new("timeout")
        .arg("60")
        .arg(program)
        .arg(SIZE)
        .env("LD_LIBRARY_PATH", root().join("target/uma/lib"))
        .env("UMA_DEVICE_SCHEDULE", schedule)
        .env("UMA_DEVICE_ACCESS", access)
        .envs(more.iter().copied())
        .output()
        .expect("timeout starts");
    let end = if output.status.success() { String::new() } else { format!("{}\n", output.status) };
    format!("{}{}{end}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The plugin's report, one value a pair.
fn report(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a line of the report is JSON")).collect()
}

/// What is wrong with the verdicts, one line each.
fn check_verdicts(text: &str, pairs: &[Value]) -> Vec<String> {
    let expectations: Vec<Vec<&str>> = text
        .lines()
        .filter_map(|line| line.strip_prefix("// EXPECT "))
        .map(|line| line.split_whitespace().collect())
        .collect();
    let mut wrong = Vec::new();
    if expectations.is_empty() {
        wrong.push("has no EXPECT line".to_owned());
    }
    for expectation in &expectations {
        let [host, device, verdict, ..] = expectation[..] else {
            wrong.push(format!("cannot be read: {expectation:?}"));
            continue;
        };
        let named = |pair: &Value, side: &str, name: &str| name == "*" || pair[side]["name"] == name;
        let concerned: Vec<&Value> =
            pairs.iter().filter(|pair| named(pair, "host", host) && named(pair, "device", device)).collect();
        let merged = concerned.iter().filter(|pair| pair["outcome"] == "merged").count();
        let has_code = |pair: &Value, prefix: &str| {
            let reasons = pair["reasons"].as_array().cloned().unwrap_or_default();
            reasons.iter().any(|reason| reason["code"].as_str().is_some_and(|code| code.starts_with(prefix)))
        };
        let holds = match verdict {
            "accept" => merged > 0 && merged == concerned.len(),
            "one" => merged == 1,
            "either" => true,
            "decline" => {
                let code = expectation.get(3).copied().unwrap_or("");
                merged == 0 && (code.is_empty() || !concerned.is_empty() && concerned.iter().all(|p| has_code(p, code)))
            }
            _ => false,
        };
        if !holds {
            wrong.push(format!("expected {}, got {concerned:#?}", expectation.join(" ")));
        }
    }
    wrong
}

/// Builds and runs one program in all ways; what is wrong, one line each.
fn check(source: &Path, folder: &Path, tools: &Tools) -> Vec<String> {
    let name = source.file_stem().expect("a program has a name").to_string_lossy().into_owned();
    let (plain, echo) = (folder.join(&name), folder.join(format!("{name}-echo")));
    let lines = folder.join(format!("{name}.jsonl"));
    build(source, &plain, None);
    let text = fs::read_to_string(source).expect("the program's source");
    let line = |key: &str| text.lines().find_map(|line| line.strip_prefix(&format!("// {key} ")));
    let options = format!("report={};{}", lines.display(), line("OPTIONS").unwrap_or_default());
    build(source, &echo, Some((&tools.plugin, &options)));
    let mut wrong = check_verdicts(&text, &report(&lines));
    let expected = run(&plain, "eager", "exclusive", &[]);
    for schedule in SCHEDULES {
        for access in ACCESS.into_iter().filter(|access| line("ACCESS").is_none_or(|only| only == *access)) {
            for program in [&plain, &echo] {
                let printed = run(program, schedule, access, &[]);
                if printed != expected {
                    let which = if program == &plain { "without" } else { "with" };
                    wrong.push(format!(
                        "{schedule}, {access}: {which} the plugin printed\n{printed}instead of\n{expected}"
                    ));
                }
            }
        }
    }
    wrong.extend(check_adaptive(source, &folder.join(format!("{name}-adaptive")), tools, &expected));
    wrong.into_iter().map(|text| format!("{name}: {text}")).collect()
}

/// The same for `target=adaptive`, with the runtime and with one that mixes backends; only outputs count.
fn check_adaptive(source: &Path, program: &Path, tools: &Tools, expected: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |schedule: &str, access: &str, more: &[(&str, &str)]| {
        let printed = run(program, schedule, access, more);
        if printed != expected {
            wrong.push(format!("adaptive, {more:?}, {schedule}, {access}: printed\n{printed}instead of\n{expected}"));
        }
    };
    let object = program.with_extension("o");
    compile(source, &object, Some((tools.plugin.as_path(), "target=adaptive")), None);
    link(&object, Some(&tools.runtime), program);
    for backend in ["", "mapped", "separate"] {
        check("lazy", "exclusive", &[("ECHO_RT_BACKEND", backend)]);
    }
    link(&object, Some(&tools.mixed_runtime), program);
    for (seed, schedule) in ["1", "2", "3", "4", "5", "6"].into_iter().zip(SCHEDULES.into_iter().cycle()) {
        check(schedule, ACCESS[0], &[("MIXED_RUNTIME_SEED", seed)]);
    }
    wrong
}

/// What programs are built with.
struct Tools {
    plugin: PathBuf,
    /// libecho_rt.a
    runtime: PathBuf,
    /// The test's own, as an object file.
    mixed_runtime: PathBuf,
}

impl Tools {
    fn new(folder: &Path) -> Self {
        let release = root().join("target/release");
        let mixed_runtime = folder.join("mixed_runtime.o");
        let compiled = Command::new("gcc")
            .args(["-O1", "-Wall", "-Werror", "-c"])
            .arg(root().join("tests/programs/mixed_runtime.c"))
            .arg("-o")
            .arg(&mixed_runtime)
            .status();
        assert!(compiled.is_ok_and(|status| status.success()), "gcc compiles the mixed runtime");
        Self { plugin: release.join("libecho_sr.so"), runtime: release.join("libecho_rt.a"), mixed_runtime }
    }
}

#[test]
fn verdicts_are_right_and_outputs_stay_the_same() {
    xtask(&["build"]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut sources: Vec<PathBuf> = fs::read_dir(root().join("tests/programs"))
        .expect("the programs")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "cu"))
        .collect();
    sources.sort();
    assert!(sources.len() >= 20, "{} programs", sources.len());

    let tools = Tools::new(folder.path());
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(source) = sources.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = check(source, folder.path(), &tools);
                    wrong.lock().expect("no thread has panicked").extend(found);
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no thread has panicked");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A plugin that forgets the wait in place of a download must be caught by the lazy schedule: otherwise the runs above prove nothing.
#[test]
fn a_lost_wait_gives_a_wrong_result_in_the_lazy_schedule() {
    xtask(&["build"]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plugin = plugin_with_mutants(folder.path());
    let source = root().join("tests/programs/accept_checked_dynamic_size.cu");
    let run_as = |name: &str, mutant: Option<&str>| {
        let (object, program) = (folder.path().join(format!("{name}.o")), folder.path().join(name));
        compile(&source, &object, Some((&plugin, "")), mutant);
        link(&object, None, &program);
        run(&program, "lazy", "concurrent", &[])
    };
    let expected = run_as("sound", None);
    assert!(expected.starts_with("h "), "{expected}");
    assert_ne!(run_as("broken", Some("R3Wait")), expected, "the lost wait was not noticed");
}

/// A copy of the plugin in which checks can be switched off (src/mutants.rs).
fn plugin_with_mutants(folder: &Path) -> PathBuf {
    let status = Command::new(env!("CARGO"))
        .current_dir(root())
        .args(["build", "--quiet", "--package", "echo-sr", "--lib", "--features", "mutants"])
        .status()
        .expect("cargo starts");
    assert!(status.success());
    let plugin = folder.join("libecho_sr_mutants.so");
    fs::copy(root().join("target/debug/libecho_sr.so"), &plugin).expect("the plugin was built");
    plugin
}
