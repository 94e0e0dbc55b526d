//! What the engine's tests share: plans, and traces that are written call by call.

use echo_dr_format::context::{Attributes, Context, DeviceIdentity, FileIdentity, Process};
use echo_dr_format::event::{Call, CopyKind, DeviceKind, Event, HostKind, Shape, Stream, WaitFor};
use echo_dr_format::plan::{BackendName, CopySite, Direction, First, Pair, Plan, State, Wait, Way};
use echo_dr_format::site::{Hash64, Site};
use echo_dr_format::trace::{End, Header, Mode, Trace};

pub(crate) const N: usize = 4096;
pub(crate) const HOST: Site = Site(0x11);
pub(crate) const DEVICE: Site = Site(0x22);
pub(crate) const UPLOAD: Site = Site(0x33);
pub(crate) const DOWNLOAD: Site = Site(0x44);
pub(crate) const STREAM: Stream = Stream(0x5000);

/// Orin, but for the access rule.
pub(crate) const DEVICE_FACTS: Attributes = Attributes {
    integrated: true,
    managed_memory: true,
    concurrent_managed_access: true,
    pageable_memory_access: false,
    host_page_tables: false,
    mapped_host_memory: true,
};

pub(crate) fn context() -> Context {
    let executable = FileIdentity { path: "/bin/app".into(), build_id: "ab".into(), bytes: 10, hash: Hash64(1) };
    Context {
        process: Process { executable, libraries: Vec::new(), host: "jetson".into(), arguments: vec!["-n".into()] },
        device: Some(DeviceIdentity {
            name: "Orin".into(),
            uuid: String::new(),
            compute: (8, 7),
            driver: 13000,
            runtime: Some(13000),
            attributes: DEVICE_FACTS,
        }),
    }
}

/// A pair of blocks of `N` bytes, host block first, one at a time, enabled.
pub(crate) fn pair(direction: Direction) -> Pair {
    let copy = |site, way, wait| CopySite { site, way, asynchronous: false, count: 2, took: 0, wait };
    let copies = [copy(UPLOAD, Way::Upload, Wait::Covered), copy(DOWNLOAD, Way::Download, Wait::Device)];
    Pair {
        id: 0,
        host: HOST,
        device: DEVICE,
        bytes: N as u64,
        page_locked: false,
        direction,
        first: First::Host,
        same_thread: true,
        waiting: 1,
        alive: 1,
        buffers: 1,
        copies: copies.into_iter().filter(|copy| direction.has(copy.way)).collect(),
        exclusive: false,
        backend: BackendName::Managed,
        state: State::Enabled,
        measured: Vec::new(),
    }
}

pub(crate) fn plan(pairs: Vec<Pair>) -> Plan {
    Plan {
        context: context(),
        threshold: 1,
        loop_site: None,
        together: None,
        pairs,
        ineligible: Vec::new(),
        notes: Vec::new(),
    }
}

/// A trace under construction. Each call takes 10 ns and has the time after the last one.
pub(crate) struct Tracer {
    pub(crate) events: Vec<Event>,
    pub(crate) thread: u32,
}

impl Tracer {
    pub(crate) fn new() -> Self {
        Self { events: Vec::new(), thread: 0 }
    }

    pub(crate) fn call(&mut self, site: Site, call: Call) -> &mut Self {
        let time = 100 * (self.events.len() as u64 + 1);
        self.events.push(Event { time, took: 10, thread: self.thread, site, api: "test".into(), call });
        self
    }

    pub(crate) fn malloc(&mut self, ptr: u64) -> &mut Self {
        self.host(HOST, ptr, N as u64, HostKind::Heap)
    }

    pub(crate) fn host(&mut self, site: Site, ptr: u64, bytes: u64, kind: HostKind) -> &mut Self {
        self.call(site, Call::HostAlloc { ptr, bytes, align: 0, kind })
    }

    pub(crate) fn cuda_malloc(&mut self, ptr: u64) -> &mut Self {
        self.device(DEVICE, ptr, N as u64, DeviceKind::Plain)
    }

    pub(crate) fn device(&mut self, site: Site, ptr: u64, bytes: u64, kind: DeviceKind) -> &mut Self {
        self.call(site, Call::DeviceAlloc { ptr, bytes, kind })
    }

    pub(crate) fn free(&mut self, ptr: u64) -> &mut Self {
        self.call(Site(0), Call::HostFree { ptr })
    }

    pub(crate) fn cuda_free(&mut self, ptr: u64) -> &mut Self {
        self.call(Site(0), Call::DeviceFree { ptr, asynchronous: false })
    }

    pub(crate) fn upload(&mut self, dst: u64, src: u64) -> &mut Self {
        self.copy(UPLOAD, dst, src, N as u64, CopyKind::HostToDevice)
    }

    pub(crate) fn download(&mut self, dst: u64, src: u64) -> &mut Self {
        self.copy(DOWNLOAD, dst, src, N as u64, CopyKind::DeviceToHost)
    }

    pub(crate) fn copy(&mut self, site: Site, dst: u64, src: u64, bytes: u64, kind: CopyKind) -> &mut Self {
        self.copy_in(site, (dst, src, bytes), kind, Stream::LEGACY, false, Shape::Linear)
    }

    pub(crate) fn copy_in(
        &mut self,
        site: Site,
        (dst, src, bytes): (u64, u64, u64),
        kind: CopyKind,
        stream: Stream,
        asynchronous: bool,
        shape: Shape,
    ) -> &mut Self {
        self.call(site, Call::Copy { dst, src, bytes, kind, stream, asynchronous, shape })
    }

    pub(crate) fn launch(&mut self, stream: Stream) -> &mut Self {
        self.call(Site(0x99), Call::Launch { stream })
    }

    pub(crate) fn wait(&mut self) -> &mut Self {
        self.call(Site(0x98), Call::Wait { on: WaitFor::Device })
    }

    pub(crate) fn trace(&self) -> Trace {
        Trace {
            header: Header {
                schema: echo_dr_format::SCHEMA,
                mode: Mode::Profile,
                version: "0".into(),
                context: context(),
                threshold: 1,
                page_size: 4096,
                pid: 1,
                forked_from: None,
            },
            modules: Vec::new(),
            frames: Vec::new(),
            events: self.events.clone(),
            findings: Vec::new(),
            seen: Vec::new(),
            end: Some(End { time: 0, lost: 0 }),
            truncated: false,
        }
    }
}
