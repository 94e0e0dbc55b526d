//! The HTML report of a plan and a trace that are written by hand.

use std::fs::{self, File};
use std::path::Path;

use crate::common::{bare, plan, write_plan};
use echo_dr_format::SCHEMA;
use echo_dr_format::context::{Attributes, Context, DeviceIdentity, FileIdentity, Process};
use echo_dr_format::event::{Call, CopyKind, DeviceKind, Event, HostKind, Shape, Stream};
use echo_dr_format::finding::Access;
use echo_dr_format::measure::{Measurement, Spread};
use echo_dr_format::plan::{
    BackendName, CopySite, Direction, First, Ineligible, Pair, Plan, Rejection, State, Wait, Way,
};
use echo_dr_format::reason::Decline;
use echo_dr_format::site::{Hash64, Site};
use echo_dr_format::trace::{End, Frame, Frames, Header, Mode, Module, Record, write_record};
use scraper::{Html, Selector};

fn context() -> Context {
    let executable = FileIdentity { path: "/opt/app".into(), build_id: "12".into(), bytes: 1, hash: Hash64(1) };
    let device = DeviceIdentity {
        name: "Orin <nano>".into(),
        uuid: String::new(),
        compute: (8, 7),
        driver: 13000,
        runtime: Some(13000),
        attributes: Attributes { integrated: true, managed_memory: true, ..Attributes::default() },
    };
    let process = Process { executable, libraries: Vec::new(), host: "board".into(), arguments: vec!["--x".into()] };
    Context { process, device: Some(device) }
}

fn copies(upload: u64, download: u64) -> Vec<CopySite> {
    let copy = |site, way, wait| CopySite { site: Site(site), way, asynchronous: false, count: 6, took: 300, wait };
    vec![copy(upload, Way::Upload, Wait::Covered), copy(download, Way::Download, Wait::Device)]
}

fn pair(id: u32, state: State) -> Pair {
    let base = u64::from(id) * 100;
    let spread = |median| Spread { low: median - 10, median, high: median + 10 };
    Pair {
        id,
        host: Site(base + 1),
        device: Site(base + 2),
        bytes: 1 << 20,
        page_locked: false,
        direction: Direction::Both,
        first: First::Host,
        same_thread: true,
        waiting: 1,
        alive: 1,
        buffers: 1,
        copies: copies(base + 3, base + 4),
        exclusive: true,
        backend: BackendName::Managed,
        measured: vec![Measurement {
            backend: BackendName::Managed,
            trials: 3,
            without: spread(1_000_000),
            with: spread(600_000),
            gain_ppm: 400_000,
            gain_range_ppm: (390_000, 410_000),
        }],
        state,
    }
}

fn by_hand() -> Plan {
    let touched = Rejection { reason: Decline::HostTouched(Access::Write), site: Some(Site(999)) };
    let ineligible = Ineligible {
        host: None,
        device: Some(Site(2)),
        copy: Some(Site(3)),
        bytes: 64,
        count: 9,
        reasons: vec![Decline::ShapedCopy, Decline::SeveralStreams],
    };
    Plan {
        context: context(),
        threshold: 1000,
        loop_site: Some(Site(3)),
        pairs: vec![pair(0, State::Enabled), pair(1, State::Rejected(touched))],
        ineligible: vec![ineligible],
        notes: Vec::new(),
        together: None,
    }
}

/// Six iterations of 1 ms: an upload of 0.3 ms, a launch, a download of 0.3 ms.
fn records() -> Vec<Record> {
    let header = Header {
        schema: SCHEMA,
        mode: Mode::Profile,
        version: "0.1.0".into(),
        context: context(),
        threshold: 1000,
        page_size: 4096,
        pid: 1,
        forked_from: None,
    };
    let module = Module { id: 0, path: "/nonexistent/app".into(), build_id: "12".into() };
    let mut records = vec![Record::Header(header), Record::Module(module)];
    records.extend([1, 2, 3, 4, 999].map(|site| {
        Record::Frames(Frames { site: Site(site), frames: vec![Frame { module: Some(0), offset: 0x1000 + site }] })
    }));
    let (host, device, bytes) = (0x10_0000, 0x8000_0000, 1 << 20);
    let setup = |time, site, api: &'static str, call| {
        Record::Event(Event { time, took: 0, thread: 0, site: Site(site), api: api.into(), call })
    };
    let block = Call::HostAlloc { ptr: host, bytes, align: 0, kind: HostKind::Heap };
    records.push(setup(1, 1, "malloc", block));
    records.push(setup(2, 2, "cudaMalloc", Call::DeviceAlloc { ptr: device, bytes, kind: DeviceKind::Plain }));
    let copy = |kind| Call::Copy {
        dst: if kind == CopyKind::HostToDevice { device } else { host },
        src: if kind == CopyKind::HostToDevice { host } else { device },
        bytes,
        kind,
        stream: Stream::LEGACY,
        asynchronous: false,
        shape: Shape::Linear,
    };
    for round in 0..6 {
        let event = |time: u64, took, site, api: &'static str, call| {
            Record::Event(Event {
                time: 1000 + round * 1_000_000 + time,
                took,
                thread: 0,
                site: Site(site),
                api: api.into(),
                call,
            })
        };
        records.push(event(0, 300_000, 3, "cudaMemcpy", copy(CopyKind::HostToDevice)));
        records.push(event(310_000, 5_000, 0, "cudaLaunchKernel", Call::Launch { stream: Stream::LEGACY }));
        records.push(event(320_000, 300_000, 4, "cudaMemcpy", copy(CopyKind::DeviceToHost)));
    }
    records.push(Record::End(End { time: 6_000_000, lost: 0 }));
    records
}

