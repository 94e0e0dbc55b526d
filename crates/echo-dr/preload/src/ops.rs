//! What the rows of the table ask for: an observed call, told to the mode of this run in the vocabulary of the trace.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use echo_dr_format::event::{Call, DeviceKind, Setup, Stream};

use crate::abi::{CudaExtent, CudaPitched, Transfer};
use crate::session::{self, Session};
use crate::table::Hook;
use crate::thread::Token;
use crate::{exit, imports};

/// Flag of streams that do not wait for the legacy default stream, nor it for them: `cudaStreamNonBlocking`, `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;

/// Makes the real call. (Not a type parameter: hundreds of functions of the table would each have their own copy of everything here.)
pub(crate) type Forward<'a> = &'a mut dyn FnMut() -> c_int;

/// A call of the program that no other hooked call is around.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed<'t> {
    /// This thread's token.
    pub(crate) token: &'t Token,
    /// Which function.
    pub(crate) hook: &'static Hook,
}

/// What to do with a call that the session can't be told of: it isn't there yet, or the library is off.
macro_rules! session {
    ($real:ident) => {
        match session::get() {
            Some(session) => session,
            None => return $real(),
        }
    };
}

impl<'t> Observed<'t> {
    /// A call; the first one is CUDA's first use.
    pub(crate) fn new(token: &'t Token, hook: &'static Hook) -> Self {
        static USED: AtomicBool = AtomicBool::new(false);
        if !USED.load(Ordering::Relaxed)
            && !USED.swap(true, Ordering::Relaxed)
            && let Some(Session::Record(record)) = session::get()
        {
            record.event(token, hook.name, Call::Setup { what: Setup::FirstUse });
            imports::tell(token, record);
        }
        Self { token, hook }
    }

    /// The stream that a handle names in this function.
    pub(crate) fn stream(&self, handle: usize) -> Stream {
        match handle {
            0 if self.hook.per_thread => Stream::PER_THREAD,
            0 | 1 => Stream::LEGACY,
            handle => Stream(handle as u64),
        }
    }

    /// A call whose meaning is known before it is made.
    pub(crate) fn plain(&self, call: Call, real: Forward<'_>) -> c_int {
        match session!(real) {
            Session::Record(record) => record.plain(self, call, real),
            Session::Merge(merge) => merge.plain(self, call, real),
        }
    }

    /// A call whose meaning is known when it has succeeded.
    fn after(&self, real: Forward<'_>, call: &mut dyn FnMut() -> Option<Call>) -> c_int {
        match session!(real) {
            Session::Record(record) => record.after(self, real, call),
            Session::Merge(merge) => merge.after(self, real, call),
        }
    }

    /// Device memory.
    pub(crate) fn device_alloc(&self, out: *mut usize, bytes: usize, kind: DeviceKind, real: Forward<'_>) -> c_int {
        match session!(real) {
            Session::Record(record) => record.device_alloc(self, out, bytes, kind, real),
            Session::Merge(merge) if kind == DeviceKind::Plain => merge.device_alloc(self, out, bytes, real),
            Session::Merge(_) => real(),
        }
    }

    /// Device memory in rows.
    pub(crate) fn pitched_alloc(&self, out: *mut usize, pitch: *mut usize, height: usize, real: Forward<'_>) -> c_int {
        self.after(real, &mut || {
            // SAFETY: the call has succeeded, so it has written both.
            let (ptr, pitch) = unsafe { (*out, *pitch) };
            Some(Call::DeviceAlloc {
                ptr: ptr as u64,
                bytes: pitch.saturating_mul(height) as u64,
                kind: DeviceKind::Pitched,
            })
        })
    }

    /// Device memory in planes of rows.
    pub(crate) fn pitched_alloc_3d(&self, out: *mut CudaPitched, extent: CudaExtent, real: Forward<'_>) -> c_int {
        self.after(real, &mut || {
            // SAFETY: the call has succeeded, so it has written it.
            let made = unsafe { *out };
            let bytes = made.bytes(extent) as u64;
            Some(Call::DeviceAlloc { ptr: made.address as u64, bytes, kind: DeviceKind::Pitched })
        })
    }

    /// Page-locked host memory.
    pub(crate) fn page_locked_alloc(&self, out: *mut usize, bytes: usize, real: Forward<'_>) -> c_int {
        match session!(real) {
            Session::Record(record) => record.page_locked_alloc(self, out, bytes, real),
            Session::Merge(merge) => merge.page_locked_alloc(self, out, bytes, real),
        }
    }

    /// The end of device memory.
    pub(crate) fn device_free(&self, address: usize, asynchronous: bool, real: Forward<'_>) -> c_int {
        if address == 0 {
            return real();
        }
        match session!(real) {
            Session::Record(record) => record.device_free(self, address, asynchronous, real),
            Session::Merge(merge) => merge.device_free(self, address, asynchronous, real),
        }
    }

    /// The end of page-locked host memory.
    pub(crate) fn page_locked_free(&self, address: usize, real: Forward<'_>) -> c_int {
        if address == 0 {
            return real();
        }
        match session!(real) {
            Session::Record(record) => record.page_locked_free(self, address, real),
            Session::Merge(merge) => merge.page_locked_free(self, address, real),
        }
    }

