//! Profile and validate: every call is made as the program asked for it, and recorded. In validation the windows of the plan's pairs are told
//! of it too, and the host blocks that they watch get pages of their own.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use echo_dr_format::event::{Call, DeviceKind, HostKind, Stream};
use echo_dr_format::site::Site;

use crate::abi::Transfer;
use crate::device::{self, Real};
use crate::heap::Wanted;
use crate::ops::{Forward, Observed};
use crate::recorder::{self, Entry};
use crate::sites::Registers;
use crate::thread::Token;
use crate::tracked::{self, Block, Origin};
use crate::validate::Validator;
use crate::{local, pages, sys};

/// No site: where a call is does not matter for frees and waits.
const NOWHERE: Site = Site(0);

/// A recording session.
pub(crate) struct Record {
    threshold: usize,
    validator: Option<&'static Validator>,
    device_told: AtomicBool,
}

/// When a call began, and how long it took.
struct Timed {
    begin: u64,
    code: c_int,
    took: u64,
}

impl Record {
    pub(crate) fn new(threshold: usize, validator: Option<&'static Validator>) -> Self {
        Self { threshold, validator, device_told: AtomicBool::new(false) }
    }

    /// An event that is no call of the table, or is told before its call.
    pub(crate) fn event(&self, token: &Token, api: &'static str, call: Call) {
        recorder::push(token, Entry { time: recorder::time(), took: 0, site: NOWHERE, api, call });
    }

    #[inline(never)]
    fn site(&self, token: &Token) -> Site {
        local::mine(token).announced_site(token, Registers::here())
    }

    fn timed(&self, real: Forward<'_>) -> Timed {
        let begin = recorder::time();
        let code = real();
        let timed = Timed { begin, code, took: recorder::time().saturating_sub(begin) };
        if let Some(validator) = self.validator {
            validator.answered(code);
        }
        timed
    }

    fn push(&self, call: &Observed<'_>, timed: &Timed, site: Site, what: Call) {
        recorder::push(
            call.token,
            Entry { time: timed.begin, took: timed.took, site, api: call.hook.name, call: what },
        );
    }

    /// The device is known when CUDA has done something.
    fn tell_device(&self, token: &Token) {
        if self.device_told.load(Ordering::Relaxed) || self.device_told.swap(true, Ordering::Relaxed) {
            return;
        }
        crate::exit::watch_the_end();
        if let Some(identity) = device::identity(token) {
            recorder::push_other(echo_dr_format::trace::Record::Device(identity.clone()));
        }
    }

    pub(crate) fn plain(&self, call: &Observed<'_>, what: Call, real: Forward<'_>) -> c_int {
        let watch = self.validator.map(|validator| validator.before(what));
        let timed = self.timed(real);
        if timed.code == 0 {
            self.push(call, &timed, NOWHERE, what);
            if matches!(what, Call::Launch { .. } | Call::Wait { .. }) {
                self.tell_device(call.token);
            }
        }
        if let (Some(validator), Some(watch)) = (self.validator, watch) {
            validator.after(what, watch, timed.code == 0);
        }
        timed.code
    }

    pub(crate) fn after(
        &self,
        call: &Observed<'_>,
        real: Forward<'_>,
        what: &mut dyn FnMut() -> Option<Call>,
    ) -> c_int {
        let timed = self.timed(real);
        if timed.code == 0
            && let Some(what) = what()
        {
            let small = match what {
                Call::HostAlloc { bytes, .. } | Call::DeviceAlloc { bytes, .. } => bytes < self.threshold as u64,
                _ => false,
            };
            if !small {
                let site = match what {
                    Call::HostAlloc { .. } | Call::DeviceAlloc { .. } => self.site(call.token),
                    _ => NOWHERE,
                };
                // An address may have been another block's until now, so what begins a block is told with the time after the call.
                if let Some(validator) = self.validator {
                    validator.after(what, validator.before(what), true);
                }
                let time = Timed { begin: timed.begin + timed.took, ..timed };
                self.push(call, &time, site, what);
            }
        }
        timed.code
    }

