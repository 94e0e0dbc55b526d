//! Reading traces and plans, and writing plans: whole or not at all.

use std::fs::{self, File};
use std::io::BufReader;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use echo_dr_format::counters::Counters;
use echo_dr_format::plan::Plan;
use echo_dr_format::reason::{Reason, Refusal};
use echo_dr_format::trace::Trace;

use crate::failure::Failure;

/// Reads a trace.
pub(crate) fn trace(path: &Path) -> Result<Trace, Failure> {
    let file = File::open(path).map_err(|error| Failure::io(path, "read", &error))?;
    Trace::read(BufReader::new(file))
        .map_err(|error| Failure::File { path: path.to_owned(), reason: error.to_string() })
}

/// Reads a plan that the library would read too: the user's own.
pub(crate) fn plan(path: &Path) -> Result<Plan, Failure> {
    let refused = |refusal: Refusal| {
        let reason = format!("{} ({})", refusal, refusal.number());
        Failure::File { path: path.to_owned(), reason }
    };
    let data = fs::metadata(path).map_err(|error| Failure::io(path, "read", &error))?;
    if data.uid() != rustix::process::geteuid().as_raw() || data.permissions().mode() & 0o022 != 0 {
        return Err(refused(Refusal::NotOwned));
    }
    let text = fs::read(path).map_err(|error| Failure::io(path, "read", &error))?;
    Plan::read(&text).map_err(refused)
}

/// Writes a plan for the user alone, by a rename: a program that starts meanwhile sees the old plan or the new one.
pub(crate) fn write_plan(plan: &Plan, path: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::io(path, "write", &error);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    plan.write(&mut file).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Reads what the library counted in a run.
pub(crate) fn counters(path: &Path) -> Result<Counters, Failure> {
    let text = fs::read(path).map_err(|error| Failure::io(path, "read", &error))?;
    Counters::read(&text).map_err(|reason| Failure::File { path: path.to_owned(), reason })
}
