//! A program's host half: one function, and one for each group of statements that stands apart.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::super::edit;
use super::super::language::{
    BufferId, Checks, Condition, Count, Form, Grid, Kind, Program, Range, Scope, Stmt, StmtId, StreamId, StreamKind,
    Way,
};
use super::super::machine;
use super::element;
use super::expression::{Scene, plus};

/// The functions of a program, callees first. `inline`: it becomes part of its caller.
pub(super) fn function(program: &Program, inline: bool) -> String {
    let all = [program.body.as_slice(), program.tail.as_slice()].concat();
    let used = used(program, &all);
    let mut writer = Writer {
        program,
        scene: Scene { program, round: "0".into() },
        used: &used,
        text: String::new(),
        functions: String::new(),
        depth: 1,
        apart: false,
    };
    writer.declarations();
    writer.block(&program.body);
    writer.text.push_str("cleanup:\n");
    writer.block(&program.tail);
    for (number, kind) in program.streams.iter().enumerate() {
        if machine::made(*kind) && writer.used.streams.contains(&number) {
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

/// What statements mention.
#[derive(Default)]
pub(super) struct Used {
    pub(super) buffers: BTreeSet<BufferId>,
    pub(super) streams: BTreeSet<StreamId>,
}

/// Writes one function.
pub(super) struct Writer<'a> {
    pub(super) program: &'a Program,
    pub(super) scene: Scene<'a>,
    pub(super) used: &'a Used,
    text: String,
    /// Functions that the statements so far need.
    functions: String,
    pub(super) depth: usize,
    /// In a function apart, where there is no `cleanup`.
    apart: bool,
}

impl Writer<'_> {
    pub(super) fn line(&mut self, line: &str) {
        for _ in 0..self.depth {
            self.text.push_str("    ");
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// A call of the CUDA runtime, checked the program's way.
    pub(super) fn cuda(&mut self, call: &str) {
        let line = match self.program.checks {
            Checks::None => format!("{call};"),
            Checks::Exit => format!("CHECK({call});"),
            Checks::Goto if self.apart => format!("CHECK({call});"),
            Checks::Goto => format!("CHECK_GOTO({call});"),
            Checks::Throw => format!("check_throw({call}, \"{}\");", call.split('(').next().unwrap_or_default()),
        };
        self.line(&line);
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
                let (name, (low, high)) = (self.scene.name(*buffer), self.scene.bounds(&[*buffer], *range));
                let (a, c) = self.scene.form(*form);
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
                let (name, (low, high)) = (self.scene.name(*buffer), self.scene.bounds(&[*buffer], *range));
                let (a, c) = self.scene.form(*form);
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
                let (place, size) =
                    (self.scene.place(*buffer, &[*buffer], *range, 0), self.scene.size(&[*buffer], *range, id));
                self.line(&format!("std::memset({place}, {byte}, {size});"));
            }
            Kind::HostCopy { to, from, range, way } => {
                let both = [*to, *from];
                let (target, source) =
                    (self.scene.place(*to, &both, *range, 0), self.scene.place(*from, &both, *range, 0));
                let (low, high) = self.scene.bounds(&both, *range);
                match way {
                    Way::Library => {
                        self.line(&format!("std::copy({source}, {} + {high}, {target});", self.scene.name(*from)));
                    }
                    Way::Apart => self.line(&format!("copy_apart({target}, {source}, {high} - ({low}));")),
                    Way::Inline | Way::Helper => {
                        let size = self.scene.size(&both, *range, id);
                        self.line(&format!("std::memcpy({target}, {source}, {size});"));
                    }
                }
            }
            Kind::Read { buffer, range, way } => {
                let (name, (low, high)) = (self.scene.name(*buffer), self.scene.bounds(&[*buffer], *range));
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
                let element = self.scene.element_at(*buffer, *at);
                self.line(&format!("acc = acc * 31 + {element};"));
            }
            Kind::StoreAt { buffer, at, form } => {
                let (element, index) = (self.scene.element_at(*buffer, *at), self.scene.spot(*buffer, *at));
                let (a, c) = self.scene.form(*form);
                self.line(&format!("{element} = T(({index}) * {a}ull + {c});"));
            }
            Kind::Print => self.line("std::printf(\"%llx\\n\", acc);"),
            Kind::Copy { to, from, range, shift, stream, default_kind } => {
                let both = [*to, *from];
                let (target, source) =
                    (self.scene.place(*to, &both, *range, *shift), self.scene.place(*from, &both, *range, 0));
                let size = self.scene.size(&both, *range, id);
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
                        let stream = self.scene.stream(*stream);
                        self.cuda(&format!("cudaMemcpyAsync({target}, {source}, {size}, {kind}, {stream})"));
                    }
                }
            }
            Kind::Memset { buffer, range, byte, stream } => {
                let (place, size) =
                    (self.scene.place(*buffer, &[*buffer], *range, 0), self.scene.size(&[*buffer], *range, id));
                match stream {
                    None => self.cuda(&format!("cudaMemset({place}, {byte}, {size})")),
                    Some(stream) => {
                        let stream = self.scene.stream(*stream);
                        self.cuda(&format!("cudaMemsetAsync({place}, {byte}, {size}, {stream})"));
                    }
                }
            }
            Kind::Launch { kernel, buffers, range, form, stream } => {
                self.launch(*kernel, buffers, *range, *form, *stream);
            }
            Kind::Record { event, stream } => {
                let stream = self.scene.stream(*stream);
                self.cuda(&format!("cudaEventRecord(e{event}, {stream})"));
            }
            Kind::StreamWait { stream, event } => {
                let stream = self.scene.stream(*stream);
                self.cuda(&format!("cudaStreamWaitEvent({stream}, e{event}, 0)"));
            }
            Kind::Wait(Scope::Device) => self.cuda("cudaDeviceSynchronize()"),
            Kind::Wait(Scope::Stream(stream)) => {
                let stream = self.scene.stream(*stream);
                self.cuda(&format!("cudaStreamSynchronize({stream})"));
            }
            Kind::Wait(Scope::Event(event)) => self.cuda(&format!("cudaEventSynchronize(e{event})")),
            Kind::Alloc(buffer) => self.allocate(*buffer, id),
            Kind::Free { buffer, guarded } => self.free(*buffer, *guarded),
            Kind::Swap(one, other) => {
                let (one, other) = (self.scene.name(*one), self.scene.name(*other));
                if id.is_multiple_of(2) {
                    self.line(&format!("std::swap({one}, {other});"));
                } else {
                    self.line(&format!("{{ T *third = {one}; {one} = {other}; {other} = third; }}"));
                }
            }
            Kind::Loop { count, body } => self.repeat(*count, body, id),
            Kind::If { condition, then, otherwise } => {
                let condition = self.scene.condition(*condition);
                self.line(&format!("if ({condition}) {{"));
                self.nested(then);
                if !otherwise.is_empty() {
                    self.line("} else {");
                    self.nested(otherwise);
                }
                self.line("}");
            }
            Kind::Break(condition) => {
                let condition = self.scene.condition(*condition);
                self.line(&format!("if ({condition}) break;"));
            }
            Kind::Leave(condition) => {
                let condition = self.scene.condition(*condition);
                self.line(&format!("if ({condition}) goto cleanup;"));
            }
            Kind::Call { way, body } => self.call(*way, body, id),
        }
    }

    fn repeat(&mut self, count: Count, body: &[Stmt], id: StmtId) {
        let outer = std::mem::replace(&mut self.scene.round, format!("t{id}"));
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
        self.scene.round = outer;
    }

    fn launch(&mut self, kernel: usize, buffers: &[BufferId], range: Range, form: Form, stream: StreamId) {
        let Some(what) = self.program.kernels.get(kernel) else { return };
        let (low, high) = self.scene.bounds(buffers, range);
        let (a, c) = self.scene.form(form);
        let threads = if low == "0" { high.clone() } else { format!("{high} - ({low})") };
        let grid = match what.grid {
            Grid::Each => format!("blocks({threads}), 64"),
            Grid::Stride => "2, 32".into(),
            Grid::Single => "1, 1".into(),
        };
        let grid = match self.program.streams[stream] {
            StreamKind::Legacy => grid,
            _ => format!("{grid}, 0, {}", self.scene.stream(stream)),
        };
        let mut arguments: Vec<String> = buffers.iter().map(|buffer| self.scene.name(*buffer)).collect();
        // (Braces take no narrowing.)
        let c = if what.structure { format!("Acc({c})") } else { c };
        arguments.extend([low, high, a, c]);
        let name = format!("p{}_k{kernel}", self.program.index);
        let arguments = arguments.join(", ");
        let arguments = if what.structure { format!("{name}_arguments{{{arguments}}}") } else { arguments };
        self.line(&format!("{name}<<<{grid}>>>({arguments});"));
        if self.program.checks == Checks::Exit && kernel.is_multiple_of(2) {
            self.cuda("cudaGetLastError()");
        }
    }

    /// The statements in a function of their own, which is given what they use.
    fn call(&mut self, way: Way, body: &[Stmt], id: StmtId) {
        let name = format!("p{}_step{id}", self.program.index);
        let outer = std::mem::take(&mut self.text);
        let round = std::mem::replace(&mut self.scene.round, "t".into());
        let depth = std::mem::replace(&mut self.depth, 1);
        self.apart = true;
        self.block(body);
        self.apart = false;
        self.depth = depth;
        let inner = std::mem::replace(&mut self.text, outer);
        self.scene.round = round;

        let mut parameters: Vec<(String, String)> = Vec::new();
        let uses = used(self.program, body);
        for buffer in &uses.buffers {
            parameters.push(("T *".into(), self.scene.name(*buffer)));
        }
        for (number, kind) in self.program.streams.iter().enumerate() {
            if machine::made(*kind) && uses.streams.contains(&number) {
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
        let round = self.scene.round.clone();
        self.line(&format!("acc = {name}(acc, {given}n, rounds, flag, length, {round});"));
    }
}

/// What statements mention, with the streams that the memory they mention belongs to.
fn used(program: &Program, block: &[Stmt]) -> Used {
    let mut used = Used::default();
    edit::visit(block, &mut |stmt| {
        used.buffers.extend(buffers(&stmt.kind));
        used.streams.extend(stream(&stmt.kind));
    });
    for buffer in &used.buffers {
        used.streams.extend(program.buffers[*buffer].memory.freed_in());
    }
    used
}

/// The stream that a statement itself mentions.
fn stream(kind: &Kind) -> Option<StreamId> {
    match kind {
        Kind::Copy { stream, .. } | Kind::Memset { stream, .. } => *stream,
        Kind::Launch { stream, .. }
        | Kind::Record { stream, .. }
        | Kind::StreamWait { stream, .. }
        | Kind::Wait(Scope::Stream(stream)) => Some(*stream),
        _ => None,
    }
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
