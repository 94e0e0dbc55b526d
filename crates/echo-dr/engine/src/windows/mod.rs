//! Validation: when the host must keep its hands off a host buffer, and what it means if it does not.
//!
//! A run with the buffers apart. The rules are in `instance.rs`; here CUDA's calls reach the pairs they concern, in `outside.rs` those by which
//! others than the program's own code touch memory, and `guard.rs` is what the fault handler asks.
//!
//! With `exclusive`, h is closed besides whenever GPU work of any kind is in flight: an access then does not reject the pair, but managed memory
//! must not be used for it on devices that forbid such accesses (S5).
//!
//! **What the GPU does with h.** Merged, a kernel that uses h without a copy would use d. A validation run gives the program host blocks that
//! the GPU can't reach (those of page-locked pairs too, which are none for CUDA then), so such a kernel fails, whatever way the address came to it: see
//! [`Windows::device_failed`]. Where the GPU reaches all memory of the process it has the host's page tables, or keeps to them: h is closed while
//! GPU work is in flight, so it fails there too. The host opens h by an access in flight, which is noted as not exclusive; from then on nobody
//! knows what the GPU does, and the pair is rejected by [`crate::judge`].

mod guard;
mod instance;
mod memory;
mod outside;
mod watch;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use echo_dr_format::event::{CopyKind, Shape, Stream, WaitFor};
use echo_dr_format::finding::{Access, Finding, PairSeen, Trouble};
use echo_dr_format::plan::{Pair, Plan, State, Way};
use echo_dr_format::site::Site;

use crate::calls::Copy;
use crate::matcher::{Arrival, Matcher, Rule, Side};
use crate::pending::{Pending, WaitToken};
pub use guard::Loan;
use guard::{Guard, Seen, SlotId};
use instance::{Device, Host, Instance, Scene, Stage, Use};
pub use memory::{Fault, Memory, Protection};
use watch::{PairWatch, Watch};

/// The windows of a plan's pairs.
#[derive(Debug)]
pub struct Windows {
    /// The pairs that are not rejected yet.
    pairs: Vec<Pair>,
    exclusive: bool,
    /// The GPU reaches all memory of the process, so pages that a call opens are open to it.
    reaches_all: bool,
    guard: Guard,
    pending: Pending,
    forked: AtomicBool,
    state: Mutex<Watch>,
}

impl Windows {
    /// For the pairs of a plan that are not rejected. `exclusive`: also watch for host accesses while any GPU work is in flight.
    #[must_use]
    pub fn new(plan: &Plan, page_size: usize, exclusive: bool) -> Self {
        let pairs: Vec<Pair> =
            plan.pairs.iter().filter(|pair| !matches!(pair.state, State::Rejected(_))).cloned().collect();
        let watch = |pair: &Pair| PairWatch {
            matcher: Matcher::new(Rule::of(pair)),
            seen: PairSeen { pair: pair.id, exclusive_watched: exclusive, ..PairSeen::default() },
            rejected: false,
        };
        let state = Watch {
            instances: Vec::new(),
            pairs: pairs.iter().map(watch).collect(),
            findings: Vec::new(),
            next_key: 0,
            joined: false,
            hidden: 0,
            flying: false,
            begun: 0,
            told: 0,
            failed: false,
        };
        let device = plan.context.device.as_ref();
        Self {
            pairs,
            exclusive,
            reaches_all: exclusive && device.is_some_and(|device| device.attributes.pageable_memory_access),
            guard: Guard::new(page_size),
            pending: Pending::default(),
            forked: AtomicBool::new(false),
            state: Mutex::new(state),
        }
    }

    /// Some pair has blocks of this size. Asked before the stack is walked for the site.
    #[must_use]
    pub fn wants_size(&self, bytes: usize) -> bool {
        self.pairs.iter().any(|pair| usize::try_from(pair.bytes) == Ok(bytes))
    }

    /// A pair's host block is allocated here: it must get pages of its own.
    #[must_use]
    pub fn is_host_site(&self, site: Site, bytes: usize) -> bool {
        self.planned(site, bytes, |pair| pair.host).is_some()
    }

    /// `address` may be in a watched host block: a few nanoseconds. Never false for one that is.
    #[must_use]
    pub fn is_near(&self, address: usize) -> bool {
        self.guard.is_near(address)
    }

