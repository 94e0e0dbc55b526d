//! The blocks of a trace and what happened to each: facts, no judgement of pairs.
//!
//! Must not assume that the trace is consistent: frees may be missing (a block that another one overlaps has ended), addresses may be in no
//! block, sizes may overflow.

use std::collections::{BTreeMap, BTreeSet};

use echo_dr_format::event::{Call, CopyKind, DeviceKind, Event, HostKind, Setup, Shape, Stream};
use echo_dr_format::plan::Way;
use echo_dr_format::reason::Decline;
use echo_dr_format::site::Site;

use crate::matcher::Side;

/// What merged memory may be aligned to: that of many blocks is, and a run looks at each. None is aligned to more than pages.
const ALIGNMENT: u64 = 4096;

/// A block that was recorded.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) side: Side,
    pub(super) site: Site,
    pub(super) bytes: u64,
    pub(super) thread: u32,
    pub(super) zeroed: bool,
    pub(super) page_locked: bool,
    /// Index of the event.
    pub(super) born: usize,
    /// Index of the event; `usize::MAX` if it lived to the end.
    pub(super) died: usize,
    /// What keeps it from being merged with anything.
    pub(super) flaws: Vec<Decline>,
}

impl Block {
    fn flaw(&mut self, reason: Decline) {
        if !self.flaws.contains(&reason) {
            self.flaws.push(reason);
        }
    }
}

/// A place in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub(super) block: usize,
    pub(super) offset: u64,
}

/// A copy between host and device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// Index of the event.
    pub(super) event: usize,
    pub(super) host: Option<At>,
    pub(super) device: Option<At>,
    pub(super) way: Way,
    pub(super) bytes: u64,
    pub(super) shape: Shape,
    pub(super) stream: Stream,
    pub(super) asynchronous: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) blocks: Vec<Block>,
    pub(super) links: Vec<Link>,
    /// (event, device block): it is set, or written by a copy from device memory.
    pub(super) device_writes: Vec<(usize, usize)>,
    /// Indices of launches, copies and sets.
    pub(super) gpu_work: Vec<usize>,
    pub(super) uses_managed: bool,
    pub(super) several_devices: bool,
    pub(super) uses_cuda: bool,
    /// A function that isn't known and may be called at any time.
    unseen: Option<String>,
    /// By address.
    host: BTreeMap<u64, usize>,
    device: BTreeMap<u64, usize>,
    capturing: BTreeSet<Stream>,
}

impl History {
    pub(super) fn of(events: &[Event]) -> Self {
        let mut history = Self::default();
        let mut current_device = BTreeMap::new();
        let mut devices = BTreeSet::new();
        for (index, event) in events.iter().enumerate() {
            if let Call::SetDevice { device } = event.call {
                current_device.insert(event.thread, device);
            } else if uses_device(&event.call) {
                history.uses_cuda = true;
                devices.insert(current_device.get(&event.thread).copied().unwrap_or(0));
            }
            history.follow(index, event);
        }
        if let Some(name) = history.unseen.take() {
            history.unknown(&name, |_| true);
        }
        history.several_devices = devices.len() > 1;
        history
    }

    /// Some GPU work was begun between two events.
    pub(super) fn works_between(&self, from: usize, to: usize) -> bool {
        let first = self.gpu_work.partition_point(|&event| event <= from);
        self.gpu_work.get(first).is_some_and(|&event| event < to)
    }

