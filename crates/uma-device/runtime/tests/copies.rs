//! Copies, memsets and symbols of every kind round-trip random data in every mode.

mod support;
use support::Bench;

#[test]
fn copies() {
    let bench = Bench::new("copies");
    let cases = [
        "every_pair",
        "two_dimensions",
        "three_dimensions",
        "symbols",
        "memsets",
        "pageable_async",
        "bad_arguments",
        "managed_sync",
    ];
    for case in cases {
        for schedule in ["SCHEDULE=eager", "SCHEDULE=lazy", "SCHEDULE=random:1", "SCHEDULE=random:2"] {
            bench.run("copies", case, &[schedule]);
        }
        bench.run("copies", case, &["ACCESS=concurrent"]);
    }
    bench.run("copies", "two_dimensions", &["LINK=discrete"]);
    bench.run("copies", "symbols", &["LINK=discrete", "SCHEDULE=lazy"]);
}
