//! May the function's GPU work be on more than one device?
//!
//! A wait for the device, and the default stream, mean the device that is current. So all that concerns the device must happen while one is:
//! no call that selects a device, here or in a callee, may come after anything else that has to do with it. (`cudaSetDevice(choice)` at the
//! start of the function is fine, whatever the choice.) Another thread's current device is its own.

use super::context::call_facts;
use super::{Context, Lowering};
use crate::analysis::program::{Event, ObjectId, Space};
use crate::calls::cuda::Meaning;
use crate::calls::{Callee, classify};
use crate::ir::{Block, Value};

impl<'m> Lowering<'_, 'm> {
    /// See the module.
    pub(super) fn works_on_several_devices(&self) -> bool {
        if !self.context.facts.selects_devices {
            return false;
        }
        let instructions = || self.flow.blocks().iter().copied().flat_map(Block::instructions);
        let handles = instructions().filter(|call| makes_handle(*call));
        let events = self.program.graph.node_weights().filter(|node| self.concerns_device(&node.event));
        let concerned = events.filter_map(|node| self.origins.get(node.origin as usize).copied().flatten());
        let marks = handles.chain(concerned).collect();
        instructions()
            .filter(|call| self.context.selects_device(*call))
            .any(|call| self.flow.backwards(call, &marks, |_| Some(true), false).contains(&true))
    }

    fn concerns_device(&self, event: &Event) -> bool {
        match event {
            Event::Skip | Event::Host(_) | Event::Exit { .. } => false,
            Event::Opaque { launches, .. } => *launches,
            // What a host buffer is merged into is made where the host buffer was.
            Event::Alloc(object) | Event::Free { object, .. } => {
                self.program.object(*object).space != Space::Host || self.is_copied(*object)
            }
            _ => true,
        }
    }

    fn is_copied(&self, object: ObjectId) -> bool {
        self.program.graph.node_weights().any(|node| match &node.event {
            Event::Copy(copy) => copy.dst.object == Some(object) || copy.src.object == Some(object),
            _ => false,
        })
    }
}

fn makes_handle(call: Value<'_>) -> bool {
    call.called_function().filter(|callee| callee.is_declaration()).is_some_and(|callee| {
        match classify(&callee.name()) {
            Callee::Cuda { row, .. } => {
                matches!(row.meaning, Meaning::CreateStream { .. } | Meaning::CreateEvent { .. })
            }
            _ => false,
        }
    })
}

impl<'m> Context<'m> {
    /// Does the call select a device, itself or in what it calls?
    fn selects_device(&self, call: Value<'m>) -> bool {
        match call.called_function().filter(|callee| !callee.is_declaration() && !callee.is_interposable()) {
            Some(callee) => self.summary(callee).selects_device,
            None => call.is_call() && call_facts(call).device.is_some(),
        }
    }
}
