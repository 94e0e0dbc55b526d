//! One pair of blocks in a validation run, and whose value its one merged buffer would hold.
//!
//! Merged, every write to h is one to d and the other way round. That changes nothing as long as, whenever one side is written, the other side's value
//! is not needed any more. A trace of calls can't show that; pages and contents can:
//!
//! | stage | means | h's pages |
//! | --- | --- | --- |
//! | [`Stage::Fresh`] | nothing was copied yet | a write is noted |
//! | [`Stage::Open`] | the GPU may be using d: the pair's window | closed; of an input, or if a stream opened it that is not the pair's, reads are on trial |
//! | [`Stage::Shut`] | h and d held the same bytes when the window closed | a write is noted |
//!
//! - Upload: d must hold what it did when the window closed (or when h came to be), else the GPU wrote d outside of windows and, merged,
//!   would have destroyed what is uploaded. Then the window opens.
//! - Work for the GPU: opens the window again. If the host has written h since it closed, the GPU would see that write too early: rejected.
//! - Download: closes it; an asynchronous one when a wait covers it. If the host has written h outside, the download replaces that write, and
//!   merged it would not: rejected.
//! - A wait after which no work that may use d is pending closes it if h and d are equal: host and GPU see the same either way.
//!
//! The last rule goes further than "until the next synchronization": after a wait the GPU may use d again without another upload, so a window
//! that was closed by a wait opens again with the next launch.
//!
//! Work of any stream may use d, whatever its arguments are: pointers can lie in memory. One case is excepted, or no two pairs of a program that
//! overlaps streams could be merged: while an asynchronous upload of d is on its way in a stream of the program's, and nothing can have
//! told another such stream when it is done (no wait of the host, no event, no host function, nothing in the default stream since), work of that
//! other stream can't use d, since it would race with the upload.
//!
//! What this can't see: a kernel that writes d, and itself or one before the host's next wait brings back what was there, while the host reads an input
//! on trial; and a host that learns of the end of an upload by polling memory that a kernel writes.

use echo_dr_format::event::Stream;
use echo_dr_format::finding::Trouble;
use echo_dr_format::plan::Direction;

use super::guard::{Guard, Seen, SlotId};
use super::{Memory, Protection};
use crate::pending::Pending;

/// Where the pair is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Fresh {
        /// d has a value from before h was there, and work is pending that may use it: h is closed until a wait.
        busy: bool,
    },
    Open {
        /// GPU work was begun since it opened.
        launched: bool,
        /// An asynchronous download was begun, and no work on d since.
        downloading: bool,
        /// Launches when h and d were last compared.
        compared: u64,
    },
    Shut {
        /// Hash of both.
        digest: u64,
    },
}

/// A host block that is watched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host {
    pub(super) address: usize,
    pub(super) slot: SlotId,
}

/// A device block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Device {
    pub(super) address: usize,
    /// Hash of what it was poisoned with.
    pub(super) poisoned: Option<u64>,
    /// Hash of its content when the pair was complete and nothing of it could have been meant for h.
    pub(super) baseline: Option<u64>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Instance {
    /// Its number, for the matcher.
    pub(super) key: u64,
    pub(super) pair: usize,
    pub(super) direction: Direction,
    pub(super) bytes: usize,
    /// Work that the GPU had been given when the pages of h were opened for a copy.
    pub(super) lent: u64,
    pub(super) host: Option<Host>,
    pub(super) device: Option<Device>,
    /// h was written after the last copy, and freed: d's next reader would see that.
    pub(super) host_wrote: bool,
    /// d had a value before h came to be.
    pub(super) defined: bool,
    /// Stream of its copies.
    pub(super) stream: Option<Stream>,
    /// Number of its last upload's work, if that was asynchronous.
    pub(super) upload: Option<u64>,
    /// Other streams of the program's with work that may use d, and that may be pending.
    pub(super) users: Vec<Stream>,
    /// In this window the host's reads are allowed, and judged later by what d holds then.
    pub(super) trial: bool,
    pub(super) stage: Stage,
}

/// What work does with d.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Nobody knows: a kernel.
    Perhaps,
    /// It reads d: a copy to elsewhere.
    Reads,
    /// It writes d: a set, a copy from elsewhere.
    Writes,
}

