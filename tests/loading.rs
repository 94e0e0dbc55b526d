//! The plugin loads where users load it, and says so where it can't.

#![cfg(any(feature = "llvm19", feature = "llvm22"))]

mod common;

use common::{MAJOR, fail, opt, plugin, plugin_for, scratch, succeed, write};

const PLAIN: &str = "define i32 @f(i32 %x) {\n  %y = add i32 %x, 1\n  ret i32 %y\n}\n";

#[test]
fn the_three_passes_have_names_in_opt() {
    let directory = scratch();
    let input = write(directory.path(), "plain.ll", PLAIN);
    for pass in ["echo-sr", "echo-sr-prepare", "echo-sr-effects", "echo-sr<target=managed;repair=off>"] {
        succeed(opt(MAJOR, plugin()).arg(format!("-passes={pass}")).arg("-disable-output").arg(&input));
    }
    let message = fail(opt(MAJOR, plugin()).arg("-passes=echo-srx").arg("-disable-output").arg(&input));
    assert!(message.contains("echo-srx"), "{message}");
}

#[test]
fn a_module_without_cuda_stays_as_it_is() {
    let directory = scratch();
    let input = write(directory.path(), "plain.ll", PLAIN);
    let passes = "echo-sr-prepare,echo-sr,echo-sr-effects";
    let (with, _) = succeed(opt(MAJOR, plugin()).arg(format!("-passes={passes}")).arg("-S").arg(&input));
    let (without, _) = succeed(opt(MAJOR, plugin()).arg("-passes=no-op-module").arg("-S").arg(&input));
    assert_eq!(with, without);
}

#[test]
fn a_bad_option_ends_the_compilation_and_names_the_valid_ones() {
    let directory = scratch();
    let input = write(directory.path(), "plain.ll", PLAIN);
    let message = fail(opt(MAJOR, plugin()).args(["-passes=echo-sr<trget=managed>", "-disable-output"]).arg(&input));
    assert!(message.contains("`trget=managed`") && message.contains("merge-limit=N"), "{message}");
    let message = fail(opt(MAJOR, plugin()).args(["-passes=echo-sr<target=adaptive>", "-disable-output"]).arg(&input));
    assert!(message.contains("target=adaptive") && message.contains("not in this release"), "{message}");
    let message = fail(
        opt(MAJOR, plugin())
            .args(["-passes=echo-sr", "-disable-output"])
            .arg(&input)
            .env("ECHO_SR_OPTIONS", "access=shared"),
    );
    assert!(message.contains("access") && message.contains("exclusive"), "{message}");
}

#[test]
fn parameters_of_a_named_pass_go_before_the_environment() {
    let directory = scratch();
    let input = write(directory.path(), "plain.ll", PLAIN);
    succeed(
        opt(MAJOR, plugin())
            .args(["-passes=echo-sr<repair=on>", "-disable-output"])
            .arg(&input)
            .env("ECHO_SR_OPTIONS", "nonsense"),
    );
}

#[test]
fn llvm_19_loads_the_plugin_that_is_built_for_it() {
    let Some(plugin) = plugin_for("19") else { return };
    let directory = scratch();
    let input = write(directory.path(), "plain.ll", PLAIN);
    for pass in ["echo-sr", "echo-sr-prepare", "echo-sr-effects"] {
        succeed(opt("19", &plugin).arg(format!("-passes={pass}")).arg("-disable-output").arg(&input));
    }
    let message = fail(opt("19", &plugin).args(["-passes=echo-sr<off=1>", "-disable-output"]).arg(&input));
    assert!(message.contains("no value"), "{message}");
}

#[test]
fn another_llvm_refuses_the_plugin_with_a_sentence() {
    let directory = scratch();
    let input = write(directory.path(), "plain.ll", PLAIN);
    for (built, running) in [("22", "19"), ("19", "22")] {
        let built_for = if built == MAJOR { Some(plugin().to_owned()) } else { plugin_for(built) };
        let Some(plugin) = built_for else { return };
        let message = fail(opt(running, &plugin).args(["-passes=echo-sr", "-disable-output"]).arg(&input));
        let sentence = format!("built for LLVM {built}, but LLVM {running} loads it");
        assert!(message.contains(&sentence), "{message}");
        assert!(message.contains(&format!("--features llvm{running}")), "{message}");
    }
}
