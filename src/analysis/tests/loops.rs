//! Control flow that no structured program has: cycles with two entries. Nothing in the proof looks for loops, only for paths and fixpoints
//! over the whole graph, so what holds of a natural loop must hold of these.

use super::super::program::{Allocator, NodeId, ObjectId, Space, WaitScope};
use super::super::testing::{Build, SIZE, reads, writes};
use super::super::verdict::FreeAction;

const NONE: [&str; 0] = [];

/// Entered by `left` or by `right`, control goes around between the two until it leaves from the right.
/// `… split -> left -> right -> left …; split -> right; right -> behind`
fn irreducible(b: &mut Build, left: impl FnOnce(&mut Build), right: impl FnOnce(&mut Build)) {
    let split = b.skip();
    let first = b.skip();
    left(b);
    let second = b.skip();
    right(b);
    let last = b.skip();
    b.edge(split, second);
    b.edge(last, first);
}

fn pair(b: &mut Build) -> (ObjectId, ObjectId) {
    (b.malloc("h"), b.cuda_malloc("d"))
}

#[test]
fn a_value_lives_around_a_cycle_with_two_entries() {
    // right: the kernel reads d; left: the host writes h. From left control gets to the kernel again.
    for (upload_again, expected) in [(false, ["S1-device-value-overwritten"].as_slice()), (true, &[])] {
        let mut b = Build::main();
        let (h, d) = pair(&mut b);
        b.host(&[writes(h)]);
        b.upload(d, h);
        irreducible(
            &mut b,
            |b| {
                b.host(&[writes(h)]);
                if upload_again {
                    b.upload(d, h);
                }
            },
            |b| {
                b.launch("kernel", &[reads(d)]);
                b.wait(WaitScope::Device);
            },
        );
        assert_eq!(b.codes(), expected);
    }
}

#[test]
fn work_is_pending_around_a_cycle_with_two_entries() {
    // The wait is on the way that enters by left only; the kernel of the right is pending at the host's write of the left.
    for (wait_on_the_way_back, expected) in
        [(false, ["S2-kernel-pending", "S5-host-access-in-flight"].as_slice()), (true, &[])]
    {
        let mut b = Build::main();
        let (h, d) = pair(&mut b);
        b.host(&[writes(h)]);
        b.upload(d, h);
        b.wait(WaitScope::Device);
        irreducible(
            &mut b,
            |b| {
                b.host(&[writes(h)]);
                b.upload(d, h);
            },
            |b| {
                b.launch("kernel", &[reads(d)]);
                if wait_on_the_way_back {
                    b.wait(WaitScope::Device);
                }
            },
        );
        assert_eq!(b.codes(), expected);
    }
}

#[test]
fn a_wait_that_one_entry_passes_by_is_kept_where_the_copy_was() {
    let mut b = Build::main();
    let (h, d) = pair(&mut b);
    b.host(&[writes(h)]);
    b.upload(d, h);
    let mut down = None;
    irreducible(
        &mut b,
        |b| {
            b.launch("kernel", &[reads(d), writes(d)]);
        },
        |b| down = Some(b.download(h, d)),
    );
    b.host(&[reads(h)]);
    let plan = b.plan();
    let kept: Vec<NodeId> = plan
        .copies()
        .iter()
        .filter(|(_, action)| matches!(action, super::super::verdict::SyncAction::Wait(_)))
        .map(|(node, _)| *node)
        .collect();
    assert_eq!(kept, [down.expect("built")]);
}

#[test]
fn an_allocation_in_a_cycle_with_two_entries_dominates_what_only_it_leads_to() {
    // left: cudaMalloc(&d), and all that uses d; right is entered without it.
    let build = |use_on_the_right: bool| {
        let mut b = Build::main();
        let h = b.malloc("h");
        b.host(&[writes(h)]);
        let d = b.buffer("d", Space::Device, Allocator::CudaMalloc, Some(SIZE.into()));
        let free = |b: &mut Build, here: bool| {
            if here {
                b.cuda_free(d);
            }
        };
        irreducible(
            &mut b,
            |b| {
                b.alloc(d);
                b.upload(d, h);
                b.launch("kernel", &[reads(d)]);
                free(b, !use_on_the_right);
            },
            |b| free(b, use_on_the_right),
        );
        b.host(&[reads(h)]);
        b.free(h);
        b
    };
    assert_eq!(build(false).codes(), NONE);
    assert_eq!(build(true).codes(), ["S4-used-without-allocation"]);
}

#[test]
fn the_last_free_is_counted_in_a_cycle_with_two_entries() {
    // left frees d, right does not; behind the cycle h is freed.
    let mut b = Build::main();
    let (h, d) = pair(&mut b);
    b.host(&[writes(h)]);
    b.upload(d, h);
    let split = b.skip();
    let left = b.skip();
    b.cuda_free_unless_null(d);
    let right = b.skip();
    b.edge(split, right);
    b.edge(right, left);
    let last = b.free(h);
    let plan = b.plan();
    assert!(plan.counted());
    assert!(plan.frees().contains(&(last, FreeAction::Count { wait: None })));
}
