//! fork: the child has one thread, no writer, and a trace of its own; nothing is merged or watched in it any more.
//!
//! The locks of the library are held while the process is copied, so that the child inherits none in the middle of something. They are
//! taken in the order in which the code takes them.

use std::any::Any;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use echo_dr_format::event::{Call, Setup};

use crate::session::{self, Session};
use crate::thread::Token;
use crate::{exit, fault, first, pages, recorder, tracked, validate};

/// What is held, from before the fork until after it; the thread that forks gives it from one handler to the next.
static HELD: AtomicPtr<Vec<Box<dyn Any>>> = AtomicPtr::new(std::ptr::null_mut());
/// The process that the locks were taken in.
static PARENT: AtomicU32 = AtomicU32::new(0);

/// Asks the C library to call the handlers at every fork.
pub(crate) fn watch() {
    // SAFETY: the handlers live as long as the library, which is never unloaded.
    unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) };
}

unsafe extern "C" fn before() {
    // A fork matters to the blocks that are there: without any, nothing is told.
    if recorder::has_events()
        && let (Some(Session::Record(record)), Some(token)) = (session::get(), Token::outermost())
    {
        record.event(&token, "fork", Call::Setup { what: Setup::Fork });
    }
    PARENT.store(std::process::id(), Ordering::Relaxed);
    let held: Vec<Box<dyn Any>> =
        vec![Box::new(fault::hold()), Box::new(tracked::hold()), Box::new(pages::hold()), Box::new(recorder::hold())];
    HELD.store(Box::into_raw(Box::new(held)), Ordering::Release);
}

fn release() {
    let held = HELD.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if !held.is_null() {
        // SAFETY: the pointer is the box of `before`, taken back once.
        drop(unsafe { Box::from_raw(held) });
    }
}

unsafe extern "C" fn after_in_parent() {
    release();
}

unsafe extern "C" fn after_in_child() {
    release();
    first::is_child();
    exit::this_process();
    recorder::forked(PARENT.load(Ordering::Relaxed));
    match session::get() {
        Some(Session::Record(_)) => validate::forked(),
        Some(Session::Merge(merge)) => merge.unifier().forked(),
        None => {}
    }
}
