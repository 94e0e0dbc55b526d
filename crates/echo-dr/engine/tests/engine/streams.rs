//! Every small program of several streams, from its trace to its merged run, as `exhaustive.rs` has them for one.
//!
//! One pair, of pageable or page-locked memory, whose copies are asynchronous, in a stream of the program's or in the default one; kernels, sets and copies on the device in two
//! streams; waits of the host for either, of one stream for the other, and work in the default stream, which orders both. Programs with
//! a race have no meaning and are left out. A merged run must show the same with each stream as early or as late as it can be.

use std::cell::RefCell;
use std::collections::BTreeMap;

use echo_dr_engine::calls::{AllocDecision, Copy, CopyDecision, DeviceAlloc, HostAlloc, Waiting};
use echo_dr_engine::{Fault, Memory, Options, Protection, Unifier, Windows, analyze, judge};
use echo_dr_format::event::{Call, CopyKind, DeviceKind, HostKind, Shape, Stream, WaitFor};
use echo_dr_format::finding::Access;
use echo_dr_format::plan::{Plan, State};
use echo_dr_format::site::Site;

use crate::common::{DEVICE, DEVICE_FACTS, DOWNLOAD, HOST, N, Tracer, UPLOAD};
use crate::gpu::{A, B, Gpu, Work};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Write,
    Read,
    Upload,
    Download,
    /// A kernel adds 1 to d.
    Add(Stream),
    Look(Stream),
    /// cudaMemset of d.
    Set(Stream),
    /// A copy of d to another block of the device, x.
    Snap(Stream),
    /// A kernel writes x.
    FillX(Stream),
    LookX(Stream),
    Wait(Stream),
    WaitAll,
    /// The first waits for the second.
    Join(Stream, Stream),
    /// A kernel that touches neither, in the default stream.
    Bar,
}

use Step::{Add, Bar, Download, FillX, Join, Look, LookX, Read, Set, Snap, Upload, Wait, WaitAll, Write};

const STEPS: [Step; 19] = [
    Write,
    Read,
    Upload,
    Download,
    Add(A),
    Add(B),
    Look(A),
    Look(B),
    Set(B),
    Snap(A),
    Snap(B),
    FillX(A),
    LookX(B),
    Wait(A),
    Wait(B),
    WaitAll,
    Join(A, B),
    Join(B, A),
    Bar,
];

/// Who is told of the program's calls.
enum Mode<'a> {
    Record(RefCell<Tracer>),
    Watch(&'a Windows, &'a RefCell<Protection>),
    Merge(&'a Unifier),
}

/// A validation run's means.
struct Means<'a>(&'a Gpu, &'a RefCell<Protection>);

impl Memory for Means<'_> {
    fn protect(&self, _: usize, _: usize, protection: Protection) -> bool {
        *self.1.borrow_mut() = protection;
        true
    }
    fn drain(&self) {
        self.0.drain();
    }
    fn host_digest(&self, address: usize, _: usize) -> u64 {
        self.0.content(address).unwrap_or(u64::MAX)
    }
    fn device_digest(&self, address: usize, _: usize) -> Option<u64> {
        self.0.drain();
        Some(self.0.content(address).unwrap_or(u64::MAX - 1))
    }
    // Memory that was never written is told from all else already.
    fn poison(&self, _: usize, _: usize) {}
}

/// What the pair is like.
#[derive(Clone, Copy, Debug)]
struct Kind {
    /// Stream of its copies.
    home: Stream,
    /// The host block is page-locked, so that copies of it are not staged.
    page_locked: bool,
}

/// A program in a run.
struct Run<'a> {
    gpu: &'a Gpu,
    mode: &'a Mode<'a>,
    kind: Kind,
    h: usize,
    d: usize,
    x: usize,
}