    fn follow(&mut self, index: usize, event: &Event) {
        match event.call {
            Call::HostAlloc { ptr, bytes, align, kind } => {
                let block = self.born(index, event, Side::Host, ptr, bytes);
                block.zeroed = kind == HostKind::Zeroed;
                block.page_locked = kind == HostKind::PageLocked;
                if align > ALIGNMENT {
                    block.flaw(Decline::Alignment { align });
                }
            }
            Call::HostRealloc { old, ptr, bytes } => {
                if let Some(block) = self.host.remove(&old).and_then(|block| self.blocks.get_mut(block)) {
                    block.died = index;
                    block.flaw(Decline::Reallocated);
                }
                self.born(index, event, Side::Host, ptr, bytes).flaw(Decline::Reallocated);
            }
            Call::HostFree { ptr } => self.died(index, Side::Host, ptr),
            Call::DeviceAlloc { ptr, bytes, kind } => {
                self.uses_managed |= kind == DeviceKind::Managed;
                let block = self.born(index, event, Side::Device, ptr, bytes);
                match kind {
                    DeviceKind::Plain => {}
                    DeviceKind::Managed => block.flaw(Decline::Managed),
                    DeviceKind::Pooled | DeviceKind::Pitched => block.flaw(Decline::SpecialDeviceMemory),
                }
            }
            Call::DeviceFree { ptr, .. } => self.died(index, Side::Device, ptr),
            Call::HostRegister { ptr, .. } | Call::Query { ptr } => {
                for at in [self.at(Side::Host, ptr), self.at(Side::Device, ptr)].into_iter().flatten() {
                    self.blocks[at.block].flaw(Decline::PointerQueried);
                }
            }
            Call::Copy { dst, src, bytes, kind, stream, asynchronous, shape } => {
                self.gpu_work.push(index);
                self.copy(index, (dst, src, bytes), kind, stream, asynchronous, shape);
            }
            Call::Set { dst, .. } => {
                self.gpu_work.push(index);
                if let Some(at) = self.at(Side::Device, dst) {
                    self.device_writes.push((index, at.block));
                    self.flaw_if_captured(at.block);
                }
                self.used_as_device_memory(self.at(Side::Host, dst));
            }
            Call::Launch { .. } => self.gpu_work.push(index),
            Call::Capture { stream, begin: true } => {
                self.capturing.insert(stream);
            }
            Call::Capture { stream, begin: false } => {
                self.capturing.remove(&stream);
            }
            Call::Setup { what } => self.setup(what),
            Call::Unknown { unseen: true } => self.unseen = Some(event.api.to_string()),
            Call::Unknown { unseen: false } => {
                self.gpu_work.push(index);
                self.unknown(&event.api, |block| block.died == usize::MAX);
            }
            Call::Wait { .. }
            | Call::EventRecord { .. }
            | Call::StreamWait { .. }
            | Call::StreamCreate { .. }
            | Call::StreamDestroy { .. }
            | Call::SetDevice { .. }
            // A run with a plan is not what an analysis is given.
            | Call::Skipped { .. } => {}
        }
    }

    fn copy(
        &mut self,
        event: usize,
        (dst, src, bytes): (u64, u64, u64),
        kind: CopyKind,
        stream: Stream,
        asynchronous: bool,
        shape: Shape,
    ) {
        let to_device = self.at(Side::Device, dst);
        let from_device = self.at(Side::Device, src);
        let (to_host, from_host) = (self.at(Side::Host, dst), self.at(Side::Host, src));
        let touched = [to_device, from_device, to_host, from_host];
        if !self.capturing.is_empty() {
            touched.into_iter().flatten().for_each(|at| self.flaw_if_captured(at.block));
        }
        let kind = match (kind, to_device.is_some(), from_device.is_some()) {
            (CopyKind::Default, true, true) => CopyKind::DeviceToDevice,
            (CopyKind::Default, true, false) => CopyKind::HostToDevice,
            (CopyKind::Default, false, true) => CopyKind::DeviceToHost,
            // Nothing is known of either end.
            (CopyKind::Default, false, false) => CopyKind::HostToHost,
            (kind, ..) => kind,
        };
        // An address of page-locked memory is good on the device too, so a copy may take it for either side, whatever its name says.
        match kind {
            CopyKind::HostToDevice => self.used_as_device_memory(to_host),
            CopyKind::DeviceToHost => self.used_as_device_memory(from_host),
            CopyKind::DeviceToDevice | CopyKind::HostToHost | CopyKind::Default => {
                self.used_as_device_memory(to_host);
                self.used_as_device_memory(from_host);
            }
        }
        let (host, device, way) = match kind {
            CopyKind::HostToDevice => (from_host, to_device, Way::Upload),
            CopyKind::DeviceToHost => (to_host, from_device, Way::Download),
            CopyKind::DeviceToDevice => {
                if let Some(at) = to_device {
                    self.device_writes.push((event, at.block));
                }
                return;
            }
            CopyKind::HostToHost | CopyKind::Default => {
                if let Some(at) = to_host {
                    self.blocks[at.block].flaw(Decline::OtherDataIntoHost);
                }
                return;
            }
        };
        if let (Some(host), None, Way::Download) = (host, device, way) {
            self.blocks[host.block].flaw(Decline::OtherDataIntoHost);
        }
        self.links.push(Link { event, host, device, way, bytes, shape, stream, asynchronous });
    }

