//! One test for each way to say no, made from a passing case by breaking one thing. A variant without one fails the last test.

use std::collections::BTreeSet;

use super::super::program::{
    Access, AccessKind, Allocator, BlemishKind, Copy, Event, ObjectId, Place, Range, Space, Stream, UseKind, WaitScope,
};
use super::super::testing::{Build, LEGACY, SIZE, concurrent, overwrites, part, plain, reads, writes};
use super::super::{ALL_DECLINES, Options};

/// The passing case: Figure 1 in `main`, with a hook at the interesting places.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Start,
    BetweenAllocs,
    Filled,
    Uploaded,
    Launched,
    Downloaded,
    Freed,
    End,
}

fn figure_1(change: impl Fn(&mut Build, At, ObjectId, ObjectId)) -> Build {
    let mut b = Build::main();
    let h = b.buffer("h", Space::Host, Allocator::Malloc, Some(SIZE.into()));
    let d = b.buffer("d", Space::Device, Allocator::CudaMalloc, Some(SIZE.into()));
    change(&mut b, At::Start, h, d);
    b.alloc(h);
    change(&mut b, At::BetweenAllocs, h, d);
    b.alloc(d);
    b.host(&[writes(h)]);
    change(&mut b, At::Filled, h, d);
    b.upload(d, h);
    change(&mut b, At::Uploaded, h, d);
    b.launch("kernel", &[reads(d), writes(d)]);
    change(&mut b, At::Launched, h, d);
    b.download(h, d);
    change(&mut b, At::Downloaded, h, d);
    b.host(&[reads(h)]);
    b.free(h);
    change(&mut b, At::Freed, h, d);
    b.cuda_free(d);
    change(&mut b, At::End, h, d);
    b
}

/// Each case: its name, the codes that must be there (all of them, no others), and the codes that were.
type Case = (&'static str, &'static [&'static str], Vec<&'static str>);

fn with(at: At, change: impl Fn(&mut Build, ObjectId, ObjectId)) -> Vec<&'static str> {
    figure_1(|b, here, h, d| {
        if here == at {
            change(b, h, d);
        }
    })
    .codes()
}

fn used(kind: UseKind) -> Vec<&'static str> {
    with(At::Uploaded, |b, h, _| b.pointer_use(h, kind.clone()))
}

fn blemished(kind: BlemishKind) -> Vec<&'static str> {
    with(At::Uploaded, |b, _, d| b.blemish(kind.clone(), &[d]))
}

fn candidate_cases() -> Vec<Case> {
    let atom_sized = || {
        let mut b = Build::main();
        let h = b.malloc("h");
        let changed = b.skip();
        let d = b.cuda_malloc("d");
        let (n, m) = (b.atom(None), b.atom(Some(changed)));
        b.object(h).size = Some(n);
        b.object(d).size = Some(m);
        b.upload(d, h);
        b.codes()
    };
    let reassigned = || {
        // while (…) { n = read(); … } with the allocations on both sides of the assignment
        let mut b = Build::main();
        let h = b.buffer("h", Space::Host, Allocator::Malloc, None);
        let d = b.buffer("d", Space::Device, Allocator::CudaMalloc, None);
        b.alloc(h);
        let assigned = b.skip();
        b.alloc(d);
        let n = b.atom(Some(assigned));
        b.object(h).size = Some(n.clone());
        b.object(d).size = Some(n);
        b.upload(d, h);
        b.codes()
    };
    let rivals = || {
        let mut b = Build::main();
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        let e = b.cuda_malloc("e");
        b.upload(d, h);
        b.upload(e, h);
        let verdicts = b.verdicts(&Options::default());
        super::super::testing::codes(&verdicts[1])
    };
    vec![
        ("atoms", &["CAND-sizes-differ"], atom_sized()),
        ("reassigned", &["CAND-sizes-differ"], reassigned()),
        ("one size", &["CAND-sizes-differ"], with(At::Start, |b, h, _| b.object(h).size = Some((SIZE + 1).into()))),
        ("no size", &["CAND-size-unknown"], with(At::Start, |b, h, _| b.object(h).size = None)),
        ("small", &["CAND-below-threshold"], {
            with(At::Start, |b, h, d| {
                b.object(h).size = Some(1024.into());
                b.object(d).size = Some(1024.into());
            })
        }),
        ("half copy", &["CAND-no-whole-copy"], {
            let mut b = Build::main();
            let h = b.malloc("h");
            let d = b.cuda_malloc("d");
            b.copy(half(d, h, 0, 0));
            b.codes()
        }),
        ("rivals", &["CAND-better-partner"], rivals()),
    ]
}

