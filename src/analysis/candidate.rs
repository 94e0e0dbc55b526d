//! Which pairs are looked at, and which of those that could be merged are.
//!
//! A candidate is a host and a device buffer with at least one linking copy: same offset on both sides. A buffer can be merged with one
//! other only, so among the pairs that pass their conditions a matching of maximum weight is chosen; weight is what merging saves: bytes
//! of the linking copies, a copy in a loop counting [`LOOP_FACTOR`] times a level.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::unionfind::UnionFind;

use super::access::{Accesses, link, same_value};
use super::cfg::{Cfg, Region};
use super::decline::Decline;
use super::pair::Pair;
use super::program::{Allocator, Event, NodeId, Object, ObjectId, Program, Range, Space};
use super::verdict::Reason;
use crate::mutants::{Mutant, off};

/// How often a loop is taken to run where nothing is known. Only ratios matter, and only between rivals for one buffer.
const LOOP_FACTOR: u128 = 16;
/// What a size that is not constant is taken for: 1 MiB.
const UNKNOWN_BYTES: u128 = 1 << 20;
/// Deeper loops weigh no more, so that weights stay far from overflow.
const MAX_DEPTH: u32 = 8;
/// Components with at most this many buffers on their smaller side are matched exactly (2^12 sets), larger ones greedily by weight. No
/// program of the survey has more than 4 rivals.
const EXACT_LIMIT: usize = 12;

/// A host and a device buffer, and the copies between them.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) host: ObjectId,
    pub(super) device: ObjectId,
    pub(super) links: Vec<NodeId>,
    /// See [`Pair::nodes`].
    pub(super) nodes: Vec<NodeId>,
    /// See [`Pair::region`].
    pub(super) region: Region,
}

impl Candidate {
    pub(super) fn new(
        cfg: &Cfg<'_>,
        accesses: &Accesses,
        (host, device): (ObjectId, ObjectId),
        links: Vec<NodeId>,
    ) -> Self {
        let mut nodes = [accesses.mentions(host), accesses.mentions(device)].concat();
        nodes.sort_unstable_by_key(|node| cfg.position(*node));
        nodes.dedup();
        let region = cfg.region(&nodes);
        Self { host, device, links, nodes, region }
    }
}

/// Every host and device buffer that linking copies join, with those, by host and device.
pub(super) fn linked(program: &Program, order: &[NodeId]) -> BTreeMap<(ObjectId, ObjectId), Vec<NodeId>> {
    let mut found: BTreeMap<(ObjectId, ObjectId), Vec<NodeId>> = BTreeMap::new();
    for &node in order {
        let Event::Copy(copy) = &program.node(node).event else { continue };
        let (Some(dst), Some(src)) = (copy.dst.object, copy.src.object) else { continue };
        let (host, device) = if program.object(dst).space == Space::Device { (src, dst) } else { (dst, src) };
        let fits = is_host(program.object(host)) && is_device(program.object(device));
        if fits && link(program, host, device, node).is_some() {
            found.entry((host, device)).or_default().push(node);
        }
    }
    found
}

fn is_host(object: &Object) -> bool {
    object.space == Space::Host
        && matches!(
            object.origin,
            Allocator::Malloc
                | Allocator::Calloc
                | Allocator::AlignedAlloc
                | Allocator::OperatorNew
                | Allocator::PinnedHost
        )
}

fn is_device(object: &Object) -> bool {
    object.space == Space::Device && matches!(object.origin, Allocator::CudaMalloc | Allocator::CudaMallocAsync)
}

/// Sizes and copies are those of one buffer in two places.
pub(super) fn check(pair: &Pair<'_>, links: &[NodeId], theta_min: u64, reasons: &mut Vec<Reason>) {
    let (host, device) = (pair.program.object(pair.host), pair.program.object(pair.device));
    let mut sized = true;
    for object in [host, device] {
        if object.size.is_none() && !off(Mutant::SizeKnown) {
            sized = false;
            let decline = Decline::SizeUnknown { buffer: object.name.clone() };
            reasons.push(pair.reason_at_site(decline, object.site.clone()));
        }
    }
    if sized && !same_size(pair) && !off(Mutant::SizesEqual) {
        reasons.push(pair.reason_at_site(Decline::SizesDiffer, device.site.clone()));
    }
    if let Some(size) = constant_size(host).or(constant_size(device))
        && size < u128::from(theta_min)
    {
        let size = u64::try_from(size).unwrap_or(0);
        let decline = Decline::BelowThreshold { size, threshold: theta_min };
        reasons.push(pair.reason_at_site(decline, device.site.clone()));
    }
    if !links.iter().any(|node| pair.touches(*node).any(|touch| touch.whole || off(Mutant::WholeCopy))) {
        reasons.push(pair.reason(Decline::NoWholeCopy, links[0]));
    }
}

