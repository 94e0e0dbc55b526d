//! Every small program, from its trace to its merged run.
//!
//! A program is a sequence of calls on one host and one device block. It is run as it is; its trace is analysed; if that finds a pair, the program is
//! validated; if that finds nothing wrong, it is run merged. What the host reads and what kernels see must be the same in all of them. Validated
//! and merged runs are made once with a GPU that works at once and once with one that works only when it is waited for. Programs that read
//! memory that nobody wrote are left out, as the theorem does.
//!
//! Kernels may use page-locked host blocks without a copy, and on some devices any host block. A validation run must notice.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};

use echo_dr_engine::calls::{AllocDecision, Copy, CopyDecision, DeviceAlloc, FreeDecision, HostAlloc, Waiting};
use echo_dr_engine::{Fault, Memory, Options, Protection, Unifier, Windows, analyze, judge};
use echo_dr_format::event::{Call, CopyKind, DeviceKind, HostKind, Shape, Stream, WaitFor};
use echo_dr_format::finding::Access;
use echo_dr_format::plan::{Plan, State};
use echo_dr_format::site::Site;
use echo_dr_format::trace::Trace;
use echo_rt::{Cuda, CudaError, Direction};

use crate::common::{DEVICE, DEVICE_FACTS, DOWNLOAD, HOST, N, Tracer, UPLOAD};

/// One call of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Malloc,
    Calloc,
    /// cudaMallocHost.
    MallocHost,
    CudaMalloc,
    /// The host writes all of h.
    Write,
    /// The host reads h.
    Read,
    Upload,
    UploadAsync,
    Download,
    DownloadAsync,
    /// A download of d into memory that is no recorded block, which the host then reads.
    Peek,
    /// A kernel adds 1 to d.
    Add,
    /// A kernel looks at d.
    Look,
    /// A kernel overwrites d.
    Fill,
    /// A kernel looks at h.
    LookHost,
    /// A kernel overwrites h.
    FillHost,
    /// cudaMemset of d.
    Set,
    Wait,
    /// free, or cudaFreeHost.
    Free,
    CudaFree,
    CudaFreeAsync,
}

use Step::{
    Add, Calloc, CudaFree, CudaFreeAsync, CudaMalloc, Download, DownloadAsync, Fill, FillHost, Free, Look, LookHost,
    Malloc, MallocHost, Peek, Read, Set, Upload, UploadAsync, Wait, Write,
};

const STEPS: [Step; 21] = [
    Malloc,
    Calloc,
    MallocHost,
    CudaMalloc,
    Write,
    Read,
    Upload,
    UploadAsync,
    Download,
    DownloadAsync,
    Peek,
    Add,
    Look,
    Fill,
    LookHost,
    FillHost,
    Set,
    Wait,
    Free,
    CudaFree,
    CudaFreeAsync,
];

/// Which host memory kernels can use in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// All that the program gives them: page-locked memory, or any on a device that reaches all.
    All,
    /// None: a validation run on a device that does not reach all.
    Nothing,
    /// What the pages of h allow: a validation run on a device that reaches all.
    ByPages,
}

/// What can be seen of a program: what the host reads, and what kernels see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Output {
    read: Vec<u64>,
    looked: Vec<u64>,
}

/// Work of the GPU that is not done yet. Blocks are addresses.
#[derive(Clone, Copy, Debug)]
enum Work {
    Add(usize),
    Look(usize),
    Store(usize, Option<u64>),
    Copy(usize, usize),
    /// cudaFree or cudaFreeAsync; the host waits for the one.
    Free(usize),
}

/// Memory and a GPU. Contents are one number a block; `None` was never written.
struct Machine {
    blocks: RefCell<BTreeMap<usize, Option<u64>>>,
    queue: RefCell<VecDeque<Work>>,
    output: RefCell<Output>,
    /// Something that was never written was read.
    undefined: RefCell<bool>,
    next: RefCell<usize>,
    eager: bool,
    reach: Reach,
    /// h, if it is in memory of the host alone.
    apart: Cell<usize>,
    /// What its pages allow.
    pages: Cell<Protection>,
    /// A kernel used what it can't.
    failed: Cell<bool>,
}

