//! The command as users run it, with the plugin and clang.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use assert_cmd::Command;
use echo_report::Outcome;
use serde_json::{Value, json};

/// The plugin, built where this test program was.
fn plugin() -> &'static Path {
    static PLUGIN: OnceLock<PathBuf> = OnceLock::new();
    PLUGIN.get_or_init(|| {
        let program = std::env::current_exe().expect("a test program has a path");
        let target = program.ancestors().nth(3).expect("target/<profile>/deps/<program>");
        let mut cargo = std::process::Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--package", "echo-sr", "--lib", "--target-dir"]).arg(target);
        cargo.current_dir(root()).env_remove("LLVM_CONFIG");
        assert!(cargo.status().expect("cargo runs").success(), "the plugin does not build");
        target.join("debug/libecho_sr.so")
    })
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn cuda() -> PathBuf {
    let path = root().join("target/cuda");
    assert!(path.join("bin/ptxas").exists(), "no CUDA toolkit in target/cuda: run `cargo xtask setup`");
    path
}

/// What a run of the command gave.
struct Run {
    code: i32,
    out: String,
    err: String,
}

fn run(folder: &Path, arguments: &[&str]) -> Run {
    let mut command = Command::cargo_bin("echo-sr").expect("the program is built");
    command.current_dir(folder).args(arguments).env("ECHO_SR_PLUGIN", plugin()).env_remove("ECHO_SR_OPTIONS");
    let output = command.output().expect("it runs");
    Run {
        code: output.status.code().expect("no signal"),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

impl Run {
    #[track_caller]
    fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, code, "standard output:\n{}\nstandard error:\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    fn says(self, part: &str) -> Self {
        assert!(self.out.contains(part), "no {part:?} in\n{}\nstandard error:\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    fn complains(self, part: &str) -> Self {
        assert!(self.err.contains(part), "no {part:?} in\n{}", self.err);
        self
    }

    #[track_caller]
    fn pairs(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
    }
}

/// A pair that can be merged; `line` stands between the upload and the kernel.
fn program(line: &str) -> String {
    format!(
        "#include <cstdlib>
__global__ void twice(float *d, size_t n) {{
  size_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) d[i] *= 2;
}}
int main(int argc, char **argv) {{
  size_t n = atol(argv[1]);
  float *h = (float *)malloc(n * sizeof(float)), *d;
  cudaMalloc(&d, n * sizeof(float));
  for (size_t i = 0; i < n; i++) h[i] = i;
  cudaMemcpy(d, h, n * sizeof(float), cudaMemcpyHostToDevice);
  {line}
  twice<<<n / 256, 256>>>(d, n);
  cudaMemcpy(h, d, n * sizeof(float), cudaMemcpyDeviceToHost);
  int result = h[0] > 0;
  cudaFree(d);
  free(h);
  return result;
}}
"
    )
}

const BREAKS_S1: &str = "h[0] = 999;";

/// A folder with sources and a database of `(file, arguments)`.
fn project(files: &[(&str, &str)], commands: &[(&str, Vec<String>)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("written");
    }
    let entries: Vec<Value> = commands
        .iter()
        .map(|(file, arguments)| json!({ "directory": folder.path(), "file": file, "arguments": arguments }))
        .collect();
    fs::create_dir(folder.path().join("build")).expect("made");
    let database = serde_json::to_string(&entries).expect("JSON");
    fs::write(folder.path().join("build/compile_commands.json"), database).expect("written");
    folder
}

fn clang(file: &str, more: &[&str]) -> Vec<String> {
    let cuda = format!("--cuda-path={}", cuda().display());
    let mut words = vec!["clang++-22", &cuda, "--cuda-gpu-arch=sm_90", "-Wall", "-Werror", "-c", file, "-o", "x.o"];
    words.extend(more);
    words.into_iter().map(str::to_owned).collect()
}

#[test]
fn a_project_is_analysed_and_one_broken_unit_does_not_lose_the_others() {
    let folder = project(
        &[
            ("good.cu", &program("")),
            ("bad.cu", &program(BREAKS_S1)),
            ("broken.cu", "#include <cstdlib>\nint main() { return missing; }\n"),
            ("plain.cpp", "int f() { return missing; }\n"),
        ],
        &[
            ("good.cu", clang("good.cu", &["-O2", "-MD", "-MF", "good.d"])),
            ("bad.cu", clang("bad.cu", &["-O2"])),
            ("broken.cu", clang("broken.cu", &["-O2"])),
            ("plain.cpp", clang("plain.cpp", &["-O2"])),
        ],
    );
    run(folder.path(), &["lint", "-j2"])
        .ends(3)
        .says("note[ESR103]: host buffer `h` and device buffer `d` can be one buffer")
        .says("warning[ESR210]: host buffer `h` and device buffer `d` stay two: S1-device-value-overwritten")
        .says("12 │   h[0] = 999;")
        .says("step 2: kernel `twice(float*, unsigned long)`")
        .complains("broken.cu could not be analysed:")
        .complains("use of undeclared identifier 'missing'")
        .complains("3 units: 2 pairs, 1 can be merged, 1 declined; 1 units could not be analysed");
    let left: Vec<_> = fs::read_dir(folder.path())
        .expect("readable")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .filter(|name| !["good.cu", "bad.cu", "broken.cu", "plain.cpp", "build"].contains(&name.as_str()))
        .collect();
    assert!(left.is_empty(), "the lint left {left:?}");
}

#[test]
fn with_a_baseline_only_what_is_new_counts() {
    let commands = [("a.cu", clang("a.cu", &["-O2"]))];
    let folder = project(&[("a.cu", &program(BREAKS_S1))], &commands);
    let lint = |arguments: &[&str]| run(folder.path(), &[&["lint", "--baseline", "known.json"], arguments].concat());
    run(folder.path(), &["lint", "--write-baseline", "known.json", "--fail-on", "declined"]).ends(1);
    // Moved by a line.
    fs::write(folder.path().join("a.cu"), format!("// a comment\n{}", program(BREAKS_S1))).expect("written");
    lint(&[]).ends(0).says("S1-device-value-overwritten, known").complains("1 declined (0 new)");
    // Another condition.
    let worse = program(&format!("{BREAKS_S1} if (h == d) return 2;"));
    fs::write(folder.path().join("a.cu"), worse).expect("written");
    let sarif = lint(&["--format", "sarif"]).ends(1);
    let log: Value = serde_json::from_str(&sarif.out).expect("SARIF is JSON");
    let results = log["runs"][0]["results"].as_array().expect("results");
    let state = |rule: &str| &results.iter().find(|result| result["ruleId"] == rule).expect(rule)["baselineState"];
    assert_eq!(state("ESR210"), "unchanged");
    assert_eq!(state("ESR230"), "new");
    assert_eq!(results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "a.cu");
}

#[test]
fn a_command_of_nvcc_is_translated_or_refused_with_what_is_unknown() {
    let nvcc = cuda().join("bin/nvcc");
    let command = |more: &[&str]| {
        let mut words = vec![nvcc.to_str().expect("text"), "-O2", "-gencode=arch=compute_90,code=[sm_90]"];
        words.extend(["--expt-relaxed-constexpr", "-Xcompiler", "-fPIC,-Wall", "-x", "cu", "-c", "a.cu", "-o", "a.o"]);
        words.extend(more);
        words.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let commands = [("a.cu", command(&[])), ("a.cu", command(&["--not-an-option"]))];
    let folder = project(&[("a.cu", &program(""))], &commands);
    let run =
        run(folder.path(), &["lint", "--json"]).ends(3).complains("can't be translated for clang: --not-an-option");
    let pairs = run.pairs();
    assert_eq!(pairs.len(), 1, "{}", run.out);
    assert_eq!(pairs[0]["outcome"], serde_json::to_value(Outcome::Mergeable).expect("a name"));
    assert_eq!((&pairs[0]["host"]["name"], &pairs[0]["unit"]), (&json!("h"), &json!("a.cu")));
}

#[test]
fn a_unit_without_optimisation_is_analysed_and_told_once() {
    let folder = project(&[("a.cu", &program(""))], &[]);
    let cuda = format!("--cuda-path={}", cuda().display());
    let command = ["lint", "--json", "--", "clang++-22", &cuda, "--cuda-gpu-arch=sm_90", "-g1", "a.cu", "-o", "a"];
    let run = run(folder.path(), &command).ends(0).complains("note: 1 unit is compiled without optimisation");
    assert_eq!(run.pairs()[0]["host"]["name"], "h", "{}", run.out);
}

#[test]
fn set_up_errors_end_with_2_and_say_what_to_do() {
    let folder = project(&[("a.cu", &program(""))], &[("a.cu", clang("a.cu", &["-O2"]))]);
    let lint = |arguments: &[&str]| run(folder.path(), &[&["lint"], arguments].concat()).ends(2);
    lint(&["--compile-db", "none.json"]).complains("CMAKE_EXPORT_COMPILE_COMMANDS");
    lint(&["--clang", "/bin/true"]).complains("/bin/true is no clang").complains("--clang PATH");
    lint(&["--baseline", "none.json"]).complains("--write-baseline");
    lint(&["--", "clang++-22", "-c"]).complains("names no source file");
    lint(&["--no-such-flag"]).complains("unexpected argument");
    let wrong = lint(&["--options", "acess=concurrent"]).complains("unknown option `acess=concurrent`");
    assert_eq!(wrong.err.matches("unknown option").count(), 1, "{}", wrong.err);
    let mut command = Command::cargo_bin("echo-sr").expect("the program is built");
    let output = command.arg("plugin-path").env("ECHO_SR_PLUGIN", "/no/such.so").output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("set ECHO_SR_PLUGIN"));
}

#[test]
fn another_clang_than_the_plugins_is_refused() {
    if std::process::Command::new("clang++-19").arg("--version").output().is_err() {
        eprintln!("skipped: clang++-19 is not installed");
        return;
    }
    let folder = project(&[("a.cu", &program(""))], &[]);
    run(folder.path(), &["lint", "--", "clang++-19", "-c", "a.cu"])
        .ends(2)
        .complains("clang++-19 is clang 19")
        .complains("built for LLVM 22");
}

#[test]
fn a_folder_is_surveyed_in_one_table() {
    let folder = project(&[("a.cu", &program("")), ("b.cu", &program(BREAKS_S1))], &[]);
    let cuda = cuda();
    let arguments = ["survey", ".", "--arch", "sm_90", "--cuda-path", cuda.to_str().expect("text")];
    let run = run(folder.path(), &[&arguments[..], &["--json"]].concat()).ends(0);
    let table: Value = serde_json::from_str(&run.out).expect("JSON");
    let expected = json!({
        "units": 2, "failed": 0, "pairs": 2, "mergeable": 1, "declined": 1,
        "by_code": { "S1-device-value-overwritten": 1 },
    });
    assert_eq!(table, expected);
}

#[test]
fn every_code_is_explained() {
    let here = Path::new("/");
    run(here, &["explain", "esr220"]).ends(0).says("# ESR220 S2-kernel-pending").says("## What to do");
    run(here, &["explain", "S2-kernel-pending"]).ends(0).says("# ESR220");
    run(here, &["explain", "S2-nothing"]).ends(2).complains("near are S2-kernel-pending");
    run(here, &["explain", "--list"]).ends(0).says("ESR101 merged").says("ESR279 C-unresolved-copy");
    run(here, &["explain", "ESR101", "--json"]).ends(0).says(r#""code":"merged""#);
}

#[test]
fn an_explanation_shows_where_a_report_has_the_code_even_without_debug_information() {
    let folder = project(&[("a.cu", &program(BREAKS_S1))], &[]);
    let mut words = clang("a.cu", &["-O2"]);
    words.retain(|word| word != "-Werror");
    let mut compiler = std::process::Command::new(words.remove(0));
    compiler.args(words).arg(format!("-fpass-plugin={}", plugin().display())).arg("-w").current_dir(folder.path());
    assert!(compiler.env("ECHO_SR_OPTIONS", "report=r.jsonl").status().expect("clang runs").success());
    run(folder.path(), &["explain", "ESR210", "r.jsonl"])
        .ends(0)
        .says("1 pairs of r.jsonl have it")
        .says("in `main`")
        .says("no debug information (-g)");
    run(folder.path(), &["explain", "ESR230", "r.jsonl"]).ends(0).says("0 pairs of r.jsonl have it");
}

#[test]
fn the_plugins_path_is_for_a_compilers_command_line() {
    let run = run(Path::new("/"), &["plugin-path"]).ends(0);
    assert_eq!(Path::new(run.out.trim_end()), plugin());
    let json = self::run(Path::new("/"), &["plugin-path", "--json"]).ends(0);
    assert_eq!(json.pairs()[0]["llvm"], 22);
}

#[test]
fn each_command_has_its_exit_codes_in_its_help() {
    for command in ["lint", "explain", "survey", "plugin-path"] {
        run(Path::new("/"), &[command, "--help"]).ends(0).says("Exit codes:");
    }
}