/// Copies half of the buffers, from one offset to another.
fn half(dst: ObjectId, src: ObjectId, to: u64, from: u64) -> Copy {
    Copy {
        dst: Place { object: Some(dst), range: part(to, SIZE / 2) },
        src: Place { object: Some(src), range: part(from, SIZE / 2) },
        waits_before: true,
        waits_after: true,
        ..plain(dst, src, LEGACY)
    }
}

fn value_cases() -> Vec<Case> {
    vec![
        (
            "write behind the upload",
            &["S1-device-value-overwritten"],
            with(At::Uploaded, |b, h, _| {
                b.host(&[writes(h)]);
            }),
        ),
        ("half of the result comes back", &["S1-host-value-overwritten"], {
            let mut b = Build::main();
            let h = b.malloc("h");
            let d = b.cuda_malloc("d");
            b.host(&[writes(h)]);
            b.upload(d, h);
            b.launch("kernel", &[reads(d), writes(d)]);
            b.copy(half(h, d, 0, 0));
            b.host(&[reads(h)]);
            b.codes()
        }),
        ("kernel reads the pinned input", &["S1-host-value-overwritten", "S1-reads-partner", "S3-overlap-assumed"], {
            let mut b = Build::main();
            let h = b.pinned("h");
            let d = b.cuda_malloc("d");
            b.host(&[writes(h)]);
            b.copy(Copy { waits_before: true, waits_after: true, ..plain(d, h, LEGACY) });
            b.launch("kernel", &[reads(h), writes(d)]);
            b.wait(WaitScope::Device);
            b.host(&[reads(h)]);
            b.codes()
        }),
    ]
}

fn order_cases() -> Vec<Case> {
    vec![
        ("host read beside the kernel", &["S2-kernel-pending", "S5-host-access-in-flight"], {
            let mut b = Build::main();
            let h = b.malloc("h");
            let d = b.cuda_malloc("d");
            b.launch("kernel", &[overwrites(d)]);
            b.host(&[overwrites(h)]);
            b.download(h, d);
            b.codes()
        }),
        ("host write beside a copy that stays", &["S2-copy-pending", "S5-host-access-in-flight"], {
            let mut b = Build::main();
            let other = b.buffer("other", Space::Device, Allocator::Foreign, Some(SIZE.into()));
            let h = b.malloc("h");
            let d = b.cuda_malloc("d");
            b.host(&[writes(h)]);
            // In P the pageable source is consumed when the call returns.
            b.upload_async(other, h, LEGACY);
            b.host(&[writes(h)]);
            b.upload(d, h);
            b.launch("kernel", &[reads(d)]);
            b.codes()
        }),
        ("kernel beside a copy that stays", &["S2-unordered-streams"], {
            let mut b = Build::main();
            let other = b.buffer("other", Space::Device, Allocator::Foreign, Some(SIZE.into()));
            let (one, two) = (b.stream(Stream::NonBlocking), b.stream(Stream::NonBlocking));
            let h = b.malloc("h");
            let d = b.cuda_malloc("d");
            b.host(&[writes(h)]);
            b.upload_async(other, h, one);
            b.launch_on(two, "kernel", &[overwrites(d)]);
            b.wait(WaitScope::Device);
            b.download(h, d);
            b.codes()
        }),
        ("an async copy as barrier", &["S2-stream-order-lost"], {
            let mut b = Build::main();
            let other = b.buffer("other", Space::Device, Allocator::Foreign, Some(SIZE.into()));
            let (one, two) = (b.stream(Stream::Blocking), b.stream(Stream::Blocking));
            let h = b.malloc("h");
            let d = b.cuda_malloc("d");
            b.host(&[writes(h)]);
            b.launch_on(one, "first", &[writes(other)]);
            b.upload_async(d, h, LEGACY);
            b.launch_on(two, "second", &[reads(other), reads(d)]);
            b.codes()
        }),
        ("host write beside the kernel of an input", &["S2-kernel-pending", "S5-host-access-in-flight"], {
            let mut b = Build::main();
            let h = b.malloc("h");
            let d = b.cuda_malloc("d");
            b.upload(d, h);
            b.launch("kernel", &[reads(d)]);
            b.host(&[writes(h)]);
            b.codes()
        }),
    ]
}