    /// A host block was allocated at `address`, on pages of its own.
    pub fn host_alloc(&self, memory: &impl Memory, site: Site, address: usize, bytes: usize, thread: u64) {
        let Some(pair) = self.planned(site, bytes, |pair| pair.host) else { return };
        let Some(mut watch) = self.lock() else { return };
        if watch.is_rejected(pair) {
            return;
        }
        let arrival = watch.pairs[pair].matcher.arrive(Side::Host, thread);
        let slot = match arrival {
            Arrival::Deviation(_) => None,
            _ => self.guard.add(address, bytes),
        };
        let Some(slot) = slot else {
            watch.pairs[pair].seen.unwatched += 1;
            return;
        };
        let host = Host { address, slot };
        self.guard.set(memory, slot, Protection::ReadOnly, false);
        if watch.flying && self.exclusive {
            self.guard.set_flight(memory, slot, true);
        }
        self.arrived(&mut watch, memory, (pair, bytes), (Side::Host, thread), arrival, |instance| {
            instance.host = Some(host)
        });
    }

    /// A host block was allocated that could not have pages of its own.
    pub fn host_unwatched(&self, site: Site, bytes: usize) {
        let Some(pair) = self.planned(site, bytes, |pair| pair.host) else { return };
        if let Some(mut watch) = self.lock() {
            watch.pairs[pair].seen.unwatched += 1;
        }
    }

    /// A device block was allocated.
    pub fn device_alloc(&self, memory: &impl Memory, site: Site, address: usize, bytes: usize, thread: u64) {
        let Some(pair) = self.planned(site, bytes, |pair| pair.device) else { return };
        let Some(mut watch) = self.lock() else { return };
        if watch.is_rejected(pair) {
            return;
        }
        let arrival = watch.pairs[pair].matcher.arrive(Side::Device, thread);
        if let Arrival::Deviation(_) = arrival {
            watch.pairs[pair].seen.unwatched += 1;
            return;
        }
        memory.poison(address, bytes);
        let device = Device { address, poisoned: memory.device_digest(address, bytes), baseline: None };
        self.arrived(&mut watch, memory, (pair, bytes), (Side::Device, thread), arrival, |instance| {
            instance.device = Some(device);
        });
    }

    /// A host block is about to be freed or resized; its pages are open afterwards.
    pub fn host_free(&self, memory: &impl Memory, address: usize) {
        if !self.guard.is_near(address) {
            return;
        }
        let Some(mut watch) = self.lock() else { return };
        if self.reaches_all {
            memory.drain();
        }
        self.absorb(&mut watch, memory);
        let is_it = |instance: &Instance| instance.host.is_some_and(|host| host.address == address);
        if let Some(place) = watch.instances.iter().position(is_it) {
            self.settle(&mut watch, memory, address);
            if watch.instances.get(place).is_none_or(|instance| !is_it(instance)) {
                return;
            }
            let scene = self.scene(memory, &watch);
            let (pair, key) = (watch.instances[place].pair, watch.instances[place].key);
            watch.pairs[pair].matcher.leave(key);
            watch.instances[place].host_freed(&scene);
            if watch.instances[place].device.is_none() {
                watch.instances.swap_remove(place);
            }
        }
    }

    /// A device block is about to be freed.
    pub fn device_free(&self, memory: &impl Memory, address: usize) {
        let Some(mut watch) = self.lock() else { return };
        self.absorb(&mut watch, memory);
        let is_it = |instance: &Instance| instance.device.is_some_and(|device| device.address == address);
        self.settle(&mut watch, memory, address);
        if let Some(place) = watch.instances.iter().position(is_it) {
            let key = watch.instances[place].key;
            let pair = watch.instances[place].pair;
            watch.pairs[pair].matcher.leave(key);
            if watch.instances[place].host.is_none() {
                watch.instances.swap_remove(place);
            } else {
                let scene = self.scene(memory, &watch);
                watch.instances[place].device_freed(&scene);
            }
        }
    }

