//! The three modes on programs that copy between two buffers, through the runtime API and through the driver API.

#[path = "../common/mod.rs"]
mod common;
mod kernel;
mod others;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use common::{preloaded, program, read, run, scratch};
use echo_dr_engine::{Options, analyze, judge};
use echo_dr_format::counters::Counters;
use echo_dr_format::finding::{Access, Trouble};
use echo_dr_format::plan::{Plan, State};
use echo_dr_format::trace::Trace;

/// Which API a program uses, and for page-locked host memory or not.
#[derive(Clone, Copy, Debug)]
enum Api {
    Runtime,
    Driver,
    RuntimeLocked,
    DriverLocked,
}

const APIS: [Api; 4] = [Api::Runtime, Api::Driver, Api::RuntimeLocked, Api::DriverLocked];

/// A folder with the CPU device's libraries under the names that programs load, and its process.
fn device() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let make = || {
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "-p", "uma-runtime", "-p", "uma-driver"])
            .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/../../../Cargo.toml")])
            .status()
            .expect("cargo runs");
        assert!(status.success(), "the CPU device does not build");
        let program = std::env::current_exe().expect("a path");
        let built = program.ancestors().nth(2).expect("target/<profile>/deps/<program>").to_owned();
        let folder = scratch();
        let links = [
            ("libcudart.so", "libcudart.so"),
            ("libcudart.so", "libcudart.so.13"),
            ("libcuda.so", "libcuda.so"),
            ("libcuda.so", "libcuda.so.1"),
            ("uma-deviced", "uma-deviced"),
        ];
        for (file, name) in links {
            std::os::unix::fs::symlink(built.join(file), folder.path().join(name)).expect("a link");
        }
        folder
    };
    FOLDER.get_or_init(make).path()
}

fn pair(api: Api) -> PathBuf {
    cuda_program("pair", api)
}

/// A program of `tests/programs` that includes `pair.h`.
fn cuda_program(name: &str, api: Api) -> PathBuf {
    let folder = format!("-L{}", device().display());
    match api {
        Api::Runtime => program(name, &[&folder, "-lcudart"]),
        Api::Driver => program(name, &[&folder, "-DDRIVER", "-lcuda"]),
        Api::RuntimeLocked => program(name, &[&folder, "-DLOCKED", "-lcudart"]),
        Api::DriverLocked => program(name, &[&folder, "-DDRIVER", "-DLOCKED", "-lcuda"]),
    }
}

fn with_device(command: &mut Command) -> &mut Command {
    command.env("LD_LIBRARY_PATH", device())
}

/// Runs the program `pair` in a mode; its output and counters.
fn in_mode(mode: &str, api: Api, argument: &str, plan: Option<&Path>, folder: &Path) -> (Output, Counters) {
    run_in_mode(mode, &pair(api), argument, plan, folder)
}

/// Runs a program in a mode; its output and counters.
fn run_in_mode(mode: &str, program: &Path, argument: &str, plan: Option<&Path>, folder: &Path) -> (Output, Counters) {
    let counters = folder.join(format!("{mode}.counters"));
    let mut command = preloaded(program);
    with_device(&mut command).arg(argument).env("ECHO_DR_MODE", mode).env("ECHO_DR_COUNTERS", &counters);
    if mode != "optimise" {
        command.env("ECHO_DR_TRACE", folder.join(mode));
    }
    if let Some(plan) = plan {
        command.env("ECHO_DR_PLAN", plan).env("ECHO_DR_EXCLUSIVE", "1");
    }
    let output = command.output().expect("the program runs");
    let counters = std::fs::read(&counters).map(|text| Counters::read(&text).expect("counters")).unwrap_or_default();
    (output, counters)
}

fn plan_of(api: Api, argument: &str, folder: &Path) -> Plan {
    plan_for(&pair(api), argument, folder)
}

fn plan_for(program: &Path, argument: &str, folder: &Path) -> Plan {
    let (output, counters) = run_in_mode("profile", program, argument, None, folder);
    assert!(output.status.success(), "{output:?}");
    assert!(counters.trouble.is_none() && counters.events_lost == 0, "{counters:?}");
    analyze(&read(&folder.join("profile")), Options::default())
}

