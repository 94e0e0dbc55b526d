//! Order between streams, and the schedules.

mod support;
use std::collections::BTreeSet;
use support::Bench;

#[test]
fn streams() {
    let bench = Bench::new("streams");
    let cases = [
        "order",
        "events",
        "host_functions",
        "two_threads",
        "many_streams",
        "full_ring",
        "stream_properties",
        "interleaving",
        "copy_behind_finished_work",
    ];
    for case in cases {
        for schedule in ["eager", "lazy", "random:1", "random:2", "random:3"] {
            bench.run("streams", case, &[&format!("SCHEDULE={schedule}")]);
        }
    }
    lazy_shows_a_missing_wait(&bench);
    lazy_shows_the_tail_of_a_copy(&bench);
    random_is_a_matter_of_the_seed(&bench);
}

fn lazy_shows_a_missing_wait(bench: &Bench) {
    assert_eq!(bench.run("streams", "missing_wait", &["SCHEDULE=lazy"]), "without wait: 1\nwith wait: 2\n");
    assert_eq!(bench.run("streams", "missing_wait", &[]), "without wait: 2\nwith wait: 2\n");
}

fn lazy_shows_the_tail_of_a_copy(bench: &Bench) {
    assert_eq!(bench.run("streams", "staged_copy", &["SCHEDULE=lazy"]), "other stream saw 0\n");
    assert_eq!(bench.run("streams", "staged_copy", &[]), "other stream saw 1\n");
}

fn random_is_a_matter_of_the_seed(bench: &Bench) {
    let run = |seed: u32| bench.run("streams", "interleaving", &[&format!("SCHEDULE=random:{seed}")]);
    let orders: BTreeSet<String> = (1..=10).map(run).collect();
    assert!(orders.len() >= 8, "10 seeds give {} orders", orders.len());
    for seed in 1..=3 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}