fn write_trace(path: &Path) {
    let mut trace = File::create(path).unwrap();
    records().iter().for_each(|record| write_record(record, &mut trace).unwrap());
}

#[test]
fn a_trace_becomes_a_plan_of_candidates_and_a_table() {
    let folder = tempfile::tempdir().unwrap();
    write_trace(&folder.path().join("app.trace"));
    let report = bare(folder.path(), &["analyze", "app.trace", "--json"]).ends(0).json();
    let pair = &report["pairs"][0];
    assert_eq!(
        (&pair["state"], &pair["bytes"], &pair["direction"]),
        (&"candidate".into(), &(1 << 20).into(), &"both".into())
    );
    assert_eq!((&pair["host"]["text"], &pair["device"]["text"]), (&"app+0x1001".into(), &"app+0x1002".into()));
    assert_eq!(pair["copies_per_iteration_milli"], 2000);
    let made = plan(&folder.path().join("echo-dr.plan.json"));
    assert_eq!((made.pairs.len(), made.loop_site.is_some()), (1, true));
    let table = bare(folder.path(), &["analyze", "app.trace"]).ends(0).out;
    assert!(table.contains("app+0x1001") && table.contains("1 MiB") && table.contains("not validated"), "{table}");
    // Twelve copies a site are asked for, and there are six.
    let table = bare(folder.path(), &["analyze", "app.trace", "--k-min", "12"]).ends(1).out;
    assert!(table.contains("No pair") && table.contains("EDR301"), "{table}");
}

#[test]
fn the_report_is_one_valid_file_with_both_timelines_pairs_and_reasons() {
    let folder = tempfile::tempdir().unwrap();
    write_plan(&by_hand(), &folder.path().join("plan.json"));
    write_trace(&folder.path().join("app.trace"));

    let run = bare(folder.path(), &["report", "plan.json", "app.trace", "-o", "app.html"]).ends(0);
    assert_eq!(run.out, "app.html\n");
    let text = fs::read_to_string(folder.path().join("app.html")).unwrap();
    let page = Html::parse_document(&text);
    assert!(page.errors.is_empty(), "{:?}\n{text}", page.errors);
    for forbidden in ["http:", "https:", "src=", "href=", "url(", "<script"] {
        assert!(!text.contains(forbidden), "{forbidden}");
    }
    let count = |selector: &str| page.select(&Selector::parse(selector).unwrap()).count();
    assert_eq!(count("svg"), 2);
    // Before: two copies and a launch; after: the launch, and the wait of the download.
    assert_eq!((count("svg rect.copy"), count("svg rect.launch"), count("svg rect.wait")), (2, 2, 1));
    assert!(text.contains("prefers-color-scheme: dark") && text.contains("color-scheme: light dark"));

    let shown: String = page.root_element().text().collect::<Vec<_>>().join(" ");
    for part in [
        "/opt/app --x",
        "1 pair of a host and a device buffer is merged",
        "Before: 1.00 ms",
        "After: 400.0 µs",
        "60 %",
        "1.67×",
        "app+0x1001",
        "40.0 % (39.0 to 41.0)",
        "EDR340 host-touched",
        "at app+0x13e7",
        "2D, 3D or array",
        "Orin <nano>",
        "board",
    ] {
        assert!(shown.contains(part), "no {part:?} in\n{shown}");
    }
}

#[test]
fn without_a_trace_the_plan_alone_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    write_plan(&by_hand(), &folder.path().join("plan.json"));
    let run = bare(folder.path(), &["report", "plan.json", "--json"]).ends(0);
    assert_eq!(run.json()["pairs"][0]["state"], "enabled");
    let text = fs::read_to_string(folder.path().join("echo-dr.html")).unwrap();
    assert!(text.contains("no loop") && text.contains("site 0000000000000001"), "{text}");
}
