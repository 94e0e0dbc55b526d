//! Makes a program that goes wrong as small as it can be and still go wrong: statements are taken out one after the other, and whatever is
//! left must still be well-defined. Then `merge-limit` says which pair's merge it is.

use std::time::{Duration, Instant};

use super::batch::{How, Wrong};
use super::build::{Build, Compiler, Files};
use super::execute::{self, Mode};
use super::generate::Case;
use super::language::{Checks, Kind, Program, Stmt};
use super::{edit, emit, repair, verdicts};
use crate::failure::Failure;

/// What one program may cost; a trial takes one to three seconds.
const LIMIT: Duration = Duration::from_secs(400);

/// Runs of a program that goes wrong in some runs only.
const REPEATS: usize = 60;

/// The smallest program found.
#[derive(Debug)]
pub(super) struct Smallest {
    pub(super) case: Case,
    pub(super) text: String,
    /// The pair whose merge makes the difference.
    pub(super) pair: Option<String>,
    /// How it goes wrong now.
    pub(super) how: How,
}

/// Reduces the program of `wrong`; `None` if it does nothing wrong alone.
pub(super) fn minimise(
    compiler: &Compiler<'_>,
    case: &Case,
    wrong: &Wrong,
    number: u64,
) -> Result<Option<Smallest>, Failure> {
    let in_main = wrong.position == 0;
    let compiler = Compiler { debug: true, verify: matches!(wrong.how, How::Compile(_)), ..compiler.clone() };
    let first = Files::new(&emit::file(&[&case.program], in_main))?;
    compiler.kernels(&first)?;
    let modes = execute::modes(wrong.build, number);
    let mut trial = Trial { compiler: &compiler, build: wrong.build, modes, repeats: 1, in_main, first };
    let mut found = trial.fails(case, "")?;
    if let (None, How::Ran(difference)) = (&found, &wrong.how) {
        // What it does depends on timing: often enough it will be wrong again.
        (trial.modes, trial.repeats) = (vec![difference.mode.clone()], REPEATS);
        found = trial.fails(case, "")?;
    }
    let Some(mut how) = found else { return Ok(None) };
    let mut case = case.clone();
    let start = Instant::now();
    let mut progress = true;
    while progress && start.elapsed() < LIMIT {
        progress = false;
        for candidate in smaller(&case.program) {
            if start.elapsed() > LIMIT {
                break;
            }
            let Some(candidate) = candidate(&case.program) else { continue };
            let Ok(expected) = repair::meaning(&candidate) else { continue };
            let candidate = Case { program: candidate, expected };
            if let Some(still) = trial.fails(&candidate, "")? {
                (case, how, progress) = (candidate, still, true);
            }
        }
    }
    let pair = trial.guilty(&case)?;
    let text = emit::file(&[&without_unused_kernels(&case.program)], in_main);
    Ok(Some(Smallest { case, text, pair, how }))
}

type Change = Box<dyn Fn(&Program) -> Option<Program>>;

/// Changes that make a program smaller, those that take away most first. Each is tried on what the ones before it left.
fn smaller(program: &Program) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    let mut ids = edit::ids(program);
    ids.reverse();
    for chunk in [8, 3, 1] {
        for group in ids.chunks(chunk) {
            let group = group.to_vec();
            changes.push(Box::new(move |program| {
                let mut less = program.clone();
                let removed = group.iter().filter(|id| edit::remove(&mut less, **id)).count();
                (removed > 0).then_some(less)
            }));
        }
    }
    for id in ids {
        changes.push(Box::new(move |program| {
            let mut less = program.clone();
            edit::unwrap(&mut less, id).then_some(less)
        }));
    }
    changes.push(Box::new(|program| {
        (program.checks != Checks::None).then(|| Program { checks: Checks::None, ..program.clone() })
    }));
    changes.push(Box::new(|program| {
        (program.events > 0 && !mentions(program, |kind| matches!(kind, Kind::Record { .. })))
            .then(|| Program { events: 0, ..program.clone() })
    }));
    changes
}

/// For the reader: no trial ran it, but what is left out no statement launches.
fn without_unused_kernels(program: &Program) -> Program {
    let mut less = program.clone();
    let mut used = Vec::new();
    edit::visit_all(program, &mut |stmt: &Stmt| {
        if let Kind::Launch { kernel, .. } = stmt.kind {
            used.push(kernel);
        }
    });
    used.sort_unstable();
    used.dedup();
    less.kernels = used.iter().filter_map(|kernel| program.kernels.get(*kernel).cloned()).collect();
    for id in edit::ids(program) {
        edit::at(&mut less, id, |block, place| {
            if let Kind::Launch { kernel, .. } = &mut block[place].kind {
                *kernel = used.binary_search(kernel).unwrap_or(0);
            }
        });
    }
    less
}

fn mentions(program: &Program, what: impl Fn(&Kind) -> bool) -> bool {
    let mut found = false;
    edit::visit_all(program, &mut |stmt: &Stmt| found |= what(&stmt.kind));
    found
}

struct Trial<'a> {
    compiler: &'a Compiler<'a>,
    build: Build,
    modes: Vec<Mode>,
    /// How often each is run.
    repeats: usize,
    in_main: bool,
    /// The program as it was found; its kernels are those of all smaller ones.
    first: Files,
}

impl Trial<'_> {
    /// How the program goes wrong in this build, with more options of the plugin; `None`: it does not.
    fn fails(&self, case: &Case, more: &str) -> Result<Option<How>, Failure> {
        self.compile_and_run(case, more).map(|(how, _)| how)
    }

    fn compile_and_run(&self, case: &Case, more: &str) -> Result<(Option<How>, Files), Failure> {
        let files = self.first.with_same_kernels(&emit::file(&[&case.program], self.in_main))?;
        if let Err(failure) = self.compiler.host(&files, self.build, more) {
            return Ok((Some(How::Compile(failure.to_string())), files));
        }
        for mode in self.modes.iter().flat_map(|mode| std::iter::repeat_n(mode, self.repeats)) {
            for input in 0..2 {
                let cases = std::slice::from_ref(case);
                let found = super::batch::run(self.compiler, &files, self.build, mode, input, cases)?;
                if let Some(difference) = found.into_iter().next() {
                    return Ok((Some(How::Ran(difference)), files));
                }
            }
        }
        Ok((None, files))
    }

    /// The pair without whose merge the program does what it must.
    fn guilty(&self, case: &Case) -> Result<Option<String>, Failure> {
        if self.build.options().is_none() {
            return Ok(None);
        }
        let mut before = Vec::new();
        for limit in 0..=case.program.buffers.len() {
            let (how, files) = self.compile_and_run(case, &format!("merge-limit={limit}"))?;
            let merged: Vec<String> =
                verdicts::read(&files.report(self.build))?.into_iter().filter(|p| p.merged).map(|p| p.names).collect();
            if how.is_some() {
                let new = merged.iter().find(|names| !before.contains(*names));
                return Ok(new.or(merged.last()).cloned());
            }
            before = merged;
        }
        Ok(None)
    }
}
