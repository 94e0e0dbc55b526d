//! Every interleaving of a trace, by memoised states.
//!
//! A state is how far the host is, which items are queued and not done, every cell's value, which instances are alive, and what was output
//! so far. A step is the host's next action, if what it waits for is done, or any item whose turn it is. Each step raises the rank
//! (host position + items done) by one, so the states of one rank are a layer, and a layer that merges equal states and adds up how many
//! ways lead to each counts the interleavings exactly.
//!
//! Two steps that are possible in one state and conflict are a race: nothing orders them. (The order of a path does not depend on data, so
//! any two unordered steps are next to each other in some interleaving.)

use crate::machine::Items;
use crate::trace::{Effect, Operation, Trace};

/// What the interleavings of a trace can do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// How many there are; saturates.
    pub interleavings: u128,
    /// How many states they pass.
    pub states: u64,
    /// What was output, one hash for each possible outcome, ascending. Incomplete if there is trouble.
    pub outputs: Vec<u64>,
    /// The labels of final cells that are unwritten in some outcome.
    pub unwritten: Vec<u32>,
    /// The first trouble; exploring ends there.
    pub trouble: Option<Trouble>,
}

/// What may not happen in any interleaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing orders two conflicting operations of these visits.
    Race(u8, u8),
    /// The visit reads what was never written, and not to link the pair.
    Undefined(u8),
    /// The visit touches what is not alive.
    Dead(u8),
}

struct State {
    position: usize,
    /// Queued and not done.
    pending: Items,
    alive: u64,
    /// Of the host, in order.
    output: u64,
    /// Of items, in no order.
    observed: u64,
    ways: u128,
}

/// States of one rank; their cells stand in one vector.
#[derive(Default)]
struct Layer {
    states: Vec<State>,
    cells: Vec<u64>,
}

impl Layer {
    fn clear(&mut self) {
        self.states.clear();
        self.cells.clear();
    }

    fn memory(&self, index: usize, width: usize) -> &[u64] {
        &self.cells[index * width..(index + 1) * width]
    }

    /// Merges the last state into an equal one, if there is any.
    fn settle(&mut self, width: usize) {
        let last = self.states.len() - 1;
        let new = &self.states[last];
        let same = (0..last).find(|index| {
            let old = &self.states[*index];
            old.pending == new.pending
                && old.position == new.position
                && old.alive == new.alive
                && old.output == new.output
                && old.observed == new.observed
                && self.memory(*index, width) == self.memory(last, width)
        });
        if let Some(index) = same {
            let ways = new.ways;
            self.states[index].ways = self.states[index].ways.saturating_add(ways);
            self.states.pop();
            self.cells.truncate(last * width);
        }
    }
}

/// Runs the trace in every order. `strict`: reading what was never written is trouble (in P it is the end of the theorem's premises; in P'
/// it shows as another value).
#[must_use]
pub fn explore(trace: &Trace, strict: bool) -> Outcome {
    let width = trace.memory.len();
    let mut outcome = Outcome::default();
    let (mut now, mut next) = (Layer::default(), Layer::default());
    let start = State { position: 0, pending: 0, alive: trace.alive, output: 0, observed: 0, ways: 1 };
    now.states.push(start);
    now.cells.extend(&trace.memory);
    while !now.states.is_empty() {
        outcome.states += now.states.len() as u64;
        next.clear();
        for index in 0..now.states.len() {
            let state = &now.states[index];
            let memory = now.memory(index, width);
            if let Err(trouble) = steps(trace, state, memory, strict, &mut next, &mut outcome) {
                outcome.trouble = Some(trouble);
                return outcome;
            }
        }
        std::mem::swap(&mut now, &mut next);
    }
    outcome.outputs.sort_unstable();
    outcome.outputs.dedup();
    outcome
}