fn pointer_cases() -> Vec<Case> {
    let named = || "f".to_owned();
    vec![
        ("compared", &["S3-compared"], used(UseKind::Compared)),
        ("stored", &["S3-escapes-to-memory"], used(UseKind::Stored)),
        ("cast", &["S3-cast-to-integer"], used(UseKind::CastToInteger)),
        ("returned", &["S3-returned"], used(UseKind::Returned)),
        ("passed", &["S3-passed-to-unknown"], used(UseKind::PassedTo(named()))),
        ("observed", &["S3-observed"], used(UseKind::Observed(named()))),
        ("registered", &["S3-registered"], used(UseKind::Registered(named()))),
        (
            "mixed",
            &["S3-mixed-with-another"],
            with(At::Uploaded, |b, h, _| {
                let other = b.buffer("other", Space::Host, Allocator::Foreign, None);
                b.pointer_use(h, UseKind::MixedWith(other));
            }),
        ),
        (
            "mixed, seen from the other",
            &["S3-mixed-with-another"],
            with(At::Uploaded, |b, h, _| {
                let other = b.buffer("other", Space::Host, Allocator::Foreign, None);
                b.pointer_use(other, UseKind::MixedWith(h));
            }),
        ),
        ("volatile", &["S3-volatile-or-atomic"], used(UseKind::VolatileOrAtomic)),
        ("asm", &["S3-inline-asm"], used(UseKind::InlineAsm)),
        ("realloc", &["S3-reallocated"], used(UseKind::Reallocated)),
        ("other offset", &["S1-host-value-overwritten", "S1-reads-partner", "S3-offset-copy"], {
            with(At::Uploaded, |b, h, d| {
                b.copy(half(d, h, 0, SIZE / 2));
                b.host(&[reads(h)]);
            })
        }),
        (
            "unknown offset",
            &["S1-reads-partner", "S3-offset-copy"],
            with(At::Uploaded, |b, h, d| {
                let mut copy = half(d, h, 0, 0);
                copy.src.range = Range::Unknown;
                b.copy(copy);
            }),
        ),
        ("alignment", &["S3-alignment"], with(At::Start, |b, h, _| b.object(h).alignment = 4096)),
        ("host touches device memory", &["S3-host-touches-device-memory", "S5-host-access-in-flight"], {
            with(At::Uploaded, |b, _, d| {
                let other = b.buffer("other", Space::Device, Allocator::Foreign, None);
                b.launch("kernel", &[reads(other)]);
                b.host(&[reads(d)]);
            })
        }),
        ("kernel touches pageable memory", &["S3-device-touches-pageable-memory"], {
            with(At::Uploaded, |b, h, _| {
                b.launch("kernel", &[reads(h)]);
            })
        }),
        ("captured across threads", &["S3-captured-across-threads"], {
            let mut b = figure_1(|b, at, _, d| {
                if at == At::Uploaded {
                    b.enqueue(LEGACY, "keeps", &[reads(d)], &[d], false);
                }
            });
            b.module().starts_threads = true;
            b.codes_with(&concurrent())
        }),
    ]
}