    fn setup(&mut self, what: Setup) {
        let cuda = self.uses_cuda;
        for block in &mut self.blocks {
            let alive = block.died == usize::MAX;
            match what {
                // Where p is made CUDA is initialised, and blocks that have ended were made all the same.
                Setup::BeforeInitialisation if block.side == Side::Host => block.flaw(Decline::TooEarly),
                Setup::Fork if alive || !cuda => block.flaw(Decline::AliveAtFork),
                Setup::Reset if alive => block.flaw(Decline::AliveAtReset),
                Setup::BeforeInitialisation | Setup::Fork | Setup::Reset | Setup::FirstUse => {}
            }
        }
    }

    /// Something but the host's end of a copy is at a place in host memory.
    fn used_as_device_memory(&mut self, at: Option<At>) {
        if let Some(block) = at.map(|at| &mut self.blocks[at.block]).filter(|block| block.page_locked) {
            block.flaw(Decline::UsedAsDeviceMemory);
        }
    }

    /// A function that isn't known may have copied these blocks. One is enough to name.
    fn unknown(&mut self, name: &str, which: impl Fn(&Block) -> bool) {
        let is_known = |reason: &Decline| matches!(reason, Decline::UnknownFunction { .. });
        for block in self.blocks.iter_mut().filter(|block| which(block) && !block.flaws.iter().any(is_known)) {
            block.flaw(Decline::UnknownFunction { name: name.to_owned() });
        }
    }

    fn flaw_if_captured(&mut self, block: usize) {
        if !self.capturing.is_empty() {
            self.blocks[block].flaw(Decline::Captured);
        }
    }

    fn live(&self, side: Side) -> &BTreeMap<u64, usize> {
        match side {
            Side::Host => &self.host,
            Side::Device => &self.device,
        }
    }

    fn live_mut(&mut self, side: Side) -> &mut BTreeMap<u64, usize> {
        match side {
            Side::Host => &mut self.host,
            Side::Device => &mut self.device,
        }
    }

    fn at(&self, side: Side, address: u64) -> Option<At> {
        let (&start, &block) = self.live(side).range(..=address).next_back()?;
        let offset = address - start;
        (offset < self.blocks[block].bytes).then_some(At { block, offset })
    }

    fn born(&mut self, index: usize, event: &Event, side: Side, start: u64, bytes: u64) -> &mut Block {
        // Blocks that it overlaps have ended without a trace of it. Live blocks don't overlap, so those end where the new one does at the latest.
        let end = start.saturating_add(bytes.max(1));
        while let Some(other) = self.live(side).range(..end).next_back().map(|(&other, _)| other) {
            let reach = self.live(side).get(&other).map_or(0, |&block| self.blocks[block].bytes.max(1));
            if other < start && start - other >= reach {
                break;
            }
            self.died(index, side, other);
        }
        let number = self.blocks.len();
        self.live_mut(side).insert(start, number);
        self.blocks.push(Block {
            side,
            site: event.site,
            bytes,
            thread: event.thread,
            zeroed: false,
            page_locked: false,
            born: index,
            died: usize::MAX,
            flaws: Vec::new(),
        });
        &mut self.blocks[number]
    }

    fn died(&mut self, index: usize, side: Side, start: u64) {
        if let Some(block) = self.live_mut(side).remove(&start) {
            self.blocks[block].died = index;
        }
    }
}

fn uses_device(call: &Call) -> bool {
    matches!(
        call,
        Call::DeviceAlloc { .. }
            | Call::Copy { .. }
            | Call::Set { .. }
            | Call::Launch { .. }
            | Call::HostAlloc { kind: HostKind::PageLocked, .. }
            | Call::StreamCreate { .. }
            | Call::Setup { what: Setup::FirstUse }
    )
}