impl Machine {
    fn new(eager: bool, reach: Reach) -> Self {
        Self {
            blocks: RefCell::default(),
            queue: RefCell::default(),
            output: RefCell::default(),
            undefined: RefCell::new(false),
            next: RefCell::new(0x10_0000),
            eager,
            reach,
            apart: Cell::new(0),
            pages: Cell::new(Protection::Open),
            failed: Cell::new(false),
        }
    }

    /// A kernel may use the block; if not, the GPU fails.
    fn reaches(&self, address: usize, writes: bool) -> bool {
        let reaches = address != self.apart.get()
            || match self.reach {
                Reach::All => true,
                Reach::Nothing => false,
                Reach::ByPages => match self.pages.get() {
                    Protection::Open => true,
                    Protection::ReadOnly => !writes,
                    Protection::Closed => false,
                },
            };
        self.failed.set(self.failed.get() || !reaches);
        reaches
    }

    fn take(&self) -> usize {
        *self.next.borrow_mut() += 0x10000;
        let address = *self.next.borrow();
        self.blocks.borrow_mut().insert(address, None);
        address
    }

    fn give(&self, address: usize) {
        self.drain();
        self.remove(address);
    }

    fn remove(&self, address: usize) {
        assert!(self.blocks.borrow_mut().remove(&address).is_some(), "freed twice");
    }

    fn load(&self, address: usize) -> Option<u64> {
        *self.blocks.borrow().get(&address).expect("an access of freed memory")
    }

    fn store(&self, address: usize, value: Option<u64>) {
        *self.blocks.borrow_mut().get_mut(&address).expect("an access of freed memory") = value;
    }

    fn defined(&self, address: usize) -> u64 {
        let value = self.load(address);
        *self.undefined.borrow_mut() |= value.is_none();
        value.unwrap_or(0)
    }

    fn enqueue(&self, work: Work) {
        self.queue.borrow_mut().push_back(work);
        if self.eager {
            self.drain();
        }
    }

    fn drain(&self) {
        let queue = std::mem::take(&mut *self.queue.borrow_mut());
        for work in queue {
            match work {
                Work::Add(d) => self.store(d, Some(self.defined(d).wrapping_add(1))),
                Work::Look(address) if self.reaches(address, false) => {
                    let value = self.defined(address);
                    self.output.borrow_mut().looked.push(value);
                }
                Work::Store(address, value) if self.reaches(address, true) => self.store(address, value),
                Work::Look(_) | Work::Store(..) => {}
                Work::Copy(dst, src) => self.store(dst, self.load(src)),
                Work::Free(address) => self.remove(address),
            }
        }
    }

    fn read(&self, h: usize) {
        let value = self.defined(h);
        self.output.borrow_mut().read.push(value);
    }

    fn finish(self) -> Option<Output> {
        self.drain();
        let undefined = *self.undefined.borrow();
        (!undefined).then(|| self.output.take())
    }
}

impl Cuda for Machine {
    fn malloc(&self, _: usize) -> Result<usize, CudaError> {
        Ok(self.take())
    }
    fn free(&self, address: usize) -> Result<(), CudaError> {
        self.give(address);
        Ok(())
    }
    fn malloc_managed(&self, _: usize) -> Result<usize, CudaError> {
        Ok(self.take())
    }
    fn host_alloc(&self, _: usize) -> Result<(usize, usize), CudaError> {
        unreachable!("the plans of this test are of managed memory")
    }
    fn host_free(&self, _: usize) -> Result<(), CudaError> {
        unreachable!("the plans of this test are of managed memory")
    }
    fn heap_alloc(&self, _: usize) -> Option<usize> {
        unreachable!("the plans of this test are of managed memory")
    }
    fn heap_free(&self, _: usize) {
        unreachable!("the plans of this test are of managed memory")
    }
    fn copy(&self, _: usize, _: usize, _: usize, _: Direction) -> Result<(), CudaError> {
        unreachable!("the engine makes no copies")
    }
    fn synchronize(&self) -> Result<(), CudaError> {
        self.drain();
        Ok(())
    }
    fn has_error(&self) -> bool {
        false
    }
    fn forget_error(&self) {}
}

