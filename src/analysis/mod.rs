//! The decision: which pairs of an event program can be merged, and what has to stay where the copies were.
//!
//! No LLVM type is known here. Input is a [`program::Program`], output one [`verdict::Verdict`] a candidate pair.
//!
//! # Why an accepted merge is sound
//!
//! P is the program, P' the program with *all* accepted pairs merged, ≺ and ≺' their happens-before. Call the execution in which every
//! queued operation runs at once the *eager* one; it is a legal execution of both.
//!
//! 1. Every order of P between operations that stay holds in P' (`rewritten`: what goes leaves a wait, or the pair declines).
//! 2. So whatever P, free of races by premise, ordered is ordered in P'; and conflicting accesses of p that P did not have to order are
//!    ordered in P' (S2). P' has no race either, and both programs behave as their eager executions do.
//! 3. Eager executions are sequential. On each path, whenever a byte of h or d will still be read, p holds its value: a write keeps that
//!    by S1, a linking copy because its source's value is in p already, an allocation because what it makes was never written and nothing
//!    is done to p. (One h may meet many d's, one after the other, or none; each allocation is a new buffer in P and the same p in P'.)
//! 4. p exists as long as one of its names does, and goes with the last (S4), nobody can tell its two names apart (S3), nothing else touches
//!    it (C), and the machine lets the host touch it (S5, if p is managed memory on a device with exclusive access).
//!
//! Premises, as in the paper: P has no race, reads nothing unwritten but by linking copies, and allocations succeed. Where P allocates
//! nothing on the device because there is none, p need not exist (S4). And a kernel that is certain to write all of a buffer is certain to
//! run: a launch that fails, by a block that is too large for the kernel, say, is an error of P that P' may show in another way.

mod access;
mod candidate;
mod cfg;
mod coverage;
mod dataflow;
mod decline;
pub(crate) mod dominance;
mod exclusive;
mod initialised;
mod liveness;
mod pair;
mod pending;
mod plan;
pub mod program;
mod repair;
mod rewritten;
mod s1_value;
mod s2_order;
mod s3_pointer;
mod s4_lifetime;
pub mod symbolic;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod verdict;

use std::collections::BTreeSet;

use crate::mutants::{Mutant, off};
use access::Accesses;
use candidate::Candidate;
use cfg::Cfg;
use pair::Pair;
use program::{NodeId, ObjectId, Program, Site};
use rewritten::{Merge, Order, Rewritten};
use s4_lifetime::Lifetime;
use verdict::{Decision, Decline, Note, Reason, Verdict};

pub use decline::ALL as ALL_DECLINES;

/// What p may be made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// cudaMallocManaged, the paper's choice.
    Managed,
    /// What `echo-rt` chooses at run time, a buffer at a time: managed, mapped or system memory, or two buffers and their copies as P had
    /// them. S5 then restricts the choice and declines nothing, and θ_min is compared with the size at run time too.
    Adaptive,
}

/// Whether host and GPU may touch managed memory at the same time (concurrentManagedAccess).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessMode {
    /// They may not, or it is not known: S5 must hold.
    Exclusive,
    /// They may.
    Concurrent,
}

/// What the user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What p is made of.
    pub target: Target,
    /// What the device allows.
    pub access: AccessMode,
    /// Put in the waits that repair pairs to which only an order is missing (`repair`); else they are suggested.
    pub repair: bool,
    /// θ_min in bytes: pairs of a smaller constant size are left alone. Where only the running program knows the size, `Adaptive` compares
    /// it there. `Managed` does not: p below θ_min would have to be two buffers, so that each call of the pair needs both its ways, which is
    /// what `Adaptive` is. Merging a small buffer is as right as merging a large one and costs at most what managed memory costs, so such a
    /// pair is merged, with [`Note::SizeNotCompared`].
    pub theta_min: u64,
    /// At most this many pairs are merged, to bisect a fault. (The proof is of all merges together, so leaving some out afterwards would
    /// not be covered by it.)
    pub max_merges: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            target: Target::Managed,
            access: AccessMode::Exclusive,
            repair: false,
            theta_min: 200 * 1024,
            max_merges: None,
        }
    }
}

/// One verdict for each candidate pair of the function, ordered by host and device object.
#[must_use]
pub fn analyse(program: &Program, options: &Options) -> Vec<Verdict> {
    if options.repair { repair::analyse(program, options) } else { decide(program, options) }
}

/// The verdicts on a program as it is.
fn decide(program: &Program, options: &Options) -> Vec<Verdict> {
    let cfg = Cfg::new(program);
    let linked = candidate::linked(program, cfg.order());
    if linked.is_empty() {
        return Vec::new();
    }
    let accesses = Accesses::new(program, &cfg);
    let candidates = linked.into_iter().map(|(pair, links)| Candidate::new(&cfg, &accesses, pair, links));
    let prover = Prover { program, cfg: &cfg, accesses: &accesses, options };
    let judged: Vec<Judged> = candidates.map(|candidate| prover.judge_alone(candidate)).collect();
    let accepted = prover.choose(&judged);
    prover.verdicts(&judged, &accepted)
}