fn same_size(pair: &Pair<'_>) -> bool {
    let size = |object| pair.program.object(object).size.as_ref();
    let (Some(host), Some(device)) = (size(pair.host), size(pair.device)) else { return false };
    host == device
        && pair.accesses.allocations(pair.host).iter().all(|&one| {
            pair.accesses.allocations(pair.device).iter().all(|&other| {
                let (first, second) = if pair.cfg.dominates(one, other) { (one, other) } else { (other, one) };
                same_value(pair.program, pair.cfg, host, first, second)
            })
        })
}

/// The size is known only at run time.
pub(super) fn is_dynamic(object: &Object) -> bool {
    constant_size(object).is_none()
}

fn constant_size(object: &Object) -> Option<u128> {
    u128::try_from(object.size.as_ref()?.as_constant()?).ok()
}

/// Bytes that a linking copy moves, where that is a constant.
fn copied_bytes(pair: &Pair<'_>, node: NodeId) -> Option<u128> {
    let Event::Copy(copy) = &pair.program.node(node).event else { return None };
    match &copy.dst.range {
        Range::Part { len, .. } => len.as_constant().and_then(|len| u128::try_from(len).ok()),
        Range::Whole | Range::Unknown => constant_size(pair.program.object(pair.host)),
    }
}

/// See [`super::verdict::Verdict::saved_per_iteration`].
pub(super) fn saved_per_iteration(pair: &Pair<'_>, links: &[NodeId]) -> Option<u64> {
    let looped = || links.iter().filter(|node| pair.cfg.depth(**node) > 0);
    let bytes = looped().map(|node| copied_bytes(pair, *node)).sum::<Option<u128>>()?;
    (looped().count() > 0).then(|| u64::try_from(bytes).ok())?
}

/// What merging saves, in arbitrary units.
pub(super) fn weight(pair: &Pair<'_>, links: &[NodeId]) -> u128 {
    let one = |node: &NodeId| {
        let bytes = copied_bytes(pair, *node).unwrap_or(UNKNOWN_BYTES).clamp(1, 1 << 64);
        bytes * LOOP_FACTOR.pow(pair.cfg.depth(*node).min(MAX_DEPTH))
    };
    links.iter().map(one).fold(0, u128::saturating_add)
}

/// An edge of the matching: host, device, weight.
pub(super) type Edge = (ObjectId, ObjectId, u128);

/// Indices of the edges of a matching of maximum weight; on a tie the earlier edges.
pub(super) fn matching(edges: &[Edge]) -> Vec<usize> {
    let mut chosen: Vec<usize> = components(edges).iter().flat_map(|part| match_component(edges, part)).collect();
    chosen.sort_unstable();
    chosen
}

/// Edges that share a buffer, directly or through others.
fn components(edges: &[Edge]) -> Vec<Vec<usize>> {
    let mut group: UnionFind<usize> = UnionFind::new(edges.len());
    let mut first: BTreeMap<ObjectId, usize> = BTreeMap::new();
    for (edge, (host, device, _)) in edges.iter().enumerate() {
        for object in [host, device] {
            group.union(edge, *first.entry(*object).or_insert(edge));
        }
    }
    let mut parts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for edge in 0..edges.len() {
        parts.entry(group.find(edge)).or_default().push(edge);
    }
    parts.into_values().collect()
}

