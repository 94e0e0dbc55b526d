//! `echo-sr lint`: every CUDA unit of a project is analysed, nothing is built.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use codespan_reporting::term::termcolor::{ColorChoice, StandardStream};

use crate::analysis::{self, Outcome};
use crate::clang::Compilers;
use crate::database;
use crate::failure::Failure;
use crate::finding::{Finding, Findings};
use crate::plugin::Plugin;
use crate::sarif::{self, Failed};
use crate::text::Renderer;
use crate::unit::{self, Prepared, Unit, Wishes};
use crate::{Status, baseline};

/// Which pairs can be merged, and what keeps the others apart?
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Lint {
    /// The compile database, or the folder that it is in
    #[arg(long, value_name = "FILE", default_value = "build/compile_commands.json")]
    compile_db: PathBuf,
    #[command(flatten)]
    pub(crate) common: Common,
    /// How findings are written to standard output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The same as --format json: one JSON object a pair and line, with what the plugin's own report has
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Which pairs are shown
    #[arg(long, value_enum, default_value_t = Show::All)]
    show: Show,
    /// When the exit code is 1 [default: never; new with --baseline]
    #[arg(long, value_enum, value_name = "WHEN")]
    fail_on: Option<FailOn>,
    /// Known findings; what is not in the file is new. Lines may move: a finding is known by file, function, buffers and condition
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write the present findings as a baseline
    #[arg(long, value_name = "FILE")]
    write_baseline: Option<PathBuf>,
    /// Colours in text
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    color: Color,
    /// Address of the folder docs/remarks on the web, for the rules of --format sarif
    #[arg(long, value_name = "URL")]
    docs_url: Option<String>,
    /// One compile command, instead of a database
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// What `lint` and `survey` share.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Units that are analysed at once [default: the number of processors]
    #[arg(short, long, value_name = "N")]
    jobs: Option<usize>,
    /// The clang to use for every unit, of the LLVM that the plugin is built for
    #[arg(long, value_name = "PATH")]
    clang: Option<String>,
    /// The CUDA toolkit to use for every unit
    #[arg(long, value_name = "DIR")]
    pub(crate) cuda_path: Option<PathBuf>,
    /// Analyse for this architecture only, e.g. sm_90
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// Options of the plugin, as in ECHO_SR_OPTIONS: access=concurrent;theta-min=0;repair=on …
    #[arg(long, value_name = "OPTIONS", default_value = "")]
    options: String,
    /// Paths are shown relative to this folder [default: the current one]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Analyse C++ units too whose text shows no call of the CUDA runtime
    #[arg(long)]
    all: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Source excerpts, for people
    Text,
    /// JSON Lines
    Json,
    /// SARIF 2.1.0
    Sarif,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Show {
    /// All
    All,
    /// Those that stay two
    Declined,
    /// With --baseline: those with a condition that it lacks
    New,
    /// Those that can be one
    Mergeable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// A pair is declined
    Declined,
    /// A condition is not in the baseline
    New,
    /// Never
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Color {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  nothing that --fail-on asks for
  1  findings that --fail-on asks for
  2  wrong usage or set-up (no database, no plugin, no clang of the right version)
  3  some unit could not be analysed; what the others gave is shown all the same

Examples:
  echo-sr lint --compile-db build
  echo-sr lint -- clang++ -O2 --cuda-gpu-arch=sm_90 saxpy.cu
  echo-sr lint --write-baseline echo.json; echo-sr lint --baseline echo.json --format sarif > echo.sarif";

/// All that an analysis of units gave.
pub(crate) struct Results {
    pub(crate) findings: Vec<Finding>,
    pub(crate) failed: Vec<Failed>,
    pub(crate) warnings: Vec<String>,
    pub(crate) units: Vec<String>,
    unoptimised: usize,
    pub(crate) root: PathBuf,
}

impl Common {
    /// Prepares and analyses entries.
    pub(crate) fn analyse(&self, entries: &[database::Entry], extra: &[String]) -> Result<Results, Failure> {
        let plugin = Plugin::load()?;
        let mut compilers = Compilers::new(&plugin, self.clang.clone(), &self.options);
        let wishes = Wishes {
            all: self.all,
            cuda: self.cuda_path.as_ref().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone())),
            arch: self.arch.clone(),
            extra: extra.to_vec(),
        };
        let mut units: Vec<Unit> = Vec::new();
        for entry in entries {
            match unit::prepare(entry, &mut compilers, &wishes)? {
                Prepared::Unit(unit) => units.push(*unit),
                Prepared::Skipped => {}
            }
        }
        if units.is_empty() {
            let text = format!("none of the {} compile commands compiles CUDA code; --all analyses all", entries.len());
            return Err(Failure::Nothing(text));
        }
        let outcomes = analysis::run(&units, &plugin, &self.options, self.jobs())?;
        Ok(collect(&units, outcomes, &self.root()?))
    }

    /// The default clang, for units without a command.
    pub(crate) fn compiler(&self) -> Result<String, Failure> {
        let plugin = Plugin::load()?;
        Compilers::new(&plugin, self.clang.clone(), &self.options).default()
    }

    fn jobs(&self) -> usize {
        self.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }

    fn root(&self) -> Result<PathBuf, Failure> {
        let root = self.root.clone().unwrap_or_else(|| ".".into());
        std::path::absolute(&root).map_err(|error| Failure::io(&root, "find", &error))
    }
}

fn collect(units: &[Unit], outcomes: Vec<Outcome>, root: &Path) -> Results {
    let mut findings = Findings::new(root);
    let (mut failed, mut warnings) = (vec![], vec![]);
    for (unit, outcome) in units.iter().zip(outcomes) {
        let path = findings.relative(&unit.source);
        warnings.extend(outcome.warnings.into_iter().map(|warning| format!("{path}: {warning}")));
        failed.extend(outcome.failure.map(|reason| Failed { unit: path, reason }));
        findings.add(unit, outcome.pairs);
    }
    Results {
        units: units.iter().map(|unit| findings.relative(&unit.source)).collect(),
        findings: findings.sorted(),
        failed,
        warnings,
        unoptimised: units.iter().filter(|unit| unit.unoptimised).count(),
        root: root.to_owned(),
    }
}

impl Lint {
    /// Runs the command.
    pub(crate) fn run(&self) -> Result<Status, Failure> {
        let entries = if self.command.is_empty() {
            database::read(&self.compile_db)?
        } else {
            let here = std::env::current_dir().map_err(|error| Failure::io(Path::new("."), "find", &error))?;
            let entries = unit::entries_of_command(&self.command, &here);
            if entries.is_empty() {
                return Err(Failure::Nothing("the command after `--` names no source file".to_owned()));
            }
            entries
        };
        let mut results = self.common.analyse(&entries, &[])?;
        if let Some(path) = &self.baseline {
            baseline::compare(path, &mut results.findings)?;
        }
        if let Some(path) = &self.write_baseline {
            baseline::write(path, &results.findings)?;
        }
        let status = self.status(&results);
        self.show(results)?;
        Ok(status)
    }

    fn status(&self, results: &Results) -> Status {
        let default = if self.baseline.is_some() { FailOn::New } else { FailOn::Never };
        let counts = |finding: &Finding| match self.fail_on.unwrap_or(default) {
            FailOn::Declined => finding.is_declined(),
            // Without a baseline everything is new.
            FailOn::New => finding.is_declined() && (finding.new.is_none() || finding.is_new()),
            FailOn::Never => false,
        };
        if !results.failed.is_empty() {
            Status::Incomplete
        } else if results.findings.iter().any(counts) {
            Status::Findings
        } else {
            Status::Clean
        }
    }

    fn show(&self, mut results: Results) -> Result<(), Failure> {
        let summary = summary(&results);
        results.findings.retain(|finding| match self.show {
            Show::All => true,
            Show::Declined => finding.is_declined(),
            Show::New => finding.is_declined() && (finding.new.is_none() || finding.is_new()),
            Show::Mergeable => !finding.is_declined(),
        });
        let format = if self.json { Format::Json } else { self.format };
        match format {
            Format::Text => self.text(&results)?,
            Format::Json => lines(&results.findings)?,
            Format::Sarif => {
                let log = sarif::log(&results.findings, &results.failed, &results.root, self.docs_url.as_deref());
                print(&format!("{log:#}\n"))?;
            }
        }
        complain(&results);
        eprintln!("{summary}");
        Ok(())
    }

    fn text(&self, results: &Results) -> Result<(), Failure> {
        let choice = match self.color {
            Color::Auto if io::stdout().is_terminal() => ColorChoice::Auto,
            Color::Auto | Color::Never => ColorChoice::Never,
            Color::Always => ColorChoice::Always,
        };
        let mut out = StandardStream::stdout(choice);
        let mut renderer = Renderer::new(&results.root);
        results.findings.iter().try_for_each(|finding| renderer.show(finding, &mut out))
    }
}

/// One JSON object a finding and line.
pub(crate) fn lines<T: serde::Serialize>(rows: &[T]) -> Result<(), Failure> {
    echo_cli::lines(rows).map_err(|error| unwritable(&error))
}

/// To standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    echo_cli::print(text).map_err(|error| unwritable(&error))
}