/// A candidate and what is said against it, whichever other pairs are merged.
struct Judged {
    candidate: Candidate,
    weight: u128,
    reasons: Vec<Reason>,
    lifetime: Option<Lifetime>,
}

struct Prover<'a> {
    program: &'a Program,
    cfg: &'a Cfg<'a>,
    accesses: &'a Accesses,
    options: &'a Options,
}

impl<'a> Prover<'a> {
    fn pair<'c>(&self, candidate: &'c Candidate) -> Pair<'c>
    where
        'a: 'c,
    {
        Pair {
            program: self.program,
            cfg: self.cfg,
            accesses: self.accesses,
            host: candidate.host,
            device: candidate.device,
            nodes: &candidate.nodes,
            region: candidate.region,
        }
    }

    fn rewritten<'m>(&self, merges: &'m [Merge<'m>]) -> Rewritten<'m>
    where
        'a: 'm,
    {
        let rewritten = Rewritten::new(self.program, self.accesses, merges);
        match self.options.target {
            Target::Managed => rewritten,
            Target::Adaptive => rewritten.decided_at_run_time(),
        }
    }

    /// Everything but order, which depends on what else is merged.
    fn judge_alone(&self, candidate: Candidate) -> Judged {
        let pair = self.pair(&candidate);
        let mut reasons = Vec::new();
        candidate::check(&pair, &candidate.links, self.options.theta_min, &mut reasons);
        s1_value::check(&pair, &mut reasons);
        s3_pointer::check(&pair, &mut reasons);
        let lifetime = s4_lifetime::check(&pair, &mut reasons);
        coverage::check(&pair, &mut reasons);
        let weight = candidate::weight(&pair, &candidate.links);
        Judged { candidate, weight, reasons, lifetime }
    }

    /// The pairs that are merged: indices into `judged`, ascending.
    ///
    /// Merging one pair takes copies away and so changes what is pending at the other's accesses, for better or worse. So all pairs of the
    /// best matching are tried together; while one fails, the lightest that fails is put aside; then pairs put aside or not matched are
    /// added as long as all still pass. What is returned passed all its conditions together.
    fn choose(&self, judged: &[Judged]) -> Vec<usize> {
        let eligible: Vec<usize> = (0..judged.len()).filter(|index| judged[*index].reasons.is_empty()).collect();
        let edges: Vec<candidate::Edge> = eligible
            .iter()
            .map(|index| (judged[*index].candidate.host, judged[*index].candidate.device, judged[*index].weight))
            .collect();
        let limit = self.options.max_merges.unwrap_or(usize::MAX);
        let mut chosen: Vec<usize> = candidate::matching(&edges).into_iter().map(|edge| eligible[edge]).collect();
        chosen.truncate(limit);
        let by_weight = |index: &usize| (judged[*index].weight, std::cmp::Reverse(*index));
        let order_of = |chosen: &[usize], known: Option<&Order>| {
            self.order(judged, if off(Mutant::JointOrder) { &[] } else { chosen }, known)
        };
        let mut order = order_of(&chosen, None);
        loop {
            let failing = chosen.iter().copied().filter(|index| self.fails(&judged[*index], &order));
            let Some(worst) = failing.min_by_key(by_weight) else { break };
            chosen.retain(|index| *index != worst);
            order = order_of(&chosen, Some(&order));
        }
        let mut others = eligible;
        others.sort_by_key(|index| std::cmp::Reverse(by_weight(index)));
        loop {
            let addable = others.iter().find_map(|index| {
                let rival = rival(judged, &chosen, *index).filter(|_| !off(Mutant::OnePartner));
                if chosen.len() >= limit || chosen.contains(index) || rival.is_some() {
                    return None;
                }
                let more = [chosen.as_slice(), &[*index]].concat();
                let with = order_of(&more, Some(&order));
                let all_pass = more.iter().rev().all(|index| !self.fails(&judged[*index], &with));
                all_pass.then_some((more, with))
            });
            match addable {
                Some(more) => (chosen, order) = more,
                None => break,
            }
        }
        chosen.sort_unstable();
        chosen
    }

    /// The order when just these are merged; `known` is one of other merges.
    fn order(&self, judged: &[Judged], chosen: &[usize], known: Option<&Order>) -> Order {
        let merges = merges(judged, chosen);
        let rewritten = self.rewritten(&merges);
        let fresh = || Order::new(&rewritten, self.cfg, self.accesses);
        let order = known.map(|known| known.with(&rewritten, self.cfg, self.accesses));
        // So that everything that tests the analysis tests the short cut, the oracle above all.
        debug_assert!(order.as_ref().is_none_or(|order| order.equals(&fresh())), "{}", self.program.function);
        order.unwrap_or_else(fresh)
    }

    /// The pair breaks S2, or S5 where that counts, on this order: [`Self::judge_order`] has a reason.
    fn fails(&self, judged: &Judged, order: &Order) -> bool {
        let pair = self.pair(&judged.candidate);
        s2_order::fails(&pair, order)
            || self.exclusive_counts() && exclusive::fails(&pair, judged.lifetime.as_ref(), order)
    }

    /// Whether a pair that breaks S5 is declined.
    fn exclusive_counts(&self) -> bool {
        let options = self.options;
        (options.target, options.access) == (Target::Managed, AccessMode::Exclusive) && !off(Mutant::S5Declines)
    }

    /// What is said against the pair on this order, and whether S5 holds.
    fn judge_order(&self, judged: &Judged, order: &Order) -> (Vec<Reason>, bool) {
        let pair = self.pair(&judged.candidate);
        let mut reasons = Vec::new();
        s2_order::check(&pair, order, &mut reasons);
        let mut exclusive = Vec::new();
        exclusive::check(&pair, judged.lifetime.as_ref(), order, &mut exclusive);
        let exclusive_ok = exclusive.is_empty();
        if self.exclusive_counts() {
            reasons.extend(exclusive);
        }
        (reasons, exclusive_ok)
    }

    fn verdicts(&self, judged: &[Judged], accepted: &[usize]) -> Vec<Verdict> {
        let merges_of_all = merges(judged, accepted);
        let rewritten = self.rewritten(&merges_of_all);
        let order = Order::new(&rewritten, self.cfg, self.accesses);
        let verdict = |index: usize| {
            let Judged { candidate, lifetime, .. } = &judged[index];
            let (decision, notes) = match lifetime {
                Some(lifetime) if accepted.contains(&index) => {
                    let (_, exclusive_ok) = self.judge_order(&judged[index], &order);
                    let plan = plan::plan(candidate, lifetime, &rewritten, &order, exclusive_ok);
                    (Decision::Accept(plan), self.notes(candidate, exclusive_ok))
                }
                _ => (Decision::Decline(self.reasons(judged, accepted, &order, index)), Vec::new()),
            };
            let copies: Vec<Site> = candidate.links.iter().map(|node| self.program.node(*node).site.clone()).collect();
            let saved_per_iteration = candidate::saved_per_iteration(&self.pair(candidate), &candidate.links);
            let (host, device) = (candidate.host, candidate.device);
            Verdict { host, device, copies, saved_per_iteration, decision, notes }
        };
        (0..judged.len()).map(verdict).collect()
    }

    fn notes(&self, candidate: &Candidate, exclusive_ok: bool) -> Vec<Note> {
        let dynamic = candidate::is_dynamic(self.program.object(candidate.host));
        let managed = self.options.target == Target::Managed;
        let size = (managed && dynamic && self.options.theta_min > 0).then_some(Note::SizeNotCompared);
        let access = (!exclusive_ok).then_some(if managed {
            Note::NeedsConcurrentAccess
        } else {
            Note::ManagedNeedsConcurrentAccess
        });
        size.into_iter().chain(access).collect()
    }

    /// Everything against a pair that is not merged: what is said against it alone, a rival, and order if it were merged beside the
    /// accepted ones.
    fn reasons(&self, judged: &[Judged], accepted: &[usize], order: &Order, index: usize) -> Vec<Reason> {
        let mut reasons = judged[index].reasons.clone();
        let pair = self.pair(&judged[index].candidate);
        let rival = rival(judged, accepted, index);
        if let Some((shared, partner)) = rival {
            let decline = Decline::BetterPartner { shared: pair.name(shared), partner: pair.name(partner) };
            reasons.push(pair.reason(decline, judged[index].candidate.links[0]));
        }
        if rival.is_none() {
            let with = [accepted, &[index]].concat();
            let order = self.order(judged, &with, Some(order));
            reasons.extend(self.judge_order(&judged[index], &order).0);
            if reasons.is_empty() {
                // It passes itself; then an accepted pair would not any more, and its reasons are what stands against this one.
                reasons.extend(accepted.iter().flat_map(|other| self.judge_order(&judged[*other], &order).0));
            }
        }
        suggest(&mut reasons);
        reasons
    }
}

