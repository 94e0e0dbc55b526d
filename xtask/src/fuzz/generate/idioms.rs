//! What GPU programs usually do: fill, upload, compute, download, look at it, and the like. Waits are left to `repair`.

use super::super::language::{Action, BufferId, Form, Kind, Range, Scope, Spot, StreamId, Way};
use super::{Maker, Temper};

impl Maker<'_> {
    /// An idiom on buffers of the whole function.
    pub(super) fn idiom(&mut self) -> Vec<Kind> {
        if self.pairs.is_empty() {
            return vec![Kind::Print];
        }
        let pair = *self.random.pick(&self.pairs);
        self.idiom_on(pair)
    }

    /// An idiom on this pair.
    pub(super) fn idiom_on(&mut self, pair: (BufferId, BufferId)) -> Vec<Kind> {
        let mut kinds = match self.random.weighted(&[26, 22, 18, 8, 10, 4, 5, 3, 4]) {
            0 => self.round_trip(pair),
            1 => self.input(pair),
            2 => self.output(pair),
            3 => self.made_on_the_device(pair),
            4 => self.refined(pair),
            5 => self.ping_pong(pair),
            6 => self.through_another_host_buffer(pair),
            7 => self.kept_pointer(pair),
            _ => (0..self.random.between(2, 5)).map(|_| self.anything()).collect(),
        };
        if self.careful {
            kinds = self.with_waits(kinds);
        }
        if self.random.chance(25) {
            kinds.push(Kind::Print);
        }
        kinds
    }

    /// A wait where the host goes on after GPU work: nearly always, and nearly always for the device.
    fn with_waits(&mut self, kinds: Vec<Kind>) -> Vec<Kind> {
        let mut waited = Vec::new();
        let mut busy = None;
        for kind in kinds {
            match kind {
                Kind::Copy { stream, .. } | Kind::Memset { stream, .. } => busy = Some(stream.unwrap_or(0)),
                Kind::Launch { stream, .. } => busy = Some(stream),
                _ => waited.extend(busy.take().and_then(|stream| self.careful_wait(stream))),
            }
            waited.push(kind);
        }
        waited.extend(busy.and_then(|stream| self.careful_wait(stream)));
        waited
    }

    /// A wait behind work of a stream.
    fn careful_wait(&mut self, stream: StreamId) -> Option<Kind> {
        match self.random.weighted(&[85, 10, 5]) {
            0 => Some(Kind::Wait(Scope::Device)),
            1 => Some(Kind::Wait(Scope::Stream(stream))),
            _ => None,
        }
    }

    fn round_trip(&mut self, (host, device): (BufferId, BufferId)) -> Vec<Kind> {
        let stream = self.copy_stream();
        let mut kinds = vec![self.fill(host), self.copy(device, host, stream)];
        for _ in 0..self.random.weighted(&[0, 75, 25]) {
            kinds.push(self.in_place(device, stream));
        }
        kinds.push(self.copy(host, device, stream));
        kinds.push(self.look(host));
        kinds
    }

    fn input(&mut self, (host, device): (BufferId, BufferId)) -> Vec<Kind> {
        let stream = self.copy_stream();
        let mut kinds = vec![self.fill(host), self.copy(device, host, stream)];
        let Some(target) = self.other_device(device) else {
            kinds.push(self.in_place(device, stream));
            // The kernel's value is wanted; or now and then the host's again, which the kernel's would have replaced.
            if self.random.chance(80) {
                kinds.push(self.copy(host, device, stream));
            }
            kinds.push(self.look(host));
            return kinds;
        };
        let actions = [Action::Map, Action::Shift, Action::Sum, Action::Accumulate, Action::FillOdd, Action::Shared];
        let action = actions[self.random.weighted(&[40, 15, 10, 15, 10, 10])];
        kinds.push(self.launch(action, vec![target, device], stream));
        if let Some(result) = self.host_of(target) {
            kinds.push(self.copy(result, target, stream));
            kinds.push(self.look(result));
        }
        if self.random.chance(30) {
            kinds.push(self.look(host));
        }
        kinds
    }

    fn output(&mut self, (host, device): (BufferId, BufferId)) -> Vec<Kind> {
        let stream = self.copy_stream();
        let mut kinds = Vec::new();
        if self.random.chance(30) {
            kinds.push(Kind::Clear { buffer: host, range: Range::Whole, byte: 0 });
        }
        kinds.push(self.launch(Action::Fill, vec![device], stream));
        kinds.push(self.copy(host, device, stream));
        kinds.push(self.look(host));
        kinds
    }

    fn made_on_the_device(&mut self, (host, device): (BufferId, BufferId)) -> Vec<Kind> {
        let stream = self.copy_stream();
        let byte = self.random.below(250) as u8;
        let range = self.range();
        vec![
            Kind::Memset { buffer: device, range, byte, stream },
            self.in_place(device, stream),
            self.copy(host, device, stream),
            self.look(host),
        ]
    }

    fn refined(&mut self, (host, device): (BufferId, BufferId)) -> Vec<Kind> {
        let stream = self.copy_stream();
        let (range, form, way) = (self.range(), self.form(), self.way());
        vec![
            Kind::Update { buffer: host, range, form, way },
            self.copy(device, host, stream),
            self.in_place(device, stream),
            self.copy(host, device, stream),
            self.look(host),
        ]
    }

    fn ping_pong(&mut self, (host, device): (BufferId, BufferId)) -> Vec<Kind> {
        let Some(other) = self.other_device(device) else { return self.output((host, device)) };
        let stream = self.copy_stream();
        vec![
            self.fill(host),
            self.copy(device, host, stream),
            self.launch(Action::Map, vec![other, device], stream),
            Kind::Swap(device, other),
            self.copy(host, device, stream),
            self.look(host),
        ]
    }

    fn through_another_host_buffer(&mut self, (host, device): (BufferId, BufferId)) -> Vec<Kind> {
        let stream = self.copy_stream();
        let other = *self.random.pick(&self.hosts);
        if other == host {
            return self.round_trip((host, device));
        }
        let (range, way) = (self.range(), self.way());
        vec![
            self.fill(other),
            Kind::HostCopy { to: host, from: other, range, way },
            self.copy(device, host, stream),
            self.in_place(device, stream),
            self.copy(other, device, stream),
            self.look(other),
        ]
    }

    fn kept_pointer(&mut self, (host, device): (BufferId, BufferId)) -> Vec<Kind> {
        let stream = self.copy_stream();
        vec![
            self.fill(host),
            self.copy(device, host, stream),
            self.launch(Action::Keep, vec![device], stream),
            self.launch(Action::UseKept, vec![], stream),
            self.copy(host, device, stream),
            self.look(host),
        ]
    }

    /// A random statement on random buffers.
    pub(super) fn anything(&mut self) -> Kind {
        let (host, device) = (*self.random.pick(&self.hosts), *self.random.pick(&self.devices));
        let (range, form, way, stream) = (self.range(), self.form(), self.way(), self.copy_stream());
        match self.random.weighted(&[8, 8, 4, 4, 10, 6, 8, 14, 14, 4, 5, 14, 6, 4]) {
            0 => Kind::Fill { buffer: host, range, form, way },
            1 => Kind::Update { buffer: host, range, form, way },
            2 => Kind::Clear { buffer: host, range, byte: self.random.below(255) as u8 },
            3 => Kind::HostCopy { to: host, from: *self.random.pick(&self.hosts), range, way },
            4 => Kind::Read { buffer: host, range, way },
            5 => Kind::ReadAt { buffer: host, at: self.spot() },
            6 => Kind::StoreAt { buffer: host, at: self.spot(), form },
            7 => self.copy(device, host, stream),
            8 => self.copy(host, device, stream),
            9 => {
                let from = *self.random.pick(&self.devices);
                self.copy(device, from, stream)
            }
            10 => Kind::Memset { buffer: device, range, byte: self.random.below(255) as u8, stream },
            11 => self.in_place(device, stream),
            12 => match self.other_device(device) {
                Some(other) => self.launch(Action::Map, vec![device, other], stream),
                None => self.launch(Action::Fill, vec![device], stream),
            },
            _ => {
                let all = [Action::Ignore, Action::Two, Action::Zip, Action::Sum, Action::FillOdd, Action::UseKept];
                let action = *self.random.pick(&all);
                let buffers = (0..action.parameters().len()).map(|_| self.gpu_visible()).collect();
                self.launch(action, buffers, stream)
            }
        }
    }

    /// A buffer that kernels may be given: page-locked ones too.
    fn gpu_visible(&mut self) -> BufferId {
        let host = *self.random.pick(&self.hosts);
        let pinned = self.program.buffers[host].memory.is_pinned();
        if pinned && self.random.chance(30) { host } else { *self.random.pick(&self.devices) }
    }

    fn fill(&mut self, buffer: BufferId) -> Kind {
        let (range, form, way) = (self.range(), self.form(), self.way());
        if self.random.chance(85) {
            Kind::Fill { buffer, range, form, way }
        } else {
            Kind::Clear { buffer, range, byte: self.random.below(250) as u8 }
        }
    }

    fn look(&mut self, buffer: BufferId) -> Kind {
        if self.random.chance(75) {
            let (range, way) = (self.range(), self.way());
            Kind::Read { buffer, range, way }
        } else {
            Kind::ReadAt { buffer, at: self.spot() }
        }
    }

    fn in_place(&mut self, device: BufferId, stream: Option<StreamId>) -> Kind {
        let action = [Action::Scale, Action::UpdateOdd, Action::Fill][self.random.weighted(&[65, 20, 15])];
        self.launch(action, vec![device], stream)
    }

    fn launch(&mut self, action: Action, buffers: Vec<BufferId>, stream: Option<StreamId>) -> Kind {
        let (kernel, range, form) = (self.kernel(action), self.range(), self.form());
        let stream = match stream {
            Some(stream) if self.random.chance(85) => stream,
            _ => self.stream(),
        };
        Kind::Launch { kernel, buffers, range, form, stream }
    }

    fn copy(&mut self, to: BufferId, from: BufferId, stream: Option<StreamId>) -> Kind {
        let range = self.range();
        let shift = if self.temper != Temper::Tidy && self.random.chance(3) { 1 } else { 0 };
        Kind::Copy { to, from, range, shift, stream, default_kind: self.random.chance(8) }
    }

    /// The stream of an idiom's copies; `None`: they are synchronous.
    pub(super) fn copy_stream(&mut self) -> Option<StreamId> {
        let asynchronous = match self.temper {
            Temper::Tidy => 20,
            Temper::Mixed => 30,
            Temper::Wild => 45,
        };
        self.random.chance(asynchronous).then(|| self.random.below(self.program.streams.len()))
    }

    fn other_device(&mut self, device: BufferId) -> Option<BufferId> {
        let others: Vec<BufferId> = self.devices.iter().copied().filter(|other| *other != device).collect();
        (!others.is_empty()).then(|| *self.random.pick(&others))
    }

    fn host_of(&mut self, device: BufferId) -> Option<BufferId> {
        let own = self.pairs.iter().find(|pair| pair.1 == device).map(|pair| pair.0);
        own.or_else(|| (!self.hosts.is_empty()).then(|| *self.random.pick(&self.hosts)))
    }

    /// Mostly all of a buffer.
    pub(super) fn range(&mut self) -> Range {
        let whole = match self.temper {
            Temper::Tidy => 97,
            Temper::Mixed => 88,
            Temper::Wild => 70,
        };
        if self.random.chance(whole) { Range::Whole } else { self.part() }
    }

    pub(super) fn part(&mut self) -> Range {
        match self.random.below(6) {
            0 => Range::FirstHalf,
            1 => Range::SecondHalf,
            2 => Range::Most,
            3 => Range::Dynamic,
            4 => Range::Row,
            _ => {
                let low = self.random.below(20);
                Range::Constant { low, high: low + self.random.between(1, 12) }
            }
        }
    }

    pub(super) fn form(&mut self) -> Form {
        Form {
            factor: [3, 1, 5][self.random.weighted(&[60, 20, 20])],
            addend: self.random.between(1, 90) as u8,
            round: self.depth > 0 && self.random.chance(70),
        }
    }

    pub(super) fn spot(&mut self) -> Spot {
        *self.random.pick(&[Spot::First, Spot::Middle, Spot::Last, Spot::Round])
    }

    fn way(&mut self) -> Way {
        [Way::Inline, Way::Helper, Way::Apart, Way::Library][self.random.weighted(&[55, 20, 15, 10])]
    }
}
