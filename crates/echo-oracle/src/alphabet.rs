//! Which steps programs are made of.

use crate::case::{ALL, Buffer, D, D2, E, G, H, H2, Mask, Step, Touch};

/// Host code that reads.
#[must_use]
pub fn host_reads(buffer: Buffer, bytes: Mask) -> Step {
    Step::Host([Some(Touch::new(buffer, false, bytes)), None])
}

/// Host code that writes.
#[must_use]
pub fn host_writes(buffer: Buffer, bytes: Mask) -> Step {
    Step::Host([Some(Touch::new(buffer, true, bytes)), None])
}

/// A kernel.
#[must_use]
pub fn launch(stream: u8, first: Touch, second: Option<Touch>) -> Step {
    Step::Launch { stream, touches: [Some(first), second], keeps: false, uses_kept: false }
}

/// A copy call.
#[must_use]
pub fn copy(dst: Buffer, src: Buffer, bytes: Mask, stream: u8, sync: bool) -> Step {
    Step::Copy { dst, src, bytes, stream, sync }
}

fn read(buffer: Buffer) -> Touch {
    Touch::new(buffer, false, ALL)
}

fn write(buffer: Buffer) -> Touch {
    Touch::new(buffer, true, ALL)
}

/// Each step alone.
#[must_use]
pub fn single(steps: Vec<Step>) -> Vec<Vec<Step>> {
    steps.into_iter().map(|step| vec![step]).collect()
}

/// Values alone: all GPU work is waited for at once, so that the length goes into what is written and read.
#[must_use]
pub fn values(stream: u8) -> Vec<Vec<Step>> {
    let waited = |step| vec![step, Step::WaitDevice];
    vec![
        vec![host_reads(H, ALL)],
        vec![host_writes(H, ALL)],
        vec![host_writes(H, 0b01)],
        vec![copy(D, H, ALL, stream, true)],
        vec![copy(H, D, ALL, stream, true)],
        vec![copy(H, D, 0b01, stream, true)],
        waited(launch(stream, read(D), None)),
        waited(launch(stream, write(D), None)),
        waited(launch(stream, Touch::new(D, true, 0b01), None)),
        waited(launch(stream, read(D), Some(write(D)))),
    ]
}

/// The fewest steps that make all of S1 and S2: for the longest programs.
#[must_use]
pub fn smallest(stream: u8) -> Vec<Step> {
    vec![
        host_reads(H, ALL),
        host_writes(H, ALL),
        launch(stream, read(D), None),
        launch(stream, write(D), None),
        copy(D, H, ALL, stream, true),
        copy(H, D, ALL, stream, true),
        copy(D, H, ALL, stream, false),
        Step::WaitDevice,
    ]
}

/// One stream, one pair, one more device buffer, bytes.
#[must_use]
pub fn core(stream: u8) -> Vec<Step> {
    let mut steps = smallest(stream);
    steps.extend([
        host_writes(H, 0b01),
        host_reads(H, 0b10),
        launch(stream, read(D), Some(write(D))),
        launch(stream, Touch::new(D, true, 0b01), None),
        launch(stream, read(D), Some(write(E))),
        copy(H, D, ALL, stream, false),
        copy(H, D, 0b01, stream, true),
        Step::Free(H),
        Step::Free(D),
    ]);
    steps
}

/// Everything that one stream can do.
#[must_use]
pub fn full(stream: u8) -> Vec<Step> {
    let mut steps = core(stream);
    steps.extend([
        Step::Host([Some(write(H).perhaps()), None]),
        Step::Host([Some(Touch { may: true, ..write(H) }), None]),
        Step::Host([Some(read(H)), Some(write(H))]),
        host_writes(H, 0b10),
        host_reads(H, 0b01),
        host_writes(G, ALL),
        host_reads(G, ALL),
        launch(stream, write(D).perhaps(), None),
        launch(stream, Touch { may: true, ..write(D) }, None),
        launch(stream, read(E), Some(write(D))),
        launch(stream, write(E), None),
        launch(stream, Touch::new(D, true, 0b10), None),
        Step::Memset { stream, buffer: D, bytes: ALL },
        copy(D, H, 0b01, stream, true),
        copy(D, H, 0b10, stream, true),
        copy(H, D, 0b10, stream, true),
        copy(E, H, ALL, stream, true),
        copy(E, H, ALL, stream, false),
        copy(H, E, ALL, stream, true),
        copy(H, E, ALL, stream, false),
        copy(G, D, ALL, stream, true),
        copy(G, D, ALL, stream, false),
        copy(D, G, ALL, stream, true),
        copy(D, G, ALL, stream, false),
        copy(E, D, ALL, stream, true),
        copy(D, E, ALL, stream, false),
        copy(G, E, ALL, stream, true),
        Step::Shifted { dst: D, src: H, from: 0 },
        Step::Shifted { dst: D, src: H, from: 1 },
        Step::WaitStream(stream),
    ]);
    steps
}