/// The buffer of the pair that an accepted pair uses, and what that one merges it with.
fn rival(judged: &[Judged], accepted: &[usize], index: usize) -> Option<(ObjectId, ObjectId)> {
    let mine = &judged[index].candidate;
    accepted.iter().map(|other| &judged[*other].candidate).find_map(|other| {
        if other.host == mine.host {
            Some((mine.host, other.device))
        } else if other.device == mine.device {
            Some((mine.device, other.host))
        } else {
            None
        }
    })
}

fn merges<'a>(judged: &'a [Judged], chosen: &[usize]) -> Vec<Merge<'a>> {
    static NOWHERE: BTreeSet<NodeId> = BTreeSet::new();
    let merge = |index: &usize| {
        let Judged { candidate, lifetime, .. } = &judged[*index];
        let releases = lifetime.as_ref().map_or(&NOWHERE, |lifetime| &lifetime.releases);
        Merge { host: candidate.host, device: candidate.device, releases }
    };
    chosen.iter().map(merge).collect()
}

/// If nothing but order is missing, a wait repairs the pair: adding order never breaks P.
fn suggest(reasons: &mut [Reason]) {
    if !reasons.iter().all(|reason| reason.order.is_some()) {
        return;
    }
    for reason in reasons {
        reason.suggestion = Some(format!("put cudaDeviceSynchronize() before {}", reason.at));
    }
}