    /// A copy is about to be made; host pages that it needs are open afterwards.
    pub fn copying(&self, memory: &impl Memory, call: &Copy) {
        let Some(mut watch) = self.lock() else { return };
        self.absorb(&mut watch, memory);
        let scene = self.scene(memory, &watch);
        let mut troubles = Vec::new();
        if let Some((place, way)) = self.link(&watch, call) {
            if self.reaches_all {
                // The call needs the pages open, so what may use them must have ended.
                memory.drain();
                watch.instances[place].lent = watch.told;
            }
            let instance = &mut watch.instances[place];
            let trouble = match way {
                Way::Upload => instance.uploading(&scene).map(|trouble| (trouble, None)),
                Way::Download => instance.downloading(&scene),
            };
            troubles.extend(trouble.map(|(trouble, seen)| (instance.pair, trouble, seen)));
        } else {
            let pieces = [(call.dst, true), (call.src, false)];
            for (address, writes) in pieces {
                for place in watch.touching(address, call.bytes) {
                    let instance = &watch.instances[place];
                    let Some(host) = instance.host else { continue };
                    let offset = address.saturating_sub(host.address) as u64;
                    let seen = Seen { access: Access::CudaCall, offset, site: call.site };
                    self.guard.announced(memory, host.slot, seen, writes);
                    if watch.instances.iter().any(|other| other.pair == instance.pair && other.partner_in(call)) {
                        troubles.push((instance.pair, Trouble::WrongPartner, Some(seen)));
                    }
                }
            }
            // A copy of d to other memory, or from it into d, is work on d as a kernel is.
            for (address, does) in [(call.src, Use::Reads), (call.dst, Use::Writes)] {
                for instance in watch.instances.iter_mut().filter(|it| it.has_device_in(address, call.bytes)) {
                    let trouble = instance.launched(&scene, call.stream, does);
                    troubles.extend(trouble.map(|(trouble, seen)| (instance.pair, trouble, seen)));
                }
            }
            self.absorb(&mut watch, memory);
        }
        for (pair, trouble, seen) in troubles {
            self.reject(&mut watch, memory, pair, trouble, seen.or(Some(Seen::at(call.site))));
        }
        if call.asynchronous || call.kind == CopyKind::DeviceToDevice {
            self.fly(&mut watch, memory);
        }
    }

    /// The copy was made, or failed. `token` is from before [`Windows::copying`].
    pub fn copied(&self, memory: &impl Memory, token: WaitToken, call: &Copy, succeeded: bool) {
        if succeeded && (call.asynchronous || call.kind == CopyKind::DeviceToDevice) {
            self.pending.launched(call.stream);
        } else if succeeded {
            self.pending.copied(token, call.stream);
        }
        let Some(mut watch) = self.lock() else { return };
        let is_upload = matches!(call.kind, CopyKind::HostToDevice | CopyKind::Default);
        if is_upload && !call.asynchronous && self.pairs.iter().any(|pair| pair.page_locked) {
            // Page-locked blocks are pageable in this run. A copy from pageable memory may return before all of it has arrived, one from page-locked
            // memory does not, and the program may count on that; also where the pair is rejected by now, whose blocks stay what they are.
            memory.drain();
        }
        let scene = self.scene(memory, &watch);
        if let Some((place, way)) = self.link(&watch, call) {
            if self.reaches_all && call.asynchronous {
                // Such a device may copy from and to the pages themselves, after the call.
                memory.drain();
            }
            let instance = &watch.instances[place];
            if self.reaches_all && instance.lent != watch.begun {
                // Another thread gave the GPU work while the pages were open.
                let pair = instance.pair;
                watch.pairs[pair].seen.exclusive_watched = false;
                self.find(&mut watch, pair, Trouble::NotExclusive(Access::CudaCall), Some(Seen::at(call.site)));
            }
            let instance = &mut watch.instances[place];
            let was_open = matches!(instance.stage, Stage::Open { .. });
            match way {
                _ if !succeeded => {
                    if let Some(host) = instance.host {
                        self.guard.restore(memory, host.slot);
                    }
                }
                Way::Upload => instance.uploaded(&scene, call.stream, call.asynchronous),
                Way::Download => instance.downloaded(&scene, call.stream, call.asynchronous),
            }
            watch.count(place, was_open);
        }
        if succeeded && !call.asynchronous && call.kind != CopyKind::DeviceToDevice {
            // The program waited for this copy, and so for the work before it: the round of other pairs may end here.
            self.absorb(&mut watch, memory);
            self.close(&mut watch, memory);
        }
        self.land(&mut watch, memory);
    }

    /// Device memory is about to be set.
    pub fn set(&self, memory: &impl Memory, dst: usize, bytes: usize, stream: Stream) {
        self.work(memory, stream, Some((dst, bytes)));
    }

    /// GPU work is about to be put into a stream: a launch, a graph, a host function. (Copies and sets have calls of their own.)
    pub fn launching(&self, memory: &impl Memory, stream: Stream) {
        self.work(memory, stream, None);
    }

