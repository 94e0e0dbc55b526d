//! How long programs take, with a plan and while they are profiled. A machine that does other things meanwhile makes any bound fail sometimes, so
//! this prints ratios and is run by hand, on an idle machine:
//! `cargo test --release -p echo-dr-cli --test end_to_end speed -- --ignored --nocapture --test-threads 1`

use std::path::Path;
use std::process::Command;

use crate::common::{Run, command, echo_dr, enable, plain, prepared, program, root, text};

/// Copy-dominated samples that have a variant merged by hand, with arguments that make their buffers large.
const SAMPLES: [(&str, &[&str]); 3] = [
    ("figure1", &["8388608", "--iterations", "10"]),
    ("vector_add", &["4194304", "--iterations", "10"]),
    ("saxpy", &["16777216", "--iterations", "6"]),
];

const RUNS: usize = 7;

fn sample(name: &str) -> std::path::PathBuf {
    program(&root().join(format!("cuda-samples/{name}.cu")))
}

/// Milliseconds in `loop time: 12.345 ms`, which the samples write to standard error.
fn loop_ms(run: &Run) -> f64 {
    let line = run.err.lines().find_map(|line| line.strip_prefix("loop time: ")?.strip_suffix(" ms"));
    line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no loop time in {}", run.err))
}

/// Medians of runs that are made in turns.
fn medians<const N: usize>(mut ways: [&mut dyn FnMut() -> f64; N]) -> [f64; N] {
    let mut times = [(); N].map(|()| Vec::new());
    for _ in 0..RUNS {
        for (way, times) in ways.iter_mut().zip(&mut times) {
            times.push(way());
        }
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    })
}

fn with_plan(folder: &Path, app: &Path, arguments: &[&str]) -> f64 {
    let mut run = command(folder);
    run.args(["run", "echo-dr.plan.json", "--", text(app)]).args(arguments);
    loop_ms(&Run::from(run.output().expect("echo-dr starts")).ends(0))
}

#[test]
#[ignore = "it measures"]
fn speed_against_the_hand_merged_variant() {
    for (name, arguments) in SAMPLES {
        let (app, by_hand) = (sample(name), sample(&format!("{name}_merged")));
        let folder = tempfile::tempdir().unwrap();
        let prepare = ["tune", "--trials", "1", "--backend", "managed", "--", text(&app)];
        echo_dr(folder.path(), &[&prepare[..], arguments].concat());
        enable(&folder.path().join("echo-dr.plan.json"));
        let [before, with, merged] = medians([
            &mut || loop_ms(&plain(&app, arguments, &[]).ends(0)),
            &mut || with_plan(folder.path(), &app, arguments),
            &mut || loop_ms(&plain(&by_hand, arguments, &[]).ends(0)),
        ]);
        let (gain, ratio) = (before / with, with / merged);
        println!(
            "{name:12} {before:8.2} ms, with its plan {with:8.2} ms ({gain:.2}x), by hand {merged:8.2} ms ({ratio:.3})"
        );
    }
}

#[test]
#[ignore = "it measures"]
fn speed_while_profiled() {
    let heaptrack = Command::new("heaptrack").arg("--help").output().is_ok_and(|output| output.status.success());
    for (name, arguments) in SAMPLES {
        let app = sample(name);
        let folder = tempfile::tempdir().unwrap();
        let mut bare = || loop_ms(&plain(&app, arguments, &[]).ends(0));
        let mut profiled = || {
            let run = [&["profile", "--show-output", "--", text(&app)], arguments].concat();
            loop_ms(&echo_dr(folder.path(), &run).ends(0))
        };
        // It writes into the folder that it is in.
        let mut tracked = || {
            let mut run = prepared("heaptrack");
            run.arg(&app).args(arguments).current_dir(folder.path());
            loop_ms(&Run::from(run.output().expect("heaptrack starts")).ends(0))
        };
        if heaptrack {
            let [bare, profiled, tracked] = medians([&mut bare, &mut profiled, &mut tracked]);
            let (ours, theirs) = (profiled / bare, tracked / bare);
            println!(
                "{name:12} {bare:8.2} ms, profiled {profiled:8.2} ms ({ours:.3}), heaptrack {tracked:8.2} ms ({theirs:.3})"
            );
        } else {
            let [bare, profiled] = medians([&mut bare, &mut profiled]);
            println!(
                "{name:12} {bare:8.2} ms, profiled {profiled:8.2} ms ({:.3}); heaptrack is not installed",
                profiled / bare
            );
        }
    }
}