/// The original program under the eyes of validation. Blocks get addresses once, so a trace can be made beside it.
struct Original {
    machine: Machine,
}

impl Memory for Original {
    fn protect(&self, _: usize, _: usize, protection: Protection) -> bool {
        self.machine.pages.set(protection);
        true
    }
    fn drain(&self) {
        self.machine.drain();
    }
    fn host_digest(&self, address: usize, _: usize) -> u64 {
        self.machine.load(address).unwrap_or(u64::MAX)
    }
    fn device_digest(&self, address: usize, _: usize) -> Option<u64> {
        self.machine.drain();
        Some(self.machine.load(address).unwrap_or(u64::MAX - 1))
    }
    // Memory that was never written is told from all else already.
    fn poison(&self, _: usize, _: usize) {}
}

impl Original {
    fn access(&self, windows: &Windows, h: usize, access: Access) {
        loop {
            let pages = self.machine.pages.get();
            if pages == Protection::Open || (pages == Protection::ReadOnly && access == Access::Read) {
                return;
            }
            match windows.touched(h, access, Site(1)) {
                Fault::Reopen { protection, .. } => self.machine.pages.set(protection),
                Fault::NotOurs => panic!("a fault outside of watched pages"),
            }
        }
    }
}

/// Memory of the host that is no recorded block.
const ELSEWHERE: usize = 0x10;

fn copy(dst: usize, src: usize, kind: CopyKind, asynchronous: bool) -> Copy {
    let site = if kind == CopyKind::HostToDevice { UPLOAD } else { DOWNLOAD };
    Copy { site, dst, src, bytes: N, kind, stream: Stream::LEGACY, asynchronous, shape: Shape::Linear }
}

/// Runs a program as it is and writes its trace. `None`: it reads what was never written.
fn trace(program: &[Step]) -> Option<(Output, Tracer)> {
    let machine = Machine::new(true, Reach::All);
    let mut tracer = Tracer::new();
    let (mut h, mut d) = (0, 0);
    for (number, &step) in program.iter().enumerate() {
        let value = 1000 * (number as u64 + 1);
        match step {
            Malloc | Calloc | MallocHost => {
                h = machine.take();
                let kind = match step {
                    Calloc => HostKind::Zeroed,
                    MallocHost => HostKind::PageLocked,
                    _ => HostKind::Heap,
                };
                tracer.host(HOST, h as u64, N as u64, kind);
                if step == Calloc {
                    machine.store(h, Some(0));
                }
            }
            CudaMalloc => {
                d = machine.take();
                tracer.device(DEVICE, d as u64, N as u64, DeviceKind::Plain);
            }
            Write => machine.store(h, Some(value)),
            Read => machine.read(h),
            Upload | UploadAsync => {
                machine.store(d, machine.load(h));
                let call = copy(d, h, CopyKind::HostToDevice, step == UploadAsync);
                record(&mut tracer, &call);
            }
            Download | DownloadAsync => {
                machine.store(h, machine.load(d));
                record(&mut tracer, &copy(h, d, CopyKind::DeviceToHost, step == DownloadAsync));
            }
            Peek => {
                machine.read(d);
                record(&mut tracer, &copy(ELSEWHERE, d, CopyKind::DeviceToHost, false));
            }
            Add | Look | Fill | LookHost | FillHost => {
                machine.enqueue(kernel(step, (h, d), value));
                tracer.launch(Stream::LEGACY);
            }
            Set => {
                machine.enqueue(Work::Store(d, Some(0)));
                tracer.call(Site(5), Call::Set { dst: d as u64, bytes: N as u64, stream: Stream::LEGACY });
            }
            Wait => {
                tracer.wait();
            }
            Free => {
                machine.give(h);
                tracer.free(h as u64);
            }
            CudaFree | CudaFreeAsync => {
                machine.give(d);
                tracer.call(Site(0), Call::DeviceFree { ptr: d as u64, asynchronous: step == CudaFreeAsync });
            }
        }
    }
    Some((machine.finish()?, tracer))
}

