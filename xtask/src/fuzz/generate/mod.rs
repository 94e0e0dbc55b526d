//! Makes random programs: buffers and streams here, what a GPU program usually does with them in `idioms`, and what makes it unusual in
//! `spoil`. What comes out is a draft; `repair` gives it a meaning.
//!
//! A purely random program is declined nearly always and tests little. So drafts start from idioms that merge, and most are spoiled in a
//! few places only: close to the border between what merges and what must not.

mod idioms;
mod spoil;

use super::edit;
use super::language::{
    Action, Buffer, BufferId, Checks, Condition, Count, Element, Grid, Input, Kernel, Kind, Length, Memory, Program,
    Stmt, StreamId, StreamKind, Trust, Way,
};
use super::machine::Expected;
use super::random::Random;
use super::repair;

/// Drafts that are tried for one program; about one in ten is beyond repair.
const DRAFTS: usize = 200;

/// A program and what it prints on each of its inputs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Case {
    pub(super) program: Program,
    pub(super) expected: [Expected; 2],
}

impl Case {
    /// The same program with buffers of `times` the elements; as it is where that has no meaning.
    pub(super) fn enlarged(mut self, times: usize) -> Self {
        let n = self.program.n;
        self.program.n *= times;
        match repair::meaning(&self.program) {
            Ok(expected) => Self { expected, ..self },
            Err(_) => {
                self.program.n = n;
                self
            }
        }
    }
}

/// How unusual a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Temper {
    Tidy,
    Mixed,
    Wild,
}

/// The program of a seed and an index. `None` if all drafts fail, which would be a fault of this module.
pub(super) fn case(seed: u64, index: u64) -> Option<Case> {
    let mut random = Random::new(seed, index);
    (0..DRAFTS).find_map(|_| {
        let mut program = draft(&mut random, index);
        let expected = repair::repair(&mut program, &mut random)?;
        is_worth_it(&program, &expected).then_some(Case { program, expected })
    })
}

/// It copies between host and device, prints something, and is neither tiny nor huge.
fn is_worth_it(program: &Program, expected: &[Expected; 2]) -> bool {
    let (mut copies, mut count) = (0, 0);
    edit::visit_all(program, &mut |stmt| {
        count += 1;
        if let Kind::Copy { to, from, .. } = stmt.kind {
            copies += usize::from(program.is_host(to) != program.is_host(from));
        }
    });
    copies > 0 && count <= 90 && expected.iter().any(|run| run.lines.len() > 1)
}

/// What a draft is made with.
struct Maker<'a> {
    random: &'a mut Random,
    program: Program,
    temper: Temper,
    /// It waits for the device before the host goes on after GPU work, as programs do that leave nothing to chance. (Else the host would nearly
    /// always touch something while some work may be running, which is what S5 declines.)
    careful: bool,
    /// A host and a device buffer that belong together.
    pairs: Vec<(BufferId, BufferId)>,
    /// They live inside one loop.
    local: Vec<(BufferId, BufferId)>,
    hosts: Vec<BufferId>,
    devices: Vec<BufferId>,
    /// Loops around what is being made.
    depth: usize,
}

fn draft(random: &mut Random, index: u64) -> Program {
    let temper = [Temper::Tidy, Temper::Mixed, Temper::Wild][random.weighted(&[55, 34, 11])];
    let careful = random.chance(match temper {
        Temper::Tidy => 90,
        Temper::Mixed => 75,
        Temper::Wild => 50,
    });
    let streams = streams(random, temper);
    let program = Program {
        index,
        element: [Element::U32, Element::U64, Element::U8][random.weighted(&[60, 20, 20])],
        n: random.between(33, 160),
        constant_size: random.chance(25),
        checks: [Checks::None, Checks::Exit, Checks::Goto, Checks::Throw][random.weighted(&[25, 40, 20, 15])],
        buffers: Vec::new(),
        streams,
        events: random.weighted(&[50, 35, 15]),
        kernels: Vec::new(),
        body: Vec::new(),
        tail: Vec::new(),
        trust: Trust { staging: random.chance(25), free_waits: random.chance(40) },
        inputs: [
            Input { rounds: random.between(1, 3), flag: random.chance(50) },
            Input { rounds: random.weighted(&[10, 15, 30, 30, 15]), flag: random.chance(50) },
        ],
        waits_first: random.chance(93),
        next_id: 0,
    };
    let mut maker = Maker {
        random,
        program,
        temper,
        careful,
        pairs: Vec::new(),
        local: Vec::new(),
        hosts: Vec::new(),
        devices: Vec::new(),
        depth: 0,
    };
    maker.buffers();
    maker.statements();
    maker.spoil();
    maker.program
}

fn streams(random: &mut Random, temper: Temper) -> Vec<StreamKind> {
    let kinds = [StreamKind::Blocking, StreamKind::NonBlocking, StreamKind::PerThread];
    let more = match temper {
        Temper::Tidy => random.weighted(&[60, 30, 10]),
        Temper::Mixed => random.weighted(&[40, 35, 25]),
        Temper::Wild => random.weighted(&[15, 35, 50]),
    };
    let mut streams = vec![StreamKind::Legacy];
    for _ in 0..more {
        streams.push(kinds[random.weighted(&[45, 40, 15])]);
    }
    streams
}

