//! Memory in other hands than the program's own code: the kernel's for the time of a system call, a CUDA call's, or those of something that can't
//! be watched at all.
//!
//! None of them faults on a closed page as a load would: a system call fails or ends short, and what works on its own (asynchronous input and output,
//! a pipe that refers to the pages) does so later. So the pages are opened before, and the access counts from here on.

use echo_dr_format::finding::{Access, Trouble};
use echo_dr_format::site::Site;

use super::guard::{Loan, Seen};
use super::{Memory, Windows};

impl Windows {
    /// Some byte of the range is in a watched block. Takes no lock: most system calls have nothing to do with any.
    #[must_use]
    pub fn is_watched(&self, address: usize, bytes: usize) -> bool {
        bytes > 0 && self.guard.is_watched(address, bytes)
    }

    /// A system call is about to read (or, if `writes`, write) memory of the program. Watched pages there allow it until
    /// [`Windows::system_call_done`]: a window that opens meanwhile finds the access.
    #[must_use]
    pub fn system_call(
        &self,
        memory: &impl Memory,
        address: usize,
        bytes: usize,
        writes: bool,
        site: Site,
    ) -> Vec<Loan> {
        let mut loans = Vec::new();
        if !self.is_watched(address, bytes) {
            return loans;
        }
        let Some(mut watch) = self.lock() else { return loans };
        for place in watch.touching(address, bytes) {
            if let Some(host) = watch.instances[place].host {
                let offset = address.saturating_sub(host.address) as u64;
                let seen = Seen { access: Access::SystemCall, offset, site };
                loans.push(self.guard.borrow(memory, host.slot, seen, writes));
            }
        }
        self.absorb(&mut watch, memory);
        loans
    }

    /// The system call has returned.
    pub fn system_call_done(&self, loans: &[Loan]) {
        if let Some(_watch) = self.lock() {
            loans.iter().for_each(|&loan| self.guard.give_back(loan));
        }
    }

    /// A CUDA call that is no copy of one block is about to read (or, if `writes`, write) memory of the program; watched pages there allow it
    /// afterwards.
    pub fn cuda_call(&self, memory: &impl Memory, address: usize, bytes: usize, writes: bool, site: Site) {
        if !self.is_watched(address, bytes) {
            return;
        }
        let Some(mut watch) = self.lock() else { return };
        for place in watch.touching(address, bytes) {
            if let Some(host) = watch.instances[place].host {
                let offset = address.saturating_sub(host.address) as u64;
                self.guard.announced(memory, host.slot, Seen { access: Access::CudaCall, offset, site }, writes);
            }
        }
        self.absorb(&mut watch, memory);
    }

    /// From here on something may touch the memory that can't be watched: pairs there end. True if there were any.
    pub fn out_of_sight(&self, memory: &impl Memory, address: usize, bytes: usize, site: Site) -> bool {
        if !self.is_watched(address, bytes) {
            return false;
        }
        let Some(mut watch) = self.lock() else { return false };
        let touched = |&place: &usize| {
            let instance = &watch.instances[place];
            let offset = address.saturating_sub(instance.host?.address) as u64;
            Some((instance.pair, Seen { access: Access::SystemCall, offset, site }))
        };
        let gone: Vec<_> = watch.touching(address, bytes).iter().filter_map(touched).collect();
        for &(pair, seen) in &gone {
            self.reject(&mut watch, memory, pair, Trouble::OutOfSight, Some(seen));
        }
        !gone.is_empty()
    }

    /// The same for all memory, now and later: no pair can be watched in this run.
    pub fn all_out_of_sight(&self, memory: &impl Memory, site: Option<Site>) {
        let Some(mut watch) = self.lock() else { return };
        let seen = site.map(|site| Seen { access: Access::SystemCall, offset: 0, site });
        for pair in 0..self.pairs.len() {
            self.reject(&mut watch, memory, pair, Trouble::OutOfSight, seen);
        }
    }
}
