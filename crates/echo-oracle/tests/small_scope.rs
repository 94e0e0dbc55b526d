//! All small programs, and random larger ones, in every interleaving: where the prover accepts, P' must do what P does.
//!
//! This is the bound of the usual suite. `cargo xtask oracle` runs more; docs/verification.md has the figures.

use echo_oracle::families::QUICK;
use echo_oracle::job::Job;

/// How many random programs.
const RANDOM: u64 = 60_000;

#[test]
fn what_is_merged_behaves_as_before_in_every_interleaving() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let job = Job { effort: QUICK, random: RANDOM, seed: 1, part: (1, 1), threads };
    let report = job.run(|_| {});
    println!("{report}");
    let total = report.total();
    assert_eq!(total.unsound, 0, "the prover is wrong:\n{report}");
    assert!(total.accepted > 50_000, "enough is merged for this to mean something");
    assert!(total.capped > 500_000, "enough interleavings are compared for this to mean something");
    assert!(total.declined > 10_000, "enough is declined for this to mean something");
    for (name, counts) in &report.families {
        assert!(counts.accepted > 0, "`{name}` merges something");
        let classes = counts.without_pair + counts.outside + counts.accepted + counts.declined;
        assert_eq!(counts.classes, classes, "`{name}` counts every program once");
    }
}
