//! Calls of GPU libraries (cuBLAS, cuFFT …): what they queue, and on which stream.
//!
//! A library's work goes to the stream of its handle. Which one that is, is known where the handle is a variable of the function's own that
//! goes to the library only: then the last call that made the handle or gave it a stream says. Elsewhere nothing orders the work, and no wait
//! but the device's covers it. No library call is assumed to wait, not even one that hands a result to the host.

use super::Lowering;
use super::slots::{Cell, Definition};
use crate::analysis::program::{AccessKind, Event, Space, StreamId, UseKind, Work, WorkKind};
use crate::calls::models::{Library, Model};
use crate::calls::{Callee, classify};
use crate::ir::{Opcode, Value};

impl<'m> Lowering<'_, 'm> {
    /// A call of a library's function.
    pub(super) fn library_call(
        &mut self,
        call: Value<'m>,
        model: &Model,
        library: Library,
        name: String,
    ) -> Vec<Event> {
        let stream = match library {
            Library::SetStream(_) => {
                self.unexplained(call, &[], &name);
                return Vec::new();
            }
            Library::OnHandle => self.stream_of_handle(call),
            Library::OnStream(index) => match call.argument(u32::from(index)) {
                Some(handle) => self.stream(handle, false, call),
                None => self.unknown_stream(call),
            },
            Library::Create { .. } | Library::Work => self.unknown_stream(call),
        };
        let mut accesses = Vec::new();
        for (index, pointer) in self.pointer_arguments(call, &[]) {
            let device =
                super::allocations::space(self.allocations[pointer.object.0 as usize].allocator) == Space::Device;
            let param = model.param(index as usize).filter(|param| {
                // A number in host memory is for the host or for the GPU, as the handle's mode says.
                !param.keeps && !param.observes && (param.reads || param.writes) && (device || !param.by_mode)
            });
            let Some(param) = param.filter(|_| !matches!(library, Library::Work | Library::Create { .. })) else {
                self.record_use(call, pointer.object, UseKind::PassedTo(name.clone()));
                continue;
            };
            for (touches, kind) in [(param.reads, AccessKind::Read), (param.writes, AccessKind::Write)] {
                if touches {
                    accesses.push(self.host_access(call, &pointer, kind, None, false));
                }
            }
        }
        let kind = WorkKind::Library;
        vec![Event::Enqueue { stream, work: Work { name, kind, accesses, touches_captured: false, captures: vec![] } }]
    }

    /// The stream of the handle that is a call's first argument.
    fn stream_of_handle(&mut self, call: Value<'m>) -> StreamId {
        match self.stream_given_to_handle(call) {
            Some(Some((set, stream))) => self.stream(stream, false, set),
            Some(None) => self.default_stream(false),
            None => self.unknown_stream(call),
        }
    }

    /// The call that gave the handle its stream, and that; `Some(None)` if none did since the handle was made.
    fn stream_given_to_handle(&self, call: Value<'m>) -> Option<Option<(Value<'m>, Value<'m>)>> {
        let handle = call.argument(0).filter(|handle| handle.opcode() == Some(Opcode::LLVMLoad))?;
        let length = self.module.store_size(handle.ty())?;
        let cell = self.slots.cell(self.module, handle.operand(0)?)?;
        let creates =
            self.slots.reaching(cell, length, handle, self.flow).into_iter().map(|definition| match definition {
                Definition::Call(create) if matches!(library_of(create), Some(Library::Create { .. })) => Some(create),
                _ => None,
            });
        let mut turns: Vec<Value<'m>> = creates.collect::<Option<_>>()?;
        turns.extend(self.sets_of_stream(cell, length)?);
        // One last turn on each way, and the same on all.
        let [turn] = self.flow.backwards(call, &turns.into_iter().collect(), |turn| Some(Some(turn)), None)[..] else {
            return None;
        };
        let turn = turn?;
        match library_of(turn)? {
            Library::SetStream(index) => Some(Some((turn, turn.argument(u32::from(index))?))),
            _ => Some(None),
        }
    }

    /// The calls that give the handle in these bytes a stream; `None` if anything but library calls gets the handle.
    fn sets_of_stream(&self, cell: Cell<'m>, length: u64) -> Option<Vec<Value<'m>>> {
        let mut sets = Vec::new();
        for handle in self.slots.values_of(cell, length)? {
            for usage in handle.uses() {
                match library_of(usage.user) {
                    _ if usage.user.opcode() == Some(Opcode::LLVMICmp) => {}
                    Some(Library::SetStream(_)) if usage.operand == 0 => sets.push(usage.user),
                    Some(_) if usage.operand == 0 => {}
                    None if usage.operand == 0 && is_modelled(usage.user) => {}
                    _ => return None,
                }
            }
        }
        Some(sets)
    }
}

fn library_of(call: Value<'_>) -> Option<Library> {
    let callee = call.called_function().filter(|callee| callee.is_declaration())?;
    match classify(&callee.name()) {
        Callee::Modelled(model) => model.library,
        _ => None,
    }
}

/// Settings of a handle that are no work (cublasSetMathMode …) have a model.
fn is_modelled(call: Value<'_>) -> bool {
    call.called_function()
        .filter(|callee| callee.is_declaration())
        .is_some_and(|callee| matches!(classify(&callee.name()), Callee::Modelled(_)))
}