    /// A copy; without a stream it is one of the functions that name none and return when it is done.
    pub(crate) fn copy(&self, transfer: Transfer, stream: Option<usize>, real: Forward<'_>) -> c_int {
        let asynchronous = stream.is_some();
        let stream = self.stream(stream.unwrap_or(0));
        match session!(real) {
            Session::Record(record) => record.copy(self, transfer, stream, asynchronous, real),
            Session::Merge(merge) => merge.copy(self, transfer, stream, asynchronous, real),
        }
    }

    /// A copy whose parameters are a structure.
    pub(crate) fn copy_of(&self, transfer: Option<Transfer>, stream: Option<usize>, real: Forward<'_>) -> c_int {
        match transfer {
            Some(transfer) => self.copy(transfer, stream, real),
            None => real(),
        }
    }

    /// Many copies at once: each is told as one of a shape that is never skipped, before the call; where the stream stands among the
    /// arguments depends on CUDA's version, and the default one stands for it.
    pub(crate) fn copy_batch(
        &self,
        dsts: *const usize,
        srcs: *const usize,
        sizes: *const usize,
        count: usize,
        real: Forward<'_>,
    ) -> c_int {
        if dsts.is_null() || srcs.is_null() || sizes.is_null() {
            return real();
        }
        let session = session!(real);
        for at in 0..count {
            // SAFETY: the program passes arrays of `count` elements.
            let (dst, src, bytes) = unsafe { (*dsts.add(at), *srcs.add(at), *sizes.add(at)) };
            session.queried(self, dst);
            session.queried(self, src);
            session.touched_by_call(self, dst, bytes, true);
            session.touched_by_call(self, src, bytes, false);
        }
        self.plain(Call::Launch { stream: self.stream(0) }, real)
    }

    /// Device memory is set.
    pub(crate) fn set(&self, dst: usize, bytes: usize, stream: usize, real: Forward<'_>) -> c_int {
        self.plain(Call::Set { dst: dst as u64, bytes: bytes as u64, stream: self.stream(stream) }, real)
    }

    /// Work for the GPU.
    pub(crate) fn launch(&self, stream: usize, real: Forward<'_>) -> c_int {
        self.plain(Call::Launch { stream: self.stream(stream) }, real)
    }

    /// A function of the host that a stream calls, or anything else that orders streams out of sight.
    pub(crate) fn host_function(&self, stream: usize, real: Forward<'_>) -> c_int {
        if let Some(validator) = crate::validate::get() {
            validator.host_function();
        }
        self.launch(stream, real)
    }

    /// A stream.
    pub(crate) fn stream_create(&self, out: *mut usize, flags: u32, real: Forward<'_>) -> c_int {
        self.after(real, &mut || {
            // SAFETY: the call has succeeded, so it has written it.
            let stream = Stream(unsafe { *out } as u64);
            Some(Call::StreamCreate { stream, non_blocking: flags & NON_BLOCKING != 0 })
        })
    }

    /// The device is reset, or a context ends.
    pub(crate) fn reset(&self, real: Forward<'_>) -> c_int {
        match session!(real) {
            Session::Record(_) => self.plain(Call::Setup { what: Setup::Reset }, real),
            Session::Merge(merge) => merge.reset(self, real),
        }
    }

    /// A context that the program holds is let go: if it was held by nothing else, its memory ends. As the program ends CUDA's runtime lets go too.
    pub(crate) fn release(&self, real: Forward<'_>) -> c_int {
        if exit::is_leaving() { real() } else { self.reset(real) }
    }

    /// What becomes part of a graph is copied when that is launched, which no call tells.
    pub(crate) fn graph_copy(&self, transfer: Option<Transfer>, real: Forward<'_>) -> c_int {
        match transfer {
            Some(transfer) => self.queries(&[transfer.dst, transfer.src], real),
            None => real(),
        }
    }

    /// A context is made, and is the thread's from then on.
    pub(crate) fn context_create(&self, real: Forward<'_>) -> c_int {
        let code = self.plain(Call::Setup { what: Setup::BeforeInitialisation }, real);
        if code == 0 {
            self.context_change(&mut || 0);
        }
        code
    }

    /// A context ends.
    pub(crate) fn context_destroy(&self, context: usize, real: Forward<'_>) -> c_int {
        let code = self.reset(real);
        if code == 0 {
            crate::device::context_ended(context);
        }
        code
    }

    /// The thread's context is another one: told as its device, where that is another one, or as a device of its own where it is the second of one.
    pub(crate) fn context_change(&self, real: Forward<'_>) -> c_int {
        self.after(real, &mut || crate::device::changed().map(|device| Call::SetDevice { device }))
    }

    /// Questions about addresses, or anything else that a merged buffer would answer otherwise.
    pub(crate) fn queries(&self, addresses: &[usize], real: Forward<'_>) -> c_int {
        let session = session!(real);
        addresses.iter().for_each(|&address| session.queried(self, address));
        real()
    }
}