impl Maker<'_> {
    fn buffers(&mut self) {
        let pairs = 1 + self.random.weighted(&[50, 35, 15]);
        for number in 0..pairs {
            let length = [Length::N, Length::Half, Length::More][self.random.weighted(&[84, 7, 9])];
            let (host, device) = (self.host_memory(), self.device_memory());
            let odd = self.temper == Temper::Wild && self.random.chance(12);
            let device_length = if odd { Length::More } else { length };
            let pair = (self.buffer(host, length), self.buffer(device, device_length));
            let owned = host.is_owned() || device.is_owned();
            if number > 0 && !owned && self.random.chance(25) {
                self.local.push(pair);
            } else {
                self.pairs.push(pair);
            }
        }
        if self.random.chance(25) {
            let memory = self.host_memory();
            let extra = self.buffer(memory, Length::N);
            self.hosts.push(extra);
        }
        for _ in 0..self.random.weighted(&[55, 35, 10]) {
            let memory = self.device_memory();
            let extra = self.buffer(memory, Length::N);
            self.devices.push(extra);
        }
        self.hosts.extend(self.pairs.iter().map(|pair| pair.0));
        self.devices.extend(self.pairs.iter().map(|pair| pair.1));
    }

    fn buffer(&mut self, memory: Memory, length: Length) -> BufferId {
        self.program.buffers.push(Buffer { memory, length });
        self.program.buffers.len() - 1
    }

    fn host_memory(&mut self) -> Memory {
        use Memory::{AlignedAlloc, Calloc, HostAlloc, Malloc, MallocHost, NewArray, UniquePtr, Vector};
        let all = [Malloc, Calloc, AlignedAlloc, NewArray, Vector, UniquePtr, MallocHost, HostAlloc];
        all[self.random.weighted(&[38, 8, 5, 14, 8, 6, 12, 9])]
    }

    fn device_memory(&mut self) -> Memory {
        let stream = self.random.below(self.program.streams.len());
        let asynchronous = if self.temper == Temper::Tidy { 1 } else { 5 };
        let all = [
            Memory::CudaMalloc,
            Memory::CudaMallocHelper,
            Memory::CudaMallocAsync(stream),
            Memory::CudaMallocFreedAsync(stream),
            Memory::DeviceOwner,
        ];
        all[self.random.weighted(&[62, 12, asynchronous, asynchronous, 15])]
    }

    fn statements(&mut self) {
        let mut allocations: Vec<BufferId> = [self.hosts.clone(), self.devices.clone()].concat();
        allocations.retain(|buffer| !self.program.buffers[*buffer].memory.is_owned());
        let mut frees = allocations.clone();
        self.random.shuffle(&mut allocations);
        let mut body = self.stmts(allocations.into_iter().map(Kind::Alloc).collect());
        for _ in 0..self.random.between(1, 3) {
            let block = self.block();
            body.extend(block);
        }
        if !self.local.is_empty() {
            let block = self.local_loop();
            body.extend(block);
        }
        self.program.body = body;

        self.random.shuffle(&mut frees);
        let early = self.temper != Temper::Tidy && self.random.chance(30);
        let guarded = self.random.chance(25);
        for buffer in frees {
            if self.random.chance(6) {
                continue; // It leaks.
            }
            let free = self.program.fresh(Kind::Free { buffer, guarded });
            if early && self.random.chance(50) {
                self.program.body.push(free);
            } else {
                self.program.tail.push(free);
            }
        }
        if early && self.random.chance(40) {
            // What is left goes on; statements with what is freed are taken out again.
            let block = self.block();
            self.program.body.extend(block);
        }
    }

    fn stmts(&mut self, kinds: Vec<Kind>) -> Vec<Stmt> {
        kinds.into_iter().map(|kind| self.program.fresh(kind)).collect()
    }

    /// An idiom, as it is or inside something.
    fn block(&mut self) -> Vec<Stmt> {
        match self.random.weighted(&[42, 32, 11, 15]) {
            1 if self.depth < 2 => {
                self.depth += 1;
                let mut body = self.block();
                if self.random.chance(30) {
                    body.extend(self.block());
                }
                self.depth -= 1;
                let count = self.count();
                vec![self.program.fresh(Kind::Loop { count, body })]
            }
            2 => {
                let condition = self.condition();
                let then = self.block();
                let otherwise = if self.random.chance(40) { self.idiom_stmts() } else { Vec::new() };
                vec![self.program.fresh(Kind::If { condition, then, otherwise })]
            }
            3 => {
                let body = self.idiom_stmts();
                let way = if self.random.chance(50) { Way::Helper } else { Way::Apart };
                vec![self.program.fresh(Kind::Call { way, body })]
            }
            _ => self.idiom_stmts(),
        }
    }

    fn idiom_stmts(&mut self) -> Vec<Stmt> {
        let kinds = self.idiom();
        self.stmts(kinds)
    }

    /// A loop whose buffers live for one round.
    fn local_loop(&mut self) -> Vec<Stmt> {
        let local = std::mem::take(&mut self.local);
        let mut kinds = Vec::new();
        for (host, device) in &local {
            let mut both = [Kind::Alloc(*host), Kind::Alloc(*device)];
            self.random.shuffle(&mut both);
            kinds.extend(both);
        }
        self.depth += 1;
        for pair in &local {
            kinds.extend(self.idiom_on(*pair));
        }
        self.depth -= 1;
        for (host, device) in local {
            let mut both = [Kind::Free { buffer: host, guarded: false }, Kind::Free { buffer: device, guarded: false }];
            self.random.shuffle(&mut both);
            kinds.extend(both);
        }
        let body = self.stmts(kinds);
        let count = self.count();
        vec![self.program.fresh(Kind::Loop { count, body })]
    }

    fn count(&mut self) -> Count {
        if self.random.chance(60) { Count::Rounds } else { Count::Constant(self.random.between(1, 4)) }
    }

    fn condition(&mut self) -> Condition {
        match self.random.weighted(&[25, 20, 20, 15, 15, 5]) {
            1 => Condition::NotFlag,
            2 if self.depth > 0 => Condition::RoundIs(self.random.below(3)),
            3 if self.depth > 0 => Condition::RoundOdd,
            4 => Condition::Data { buffer: *self.random.pick(&self.hosts), at: self.spot() },
            5 => Condition::AccOdd,
            _ => Condition::Flag,
        }
    }

    /// A kernel that does this; programs share kernels half of the time.
    fn kernel(&mut self, action: Action) -> usize {
        let present = self.program.kernels.iter().position(|kernel| kernel.action == action);
        match present {
            Some(index) if self.random.chance(60) => index,
            _ => {
                let single = matches!(action, Action::Sum | Action::Keep);
                let plain = matches!(action, Action::Shared);
                let grid = match self.random.weighted(&[60, 30, 10]) {
                    _ if single => Grid::Single,
                    _ if plain => Grid::Each,
                    0 => Grid::Each,
                    1 => Grid::Stride,
                    _ => Grid::Single,
                };
                let structure = self.temper != Temper::Tidy && self.random.chance(4);
                let qualified = self.random.chance(60);
                self.program.kernels.push(Kernel { action, grid, qualified, structure });
                self.program.kernels.len() - 1
            }
        }
    }

    /// The stream for a launch.
    fn stream(&mut self) -> StreamId {
        let usual = if self.temper == Temper::Wild { 30 } else { 55 };
        if self.random.chance(usual) { 0 } else { self.random.below(self.program.streams.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::machine::Fault;

    #[test]
    fn a_program_depends_on_seed_and_index_only() {
        for index in 0..20 {
            assert_eq!(case(5, index), case(5, index));
        }
        assert_ne!(case(5, 1), case(5, 2));
        assert_ne!(case(5, 1), case(6, 1));
    }

    #[test]
    fn every_program_has_a_meaning_and_a_wait_taken_away_often_takes_it() {
        let mut missed = 0;
        for index in 0..150 {
            let Case { program, expected } = case(11, index).expect("a program");
            assert_eq!(repair::meaning(&program).as_ref(), Ok(&expected));
            let mut waits = Vec::new();
            edit::visit_all(&program, &mut |stmt| {
                if matches!(stmt.kind, Kind::Wait(_) | Kind::StreamWait { .. }) {
                    waits.push(stmt.id);
                }
            });
            for wait in waits {
                let mut less = program.clone();
                edit::remove(&mut less, wait);
                missed += usize::from(matches!(repair::meaning(&less), Err(Fault::Unordered { .. })));
            }
        }
        assert!(missed > 50, "only {missed} waits are needed");
    }

    #[test]
    fn the_statements_of_the_language_all_come_up() {
        let mut seen = std::collections::BTreeSet::new();
        for index in 0..400 {
            let Some(case) = case(3, index) else { panic!("no program {index}") };
            edit::visit_all(&case.program, &mut |stmt| {
                let text = format!("{:?}", stmt.kind);
                seen.insert(text.split([' ', '(']).next().unwrap_or_default().to_owned());
            });
            seen.extend(case.program.kernels.iter().map(|kernel| format!("kernel {:?}", kernel.action)));
        }
        let kinds = [
            "Fill",
            "Update",
            "Clear",
            "HostCopy",
            "Read",
            "ReadAt",
            "StoreAt",
            "Print",
            "Copy",
            "Memset",
            "Launch",
            "Record",
            "StreamWait",
            "Wait",
            "Alloc",
            "Free",
            "Swap",
            "Loop",
            "If",
            "Break",
            "Leave",
            "Call",
            "kernel Sum",
            "kernel Keep",
            "kernel UseKept",
            "kernel Shared",
            "kernel Two",
            "kernel FillOdd",
        ];
        for kind in kinds {
            assert!(seen.contains(kind), "{kind} never came up: {seen:?}");
        }
    }
}
