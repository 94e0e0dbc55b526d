//! All programs of a family, in units that can be run apart.

use crate::case::{Buffer, Case, D, H, HostKind, Kind, Region, Step};
use crate::count::Counts;
use crate::examine::{Unsound, examine};
use crate::judge::premises;
use crate::symmetry::{Stable, Symmetry};

/// What stands around the steps that are enumerated.
#[derive(Clone, Debug)]
pub struct Frame {
    /// How host buffers are made.
    pub host: HostKind,
    /// Before the steps.
    pub head: Vec<Step>,
    /// Behind them, those of these that the steps do not have.
    pub tail: Vec<Step>,
    /// Work of others may be running at entry.
    pub outside: bool,
    /// Streams that the prover cannot tell apart.
    pub vague_streams: u8,
}

impl Frame {
    /// h, then d, are allocated before and freed behind, d first.
    #[must_use]
    pub fn usual(host: HostKind) -> Self {
        Self::of(host, &[H, D], &[D, H])
    }

    /// Buffers allocated before and freed behind, in these orders.
    #[must_use]
    pub fn of(host: HostKind, allocated: &[Buffer], freed: &[Buffer]) -> Self {
        Self {
            host,
            head: allocated.iter().map(|buffer| Step::Alloc(*buffer)).collect(),
            tail: freed.iter().map(|buffer| Step::Free(*buffer)).collect(),
            outside: false,
            vague_streams: 0,
        }
    }

    fn case(&self, steps: &[Step], whole: bool) -> Case {
        let mut all = self.head.clone();
        all.extend_from_slice(steps);
        if whole {
            all.extend(self.tail.iter().filter(|step| !steps.contains(step)));
        }
        Case {
            host: self.host,
            steps: all,
            regions: Vec::new(),
            vague_streams: self.vague_streams,
            outside: self.outside,
        }
    }
}

/// Programs that are made in one way.
#[derive(Clone, Debug)]
pub struct Family {
    /// What it is called.
    pub name: &'static str,
    /// What stands around.
    pub frames: Vec<Frame>,
    /// What programs are made of: steps, or short runs of steps.
    pub alphabet: Vec<Vec<Step>>,
    /// Up to how many of these.
    pub length: usize,
    /// Each program is also run with each of these regions around each run of its steps (and of the frame's, where
    /// [`Self::around_frame`] says so); without them where this is empty.
    pub regions: Vec<Kind>,
    /// Two regions instead of one.
    pub two_regions: bool,
    /// Regions may contain the frame's steps.
    pub around_frame: bool,
}

/// A part of a family: the programs of one frame that begin with one symbol.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    /// Index of the family.
    pub family: usize,
    frame: usize,
    symbol: usize,
}

/// The units of all families, in a fixed order.
#[must_use]
pub fn units(families: &[Family]) -> Vec<Unit> {
    let mut units = Vec::new();
    for (family, one) in families.iter().enumerate() {
        for frame in 0..one.frames.len() {
            units.extend((0..one.alphabet.len()).map(|symbol| Unit { family, frame, symbol }));
        }
    }
    units
}

struct Walk<'a> {
    family: &'a Family,
    frame: &'a Frame,
    symmetry: Symmetry,
    counts: Counts,
    found: Vec<Unsound>,
    steps: Vec<Step>,
}

/// Runs a unit.
#[must_use]
pub fn run(families: &[Family], unit: Unit) -> (Counts, Vec<Unsound>) {
    let family = &families[unit.family];
    let mut walk = Walk {
        family,
        frame: &family.frames[unit.frame],
        symmetry: Symmetry::of(&family.alphabet),
        counts: Counts::default(),
        found: Vec::new(),
        steps: Vec::new(),
    };
    walk.grow(walk.symmetry.start(), unit.symbol, family.length);
    (walk.counts, walk.found)
}

impl Walk<'_> {
    /// `left`: how many symbols there is still room for.
    fn grow(&mut self, stable: Stable, symbol: usize, left: usize) {
        let Some(stable) = self.symmetry.grow(stable, symbol) else { return };
        let before = self.steps.len();
        self.steps.extend(&self.family.alphabet[symbol]);
        let left = left - 1;
        let straight = self.family.regions.is_empty();
        if straight && premises(&self.frame.case(&self.steps, false)).inside == 0 {
            // Whatever follows, P breaks the premises.
            for more in 0..=left {
                let classes = self.symmetry.classes(stable, self.family.alphabet.len(), more);
                self.counts.classes += u128::from(classes);
                self.counts.outside += u128::from(classes);
                let all = (self.family.alphabet.len() as u128).pow(more as u32);
                self.counts.programs += u128::from(self.symmetry.orbit(stable)) * all;
            }
        } else {
            self.programs(stable);
            if left > 0 {
                for next in 0..self.family.alphabet.len() {
                    self.grow(stable, next, left);
                }
            }
        }
        self.steps.truncate(before);
    }

    /// The program of the steps, or those with regions.
    fn programs(&mut self, stable: Stable) {
        let case = self.frame.case(&self.steps, true);
        if self.family.regions.is_empty() {
            return self.one(&case, stable);
        }
        let (first, last) = if self.family.around_frame {
            (0, case.steps.len())
        } else {
            (self.frame.head.len(), self.frame.head.len() + self.steps.len())
        };
        for region in self.regions_of(first, last) {
            let with = |regions: Vec<Region>| Case { regions, ..case.clone() };
            if !self.family.two_regions {
                self.one(&with(vec![region]), stable);
                continue;
            }
            for other in self.regions_of(usize::from(region.last) + 1, last) {
                self.one(&with(vec![region, other]), stable);
            }
        }
    }

    fn regions_of(&self, first: usize, last: usize) -> Vec<Region> {
        let mut regions = Vec::new();
        for from in first..last {
            for to in from..last {
                let region = |kind: &Kind| Region { first: from as u8, last: to as u8, kind: *kind };
                regions.extend(self.family.regions.iter().map(region));
            }
        }
        regions
    }

    fn one(&mut self, case: &Case, stable: Stable) {
        self.counts.programs += u128::from(self.symmetry.orbit(stable));
        self.counts.classes += 1;
        self.found.extend(examine(case, &mut self.counts));
    }
}
