//! The command: runs the oracle over all cores and prints what it found.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use echo_oracle::families::HIGHEST;
use echo_oracle::job::Job;
use echo_oracle::report::Report;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const AFTER: &str = "\
Exit codes:
  0  the prover was right about every program
  1  it was wrong about some; each is printed
  2  bad arguments
  3  a file cannot be read

To run in slices, perhaps on several machines: --part 1/8 --json > 1.json, and so on; then --sum 1.json 2.json ... adds them up. A slice is
the same whenever and wherever it runs.";

/// Runs small programs before and after the merges that Echo-SR's prover accepts, in every interleaving, and compares.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask oracle", bin_name = "cargo xtask oracle", version, after_help = AFTER)]
struct Arguments {
    /// How long the programs are that are all run.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=i64::from(HIGHEST)))]
    effort: u8,
    /// How many random programs are run besides, in thousands.
    #[arg(long, value_name = "THOUSANDS", default_value_t = 100)]
    random: u64,
    /// Seed of the random programs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only the i-th of n slices.
    #[arg(long, value_name = "I/N", value_parser = part, default_value = "1/1")]
    part: (usize, usize),
    /// Threads [default: all cores].
    #[arg(long)]
    threads: Option<usize>,
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
    /// Run nothing: add up the JSON of slices (- is standard input).
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["effort", "random", "seed", "part", "threads"])]
    sum: Vec<PathBuf>,
}

fn part(text: &str) -> Result<(usize, usize), String> {
    let parsed = text.split_once('/').and_then(|(one, of)| Some((one.parse().ok()?, of.parse().ok()?)));
    match parsed {
        Some((one, of)) if (1..=of).contains(&one) => Ok((one, of)),
        _ => Err("write it as i/n with 1 <= i <= n, such as 3/8".to_owned()),
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if !arguments.sum.is_empty() {
        return sum(&arguments);
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let job = Job {
        effort: arguments.effort,
        random: arguments.random * 1_000,
        seed: arguments.seed,
        part: arguments.part,
        threads: arguments.threads.unwrap_or(cores),
    };
    let bar = progress();
    let report = job.run(|progress| {
        bar.set_length(progress.pieces as u64);
        bar.set_position(progress.done as u64);
        bar.set_message(format!("{} cases, {} wrong", progress.cases, progress.unsound));
    });
    bar.finish_and_clear();
    show(&report, arguments.json)
}

/// A bar on a terminal; nothing in a pipe.
fn progress() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    }
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{spinner} [{bar:24}] {pos}/{len} {elapsed} ({eta} left) {msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

fn sum(arguments: &Arguments) -> ExitCode {
    let mut whole = Report::default();
    for path in &arguments.sum {
        let mut text = String::new();
        let read = if path.as_os_str() == "-" {
            std::io::stdin().read_to_string(&mut text).map(|_| ())
        } else {
            std::fs::read_to_string(path).map(|read| text = read)
        };
        let parsed = read.map_err(|error| error.to_string()).and_then(|()| {
            let parts = serde_json::Deserializer::from_str(&text).into_iter::<Report>();
            parts.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())
        });
        match parsed {
            Ok(parts) => parts.iter().for_each(|part| whole.add(part)),
            Err(error) => {
                eprintln!("error: cannot read {} as the JSON of slices: {error}", path.display());
                return ExitCode::from(3);
            }
        }
    }
    show(&whole, arguments.json)
}

fn show(report: &Report, json: bool) -> ExitCode {
    if json {
        match serde_json::to_string(report) {
            Ok(text) => println!("{text}"),
            Err(error) => {
                eprintln!("error: cannot write the report as JSON: {error}");
                return ExitCode::from(3);
            }
        }
    } else {
        print!("{report}");
    }
    if report.total().unsound == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
