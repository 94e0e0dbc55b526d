//! A program's host half: one function, and one for each group of statements that stands apart.

use std::fmt::Write as _;

use super::super::edit;
use super::super::language::{
    BufferId, Checks, Condition, Count, Form, Grid, Kind, Length, Memory, Program, Range, Scope, Spot, Stmt, StmtId,
    StreamId, StreamKind, Way,
};
use super::super::machine;
use super::element;

/// The functions of a program, callees first. `inline`: it becomes part of its caller.
pub(super) fn function(program: &Program, inline: bool) -> String {
    let mut writer =
        Writer { program, text: String::new(), functions: String::new(), depth: 1, round: "0".into(), apart: false };
    writer.declarations();
    writer.block(&program.body);
    writer.text.push_str("cleanup:\n");
    writer.block(&program.tail);
    for (number, kind) in program.streams.iter().enumerate() {
        if machine::made(*kind) {
            writer.line(&format!("cudaStreamDestroy(s{number});"));
        }
    }
    for event in 0..program.events {
        writer.line(&format!("cudaEventDestroy(e{event});"));
    }
    writer.line("std::printf(\"%llx\\n\", acc);");
    writer.line("return rc ? rc : (int)(acc & 63);");

    let how = if inline { "static inline __attribute__((always_inline))" } else { "static APART" };
    let parameter = if program.constant_size { "" } else { "n" };
    let index = program.index;
    format!(
        "{}{how} int program_{index}(int {parameter}, int rounds, int flag, int length) {{\n{}}}\n",
        writer.functions, writer.text
    )
}

