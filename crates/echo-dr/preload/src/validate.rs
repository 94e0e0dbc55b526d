//! Validate: the engine says when the pages of a host buffer are closed; this closes and opens them, and tells it of what it can't see: faults and
//! system calls.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use echo_dr_engine::calls::Copy;
use echo_dr_engine::{Fault, Loan, Memory, Protection, WaitToken, Windows};
use echo_dr_format::event::{Call, Setup};
use echo_dr_format::finding::{Access, Finding};
use echo_dr_format::plan::Plan;
use echo_dr_format::site::Site;
use echo_dr_format::trace::Record;

use crate::contain::contain;
use crate::device::Real;
use crate::hostmem;
use crate::thread::{self, Token};
use crate::{exit, pages, recorder, rings, sys};

/// A validation run.
#[derive(Debug)]
pub(crate) struct Validator {
    windows: Windows,
}

/// The means that the engine asks for.
struct Means;

static VALIDATOR: OnceLock<Validator> = OnceLock::new();

/// Starts watching the pairs of a plan; the constructor does, once.
pub(crate) fn start(plan: &Plan, exclusive: bool) -> &'static Validator {
    VALIDATOR.get_or_init(|| Validator { windows: Windows::new(plan, pages::size(), exclusive) })
}

/// Errors of CUDA after which a context can't be used any more; both layers have the same numbers. A kernel that used memory that the GPU can't
/// reach ends in one of them, in which depends on the device.
const CONTEXT_IS_LOST: [c_int; 7] = [700, 714, 715, 716, 717, 718, 719];

/// The validator, in a validation run.
#[inline]
pub(crate) fn get() -> Option<&'static Validator> {
    VALIDATOR.get()
}