    /// Work (a set, too) was put into the stream.
    pub fn launched(&self, stream: Stream) {
        self.pending.launched(stream);
        if let Some(mut watch) = self.lock() {
            watch.told += 1;
        }
    }

    /// A CUDA call reports that the GPU failed, in a way from which a context does not recover. The program did not fail when profiled, with host
    /// blocks that the GPU can reach: a kernel uses one of those without a copy, and nobody says which.
    pub fn device_failed(&self, memory: &impl Memory) {
        let Some(mut watch) = self.lock() else { return };
        if std::mem::replace(&mut watch.failed, true) {
            return;
        }
        self.absorb(&mut watch, memory);
        for pair in (0..self.pairs.len()).filter(|&pair| self.pairs[pair].page_locked || self.reaches_all) {
            if watch.is_rejected(pair) {
                // Its blocks are still such that the GPU can't reach them, and that the run went wrong concerns the other pairs.
                self.find(&mut watch, pair, Trouble::ReachedByGpu, None);
            } else {
                self.reject(&mut watch, memory, pair, Trouble::ReachedByGpu, None);
            }
        }
    }

    /// Outside of this run the GPU could reach some host block that is watched.
    #[must_use]
    pub fn keeps_from_gpu(&self) -> bool {
        self.reaches_all || self.pairs.iter().any(|pair| pair.page_locked)
    }

    /// A stream was created.
    pub fn stream_created(&self, stream: Stream, non_blocking: bool) {
        self.pending.created(stream, non_blocking);
    }

    /// An event recorded a stream. Told after the call; `token` is from before it.
    pub fn recorded(&self, token: WaitToken, event: u64, stream: Stream) {
        self.pending.recorded(event, stream, token);
    }

    /// A stream waits for an event of another one, or calls a function of the host, which may order anything.
    pub fn joined(&self) {
        if let Some(mut watch) = self.lock() {
            watch.joined = true;
        }
    }

    /// A call is made that waits for the device, or may, though that is not what it is for: it frees memory, say.
    pub fn may_wait(&self) {
        if let Some(mut watch) = self.lock() {
            watch.hidden = self.pending.launches();
        }
    }

    /// A wait, a copy or the record of an event is about to begin.
    #[must_use]
    pub fn waiting(&self) -> WaitToken {
        self.pending.waiting()
    }

    /// A wait has succeeded; also a query that said "done".
    pub fn waited(&self, memory: &impl Memory, token: WaitToken, on: WaitFor) {
        self.pending.waited(token, on);
        let Some(mut watch) = self.lock() else { return };
        self.absorb(&mut watch, memory);
        self.close(&mut watch, memory);
        self.land(&mut watch, memory);
    }

    /// Something the program waited for is done: windows whose work is done with it close.
    fn close(&self, watch: &mut Watch, memory: &impl Memory) {
        let scene = self.scene(memory, watch);
        let mut troubles = Vec::new();
        for place in 0..watch.instances.len() {
            let was_open = matches!(watch.instances[place].stage, Stage::Open { .. });
            let trouble = watch.instances[place].waited(&scene);
            troubles.extend(trouble.map(|(trouble, seen)| (watch.instances[place].pair, trouble, seen)));
            watch.count(place, was_open);
        }
        for (pair, trouble, seen) in troubles {
            self.reject(watch, memory, pair, trouble, Some(seen));
        }
    }

    /// A fault. For a signal handler: takes no lock, allocates nothing.
    #[must_use]
    pub fn touched(&self, address: usize, access: Access, site: Site) -> Fault {
        if self.guard.is_near(address) { self.guard.touched(address, access, site) } else { Fault::NotOurs }
    }

    /// This process is the child of a fork: everything watched is opened and nothing is watched any more. Takes no lock, since a thread that
    /// only the parent has may hold it.
    pub fn forked(&self, memory: &impl Memory) {
        self.forked.store(true, Ordering::Release);
        self.guard.open_all(memory);
    }

    /// Findings since the last call; `time` is what they get as their time. The first of each pair rejects it; later ones of it are not looked for.
    #[must_use]
    pub fn findings(&self, memory: &impl Memory, time: u64) -> Vec<Finding> {
        let Some(mut watch) = self.lock() else { return Vec::new() };
        self.absorb(&mut watch, memory);
        let mut findings = std::mem::take(&mut watch.findings);
        findings.iter_mut().for_each(|finding| finding.time = time);
        findings
    }

