//! How Echo's commands speak: results alone on standard output, progress on standard error and on a terminal only, sizes in the unit that
//! fits. And what the numbers mean that they say.

pub mod pages;

use std::io::{self, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

/// To standard output; that nobody reads it is no error.
///
/// # Errors
/// Standard output can't be written.
pub fn print(text: &str) -> io::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// One JSON object a row and line.
///
/// # Errors
/// A row has no JSON form, or standard output can't be written.
pub fn lines<T: Serialize>(rows: &[T]) -> io::Result<()> {
    let mut text = String::new();
    for row in rows {
        text += &serde_json::to_string(row)?;
        text.push('\n');
    }
    print(&text)
}

/// Shown while `total` pieces of work are done; indicatif draws nothing where standard error is no terminal.
#[must_use]
pub fn progress(what: &'static str, total: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix} {bar:30} {pos}/{len} {msg}");
    ProgressBar::new(total as u64).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())).with_prefix(what)
}

/// Shown while a piece of work of unknown length is done, on a terminal only.
#[must_use]
pub fn spinner(what: String) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(what);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// Bytes in the largest unit that gives at least 1.
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut scaled = bytes as f64;
    let mut unit = "bytes";
    for next in UNITS {
        if scaled < 1024.0 {
            break;
        }
        scaled /= 1024.0;
        unit = next;
    }
    if unit == "bytes" || scaled.fract() == 0.0 { format!("{scaled:.0} {unit}") } else { format!("{scaled:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_unit_that_fits() {
        assert_eq!(size(12), "12 bytes");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(4 << 20), "4 MiB");
    }
}
