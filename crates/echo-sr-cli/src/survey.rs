//! `echo-sr survey`: a folder of CUDA sources without a build system, in one table.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use echo_cli::pages;
use serde::Serialize;
use walkdir::WalkDir;

use crate::Status;
use crate::database::Entry;
use crate::failure::Failure;
use crate::lint::{Common, Results, complain, print};

/// How many pairs of the CUDA sources in a folder can be merged, and what keeps the others apart?
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Survey {
    /// Its .cu files are compiled, in all its folders
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    common: Common,
    /// The table as one JSON object
    #[arg(long)]
    json: bool,
    /// More options for clang: include folders, macros
    #[arg(last = true, value_name = "OPTIONS")]
    extra: Vec<String>,
}

const AFTER: &str = "\
Each file is compiled as `clang++ -std=c++17 -O2`, for sm_80 unless --arch says otherwise, with its own folder, DIR and the folders
`include` and `common` of DIR as include folders.

Exit codes:
  0  every file was analysed
  2  wrong usage or set-up
  3  some file does not compile; the table is of the others

Example:
  echo-sr survey src --cuda-path /usr/local/cuda -- -Ithird_party -DUSE_FLOAT";

/// The architecture for files without a command: CUDA 11 to 13 have it.
const DEFAULT_ARCH: &str = "sm_80";

/// The table.
#[derive(Debug, Serialize)]
struct Row {
    units: usize,
    failed: usize,
    pairs: usize,
    mergeable: usize,
    declined: usize,
    /// Pairs by each condition that is broken; a pair may have several.
    by_code: BTreeMap<String, usize>,
}

impl Survey {
    /// Runs the command.
    pub(crate) fn run(&self) -> Result<Status, Failure> {
        let folder = self.folder.canonicalize().map_err(|error| Failure::io(&self.folder, "open", &error))?;
        let sources = sources(&folder);
        if sources.is_empty() {
            return Err(Failure::Nothing(format!("there is no .cu file in {}", self.folder.display())));
        }
        let compiler = self.common.compiler()?;
        let entries: Vec<Entry> = sources.iter().map(|source| self.entry(&folder, source, &compiler)).collect();
        let results = self.common.analyse(&entries, &self.extra)?;
        let row = count(&results);
        if self.json {
            let text = serde_json::to_string_pretty(&row).map_err(|error| Failure::Nothing(error.to_string()))?;
            print(&(text + "\n"))?;
        } else {
            print(&format!("{}\n", table(&row)))?;
        }
        complain(&results);
        Ok(if results.failed.is_empty() { Status::Clean } else { Status::Incomplete })
    }

    fn entry(&self, folder: &Path, source: &Path, compiler: &str) -> Entry {
        let mut arguments = vec![compiler.to_owned(), "-std=c++17".to_owned(), "-O2".to_owned()];
        let own = source.parent().unwrap_or(folder);
        for include in [own, folder, &folder.join("include"), &folder.join("common")] {
            arguments.push(format!("-I{}", include.display()));
        }
        if self.common.arch.is_none() {
            arguments.push(format!("--cuda-gpu-arch={DEFAULT_ARCH}"));
        }
        let file = source.to_string_lossy().into_owned();
        arguments.push(file.clone());
        Entry { directory: own.to_owned(), file, arguments }
    }
}

/// All .cu files of a folder, by path. Folders that can't be read, and hidden ones, are passed over.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let hidden = |entry: &walkdir::DirEntry| entry.depth() > 0 && entry.file_name().to_string_lossy().starts_with('.');
    WalkDir::new(folder)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|entry| !hidden(entry))
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_file())
        .map(walkdir::DirEntry::into_path)
        .filter(|path| path.extension().is_some_and(|extension| extension == "cu"))
        .collect()
}

fn count(results: &Results) -> Row {
    let declined = results.findings.iter().filter(|finding| finding.is_declined());
    let mut by_code = BTreeMap::new();
    for finding in declined.clone() {
        let mut codes: Vec<_> = finding.pair.reasons.iter().map(|reason| &reason.code).collect();
        codes.sort_unstable();
        codes.dedup();
        for code in codes {
            *by_code.entry(code.clone()).or_default() += 1;
        }
    }
    let declined = declined.count();
    Row {
        units: results.units.len(),
        failed: results.failed.len(),
        pairs: results.findings.len(),
        mergeable: results.findings.len() - declined,
        declined,
        by_code,
    }
}

fn table(row: &Row) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    table.set_header(["", "count", "meaning"]);
    let mut add = |name: &str, count: usize, meaning: &str| {
        table.add_row([name.to_owned(), count.to_string(), meaning.to_owned()]);
    };
    add("units", row.units, "");
    if row.failed > 0 {
        add("  that do not compile", row.failed, "");
    }
    add("pairs", row.pairs, "host and device buffers with a copy between them");
    add("  can be merged", row.mergeable, "");
    add("  declined", row.declined, "by condition (a pair may break several):");
    let mut codes: Vec<_> = row.by_code.iter().collect();
    codes.sort_by_key(|(code, count)| (std::cmp::Reverse(**count), (*code).clone()));
    for (code, count) in codes {
        let page = pages::find(code);
        let meaning = page.map_or_else(String::new, |page| format!("{}: {}", page.number, page.message));
        add(&format!("    {code}"), *count, &meaning);
    }
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
