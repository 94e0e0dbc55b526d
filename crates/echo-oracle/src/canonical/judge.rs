//! Runs P and P' and compares.

use std::hash::{DefaultHasher, Hash, Hasher};

use echo_sr::analysis::program::{NodeId, WaitScope};
use echo_sr::analysis::verdict::{FreeAction, MergePlan, SyncAction};

use crate::canonical::order::{MAX_STEPS, Order, Rules};
use crate::canonical::sample::{BYTES, D, E, G, H, HostKind, Mask, OBJECTS, Sample, Step, Touch, is_host};

/// The merged buffer in the memory of P'; the pair's two are not used there.
const P: usize = OBJECTS;

/// What was found on the paths of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Some path of P breaks a premise: nothing can be said.
    PremiseBroken,
    /// P and P' agree on every path.
    Agree,
    /// They do not: the path and what is wrong.
    Differ(Vec<usize>, Fault),
}

/// What is wrong with P'.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Two conflicting accesses of these steps of the path are not ordered.
    Race(usize, usize),
    /// The step reads other values than in P.
    Value(usize),
    /// The step touches p outside its life.
    Dead(usize),
    /// P freed both buffers, and p is never freed.
    Leak,
    /// The step touches p on the host while GPU work may be running, and the plan says that it does not.
    Exclusive(usize),
}

/// An access that was made: vertex, buffer, writes, bytes.
type Made = (usize, usize, bool, Mask);

/// One run.
struct Run {
    order: Order,
    memory: Vec<Option<[Option<u64>; BYTES]>>,
    made: Vec<Made>,
    /// What each step read, by its place on the path.
    values: Vec<Vec<u64>>,
    place: usize,
    fault: Option<Fault>,
    undefined: bool,
}

impl Run {
    fn new(rules: Rules) -> Self {
        let mut memory = vec![None; OBJECTS + 1];
        for (other, first) in [(G, 100), (E, 200)] {
            memory[other] = Some(std::array::from_fn(|byte| Some(first + byte as u64)));
        }
        Self {
            order: Order::new(rules),
            memory,
            made: Vec::new(),
            values: Vec::new(),
            place: 0,
            fault: None,
            undefined: false,
        }
    }

    fn begin(&mut self, place: usize) {
        self.place = place;
        self.values.push(Vec::new());
        self.order.step();
    }

    fn fail(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }

    fn touch(&mut self, vertex: usize, object: usize, writes: bool, bytes: Mask) {
        if self.memory[object].is_none() {
            self.fail(Fault::Dead(self.place));
        }
        self.made.push((vertex, object, writes, bytes));
    }

    /// The access list of one operation: all reads, then all writes, of values that depend on what was read.
    fn operate(&mut self, vertex: usize, touches: &[Touch], name: impl Fn(usize) -> usize) {
        for touch in touches.iter().filter(|touch| !touch.writes) {
            let object = name(touch.object);
            self.touch(vertex, object, false, touch.bytes);
            for byte in bytes(touch.bytes) {
                let value = self.memory[object].and_then(|memory| memory[byte]);
                self.undefined |= value.is_none();
                self.values[self.place].push(value.unwrap_or(0));
            }
        }
        for touch in touches.iter().filter(|touch| touch.writes) {
            let object = name(touch.object);
            self.touch(vertex, object, true, touch.bytes);
            for byte in bytes(touch.bytes) {
                let mut hasher = DefaultHasher::new();
                (self.place, touch.object, byte, &self.values[self.place]).hash(&mut hasher);
                let value = hasher.finish();
                if let Some(memory) = &mut self.memory[object] {
                    memory[byte] = Some(value);
                }
            }
        }
    }

    /// Bytes move. `counts`: the copy is one whose reads must agree (a linking copy may read what was never written).
    fn copy(&mut self, from: (usize, usize), to: (usize, usize), mask: Mask, counts: bool) {
        self.touch(from.0, from.1, false, mask);
        self.touch(to.0, to.1, true, mask);
        for byte in bytes(mask) {
            let value = self.memory[from.1].and_then(|memory| memory[byte]);
            if counts {
                self.undefined |= value.is_none();
                self.values[self.place].push(value.unwrap_or(0));
            }
            if let Some(memory) = &mut self.memory[to.1] {
                memory[byte] = value;
            }
        }
    }

