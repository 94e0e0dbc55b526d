//! `cargo xtask install --prefix DIR`: what a user of Echo needs, in the usual folders.
//!
//! | file | for |
//! | --- | --- |
//! | `bin/echo-sr`, `bin/echo-dr` | the commands |
//! | `lib/libecho_sr.so` | `clang++ -fpass-plugin=…` |
//! | `lib/libecho_dr.so` | what `echo-dr` loads into programs |
//! | `lib/libecho_rt.a` | programs compiled with `target=adaptive` |
//! | `lib/cmake/EchoSR/` | `find_package(EchoSR)` |

use std::fs;
use std::path::Path;

use crate::context::Context;
use crate::failure::Failure;
use crate::products;

const CMAKE_FILES: [&str; 2] = ["EchoSRConfig.cmake", "EchoSRConfigVersion.cmake"];

/// Copies the products, which are built, below `prefix`.
pub(crate) fn install(context: &Context, prefix: &Path) -> Result<(), Failure> {
    let release = context.target.join("release");
    let cmake = CMAKE_FILES.map(|file| (context.root.join("cmake").join(file), format!("lib/cmake/EchoSR/{file}")));
    let files = [
        (release.join("echo-sr"), "bin/echo-sr".to_owned()),
        (release.join("echo-dr"), "bin/echo-dr".to_owned()),
        (release.join("libecho_dr.so"), "lib/libecho_dr.so".to_owned()),
        (release.join("libecho_sr.so"), "lib/libecho_sr.so".to_owned()),
        (release.join("libecho_rt.a"), "lib/libecho_rt.a".to_owned()),
    ];
    for (from, to) in files.into_iter().chain(cmake) {
        let to = prefix.join(to);
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(|error| Failure::io("create", folder, &error))?;
        }
        products::install(&from, &to)?;
        context.ui.say(&to.display().to_string());
    }
    Ok(())
}
