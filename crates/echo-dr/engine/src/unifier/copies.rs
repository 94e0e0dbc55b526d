//! Copies of merged memory: which go, and what stays of them.

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use echo_dr_format::event::{CopyKind, Shape, Stream};
use echo_dr_format::plan::{BackendName, CopySite, Direction, Wait, Way};
use echo_dr_format::reason::Deviation;
use echo_rt::{Cuda, CudaError, Side as Place};

use super::Unifier;
use super::table::{Block, Table, View};
use crate::calls::{Copy, CopyDecision, Waiting};
use crate::pending::WaitToken;

impl Unifier {
    /// A copy, before it is made. `cuda` is used for prefetches.
    pub fn copy(&self, cuda: &impl Cuda, call: &Copy) -> CopyDecision {
        // A copy of which one end is far away may still read p.
        if !self.near.may_be_in(call.dst) && !self.near.may_be_in(call.src) {
            return CopyDecision::Forward;
        }
        if self.captures.load(Ordering::Acquire) > 0 || self.forked.load(Ordering::Acquire) {
            return CopyDecision::Forward;
        }
        let mut table = self.lock();
        let (dst, src) = (table.containing(call.dst).copied(), table.containing(call.src).copied());
        let (block, other) = match (dst, src) {
            (None, None) => return CopyDecision::Forward,
            (Some(block), other) => (block, other),
            (None, Some(block)) => (block, None),
        };
        let pair = block.pair;
        let within = other.is_some_and(|other| other.start() == block.start());
        let links = call.shape == Shape::Linear
            && call.dst == call.src
            && !matches!(call.kind, CopyKind::DeviceToDevice | CopyKind::HostToHost)
            && block.host == View::Live
            && block.device == View::Live
            && call.bytes <= block.bytes - (call.dst - block.start());
        if within && links {
            let decision = self.skip(&mut table, &block, call);
            drop(table);
            self.prefetch(cuda, &block, call);
            return decision;
        }
        if within && call.dst != call.src {
            self.retire(&mut table, pair, Deviation::ShiftedCopy);
        } else if !within && dst.is_some_and(|dst| self.pairs[dst.pair].direction != Direction::Output) {
            self.retire(&mut table, pair, Deviation::ForeignCopy);
        }
        table.pairs[pair].counters.copies_made += 1;
        // The program's own memory would have made an asynchronous call wait (pageable memory) or be staged; p does not. A synchronous upload has read all
        // of pageable memory when it returns, and has arrived if that was page-locked; of p it may be a copy within the device, which is asynchronous.
        let may_return_early = match call.kind {
            CopyKind::DeviceToDevice => false,
            CopyKind::HostToDevice | CopyKind::Default => call.asynchronous || src.is_some(),
            CopyKind::DeviceToHost | CopyKind::HostToHost => call.asynchronous,
        };
        if may_return_early {
            return CopyDecision::ForwardThenWait(Waiting::Stream(call.stream));
        }
        CopyDecision::Forward
    }

    /// A copy was made, and succeeded. `token` is from before it.
    pub fn copied(&self, token: WaitToken, call: &Copy) {
        if call.asynchronous || call.kind == CopyKind::DeviceToDevice {
            self.pending.launched(call.stream);
        } else {
            // It came back when everything before it in its stream was done.
            self.pending.copied(token, call.stream);
        }
    }

    /// A stream was created.
    pub fn stream_created(&self, stream: Stream, non_blocking: bool) {
        self.pending.created(stream, non_blocking);
    }

    /// A linking copy goes; what stays of it.
    fn skip(&self, table: &mut MutexGuard<'_, Table>, block: &Block, call: &Copy) -> CopyDecision {
        let planned = self.copy_site(block.pair, call);
        if planned.is_none() {
            self.count(Deviation::UnknownCopySite);
        }
        // An upload that may return early makes nobody wait. A download to pageable memory returns when it is done, whatever its name; one to
        // page-locked memory does not.
        let upload = match call.kind {
            CopyKind::HostToDevice => true,
            CopyKind::DeviceToHost => false,
            _ => planned.is_some_and(|site| site.way == Way::Upload),
        };
        let returns_early = call.asynchronous && (upload || self.pairs[block.pair].page_locked);
        let planned = planned.map(|site| site.wait);
        let waiting =
            if returns_early { self.order_of(planned, call.stream) } else { self.wait_of(planned, call.stream) };
        let counters = &mut table.pairs[block.pair].counters;
        counters.copies_skipped += 1;
        counters.bytes_skipped += call.bytes as u64;
        match waiting {
            None => CopyDecision::Skip,
            Some(waiting) => {
                counters.waits += 1;
                CopyDecision::SkipThenWait(waiting)
            }
        }
    }

    /// The wait that stands for a copy that makes nobody wait. Work of one stream that it waited for keeps its order without it; what it was
    /// ordered behind by the rule of the legacy default stream, or by an event that its stream was made to wait for, does not.
    fn order_of(&self, planned: Option<Wait>, stream: Stream) -> Option<Waiting> {
        if !self.pending.joins(stream) {
            return None;
        }
        if planned == Some(Wait::Covered) {
            self.count(Deviation::WaitNotCovered);
        }
        Some(Waiting::Device)
    }

    /// The wait that stands for a copy.
    fn wait_of(&self, planned: Option<Wait>, stream: Stream) -> Option<Waiting> {
        let one_device = !self.several.load(Ordering::Acquire);
        match planned {
            Some(Wait::Covered) if one_device && self.pending.idle() => None,
            Some(Wait::Covered) => {
                self.count(Deviation::WaitNotCovered);
                Some(Waiting::Device)
            }
            // A wait for a stream does not wait for what a copy in it would have waited for: work in the default stream.
            Some(Wait::Stream) if one_device && stream.is_own() && self.pending.idle_but_for(stream) => {
                Some(Waiting::Stream(stream))
            }
            Some(Wait::Stream | Wait::Device) | None => Some(Waiting::Device),
        }
    }

    fn copy_site(&self, pair: usize, call: &Copy) -> Option<&CopySite> {
        self.pairs[pair].copies.iter().find(|copy| copy.site == call.site)
    }

    /// Managed memory is moved in bulk where the copy was. Advice: a failure is forgotten.
    fn prefetch(&self, cuda: &impl Cuda, block: &Block, call: &Copy) {
        let pair = &self.pairs[block.pair];
        if pair.backend != BackendName::Prefetched || cuda.has_error() {
            return;
        }
        let upload = match call.kind {
            CopyKind::HostToDevice => true,
            CopyKind::DeviceToHost => false,
            _ => self.copy_site(block.pair, call).is_some_and(|site| site.way == Way::Upload),
        };
        let place = if upload { Place::Device } else { Place::Host };
        if cuda
            .prefetch(call.dst, call.bytes, place, call.stream.0)
            .is_err_and(|error| error != CudaError::NOT_SUPPORTED)
        {
            cuda.forget_error();
        }
    }
}