fn match_component(edges: &[Edge], part: &[usize]) -> Vec<usize> {
    let distinct = |side: fn(&Edge) -> ObjectId| {
        let mut all: Vec<ObjectId> = part.iter().map(|edge| side(&edges[*edge])).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let (hosts, devices) = (distinct(|edge| edge.0), distinct(|edge| edge.1));
    if hosts.len().min(devices.len()) > EXACT_LIMIT {
        return greedy(edges, part);
    }
    let hosts_are_few = hosts.len() <= devices.len();
    let (few, many) = if hosts_are_few { (hosts, devices) } else { (devices, hosts) };
    let ends = |edge: &Edge| if hosts_are_few { (edge.0, edge.1) } else { (edge.1, edge.0) };
    // best[set]: the heaviest matching of the buffers of `many` seen so far that uses exactly `set` of `few`.
    let mut best: BTreeMap<usize, (u128, Vec<usize>)> = BTreeMap::from([(0, (0, Vec::new()))]);
    for other in many {
        let mut next = best.clone();
        for &edge in part.iter().filter(|edge| ends(&edges[**edge]).1 == other) {
            let Ok(bit) = few.binary_search(&ends(&edges[edge]).0) else { continue };
            for (set, (weight, taken)) in &best {
                if set & (1 << bit) != 0 {
                    continue;
                }
                let weight = weight.saturating_add(edges[edge].2);
                let slot = next.entry(set | 1 << bit).or_default();
                if weight > slot.0 {
                    *slot = (weight, [taken.as_slice(), &[edge]].concat());
                }
            }
        }
        best = next;
    }
    let mut heaviest = (0, Vec::new());
    for candidate in best.into_values() {
        if candidate.0 > heaviest.0 {
            heaviest = candidate;
        }
    }
    heaviest.1
}

fn greedy(edges: &[Edge], part: &[usize]) -> Vec<usize> {
    let mut heaviest_first = part.to_vec();
    heaviest_first.sort_by_key(|edge| (std::cmp::Reverse(edges[*edge].2), *edge));
    let mut taken: BTreeSet<ObjectId> = BTreeSet::new();
    heaviest_first.retain(|edge| {
        let (host, device, _) = edges[*edge];
        let free = !taken.contains(&host) && !taken.contains(&device);
        if free {
            taken.extend([host, device]);
        }
        free
    });
    heaviest_first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(host: u32, device: u32, weight: u128) -> Edge {
        (ObjectId(host), ObjectId(100 + device), weight)
    }

    fn is_matching(edges: &[Edge], set: &[usize]) -> bool {
        set.iter().enumerate().all(|(index, left)| {
            set[..index].iter().all(|right| edges[*left].0 != edges[*right].0 && edges[*left].1 != edges[*right].1)
        })
    }

    fn weight_of(edges: &[Edge], set: &[usize]) -> u128 {
        set.iter().map(|edge| edges[*edge].2).sum()
    }

    #[test]
    fn matching_is_the_heaviest_of_all() {
        let mut state = 7_u64;
        let mut random = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        for _ in 0..300 {
            let mut edges: Vec<Edge> = Vec::new();
            for _ in 0..random(8) {
                let (host, device) = (random(4) as u32, random(4) as u32);
                if !edges.iter().any(|found| (found.0, found.1) == (ObjectId(host), ObjectId(100 + device))) {
                    edges.push(edge(host, device, 1 + u128::from(random(20))));
                }
            }
            let found = matching(&edges);
            assert!(is_matching(&edges, &found), "{edges:?} {found:?}");
            let best = (0_usize..1 << edges.len())
                .map(|set| (0..edges.len()).filter(|edge| set & (1 << edge) != 0).collect::<Vec<_>>())
                .filter(|set| is_matching(&edges, set))
                .map(|set| weight_of(&edges, &set))
                .max();
            assert_eq!(Some(weight_of(&edges, &found)), best, "{edges:?} {found:?}");
        }
    }

    #[test]
    fn large_components_are_matched_greedily() {
        let count = u32::try_from(EXACT_LIMIT).expect("small") + 2;
        // A chain h0-d0-h1-d1-…, the edges to the next device being heavier.
        let chain = (0..count).flat_map(|n| [edge(n, n, 2), edge(n, n + 1, 3)]);
        let edges: Vec<Edge> = chain.collect();
        let found = matching(&edges);
        assert!(is_matching(&edges, &found));
        assert_eq!(weight_of(&edges, &found), u128::from(count) * 3);
    }

    #[test]
    fn a_copy_in_a_loop_outweighs_a_larger_one_outside() {
        use crate::analysis::testing::Build;
        let mut b = Build::main();
        let h = b.malloc("h");
        let (once, often) = (b.cuda_malloc("once"), b.cuda_malloc("often"));
        b.object(once).size = Some(4_000_000.into());
        b.object(often).size = Some(1_000_000.into());
        let up = b.upload(once, h);
        let mut again = up;
        b.repeat(|b| again = b.upload(often, h));
        b.exit();
        let program = b.done();
        let cfg = Cfg::new(&program);
        let accesses = Accesses::new(&program, &cfg);
        let weigh = |device, node| {
            let candidate = Candidate::new(&cfg, &accesses, (h, device), vec![node]);
            let Candidate { nodes, region, links, .. } = &candidate;
            let (nodes, region) = (nodes.as_slice(), *region);
            let pair = Pair { program: &program, cfg: &cfg, accesses: &accesses, host: h, device, nodes, region };
            weight(&pair, links)
        };
        assert!(weigh(often, again) > weigh(once, up));
    }
}
