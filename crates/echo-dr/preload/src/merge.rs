//! Optimise: the engine decides, and this does what it says with the real functions.

use std::ffi::{c_int, c_void};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use echo_dr_engine::Unifier;
use echo_dr_engine::calls::{
    AllocDecision, Copy, CopyDecision, DeviceAlloc, FreeDecision, HostAlloc, ReallocDecision, ResetDecision, Waiting,
};
use echo_dr_format::event::{Call, DeviceKind, HostKind, Stream, WaitFor};
use echo_dr_format::plan::Plan;
use echo_dr_format::reason::{Reason as _, Refusal};
use echo_dr_format::site::Site;
use echo_rt::DeviceFacts;

use crate::abi::Transfer;
use crate::contain::contain;
use crate::device::{self, Real};
use crate::heap::Wanted;
use crate::ops::{Forward, Observed};
use crate::recorder::{self, Entry};
use crate::sites::Registers;
use crate::thread::{self, Token};
use crate::tracked::{self, Block, Origin};
use crate::{local, say, sys};

/// Passages of the loop site that are remembered: a program that passes it more often is measured by its first million iterations.
const TIMES: usize = 1 << 20;

/// Page-locked memory begins at a page. CUDA does not promise it, but programs read files into it that must (`O_DIRECT`).
const PAGE_LOCKED_ALIGNMENT: usize = 4096;

/// A merging session.
pub(crate) struct Merge {
    plan: Plan,
    path: PathBuf,
    unifier: Unifier,
    /// The plan's word on this device, once CUDA has been asked what it is.
    admitted: OnceLock<Result<DeviceFacts, Option<Refusal>>>,
    /// When the loop site was passed, where that is asked for.
    times: Option<Mutex<Vec<u64>>>,
    /// The run writes a trace.
    recorded: bool,
}

fn waited_for(waiting: Waiting) -> WaitFor {
    match waiting {
        Waiting::Device => WaitFor::Device,
        Waiting::Stream(stream) => WaitFor::Stream(stream),
    }
}

fn code_of(result: Result<(), echo_rt::CudaError>) -> c_int {
    result.map_or_else(|error| error.0, |()| 0)
}

/// What a function of CUDA that allocates does. `out` isn't null.
fn give(decision: AllocDecision, out: *mut usize, real: Forward<'_>) -> c_int {
    match decision {
        AllocDecision::Forward => real(),
        AllocDecision::Use { address, .. } => {
            // SAFETY: the program passes a place for the address, which isn't null.
            unsafe { *out = address };
            0
        }
    }
}

impl Merge {
    pub(crate) fn new(plan: Plan, path: PathBuf, with_times: bool, recorded: bool) -> Self {
        let unifier = Unifier::new(&plan);
        let times = with_times.then(|| Mutex::new(Vec::with_capacity(TIMES)));
        Self { plan, path, unifier, admitted: OnceLock::new(), times, recorded }
    }

    /// The engine, for its counters.
    pub(crate) fn unifier(&self) -> &Unifier {
        &self.unifier
    }

