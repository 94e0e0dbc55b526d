//! What a thread has in Echo, made when it is first observed. A thread that ends leaves it to the next one that begins: nothing is freed, so
//! whoever writes the trace may look at all of them at any time.

use std::cell::{Cell, UnsafeCell};
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use echo_dr_format::site::Site;

use crate::contain::contain;
use crate::recorder::{self, Entry};
use crate::ring::Ring;
use crate::sites::{Frames, Registers, Walker};
use crate::thread::Token;

/// Sites that a thread remembers to have announced; more are looked up in the shared set.
const ANNOUNCED: usize = 256;

/// A thread's part.
pub(crate) struct Local {
    /// Events on their way to the trace.
    pub(crate) ring: Ring<Entry>,
    /// The thread's number in the trace.
    pub(crate) number: AtomicU32,
    in_use: AtomicBool,
    next: AtomicPtr<Local>,
    /// For the owning thread.
    walker: UnsafeCell<Walker>,
    /// For the owning thread.
    announced: UnsafeCell<[u64; ANNOUNCED]>,
}

// SAFETY: the ring is made for two threads; the two cells are touched by the owning thread only, under its token.
unsafe impl Sync for Local {}

static ALL: AtomicPtr<Local> = AtomicPtr::new(std::ptr::null_mut());
static THREADS: AtomicU32 = AtomicU32::new(0);
static AT_THREAD_EXIT: OnceLock<libc::pthread_key_t> = OnceLock::new();

thread_local! {
    static MINE: Cell<Option<&'static Local>> = const { Cell::new(None) };
}

/// All there are.
pub(crate) fn all() -> impl Iterator<Item = &'static Local> {
    let mut next = ALL.load(Ordering::Acquire);
    std::iter::from_fn(move || {
        // SAFETY: elements of the list are never freed.
        let local: &'static Local = unsafe { next.as_ref() }?;
        next = local.next.load(Ordering::Relaxed);
        Some(local)
    })
}

/// This thread's.
pub(crate) fn mine(_: &Token) -> &'static Local {
    if let Some(local) = MINE.with(Cell::get) {
        return local;
    }
    let local = take_over().unwrap_or_else(create);
    local.number.store(THREADS.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    MINE.with(|mine| mine.set(Some(local)));
    give_back_at_exit();
    local
}

fn take_over() -> Option<&'static Local> {
    all().find(|local| {
        // What its last owner recorded still has that thread's number.
        local.ring.is_empty()
            && local.in_use.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    })
}

fn create() -> &'static Local {
    let local: &'static Local = Box::leak(Box::new(Local {
        ring: Ring::new(recorder::ring_capacity()),
        number: AtomicU32::new(0),
        in_use: AtomicBool::new(true),
        next: AtomicPtr::new(std::ptr::null_mut()),
        walker: UnsafeCell::new(Walker::new()),
        announced: UnsafeCell::new([0; ANNOUNCED]),
    }));
    let mut head = ALL.load(Ordering::Relaxed);
    loop {
        local.next.store(head, Ordering::Relaxed);
        match ALL.compare_exchange_weak(
            head,
            std::ptr::from_ref(local).cast_mut(),
            Ordering::Release,
            Ordering::Relaxed,
        ) {
            Ok(_) => return local,
            Err(now) => head = now,
        }
    }
}

/// The thread's end gives its part back. A key's destructor needs no allocation, unlike one of the language's.
fn give_back_at_exit() {
    unsafe extern "C" fn give_back(_: *mut c_void) {
        if let Some(local) = MINE.with(Cell::take) {
            local.in_use.store(false, Ordering::Release);
        }
    }
    let key = *AT_THREAD_EXIT.get_or_init(|| {
        let mut key = 0;
        // SAFETY: the key is this function's own and the destructor lives as long as the library, which is never unloaded.
        unsafe { libc::pthread_key_create(&raw mut key, Some(give_back)) };
        key
    });
    // SAFETY: any value but null makes the destructor run.
    unsafe { libc::pthread_setspecific(key, std::ptr::dangling::<u8>().cast()) };
}

/// In the child of a fork: the other threads are gone, and what all of them recorded is their process's to write.
pub(crate) fn forget_other_threads() {
    let mine = MINE.with(Cell::get);
    for local in all() {
        // SAFETY: the child has one thread, this one.
        while unsafe { local.ring.pop() }.is_some() {}
        if mine.is_none_or(|mine| !std::ptr::eq(mine, local)) {
            local.in_use.store(false, Ordering::Release);
        }
        // SAFETY: as above.
        unsafe { *local.announced.get() = [0; ANNOUNCED] };
    }
}

impl Local {
    /// The call site of the hooked call that this thread is in, its frames announced to the trace.
    pub(crate) fn announced_site(&self, token: &Token, start: Registers) -> Site {
        let (site, frames) = self.site(token, start);
        // SAFETY: the token is this thread's, and `self` is this thread's own part.
        let announced = unsafe { &mut *self.announced.get() };
        let slot = &mut announced[site.0 as usize % ANNOUNCED];
        if *slot != site.0 {
            *slot = site.0;
            // SAFETY: as above.
            recorder::announce(site, frames.addresses(), unsafe { &*self.walker.get() }.modules());
        }
        site
    }

    /// The call site of the hooked call that this thread is in.
    pub(crate) fn site(&self, _: &Token, start: Registers) -> (Site, Frames) {
        // SAFETY: the token is this thread's, and `self` is this thread's own part.
        let walker = unsafe { &mut *self.walker.get() };
        contain((Site(0), Frames::default()), || walker.walk(start))
    }
}
