//! Makes a draft well-defined: runs it on the abstract machine and puts a wait exactly where the machine finds that one is missing, a first
//! value where something is read that was never written, and takes out what cannot stand where it stands.

use super::edit;
use super::language::{BufferId, Form, Kind, Program, Range, Scope, StmtId, StreamId, Way};
use super::machine::{self, Actor, END, Expected, Fault};
use super::random::Random;

/// A draft that takes more repairs is thrown away.
const REPAIRS: usize = 120;

/// What the program prints on each input; `None` if the draft is beyond repair.
pub(super) fn repair(program: &mut Program, random: &mut Random) -> Option<[Expected; 2]> {
    for _ in 0..REPAIRS {
        match meaning(program) {
            Ok(expected) => return Some(expected),
            Err(fault) => mend(program, fault, random)?,
        }
    }
    None
}

/// Runs the program on both inputs.
pub(super) fn meaning(program: &Program) -> Result<[Expected; 2], Fault> {
    Ok([machine::run(program, program.inputs[0])?, machine::run(program, program.inputs[1])?])
}

fn mend(program: &mut Program, fault: Fault, random: &mut Random) -> Option<()> {
    match fault {
        Fault::TooLong => return None,
        Fault::Dead { at } | Fault::Misplaced { at } => {
            if !edit::remove(program, at) {
                return None;
            }
        }
        Fault::Undefined { at, buffer } => match buffer {
            Some(buffer) if at != END && random.chance(70) => initialise(program, at, buffer, random),
            _ => {
                edit::remove(program, at);
            }
        },
        Fault::Unordered { at, actor, earlier, stream } => order(program, at, actor, earlier, stream, random),
    }
    Some(())
}

/// A first value, right before it is needed or right behind the allocation.
fn initialise(program: &mut Program, at: StmtId, buffer: BufferId, random: &mut Random) {
    let form = Form { factor: 3, addend: random.below(50) as u8, round: false };
    let kind = match (program.is_host(buffer), random.chance(70)) {
        (true, true) => Kind::Fill { buffer, range: Range::Whole, form, way: Way::Inline },
        (true, false) => Kind::Clear { buffer, range: Range::Whole, byte: random.below(200) as u8 },
        (false, _) => Kind::Memset { buffer, range: Range::Whole, byte: random.below(200) as u8, stream: None },
    };
    let mut allocation = None;
    edit::visit_all(program, &mut |stmt| {
        if stmt.kind == Kind::Alloc(buffer) {
            allocation = Some(stmt.id);
        }
    });
    match allocation {
        Some(allocation) if random.chance(50) => edit::insert(program, allocation, true, vec![kind]),
        _ => edit::insert(program, at, false, vec![kind]),
    }
}

/// A wait, or an order between two streams, that covers the earlier work.
fn order(program: &mut Program, at: StmtId, actor: Actor, earlier: StmtId, stream: StreamId, random: &mut Random) {
    program.events = program.events.max(1);
    let event = random.below(program.events);
    let record = Kind::Record { event, stream };
    let choice = match actor {
        Actor::Host => random.weighted(&[25, 45, 30, 0]),
        Actor::Gpu(_) => random.weighted(&[15, 20, 5, 60]),
    };
    let kinds = match (choice, actor) {
        (0, _) => vec![Kind::Wait(Scope::Device)],
        (1, _) => vec![Kind::Wait(Scope::Stream(stream))],
        (3, Actor::Gpu(later)) => vec![record, Kind::StreamWait { stream: later, event }],
        _ => vec![record, Kind::Wait(Scope::Event(event))],
    };
    // A wait can also stand right behind the work.
    let (place, behind) = if choice < 3 && random.chance(20) { (earlier, true) } else { (at, false) };
    edit::insert(program, place, behind, kinds);
}
