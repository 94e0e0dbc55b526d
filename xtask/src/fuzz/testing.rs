//! Programs for the unit tests.

use super::language::{
    Action, Buffer, Checks, Element, Form, Grid, Input, Kernel, Kind, Length, Memory, Program, Range, StreamKind,
    Trust, Way,
};

/// Host buffer of [`program`].
pub(super) const H: usize = 0;
/// Device buffer of [`program`].
pub(super) const D: usize = 1;

/// A program without statements: one host buffer, one device buffer, a legacy, a blocking and a non-blocking stream, an event, a kernel
/// that works in place.
pub(super) fn program() -> Program {
    let buffer = |memory| Buffer { memory, length: Length::N };
    Program {
        index: 0,
        element: Element::U32,
        n: 40,
        constant_size: false,
        checks: Checks::Exit,
        buffers: vec![buffer(Memory::Malloc), buffer(Memory::CudaMalloc)],
        streams: vec![StreamKind::Legacy, StreamKind::Blocking, StreamKind::NonBlocking],
        events: 1,
        kernels: vec![Kernel { action: Action::Scale, grid: Grid::Each, qualified: false, structure: false }],
        body: Vec::new(),
        tail: Vec::new(),
        trust: Trust { staging: false, free_waits: false },
        inputs: [Input { rounds: 2, flag: false }, Input { rounds: 3, flag: true }],
        waits_first: true,
        next_id: 0,
    }
}

/// [`program`] with these statements as its body.
pub(super) fn with(kinds: Vec<Kind>) -> Program {
    let mut program = program();
    for kind in kinds {
        let stmt = program.fresh(kind);
        program.body.push(stmt);
    }
    program
}

pub(super) const FORM: Form = Form { factor: 3, addend: 5, round: false };

pub(super) fn fill() -> Kind {
    Kind::Fill { buffer: H, range: Range::Whole, form: FORM, way: Way::Inline }
}

pub(super) fn read() -> Kind {
    Kind::Read { buffer: H, range: Range::Whole, way: Way::Inline }
}

pub(super) fn upload(stream: Option<usize>) -> Kind {
    Kind::Copy { to: D, from: H, range: Range::Whole, shift: 0, stream, default_kind: false }
}

pub(super) fn download(stream: Option<usize>) -> Kind {
    Kind::Copy { to: H, from: D, range: Range::Whole, shift: 0, stream, default_kind: false }
}

pub(super) fn scale(stream: usize) -> Kind {
    Kind::Launch { kernel: 0, buffers: vec![D], range: Range::Whole, form: FORM, stream }
}
