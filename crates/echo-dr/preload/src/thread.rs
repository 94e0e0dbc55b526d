//! The depth of a thread in Echo, and the token that says "outermost".
//!
//! A CUDA call made by the program may call malloc, other CUDA calls and the driver. Only the outermost of them is an event of the
//! program; the token is its proof, and what observes a call asks for it by reference.
//!
//! Thread-local storage of a library that is loaded at the start is part of each thread's own block, made with the thread: an access never
//! allocates it. (Loaded by `dlopen` the library is of no use, and its storage would be allocated at the first access, by malloc.) What an access may
//! do is enlarge the thread's table of such blocks; see `malloc::LEAST`.

use std::cell::Cell;
use std::marker::PhantomData;

use crate::phase::Phase;

thread_local! {
    // Constant and without destructor, so an access is an address computation: no allocation, no registration.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// This thread is in the outermost hooked call, and hooks it reaches from here forward untouched. Ends with its scope.
#[derive(Debug)]
pub(crate) struct Token {
    // The depth is the thread's own.
    _not_send: PhantomData<*const ()>,
}

impl Token {
    /// The token, unless this thread already has one or the library isn't observing.
    pub(crate) fn outermost() -> Option<Self> {
        if !Phase::now().is_live() {
            return None;
        }
        Self::regardless_of_phase()
    }

    /// The token, unless this thread already has one.
    pub(crate) fn regardless_of_phase() -> Option<Self> {
        DEPTH.with(|depth| {
            if depth.get() != 0 {
                return None;
            }
            depth.set(1);
            Some(Self { _not_send: PhantomData })
        })
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(0));
    }
}

/// A number that no other live thread has.
pub(crate) fn number() -> u64 {
    DEPTH.with(|depth| std::ptr::from_ref(depth) as u64)
}

/// Marks this thread as Echo's own: nothing it does is ever an event of the program.
pub(crate) fn never_observe_this_thread() {
    DEPTH.with(|depth| depth.set(u32::MAX));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_outermost_call_gets_the_token() {
        let token = Token::regardless_of_phase().expect("nothing is outside");
        assert!(Token::regardless_of_phase().is_none());
        std::thread::spawn(|| assert!(Token::regardless_of_phase().is_some())).join().expect("threads are independent");
        drop(token);
        assert!(Token::regardless_of_phase().is_some());
    }

    #[test]
    fn before_the_library_is_ready_nobody_gets_it() {
        assert!(Token::outermost().is_none());
    }

    #[test]
    fn threads_of_echo_never_get_it() {
        std::thread::spawn(|| {
            never_observe_this_thread();
            assert!(Token::regardless_of_phase().is_none());
        })
        .join()
        .expect("the thread ends");
    }
}