struct Writer<'a> {
    program: &'a Program,
    text: String,
    /// Functions that the statements so far need.
    functions: String,
    depth: usize,
    /// The round of the innermost loop.
    round: String,
    /// In a function apart, where there is no `cleanup`.
    apart: bool,
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        for _ in 0..self.depth {
            self.text.push_str("    ");
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// A call of the CUDA runtime, checked the program's way.
    fn cuda(&mut self, call: &str) {
        let line = match self.program.checks {
            Checks::None => format!("{call};"),
            Checks::Exit => format!("CHECK({call});"),
            Checks::Goto if self.apart => format!("CHECK({call});"),
            Checks::Goto => format!("CHECK_GOTO({call});"),
            Checks::Throw => format!("check_throw({call}, \"{}\");", call.split('(').next().unwrap_or_default()),
        };
        self.line(&line);
    }

    fn declarations(&mut self) {
        let program = self.program;
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
        for (id, buffer) in program.buffers.iter().enumerate() {
            let (name, count) = (self.name(id), count(buffer.length));
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
            if machine::made(*kind) {
                self.line(&format!("cudaStream_t s{number};"));
            }
        }
        for event in 0..program.events {
            self.line(&format!("cudaEvent_t e{event};"));
        }
        for (number, kind) in program.streams.iter().enumerate() {
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

    fn block(&mut self, block: &[Stmt]) {
        for stmt in block {
            self.statement(stmt);
        }
    }

    fn nested(&mut self, block: &[Stmt]) {
        self.depth += 1;
        self.block(block);
        self.depth -= 1;
    }

    fn statement(&mut self, stmt: &Stmt) {
        let id = stmt.id;
        match &stmt.kind {
            Kind::Fill { buffer, range, form, way } => {
                let (name, (low, high)) = (self.name(*buffer), self.bounds(&[*buffer], *range));
                let (a, c) = self.form(*form);
                match way {
                    Way::Inline => {
                        self.line(&format!("for (int i = {low}; i < {high}; i++) {name}[i] = T(i * {a}ull + {c});"));
                    }
                    Way::Helper => self.line(&format!("fill({name}, {low}, {high}, {a}, {c});")),
                    Way::Apart => self.line(&format!("fill_apart({name}, {low}, {high}, {a}, {c});")),
                    Way::Library => self.line(&format!(
                        "std::for_each({}, {name} + {high}, [&](T &v) {{ v = T((&v - {name}) * {a}ull + {c}); }});",
                        plus(&name, &low)
                    )),
                }
            }
            Kind::Update { buffer, range, form, way } => {
                let (name, (low, high)) = (self.name(*buffer), self.bounds(&[*buffer], *range));
                let (a, c) = self.form(*form);
                let from = plus(&name, &low);
                match way {
                    Way::Inline => self.line(&format!(
                        "for (int i = {low}; i < {high}; i++) {name}[i] = T({name}[i] * {a}ull + {c});"
                    )),
                    Way::Helper => self.line(&format!("update({name}, {low}, {high}, {a}, {c});")),
                    Way::Apart => self.line(&format!("update_apart({name}, {low}, {high}, {a}, {c});")),
                    Way::Library => self.line(&format!(
                        "std::transform({from}, {name} + {high}, {from}, [=](T v) {{ return T(v * {a}ull + {c}); }});"
                    )),
                }
            }
            Kind::Clear { buffer, range, byte } => {
                let (place, size) = (self.place(*buffer, &[*buffer], *range, 0), self.size(&[*buffer], *range, id));
                self.line(&format!("std::memset({place}, {byte}, {size});"));
            }
            Kind::HostCopy { to, from, range, way } => {
                let both = [*to, *from];
                let (target, source) = (self.place(*to, &both, *range, 0), self.place(*from, &both, *range, 0));
                let (low, high) = self.bounds(&both, *range);
                match way {
                    Way::Library => {
                        self.line(&format!("std::copy({source}, {} + {high}, {target});", self.name(*from)));
                    }
                    Way::Apart => self.line(&format!("copy_apart({target}, {source}, {high} - ({low}));")),
                    Way::Inline | Way::Helper => {
                        let size = self.size(&both, *range, id);
                        self.line(&format!("std::memcpy({target}, {source}, {size});"));
                    }
                }
            }
            Kind::Read { buffer, range, way } => {
                let (name, (low, high)) = (self.name(*buffer), self.bounds(&[*buffer], *range));
                match way {
                    Way::Inline => {
                        self.line(&format!("for (int i = {low}; i < {high}; i++) acc = acc * 31 + {name}[i];"));
                    }
                    Way::Helper => self.line(&format!("acc = digest({name}, {low}, {high}, acc);")),
                    Way::Apart => self.line(&format!("acc = digest_apart({name}, {low}, {high}, acc);")),
                    Way::Library => self.line(&format!(
                        "acc = std::accumulate({}, {name} + {high}, acc, [](Acc sum, T v) {{ return sum * 31 + v; }});",
                        plus(&name, &low)
                    )),
                }
            }
            Kind::ReadAt { buffer, at } => {
                let element = self.element_at(*buffer, *at);
                self.line(&format!("acc = acc * 31 + {element};"));
            }
            Kind::StoreAt { buffer, at, form } => {
                let (element, index) = (self.element_at(*buffer, *at), self.spot(*buffer, *at));
                let (a, c) = self.form(*form);
                self.line(&format!("{element} = T(({index}) * {a}ull + {c});"));
            }
            Kind::Print => self.line("std::printf(\"%llx\\n\", acc);"),
            Kind::Copy { to, from, range, shift, stream, default_kind } => {
                let both = [*to, *from];
                let (target, source) = (self.place(*to, &both, *range, *shift), self.place(*from, &both, *range, 0));
                let size = self.size(&both, *range, id);
                let kind = match (self.program.is_host(*from), self.program.is_host(*to)) {
                    _ if *default_kind => "cudaMemcpyDefault",
                    (true, true) => "cudaMemcpyHostToHost",
                    (true, false) => "cudaMemcpyHostToDevice",
                    (false, true) => "cudaMemcpyDeviceToHost",
                    (false, false) => "cudaMemcpyDeviceToDevice",
                };
                match stream {
                    None => self.cuda(&format!("cudaMemcpy({target}, {source}, {size}, {kind})")),
                    Some(stream) => {
                        let stream = self.stream(*stream);
                        self.cuda(&format!("cudaMemcpyAsync({target}, {source}, {size}, {kind}, {stream})"));
                    }
                }
            }
            Kind::Memset { buffer, range, byte, stream } => {
                let (place, size) = (self.place(*buffer, &[*buffer], *range, 0), self.size(&[*buffer], *range, id));
                match stream {
                    None => self.cuda(&format!("cudaMemset({place}, {byte}, {size})")),
                    Some(stream) => {
                        let stream = self.stream(*stream);
                        self.cuda(&format!("cudaMemsetAsync({place}, {byte}, {size}, {stream})"));
                    }
                }
            }
            Kind::Launch { kernel, buffers, range, form, stream } => {
                self.launch(*kernel, buffers, *range, *form, *stream);
            }
            Kind::Record { event, stream } => {
                let stream = self.stream(*stream);
                self.cuda(&format!("cudaEventRecord(e{event}, {stream})"));
            }
            Kind::StreamWait { stream, event } => {
                let stream = self.stream(*stream);
                self.cuda(&format!("cudaStreamWaitEvent({stream}, e{event}, 0)"));
            }
            Kind::Wait(Scope::Device) => self.cuda("cudaDeviceSynchronize()"),
            Kind::Wait(Scope::Stream(stream)) => {
                let stream = self.stream(*stream);
                self.cuda(&format!("cudaStreamSynchronize({stream})"));
            }
            Kind::Wait(Scope::Event(event)) => self.cuda(&format!("cudaEventSynchronize(e{event})")),
            Kind::Alloc(buffer) => self.allocate(*buffer, id),
            Kind::Free { buffer, guarded } => self.free(*buffer, *guarded),
            Kind::Swap(one, other) => {
                let (one, other) = (self.name(*one), self.name(*other));
                if id % 2 == 0 {
                    self.line(&format!("std::swap({one}, {other});"));
                } else {
                    self.line(&format!("{{ T *third = {one}; {one} = {other}; {other} = third; }}"));
                }
            }
            Kind::Loop { count, body } => self.repeat(*count, body, id),
            Kind::If { condition, then, otherwise } => {
                let condition = self.condition(*condition);
                self.line(&format!("if ({condition}) {{"));
                self.nested(then);
                if !otherwise.is_empty() {
                    self.line("} else {");
                    self.nested(otherwise);
                }
                self.line("}");
            }
            Kind::Break(condition) => {
                let condition = self.condition(*condition);
                self.line(&format!("if ({condition}) break;"));
            }
            Kind::Leave(condition) => {
                let condition = self.condition(*condition);
                self.line(&format!("if ({condition}) goto cleanup;"));
            }
            Kind::Call { way, body } => self.call(*way, body, id),
        }
    }

    fn repeat(&mut self, count: Count, body: &[Stmt], id: StmtId) {
        let outer = std::mem::replace(&mut self.round, format!("t{id}"));
        let limit = match count {
            Count::Constant(count) => count.to_string(),
            Count::Rounds => "rounds".into(),
        };
        let once = matches!(count, Count::Constant(count) if count > 0);
        match id % 4 {
            0 => {
                self.line(&format!("{{ int t{id} = 0; while (t{id} < {limit}) {{"));
                self.nested(body);
                self.line(&format!("    t{id}++;"));
                self.line("} }");
            }
            1 if once => {
                self.line(&format!("{{ int t{id} = 0; do {{"));
                self.nested(body);
                self.line(&format!("}} while (++t{id} < {limit}); }}"));
            }
            _ => {
                self.line(&format!("for (int t{id} = 0; t{id} < {limit}; t{id}++) {{"));
                self.nested(body);
                self.line("}");
            }
        }
        self.round = outer;
    }

    fn launch(&mut self, kernel: usize, buffers: &[BufferId], range: Range, form: Form, stream: StreamId) {
        let Some(what) = self.program.kernels.get(kernel) else { return };
        let (low, high) = self.bounds(buffers, range);
        let (a, c) = self.form(form);
        let threads = if low == "0" { high.clone() } else { format!("{high} - ({low})") };
        let grid = match what.grid {
            Grid::Each => format!("blocks({threads}), 64"),
            Grid::Stride => "2, 32".into(),
            Grid::Single => "1, 1".into(),
        };
        let grid = match self.program.streams[stream] {
            StreamKind::Legacy => grid,
            _ => format!("{grid}, 0, {}", self.stream(stream)),
        };
        let mut arguments: Vec<String> = buffers.iter().map(|buffer| self.name(*buffer)).collect();
        arguments.extend([low, high, a, c]);
        let name = format!("p{}_k{kernel}", self.program.index);
        let arguments = arguments.join(", ");
        let arguments = if what.structure { format!("{name}_arguments{{{arguments}}}") } else { arguments };
        self.line(&format!("{name}<<<{grid}>>>({arguments});"));
        if self.program.checks == Checks::Exit && kernel % 2 == 0 {
            self.cuda("cudaGetLastError()");
        }
    }

    fn allocate(&mut self, buffer: BufferId, id: StmtId) {
        let Some(what) = self.program.buffers.get(buffer) else { return };
        let (name, count) = (self.name(buffer), count(what.length));
        let size = self.size(&[buffer], Range::Whole, id);
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
            Memory::CudaMalloc => self.cuda(&format!("cudaMalloc(&{name}, {size})")),
            Memory::CudaMallocHelper => self.line(&format!("{name} = device_new<T>({count});")),
            Memory::CudaMallocAsync(stream) => {
                let stream = self.stream(stream);
                self.cuda(&format!("cudaMallocAsync((void **)&{name}, {size}, {stream})"));
            }
            Memory::Vector | Memory::UniquePtr | Memory::DeviceOwner => {}
        }
        let checked = self.program.checks != Checks::None && id % 2 == 0;
        if checked && matches!(what.memory, Memory::Malloc | Memory::Calloc | Memory::AlignedAlloc) {
            self.line(&format!("if (!{name}) std::exit(97);"));
        }
    }

    fn free(&mut self, buffer: BufferId, guarded: bool) {
        let Some(what) = self.program.buffers.get(buffer) else { return };
        let name = self.name(buffer);
        if guarded {
            self.line(&format!("if ({name}) {{"));
            self.depth += 1;
        }
        // Errors are not looked at where things end: the cleanup is where errors lead.
        match what.memory {
            Memory::Malloc | Memory::Calloc | Memory::AlignedAlloc => self.line(&format!("std::free({name});")),
            Memory::NewArray => self.line(&format!("delete[] {name};")),
            Memory::MallocHost | Memory::HostAlloc => self.line(&format!("cudaFreeHost({name});")),
            Memory::CudaMallocAsync(stream) if !guarded => {
                let stream = self.stream(stream);
                self.line(&format!("cudaFreeAsync({name}, {stream});"));
            }
            Memory::CudaMalloc | Memory::CudaMallocHelper | Memory::CudaMallocAsync(_) => {
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

    /// The statements in a function of their own, which is given what they use.
    fn call(&mut self, way: Way, body: &[Stmt], id: StmtId) {
        let name = format!("p{}_step{id}", self.program.index);
        let outer = std::mem::take(&mut self.text);
        let round = std::mem::replace(&mut self.round, "t".into());
        let depth = std::mem::replace(&mut self.depth, 1);
        self.apart = true;
        self.block(body);
        self.apart = false;
        self.depth = depth;
        let inner = std::mem::replace(&mut self.text, outer);
        self.round = round;

        let mut parameters: Vec<(String, String)> = Vec::new();
        for buffer in used(body) {
            parameters.push(("T *".into(), self.name(buffer)));
        }
        for (number, kind) in self.program.streams.iter().enumerate() {
            if machine::made(*kind) {
                parameters.push(("cudaStream_t ".into(), format!("s{number}")));
            }
        }
        for event in 0..self.program.events {
            parameters.push(("cudaEvent_t ".into(), format!("e{event}")));
        }
        let declared: String = parameters
            .iter()
            .map(|(kind, name)| format!("{kind}{name}, "))
            .collect::<String>()
            .replace("T *", &format!("{} *", element(self.program)));
        let given: String = parameters.iter().map(|(_, name)| format!("{name}, ")).collect();
        let how = if way == Way::Apart { "static APART" } else { "static inline" };
        let _ = writeln!(
            self.functions,
            "{how} Acc {name}(Acc acc, {declared}int n, int rounds, int flag, int length, int t) {{\n    \
             using T = {};\n    size_t bytes = n * sizeof(T);\n{inner}    return acc;\n}}",
            element(self.program)
        );
        let round = self.round.clone();
        self.line(&format!("acc = {name}(acc, {given}n, rounds, flag, length, {round});"));
    }

    // ------------------------------------------------------------ expressions

    fn name(&self, buffer: BufferId) -> String {
        format!("{}{buffer}", if self.program.is_host(buffer) { "h" } else { "d" })
    }

    fn stream(&self, stream: StreamId) -> String {
        match self.program.streams[stream] {
            StreamKind::Legacy => "0".into(),
            StreamKind::PerThread => "cudaStreamPerThread".into(),
            StreamKind::Blocking | StreamKind::NonBlocking => format!("s{stream}"),
        }
    }

    /// Factor and addend.
    fn form(&self, form: Form) -> (String, String) {
        let addend = match (form.round, self.round.as_str()) {
            (false, _) | (true, "0") => form.addend.to_string(),
            (true, round) => format!("{} + {round}", form.addend),
        };
        (form.factor.to_string(), addend)
    }

    /// The shortest length of some buffers, as an expression of `n`.
    fn length(&self, buffers: &[BufferId]) -> Length {
        let length = |buffer: &BufferId| self.program.buffers[*buffer].length;
        buffers.iter().map(length).min_by_key(|length| length.of(self.program.n)).unwrap_or(Length::N)
    }

    fn bounds(&self, buffers: &[BufferId], range: Range) -> (String, String) {
        let length = self.length(buffers);
        let count = count(length);
        match range {
            Range::Whole => ("0".into(), count),
            Range::FirstHalf => ("0".into(), format!("{count} / 2")),
            Range::SecondHalf => (format!("{count} / 2"), count),
            Range::Most => ("0".into(), format!("{count} - 1")),
            Range::Dynamic => ("0".into(), count.replace('n', "length")),
            Range::Constant { .. } => {
                let (low, high) = range.bounds(length.of(self.program.n), 0);
                (low.to_string(), high.to_string())
            }
            Range::Row => {
                let low = format!("{} % 4 * ({count} / 4)", self.round);
                let high = format!("{low} + {count} / 4");
                (low, high)
            }
        }
    }

    fn place(&self, buffer: BufferId, buffers: &[BufferId], range: Range, shift: usize) -> String {
        let (low, _) = self.bounds(buffers, range);
        let place = plus(&self.name(buffer), &low);
        if shift == 0 { place } else { format!("{place} + {shift}") }
    }

    /// Bytes of a range, in one of the ways that people write it.
    fn size(&self, buffers: &[BufferId], range: Range, id: StmtId) -> String {
        let (low, high) = self.bounds(buffers, range);
        let length = self.length(buffers);
        let simple = range == Range::Whole && length == Length::N;
        let count = match (simple, low.as_str()) {
            (true, _) => "n".into(),
            (false, "0") => format!("({high})"),
            (false, _) => format!("({high} - ({low}))"),
        };
        match id % 4 {
            0 => format!("{count} * sizeof(T)"),
            1 => format!("sizeof(T) * {count}"),
            2 if simple => "bytes".into(),
            _ => format!("(size_t){count} * sizeof(T)"),
        }
    }

    fn spot(&self, buffer: BufferId, at: Spot) -> String {
        let count = count(self.program.buffers[buffer].length);
        match at {
            Spot::First => "0".into(),
            Spot::Middle => format!("{count} / 2"),
            Spot::Last => format!("{count} - 1"),
            Spot::Round => format!("{} % ({count})", self.round),
        }
    }

    fn element_at(&self, buffer: BufferId, at: Spot) -> String {
        format!("{}[{}]", self.name(buffer), self.spot(buffer, at))
    }

    fn condition(&self, condition: Condition) -> String {
        match condition {
            Condition::Flag => "flag".into(),
            Condition::NotFlag => "!flag".into(),
            Condition::RoundIs(round) => format!("{} == {round}", self.round),
            Condition::RoundOdd => format!("{} % 2 == 1", self.round),
            Condition::AccOdd => "acc & 1".into(),
            Condition::Data { buffer, at } => format!("{} & 1", self.element_at(buffer, at)),
        }
    }
}

fn count(length: Length) -> String {
    match length {
        Length::N => "n",
        Length::Half => "(n / 2)",
        Length::More => "(n + 16)",
    }
    .into()
}

fn plus(name: &str, offset: &str) -> String {
    if offset == "0" { name.into() } else { format!("{name} + {offset}") }
}

/// The buffers that statements mention.
fn used(block: &[Stmt]) -> Vec<BufferId> {
    let mut used = Vec::new();
    edit::visit(block, &mut |stmt| used.extend(buffers(&stmt.kind)));
    used.sort_unstable();
    used.dedup();
    used
}

/// The buffers that a statement itself mentions.
fn buffers(kind: &Kind) -> Vec<BufferId> {
    let of_condition = |condition: &Condition| match condition {
        Condition::Data { buffer, .. } => vec![*buffer],
        _ => Vec::new(),
    };
    match kind {
        Kind::Fill { buffer, .. }
        | Kind::Update { buffer, .. }
        | Kind::Clear { buffer, .. }
        | Kind::Read { buffer, .. }
        | Kind::ReadAt { buffer, .. }
        | Kind::StoreAt { buffer, .. }
        | Kind::Memset { buffer, .. }
        | Kind::Alloc(buffer)
        | Kind::Free { buffer, .. } => vec![*buffer],
        Kind::HostCopy { to, from, .. } | Kind::Copy { to, from, .. } => vec![*to, *from],
        Kind::Swap(one, other) => vec![*one, *other],
        Kind::Launch { buffers, .. } => buffers.clone(),
        Kind::If { condition, .. } | Kind::Break(condition) | Kind::Leave(condition) => of_condition(condition),
        Kind::Print
        | Kind::Record { .. }
        | Kind::StreamWait { .. }
        | Kind::Wait(_)
        | Kind::Loop { .. }
        | Kind::Call { .. } => Vec::new(),
    }
}
