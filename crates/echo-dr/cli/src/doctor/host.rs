//! What of the machine and of this process' surroundings concerns a preloaded library.

use std::fs;

use super::Finding;

/// Page sizes for which validation is tested.
const KNOWN_PAGES: [usize; 3] = [4 << 10, 16 << 10, 64 << 10];

/// Looks at the host.
pub(crate) fn look() -> Vec<Finding> {
    let mut findings = vec![pages(rustix::param::page_size())];
    findings.push(Finding::ok("host", format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)));
    findings.extend(other_preloads(
        std::env::var("LD_PRELOAD").ok().as_deref(),
        fs::read_to_string("/etc/ld.so.preload").ok().as_deref(),
    ));
    findings.extend(fs::read_to_string("/proc/self/status").ok().and_then(|status| confinement(&status)));
    findings.extend(fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok().map(|scope| ptrace(scope.trim())));
    findings
}

fn pages(bytes: usize) -> Finding {
    let text = format!("pages have {} KiB; validation watches whole pages", bytes >> 10);
    if KNOWN_PAGES.contains(&bytes) {
        Finding::ok("host", text)
    } else {
        Finding::note("host", format!("{text}; this size is unusual and untested"), None)
    }
}

fn other_preloads(variable: Option<&str>, file: Option<&str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(value) = variable.filter(|value| !value.trim().is_empty()) {
        let what = format!("LD_PRELOAD is {value}; Echo goes before it, and it sees what Echo lets through");
        findings.push(Finding::note("host", what, "unset it if it replaces malloc or CUDA calls"));
    }
    if let Some(text) = file.filter(|text| !text.trim().is_empty()) {
        let what = format!(
            "/etc/ld.so.preload loads {} into every program",
            text.split_whitespace().collect::<Vec<_>>().join(", ")
        );
        findings.push(Finding::note("host", what, None));
    }
    findings
}

/// What `/proc/self/status` says of tracers and filters.
fn confinement(status: &str) -> Option<Finding> {
    let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    if value("TracerPid:").is_some_and(|pid| pid != "0") {
        let what =
            "this process is being traced (a debugger or strace), and programs that it starts may be too".to_owned();
        let help = "a debugger sees the faults that validation causes: let it pass SIGSEGV on (`handle SIGSEGV nostop noprint`)";
        return Some(Finding::note("host", what, help));
    }
    if value("Seccomp:").is_some_and(|mode| mode == "1") {
        return Some(Finding::problem(
            "host",
            "strict seccomp is on: no program can be started".to_owned(),
            "run it outside",
        ));
    }
    None
}

fn ptrace(scope: &str) -> Finding {
    Finding::ok("host", format!("ptrace_scope is {scope}; Echo attaches to nothing, so any value will do"))
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn the_page_size_is_judged() {
        assert_eq!(pages(4096).level, Level::Ok);
        assert_eq!(pages(64 << 10).level, Level::Ok);
        assert_eq!(pages(2 << 20).level, Level::Note);
    }

    #[test]
    fn other_preloads_are_named() {
        assert!(other_preloads(None, None).is_empty());
        assert!(other_preloads(Some(" "), Some("\n")).is_empty());
        let found = other_preloads(Some("/lib/libasan.so"), Some("a.so\nb.so\n"));
        assert!(found[0].what.contains("libasan") && found[1].what.contains("a.so, b.so"), "{found:?}");
    }

    #[test]
    fn a_tracer_is_noticed() {
        assert!(confinement("TracerPid:\t0\nSeccomp:\t2\n").is_none());
        assert_eq!(confinement("TracerPid:\t77\n").unwrap().level, Level::Note);
        assert_eq!(confinement("TracerPid:\t0\nSeccomp:\t1\n").unwrap().level, Level::Problem);
    }
}