    /// CUDA is about to end, in the process's exit, and with it all memory that it gave: what is still open is judged, and no host block of a pair may be
    /// touched any more.
    pub fn leaving(&self, memory: &impl Memory) {
        let Some(mut watch) = self.lock() else { return };
        self.absorb(&mut watch, memory);
        let hosts: Vec<Host> = watch.instances.iter().filter_map(|instance| instance.host).collect();
        for host in hosts {
            self.settle(&mut watch, memory, host.address);
            if watch.instances.iter().any(|instance| instance.host.is_some_and(|it| it.address == host.address)) {
                self.guard.set(memory, host.slot, Protection::Closed, false);
            }
        }
    }

    /// The run ends: what is still open is judged, while the device can still be read if possible. The last findings, and what was seen of each
    /// pair.
    #[must_use]
    pub fn finish(&self, memory: &impl Memory, time: u64) -> (Vec<Finding>, Vec<PairSeen>) {
        let Some(mut watch) = self.lock() else { return (Vec::new(), Vec::new()) };
        self.absorb(&mut watch, memory);
        let hosts: Vec<usize> =
            watch.instances.iter().filter_map(|instance| instance.host.map(|host| host.address)).collect();
        for address in hosts {
            self.settle(&mut watch, memory, address);
        }
        let seen = watch.pairs.iter().map(|pair| pair.seen).collect();
        drop(watch);
        (self.findings(memory, time), seen)
    }

    fn planned(&self, site: Site, bytes: usize, side: impl Fn(&Pair) -> Site) -> Option<usize> {
        self.pairs.iter().position(|pair| side(pair) == site && usize::try_from(pair.bytes) == Ok(bytes))
    }

    /// A block of a pair came.
    fn arrived(
        &self,
        watch: &mut Watch,
        memory: &impl Memory,
        (pair, bytes): (usize, usize),
        (side, thread): (Side, u64),
        arrival: Arrival<u64>,
        put: impl FnOnce(&mut Instance),
    ) {
        if let Arrival::Partner(key) = arrival
            && let Some(place) = watch.instances.iter().position(|instance| instance.key == key)
        {
            let scene = self.scene(memory, watch);
            put(&mut watch.instances[place]);
            watch.instances[place].complete(&scene);
            watch.pairs[pair].seen.buffers += 1;
            watch.count(place, false);
            return;
        }
        let key = watch.next_key;
        watch.next_key += 1;
        watch.pairs[pair].matcher.wait(side, thread, key);
        let direction = self.pairs[pair].direction;
        let mut instance = Instance {
            key,
            pair,
            direction,
            bytes,
            lent: 0,
            host: None,
            device: None,
            host_wrote: false,
            defined: false,
            stream: None,
            upload: None,
            users: Vec::new(),
            trial: false,
            stage: Stage::Fresh { busy: false },
        };
        put(&mut instance);
        watch.instances.push(instance);
    }

    /// The instance whose whole blocks this copy links, and which way.
    fn link(&self, watch: &Watch, call: &Copy) -> Option<(usize, Way)> {
        if call.shape != Shape::Linear || matches!(call.kind, CopyKind::DeviceToDevice | CopyKind::HostToHost) {
            return None;
        }
        watch.instances.iter().enumerate().find_map(|(place, instance)| {
            let (host, device) = (instance.host?.address, instance.device?.address);
            let whole = call.bytes == instance.bytes;
            if whole && (call.dst, call.src) == (device, host) {
                Some((place, Way::Upload))
            } else if whole && (call.dst, call.src) == (host, device) {
                Some((place, Way::Download))
            } else {
                None
            }
        })
    }

    /// GPU work is about to begin, of which it may be known what it writes.
    fn work(&self, memory: &impl Memory, stream: Stream, writes: Option<(usize, usize)>) {
        let Some(mut watch) = self.lock() else { return };
        watch.begun += 1;
        self.absorb(&mut watch, memory);
        let scene = self.scene(memory, &watch);
        let mut troubles = Vec::new();
        for place in 0..watch.instances.len() {
            let instance = &mut watch.instances[place];
            let was_open = matches!(instance.stage, Stage::Open { .. });
            // A set touches what it sets, and nothing else.
            let does = match writes {
                Some((dst, bytes)) => instance.has_device_in(dst, bytes).then_some(Use::Writes),
                None => Some(Use::Perhaps),
            };
            if let Some(does) = does {
                let trouble = instance.launched(&scene, stream, does);
                troubles.extend(trouble.map(|(trouble, seen)| (instance.pair, trouble, seen)));
            }
            watch.count(place, was_open);
        }
        for (pair, trouble, seen) in troubles {
            self.reject(&mut watch, memory, pair, trouble, seen);
        }
        self.fly(&mut watch, memory);
    }