fn lifetime_cases() -> Vec<Case> {
    let free_async = |stream| {
        figure_1(|b, at, _, d| {
            if at == At::Downloaded {
                b.event(Event::Free { object: d, waits: None, stream: Some(stream), may_be_null: false });
            }
        })
        .codes()
    };
    vec![
        (
            "two allocation sites",
            &["S4-allocation-sites"],
            with(At::BetweenAllocs, |b, h, _| {
                b.alloc(h);
            }),
        ),
        ("no order", &["S4-allocations-unordered", "S4-used-without-allocation"], {
            let mut b = Build::main();
            let h = b.buffer("h", Space::Host, Allocator::Malloc, Some(SIZE.into()));
            let d = b.buffer("d", Space::Device, Allocator::CudaMalloc, Some(SIZE.into()));
            b.perhaps(|b| {
                b.alloc(h);
            });
            b.perhaps(|b| {
                b.alloc(d);
            });
            b.upload(d, h);
            b.codes()
        }),
        ("an order only where allocations succeed", &["S4-allocations-unordered"], {
            let mut b = Build::main();
            let h = b.malloc("h");
            let d = b.cuda_malloc("d");
            b.unordered(h, d);
            b.upload(d, h);
            b.codes()
        }),
        ("aligned, and the other perhaps never", &["S4-allocations-not-paired"], {
            let mut b = Build::main();
            let h = b.malloc("h");
            b.object(h).origin = Allocator::AlignedAlloc;
            b.perhaps(|b| {
                let d = b.cuda_malloc("d");
                b.upload(d, h);
                b.cuda_free(d);
            });
            b.free(h);
            b.codes()
        }),
        ("freed before the other begins", &["S4-allocations-not-paired"], {
            let mut b = Build::main();
            let h = b.malloc("h");
            b.free(h);
            let d = b.cuda_malloc("d");
            b.upload(d, h);
            b.codes()
        }),
        ("used without allocation", &["S4-used-without-allocation"], {
            let mut b = Build::main();
            let h = b.malloc("h");
            let d = b.buffer("d", Space::Device, Allocator::CudaMalloc, Some(SIZE.into()));
            b.perhaps(|b| {
                b.alloc(d);
            });
            b.upload(d, h);
            b.codes()
        }),
        ("allocated again", &["S4-allocated-again"], {
            let mut b = Build::main();
            b.repeat(|b| {
                let h = b.malloc("h");
                let d = b.cuda_malloc("d");
                b.upload(d, h);
                b.cuda_free(d);
            });
            b.codes()
        }),
        ("stream-ordered free", &["S4-stream-ordered-free"], free_async(LEGACY)),
        ("used after reset", &["S4-used-after-reset"], blemished(BlemishKind::DeviceReset)),
        ("may be reset", &["S4-may-be-reset", "S5-host-access-in-flight"], {
            let mut b = Build::main();
            let h = b.malloc("h");
            let d = b.cuda_malloc("d");
            b.upload(d, h);
            b.opaque("unknown");
            b.host(&[reads(h)]);
            b.codes()
        }),
        ("reset between the allocations", &["S4-may-be-reset"], {
            let mut b = Build::main();
            let h = b.malloc("h");
            b.opaque("unknown");
            let d = b.cuda_malloc("d");
            b.upload(d, h);
            b.codes()
        }),
    ]
}

fn machine_cases() -> Vec<Case> {
    let threads = || {
        let mut b = figure_1(|_, _, _, _| {});
        b.module().starts_threads = true;
        b.codes()
    };
    let devices = || {
        let mut b = figure_1(|_, _, _, _| {});
        b.module().selects_devices = true;
        b.codes()
    };
    vec![
        (
            "unrelated work",
            &["S5-host-access-in-flight"],
            with(At::BetweenAllocs, |b, _, _| {
                let other = b.buffer("other", Space::Device, Allocator::Foreign, None);
                b.launch("unrelated", &[writes(other)]);
            }),
        ),
        ("unrelated work before", &["S5-allocated-in-flight", "S5-host-access-in-flight"], {
            with(At::Start, |b, _, _| {
                let other = b.buffer("other", Space::Device, Allocator::Foreign, None);
                b.launch("unrelated", &[writes(other)]);
            })
        }),
        ("threads", &["S5-threads"], threads()),
        ("devices", &["C-several-devices"], devices()),
        ("slot", &["C-ambiguous-pointer"], blemished(BlemishKind::AmbiguousSlot)),
        ("direction", &["C-copy-direction"], blemished(BlemishKind::CopyDirection)),
        ("call", &["C-unmodelled-cuda-call"], blemished(BlemishKind::UnmodelledCudaCall("cudaFoo".to_owned()))),
        ("setjmp", &["C-non-local-jump"], blemished(BlemishKind::NonLocalJump)),
        ("capture", &["GRAPH-capture"], blemished(BlemishKind::StreamCapture)),
        ("optnone", &["C-not-optimised"], blemished(BlemishKind::NotOptimised)),
        ("fork", &["C-fork"], blemished(BlemishKind::Fork)),
        ("limit", &["C-limit"], blemished(BlemishKind::Limit("nodes"))),
        ("blemish of all", &["GRAPH-capture"], with(At::End, |b, _, _| b.blemish(BlemishKind::StreamCapture, &[]))),
        (
            "unresolved copy",
            &["C-unresolved-copy", "S3-escapes-to-memory"],
            with(At::Launched, |b, h, d| {
                b.pointer_use(h, UseKind::Stored);
                let mut copy = plain(h, d, LEGACY);
                copy.dst.object = None;
                copy.waits_after = true;
                b.copy(copy);
            }),
        ),
    ]
}

