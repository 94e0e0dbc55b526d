//! Where an instruction stands in the source, and what its buffer is called there.

use std::collections::HashMap;

use super::allocations::{Allocation, Delivery};
use super::flow::Flow;
use super::slots::Slots;
use crate::analysis::program::Site;
use crate::ir::{Block, Location, Module, Value};

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

/// The variable that holds each allocation's pointer, by index; empty where debug information has none.
pub(super) fn names<'m>(
    module: Module<'m>,
    flow: &Flow<'m>,
    slots: &Slots<'m>,
    allocations: &[Allocation<'m>],
) -> Vec<String> {
    // By the value, and whether it is the variable's address: `devPtr` of cuda_runtime.h *holds* the address of the user's variable.
    let mut by_value: HashMap<(Value<'m>, bool), (Rank, String)> = HashMap::new();
    for instruction in flow.blocks().iter().copied().flat_map(Block::instructions) {
        for variable in instruction.debug_variables() {
            let key = (variable.value, variable.is_address);
            let rank = Rank { reserved: is_reserved(&variable.name), depth: variable.depth };
            let known = by_value.entry(key).or_insert_with(|| (rank, variable.name.clone()));
            if rank < known.0 {
                *known = (rank, variable.name);
            }
        }
    }
    let values = |allocation: &Allocation<'m>| match allocation.delivery {
        Delivery::Returned => vec![(allocation.call, false)],
        // Optimisation may leave the variable's records at the loads only.
        Delivery::Slot(cell) => {
            let loads = slots
                .loads(cell.alloca)
                .filter(|load| load.operand(0).and_then(|address| slots.cell(module, address)) == Some(cell));
            std::iter::once((cell.alloca, true)).chain(loads.map(|load| (load, false))).collect()
        }
        Delivery::Memory => vec![],
    };
    let name = |allocation: &Allocation<'m>| {
        let known = values(allocation).into_iter().filter_map(|value| by_value.get(&value));
        known.min_by_key(|(rank, _)| *rank).map(|(_, name)| name.clone()).unwrap_or_default()
    };
    allocations.iter().map(name).collect()
}

/// Which of a value's names is shown: the least. Inlined functions have names for it too; the outermost function's is the user's, and
/// the standard library's (`__ptr` of unique_ptr) are nobody's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    reserved: bool,
    depth: usize,
}

/// Names that C++ reserves for its implementation: `__ptr`, `_M_start`.
fn is_reserved(name: &str) -> bool {
    let mut rest = name.strip_prefix('_').unwrap_or_default().chars();
    rest.next().is_some_and(|next| next == '_' || next.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::is_reserved;

    #[test]
    fn the_librarys_names_are_told_from_the_users() {
        for name in ["__ptr", "_M_start"] {
            assert!(is_reserved(name), "{name}");
        }
        for name in ["h_", "ptr", "_h", "m_start", "_", ""] {
            assert!(!is_reserved(name), "{name}");
        }
    }
}
