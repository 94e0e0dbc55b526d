//! `cargo xtask setup`: finds or installs all that Echo is built and tested with, and checks each piece by running it.
//!
//! The pieces are Debian packages ([`pieces`], [`debian`]) and the CUDA toolkit, unpacked from its Python wheels into `target/cuda`
//! ([`wheels`]). [`check`] runs each. When all is well a stamp is left whose content names every piece's file, size and time and the
//! wheels' versions, so that the next run only compares that (a few milliseconds) and any change of a piece leads to a new check.

mod check;
mod debian;
mod pieces;
mod wheels;

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::context::Context;
use crate::failure::Failure;

pub(crate) use pieces::{AARCH64_GCC, AARCH64_RUSTC, LLVM_OLD, LLVM_PREFERRED, llvm_tool};

/// Raise it when the checks change, so that they run once more everywhere.
const CHECKS_VERSION: u32 = 1;

/// Completes the set-up, or says what is missing and how to install it. `offline_wheels`: a folder with the wheels, for a machine that
/// cannot download them. Quick when nothing is missing.
pub(crate) fn complete(context: &Context, offline_wheels: Option<&Path>) -> Result<(), Failure> {
    let stamp = context.target.join("setup.stamp");
    if is_current(context, &stamp) {
        return Ok(());
    }
    fs::create_dir_all(&context.target).map_err(|error| Failure::io("create", &context.target, &error))?;
    let _lock = lock(context)?;
    if is_current(context, &stamp) {
        return Ok(()); // Another set-up did it while we waited.
    }

    let toolkit_unpacked = wheels::is_unpacked(&context.cuda());
    debian::install(context, &|| pieces::missing(toolkit_unpacked))?;
    if !toolkit_unpacked {
        wheels::unpack(context, offline_wheels)?;
    }
    check::all(context)?;

    let fingerprint =
        fingerprint(context).ok_or_else(|| Failure::Setup("a piece vanished during set-up; run it again".into()))?;
    fs::write(&stamp, fingerprint).map_err(|error| Failure::io("write", &stamp, &error))?;
    context.ui.say("set-up is complete");
    Ok(())
}

/// Completes what only the tests need.
pub(crate) fn complete_for_tests(context: &Context) -> Result<(), Failure> {
    debian::install(context, &|| pieces::GUESTS.iter().filter(|piece| piece.find().is_none()).collect())?;
    complete_aarch64(context)
}

/// Completes what `cargo xtask aarch64` needs besides; nothing on an aarch64 machine.
pub(crate) fn complete_aarch64(context: &Context) -> Result<(), Failure> {
    if cfg!(target_arch = "aarch64") {
        return Ok(());
    }
    debian::install(context, &|| pieces::AARCH64.iter().filter(|piece| piece.find().is_none()).collect())
}

fn is_current(context: &Context, stamp: &Path) -> bool {
    let Ok(stamped) = fs::read_to_string(stamp) else { return false };
    fingerprint(context).is_some_and(|now| now == stamped)
}

/// What the stamp holds; `None` when a piece is missing.
fn fingerprint(context: &Context) -> Option<String> {
    use std::fmt::Write;
    if !wheels::is_unpacked(&context.cuda()) {
        return None;
    }
    let mut text = format!("checks {CHECKS_VERSION}\n{}\n", wheels::identity());
    for piece in pieces::ALL {
        let path = piece.find()?;
        describe(&mut text, &path)?;
    }
    for path in wheels::programs(&context.cuda()) {
        describe(&mut text, &path)?;
    }
    writeln!(text, "cuda {}", context.cuda().display()).ok()?;
    Some(text)
}

fn describe(text: &mut String, path: &Path) -> Option<()> {
    use std::fmt::Write;
    let data = path.metadata().ok()?;
    writeln!(text, "{} {} {}", path.display(), data.len(), data.mtime()).ok()
}

/// One set-up at a time in one target folder. The lock ends with the process, however it ends.
fn lock(context: &Context) -> Result<File, Failure> {
    let path = context.target.join("setup.lock");
    let file = File::create(&path).map_err(|error| Failure::io("create", &path, &error))?;
    if file.try_lock().is_err() {
        context.ui.say("another set-up is running in this folder; waiting for it");
        file.lock().map_err(|error| Failure::io("lock", &path, &error))?;
    }
    Ok(file)
}