/// What an instance needs to look at.
pub(super) struct Scene<'a, M> {
    pub(super) memory: &'a M,
    pub(super) guard: &'a Guard,
    pub(super) pending: &'a Pending,
    /// Streams are ordered by events or by host functions, so work of any stream may use any block.
    pub(super) joined: bool,
    /// Launches when the host last waited by a call that is no wait (freeing memory waits for the device).
    pub(super) hidden: u64,
}

impl Instance {
    /// Both blocks are there.
    pub(super) fn complete<M: Memory>(&mut self, scene: &Scene<'_, M>) {
        if let Some(device) = &mut self.device {
            device.baseline = scene.memory.device_digest(device.address, self.bytes);
            self.defined = device.baseline.is_none() || device.baseline != device.poisoned;
        }
        if self.defined && self.direction == Direction::Output {
            // d has, or will have, a value for h. What the host does with h before the download is lost, and merged it would not be.
            self.open(scene, true, false);
        } else if let Some(host) = self.host {
            let busy = self.defined && !self.idle(scene);
            self.stage = Stage::Fresh { busy };
            let level = if busy { Protection::Closed } else { Protection::ReadOnly };
            scene.guard.set(scene.memory, host.slot, level, false);
        }
    }

    /// Before the pair's upload.
    pub(super) fn uploading<M: Memory>(&mut self, scene: &Scene<'_, M>) -> Option<Trouble> {
        let (Some(host), Some(device)) = (self.host, self.device) else { return None };
        let now = scene.memory.device_digest(device.address, self.bytes);
        let expected = match self.stage {
            Stage::Fresh { .. } => device.baseline,
            Stage::Shut { digest } => Some(digest),
            // The host could not write h, so the upload would bring back what d held, were it not changed.
            Stage::Open { .. } => Some(scene.memory.host_digest(host.address, self.bytes)),
        };
        scene.guard.lend(scene.memory, host.slot, false);
        (now.is_none() || now != expected).then_some(Trouble::DeviceWriteLost)
    }

    /// After it.
    pub(super) fn uploaded<M: Memory>(&mut self, scene: &Scene<'_, M>, stream: Stream, asynchronous: bool) {
        self.stream = Some(stream);
        self.upload = asynchronous.then(|| scene.pending.last(stream));
        if let Some(host) = self.host {
            scene.guard.clean(host.slot);
        }
        self.open(scene, false, false);
    }

    /// Before the pair's download. Reads that were on trial are judged while h and d are still two.
    pub(super) fn downloading<M: Memory>(&mut self, scene: &Scene<'_, M>) -> Option<(Trouble, Option<Seen>)> {
        let host = self.host?;
        if scene.joined {
            // A function of the host that the stream calls before the copy must find the pages as they are.
            scene.memory.drain();
        }
        if let Some((trouble, seen)) = self.settle(scene) {
            return Some((trouble, Some(seen)));
        }
        let lost = scene.guard.is_dirty(host.slot) && !self.equal(scene);
        // Nothing kept the host from reading h since the GPU wrote d, and merged it would have read that.
        let early =
            matches!(self.stage, Stage::Fresh { .. }) && self.device.is_some_and(|device| self.wrote(scene, device));
        scene.guard.lend(scene.memory, host.slot, true);
        match (lost, early) {
            (true, _) => Some((Trouble::HostWriteLost, None)),
            (false, true) => Some((Trouble::DeviceWriteLost, None)),
            (false, false) => None,
        }
    }

    /// After it. One that returned when it was done waited for what d was written by, so the window closes.
    pub(super) fn downloaded<M: Memory>(&mut self, scene: &Scene<'_, M>, stream: Stream, asynchronous: bool) {
        self.stream = Some(stream);
        let Some(host) = self.host else { return };
        scene.guard.clean(host.slot);
        if asynchronous {
            self.open(scene, true, false);
            self.stage = Stage::Open { launched: true, downloading: true, compared: u64::MAX };
        } else if self.idle(scene) {
            self.shut(scene, scene.memory.host_digest(host.address, self.bytes));
        } else {
            self.readable(scene);
        }
    }