fn record(tracer: &mut Tracer, call: &Copy) {
    let Copy { site, dst, src, bytes, kind, stream, asynchronous, shape } = *call;
    tracer.copy_in(site, (dst as u64, src as u64, bytes as u64), kind, stream, asynchronous, shape);
}

fn kernel(step: Step, (h, d): (usize, usize), value: u64) -> Work {
    match step {
        Add => Work::Add(d),
        Look => Work::Look(d),
        LookHost => Work::Look(h),
        FillHost => Work::Store(h, Some(value)),
        _ => Work::Store(d, Some(value)),
    }
}

/// Runs a program as it is, validated. True if nothing was found, or only what still allows mapped memory.
fn validate(program: &[Step], plan: &mut Plan, mut trace: Trace, machine: Machine) -> bool {
    let windows = Windows::new(plan, 4096, machine.reach == Reach::ByPages);
    let original = Original { machine };
    let machine = &original.machine;
    let (mut h, mut d) = (0, 0);
    for (number, &step) in program.iter().enumerate() {
        let value = 1000 * (number as u64 + 1);
        match step {
            Malloc | Calloc | MallocHost => {
                h = machine.take();
                machine.apart.set(h);
                machine.pages.set(Protection::Open);
                if step == Calloc {
                    machine.store(h, Some(0));
                }
                windows.host_alloc(&original, HOST, h, N, 0);
            }
            CudaMalloc => {
                d = machine.take();
                windows.device_alloc(&original, DEVICE, d, N, 0);
            }
            Write => {
                original.access(&windows, h, Access::Write);
                machine.store(h, Some(value));
            }
            Read => original.access(&windows, h, Access::Read),
            Upload | UploadAsync | Download | DownloadAsync => {
                let call = linking(step, h, d);
                let token = windows.waiting();
                windows.copying(&original, &call);
                if step == UploadAsync {
                    // Memory of the host alone is staged.
                    machine.enqueue(Work::Store(d, machine.load(h)));
                } else {
                    machine.drain();
                    machine.store(call.dst, machine.load(call.src));
                }
                windows.copied(&original, token, &call, true);
            }
            Peek => {
                let call = copy(ELSEWHERE, d, CopyKind::DeviceToHost, false);
                let token = windows.waiting();
                windows.copying(&original, &call);
                machine.drain();
                windows.copied(&original, token, &call, true);
            }
            Add | Look | Fill | LookHost | FillHost | Set => {
                if step == Set {
                    windows.set(&original, d, N, Stream::LEGACY);
                    machine.enqueue(Work::Store(d, Some(0)));
                } else {
                    windows.launching(&original, Stream::LEGACY);
                    machine.enqueue(kernel(step, (h, d), value));
                }
                windows.launched(Stream::LEGACY);
            }
            Wait => {
                let token = windows.waiting();
                machine.drain();
                windows.waited(&original, token, WaitFor::Device);
            }
            Free => {
                windows.host_free(&original, h);
                machine.give(h);
            }
            CudaFree | CudaFreeAsync => {
                windows.device_free(&original, d);
                machine.enqueue(Work::Free(d));
                if step == CudaFree {
                    machine.drain();
                }
            }
        }
        if machine.failed.get() {
            break;
        }
    }
    machine.drain();
    if machine.failed.get() {
        windows.device_failed(&original);
    }
    (trace.findings, trace.seen) = windows.finish(&original, 0);
    judge(plan, &trace).expect("one context");
    plan.pairs.iter().any(|pair| pair.state == State::Validated)
}

/// The copy between the two blocks.
fn linking(step: Step, h: usize, d: usize) -> Copy {
    match step {
        Download | DownloadAsync => copy(h, d, CopyKind::DeviceToHost, step == DownloadAsync),
        _ => copy(d, h, CopyKind::HostToDevice, step == UploadAsync),
    }
}

