//! The functions that kernels call. A call that waits leaves its request with the lane and yields to the runner.

use crate::printf;
use corosensei::Yielder;
use std::ffi::CStr;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use uma_abi::{Services, ThreadContext};

/// What a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Nothing: it runs.
    None,
    Barrier {
        op: u32,
        predicate: bool,
    },
    Warp(WarpRequest),
    Trap {
        message: Option<String>,
    },
}

/// An operation that the lanes of a warp do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WarpRequest {
    Shuffle { mask: u32, mode: u32, value: u32, b: u32, c: u32 },
    Ballot { mask: u32, predicate: bool },
    Sync { mask: u32 },
    ActiveMask { site: u32 },
}

/// A thread (or a block that runs as one) as its services see it: [`ThreadContext::runner`] points to it.
pub(crate) struct Lane {
    /// Set when its coroutine starts.
    pub(crate) yielder: *const Yielder<(), ()>,
    pub(crate) request: Request,
    pub(crate) response: u64,
}

impl Lane {
    pub(crate) fn new() -> Lane {
        Lane { yielder: std::ptr::null(), request: Request::None, response: 0 }
    }
}

/// Takes the text that kernels print.
pub(crate) type Sink = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// The service table with what the services need, in one allocation: a service finds the rest through
/// [`ThreadContext::services`].
#[repr(C)]
pub(crate) struct ServiceTable {
    services: Services,
    sink: Sink,
}

impl ServiceTable {
    pub(crate) fn new(sink: Sink) -> Box<ServiceTable> {
        start();
        let services = Services { barrier, shuffle, ballot, sync_warp, active_mask, vprintf, trap, clock };
        Box::new(ServiceTable { services, sink })
    }

    pub(crate) fn as_services(&self) -> *const Services {
        std::ptr::from_ref(self).cast()
    }
}

/// Leaves the request with the lane and lets others run; the answer.
///
/// # Safety
/// `context` belongs to a thread that runs on its coroutine.
unsafe fn wait(context: *mut ThreadContext, request: Request) -> u64 {
    // SAFETY: the runner set `runner` to the lane of this thread, and `yielder` when the coroutine started; both live until it ends.
    unsafe {
        let lane = (*context).runner.cast::<Lane>();
        (*lane).request = request;
        (*(*lane).yielder).suspend(());
        (*lane).response
    }
}

unsafe extern "C" fn barrier(context: *mut ThreadContext, op: u32, predicate: u32) -> u32 {
    // SAFETY: only kernels call services, with their own context.
    unsafe { wait(context, Request::Barrier { op, predicate: predicate != 0 }) as u32 }
}

unsafe extern "C" fn shuffle(context: *mut ThreadContext, mask: u32, mode: u32, value: u32, b: u32, c: u32) -> u64 {
    // SAFETY: as above.
    unsafe { wait(context, Request::Warp(WarpRequest::Shuffle { mask, mode, value, b, c })) }
}

unsafe extern "C" fn ballot(context: *mut ThreadContext, mask: u32, predicate: u32) -> u32 {
    // SAFETY: as above.
    unsafe { wait(context, Request::Warp(WarpRequest::Ballot { mask, predicate: predicate != 0 })) as u32 }
}

unsafe extern "C" fn sync_warp(context: *mut ThreadContext, mask: u32) {
    // SAFETY: as above.
    unsafe { wait(context, Request::Warp(WarpRequest::Sync { mask })) };
}

unsafe extern "C" fn active_mask(context: *mut ThreadContext, site: u32) -> u32 {
    // SAFETY: as above.
    unsafe { wait(context, Request::Warp(WarpRequest::ActiveMask { site })) as u32 }
}

unsafe extern "C" fn vprintf(context: *mut ThreadContext, format: *const u8, arguments: *const u8) -> i32 {
    // SAFETY: `services` is the first field of a ServiceTable; the kernel's front end made the format and packed its arguments.
    unsafe {
        let sink = &(*(*context).services.cast::<ServiceTable>()).sink;
        let (text, count) = printf::format(CStr::from_ptr(format.cast()), arguments);
        sink(&text);
        count
    }
}

unsafe extern "C" fn trap(context: *mut ThreadContext, message: *const u8) -> ! {
    let message = (!message.is_null()).then(|| {
        // SAFETY: not null, so a C string.
        unsafe { CStr::from_ptr(message.cast()) }.to_string_lossy().into_owned()
    });
    // SAFETY: as above. The runner does not resume a thread that trapped.
    unsafe { wait(context, Request::Trap { message }) };
    std::process::abort()
}

fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

unsafe extern "C" fn clock() -> u64 {
    start().elapsed().as_nanos() as u64
}
