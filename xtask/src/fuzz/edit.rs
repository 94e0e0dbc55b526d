//! Changes of a program's tree: find, insert, remove, take apart.

use super::language::{Kind, Program, Stmt, StmtId};
use super::machine::END;

/// The blocks that a statement contains.
pub(super) fn blocks(kind: &Kind) -> Vec<&Vec<Stmt>> {
    match kind {
        Kind::Loop { body, .. } | Kind::Call { body, .. } => vec![body],
        Kind::If { then, otherwise, .. } => vec![then, otherwise],
        _ => Vec::new(),
    }
}

fn blocks_mut(kind: &mut Kind) -> Vec<&mut Vec<Stmt>> {
    match kind {
        Kind::Loop { body, .. } | Kind::Call { body, .. } => vec![body],
        Kind::If { then, otherwise, .. } => vec![then, otherwise],
        _ => Vec::new(),
    }
}

/// Calls `see` for every statement, outer ones first.
pub(super) fn visit<'a>(block: &'a [Stmt], see: &mut impl FnMut(&'a Stmt)) {
    for stmt in block {
        see(stmt);
        for inner in blocks(&stmt.kind) {
            visit(inner, see);
        }
    }
}

/// The same for a whole program.
pub(super) fn visit_all<'a>(program: &'a Program, see: &mut impl FnMut(&'a Stmt)) {
    visit(&program.body, see);
    visit(&program.tail, see);
}

/// Names of all statements, outer ones first.
pub(super) fn ids(program: &Program) -> Vec<StmtId> {
    let mut ids = Vec::new();
    visit_all(program, &mut |stmt| ids.push(stmt.id));
    ids
}

/// Applies `change` to the block that contains `id` and the statement's place in it. False: there is no such statement.
pub(super) fn at(program: &mut Program, id: StmtId, change: impl FnOnce(&mut Vec<Stmt>, usize)) -> bool {
    let mut change = Some(change);
    for block in [&mut program.body, &mut program.tail] {
        if in_block(block, id, &mut change) {
            return true;
        }
    }
    false
}

fn in_block(block: &mut Vec<Stmt>, id: StmtId, change: &mut Option<impl FnOnce(&mut Vec<Stmt>, usize)>) -> bool {
    if let Some(place) = block.iter().position(|stmt| stmt.id == id) {
        if let Some(change) = change.take() {
            change(block, place);
        }
        return true;
    }
    block.iter_mut().flat_map(|stmt| blocks_mut(&mut stmt.kind)).any(|inner| in_block(inner, id, change))
}

/// Puts statements before (or behind) one, or at the program's end for [`END`].
pub(super) fn insert(program: &mut Program, id: StmtId, behind: bool, kinds: Vec<Kind>) {
    let new: Vec<Stmt> = kinds.into_iter().map(|kind| program.fresh(kind)).collect();
    if id == END {
        program.tail.extend(new);
        return;
    }
    at(program, id, |block, place| {
        let place = place + usize::from(behind);
        block.splice(place..place, new);
    });
}

/// Takes a statement out, with all that it contains.
pub(super) fn remove(program: &mut Program, id: StmtId) -> bool {
    at(program, id, |block, place| {
        block.remove(place);
    })
}

/// Puts what a statement contains in its place. False: it contains nothing.
pub(super) fn unwrap(program: &mut Program, id: StmtId) -> bool {
    let mut done = false;
    at(program, id, |block, place| {
        let inner: Vec<Stmt> = blocks(&block[place].kind).into_iter().flatten().cloned().collect();
        if !inner.is_empty() {
            block.splice(place..=place, inner);
            done = true;
        }
    });
    done
}

#[cfg(test)]
mod tests {
    use super::super::language::{Condition, Scope};
    use super::super::testing;
    use super::*;

    #[test]
    fn statements_are_found_wherever_they_are() {
        let mut program = testing::program();
        let inner = program.fresh(Kind::Print);
        let (id, kind) = (inner.id, Kind::If { condition: Condition::Flag, then: vec![inner], otherwise: vec![] });
        let outer = program.fresh(kind);
        program.body.push(outer);
        insert(&mut program, id, false, vec![Kind::Wait(Scope::Device)]);
        insert(&mut program, id, true, vec![Kind::Print]);
        let Kind::If { then, .. } = &program.body[0].kind else { panic!("{program:?}") };
        assert_eq!(then.len(), 3);
        assert_eq!(then[1].id, id);
        assert_eq!(ids(&program).len(), 4);
        let outer = program.body[0].id;
        assert!(unwrap(&mut program, outer));
        assert_eq!(program.body.len(), 3);
        assert!(!unwrap(&mut program, id), "a print contains nothing");
        assert!(remove(&mut program, id) && !remove(&mut program, id));
    }
}
