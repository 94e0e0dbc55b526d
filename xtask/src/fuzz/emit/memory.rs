//! Where buffers, streams and events begin and end.

use super::super::language::{BufferId, Checks, Memory, Range, StmtId, StreamKind};
use super::super::machine;
use super::element;
use super::expression::count;
use super::host::Writer;

impl Writer<'_> {
    pub(super) fn declarations(&mut self) {
        let (program, used) = (self.program, self.used);
        self.line(&format!("using T = {};", element(program)));
        if program.constant_size {
            self.line(&format!("constexpr int n = {};", program.n));
        }
        if program.waits_first {
            // Not checked: what follows is declarations, past which nothing may jump.
            self.line("cudaDeviceSynchronize();");
        }
        self.line(&format!("Acc acc = {};", machine::SEED));
        self.line("int rc = 0;");
        self.line("size_t bytes = n * sizeof(T);");
        for (id, buffer) in program.buffers.iter().enumerate().filter(|(id, _)| used.buffers.contains(id)) {
            let (name, count) = (self.scene.name(id), count(buffer.length));
            match buffer.memory {
                Memory::Vector => self.line(&format!("std::vector<T> {name}_owner({count});")),
                Memory::UniquePtr => self.line(&format!("std::unique_ptr<T[]> {name}_owner(new T[{count}]);")),
                Memory::DeviceOwner => self.line(&format!("Device<T> {name}_owner({count});")),
                _ => {}
            }
            match buffer.memory {
                Memory::Vector => self.line(&format!("T *{name} = {name}_owner.data();")),
                Memory::UniquePtr | Memory::DeviceOwner => self.line(&format!("T *{name} = {name}_owner.get();")),
                _ => self.line(&format!("T *{name} = nullptr;")),
            }
        }
        for (number, kind) in program.streams.iter().enumerate() {
            if machine::made(*kind) && self.used.streams.contains(&number) {
                self.line(&format!("cudaStream_t s{number};"));
            }
        }
        for event in 0..program.events {
            self.line(&format!("cudaEvent_t e{event};"));
        }
        for (number, kind) in program.streams.iter().enumerate().filter(|(number, _)| used.streams.contains(number)) {
            match kind {
                StreamKind::Blocking => self.cuda(&format!("cudaStreamCreate(&s{number})")),
                StreamKind::NonBlocking => {
                    self.cuda(&format!("cudaStreamCreateWithFlags(&s{number}, cudaStreamNonBlocking)"));
                }
                StreamKind::Legacy | StreamKind::PerThread => {}
            }
        }
        for event in 0..program.events {
            self.cuda(&format!("cudaEventCreateWithFlags(&e{event}, cudaEventDisableTiming)"));
        }
    }

    pub(super) fn allocate(&mut self, buffer: BufferId, id: StmtId) {
        let Some(what) = self.program.buffers.get(buffer) else { return };
        let (name, count) = (self.scene.name(buffer), count(what.length));
        let size = self.scene.size(&[buffer], Range::Whole, id);
        match what.memory {
            Memory::Malloc => self.line(&format!("{name} = (T *)std::malloc({size});")),
            Memory::Calloc => self.line(&format!("{name} = (T *)std::calloc({count}, sizeof(T));")),
            Memory::AlignedAlloc => {
                self.line(&format!("{name} = (T *)std::aligned_alloc(alignof(T) < 64 ? 64 : alignof(T), {size});"));
            }
            Memory::NewArray => self.line(&format!("{name} = new T[{count}];")),
            Memory::MallocHost => self.cuda(&format!("cudaMallocHost((void **)&{name}, {size})")),
            Memory::HostAlloc => {
                self.cuda(&format!("cudaHostAlloc((void **)&{name}, {size}, cudaHostAllocDefault)"));
            }
            Memory::CudaMalloc | Memory::CudaMallocFreedAsync(_) => self.cuda(&format!("cudaMalloc(&{name}, {size})")),
            Memory::CudaMallocHelper => self.line(&format!("{name} = device_new<T>({count});")),
            Memory::CudaMallocAsync(stream) => {
                let stream = self.scene.stream(stream);
                self.cuda(&format!("cudaMallocAsync((void **)&{name}, {size}, {stream})"));
            }
            Memory::Vector | Memory::UniquePtr | Memory::DeviceOwner => {}
        }
        let checked = self.program.checks != Checks::None && id.is_multiple_of(2);
        if checked && matches!(what.memory, Memory::Malloc | Memory::Calloc | Memory::AlignedAlloc) {
            self.line(&format!("if (!{name}) std::exit(97);"));
        }
    }

    pub(super) fn free(&mut self, buffer: BufferId, guarded: bool) {
        let Some(what) = self.program.buffers.get(buffer) else { return };
        let name = self.scene.name(buffer);
        if guarded {
            self.line(&format!("if ({name}) {{"));
            self.depth += 1;
        }
        // Errors are not looked at where things end: the cleanup is where errors lead.
        match what.memory {
            Memory::Malloc | Memory::Calloc | Memory::AlignedAlloc => self.line(&format!("std::free({name});")),
            Memory::NewArray => self.line(&format!("delete[] {name};")),
            Memory::MallocHost | Memory::HostAlloc => self.line(&format!("cudaFreeHost({name});")),
            Memory::CudaMallocAsync(stream) | Memory::CudaMallocFreedAsync(stream) if !guarded => {
                let stream = self.scene.stream(stream);
                self.line(&format!("cudaFreeAsync({name}, {stream});"));
            }
            Memory::CudaMalloc
            | Memory::CudaMallocHelper
            | Memory::CudaMallocAsync(_)
            | Memory::CudaMallocFreedAsync(_) => {
                self.line(&format!("cudaFree({name});"));
            }
            Memory::Vector | Memory::UniquePtr | Memory::DeviceOwner => {}
        }
        if guarded {
            self.line(&format!("{name} = nullptr;"));
            self.depth -= 1;
            self.line("}");
        }
    }
}
