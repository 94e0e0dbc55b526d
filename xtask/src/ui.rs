//! What a user sees while a command works: a spinner on a terminal, plain lines in a pipe. All of it goes to stderr; results alone go to
//! stdout.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// How to talk to the user.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ui {
    terminal: bool,
}

/// A piece of work that is under way; [`Step::done`] ends it well, dropping it ends it silently (the error that follows speaks).
#[derive(Debug)]
pub(crate) struct Step {
    bar: Option<ProgressBar>,
    text: String,
    start: Instant,
}

impl Ui {
    /// Looks at stderr.
    pub(crate) fn new() -> Self {
        Ui { terminal: std::io::stderr().is_terminal() }
    }

    /// One line of information.
    #[expect(clippy::unused_self, reason = "the same way to speak as the other methods")]
    pub(crate) fn say(self, line: &str) {
        eprintln!("{line}");
    }

    /// Starts a piece of work of unknown length.
    pub(crate) fn step(self, text: impl Into<String>) -> Step {
        self.start(text.into(), None)
    }

    /// Starts a piece of work of `total` parts; call [`Step::advance`] after each.
    pub(crate) fn steps(self, text: impl Into<String>, total: usize) -> Step {
        self.start(text.into(), Some(total))
    }

    fn start(self, text: String, total: Option<usize>) -> Step {
        let bar = if self.terminal {
            let bar = match total {
                Some(total) => ProgressBar::new(total as u64),
                None => ProgressBar::new_spinner(),
            };
            let template = match total {
                Some(_) => "{spinner} {msg} [{bar:24}] {pos}/{len} {elapsed}",
                None => "{spinner} {msg} {elapsed}",
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_message(text.clone());
            bar.enable_steady_tick(Duration::from_millis(120));
            Some(bar)
        } else {
            eprintln!("{text} ...");
            None
        };
        Step { bar, text, start: Instant::now() }
    }

    /// Asks a yes/no question; no is the default. `None`: nobody is there to answer.
    pub(crate) fn ask(self, question: &str) -> Option<bool> {
        if !self.terminal || !std::io::stdin().is_terminal() {
            return None;
        }
        eprint!("{question} [y/N] ");
        std::io::stderr().flush().ok()?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).ok()?;
        Some(matches!(answer.trim(), "y" | "Y" | "yes"))
    }
}

impl Step {
    /// One of the parts is done.
    pub(crate) fn advance(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// Says more about what is going on (on a terminal only: a pipe would fill with lines).
    pub(crate) fn detail(&self, detail: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{}: {detail}", self.text));
        }
    }

    /// The work is done.
    pub(crate) fn done(mut self) {
        let seconds = self.start.elapsed().as_secs_f64();
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        eprintln!("{}: done ({seconds:.1} s)", self.text);
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