    /// A buffer begins or ends: nothing else may be under way on it.
    fn reborn(&mut self, object: usize, contents: Option<[Option<u64>; BYTES]>) {
        let host = self.order.host();
        self.made.push((host, object, true, u8::MAX));
        self.memory[object] = contents;
    }

    fn race(&self) -> Option<(usize, usize)> {
        for (index, &(vertex, object, writes, bytes)) in self.made.iter().enumerate() {
            for &(earlier, other, wrote, others) in &self.made[..index] {
                let conflict = object == other && (writes || wrote) && bytes & others != 0 && vertex != earlier;
                if conflict && !self.order.ordered(earlier, vertex) && !self.order.ordered(vertex, earlier) {
                    return Some((earlier / 2, vertex / 2));
                }
            }
        }
        None
    }
}

fn bytes(mask: Mask) -> impl Iterator<Item = usize> {
    (0..BYTES).filter(move |byte| mask & (1 << byte) != 0)
}

fn linking(dst: usize, src: usize) -> bool {
    (dst, src) == (H, D) || (dst, src) == (D, H)
}

/// Runs every path of the sample with the plan.
#[must_use]
pub fn judge(sample: &Sample, nodes: &[NodeId], plan: Option<&MergePlan>, rules: Rules) -> Judgement {
    let mut differs = None;
    for path in sample.paths() {
        assert!(path.len() < MAX_STEPS, "a path of a sample fits the order's sets");
        let original = run_original(sample, &path, rules);
        if original.fault.is_some() || original.undefined || original.race().is_some() {
            return Judgement::PremiseBroken;
        }
        let Some(plan) = plan else { continue };
        let merged = run_merged(sample, &path, nodes, plan, rules);
        let value = || (0..path.len()).find(|place| original.values[*place] != merged.values[*place]).map(Fault::Value);
        let race = || merged.race().map(|(first, second)| Fault::Race(first, second));
        if let Some(fault) = merged.fault.clone().or_else(race).or_else(value) {
            differs.get_or_insert((path, fault));
        }
    }
    differs.map_or(Judgement::Agree, |(path, fault)| Judgement::Differ(path, fault))
}

fn run_original(sample: &Sample, path: &[usize], rules: Rules) -> Run {
    let mut run = Run::new(rules);
    for (place, &index) in path.iter().enumerate() {
        run.begin(place);
        match &sample.steps[index] {
            Step::Alloc(object) => {
                if run.memory[*object].is_some() {
                    run.fail(Fault::Dead(place));
                }
                let zeroes = *object == H && sample.host == HostKind::Calloc;
                run.reborn(*object, Some([zeroes.then_some(0); BYTES]));
            }
            Step::FreeUnlessNull(object) if run.memory[*object].is_none() => {}
            Step::Free(object) | Step::FreeUnlessNull(object) => {
                if *object == D {
                    run.order.after(run.order.device());
                }
                if run.memory[*object].is_none() {
                    run.fail(Fault::Dead(place));
                }
                run.reborn(*object, None);
            }
            Step::Copy { dst, src, bytes, stream, sync } => {
                let (waits_before, waits_after, consumed) = sample.copy_rules(*dst, *src, *sync);
                copy(
                    &mut run,
                    (*dst, *src, *bytes),
                    *stream,
                    (waits_before, waits_after, consumed),
                    !linking(*dst, *src),
                );
            }
            other => common(&mut run, other, |object| object, |_, _| {}),
        }
    }
    run
}

/// A copy as P makes it.
fn copy(
    run: &mut Run,
    (dst, src, mask): (usize, usize, Mask),
    stream: usize,
    (waits_before, waits_after, consumed): (bool, bool, bool),
    counts: bool,
) {
    if waits_before {
        run.order.after(run.order.behind(stream));
    }
    let reader = run.order.host();
    let writer = run.order.queue(stream);
    let from = if consumed { reader } else { writer };
    run.copy((from, src), (writer, dst), mask, counts);
    if waits_after {
        run.order.returns_after(1 << writer);
    }
}

