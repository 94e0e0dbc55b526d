//! Installs missing pieces with apt-get: asks first, and where it cannot install says exactly what to run.

use std::collections::BTreeSet;
use std::process::Command;

use super::pieces::Piece;
use crate::context::Context;
use crate::failure::Failure;
use crate::tool;

/// Installs the packages of the pieces that `missing` finds, and looks again afterwards. Nothing to do if there are none.
pub(crate) fn install(context: &Context, missing: &dyn Fn() -> Vec<&'static Piece>) -> Result<(), Failure> {
    let missing_packages = || missing().iter().map(|piece| piece.package).collect::<BTreeSet<&str>>();
    let packages: Vec<&str> = missing_packages().into_iter().collect();
    if packages.is_empty() {
        return Ok(());
    }
    let foreign = packages.iter().any(|package| package.ends_with(":arm64"));
    let add = if foreign { "dpkg --add-architecture arm64 && apt-get update && " } else { "" };
    let by_hand = format!("{add}apt-get install --no-install-recommends {}", packages.join(" "));
    let give_up = |why: &str| {
        Failure::Setup(format!("{why}\nInstall what is missing as root, then run this command again:\n  {by_hand}"))
    };

    if tool::find("apt-get").is_none() {
        return Err(give_up(
            "Packages are missing, and this machine has no apt-get. On another system, install the same tools.",
        ));
    }
    let Some(prefix) = root_prefix() else {
        return Err(give_up("Packages are missing, and installing them needs root (there is no sudo here)."));
    };
    if !context.install_without_asking {
        context.ui.say(&format!("Missing Debian packages: {}", packages.join(" ")));
        match context.ui.ask("Install them with apt-get now?") {
            Some(true) => {}
            Some(false) => return Err(give_up("Nothing was installed.")),
            None => {
                return Err(give_up(
                    "Packages are missing. Nobody is here to ask; with --yes they are installed without asking.",
                ));
            }
        }
    }

    let step = context.ui.step(format!("installing {}", packages.join(" ")));
    let root = |words: &[&str]| {
        let mut words = prefix.iter().chain(words);
        let mut command = Command::new(words.next().unwrap_or(&"env"));
        tool::run(command.args(words))
    };
    let apt = |arguments: &[&str]| {
        root(&[&["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y"], arguments].concat())
    };
    if foreign {
        root(&["dpkg", "--add-architecture", "arm64"]).map_err(|error| give_up(&error.to_string()))?;
    }
    // Nothing that the user has gives way to a package of ours.
    let mut arguments = vec!["install", "--no-install-recommends", "--no-remove"];
    arguments.extend(&packages);
    // The machine's package list may be old or absent: only then is it brought up to date.
    if apt(&arguments).is_err() {
        apt(&["update"])
            .and_then(|_| apt(&arguments))
            .map_err(|error| give_up(&format!("apt-get could not install them.\n{error}")))?;
    }
    step.done();

    let still: Vec<&str> = missing_packages().into_iter().collect();
    if still.is_empty() {
        Ok(())
    } else {
        Err(give_up(&format!("apt-get ended well, but still missing: {}.", still.join(" "))))
    }
}

/// What to put before a command to run it as root: nothing for root itself. `None`: there is no way.
fn root_prefix() -> Option<&'static [&'static str]> {
    let id = tool::run(Command::new("id").arg("-u")).ok()?;
    if String::from_utf8_lossy(&id.stdout).trim() == "0" {
        return Some(&[]);
    }
    tool::find("sudo").map(|_| &["sudo"] as &[_])
}