fn all_cases() -> Vec<Case> {
    [candidate_cases(), value_cases(), order_cases(), pointer_cases(), lifetime_cases(), machine_cases()].concat()
}

#[test]
fn the_unbroken_case_passes() {
    assert_eq!(figure_1(|_, _, _, _| {}).codes(), [""; 0]);
}

#[test]
fn each_broken_thing_declines_for_just_its_reason() {
    let wrong: Vec<String> = all_cases()
        .into_iter()
        .filter(|(_, expected, found)| found != expected)
        .map(|(name, expected, found)| format!("case {name}: expected {expected:?}, found {found:?}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_decline_has_a_case() {
    let covered: BTreeSet<&str> = all_cases().into_iter().flat_map(|(_, _, found)| found).collect();
    // The pass says that of a device buffer without a partner; tests/splice.rs has its cases.
    let elsewhere = ["S4-different-functions"];
    for (number, code) in ALL_DECLINES.iter().filter(|(_, code)| !elsewhere.contains(code)) {
        assert!(covered.contains(code), "no case for {number} {code}");
    }
}

#[test]
fn numbers_and_codes_are_unique() {
    let numbers: BTreeSet<&str> = ALL_DECLINES.iter().map(|(number, _)| *number).collect();
    let codes: BTreeSet<&str> = ALL_DECLINES.iter().map(|(_, code)| *code).collect();
    assert_eq!(numbers.len(), ALL_DECLINES.len());
    assert_eq!(codes.len(), ALL_DECLINES.len());
}

#[test]
fn a_blemish_of_other_objects_and_a_reset_at_the_end_are_harmless() {
    let codes = with(At::End, |b, _, _| {
        let other = b.buffer("other", Space::Host, Allocator::Foreign, None);
        b.blemish(BlemishKind::AmbiguousSlot, &[other]);
        b.skip();
        b.blemish(BlemishKind::DeviceReset, &[]);
    });
    assert_eq!(codes, [""; 0]);
}

#[test]
fn a_may_write_is_no_must_write() {
    let must = Access { must: false, ..overwrites(ObjectId(0)) };
    assert_eq!(must.kind, AccessKind::Write);
    let codes = with(At::Filled, |b, h, d| {
        b.upload(d, h);
        b.host(&[Access { object: h, ..must.clone() }]);
        b.launch("kernel", &[reads(d)]);
    });
    assert_eq!(codes, ["S1-device-value-overwritten"]);
}

#[test]
fn conditions_about_paths_show_one() {
    // S1, S2, S4 and S5 are about what comes after what; a reason without the way there would leave the reader to search.
    let mut b = Build::function();
    let other = b.buffer("other", Space::Device, Allocator::Foreign, Some(SIZE.into()));
    let h = b.malloc("h");
    b.host(&[writes(h)]);
    let d = b.cuda_malloc("d");
    b.upload(d, h);
    b.launch("kernel", &[reads(d), writes(d)]);
    b.launch("unrelated", &[writes(other)]);
    b.host(&[reads(h), writes(h)]);
    b.launch("kernel", &[reads(d)]);
    b.repeat(|b| {
        b.perhaps(|b| {
            b.event(Event::Free { object: d, waits: None, stream: Some(LEGACY), may_be_null: false });
        });
        b.opaque("unknown");
        b.free(h);
    });
    b.host(&[reads(h)]);
    let verdicts = b.verdicts(&Options::default());
    let super::super::verdict::Decision::Decline(reasons) = &verdicts[0].decision else { panic!("accepted") };
    let about_paths = |code: &str| ["S1", "S2", "S4", "S5"].iter().any(|condition| code.starts_with(condition));
    for reason in reasons.iter().filter(|reason| about_paths(reason.decline.code())) {
        assert!(!reason.witness.is_empty(), "{reason:?}");
    }
    let found: BTreeSet<&str> = reasons.iter().map(|reason| &reason.decline.code()[..2]).collect();
    assert!(["S1", "S2", "S4", "S5"].iter().all(|condition| found.contains(condition)), "{found:?}");
}