fn steps(
    trace: &Trace,
    state: &State,
    memory: &[u64],
    strict: bool,
    next: &mut Layer,
    outcome: &mut Outcome,
) -> Result<(), Trouble> {
    let action = trace.host.get(state.position).filter(|action| action.after & state.pending == 0);
    let mut running: Items = 0;
    let mut left = state.pending;
    while left != 0 {
        let item = left.trailing_zeros() as usize;
        left &= left - 1;
        if trace.items[item].after & state.pending == 0 {
            running |= 1 << item;
        }
    }
    races(trace, action.map(|action| &action.operation), running)?;
    if let Some(action) = action {
        let queued = action.queues.map_or(0, |item| 1 << item);
        let mut after = State { position: state.position + 1, pending: state.pending | queued, ..*state };
        next.cells.extend(memory);
        perform(&action.operation, &mut after, next, memory.len(), strict, true)?;
        next.states.push(after);
        next.settle(memory.len());
    }
    let mut left = running;
    while left != 0 {
        let item = left.trailing_zeros() as usize;
        left &= left - 1;
        let mut after = State { pending: state.pending & !(1 << item), ..*state };
        next.cells.extend(memory);
        perform(&trace.items[item].operation, &mut after, next, memory.len(), strict, false)?;
        next.states.push(after);
        next.settle(memory.len());
    }
    if action.is_none() && running == 0 {
        debug_assert!(state.pending == 0 && state.position == trace.host.len(), "something can always go on");
        outcome.interleavings = outcome.interleavings.saturating_add(state.ways);
        let mut finals = state.output;
        for (cell, label) in &trace.finals {
            match memory[usize::from(*cell)] {
                0 if strict => outcome.unwritten.push(*label),
                value => finals = mix(finals, u64::from(*label), value),
            }
        }
        outcome.outputs.push(finals ^ state.observed);
    }
    Ok(())
}

fn races(trace: &Trace, host: Option<&Operation>, running: Items) -> Result<(), Trouble> {
    let mut left = running;
    while left != 0 {
        let item = &trace.items[left.trailing_zeros() as usize].operation;
        left &= left - 1;
        if let Some(host) = host
            && host.conflicts(item)
        {
            return Err(Trouble::Race(item.place, host.place));
        }
        let mut others = left;
        while others != 0 {
            let other = &trace.items[others.trailing_zeros() as usize].operation;
            others &= others - 1;
            if item.conflicts(other) {
                return Err(Trouble::Race(item.place, other.place));
            }
        }
    }
    Ok(())
}

/// Does the operation on the memory at the end of `next.cells`.
fn perform(
    operation: &Operation,
    state: &mut State,
    next: &mut Layer,
    width: usize,
    strict: bool,
    on_host: bool,
) -> Result<(), Trouble> {
    if operation.needs & !state.alive != 0 {
        return Err(Trouble::Dead(operation.place));
    }
    let start = next.cells.len() - width;
    let memory = &mut next.cells[start..];
    let undefined = Err(Trouble::Undefined(operation.place));
    match &operation.effect {
        Effect::Nothing => {}
        Effect::Compute { name, reads, writes } => {
            let mut hash = mix(0x5EED, u64::from(*name), 0);
            for (order, cell) in reads.iter().enumerate() {
                let value = memory[usize::from(*cell)];
                if strict && value == 0 {
                    return undefined;
                }
                hash = mix(hash, order as u64, value);
            }
            for (cell, label) in writes {
                memory[usize::from(*cell)] = mix(hash, u64::from(*label), 1) | 1;
            }
            if on_host {
                state.output = mix(state.output, hash, 2);
            } else {
                state.observed = state.observed.wrapping_add(mix(hash, 3, 3));
            }
        }
        Effect::Move { pairs, links } => {
            let mut moved = [0; 2 * crate::case::BYTES];
            for (value, (from, _)) in moved.iter_mut().zip(pairs) {
                *value = memory[usize::from(*from)];
                if strict && *value == 0 && !links {
                    return undefined;
                }
            }
            for (value, (_, to)) in moved.iter().zip(pairs) {
                memory[usize::from(*to)] = *value;
            }
        }
        Effect::Zero(cells) => cells.iter().for_each(|cell| memory[usize::from(*cell)] = ZERO),
        Effect::Begin(instance) => state.alive |= 1 << instance,
        Effect::End(instances) => instances.iter().for_each(|instance| state.alive &= !(1 << instance)),
    }
    Ok(())
}

/// What calloc writes: a value like any other.
const ZERO: u64 = 0x2E50;

/// A hash of three numbers that changes with each.
fn mix(hash: u64, first: u64, second: u64) -> u64 {
    let mut value =
        hash ^ first.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ second.wrapping_mul(0xC2B2_AE3D_27D4_EB4F).rotate_left(31);
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}
