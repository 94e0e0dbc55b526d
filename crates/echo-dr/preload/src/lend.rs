//! Memory of the program that goes into other hands: the kernel's for the time of a system call, or for good.
//!
//! A system call never raises SIGSEGV on a protected page, it fails with EFAULT or ends short. So in validation each hook of one tells of its
//! memory first: watched pages there are open until it has returned, and the touch counts. In all other modes that is one load.

use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;

use echo_dr_engine::Loan;
use echo_dr_format::event::Call;
use echo_dr_format::site::Site;

use crate::session::{self, Session};
use crate::sites::Registers;
use crate::thread::Token;
use crate::validate::{self, Validator};
use crate::{local, sys, tracked};

/// What a function does with the memory it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Reads,
    Writes,
}
use Use::{Reads, Writes};

/// What one system call has in its hands. It has no destructor: a thread that is cancelled in the call unwinds through the hook's frame, which must
/// have nothing to do. What such a call was lent stays open.
pub(crate) struct Loans {
    validator: Option<&'static Validator>,
    list: ManuallyDrop<Vec<Loan>>,
    site: Option<Site>,
}

impl Loans {
    /// Of a call that begins.
    #[inline]
    pub(crate) fn begin() -> Self {
        Self { validator: validate::get(), list: ManuallyDrop::new(Vec::new()), site: None }
    }

    /// The call gets this memory.
    #[inline]
    pub(crate) fn add(&mut self, does: Use, address: *const c_void, bytes: usize) {
        if let Some(validator) = self.validator
            && validator.is_watched(address as usize, bytes)
        {
            self.take(validator, does, address as usize, bytes);
        }
    }

    #[cold]
    #[inline(never)]
    fn take(&mut self, validator: &'static Validator, does: Use, address: usize, bytes: usize) {
        sys::keeping_errno(|| {
            let site = *self.site.get_or_insert_with(here);
            self.list.extend(validator.system_call(address, bytes, does == Writes, site));
        });
    }

    /// The call has returned.
    #[inline]
    pub(crate) fn end(self) {
        if !self.list.is_empty() {
            self.give_back();
        }
    }

    #[cold]
    #[inline(never)]
    fn give_back(self) {
        let list = ManuallyDrop::into_inner(self.list);
        if let Some(validator) = self.validator {
            sys::keeping_errno(|| validator.system_call_done(&list));
        }
    }

    /// # Safety
    /// `vectors` are `count` valid vectors, or the kernel will refuse them.
    pub(crate) unsafe fn vectors(&mut self, does: Use, vectors: *const libc::iovec, count: usize) {
        /// The kernel takes no more vectors in one call.
        const LIMIT: usize = 1024;
        if self.validator.is_none() || vectors.is_null() || count > LIMIT {
            return;
        }
        for at in 0..count {
            // SAFETY: the caller's promise.
            let vector = unsafe { *vectors.add(at) };
            self.add(does, vector.iov_base, vector.iov_len);
        }
    }

    /// # Safety
    /// `message` is null or valid.
    pub(crate) unsafe fn message(&mut self, does: Use, message: *const libc::msghdr) {
        if self.validator.is_none() {
            return;
        }
        // SAFETY: the caller's promise.
        if let Some(message) = unsafe { message.as_ref() } {
            self.add(does, message.msg_name, message.msg_namelen as usize);
            self.add(does, message.msg_control, message.msg_controllen);
            // SAFETY: a valid message has valid vectors.
            unsafe { self.vectors(does, message.msg_iov, message.msg_iovlen) };
        }
    }

    /// # Safety
    /// `messages` is null or has `count` valid messages.
    pub(crate) unsafe fn messages(&mut self, does: Use, messages: *const libc::mmsghdr, count: usize) {
        if self.validator.is_none() || messages.is_null() {
            return;
        }
        for at in 0..count {
            // SAFETY: the caller's promise.
            unsafe { self.message(does, &raw const (*messages.add(at)).msg_hdr) };
        }
    }

    /// Both sides of a copy between processes, where the other one is this one.
    ///
    /// # Safety
    /// The vectors are valid.
    pub(crate) unsafe fn both(
        &mut self,
        process: c_int,
        (mine, mine_count): (*const libc::iovec, usize),
        (theirs, theirs_count): (*const libc::iovec, usize),
        does: Use,
    ) {
        let other = if does == Writes { Reads } else { Writes };
        // SAFETY: the caller's promise.
        unsafe { self.vectors(does, mine, mine_count) };
        if self.validator.is_some() && i64::from(process) == i64::from(std::process::id()) {
            // SAFETY: as above.
            unsafe { self.vectors(other, theirs, theirs_count) };
        }
    }
}

/// Where the program is. Inside another hooked call that is not asked for: what counts is that the memory is opened.
fn here() -> Site {
    match Token::outermost() {
        Some(token) => local::mine(&token).announced_site(&token, Registers::here()),
        None => Site(0),
    }
}

/// The memory goes to something that touches it after this call, and can't be watched.
pub(crate) fn for_good(address: *const c_void, bytes: usize) {
    if let Some(validator) = validate::get()
        && validator.is_watched(address as usize, bytes)
    {
        sys::keeping_errno(|| validator.out_of_sight(address as usize, bytes, here()));
    }
}

/// All memory does.
pub(crate) fn everything() {
    if let Some(validator) = validate::get() {
        sys::keeping_errno(|| validator.all_out_of_sight(Some(here())));
    }
}

/// Some pages may be closed now.
pub(crate) fn closed_memory() -> bool {
    validate::get().is_some_and(Validator::is_watching)
}

/// The program changes what its pages are: whether they can be used, or what is in them. A merged block would not answer as a heap block does, and a closed
/// one would be opened unseen. So a profiled block that it concerns is as one whose address was asked about.
pub(crate) fn pages_change(address: *const c_void, bytes: usize) {
    if bytes == 0 || !tracked::may_overlap(address as usize, bytes) {
        return;
    }
    let Some(Session::Record(record)) = session::get() else { return };
    sys::keeping_errno(|| {
        // What CUDA or an allocator does with pages inside a call of theirs is their business.
        let Some(token) = Token::outermost() else { return };
        for block in tracked::overlapping(address as usize, bytes) {
            record.event(&token, "mprotect", Call::Query { ptr: block as u64 });
        }
        drop(token);
        for_good(address, bytes);
    });
}
