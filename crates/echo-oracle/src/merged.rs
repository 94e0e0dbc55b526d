//! The trace of P' on a path: P with the pairs of some plans merged.

use crate::build::{Build, CopyCall, Practice};
use crate::case::{Buffer, Case, HostKind, Path, Step, Visit, is_host};
use crate::machine::Machine;
use crate::plan::{Free, Plan, Wait};
use crate::trace::{Flaw, Instance, Trace};

/// One merged buffer that a plan made.
struct Merged {
    instance: Instance,
    plan: usize,
    /// P's buffers that it stands for, and whether P has not freed them yet.
    halves: Vec<(Buffer, bool)>,
}

struct Maker<'a> {
    build: Build<'a>,
    plans: &'a [Plan],
    merged: Vec<Merged>,
    /// What each plan's p counts.
    names: Vec<u32>,
}

/// P' on a path.
#[must_use]
pub fn merged(case: &Case, path: &Path, machine: Machine, plans: &[Plan]) -> Trace {
    let mut maker = Maker { build: Build::new(case, machine), plans, merged: Vec::new(), names: vec![0; plans.len()] };
    for visit in &path.visits {
        maker.repair(visit.step, true);
        maker.visit(*visit, &case.steps[usize::from(visit.step)]);
        maker.repair(visit.step, false);
    }
    if path.returns {
        maker.leaks(path);
    }
    maker.build.done(path)
}

impl Maker<'_> {
    fn repair(&mut self, place: u8, before: bool) {
        let repair = (usize::from(place), before);
        if self.plans.iter().any(|plan| plan.repairs.contains(&repair)) {
            self.build.wait_for(Some(Wait::Device));
        }
    }

    fn visit(&mut self, visit: Visit, step: &Step) {
        let place = visit.step;
        let plan_of = |buffer: Buffer| self.plans.iter().position(|plan| plan.has(buffer));
        match *step {
            Step::Alloc(buffer) => match plan_of(buffer) {
                Some(plan) => self.allocate(place, buffer, plan),
                None => {
                    let instance = self.build.begin(place);
                    self.build.pointers[usize::from(buffer)] = Some(instance);
                    if is_host(buffer) && self.build.case.host == HostKind::Calloc {
                        self.build.zero(place, instance);
                    }
                }
            },
            Step::Free(buffer) => match plan_of(buffer) {
                Some(plan) => self.free(place, buffer, plan),
                None => self.build.free(place, buffer),
            },
            Step::FreeUnlessNull(buffer) => match plan_of(buffer) {
                Some(plan) => self.free(place, buffer, plan),
                None => self.build.free_unless_null(place, buffer),
            },
            Step::Reset => {
                let merged: Vec<Instance> = self.merged.iter().map(|merged| merged.instance).collect();
                self.build.reset(place, |instance| merged.contains(&instance));
            }
            Step::Copy { .. } | Step::Shifted { .. } => self.copy(place, step),
            Step::Host(touches) => {
                for touch in touches.iter().flatten().filter(|touch| !touch.may || visit.does) {
                    self.by_host(place, touch.buffer);
                }
                self.build.common(visit, step);
            }
            _ => self.build.common(visit, step),
        }
    }

    fn allocate(&mut self, place: u8, buffer: Buffer, index: usize) {
        let plan = &self.plans[index];
        if plan.creates == usize::from(place) {
            self.exclusive(place, index);
            let instance = self.build.begin(place);
            self.merged.push(Merged { instance, plan: index, halves: Vec::new() });
            self.names[index] = 1;
        } else {
            self.names[index] += 1;
        }
        let Some(made) = self.merged.iter_mut().rev().find(|made| made.plan == index) else {
            // The other allocation did not run before: its pointer is no pointer.
            self.build.pointers[usize::from(buffer)] = None;
            return;
        };
        made.halves.push((buffer, true));
        let instance = made.instance;
        self.build.pointers[usize::from(buffer)] = Some(instance);
        if buffer == plan.host && self.build.case.host == HostKind::Calloc {
            self.exclusive(place, index);
            self.build.zero(place, instance);
        }
    }

    fn free(&mut self, place: u8, buffer: Buffer, index: usize) {
        let action = self.plans[index].frees.iter().find(|(free, _)| *free == usize::from(place));
        let Some((_, action)) = action.copied() else {
            self.build.trace.flaw(place, Flaw::Missing);
            return;
        };
        let (Free::Drop(wait) | Free::Release(wait) | Free::Count(wait)) = action;
        self.build.wait_for(wait);
        let Some(instance) = self.build.pointers[usize::from(buffer)] else {
            // The pointer is null; for a free that may not be given null, P was at fault before.
            return;
        };
        let Some(made) = self.merged.iter_mut().find(|made| made.instance == instance) else { return };
        let Some(half) = made.halves.iter_mut().rev().find(|half| half.0 == buffer && half.1) else { return };
        half.1 = false;
        let releases = match action {
            Free::Drop(_) => false,
            Free::Release(_) => true,
            Free::Count(_) => {
                self.names[index] = self.names[index].saturating_sub(1);
                self.names[index] == 0
            }
        };
        if releases {
            self.build.end(place, vec![instance]);
        }
    }

    fn copy(&mut self, place: u8, step: &Step) {
        let plans = self.plans;
        let linking = |dst, src| plans.iter().find(|plan| plan.has(dst) && plan.has(src));
        let Some((stream, call)) = CopyCall::of(step, crate::original::could_link) else { return };
        let listed = linking(call.dst, call.src)
            .and_then(|plan| plan.copies.iter().find(|(copy, _)| *copy == usize::from(place)));
        if let Some((_, wait)) = listed {
            self.build.wait_for(*wait);
            return;
        }
        let managed = |buffer| plans.iter().any(|plan| plan.has(buffer));
        if managed(call.dst) || managed(call.src) {
            self.copy_managed(place, stream, &call);
        } else {
            self.build.copy(place, stream, &call);
        }
        for (_, wait) in plans.iter().flat_map(|plan| &plan.waits).filter(|(copy, _)| *copy == usize::from(place)) {
            self.build.wait_for(Some(*wait));
        }
    }

    fn copy_managed(&mut self, place: u8, stream: u8, call: &CopyCall) {
        let plans = self.plans;
        let managed = |buffer| plans.iter().any(|plan| plan.has(buffer));
        // The driver may touch the host's side with the CPU.
        for side in [call.dst, call.src].into_iter().filter(|side| is_host(*side)) {
            self.by_host(place, side);
        }
        // Of managed memory nothing is promised but the order of the stream.
        let practice = self.build.practice(call, managed);
        let item = self.build.moves(place, stream, call, practice == Some(Practice::Staged));
        if practice == Some(Practice::Synchronous) {
            self.build.wait(item);
        }
    }

    /// The host touches a buffer.
    fn by_host(&mut self, place: u8, buffer: Buffer) {
        if let Some(index) = self.plans.iter().position(|plan| plan.has(buffer)) {
            self.exclusive(place, index);
        }
    }

    fn exclusive(&mut self, place: u8, index: usize) {
        if self.plans[index].exclusive && self.build.queues.uncovered() != 0 {
            self.build.trace.flaw(place, Flaw::Exclusive);
        }
    }

    fn leaks(&mut self, path: &Path) {
        let last = path.visits.last().map_or(0, |visit| visit.step);
        let alive = self.build.alive;
        let leaked = |made: &Merged| alive & (1 << made.instance) != 0 && made.halves.iter().all(|(_, alive)| !alive);
        if self.merged.iter().any(leaked) {
            self.build.trace.flaw(last, Flaw::Leak);
        }
    }
}