/// Steps that P and P' share. `on_host` sees each host access.
fn common(run: &mut Run, step: &Step, name: impl Fn(usize) -> usize, on_host: impl Fn(&mut Run, usize)) {
    match step {
        Step::Host(touches) => {
            let vertex = run.order.host();
            for touch in touches {
                on_host(run, name(touch.object));
            }
            run.operate(vertex, touches, name);
        }
        Step::Launch(stream, touches) => {
            let vertex = run.order.queue(*stream);
            run.operate(vertex, touches, name);
        }
        Step::WaitDevice => run.order.after(run.order.device()),
        Step::WaitStream(stream) => run.order.after(run.order.stream(*stream)),
        Step::WaitEvent => run.order.after(run.order.event()),
        Step::Record(stream) => run.order.record(*stream),
        Step::StreamWait(stream) => run.order.stream_wait(*stream),
        Step::Alloc(_) | Step::Free(_) | Step::FreeUnlessNull(_) | Step::Copy { .. } => {}
    }
}

fn scope(run: &Run, scope: WaitScope) -> u128 {
    match scope {
        WaitScope::Device => run.order.device(),
        WaitScope::Stream(stream) => run.order.stream(stream.0 as usize),
        WaitScope::Event(_) => run.order.event(),
    }
}

fn run_merged(sample: &Sample, path: &[usize], nodes: &[NodeId], plan: &MergePlan, rules: Rules) -> Run {
    let name = |object: usize| if object == H || object == D { P } else { object };
    let exclusive = |run: &mut Run, object: usize| {
        let host = run.order.host();
        if plan.exclusive_ok() && object == P && run.order.in_flight(host) != 0 {
            run.fail(Fault::Exclusive(run.place));
        }
    };
    let mut run = Run::new(rules);
    // Which of the pair's buffers P has at this point: the pointer of one that it has not is null. And what p counts.
    let mut there = [false; OBJECTS];
    let mut names = 0_u32;
    for (place, &index) in path.iter().enumerate() {
        run.begin(place);
        let node = nodes[index];
        match &sample.steps[index] {
            Step::Alloc(object) => {
                there[*object] = true;
                names = if node == plan.creates() { 1 } else { names + 1 };
                if node == plan.creates() {
                    // The last p must be gone, or lost as P lost its buffers; either way nothing may be under way on it.
                    exclusive(&mut run, P);
                    run.reborn(P, Some([None; BYTES]));
                }
                if *object == H && sample.host == HostKind::Calloc {
                    exclusive(&mut run, P);
                    let host = run.order.host();
                    run.touch(host, P, true, u8::MAX);
                    run.memory[P] = Some([Some(0); BYTES]);
                }
            }
            Step::Free(object) | Step::FreeUnlessNull(object) => {
                let action = plan.frees().iter().find(|(free, _)| *free == node).map(|(_, action)| *action);
                let was_there = std::mem::take(&mut there[*object]);
                names = names.saturating_sub(u32::from(was_there));
                let (wait, releases) = match action {
                    Some(FreeAction::Drop { wait }) => (wait, false),
                    Some(FreeAction::Release { wait }) => (wait, true),
                    Some(FreeAction::Count { wait }) => (wait, names == 0),
                    None => {
                        run.fail(Fault::Dead(place));
                        (None, false)
                    }
                };
                if let Some(wait) = wait {
                    run.order.after(scope(&run, wait));
                }
                if releases && was_there {
                    if run.memory[P].is_none() {
                        run.fail(Fault::Dead(place));
                    }
                    run.reborn(P, None);
                }
            }
            Step::Copy { dst, src, bytes, stream, sync } => {
                if let Some((_, action)) = plan.copies().iter().find(|(copy, _)| *copy == node) {
                    if let SyncAction::Wait(wait) = action {
                        run.order.after(scope(&run, *wait));
                    }
                } else if name(*dst) == P || name(*src) == P {
                    // Of managed memory nothing is promised but the order of the stream.
                    copy(&mut run, (name(*dst), name(*src), *bytes), *stream, (false, false, false), true);
                    if let Some((_, wait)) = plan.waits().iter().find(|(copy, _)| *copy == node) {
                        let set = scope(&run, *wait);
                        run.order.returns_after(set);
                    }
                } else {
                    let rules = sample.copy_rules(*dst, *src, *sync);
                    copy(&mut run, (*dst, *src, *bytes), *stream, rules, true);
                }
            }
            other => common(&mut run, other, name, exclusive),
        }
        // p is there just as long as one of the two is in P.
        if run.memory[P].is_some() != (there[H] || there[D]) {
            run.fail(if run.memory[P].is_some() { Fault::Leak } else { Fault::Dead(place) });
        }
    }
    debug_assert!(is_host(H) && !is_host(D));
    run
}
