//! Where an instruction stands in the source, and what its buffer is called there.

use std::collections::HashMap;

use super::allocations::{Allocation, Delivery};
use super::flow::Flow;
use super::ir::{Block, Location, Value};
use crate::analysis::program::Site;

/// The place of an instruction that a user would point to: the innermost one that is not in a header of the toolkit, the compiler or the
/// standard library (`cudaMalloc<float>` is an inline function of cuda_runtime.h). A helper function of the user's own stays the place.
#[must_use]
pub(super) fn site(instruction: Value<'_>) -> Site {
    let places = instruction.locations();
    places
        .iter()
        .find(|place| place.line != 0 && !is_system_header(place))
        .or_else(|| places.iter().rev().find(|place| place.line != 0))
        .map(|place| Site { file: place.file.clone(), line: place.line, column: place.column })
        .unwrap_or_default()
}

fn is_system_header(place: &Location) -> bool {
    let path = format!("{}/{}", place.directory, place.file);
    let path = if place.file.starts_with('/') { &place.file } else { &path };
    path.contains("/lib/clang/")
        || path.contains("/lib/gcc/")
        || path.contains("/include/c++/")
        || path.starts_with("/usr/include/")
        || ["cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h", "host_runtime.h"]
            .iter()
            .any(|header| path.ends_with(&format!("/{header}")))
}

/// The variables that hold each allocation's pointer, by index; empty where debug information has none.
#[must_use]
pub(super) fn names<'m>(flow: &Flow<'m>, allocations: &[Allocation<'m>]) -> Vec<String> {
    let mut by_value: HashMap<Value<'m>, String> = HashMap::new();
    for instruction in flow.blocks().iter().copied().flat_map(Block::instructions) {
        for (value, name) in instruction.debug_variables() {
            // Records inside inlined functions name parameters; the allocation's own variable comes first in program order.
            by_value.entry(value).or_insert(name);
        }
    }
    allocations
        .iter()
        .map(|allocation| {
            let value = match allocation.delivery {
                Delivery::Returned => allocation.call,
                Delivery::Slot(cell) => cell.alloca,
                Delivery::Memory => return String::new(),
            };
            by_value.get(&value).cloned().unwrap_or_default()
        })
        .collect()
}