/// Runs a program with the plan.
fn merged(program: &[Step], plan: &Plan, eager: bool) -> Option<Output> {
    let unifier = Unifier::new(plan);
    let machine = Machine::new(eager, Reach::All);
    let mut page_locked = false;
    let device = || Some(DEVICE_FACTS.into());
    let (mut h, mut d) = (0, 0);
    for (number, &step) in program.iter().enumerate() {
        let value = 1000 * (number as u64 + 1);
        match step {
            Malloc | Calloc | MallocHost => {
                page_locked = step == MallocHost;
                let call = HostAlloc { site: HOST, bytes: N, align: 1, zeroed: step == Calloc, page_locked, thread: 0 };
                h = match unifier.host_alloc(&machine, device, call) {
                    AllocDecision::Use { address, fill_zero } => {
                        assert_eq!(fill_zero, step == Calloc);
                        address
                    }
                    AllocDecision::Forward => machine.take(),
                };
                if step == Calloc {
                    machine.store(h, Some(0));
                }
            }
            CudaMalloc => {
                let call = DeviceAlloc { site: DEVICE, bytes: N, thread: 0 };
                d = match unifier.device_alloc(&machine, device, call) {
                    AllocDecision::Use { address, .. } => address,
                    AllocDecision::Forward => machine.take(),
                };
            }
            Write => machine.store(h, Some(value)),
            Read => machine.read(h),
            Upload | UploadAsync | Download | DownloadAsync => {
                run_copy(&unifier, &machine, &linking(step, h, d), page_locked);
            }
            Peek => {
                let call = copy(ELSEWHERE, d, CopyKind::DeviceToHost, false);
                let token = unifier.waiting();
                assert_eq!(unifier.copy(&machine, &call), CopyDecision::Forward);
                machine.drain();
                machine.read(d);
                unifier.copied(token, &call);
            }
            Add | Look | Fill | LookHost | FillHost => {
                machine.enqueue(kernel(step, (h, d), value));
                unifier.launched(Stream::LEGACY);
            }
            Set => {
                unifier.set(d);
                machine.enqueue(Work::Store(d, Some(0)));
                unifier.launched(Stream::LEGACY);
            }
            Wait => {
                let token = unifier.waiting();
                machine.drain();
                unifier.waited(token, WaitFor::Device);
            }
            Free => {
                let decision = match page_locked {
                    true => unifier.page_locked_free(&machine, h),
                    false => unifier.host_free(&machine, h),
                };
                if decision == FreeDecision::Forward {
                    machine.give(h);
                }
            }
            CudaFree | CudaFreeAsync => {
                if unifier.device_free(&machine, d) == FreeDecision::Forward {
                    machine.enqueue(Work::Free(d));
                }
                if step == CudaFree {
                    machine.drain();
                }
            }
        }
    }
    machine.finish()
}

fn run_copy(unifier: &Unifier, machine: &Machine, call: &Copy, page_locked: bool) {
    let token = unifier.waiting();
    let decision = unifier.copy(machine, call);
    match decision {
        CopyDecision::Skip => {}
        CopyDecision::SkipThenWait(waiting) => {
            machine.drain();
            let on = match waiting {
                Waiting::Device => WaitFor::Device,
                Waiting::Stream(stream) => WaitFor::Stream(stream),
            };
            unifier.waited(token, on);
        }
        CopyDecision::Forward | CopyDecision::ForwardThenWait(_) => {
            // An asynchronous copy of merged memory is not staged: it reads when the GPU comes to it.
            machine.enqueue(Work::Copy(call.dst, call.src));
            let returns_early = call.asynchronous && (page_locked || call.kind == CopyKind::HostToDevice);
            if !returns_early || decision != CopyDecision::Forward {
                machine.drain();
            }
            unifier.copied(token, call);
        }
    }
}

/// What became of the programs.
#[derive(Debug, Default)]
struct Tally {
    programs: u64,
    paired: u64,
    validated: u64,
    /// Of those, with page-locked memory.
    page_locked: u64,
    skipped_copies: u64,
}