    /// h and d are the same, and work of other streams may still read d: the host may read h, and must not write it.
    fn readable<M: Memory>(&mut self, scene: &Scene<'_, M>) {
        self.stage = Stage::Open { launched: true, downloading: false, compared: u64::MAX };
        self.trial = true;
        if let Some(host) = self.host {
            scene.guard.set(scene.memory, host.slot, Protection::ReadOnly, true);
        }
    }

    /// Work is about to be put into a stream. Reads that were on trial are judged first, since later work could bring back what earlier work changed.
    pub(super) fn launched<M: Memory>(
        &mut self,
        scene: &Scene<'_, M>,
        stream: Stream,
        does: Use,
    ) -> Option<(Trouble, Option<Seen>)> {
        self.device?;
        if does == Use::Perhaps && !self.may_use(scene, stream) {
            return None;
        }
        let foreign = self.is_foreign(stream);
        if foreign && !self.users.contains(&stream) {
            self.users.push(stream);
        }
        if self.shows_host_write(scene) {
            return Some((Trouble::LaunchAfterHostWrite, None));
        }
        let host = self.host?;
        match self.stage {
            // If nothing is in d yet the GPU can't want it; whether it writes d shows at the upload.
            Stage::Fresh { .. } if self.direction != Direction::Output => {
                if self.defined {
                    self.stage = Stage::Fresh { busy: true };
                    self.close_pages_strictly(scene);
                }
                return None;
            }
            Stage::Fresh { .. } => scene.guard.clean(host.slot),
            Stage::Shut { .. } => {}
            Stage::Open { .. } => {
                if let Some((trouble, seen)) = self.settle(scene) {
                    return Some((trouble, Some(seen)));
                }
            }
        }
        match &mut self.stage {
            Stage::Open { launched, downloading, compared } => {
                *launched = true;
                // What d holds when the host waits is no longer what is being downloaded.
                *downloading = false;
                // Where h and d are known to differ, the pages are closed to reads too.
                if *compared == u64::MAX {
                    self.trial &= foreign || self.direction == Direction::Input;
                    self.close_pages(scene);
                }
            }
            // Work of another stream is less likely to be the pair's, so a read of h meanwhile is judged by what it does.
            Stage::Fresh { .. } | Stage::Shut { .. } => self.open(scene, true, foreign),
        }
        if does == Use::Writes {
            self.close_pages_strictly(scene);
        }
        None
    }

    /// A wait has succeeded. A read that was on trial may turn out wrong.
    pub(super) fn waited<M: Memory>(&mut self, scene: &Scene<'_, M>) -> Option<(Trouble, Seen)> {
        let host = self.host?;
        if self.stage == (Stage::Fresh { busy: true }) && self.idle(scene) {
            self.stage = Stage::Fresh { busy: false };
            scene.guard.set(scene.memory, host.slot, Protection::ReadOnly, false);
        }
        let Stage::Open { launched: true, downloading, compared } = self.stage else { return None };
        let launches = scene.pending.launches();
        if compared == launches {
            return None;
        }
        if !self.idle(scene) {
            if downloading && self.stream.is_some_and(|mine| scene.pending.idle_where(|stream| stream == mine)) {
                scene.guard.clean(host.slot);
                self.readable(scene);
            }
            return None;
        }
        let digest = scene.memory.host_digest(host.address, self.bytes);
        let device = self.device.and_then(|device| scene.memory.device_digest(device.address, self.bytes));
        if downloading || device == Some(digest) {
            scene.guard.clean(host.slot);
            self.shut(scene, digest);
            return None;
        }
        self.stage = Stage::Open { launched: true, downloading: false, compared: launches };
        let doubtful = scene.guard.take_doubtful(host.slot);
        self.close_pages_strictly(scene);
        doubtful.map(|seen| (Trouble::HostTouched(seen.access), seen))
    }

    /// Who reads d now would, merged, see what the host has written to h since d and h were the same (or since d got its value, before h was there).
    pub(super) fn shows_host_write<M: Memory>(&self, scene: &Scene<'_, M>) -> bool {
        let dirty = self.host_wrote || self.host.is_some_and(|host| scene.guard.is_dirty(host.slot));
        match self.stage {
            Stage::Fresh { .. } => dirty && self.defined,
            Stage::Shut { .. } => dirty,
            // Writing h there is an error of its own.
            Stage::Open { .. } => false,
        }
    }