/// Looks, now and then, whether the program has made a ring of `io_uring` by means that no hook sees.
fn look_for_rings(validator: &Validator) {
    /// A look takes some 20 µs, and the trace's writer comes 50 times a second.
    const PERIOD: u64 = 10_000_000;
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = sys::now();
    let next = NEXT.load(Ordering::Relaxed);
    if now >= next
        && NEXT.compare_exchange(next, now + PERIOD, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        && rings::is_there()
    {
        validator.all_out_of_sight(None);
        NEXT.store(u64::MAX, Ordering::Relaxed);
    }
}

/// Findings since the last call.
pub(crate) fn findings(time: u64) -> Vec<Finding> {
    if let Some(validator) = get() {
        look_for_rings(validator);
    }
    get().map_or_else(Vec::new, |validator| validator.windows.findings(&Means, time))
}

/// The run ends: what is still open is judged, and what was seen of each pair goes into the trace. The first time only.
pub(crate) fn finish() {
    static DONE: AtomicBool = AtomicBool::new(false);
    let Some(validator) = get().filter(|_| !DONE.swap(true, Ordering::AcqRel)) else { return };
    // CUDA's calls are Echo's here, not the program's.
    let _token = Token::regardless_of_phase();
    if !exit::is_leaving() {
        validator.ask_device();
    }
    // The last look may be a moment too old.
    if rings::is_there() {
        validator.all_out_of_sight(None);
    }
    let (findings, seen) = contain((Vec::new(), Vec::new()), || validator.windows.finish(&Means, recorder::time()));
    findings.into_iter().for_each(|finding| recorder::push_other(Record::Finding(finding)));
    seen.into_iter().for_each(|seen| recorder::push_other(Record::Seen(seen)));
}

/// The program is ending, and CUDA's own exit handlers come next.
pub(crate) fn leaving() {
    if let Some(validator) = get() {
        // CUDA's calls are Echo's here, not the program's.
        let _token = Token::regardless_of_phase();
        validator.ask_device();
        contain((), || validator.windows.leaving(&Means));
    }
}

/// This process is the child of a fork.
pub(crate) fn forked() {
    if let Some(validator) = get() {
        validator.windows.forked(&Means);
    }
}

/// Gives pages a protection. Safe in a signal handler.
fn protect(start: usize, bytes: usize, protection: Protection) -> bool {
    let flags = match protection {
        Protection::Open => libc::PROT_READ | libc::PROT_WRITE,
        Protection::ReadOnly => libc::PROT_READ,
        Protection::Closed => libc::PROT_NONE,
    };
    // SAFETY: the pages are those of a host block that `pages` made for a pair, and hold nothing else. (`mprotect` is one of the hooks.)
    unsafe { sys::system_call(libc::SYS_mprotect, [start, bytes, flags as usize, 0, 0, 0]) == 0 }
}

impl Memory for Means {
    fn protect(&self, start: usize, bytes: usize, protection: Protection) -> bool {
        // If the kernel refuses (too many mappings), the pages stay as they are and the program runs on.
        protect(start, bytes, protection)
    }

    fn drain(&self) {
        if let Some(real) = Real::current() {
            real.wait_device();
        }
    }

    fn host_digest(&self, address: usize, bytes: usize) -> u64 {
        hostmem::digest(address, bytes)
    }

    fn device_digest(&self, address: usize, bytes: usize) -> Option<u64> {
        hostmem::device_digest(Real::current()?, address, bytes)
    }

    fn poison(&self, address: usize, bytes: usize) {
        if let Some(real) = Real::current() {
            real.poison(address, bytes);
        }
    }
}

impl Validator {
    /// Asks how the last kernels have ended: the program may never do so.
    fn ask_device(&self) {
        if self.windows.keeps_from_gpu()
            && let Some(real) = Real::current()
        {
            self.answered(real.wait_device());
        }
    }

    /// A CUDA call has answered this.
    pub(crate) fn answered(&self, code: c_int) {
        if CONTEXT_IS_LOST.contains(&code) {
            contain((), || self.windows.device_failed(&Means));
        }
    }

    pub(crate) fn wants_size(&self, bytes: usize) -> bool {
        self.windows.wants_size(bytes)
    }

    pub(crate) fn is_host_site(&self, site: Site, bytes: usize) -> bool {
        self.windows.is_host_site(site, bytes)
    }

    /// The address may be in a watched block.
    pub(crate) fn is_near(&self, address: usize) -> bool {
        self.windows.is_near(address)
    }

    /// Some byte of the memory is in a watched block.
    #[inline]
    pub(crate) fn is_watched(&self, address: usize, bytes: usize) -> bool {
        self.windows.is_watched(address, bytes)
    }

    pub(crate) fn host_alloc(&self, site: Site, address: usize, bytes: usize) {
        contain((), || self.windows.host_alloc(&Means, site, address, bytes, thread::number()));
    }

    pub(crate) fn host_unwatched(&self, site: Site, bytes: usize) {
        contain((), || self.windows.host_unwatched(site, bytes));
    }

    pub(crate) fn device_alloc(&self, site: Site, address: usize, bytes: usize) {
        contain((), || self.windows.device_alloc(&Means, site, address, bytes, thread::number()));
    }

    pub(crate) fn host_free(&self, address: usize) {
        contain((), || self.windows.host_free(&Means, address));
    }

    pub(crate) fn device_free(&self, address: usize) {
        contain((), || {
            self.windows.device_free(&Means, address);
            self.windows.may_wait();
        });
    }

    pub(crate) fn copying(&self, copy: &Copy) -> WaitToken {
        let token = self.windows.waiting();
        look_for_rings(self);
        contain((), || self.windows.copying(&Means, copy));
        token
    }

    pub(crate) fn copied(&self, copy: &Copy, token: WaitToken, succeeded: bool) {
        contain((), || self.windows.copied(&Means, token, copy, succeeded));
    }

    /// A function of the host is put into a stream: what it tells the program may order other streams.
    pub(crate) fn host_function(&self) {
        contain((), || self.windows.joined());
    }

    /// Before a call that is no copy.
    pub(crate) fn before(&self, call: Call) -> WaitToken {
        let token = self.windows.waiting();
        contain((), || match call {
            Call::Set { dst, bytes, stream } => self.windows.set(&Means, dst as usize, bytes as usize, stream),
            Call::Launch { stream } => self.windows.launching(&Means, stream),
            Call::StreamWait { .. } => self.windows.joined(),
            // A failure would be forgotten with all else.
            Call::Setup { what: Setup::Reset } => self.ask_device(),
            Call::HostAlloc { .. } | Call::HostFree { .. } | Call::HostRegister { .. } | Call::DeviceAlloc { .. } => {
                self.windows.may_wait();
            }
            _ => {}
        });
        token
    }

    /// After it.
    pub(crate) fn after(&self, call: Call, token: WaitToken, succeeded: bool) {
        contain((), || match call {
            // A failed launch may have begun.
            Call::Launch { stream } | Call::Set { stream, .. } => self.windows.launched(stream),
            Call::Wait { on } if succeeded => self.windows.waited(&Means, token, on),
            Call::EventRecord { event, stream } if succeeded => self.windows.recorded(token, event, stream),
            Call::StreamCreate { stream, non_blocking } if succeeded => {
                self.windows.stream_created(stream, non_blocking)
            }
            _ => {}
        });
    }

    /// Some block is watched.
    pub(crate) fn is_watching(&self) -> bool {
        self.windows.is_watched(0, usize::MAX)
    }

    /// A system call is about to be given memory of the program; `writes`: to write to it.
    pub(crate) fn system_call(&self, address: usize, bytes: usize, writes: bool, site: Site) -> Vec<Loan> {
        contain(Vec::new(), || self.windows.system_call(&Means, address, bytes, writes, site))
    }

    /// It has returned.
    pub(crate) fn system_call_done(&self, loans: &[Loan]) {
        contain((), || self.windows.system_call_done(loans));
    }

    /// A CUDA call that is no copy of one block is about to be given memory of the program.
    pub(crate) fn cuda_call(&self, address: usize, bytes: usize, writes: bool, site: Site) {
        contain((), || self.windows.cuda_call(&Means, address, bytes, writes, site));
    }

    /// The memory is given to something that can't be watched. True if it was watched until now.
    pub(crate) fn out_of_sight(&self, address: usize, bytes: usize, site: Site) -> bool {
        contain(false, || self.windows.out_of_sight(&Means, address, bytes, site))
    }

    /// No memory can be watched from here on.
    pub(crate) fn all_out_of_sight(&self, site: Option<Site>) {
        contain((), || self.windows.all_out_of_sight(&Means, site));
    }

    /// A fault at `address`; true if it was ours and the program can go on. For a signal handler.
    pub(crate) fn fault(&self, address: usize, access: Access, site: Site) -> bool {
        match self.windows.touched(address, access, site) {
            Fault::NotOurs => false,
            Fault::Reopen { start, bytes, protection } => protect(start, bytes, protection),
        }
    }
}
