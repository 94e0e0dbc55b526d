//! `cargo xtask fuzz`: random CUDA programs, compiled without and with the plugin, run on the CPU device in several schedules and both
//! access modes, compared with what an abstract machine says that they print.
//!
//! - `language` is what a program can say, `generate` makes programs, `machine` (with `order`) runs them exactly and `repair` makes
//!   each well-defined with no more waits than it needs: the theorem presumes that, and says nothing of others.
//! - `emit` writes them in CUDA C++, `build` compiles a file of them, `execute` runs it, `batch` compares.
//! - `preloaded` runs the file as it is with Echo-DR's library in it (`--dr`).
//! - `minimise` reduces a program that goes wrong; `report` and `features` count.
//!
//! A program depends on the seed and its index alone.

mod batch;
mod build;
mod compute;
mod edit;
mod emit;
mod execute;
mod features;
mod generate;
mod language;
mod machine;
mod minimise;
mod order;
mod preloaded;
mod random;
mod repair;
mod report;
#[cfg(test)]
mod testing;
mod verdicts;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use batch::{How, Wrong};
use build::{Build, Compiler};
use generate::Case;
use report::{Finding, Totals};

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::Step;
use crate::{products, setup};

/// One batch of this many is compiled with LLVM's verifier after each pass.
const VERIFIED: u64 = 20;

/// What the user asked for.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// No batch starts later.
    pub(crate) limit: Duration,
    /// The first number of every program's random numbers.
    pub(crate) seed: u64,
    /// At most this many programs.
    pub(crate) programs: Option<u64>,
    /// The first program.
    pub(crate) first: u64,
    /// Where reduced programs are kept.
    pub(crate) keep: PathBuf,
    /// As many programs that go wrong are reduced; further ones are only named.
    pub(crate) reduce: usize,
    /// Programs are compiled without the plugin and merged at run time.
    pub(crate) preloaded: bool,
    /// What may be a pair by its trace is merged, without validation.
    pub(crate) unvalidated: bool,
    /// Another plugin than the one of this tree.
    pub(crate) plugin: Option<PathBuf>,
    /// Print the text of programs and do nothing else.
    pub(crate) show: bool,
    /// JSON instead of text.
    pub(crate) json: bool,
}

/// Runs the fuzzer. [`Failure::Result`] if a program went wrong.
pub(crate) fn run(context: &Context, options: &Options) -> Result<(), Failure> {
    if options.show {
        let cases = cases(options, options.first, options.programs.unwrap_or(1))?;
        println!("{}", emit::file(&cases.iter().map(|case| &case.program).collect::<Vec<_>>(), false));
        return Ok(());
    }
    setup::complete(context, None)?;
    match &options.plugin {
        _ if options.preloaded => {
            products::commands(context)?;
            products::device(context)?;
        }
        None => products::build(context)?,
        Some(plugin) if plugin.is_file() => products::device(context)?,
        Some(plugin) => return Err(Failure::Setup(format!("there is no plugin {}", plugin.display()))),
    }
    let plugin = options.plugin.clone().unwrap_or_else(|| context.plugin());

    let folder = tempfile::tempdir()
        .map_err(|error| Failure::io("create a temporary folder in", &std::env::temp_dir(), &error))?;
    let runtime = build::mixed_runtime(context, folder.path())?;

    let mut totals = Fuzzer::new(context, options, &plugin, &runtime).run()?;
    totals.seed = options.seed;
    if options.json {
        let text = serde_json::to_string_pretty(&totals)
            .map_err(|error| Failure::Build(format!("cannot write the report: {error}")))?;
        println!("{text}");
    } else {
        print!("{}", totals.render());
    }
    if totals.findings.is_empty() {
        return Ok(());
    }
    let findings: Vec<String> = totals.findings.iter().map(Finding::to_string).collect();
    Err(Failure::Result(findings.join("\n")))
}

fn cases(options: &Options, first: u64, count: u64) -> Result<Vec<Case>, Failure> {
    let seed = options.seed;
    let one = |index| {
        let none = || Failure::Build(format!("no draft of program {index} (seed {seed}) can be made well-defined"));
        let case = generate::case(seed, index).ok_or_else(none)?;
        Ok(if options.preloaded { case.enlarged(preloaded::LARGER) } else { case })
    };
    (first..first + count).map(one).collect()
}

struct Fuzzer<'a> {
    context: &'a Context,
    options: &'a Options,
    plugin: &'a Path,
    runtime: &'a Path,
    start: Instant,
    next: AtomicU64,
    totals: Mutex<Totals>,
    failure: Mutex<Option<Failure>>,
}

impl<'a> Fuzzer<'a> {
    fn new(context: &'a Context, options: &'a Options, plugin: &'a Path, runtime: &'a Path) -> Self {
        Fuzzer {
            context,
            options,
            plugin,
            runtime,
            start: Instant::now(),
            next: AtomicU64::new(0),
            totals: Mutex::default(),
            failure: Mutex::default(),
        }
    }

