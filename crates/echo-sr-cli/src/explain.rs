//! `echo-sr explain`: what a number or code means, and where a report has it.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use codespan_reporting::term::termcolor::NoColor;
use echo_cli::pages::{self, Page};
use serde_json::json;

use crate::Status;
use crate::failure::Failure;
use crate::finding::Finding;
use crate::lint::{lines, print};
use crate::text::Renderer;

/// What does a number (ESR210) or code (S1-device-value-overwritten) mean, and what helps?
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Explain {
    /// A number or code; without one, all are listed
    #[arg(value_name = "CODE")]
    code: Option<String>,
    /// A report (of the plugin's report=FILE, or of lint --json): its pairs with that code are shown too
    #[arg(value_name = "REPORT", requires = "code")]
    report: Option<PathBuf>,
    /// List all numbers and codes
    #[arg(long, conflicts_with = "code")]
    list: bool,
    /// JSON Lines: number, code, message, and the page in Markdown
    #[arg(long)]
    json: bool,
}

const AFTER: &str = "\
Exit codes:
  0  the page was shown
  2  there is no such code, or the report can't be read";

impl Explain {
    /// Runs the command.
    pub(crate) fn run(&self) -> Result<Status, Failure> {
        let Some(code) = self.code.as_ref().filter(|_| !self.list) else {
            self.list()?;
            return Ok(Status::Clean);
        };
        let page = pages::find(code).ok_or_else(|| Failure::Nothing(unknown(code)))?;
        if self.json {
            lines(&[row(&page)])?;
        } else {
            print(page.text)?;
        }
        if let Some(path) = &self.report {
            print(&occurrences(path, page.code)?)?;
        }
        Ok(Status::Clean)
    }

    fn list(&self) -> Result<(), Failure> {
        let pages = pages::all(pages::STATIC);
        if self.json {
            return lines(&pages.iter().map(row).collect::<Vec<_>>());
        }
        let width = pages.iter().map(|page| page.code.len()).max().unwrap_or(0);
        let list: String =
            pages.iter().map(|page| format!("{} {:width$}  {}\n", page.number, page.code, page.message)).collect();
        print(&list)
    }
}

fn row(page: &Page) -> serde_json::Value {
    json!({ "number": page.number, "code": page.code, "message": page.message, "page": page.text })
}

/// Near codes are offered: those of the same condition.
fn unknown(code: &str) -> String {
    let group = code.split('-').next().unwrap_or(code).to_ascii_uppercase();
    let near: Vec<_> = pages::all(pages::STATIC)
        .into_iter()
        .filter(|page| page.code.to_ascii_uppercase().starts_with(&group))
        .map(|page| page.code)
        .collect();
    let hint = if near.is_empty() { String::new() } else { format!("; near are {}", near.join(", ")) };
    format!("there is no number or code `{code}`{hint}. `echo-sr explain --list` shows all")
}

/// The pairs of a report that break the condition.
fn occurrences(path: &PathBuf, code: &str) -> Result<String, Failure> {
    let text = fs::read_to_string(path).map_err(|error| Failure::io(path, "read", &error))?;
    let pairs = echo_report::parse(&text)
        .map_err(|error| Failure::File { path: path.clone(), reason: format!("is no report: {error}") })?;
    let root = std::env::current_dir().unwrap_or_default();
    let mut renderer = Renderer::new(&root);
    let mut out = NoColor::new(Vec::new());
    let mut count = 0;
    for mut pair in pairs {
        pair.reasons.retain(|reason| reason.code == code);
        if pair.reasons.is_empty() {
            continue;
        }
        count += 1;
        let unit = pair.host.site.file.clone();
        let finding = Finding { functions: vec![pair.function.clone()], pair, unit, new: None };
        renderer.show(&finding, &mut out)?;
    }
    let title = format!("\n{count} pairs of {} have it\n\n", path.display());
    Ok(title + &String::from_utf8_lossy(&out.into_inner()))
}