impl<'a> Run<'a> {
    fn begin(gpu: &'a Gpu, mode: &'a Mode<'a>, kind: Kind) -> Self {
        let page_locked = kind.page_locked;
        let facts = || Some(DEVICE_FACTS.into());
        let use_or_take = |decision| match decision {
            AllocDecision::Use { address, .. } => address,
            AllocDecision::Forward => gpu.take(),
        };
        let h = match mode {
            Mode::Merge(unifier) => {
                let call = HostAlloc { site: HOST, bytes: N, align: 1, zeroed: false, thread: 0, page_locked };
                use_or_take(unifier.host_alloc(gpu, facts, call))
            }
            _ => gpu.take(),
        };
        let d = match mode {
            Mode::Merge(unifier) => {
                use_or_take(unifier.device_alloc(gpu, facts, DeviceAlloc { site: DEVICE, bytes: N, thread: 0 }))
            }
            _ => gpu.take(),
        };
        let x = gpu.take();
        for stream in [A, B] {
            match mode {
                Mode::Record(tracer) => {
                    let call = Call::StreamCreate { stream, non_blocking: false };
                    tracer.borrow_mut().call(Site(0), call);
                }
                Mode::Watch(windows, _) => windows.stream_created(stream, false),
                Mode::Merge(unifier) => unifier.stream_created(stream, false),
            }
        }
        match mode {
            Mode::Record(tracer) => {
                let mut tracer = tracer.borrow_mut();
                let memory = if page_locked { HostKind::PageLocked } else { HostKind::Heap };
                tracer.host(HOST, h as u64, N as u64, memory);
                tracer.device(DEVICE, d as u64, N as u64, DeviceKind::Plain);
                tracer.device(Site(0x77), x as u64, N as u64, DeviceKind::Plain);
            }
            Mode::Watch(windows, pages) => {
                windows.host_alloc(&Means(gpu, pages), HOST, h, N, 0);
                windows.device_alloc(&Means(gpu, pages), DEVICE, d, N, 0);
            }
            Mode::Merge(_) => {}
        }
        Self { gpu, mode, kind, h, d, x }
    }

    fn access(&self, access: Access) {
        let Mode::Watch(windows, pages) = self.mode else { return };
        loop {
            let now = *pages.borrow();
            if now == Protection::Open || (now == Protection::ReadOnly && access == Access::Read) {
                return;
            }
            match windows.touched(self.h, access, Site(1)) {
                Fault::Reopen { protection, .. } => *pages.borrow_mut() = protection,
                Fault::NotOurs => panic!("a fault outside of watched pages"),
            }
        }
    }

    fn step(&self, number: usize, step: Step) {
        let (h, d, x) = (self.h, self.d, self.x);
        match step {
            Write => {
                self.access(Access::Write);
                self.gpu.host_write(h, 1000 * (number as u64 + 1));
            }
            Read => {
                self.access(Access::Read);
                self.gpu.host_read(h, number);
            }
            Upload => self.copy(UPLOAD, (d, h), CopyKind::HostToDevice, self.kind.home),
            Download => self.copy(DOWNLOAD, (h, d), CopyKind::DeviceToHost, self.kind.home),
            Snap(stream) => self.copy(Site(0x55), (x, d), CopyKind::DeviceToDevice, stream),
            Add(stream) => self.launch(stream, Work::Add(d)),
            Look(stream) => self.launch(stream, Work::Look(d, number)),
            FillX(stream) => self.launch(stream, Work::Store(x, 7 + number as u64)),
            LookX(stream) => self.launch(stream, Work::Look(x, number)),
            Bar => self.launch(Stream::LEGACY, Work::Nothing),
            Set(stream) => self.set(stream),
            Wait(stream) => self.wait(Some(stream)),
            WaitAll => self.wait(None),
            Join(stream, other) => {
                self.gpu.join(stream, other);
                match self.mode {
                    Mode::Record(tracer) => {
                        tracer.borrow_mut().call(Site(0), Call::EventRecord { event: 1, stream: other });
                        tracer.borrow_mut().call(Site(0), Call::StreamWait { event: 1, stream });
                    }
                    Mode::Watch(windows, _) => windows.joined(),
                    Mode::Merge(unifier) => {
                        unifier.recorded(unifier.waiting(), 1, other);
                        unifier.joined(stream);
                    }
                }
            }
        }
    }

