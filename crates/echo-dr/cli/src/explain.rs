//! `echo-dr explain`: what a number means, and what to do.

use clap::Args;
use echo_cli::pages::{self, Page};
use serde_json::json;

use crate::failure::{Failure, Status, print};

/// What does a number (EDR340) or its name (host-touched) mean, and what helps?
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  the page was shown
  2  there is no such number")]
pub(crate) struct Explain {
    /// A number or name; without one, all are listed
    #[arg(value_name = "NUMBER")]
    number: Option<String>,
    /// JSON Lines: number, name, message, and the page in Markdown
    #[arg(long)]
    json: bool,
}

impl Explain {
    /// Runs the command.
    pub(crate) fn run(&self) -> Result<Status, Failure> {
        let shown = match &self.number {
            None => pages::all(pages::RUN_TIME),
            Some(number) => vec![pages::find(number).ok_or_else(|| {
                Failure::Usage(format!("there is no number or name `{number}`; `echo-dr explain` lists all"))
            })?],
        };
        if self.json {
            let text: String = shown.iter().map(|page| format!("{}\n", row(page))).collect();
            print(&text)?;
        } else if self.number.is_some() {
            shown.iter().try_for_each(|page| print(page.text))?;
        } else {
            let width = shown.iter().map(|page| page.code.len()).max().unwrap_or(0);
            let list: String =
                shown.iter().map(|page| format!("{} {:width$}  {}\n", page.number, page.code, page.message)).collect();
            print(&list)?;
        }
        Ok(Status::Done)
    }
}

fn row(page: &Page) -> serde_json::Value {
    json!({ "number": page.number, "name": page.code, "message": page.message, "page": page.text })
}
