//! `cuda-samples/samples.toml`: which samples there are, how to run them, and the verdict that each of their pairs must get.

use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

use crate::context::Context;
use crate::failure::Failure;

/// One sample.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sample {
    /// `NAME.cu` is the program.
    pub(crate) name: String,
    /// `NAME_merged.cu` is the same program merged by hand.
    pub(crate) merged: bool,
    /// Arguments of the demo's runs.
    demo: Vec<String>,
    /// Arguments of the tests' runs.
    test: Vec<String>,
    /// Arguments of runs whose rounds are short, where the tests' are not.
    short: Option<Vec<String>>,
    /// Its candidate pairs.
    #[serde(default, rename = "pair")]
    pub(crate) pairs: Vec<ExpectedPair>,
}

/// A candidate pair as `samples.toml` has it. `host`, `device` and `at` are text of source lines.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectedPair {
    host: String,
    device: String,
    /// What the plugin must say of it.
    pub(crate) verdict: Outcome,
    /// The code of the condition that breaks, if it is declined.
    pub(crate) code: Option<String>,
    at: Option<String>,
}

/// A pair is merged or left alone.
#[derive(Clone, Copy, Debug, Deserialize, serde::Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    /// One buffer now.
    Merged,
    /// Two buffers still.
    Declined,
}

/// An [`ExpectedPair`] with line numbers of the sample's `.cu` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expectation {
    /// Line that allocates the host buffer.
    pub(crate) host: u32,
    /// Line that allocates the device buffer.
    pub(crate) device: u32,
    /// What the plugin must say of it.
    pub(crate) verdict: Outcome,
    /// The code of the condition that breaks, if it is declined.
    pub(crate) code: Option<String>,
    /// The line at which it breaks.
    pub(crate) at: Option<u32>,
}

/// How large the runs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// Buffers of many MiB, to measure.
    Demo,
    /// The same paths, quickly.
    Test,
    /// Buffers of a few pages, so that a round of the loop takes no longer than it must.
    Short,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Catalogue {
    #[serde(rename = "sample")]
    samples: Vec<Sample>,
}

/// The samples called `names`, or all of them if there are none.
pub(crate) fn load(context: &Context, names: &[String]) -> Result<Vec<Sample>, Failure> {
    let path = context.samples().join("samples.toml");
    let text = fs::read_to_string(&path).map_err(|error| Failure::io("read", &path, &error))?;
    let all = toml::from_str::<Catalogue>(&text)
        .map_err(|error| Failure::Build(format!("{}: {error}", path.display())))?
        .samples;
    for name in names {
        if !all.iter().any(|sample| &sample.name == name) {
            let known: Vec<&str> = all.iter().map(|sample| sample.name.as_str()).collect();
            return Err(Failure::Build(format!("there is no sample '{name}'; there are {}", known.join(", "))));
        }
    }
    Ok(all.into_iter().filter(|sample| names.is_empty() || names.contains(&sample.name)).collect())
}

impl Sample {
    /// Its source file, or that of the variant merged by hand.
    pub(crate) fn source(&self, context: &Context, merged: bool) -> PathBuf {
        context.samples().join(if merged { format!("{}_merged.cu", self.name) } else { format!("{}.cu", self.name) })
    }

    /// Arguments of a run.
    pub(crate) fn arguments(&self, size: Size) -> &[String] {
        match size {
            Size::Demo => &self.demo,
            Size::Test => &self.test,
            Size::Short => self.short.as_ref().unwrap_or(&self.test),
        }
    }

    /// Its pairs with line numbers. An error if a text is on no line or on several.
    pub(crate) fn expectations(&self, context: &Context) -> Result<Vec<Expectation>, Failure> {
        let path = self.source(context, false);
        let source = fs::read_to_string(&path).map_err(|error| Failure::io("read", &path, &error))?;
        let line = |text: &str| {
            line_of(&source, text)
                .map_err(|problem| Failure::Build(format!("samples.toml: '{text}' {problem} {}", path.display())))
        };
        self.pairs
            .iter()
            .map(|pair| {
                Ok(Expectation {
                    host: line(&pair.host)?,
                    device: line(&pair.device)?,
                    verdict: pair.verdict,
                    code: pair.code.clone(),
                    at: pair.at.as_deref().map(line).transpose()?,
                })
            })
            .collect()
    }
}

/// The number of the only line that contains `text`.
fn line_of(source: &str, text: &str) -> Result<u32, &'static str> {
    let mut lines = (1..).zip(source.lines()).filter(|(_, line)| line.contains(text)).map(|(number, _)| number);
    match (lines.next(), lines.next()) {
        (Some(number), None) => Ok(number),
        (None, _) => Err("is on no line of"),
        (Some(_), Some(_)) => Err("is on several lines of"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_by_text_that_only_it_has() {
        let source = "int a;\nint b;\nfloat c;\n";
        assert_eq!(line_of(source, "float"), Ok(3));
        assert_eq!(line_of(source, "int b"), Ok(2));
        assert_eq!(line_of(source, "int"), Err("is on several lines of"));
        assert_eq!(line_of(source, "double"), Err("is on no line of"));
    }

    #[test]
    fn the_catalogue_fits_the_sources() {
        let context = Context::new(false);
        let samples = load(&context, &[]).unwrap();
        for sample in &samples {
            assert!(sample.source(&context, false).is_file(), "{}", sample.name);
            assert_eq!(sample.source(&context, true).is_file(), sample.merged, "{}_merged.cu", sample.name);
            let pairs = sample.expectations(&context).unwrap();
            assert!(!pairs.is_empty(), "{} has no pair", sample.name);
            for pair in pairs {
                let declined = pair.verdict == Outcome::Declined;
                assert_eq!((pair.code.is_some(), pair.at.is_some()), (declined, declined), "{}: {pair:?}", sample.name);
            }
        }
        let sources = fs::read_dir(context.samples()).unwrap().flatten().map(|entry| entry.path());
        for path in sources.filter(|path| path.extension().is_some_and(|extension| extension == "cu")) {
            let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
            let name = stem.strip_suffix("_merged").unwrap_or(&stem);
            assert!(samples.iter().any(|sample| sample.name == name), "{stem}.cu is not in samples.toml");
        }
    }

    #[test]
    fn an_unknown_sample_is_refused_with_the_known_names() {
        let error = load(&Context::new(false), &["figure9".into()]).unwrap_err().to_string();
        assert!(error.contains("figure9") && error.contains("figure1"), "{error}");
    }
}