    fn copy(&self, site: Site, (dst, src): (usize, usize), kind: CopyKind, stream: Stream) {
        let call = Copy { site, dst, src, bytes: N, kind, stream, asynchronous: true, shape: Shape::Linear };
        let issue = || {
            let work = match kind {
                // Pageable memory is staged before the call returns; a merged block is not.
                CopyKind::HostToDevice if dst != src && !self.kind.page_locked => {
                    Work::Store(dst, self.gpu.staged(src))
                }
                _ => Work::Copy(dst, src),
            };
            self.gpu.issue(stream, work);
        };
        match self.mode {
            Mode::Record(tracer) => {
                issue();
                let place = (dst as u64, src as u64, N as u64);
                tracer.borrow_mut().copy_in(site, place, kind, stream, true, Shape::Linear);
            }
            Mode::Watch(windows, pages) => {
                let token = windows.waiting();
                windows.copying(&Means(self.gpu, pages), &call);
                issue();
                windows.copied(&Means(self.gpu, pages), token, &call, true);
            }
            Mode::Merge(unifier) => {
                let token = unifier.waiting();
                let waiting = match unifier.copy(self.gpu, &call) {
                    CopyDecision::Skip => None,
                    CopyDecision::SkipThenWait(waiting) => Some(waiting),
                    CopyDecision::Forward | CopyDecision::ForwardThenWait(_) => {
                        issue();
                        unifier.copied(token, &call);
                        None
                    }
                };
                match waiting {
                    Some(Waiting::Device) => self.wait(None),
                    Some(Waiting::Stream(stream)) => self.wait(Some(stream)),
                    None => {}
                }
            }
        }
    }

    fn launch(&self, stream: Stream, work: Work) {
        if let Mode::Watch(windows, pages) = self.mode {
            windows.launching(&Means(self.gpu, pages), stream);
        }
        self.gpu.issue(stream, work);
        self.launched(stream, Call::Launch { stream });
    }

    fn set(&self, stream: Stream) {
        match self.mode {
            Mode::Record(_) => {}
            Mode::Watch(windows, pages) => windows.set(&Means(self.gpu, pages), self.d, N, stream),
            Mode::Merge(unifier) => unifier.set(self.d),
        }
        self.gpu.issue(stream, Work::Store(self.d, 0));
        self.launched(stream, Call::Set { dst: self.d as u64, bytes: N as u64, stream });
    }

    fn launched(&self, stream: Stream, call: Call) {
        match self.mode {
            Mode::Record(tracer) => {
                tracer.borrow_mut().call(Site(0x99), call);
            }
            Mode::Watch(windows, _) => windows.launched(stream),
            Mode::Merge(unifier) => unifier.launched(stream),
        }
    }

    fn wait(&self, stream: Option<Stream>) {
        let on = stream.map_or(WaitFor::Device, WaitFor::Stream);
        let watching = match self.mode {
            Mode::Record(_) => None,
            Mode::Watch(windows, _) => Some(windows.waiting()),
            Mode::Merge(unifier) => Some(unifier.waiting()),
        };
        self.gpu.wait(stream);
        match (self.mode, watching) {
            (Mode::Watch(windows, pages), Some(token)) => windows.waited(&Means(self.gpu, pages), token, on),
            (Mode::Merge(unifier), Some(token)) => unifier.waited(token, on),
            (Mode::Record(tracer), _) => {
                tracer.borrow_mut().call(Site(0x98), Call::Wait { on });
            }
            _ => {}
        }
    }
}

fn run(program: &[Step], kind: Kind, eager: &[Stream], mode: &Mode<'_>) -> Gpu {
    let gpu = Gpu::new(eager.to_vec());
    let run = Run::begin(&gpu, mode, kind);
    program.iter().enumerate().for_each(|(number, &step)| run.step(number, step));
    gpu
}

const ALL: [Stream; 3] = [Stream::LEGACY, A, B];