fn judge_program(program: &[Step], tally: &mut Tally) {
    let is_linking = |step: &&Step| matches!(step, Upload | UploadAsync | Download | DownloadAsync);
    if program.iter().filter(is_linking).count() == 0 {
        return;
    }
    let Some((expected, tracer)) = trace(program) else { return };
    tally.programs += 1;
    let trace = tracer.trace();
    let plan = analyze(&trace, Options { threshold: 1, recurrences: 1 });
    if plan.pairs.is_empty() {
        return;
    }
    tally.paired += 1;
    let page_locked = plan.pairs.iter().any(|pair| pair.page_locked);
    let reached = program.iter().any(|step| matches!(step, LookHost | FillHost));
    let mut passed = false;
    for (reach, eager) in
        [(Reach::Nothing, true), (Reach::Nothing, false), (Reach::ByPages, true), (Reach::ByPages, false)]
    {
        // Only page-locked memory is reached by kernels of any device, and where none reaches h both kinds of device are the same.
        let is_program = if page_locked { true } else { reached == (reach == Reach::ByPages) };
        if !is_program {
            continue;
        }
        let mut plan = plan.clone();
        let mut trace = trace.clone();
        for device in [&mut plan.context.device, &mut trace.header.context.device].into_iter().flatten() {
            device.attributes.pageable_memory_access = reach == Reach::ByPages;
        }
        if !validate(program, &mut plan, trace, Machine::new(eager, reach)) {
            continue;
        }
        assert!(!reached || reach == Reach::ByPages, "not noticed: {program:?}");
        passed = true;
        plan.pairs.iter_mut().for_each(|pair| pair.state = State::Enabled);
        for eager in [true, false] {
            let found = merged(program, &plan, eager);
            assert_eq!(found.as_ref(), Some(&expected), "merged otherwise (eager: {eager}): {program:?}");
        }
    }
    if passed {
        tally.validated += 1;
        tally.page_locked += u64::from(page_locked);
        tally.skipped_copies += program.iter().filter(is_linking).count() as u64;
    }
}

fn extend(program: &mut Vec<Step>, (h, d): (bool, bool), left: usize, tally: &mut Tally) {
    judge_program(program, tally);
    if left == 0 {
        return;
    }
    for step in STEPS {
        let possible = match step {
            Malloc | Calloc | MallocHost => !h,
            CudaMalloc => !d,
            Write | Read | LookHost | FillHost | Free => h,
            Upload | UploadAsync | Download | DownloadAsync => h && d,
            Peek | Add | Look | Fill | Set | CudaFree | CudaFreeAsync => d,
            Wait => program.last() != Some(&Wait),
        };
        if !possible {
            continue;
        }
        let live = match step {
            Malloc | Calloc | MallocHost => (true, d),
            Free => (false, d),
            CudaMalloc => (h, true),
            CudaFree | CudaFreeAsync => (h, false),
            _ => (h, d),
        };
        program.push(step);
        extend(program, live, left - 1, tally);
        program.pop();
    }
}

#[test]
fn all_programs_of_six_calls_do_merged_what_they_do_apart() {
    let mut tally = Tally::default();
    extend(&mut Vec::new(), (false, false), 6, &mut tally);
    // The test would prove nothing if nothing was merged.
    assert!(tally.validated > 1000 && tally.page_locked > 500, "{tally:?}");
}

#[test]
#[ignore = "takes minutes"]
fn all_programs_of_seven_calls_do_merged_what_they_do_apart() {
    let mut tally = Tally::default();
    extend(&mut Vec::new(), (false, false), 7, &mut tally);
    assert!(tally.validated > 10_000, "{tally:?}");
    println!("{tally:?}");
}

#[test]
fn ordinary_rounds_are_merged() {
    for program in [
        vec![
            Malloc, CudaMalloc, Write, Upload, Add, Download, Read, Write, Upload, Add, Download, Read, Free, CudaFree,
        ],
        vec![CudaMalloc, Malloc, Fill, Download, Read, Fill, Wait, Download, Read, CudaFree, Free],
        vec![Calloc, CudaMalloc, Write, UploadAsync, Look, Wait, Write, UploadAsync, Look, Wait, CudaFree, Free],
        vec![
            MallocHost, CudaMalloc, Write, Upload, Add, Download, Read, Write, Upload, Add, Download, Read, CudaFree,
            Free,
        ],
        vec![MallocHost, CudaMalloc, Write, UploadAsync, Add, DownloadAsync, Wait, Read, Write, UploadAsync, Add, Wait],
    ] {
        let mut tally = Tally::default();
        judge_program(&program, &mut tally);
        assert_eq!(tally.validated, 1, "{program:?}");
    }
}