    fn run(self) -> Result<Totals, Failure> {
        let step = match self.options.programs {
            Some(programs) => self.context.ui.steps("fuzzing", programs as usize),
            None => self.context.ui.step("fuzzing"),
        };
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some((first, count)) = self.take() {
                        if let Err(failure) = self.batch(first, count, &step) {
                            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
                            break;
                        }
                    }
                });
            }
        });
        if let Some(failure) = self.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(failure);
        }
        step.done();
        let mut totals = self.totals.into_inner().unwrap_or_else(PoisonError::into_inner);
        totals.seconds = self.start.elapsed().as_secs_f64();
        totals.findings.sort_by_key(|finding| finding.program);
        Ok(totals)
    }

    /// The next batch: its first program and how many.
    fn take(&self) -> Option<(u64, u64)> {
        let failed = self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if failed || self.start.elapsed() > self.options.limit {
            return None;
        }
        let done = self.next.fetch_add(batch::SIZE, Ordering::Relaxed);
        let left = self.options.programs.map_or(batch::SIZE, |programs| programs.saturating_sub(done));
        (left > 0).then(|| (self.options.first + done, left.min(batch::SIZE)))
    }

    fn batch(&self, first: u64, count: u64, step: &Step) -> Result<(), Failure> {
        let cases = cases(self.options, first, count)?;
        let number = first / batch::SIZE;
        let (level, plain_level) = build::levels(number);
        let compiler = Compiler {
            context: self.context,
            plugin: (!self.options.preloaded).then_some(self.plugin),
            runtime: self.runtime,
            unvalidated: self.options.unvalidated,
            level,
            plain_level,
            debug: number % 2 == 1,
            verify: number % VERIFIED == VERIFIED - 1,
        };
        let builds =
            if self.options.preloaded { vec![Build::Plain, Build::Preloaded] } else { build::builds(number).to_vec() };
        let (totals, wrong) = batch::check(&compiler, &cases, &builds, number)?;
        self.totals.lock().unwrap_or_else(PoisonError::into_inner).add(totals);
        for wrong in &wrong {
            let finding = self.finding(&compiler, &cases[wrong.position], wrong, number)?;
            let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
            self.context.ui.say(&format!("mismatch: {finding}"));
            totals.findings.push(finding);
        }
        (0..count).for_each(|_| step.advance());
        let totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        step.detail(&format!("{} programs, {} mismatches", totals.programs, totals.findings.len()));
        Ok(())
    }

    /// Reduces a program that went wrong and keeps it.
    fn finding(&self, compiler: &Compiler<'_>, case: &Case, wrong: &Wrong, number: u64) -> Result<Finding, Failure> {
        let mut finding = Finding {
            program: case.program.index,
            build: wrong.build.name(),
            what: describe(&wrong.how, case),
            pair: None,
            file: None,
        };
        let known = self.totals.lock().unwrap_or_else(PoisonError::into_inner).findings.len();
        if known >= self.options.reduce {
            return Ok(finding);
        }
        match minimise::minimise(compiler, case, wrong, number)? {
            None => {
                finding.what.push_str("\n  (alone it did nothing wrong, so it is kept as it is)");
                let text = emit::file(&[&case.program], wrong.position == 0);
                self.keep(&mut finding, compiler, wrong.build, &wrong.how, &text)?;
            }
            Some(smallest) => {
                finding.what = describe(&smallest.how, &smallest.case);
                finding.pair = smallest.pair;
                self.keep(&mut finding, compiler, wrong.build, &smallest.how, &smallest.text)?;
            }
        }
        Ok(finding)
    }

    /// Writes a program to a file.
    fn keep(
        &self,
        finding: &mut Finding,
        compiler: &Compiler<'_>,
        build: Build,
        how: &How,
        text: &str,
    ) -> Result<(), Failure> {
        let path = self.options.keep.join(format!("seed-{}-program-{}.cu", self.options.seed, finding.program));
        let head = self.head(finding, compiler, build, how);
        fs::create_dir_all(&self.options.keep)
            .and_then(|()| fs::write(&path, format!("{head}{text}")))
            .map_err(|error| Failure::io("write", &path, &error))?;
        finding.file = Some(path.display().to_string());
        Ok(())
    }

    /// What stands at the head of a program that is kept: how it was found and how to see it.
    fn head(&self, finding: &Finding, compiler: &Compiler<'_>, build: Build, how: &How) -> String {
        let (seed, level, plain) = (self.options.seed, compiler.level.join(" "), compiler.plain_level.join(" "));
        let first = finding.program / batch::SIZE * batch::SIZE;
        let dr = if self.options.preloaded { " --dr" } else { "" };
        let mut lines = vec![format!("cargo xtask fuzz{dr} --seed {seed} --first {first} --programs {}", batch::SIZE)];
        lines.extend(finding.to_string().lines().map(str::to_owned));
        let uma = "target/uma/bin/uma-clang++";
        let rest = "-L target/uma/lib -lcudart";
        match build.options() {
            None => lines.push(format!("{uma} {plain} -g -w FILE -o program {rest}")),
            Some(options) => {
                let runtime = if build == Build::Adaptive { " mixed_runtime.o" } else { "" };
                if build == Build::Adaptive {
                    lines.push("clang -O1 -c tests/programs/mixed_runtime.c".into());
                }
                let plugin = self.plugin.display();
                lines.push(format!(
                    "ECHO_SR_OPTIONS='{options};verbose' {uma} {level} -g -w -fpass-plugin={plugin} FILE{runtime} -o \
                     program {rest}"
                ));
            }
        }
        if let How::Ran(difference) = how {
            lines
                .push(format!("{} LD_LIBRARY_PATH=target/uma/lib ./program 0 0 {}", difference.mode, difference.input));
        }
        lines.into_iter().map(|line| format!("// {line}\n")).collect()
    }
}

/// What is wrong.
fn describe(how: &How, case: &Case) -> String {
    match how {
        How::Compile(message) => format!("does not compile\n{message}"),
        How::Ran(difference) => format!(
            "input {}, {}\n  expected {:?}\n  got      {:?}",
            difference.input,
            difference.mode,
            execute::text(&case.expected[difference.input]),
            difference.got
        ),
    }
}