/// What only page-locked memory allows: kernels that touch the host buffer.
#[must_use]
pub fn mapped(stream: u8) -> Vec<Step> {
    let mut steps = core(stream);
    steps.extend([
        launch(stream, read(H), None),
        launch(stream, write(H), None),
        launch(stream, read(H), Some(write(D))),
        launch(stream, read(D), Some(read(H))),
    ]);
    steps
}

/// Work on two streams, and what orders them.
#[must_use]
pub fn streams(one: u8, two: u8) -> Vec<Step> {
    let mut steps = vec![host_reads(H, ALL), host_writes(H, ALL), Step::WaitDevice, Step::WaitEvent(0)];
    for stream in [one, two] {
        steps.extend([
            launch(stream, read(D), None),
            launch(stream, write(D), None),
            launch(stream, read(E), Some(write(E))),
            copy(D, H, ALL, stream, true),
            copy(D, H, ALL, stream, false),
            copy(H, D, ALL, stream, true),
            Step::WaitStream(stream),
            Step::Record(0, stream),
            Step::StreamWait(stream, 0),
        ]);
    }
    steps
}

/// Two pairs that may be merged together, and a host buffer that two device buffers want.
#[must_use]
pub fn pairs(stream: u8) -> Vec<Step> {
    vec![
        host_reads(H, ALL),
        host_writes(H, ALL),
        host_reads(H2, ALL),
        host_writes(H2, ALL),
        launch(stream, read(D), Some(write(D2))),
        launch(stream, write(D), None),
        launch(stream, read(D2), None),
        copy(D, H, ALL, stream, true),
        copy(D, H, ALL, stream, false),
        copy(H, D, ALL, stream, true),
        copy(D2, H2, ALL, stream, true),
        copy(H2, D2, ALL, stream, true),
        copy(H2, D2, ALL, stream, false),
        copy(D2, H, ALL, stream, true),
        copy(D2, D, ALL, stream, false),
        copy(H2, D, ALL, stream, true),
        Step::WaitDevice,
    ]
}

/// Allocations and frees among uses: for code with regions.
#[must_use]
pub fn lives(stream: u8) -> Vec<Step> {
    vec![
        Step::Alloc(H),
        Step::Alloc(D),
        Step::Free(H),
        Step::Free(D),
        Step::FreeUnlessNull(H),
        Step::FreeUnlessNull(D),
        host_writes(H, ALL),
        host_reads(H, ALL),
        launch(stream, write(D), None),
        launch(stream, read(D), None),
        copy(D, H, ALL, stream, true),
        copy(H, D, ALL, stream, true),
    ]
}

/// Kernels that keep a pointer, calls that nobody modelled, resets.
#[must_use]
pub fn strangers(stream: u8) -> Vec<Step> {
    let touches = [Some(read(D)), None];
    vec![
        host_reads(H, ALL),
        host_writes(H, ALL),
        launch(stream, read(D), None),
        launch(stream, write(D), None),
        Step::Launch { stream, touches, keeps: true, uses_kept: false },
        Step::Launch { stream, touches: [None; 2], keeps: false, uses_kept: true },
        copy(D, H, ALL, stream, true),
        copy(H, D, ALL, stream, true),
        Step::WaitDevice,
        Step::Opaque,
        Step::Reset,
        Step::Free(H),
        Step::Free(D),
    ]
}