    /// GPU work is in flight from here on.
    fn fly(&self, watch: &mut Watch, memory: &impl Memory) {
        if self.exclusive && !watch.flying {
            watch.flying = true;
            self.set_flight(watch, memory, true);
        }
    }

    /// If no GPU work is in flight any more, the host may touch what its windows allow.
    fn land(&self, watch: &mut Watch, memory: &impl Memory) {
        if watch.flying && self.pending.idle() {
            watch.flying = false;
            self.set_flight(watch, memory, false);
        }
    }

    fn set_flight(&self, watch: &Watch, memory: &impl Memory, flight: bool) {
        for instance in &watch.instances {
            let watched = watch.pairs[instance.pair].seen.exclusive_watched;
            if let Some(host) = instance.host.filter(|_| watched || !flight) {
                self.guard.set_flight(memory, host.slot, flight);
            }
        }
    }

    /// Judges the reads that were on trial of the pair with a block at `address`.
    fn settle(&self, watch: &mut Watch, memory: &impl Memory, address: usize) {
        let scene = self.scene(memory, watch);
        let is_it = |instance: &&mut Instance| {
            instance.host.is_some_and(|host| host.address == address)
                || instance.device.is_some_and(|device| device.address == address)
        };
        let instance = watch.instances.iter_mut().find(is_it);
        if let Some((pair, Some((trouble, seen)))) = instance.map(|instance| (instance.pair, instance.settle(&scene))) {
            self.reject(watch, memory, pair, trouble, Some(seen));
        }
    }

    /// Takes over what the fault handler has noted.
    fn absorb(&self, watch: &mut Watch, memory: &impl Memory) {
        let slots: Vec<(usize, SlotId)> = watch
            .instances
            .iter()
            .filter_map(|instance| instance.host.map(|host| (instance.pair, host.slot)))
            .collect();
        for (pair, slot) in slots {
            watch.pairs[pair].seen.unwatched += u64::from(self.guard.take_unguarded(slot));
            if let Some(seen) = self.guard.take_in_flight(slot) {
                // Once is enough to know, so the rest of the run is spared the faults.
                watch.pairs[pair].seen.exclusive_watched = false;
                self.find(watch, pair, Trouble::NotExclusive(seen.access), Some(seen));
            }
            if let Some(seen) = self.guard.take_wrong(slot) {
                self.reject(watch, memory, pair, Trouble::HostTouched(seen.access), Some(seen));
            }
        }
    }

    /// Something is wrong with a pair: it is told, and not watched any more.
    fn reject(&self, watch: &mut Watch, memory: &impl Memory, pair: usize, trouble: Trouble, seen: Option<Seen>) {
        if watch.pairs[pair].rejected {
            return;
        }
        watch.pairs[pair].rejected = true;
        self.find(watch, pair, trouble, seen);
        let (gone, rest) = std::mem::take(&mut watch.instances).into_iter().partition(|instance| instance.pair == pair);
        watch.instances = rest;
        let gone: Vec<Instance> = gone;
        for host in gone.into_iter().filter_map(|instance| instance.host) {
            self.guard.remove(memory, host.slot);
        }
    }

    fn find(&self, watch: &mut Watch, pair: usize, trouble: Trouble, seen: Option<Seen>) {
        watch.pairs[pair].seen.findings += 1;
        let (site, offset) = (seen.map(|seen| seen.site), seen.map(|seen| seen.offset));
        watch.findings.push(Finding { time: 0, pair: self.pairs[pair].id, trouble, site, offset });
    }

    fn scene<'a, M: Memory>(&'a self, memory: &'a M, watch: &Watch) -> Scene<'a, M> {
        let Watch { joined, hidden, .. } = *watch;
        Scene { memory, guard: &self.guard, pending: &self.pending, joined, hidden }
    }

    /// What is watched; `None` in the child of a fork.
    fn lock(&self) -> Option<MutexGuard<'_, Watch>> {
        if self.forked.load(Ordering::Acquire) {
            return None;
        }
        Some(self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
