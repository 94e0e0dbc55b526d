//! The project's commands. Two of them do everything, set-up included: `cargo xtask demo` and `cargo xtask test`.

mod aarch64;
mod archive;
mod bench;
mod context;
mod demo;
mod failure;
mod fuzz;
mod gpu;
mod install;
mod oracle;
mod products;
mod samples;
mod setup;
mod test_suite;
mod tool;
mod ui;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

use context::Context;
use failure::Failure;

/// Echo's commands. `demo` and `test` do all the set-up themselves.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version, after_help = failure::EXIT_CODES)]
struct Cli {
    /// Install missing Debian packages without asking (also when the environment variable CI is set).
    #[arg(long, short, global = true)]
    yes: bool,
    #[command(subcommand)]
    command: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Find or install LLVM, the CUDA toolkit and what the tests need besides, and check each piece by running it.
    Setup {
        /// Take the CUDA toolkit's wheels from this folder instead of downloading them.
        #[arg(long, value_name = "FOLDER")]
        wheels: Option<PathBuf>,
    },
    /// Build Echo (the plugin, the commands, the libraries) and the CPU device.
    Build {
        /// Build the plugin for this LLVM major only, and nothing else.
        #[arg(long, value_name = "MAJOR")]
        plugin: Option<Major>,
    },
    /// Build what runs in programs for aarch64 (Jetson's architecture), to run it here in an emulator: see `xtask/tests/aarch64.rs`.
    Aarch64,
    /// Build Echo and copy commands, plugin, libraries and CMake package to `bin` and `lib` of a folder.
    Install {
        /// The folder, such as ~/.local or /usr/local.
        #[arg(long, value_name = "FOLDER")]
        prefix: PathBuf,
    },
    /// Compile the samples without and with the plugin, run both on the CPU device, and show what was merged and what it saves.
    Demo {
        /// Only these samples.
        #[arg(value_name = "SAMPLE")]
        samples: Vec<String>,
        /// Runs of each program; the table has medians.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
        repeats: u32,
        /// Also run in every schedule and access mode of the device and compare the outputs.
        #[arg(long)]
        schedules: bool,
        /// Small buffers, as the tests use them.
        #[arg(long)]
        small: bool,
        /// Print JSON instead of the table.
        #[arg(long)]
        json: bool,
    },
    /// Build the samples for a real GPU, without and with the plugin, into a folder that can be carried to it.
    GpuBundle {
        /// The GPU's architecture.
        #[arg(long, default_value = "sm_90")]
        arch: String,
        /// The folder [default: target/gpu].
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
    },
    /// Try to break the prover: run all small programs before and after its merges, in every interleaving (needs no LLVM and no CUDA).
    #[command(disable_help_flag = true)]
    Oracle {
        /// Options of the oracle; `--help` lists them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Measure what the passes cost in `opt -O2` on generated modules; exit code 1 if a bound of docs/performance.md is broken.
    #[command(args_conflicts_with_subcommands = true)]
    Bench {
        #[command(subcommand)]
        of: Option<BenchOf>,
        /// Runs of each compilation, without and with the plugin in turns; the table has medians.
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
        repeats: u32,
        /// No larger modules than this many instructions.
        #[arg(long, value_name = "INSTRUCTIONS", default_value_t = 1_000_000)]
        up_to: usize,
        /// Print JSON instead of the table.
        #[arg(long)]
        json: bool,
    },
    /// Compile random CUDA programs without and with the plugin, run them on the CPU device in several schedules and both access modes, and
    /// compare what they print. A program that goes wrong is reduced and kept; the exit code is then 1.
    Fuzz {
        /// Start no more programs after this time [default: 60, or no limit with --programs].
        #[arg(long, value_name = "N")]
        seconds: Option<u64>,
        /// Programs depend on this number and their index alone.
        #[arg(long, default_value_t = 1, value_name = "S")]
        seed: u64,
        /// At most this many programs.
        #[arg(long, value_name = "N")]
        programs: Option<u64>,
        /// The index of the first program.
        #[arg(long, default_value_t = 0, value_name = "INDEX")]
        first: u64,
        /// Where reduced programs are kept [default: target/fuzz].
        #[arg(long, value_name = "DIR")]
        keep: Option<PathBuf>,
        /// Reduce as many programs that go wrong; name further ones only.
        #[arg(long, default_value_t = 4, value_name = "N")]
        reduce: usize,
        /// Test Echo-DR instead of the plugin: programs as they are, recorded, watched, and merged at run time.
        #[arg(long, conflicts_with = "plugin")]
        dr: bool,
        /// With --dr: merge what nobody has watched, to see that such merges are found.
        #[arg(long, requires = "dr")]
        unsound_without_validation: bool,
        /// Test this plugin instead of the one of this tree.
        #[arg(long, value_name = "FILE")]
        plugin: Option<PathBuf>,
        /// Print the source of the programs and do nothing else.
        #[arg(long)]
        show: bool,
        /// Print JSON instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Run the whole test suite.
    Test,
}

/// What else can be measured.
#[derive(Clone, Debug, Subcommand)]
enum BenchOf {
    /// What Echo-DR costs the samples: profiled, beside heaptrack where it is installed, and with a plan beside the variant merged by hand.
    Dr {
        /// Only these samples.
        #[arg(value_name = "SAMPLE")]
        samples: Vec<String>,
        /// How long each sample is measured with buffers of one size (there are two); longer is surer.
        #[arg(long, default_value_t = 20, value_name = "SECONDS")]
        seconds: u64,
        /// Print JSON instead of the tables.
        #[arg(long)]
        json: bool,
    },
}

/// An LLVM major that the plugin is built for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Major {
    #[value(name = "22")]
    Preferred,
    #[value(name = "19")]
    Old,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let context = Context::new(cli.yes);
    match run(&cli.command, &context) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}

fn run(command: &Action, context: &Context) -> Result<(), Failure> {
    match command {
        Action::Setup { wheels } => {
            setup::complete(context, wheels.as_deref())?;
            setup::complete_for_tests(context)
        }
        Action::Build { plugin } => {
            setup::complete(context, None)?;
            match plugin {
                Some(Major::Preferred) => products::plugin(context, setup::LLVM_PREFERRED),
                Some(Major::Old) => products::plugin(context, setup::LLVM_OLD),
                None => products::build(context),
            }
        }
        Action::Aarch64 => {
            setup::complete(context, None)?;
            products::device(context)?;
            aarch64::build(context)
        }
        Action::Install { prefix } => {
            setup::complete(context, None)?;
            products::build(context)?;
            install::install(context, prefix)
        }
        Action::Demo { samples, repeats, schedules, small, json } => {
            let options = demo::Options {
                names: samples.clone(),
                repeats: *repeats as usize,
                size: if *small { samples::Size::Test } else { samples::Size::Demo },
                schedules: *schedules,
                json: *json,
            };
            demo::run(context, &options)
        }
        Action::GpuBundle { arch, out } => {
            setup::complete(context, None)?;
            products::build(context)?;
            gpu::bundle(context, arch, &out.clone().unwrap_or_else(|| context.target.join("gpu")))
        }
        Action::Oracle { arguments } => oracle::run(context, arguments),
        Action::Bench { of: Some(BenchOf::Dr { samples, seconds, json }), .. } => {
            let time = Duration::from_secs(*seconds);
            bench::dr::run(context, &bench::dr::Options { names: samples.clone(), time, json: *json })
        }
        Action::Bench { of: None, repeats, up_to, json } => {
            bench::run(context, &bench::Options { repeats: *repeats as usize, up_to: *up_to, json: *json })
        }
        Action::Fuzz {
            seconds,
            seed,
            programs,
            first,
            keep,
            reduce,
            dr,
            unsound_without_validation,
            plugin,
            show,
            json,
        } => {
            let unlimited = if programs.is_some() { u64::MAX } else { 60 };
            let options = fuzz::Options {
                limit: Duration::from_secs(seconds.unwrap_or(unlimited)),
                seed: *seed,
                programs: *programs,
                first: *first,
                keep: keep.clone().unwrap_or_else(|| context.target.join("fuzz")),
                reduce: *reduce,
                preloaded: *dr,
                unvalidated: *unsound_without_validation,
                plugin: plugin.clone(),
                show: *show,
                json: *json,
            };
            fuzz::run(context, &options)
        }
        Action::Test => test_suite::run(context),
    }
}