fn unwritable(error: &io::Error) -> Failure {
    Failure::io(Path::new("standard output"), "write to", error)
}

/// Says what went wrong with units, and what the plugin warned of.
pub(crate) fn complain(results: &Results) {
    for warning in &results.warnings {
        eprintln!("warning: {warning}");
    }
    for failed in &results.failed {
        eprintln!("error: {} could not be analysed:", failed.unit);
        for line in failed.reason.lines() {
            eprintln!("  {line}");
        }
    }
    if results.unoptimised > 0 {
        eprintln!(
            "note: {} compiled without optimisation (-O0, or no -O at all) and analysed as with -O2; at -O0 the plugin merges nothing",
            if results.unoptimised == 1 {
                "1 unit is".to_owned()
            } else {
                format!("{} units are", results.unoptimised)
            }
        );
    }
}

fn summary(results: &Results) -> String {
    let declined = results.findings.iter().filter(|finding| finding.is_declined()).count();
    let mergeable = results.findings.len() - declined;
    let mut text = format!(
        "{} units: {} pairs, {mergeable} can be merged, {declined} declined",
        results.units.len(),
        results.findings.len(),
    );
    if results.findings.iter().any(|finding| finding.new.is_some()) {
        text += &format!(" ({} new)", results.findings.iter().filter(|finding| finding.is_new()).count());
    }
    if !results.failed.is_empty() {
        text += &format!("; {} units could not be analysed", results.failed.len());
    }
    text
}
