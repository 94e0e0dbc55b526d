//! How a run with a plan compares with the same sample merged by hand. A machine that does other things meanwhile makes any bound fail
//! sometimes, so this prints ratios and is run by hand:
//! `cargo test --release -p echo-dr-cli --test end_to_end speed -- --ignored --nocapture`

use crate::common::{command, echo_dr, enable, plain, program, root, text};

/// Copy-dominated samples that have a variant merged by hand, with arguments that make their buffers large.
const SAMPLES: [(&str, &[&str]); 3] = [
    ("figure1", &["8388608", "--iterations", "10"]),
    ("vector_add", &["4194304", "--iterations", "10"]),
    ("saxpy", &["16777216", "--iterations", "6"]),
];

const RUNS: usize = 7;

/// Milliseconds in `loop time: 12.345 ms`, which the samples write to standard error.
fn loop_ms(messages: &str) -> f64 {
    let line = messages.lines().find_map(|line| line.strip_prefix("loop time: ")?.strip_suffix(" ms"));
    line.and_then(|number| number.parse().ok()).expect("the program says its loop time")
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[test]
#[ignore = "it measures"]
fn speed_against_the_hand_merged_variant() {
    for (name, arguments) in SAMPLES {
        let source = |suffix: &str| root().join(format!("cuda-samples/{name}{suffix}.cu"));
        let (app, by_hand) = (program(&source("")), program(&source("_merged")));
        let folder = tempfile::tempdir().unwrap();
        let prepare = ["tune", "--trials", "1", "--backend", "managed", "--", text(&app)];
        echo_dr(folder.path(), &[&prepare[..], arguments].concat());
        enable(&folder.path().join("echo-dr.plan.json"));
        let (mut before, mut with_plan, mut merged) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..RUNS {
            before.push(loop_ms(&plain(&app, arguments, &[]).ends(0).err));
            let mut run = command(folder.path());
            run.args(["run", "echo-dr.plan.json", "--", text(&app)]).args(arguments);
            with_plan.push(loop_ms(&String::from_utf8_lossy(&run.output().unwrap().stderr)));
            merged.push(loop_ms(&plain(&by_hand, arguments, &[]).ends(0).err));
        }
        let (before, with_plan, merged) = (median(before), median(with_plan), median(merged));
        println!(
            "{name:12} {before:8.2} ms, with the plan {with_plan:8.2} ms ({:.2}x), by hand {merged:8.2} ms; plan / by hand {:.3}",
            before / with_plan,
            with_plan / merged
        );
    }
}
