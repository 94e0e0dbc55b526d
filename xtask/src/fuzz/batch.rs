//! A batch: programs of one file, compiled in all builds, run in all modes, compared with what the abstract machine says.

use super::build::{Build, Compiler, Files};
use super::execute::{self, Difference, Mode};
use super::generate::Case;
use super::machine::Expected;
use super::report::Totals;
use super::{emit, features, preloaded, verdicts};
use crate::failure::Failure;

/// Programs of a file: the headers cost as much as about ten of them.
pub(super) const SIZE: u64 = 40;

/// A program that went wrong.
#[derive(Clone, Debug)]
pub(super) struct Wrong {
    pub(super) position: usize,
    pub(super) build: Build,
    pub(super) how: How,
}

/// How it went wrong.
#[derive(Clone, Debug)]
pub(super) enum How {
    /// It printed something else, or crashed, or did not end.
    Ran(Difference),
    /// It does not compile.
    Compile(String),
}

/// Compiles and runs `cases`. `number` chooses levels and schedules.
pub(super) fn check(
    compiler: &Compiler<'_>,
    cases: &[Case],
    builds: &[Build],
    number: u64,
) -> Result<(Totals, Vec<Wrong>), Failure> {
    let programs: Vec<_> = cases.iter().map(|case| &case.program).collect();
    let files = Files::new(&emit::file(&programs, true))?;
    if let Err(failure) = compiler.all(&files, builds) {
        return Ok((Totals::default(), vec![who_fails_to_compile(compiler, cases, builds, failure)?]));
    }
    let mut totals = Totals { programs: cases.len() as u64, ..Totals::default() };
    count(&mut totals, cases, &files, builds)?;
    let mut wrong: Vec<Wrong> = Vec::new();
    for &build in builds {
        for mode in execute::modes(build, number) {
            for input in 0..2 {
                totals.runs += cases.len() as u64;
                for difference in run(compiler, &files, build, &mode, input, cases)? {
                    // One finding a program is enough, and a program that is wrong by itself says nothing about the plugin.
                    if !wrong.iter().any(|known| known.position == difference.position) {
                        wrong.push(Wrong { position: difference.position, build, how: How::Ran(difference) });
                    }
                }
            }
        }
    }
    if builds.contains(&Build::Preloaded) {
        let (pairs, merged) = preloaded::count(&files, number)?;
        totals.pairs.insert(Build::Preloaded.name(), pairs);
        totals.merged.add(merged);
    }
    Ok((totals, wrong))
}

/// Runs one build in one mode.
pub(super) fn run(
    compiler: &Compiler<'_>,
    files: &Files,
    build: Build,
    mode: &Mode,
    input: usize,
    cases: &[Case],
) -> Result<Vec<Difference>, Failure> {
    let expected: Vec<&Expected> = cases.iter().map(|case| &case.expected[input]).collect();
    let (context, program) = (compiler.context, files.program(build));
    match mode.step {
        Some(step) => preloaded::differences(context, compiler.unvalidated, files, mode, step, input, &expected),
        None => execute::differences(mode, input, &expected, |first| {
            execute::run(context, &program, mode, &[first, expected.len() - 1, input], &[])
        }),
    }
}

/// The first program that alone does not compile either.
fn who_fails_to_compile(
    compiler: &Compiler<'_>,
    cases: &[Case],
    builds: &[Build],
    all: Failure,
) -> Result<Wrong, Failure> {
    for (position, case) in cases.iter().enumerate() {
        let files = Files::new(&emit::file(&[&case.program], position == 0))?;
        compiler.kernels(&files)?;
        compiler.host(&files, Build::Plain, "")?;
        for &build in builds.iter().filter(|build| **build != Build::Plain) {
            if let Err(failure) = compiler.host(&files, build, "") {
                return Ok(Wrong { position, build, how: How::Compile(failure.to_string()) });
            }
        }
    }
    Err(Failure::Build(format!("each program compiles alone, but not all together: {all}")))
}

fn count(totals: &mut Totals, cases: &[Case], files: &Files, builds: &[Build]) -> Result<(), Failure> {
    for case in cases {
        for feature in features::of(&case.program) {
            totals.features.entry(feature).or_default().programs += 1;
        }
    }
    for &build in builds.iter().filter(|build| build.options().is_some()) {
        for pair in verdicts::read(&files.report(build))? {
            totals.pairs.entry(build.name()).or_default().count(pair.merged, &pair.codes);
            if build != Build::Exclusive {
                continue;
            }
            // What became part of `main` is the first.
            let owner = match pair.program {
                Some(index) => cases.iter().find(|case| case.program.index == index),
                None => cases.first(),
            };
            for feature in owner.map(|case| features::of(&case.program)).unwrap_or_default() {
                let feature = totals.features.entry(feature).or_default();
                if pair.merged {
                    feature.merged += 1;
                } else {
                    feature.declined += 1;
                }
            }
        }
    }
    Ok(())
}