fn write(plan: &Plan, folder: &Path) -> PathBuf {
    let path = folder.join("plan.json");
    let mut text = Vec::new();
    plan.write(&mut text).expect("written");
    std::fs::File::create(&path).and_then(|mut file| file.write_all(&text)).expect("written");
    path
}

fn validated(api: Api, argument: &str) -> (Plan, Trace, Output) {
    let folder = scratch();
    let mut plan = plan_of(api, argument, folder.path());
    assert_eq!(plan.pairs.len(), 1, "{:?}", plan.ineligible);
    let path = write(&plan, folder.path());
    let (output, _) = in_mode("validate", api, argument, Some(&path), folder.path());
    let trace = read(&folder.path().join("validate"));
    judge(&mut plan, &trace).expect("the same program");
    (plan, trace, output)
}

#[test]
fn a_pair_is_found_validated_merged_and_its_copies_skipped() {
    for api in APIS {
        let folder = scratch();
        let plain = run(with_device(Command::new(pair(api)).arg("clean")));
        let (mut plan, trace, output) = validated(api, "clean");
        assert_eq!(output.stdout, plain.stdout, "{api:?}");
        assert_eq!(trace.findings, [], "{api:?}");
        assert_eq!((trace.seen[0].windows, trace.seen[0].closed), (5, 5), "{api:?}");
        assert_eq!(plan.pairs[0].state, State::Validated, "{api:?}");
        plan.pairs[0].state = State::Enabled;
        let path = write(&plan, folder.path());
        let (output, counters) = in_mode("optimise", api, "clean", Some(&path), folder.path());
        assert!(output.status.success(), "{api:?}: {output:?}");
        assert_eq!((&output.stdout, &output.stderr), (&plain.stdout, &plain.stderr), "{api:?}");
        let pair = counters.pairs[0];
        assert_eq!((pair.merged, pair.met, pair.released), (1, 1, 1), "{api:?}: {counters:?}");
        assert_eq!((pair.copies_skipped, pair.bytes_skipped), (10, 10_000_000), "{api:?}: {counters:?}");
        assert_eq!(counters.refused, None, "{api:?}");
    }
}

#[test]
fn each_touch_of_the_host_rejects_the_pair_and_names_its_place() {
    let touches = [
        ("write", Access::Write),
        ("read", Access::Read),
        ("alias", Access::Write),
        ("thread", Access::Write),
        ("sysread", Access::SystemCall),
        ("syswrite", Access::SystemCall),
        ("fread", Access::SystemCall),
    ];
    let runs = [Api::Runtime, Api::RuntimeLocked].into_iter().flat_map(|api| touches.map(|touch| (api, touch)));
    for (api, (argument, access)) in runs {
        let plain = run(with_device(Command::new(pair(api)).arg(argument)));
        let (plan, trace, output) = validated(api, argument);
        assert!(output.status.success(), "{argument}: {output:?}");
        assert_eq!(output.stdout, plain.stdout, "{argument}");
        assert!(matches!(plan.pairs[0].state, State::Rejected(_)), "{argument}: {:?}", plan.pairs[0].state);
        let touched = |trouble| matches!(trouble, Trouble::HostTouched(_));
        let finding = trace.findings.iter().find(|finding| touched(finding.trouble));
        let finding = finding.unwrap_or_else(|| panic!("{argument}: {:?}", trace.findings));
        assert_eq!(finding.trouble, Trouble::HostTouched(access), "{argument}");
        let frames = trace.frames.iter().find(|frames| Some(frames.site) == finding.site);
        let frames = frames.unwrap_or_else(|| panic!("{argument}: no frames of {finding:?}"));
        let module = trace.modules.iter().find(|module| Some(module.id) == frames.frames[0].module).expect("a module");
        assert_eq!(Path::new(&module.path), pair(api), "{argument}: the program itself touches it");
    }
}

