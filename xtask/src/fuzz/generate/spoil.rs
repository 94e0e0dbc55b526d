//! Makes a draft unusual: statements are put in, taken out, moved, repeated, put under conditions, changed.

use super::super::edit;
use super::super::language::{Count, Kind, Range, Stmt, StmtId, Way};
use super::{Maker, Temper};

impl Maker<'_> {
    /// Spoils the draft in as many places as its temper wants.
    pub(super) fn spoil(&mut self) {
        let places = match self.temper {
            Temper::Tidy => self.random.weighted(&[75, 25]),
            Temper::Mixed => self.random.between(1, 2),
            Temper::Wild => self.random.between(2, 5),
        };
        for _ in 0..places {
            self.spoil_once();
        }
    }

    fn spoil_once(&mut self) {
        let ids = edit::ids(&self.program);
        if ids.is_empty() || self.hosts.is_empty() || self.devices.is_empty() {
            return;
        }
        let id = *self.random.pick(&ids);
        match self.random.weighted(&[30, 12, 10, 14, 8, 8, 6, 5, 4, 3]) {
            0 => {
                let kind = self.anything();
                edit::insert(&mut self.program, id, self.random.chance(50), vec![kind]);
            }
            1 => {
                edit::remove(&mut self.program, id);
            }
            2 => {
                edit::at(&mut self.program, id, |block, place| {
                    if place + 1 < block.len() {
                        block.swap(place, place + 1);
                    }
                });
            }
            3 => self.change(id),
            4 => {
                if let Some(copy) = self.copy_of(id) {
                    edit::insert(&mut self.program, id, true, vec![copy]);
                }
            }
            5 => {
                let condition = self.condition();
                self.wrap(id, |then| Kind::If { condition, then, otherwise: Vec::new() });
            }
            6 => {
                let count = Count::Constant(self.random.between(1, 3));
                self.wrap(id, |body| Kind::Loop { count, body });
            }
            7 => {
                let condition = self.condition();
                edit::insert(&mut self.program, id, true, vec![Kind::Leave(condition)]);
            }
            8 => {
                let condition = self.condition();
                edit::insert(&mut self.program, id, true, vec![Kind::Break(condition)]);
            }
            _ => {
                let (one, other) = (*self.random.pick(&self.devices), *self.random.pick(&self.devices));
                if one != other {
                    edit::insert(&mut self.program, id, true, vec![Kind::Swap(one, other)]);
                }
            }
        }
    }

    /// A simple statement again (what is inside a statement would have its names twice).
    fn copy_of(&mut self, id: StmtId) -> Option<Kind> {
        let mut found = None;
        edit::visit_all(&self.program, &mut |stmt| {
            if stmt.id == id && edit::blocks(&stmt.kind).is_empty() {
                found = Some(stmt.kind.clone());
            }
        });
        found
    }

    fn wrap(&mut self, id: StmtId, outer: impl FnOnce(Vec<Stmt>) -> Kind) {
        let fresh = self.program.next_id;
        self.program.next_id += 1;
        edit::at(&mut self.program, id, |block, place| {
            let inner = block.remove(place);
            block.insert(place, Stmt { id: fresh, kind: outer(vec![inner]) });
        });
    }

    /// Another range, stream or way.
    fn change(&mut self, id: StmtId) {
        let (part, asynchronous) = (self.part(), self.random.below(self.program.streams.len()));
        let toggle = self.random.chance(50);
        let part = if self.random.chance(70) { part } else { Range::Whole };
        edit::at(&mut self.program, id, |block, place| match &mut block[place].kind {
            Kind::Copy { stream, .. } | Kind::Memset { stream, .. } if toggle => {
                *stream = if stream.is_some() { None } else { Some(asynchronous) };
            }
            Kind::Launch { stream, .. } if toggle => *stream = asynchronous,
            Kind::Fill { range, .. }
            | Kind::Update { range, .. }
            | Kind::Clear { range, .. }
            | Kind::HostCopy { range, .. }
            | Kind::Read { range, .. }
            | Kind::Copy { range, .. }
            | Kind::Memset { range, .. }
            | Kind::Launch { range, .. } => *range = part,
            Kind::Call { way, .. } => *way = if *way == Way::Apart { Way::Helper } else { Way::Apart },
            _ => {}
        });
    }
}