    pub(crate) fn device_alloc(
        &self,
        call: &Observed<'_>,
        out: *mut usize,
        bytes: usize,
        kind: DeviceKind,
        real: Forward<'_>,
    ) -> c_int {
        let code = self.after(call, real, &mut || {
            // SAFETY: the call has succeeded, so it has written it.
            Some(Call::DeviceAlloc { ptr: unsafe { *out } as u64, bytes: bytes as u64, kind })
        });
        if code == 0 {
            self.tell_device(call.token);
            if kind == DeviceKind::Plain
                && let Some(validator) = self.validator.filter(|validator| validator.wants_size(bytes))
            {
                // SAFETY: as above.
                validator.device_alloc(self.site(call.token), unsafe { *out }, bytes);
            }
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
        if let Some(validator) = self.validator {
            validator.device_free(address);
        }
        self.plain(call, Call::DeviceFree { ptr: address as u64, asynchronous }, real)
    }

    pub(crate) fn copy(
        &self,
        call: &Observed<'_>,
        transfer: Transfer,
        stream: Stream,
        asynchronous: bool,
        real: Forward<'_>,
    ) -> c_int {
        let site = self.site(call.token);
        let Transfer { dst, src, bytes, extent, kind, shape } = transfer;
        let copy = echo_dr_engine::calls::Copy { site, dst, src, bytes: extent, kind, stream, asynchronous, shape };
        let watch = self.validator.map(|validator| validator.copying(&copy));
        let timed = self.timed(real);
        if timed.code == 0 {
            let (dst, src, bytes) = (dst as u64, src as u64, bytes as u64);
            self.push(call, &timed, site, Call::Copy { dst, src, bytes, kind, stream, asynchronous, shape });
            self.tell_device(call.token);
        } else {
            // The addresses were not what the call asks for (the wrong way round, say), which merged they could be.
            for ptr in [dst as u64, src as u64] {
                self.push(call, &timed, NOWHERE, Call::Query { ptr });
            }
        }
        if let (Some(validator), Some(watch)) = (self.validator, watch) {
            validator.copied(&copy, watch, timed.code == 0);
        }
        timed.code
    }

    /// A function is about to be called that may touch memory in ways that aren't known.
    pub(crate) fn unknown_called(&self, token: &Token, name: &'static str) {
        self.event(token, name, Call::Unknown { unseen: false });
        if let Some(validator) = self.validator {
            validator.all_out_of_sight(Some(self.site(token)));
        }
    }

    /// A function that isn't a copy of one block is about to read or write memory of the program.
    pub(crate) fn call_with_memory(&self, token: &Token, address: usize, bytes: usize, writes: bool) {
        if let Some(validator) = self.validator.filter(|validator| validator.is_watched(address, bytes)) {
            validator.cuda_call(address, bytes, writes, self.site(token));
        }
    }

    /// Page-locked host memory. A block that is watched is none that the GPU can reach, so that a kernel which uses it without a copy fails; the real
    /// call is made all the same, for what else it does and for its errors.
    pub(crate) fn page_locked_alloc(
        &self,
        call: &Observed<'_>,
        out: *mut usize,
        bytes: usize,
        real: Forward<'_>,
    ) -> c_int {
        self.after(call, real, &mut || {
            if let Some(validator) = self.validator.filter(|validator| validator.wants_size(bytes)) {
                let site = self.site(call.token);
                if validator.is_host_site(site, bytes)
                    && let Some(address) = pages::allocate_locked(bytes)
                {
                    // SAFETY: the call has succeeded, so it has written it.
                    let made = unsafe { std::mem::replace(&mut *out, address) };
                    Real::of(call.hook.layer).free_page_locked(made);
                    validator.host_alloc(site, address, bytes);
                }
            }
            // SAFETY: as above.
            let ptr = unsafe { *out } as u64;
            Some(Call::HostAlloc { ptr, bytes: bytes as u64, align: 0, kind: HostKind::PageLocked })
        })
    }

    /// The end of page-locked memory.
    pub(crate) fn page_locked_free(&self, call: &Observed<'_>, address: usize, real: Forward<'_>) -> c_int {
        let what = Call::HostFree { ptr: address as u64 };
        if !pages::is_locked(address) {
            return self.plain(call, what, real);
        }
        if let Some(validator) = self.validator {
            validator.host_free(address);
        }
        let layer = Real::of(call.hook.layer);
        // The real function waits for the device, and so for what still uses the block.
        let code = self.plain(call, what, &mut || layer.wait_device());
        pages::release(address);
        code
    }

    /// Host memory of at least θ_min bytes.
    pub(crate) fn host_alloc(&self, token: &Token, wanted: Wanted, real: impl FnOnce() -> *mut c_void) -> *mut c_void {
        let mut site = None;
        if let Some(validator) = self.validator.filter(|validator| validator.wants_size(wanted.bytes)) {
            let here = self.site(token);
            site = Some(here);
            if validator.is_host_site(here, wanted.bytes) {
                if let Some(address) = pages::allocate(wanted.bytes, wanted.align) {
                    tracked::insert(address, Block { bytes: wanted.bytes, origin: Origin::Pages });
                    validator.host_alloc(here, address, wanted.bytes);
                    self.push_host_alloc(token, wanted, here, address);
                    return address as *mut c_void;
                }
                validator.host_unwatched(here, wanted.bytes);
            }
        }
        let block = real();
        if !block.is_null() {
            let address = block as usize;
            sys::keeping_errno(|| {
                tracked::insert(address, Block { bytes: wanted.bytes, origin: Origin::Program });
                self.push_host_alloc(token, wanted, site.unwrap_or_else(|| self.site(token)), address);
            });
        }
        block
    }

    fn push_host_alloc(&self, token: &Token, wanted: Wanted, site: Site, address: usize) {
        let kind = if wanted.zeroed { HostKind::Zeroed } else { HostKind::Heap };
        let align = if wanted.align > 1 { wanted.align as u64 } else { 0 };
        let call = Call::HostAlloc { ptr: address as u64, bytes: wanted.bytes as u64, align, kind };
        recorder::push(token, Entry { time: recorder::time(), took: 0, site, api: wanted.api, call });
    }

    /// A known host block is about to end.
    pub(crate) fn host_free(&self, token: &Token, address: usize, block: Block) {
        if let (Some(validator), Origin::Pages) = (self.validator, block.origin) {
            validator.host_free(address);
        }
        self.event(token, "free", Call::HostFree { ptr: address as u64 });
    }

    /// The pages of a known block are about to be read by Echo for the program.
    pub(crate) fn open(&self, address: usize) {
        if let Some(validator) = self.validator {
            validator.host_free(address);
        }
    }

    /// A block was resized by the program's own allocator; `old` is known if it was recorded.
    pub(crate) fn host_resized(&self, token: &Token, old: Option<usize>, address: usize, bytes: usize) {
        let ptr = address as u64;
        let is_large = bytes >= self.threshold;
        if is_large {
            tracked::insert(address, Block { bytes, origin: Origin::Program });
        }
        let bytes = bytes as u64;
        let call = match old {
            Some(old) if is_large => Call::HostRealloc { old: old as u64, ptr, bytes },
            Some(old) => Call::HostFree { ptr: old as u64 },
            None if is_large => Call::HostAlloc { ptr, bytes, align: 0, kind: HostKind::Heap },
            None => return,
        };
        recorder::push(token, Entry { time: recorder::time(), took: 0, site: self.site(token), api: "realloc", call });
    }
}