    /// Why the plan isn't followed on this device.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        self.admitted.get()?.as_ref().err()?.clone()
    }

    /// When the loop site was passed.
    pub(crate) fn times(&self) -> Option<Vec<u64>> {
        self.times.as_ref().map(|times| times.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    #[inline(never)]
    fn site(&self, token: &Token) -> Site {
        let local = local::mine(token);
        if self.recorded {
            local.announced_site(token, Registers::here())
        } else {
            local.site(token, Registers::here()).0
        }
    }

    /// The time for [`Self::note`]; nothing where the run is not recorded.
    fn now(&self) -> u64 {
        if self.recorded { recorder::time() } else { 0 }
    }

    /// Puts a call that went well into the trace, where there is one.
    fn note(&self, token: &Token, begin: u64, site: Site, api: &'static str, call: Call) {
        if self.recorded {
            let took = recorder::time().saturating_sub(begin);
            recorder::push(token, Entry { time: begin, took, site, api, call });
        }
    }

    /// What the device is, if the plan was made for it.
    fn facts(&self, token: &Token) -> Option<DeviceFacts> {
        let admit = || {
            let Some(identity) = device::identity(token) else { return Err(None) };
            crate::exit::watch_the_end();
            match self.plan.context.admits_device(identity) {
                Ok(()) => Ok(identity.attributes.into()),
                Err(refusal) => {
                    static SAY: say::Once = say::Once::new();
                    SAY.say(&format!(
                        "the plan {} is not used, the program runs unchanged: {refusal} ({})",
                        self.path.display(),
                        refusal.number()
                    ));
                    Err(Some(refusal))
                }
            }
        };
        self.admitted.get_or_init(admit).as_ref().ok().copied()
    }

    pub(crate) fn host_alloc(&self, token: &Token, wanted: Wanted, real: impl FnOnce() -> *mut c_void) -> *mut c_void {
        if !self.unifier.wants_size(wanted.bytes) {
            return real();
        }
        let Wanted { bytes, align, zeroed, api } = wanted;
        let mut site = Site(0);
        let decision = sys::keeping_errno(|| {
            contain(AllocDecision::Forward, || {
                let Some(cuda) = Real::current() else { return AllocDecision::Forward };
                site = self.site(token);
                let thread = thread::number();
                let call = HostAlloc { site, bytes, align, zeroed, page_locked: false, thread };
                self.unifier.host_alloc(&cuda, || self.facts(token), call)
            })
        });
        match decision {
            AllocDecision::Forward => real(),
            AllocDecision::Use { address, fill_zero } => {
                tracked::insert(address, Block { bytes, origin: Origin::Merged });
                let block = address as *mut c_void;
                if fill_zero {
                    // SAFETY: p has `bytes` bytes, the host may use it, and the program does not have its address yet.
                    unsafe { std::ptr::write_bytes(block.cast::<u8>(), 0, bytes) };
                }
                let kind = if zeroed { HostKind::Zeroed } else { HostKind::Heap };
                let align = if align > 1 { align as u64 } else { 0 };
                let call = Call::HostAlloc { ptr: address as u64, bytes: bytes as u64, align, kind };
                sys::keeping_errno(|| self.note(token, self.now(), site, api, call));
                block
            }
        }
    }

    pub(crate) fn host_free(&self, token: Option<&Token>, address: usize) {
        let Some(cuda) = Real::current() else { return };
        if let Some(token) = token {
            self.note(token, self.now(), Site(0), "free", Call::HostFree { ptr: address as u64 });
        }
        // Forwarding would give p to the program's allocator; the block isn't one of its.
        contain(FreeDecision::Forward, || self.unifier.host_free(&cuda, address));
    }

    pub(crate) fn page_locked_alloc(
        &self,
        call: &Observed<'_>,
        out: *mut usize,
        bytes: usize,
        real: Forward<'_>,
    ) -> c_int {
        if out.is_null() || !self.unifier.wants_size(bytes) {
            return real();
        }
        let cuda = Real::of(call.hook.layer);
        let (site, thread) = (self.site(call.token), thread::number());
        let wanted = HostAlloc { site, bytes, align: PAGE_LOCKED_ALIGNMENT, zeroed: false, page_locked: true, thread };
        let decide = || self.unifier.host_alloc(&cuda, || self.facts(call.token), wanted);
        let code = give(contain(AllocDecision::Forward, decide), out, real);
        if code == 0 {
            // SAFETY: the address has been written, by this function or by the call that succeeded.
            let ptr = unsafe { *out } as u64;
            let block = Call::HostAlloc { ptr, bytes: bytes as u64, align: 0, kind: HostKind::PageLocked };
            self.note(call.token, self.now(), site, call.hook.name, block);
        }
        code
    }

    pub(crate) fn page_locked_free(&self, call: &Observed<'_>, address: usize, real: Forward<'_>) -> c_int {
        let begin = self.now();
        let cuda = Real::of(call.hook.layer);
        let code = match contain(FreeDecision::Forward, || self.unifier.page_locked_free(&cuda, address)) {
            FreeDecision::Forward => real(),
            FreeDecision::Done(result) => code_of(result),
        };
        if code == 0 {
            let freed = Call::HostFree { ptr: address as u64 };
            self.note(call.token, begin, Site(0), call.hook.name, freed);
        }
        code
    }

    /// The program asks what an address is, or does something with it that is for memory of another kind than p.
    pub(crate) fn queried(&self, address: usize) {
        contain((), || self.unifier.queried(address));
    }

    pub(crate) fn realloc(&self, address: usize) -> ReallocDecision {
        contain(ReallocDecision::Forward, || self.unifier.realloc(address))
    }

    pub(crate) fn device_alloc(&self, call: &Observed<'_>, out: *mut usize, bytes: usize, real: Forward<'_>) -> c_int {
        if out.is_null() || !self.unifier.wants_size(bytes) {
            return real();
        }
        let cuda = Real::of(call.hook.layer);
        let site = self.site(call.token);
        let wanted = DeviceAlloc { site, bytes, thread: thread::number() };
        let decide = || self.unifier.device_alloc(&cuda, || self.facts(call.token), wanted);
        let code = give(contain(AllocDecision::Forward, decide), out, real);
        if code == 0 {
            // SAFETY: the address has been written, by this function or by the call that succeeded.
            let ptr = unsafe { *out } as u64;
            let block = Call::DeviceAlloc { ptr, bytes: bytes as u64, kind: DeviceKind::Plain };
            self.note(call.token, self.now(), site, call.hook.name, block);
        }
        code
    }

    pub(crate) fn device_free(
        &self,
        call: &Observed<'_>,
        address: usize,
        asynchronous: bool,
        real: Forward<'_>,
    ) -> c_int {
        let begin = self.now();
        let decide = || self.unifier.device_free(&Real::of(call.hook.layer), address);
        let code = match contain(FreeDecision::Forward, decide) {
            FreeDecision::Forward => real(),
            FreeDecision::Done(result) => code_of(result),
        };
        if code == 0 {
            let freed = Call::DeviceFree { ptr: address as u64, asynchronous };
            self.note(call.token, begin, Site(0), call.hook.name, freed);
        }
        code
    }

    pub(crate) fn copy(
        &self,
        call: &Observed<'_>,
        transfer: Transfer,
        stream: Stream,
        asynchronous: bool,
        real: Forward<'_>,
    ) -> c_int {
        let Transfer { dst, src, extent: bytes, kind, shape, .. } = transfer;
        let is_near = self.unifier.is_near(dst) || self.unifier.is_near(src);
        let begin = self.now();
        let site = if is_near || self.times.is_some() || self.recorded { self.site(call.token) } else { Site(0) };
        self.stamp(site);
        let copy = Copy { site, dst, src, bytes, kind, stream, asynchronous, shape };
        let cuda = Real::of(call.hook.layer);
        let token = self.unifier.waiting();
        let decision = if is_near {
            contain(CopyDecision::Forward, || self.unifier.copy(&cuda, &copy))
        } else {
            CopyDecision::Forward
        };
        let code = match decision {
            CopyDecision::Skip => 0,
            CopyDecision::SkipThenWait(waiting) => self.wait(&cuda, waiting),
            CopyDecision::Forward | CopyDecision::ForwardThenWait(_) => {
                let code = real();
                if code != 0 {
                    return code;
                }
                self.unifier.copied(token, &copy);
                match decision {
                    CopyDecision::ForwardThenWait(waiting) => self.wait(&cuda, waiting),
                    _ => 0,
                }
            }
        };
        if code == 0 {
            let (dst, src, bytes) = (dst as u64, src as u64, bytes as u64);
            let what = match decision {
                CopyDecision::Skip => Call::Skipped { bytes, wait: None },
                CopyDecision::SkipThenWait(waiting) => Call::Skipped { bytes, wait: Some(waited_for(waiting)) },
                _ => Call::Copy { dst, src, bytes, kind, stream, asynchronous, shape },
            };
            self.note(call.token, begin, site, call.hook.name, what);
        }
        code
    }

    fn wait(&self, cuda: &Real, waiting: Waiting) -> c_int {
        let token = self.unifier.waiting();
        let on = waited_for(waiting);
        let code = match waiting {
            Waiting::Device => cuda.wait_device(),
            Waiting::Stream(stream) => cuda.wait_stream(stream),
        };
        if code == 0 {
            self.unifier.waited(token, on);
        }
        code
    }

    fn stamp(&self, site: Site) {
        if let Some(times) = &self.times
            && self.plan.loop_site == Some(site)
        {
            let mut times = times.lock().unwrap_or_else(PoisonError::into_inner);
            if times.len() < TIMES {
                times.push(sys::now());
            }
        }
    }

    pub(crate) fn plain(&self, call: &Observed<'_>, what: Call, real: Forward<'_>) -> c_int {
        let begin = self.now();
        let code = self.followed(what, real);
        if code == 0 {
            self.note(call.token, begin, Site(0), call.hook.name, what);
        }
        code
    }

    /// Makes a call that is never changed, and tells the engine.
    fn followed(&self, what: Call, real: Forward<'_>) -> c_int {
        match what {
            Call::Launch { stream } => {
                let code = real();
                // Told of a failed launch too: a sticky error comes from work that began.
                self.unifier.launched(stream);
                code
            }
            Call::HostRegister { ptr, .. } => {
                self.queried(ptr as usize);
                real()
            }
            Call::Set { dst, stream, .. } => {
                contain((), || self.unifier.set(dst as usize));
                let code = real();
                self.unifier.launched(stream);
                code
            }
            Call::StreamWait { stream, .. } => {
                let code = real();
                self.unifier.joined(stream);
                code
            }
            Call::Wait { on } => {
                let token = self.unifier.waiting();
                let code = real();
                if code == 0 {
                    self.unifier.waited(token, on);
                }
                code
            }
            Call::EventRecord { event, stream } => {
                let token = self.unifier.waiting();
                let code = real();
                if code == 0 {
                    self.unifier.recorded(token, event, stream);
                }
                code
            }
            Call::Capture { begin, .. } => {
                /// `cudaErrorIllegalState`: the stream was not being captured, so nothing has ended.
                const NOT_CAPTURING: c_int = 401;
                if begin {
                    self.unifier.capture(true);
                }
                let code = real();
                if if begin { code != 0 } else { code != NOT_CAPTURING } {
                    self.unifier.capture(false);
                }
                code
            }
            Call::SetDevice { device } => {
                let code = real();
                if code == 0 {
                    self.unifier.device_set(device);
                }
                code
            }
            _ => real(),
        }
    }

    pub(crate) fn after(
        &self,
        call: &Observed<'_>,
        real: Forward<'_>,
        what: &mut dyn FnMut() -> Option<Call>,
    ) -> c_int {
        let code = real();
        if code == 0
            && let Some(what) = what()
        {
            match what {
                Call::StreamCreate { stream, non_blocking } => self.unifier.stream_created(stream, non_blocking),
                Call::SetDevice { device } => self.unifier.device_set(device),
                _ => {}
            }
            self.note(call.token, self.now(), Site(0), call.hook.name, what);
        }
        code
    }

    pub(crate) fn reset(&self, call: &Observed<'_>, real: Forward<'_>) -> c_int {
        let cuda = Real::of(call.hook.layer);
        match contain(ResetDecision::Forward, || self.unifier.reset(&cuda)) {
            ResetDecision::Forward => real(),
            ResetDecision::WaitInstead => cuda.wait_device(),
        }
    }
}