#[test]
fn functions_that_a_program_looks_up_by_name_are_seen() {
    for how in ["dlsym", "dlvsym"] {
        let folder = scratch();
        let program = program("pair", &[&format!("-DLOOKED_UP={how}")]);
        let plain = run(with_device(Command::new(&program).arg("clean")));
        let mut plan = plan_for(&program, "clean", folder.path());
        assert_eq!(plan.pairs.len(), 1, "{how}: {:?}", plan.ineligible);
        plan.pairs[0].state = State::Enabled;
        let path = write(&plan, folder.path());
        let (output, counters) = run_in_mode("optimise", &program, "clean", Some(&path), folder.path());
        assert_eq!(output.stdout, plain.stdout, "{how}");
        assert_eq!(counters.pairs[0].copies_skipped, 10, "{how}: {counters:?}");
    }
}

/// Validation of a run with another argument than the profiled one: for what the analysis would decline.
fn validate_other(argument: &str) -> (Output, Trace) {
    let folder = scratch();
    let plan = plan_of(Api::Runtime, "clean", folder.path());
    let plan = Plan { context: with_argument(&plan, argument), ..plan };
    let path = write(&plan, folder.path());
    let (output, counters) = in_mode("validate", Api::Runtime, argument, Some(&path), folder.path());
    assert_eq!(counters.refused, None);
    (output, read(&folder.path().join("validate")))
}

#[test]
fn a_child_of_fork_reads_a_closed_buffer() {
    let (output, trace) = validate_other("child");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(trace.seen[0].windows, 5, "the parent goes on being watched");
}

#[test]
fn a_fault_that_is_the_programs_own_reaches_its_handler_in_validation() {
    let (output, _) = validate_other("crash");
    assert_eq!(output.status.code(), Some(42), "{output:?}");
}

fn with_argument(plan: &Plan, argument: &str) -> echo_dr_format::context::Context {
    let mut context = plan.context.clone();
    context.process.arguments = vec![argument.to_owned()];
    context
}

#[test]
fn a_plan_for_something_else_runs_the_program_unchanged_and_says_so_once() {
    let folder = scratch();
    let mut plan = plan_of(Api::Runtime, "clean", folder.path());
    plan.pairs[0].state = State::Enabled;
    let plain = run(with_device(Command::new(pair(Api::Runtime)).arg("clean")));
    let device = |change: fn(&mut echo_dr_format::context::DeviceIdentity)| {
        let mut plan = plan.clone();
        change(plan.context.device.as_mut().expect("a device"));
        plan
    };
    let mut other_program = plan.clone();
    other_program.context.process.executable.bytes += 1;
    let mut other_host = plan.clone();
    other_host.context.process.host = "elsewhere".into();
    let plans = [
        (other_program, "EDR363"),
        (Plan { context: with_argument(&plan, "other"), ..plan.clone() }, "EDR366"),
        (other_host, "EDR365"),
        (device(|device| device.name.push('x')), "EDR367"),
        (device(|device| device.runtime = Some(1)), "EDR368"),
    ];
    for (plan, number) in plans {
        let path = write(&plan, folder.path());
        let (output, counters) = in_mode("optimise", Api::Runtime, "clean", Some(&path), folder.path());
        assert_eq!(output.stdout, plain.stdout, "{number}");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(told.lines().count(), 1, "{number}: {told}");
        let refused = counters.refused.as_ref().map(echo_dr_format::reason::Reason::number);
        assert_eq!(refused, Some(number));
        assert!(counters.pairs.iter().all(|pair| pair.merged == 0), "{number}");
    }
    // Others may write it, or it is damaged.
    use std::os::unix::fs::PermissionsExt as _;
    let path = write(&plan, folder.path());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).expect("the owner may");
    let (output, counters) = in_mode("optimise", Api::Runtime, "clean", Some(&path), folder.path());
    assert_eq!(output.stdout, plain.stdout);
    assert_eq!(counters.refused.as_ref().map(echo_dr_format::reason::Reason::number), Some("EDR369"));
}