/// What became of the programs.
#[derive(Debug, Default)]
struct Tally {
    programs: u64,
    paired: u64,
    validated: u64,
}

fn validated(program: &[Step], kind: Kind, plan: &mut Plan, mut trace: echo_dr_format::trace::Trace) -> bool {
    let (windows, pages) = (Windows::new(plan, 4096, false), RefCell::new(Protection::Open));
    let gpu = run(program, kind, &ALL, &Mode::Watch(&windows, &pages));
    (trace.findings, trace.seen) = windows.finish(&Means(&gpu, &pages), 0);
    judge(plan, &trace).expect("one context");
    plan.pairs.iter().any(|pair| pair.state == State::Validated)
}

/// False if the program has no meaning, and so none that begins with it.
fn judge_program(program: &[Step], kind: Kind, tally: &mut Tally) -> bool {
    let mode = Mode::Record(RefCell::new(Tracer::new()));
    let Some(expected) = run(program, kind, &ALL, &mode).output() else { return false };
    let Mode::Record(tracer) = mode else { return true };
    if !program.iter().any(|step| matches!(step, Upload | Download)) || expected.is_empty() {
        return true;
    }
    tally.programs += 1;
    let trace = tracer.into_inner().trace();
    let mut plan = analyze(&trace, Options { threshold: 1, recurrences: 1 });
    if plan.pairs.is_empty() {
        return true;
    }
    tally.paired += 1;
    if !validated(program, kind, &mut plan, trace) {
        return true;
    }
    tally.validated += 1;
    plan.pairs.iter_mut().for_each(|pair| pair.state = State::Enabled);
    for eager in [&ALL[..], &[], &[A], &[B]] {
        let unifier = Unifier::new(&plan);
        let shown: BTreeMap<usize, u64> = run(program, kind, eager, &Mode::Merge(&unifier)).shown();
        assert_eq!(shown, expected, "merged otherwise ({kind:?}, at once: {eager:?}): {program:?}");
    }
    true
}

fn extend(program: &mut Vec<Step>, kind: Kind, left: usize, tally: &mut Tally) {
    if !judge_program(program, kind, tally) || left == 0 {
        return;
    }
    for step in STEPS {
        program.push(step);
        extend(program, kind, left - 1, tally);
        program.pop();
    }
}

/// What programs begin with: nothing, an input on the device, one that was used, a result on the host.
const BEGINNINGS: [&[Step]; 4] =
    [&[], &[Write, Upload, Wait(A)], &[Write, Upload, Look(A), WaitAll], &[Set(B), WaitAll, Download, WaitAll]];

/// All programs of `length` calls behind the beginnings; of `usual` for pageable memory in a stream of the program's.
fn all(usual: usize, length: usize) -> Tally {
    let mut tally = Tally::default();
    for (home, page_locked) in [(A, false), (A, true), (Stream::LEGACY, false), (Stream::LEGACY, true)] {
        let length = if home == A && !page_locked { usual } else { length };
        for beginning in BEGINNINGS {
            extend(&mut beginning.to_vec(), Kind { home, page_locked }, length, &mut tally);
        }
    }
    tally
}

#[test]
fn all_programs_of_four_calls_in_streams_do_merged_what_they_do_apart() {
    let tally = all(4, 3);
    assert!(tally.validated > 10_000, "{tally:?}");
}

#[test]
#[ignore = "takes minutes"]
fn all_programs_of_five_calls_in_streams_do_merged_what_they_do_apart() {
    let tally = all(5, 5);
    assert!(tally.validated > 100_000, "{tally:?}");
    println!("{tally:?}");
}

#[test]
fn streams_that_overlap_are_merged() {
    // Two rounds of a pair whose stream another stream's work overlaps, for which the host does not wait.
    let round = [Write, Upload, FillX(B), Add(A), Download, Wait(A), Read];
    let mut tally = Tally::default();
    assert!(judge_program(&[round, round].concat(), Kind { home: A, page_locked: false }, &mut tally));
    assert_eq!(tally.validated, 1);
}
