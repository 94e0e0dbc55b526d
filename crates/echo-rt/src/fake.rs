//! A device for tests: it counts blocks of each kind, records copies and waits, and fails the kinds that it is told to.

use std::cell::{Cell, Ref, RefCell};
use std::collections::BTreeMap;

use crate::{Cuda, CudaError, Direction};

#[derive(Default)]
pub(crate) struct Fake {
    next: Cell<usize>,
    live: RefCell<BTreeMap<usize, &'static str>>,
    log: RefCell<Vec<String>>,
    refuse: &'static [&'static str],
    split_alias: bool,
    error: bool,
}

impl Fake {
    /// Allocations of these kinds fail.
    pub(crate) fn refusing(refuse: &'static [&'static str]) -> Self {
        Self { refuse, ..Self::default() }
    }

    /// The device has another address for mapped memory than the host.
    pub(crate) fn with_another_alias() -> Self {
        Self { split_alias: true, ..Self::default() }
    }

    /// A call of the program has failed.
    pub(crate) fn with_error() -> Self {
        Self { error: true, ..Self::default() }
    }

    /// The blocks that are allocated, with their kinds.
    pub(crate) fn live(&self) -> Ref<'_, BTreeMap<usize, &'static str>> {
        self.live.borrow()
    }

    /// What was done, allocations left out.
    pub(crate) fn log(&self) -> Vec<String> {
        self.log.borrow().clone()
    }

    fn take(&self, kind: &'static str) -> Option<usize> {
        if self.refuse.contains(&kind) {
            return None;
        }
        self.next.set(self.next.get() + 0x1000);
        self.live.borrow_mut().insert(self.next.get(), kind);
        Some(self.next.get())
    }

    fn give(&self, address: usize, kind: &'static str) {
        assert_eq!(self.live.borrow_mut().remove(&address), Some(kind), "freed by the wrong allocator");
        self.log.borrow_mut().push(format!("free {kind}"));
    }
}

impl Cuda for Fake {
    fn malloc(&self, _: usize) -> Result<usize, CudaError> {
        self.take("device").ok_or(CudaError::MEMORY_ALLOCATION)
    }
    fn free(&self, address: usize) -> Result<(), CudaError> {
        let kind = self.live.borrow()[&address];
        assert!(kind == "device" || kind == "managed");
        self.give(address, kind);
        Ok(())
    }
    fn malloc_managed(&self, _: usize) -> Result<usize, CudaError> {
        self.take("managed").ok_or(CudaError::MEMORY_ALLOCATION)
    }
    fn host_alloc(&self, _: usize) -> Result<(usize, usize), CudaError> {
        let address = self.take("pinned").ok_or(CudaError::MEMORY_ALLOCATION)?;
        Ok((address, if self.split_alias { address + 7 } else { address }))
    }
    fn host_free(&self, address: usize) -> Result<(), CudaError> {
        self.give(address, "pinned");
        Ok(())
    }
    fn heap_alloc(&self, _: usize) -> Option<usize> {
        self.take("heap")
    }
    fn heap_free(&self, address: usize) {
        self.give(address, "heap");
    }
    fn copy(&self, dst: usize, src: usize, bytes: usize, _: Direction) -> Result<(), CudaError> {
        self.log.borrow_mut().push(format!("copy {dst:x} {src:x} {bytes}"));
        Ok(())
    }
    fn synchronize(&self) -> Result<(), CudaError> {
        self.log.borrow_mut().push("wait".into());
        Ok(())
    }
    fn has_error(&self) -> bool {
        self.error
    }
    fn forget_error(&self) {
        self.log.borrow_mut().push("forget error".into());
    }
}
