//! The command `echo-sr`: what the plugin would do with a project, and why.
//!
//! | file | |
//! | --- | --- |
//! | `lint.rs`, `survey.rs`, `explain.rs` | the commands |
//! | `database.rs`, `unit.rs`, `nvcc.rs` | from a compile database to the commands that analyse it |
//! | `plugin.rs`, `clang.rs` | the plugin's file, and the compilers that can load it |
//! | `analysis.rs` | running them |
//! | `finding.rs`, `baseline.rs` | what they found, once each, and what is known of it |
//! | `text.rs`, `sarif.rs` | how it is shown |
//!
//! How it speaks, and the pages of `docs/remarks`, are in `echo-cli`. It knows no LLVM: the analysis is in the plugin, which clang loads.

mod analysis;
mod baseline;
mod clang;
mod database;
mod explain;
mod failure;
mod finding;
mod lint;
mod nvcc;
mod plugin;
mod sarif;
mod survey;
mod text;
mod unit;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Echo-SR merges host and device buffers of CUDA programs where that provably changes nothing. This command shows what it would do with
/// a project, and why not more.
#[derive(Debug, Parser)]
#[command(version, name = "echo-sr")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Lint(lint::Lint),
    Explain(explain::Explain),
    Survey(survey::Survey),
    /// The path of the plugin: clang++ -fpass-plugin=$(echo-sr plugin-path) …
    #[command(
        after_help = "It is looked for next to this program and in `lib` beside its folder; ECHO_SR_PLUGIN names another \
                            place.\n\nExit codes:\n  0  the path was shown\n  2  there is no plugin"
    )]
    PluginPath {
        /// As a JSON object, with the LLVM major that the plugin is built for
        #[arg(long)]
        json: bool,
    },
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// As asked.
    Clean = 0,
    /// Findings that count.
    Findings = 1,
    /// Something could not be analysed.
    Incomplete = 3,
}

fn main() -> ExitCode {
    let status = match Cli::parse().command {
        Command::Lint(lint) => lint.run(),
        Command::Explain(explain) => explain.run(),
        Command::Survey(survey) => survey.run(),
        Command::PluginPath { json } => plugin_path(json),
    };
    match status {
        Ok(status) => ExitCode::from(status as u8),
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(2)
        }
    }
}

fn plugin_path(json: bool) -> Result<Status, failure::Failure> {
    if json {
        let plugin = plugin::Plugin::load()?;
        lint::lines(&[serde_json::json!({ "path": plugin.path, "llvm": plugin.major })])?;
    } else {
        lint::print(&format!("{}\n", plugin::find()?.display()))?;
    }
    Ok(Status::Clean)
}