    /// h is about to be freed. d may live on.
    pub(super) fn host_freed<M: Memory>(&mut self, scene: &Scene<'_, M>) {
        if let Some(host) = self.host.take() {
            self.host_wrote = scene.guard.is_dirty(host.slot);
            scene.guard.remove(scene.memory, host.slot);
        }
    }

    /// The pair ends, or the run does: reads that were on trial are judged now.
    pub(super) fn settle<M: Memory>(&mut self, scene: &Scene<'_, M>) -> Option<(Trouble, Seen)> {
        let seen = scene.guard.take_doubtful(self.host?.slot)?;
        if self.equal(scene) {
            self.close_pages(scene);
            return None;
        }
        Some((Trouble::HostTouched(seen.access), seen))
    }

    /// d is about to be freed, with h alive. What the GPU has made of d stays in h, if it was not downloaded.
    pub(super) fn device_freed<M: Memory>(&mut self, scene: &Scene<'_, M>) {
        if let Stage::Open { .. } = self.stage
            && !self.equal(scene)
        {
            self.close_pages_strictly(scene);
        } else if let Some(host) = self.host {
            scene.guard.set(scene.memory, host.slot, Protection::Open, false);
        }
        self.device = None;
    }

    /// d is not what it was when the pair was complete.
    fn wrote<M: Memory>(&self, scene: &Scene<'_, M>, device: Device) -> bool {
        let now = scene.memory.device_digest(device.address, self.bytes);
        now.is_none() || now != device.baseline
    }

    /// h and d hold the same bytes now.
    fn equal<M: Memory>(&self, scene: &Scene<'_, M>) -> bool {
        let (Some(host), Some(device)) = (self.host, self.device) else { return false };
        let host = scene.memory.host_digest(host.address, self.bytes);
        scene.memory.device_digest(device.address, self.bytes) == Some(host)
    }

    fn open<M: Memory>(&mut self, scene: &Scene<'_, M>, launched: bool, trial: bool) {
        self.stage = Stage::Open { launched, downloading: false, compared: u64::MAX };
        self.trial = trial || self.direction == Direction::Input;
        self.close_pages(scene);
    }

    fn shut<M: Memory>(&mut self, scene: &Scene<'_, M>, digest: u64) {
        self.stage = Stage::Shut { digest };
        self.users.clear();
        if let Some(host) = self.host {
            scene.guard.set(scene.memory, host.slot, Protection::ReadOnly, false);
        }
    }

    /// Closed; where reads are on trial they are allowed, since a GPU that only reads d is not in their way.
    fn close_pages<M: Memory>(&self, scene: &Scene<'_, M>) {
        if let Some(host) = self.host {
            scene.guard.set(scene.memory, host.slot, Protection::Closed, self.trial);
        }
    }

    fn close_pages_strictly<M: Memory>(&self, scene: &Scene<'_, M>) {
        if let Some(host) = self.host {
            scene.guard.set(scene.memory, host.slot, Protection::Closed, false);
        }
    }

    /// No work that may use d is pending.
    fn idle<M: Memory>(&self, scene: &Scene<'_, M>) -> bool {
        scene.pending.idle_where(|stream| self.is_users(scene, stream))
    }

    /// Work of this stream may have used d.
    fn is_users<M: Memory>(&self, scene: &Scene<'_, M>, stream: Stream) -> bool {
        scene.joined || !self.is_foreign(stream) || self.users.contains(&stream)
    }

    /// Another stream than that of the pair's copies, and nothing about the two says that they wait for each other.
    fn is_foreign(&self, stream: Stream) -> bool {
        self.stream.is_some_and(|mine| mine != stream && mine.is_own() && stream.is_own())
    }

    /// Work that is put into this stream now may use d. (See the module.)
    fn may_use<M: Memory>(&self, scene: &Scene<'_, M>, stream: Stream) -> bool {
        let (Some(mine), Some(upload)) = (self.stream, self.upload) else { return true };
        scene.joined
            || !self.is_foreign(stream)
            || scene.hidden >= upload
            || scene.pending.is_done(mine, upload)
            || scene.pending.last(Stream::LEGACY) > upload
    }
}
