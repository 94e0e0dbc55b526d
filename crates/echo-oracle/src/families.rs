//! Which programs are run, by effort.

use crate::alphabet;
use crate::case::{D, D2, H, H2, HostKind, Kind};
use crate::enumerate::{Family, Frame};

/// Bounds of one level of effort: the most steps of each family's programs.
struct Bounds {
    values: usize,
    smallest: usize,
    core: usize,
    full: usize,
    mapped: usize,
    streams: usize,
    pairs: usize,
    regions: usize,
    lives: usize,
    strangers: usize,
}

/// The level of the usual test suite.
pub const QUICK: u8 = 1;
/// The highest level.
pub const HIGHEST: u8 = 4;

const LEVELS: [Bounds; HIGHEST as usize] = [
    Bounds {
        values: 5,
        smallest: 4,
        core: 3,
        full: 2,
        mapped: 2,
        streams: 3,
        pairs: 3,
        regions: 2,
        lives: 3,
        strangers: 3,
    },
    Bounds {
        values: 6,
        smallest: 5,
        core: 4,
        full: 3,
        mapped: 3,
        streams: 4,
        pairs: 4,
        regions: 3,
        lives: 4,
        strangers: 4,
    },
    Bounds {
        values: 6,
        smallest: 6,
        core: 5,
        full: 3,
        mapped: 4,
        streams: 4,
        pairs: 4,
        regions: 4,
        lives: 4,
        strangers: 5,
    },
    Bounds {
        values: 7,
        smallest: 7,
        core: 5,
        full: 4,
        mapped: 4,
        streams: 5,
        pairs: 5,
        regions: 4,
        lives: 5,
        strangers: 5,
    },
];

/// The families of a level, 1 to [`HIGHEST`].
#[must_use]
pub fn families(effort: u8) -> Vec<Family> {
    let bounds = &LEVELS[usize::from(effort.clamp(1, HIGHEST)) - 1];
    let hosts = [HostKind::Malloc, HostKind::Calloc, HostKind::Pinned];
    let usual: Vec<Frame> = hosts.iter().map(|host| Frame::usual(*host)).collect();
    let malloc = || Frame::usual(HostKind::Malloc);
    let straight = |name, frames: Vec<Frame>, alphabet, length| Family {
        name,
        frames,
        alphabet: alphabet::single(alphabet),
        length,
        regions: Vec::new(),
        two_regions: false,
        around_frame: false,
    };
    let orders = vec![
        malloc(),
        Frame::of(HostKind::Calloc, &[D, H], &[H, D]),
        Frame::of(HostKind::Malloc, &[H, D], &[]),
        Frame { outside: true, ..Frame::of(HostKind::Pinned, &[D, H], &[H]) },
    ];
    let blocking = || Frame { outside: true, ..Frame::usual(HostKind::Pinned) };
    let two = |name, one, other, vague_streams| {
        let frames = [HostKind::Malloc, HostKind::Pinned].map(|host| Frame { vague_streams, ..Frame::usual(host) });
        straight(name, frames.to_vec(), alphabet::streams(one, other), bounds.streams)
    };
    let all_kinds = vec![Kind::Loop, Kind::While, Kind::If, Kind::Return, Kind::Abort];
    let region = |name, frames: Vec<Frame>, alphabet, length| Family {
        regions: all_kinds.clone(),
        ..straight(name, frames, alphabet, length)
    };
    let bare = |host| Frame::of(host, &[], &[]);
    vec![
        Family {
            alphabet: alphabet::values(0),
            ..straight(
                "values, all work waited for",
                vec![malloc(), Frame::usual(HostKind::Calloc)],
                Vec::new(),
                bounds.values,
            )
        },
        straight("one stream, fewest steps", usual.clone(), alphabet::smallest(0), bounds.smallest),
        straight("one stream, core steps", orders.clone(), alphabet::core(0), bounds.core),
        straight("one stream, all steps", usual.clone(), alphabet::full(0), bounds.full),
        straight("a non-blocking stream", vec![malloc(), blocking()], alphabet::core(3), bounds.core),
        straight(
            "kernels on page-locked memory",
            vec![Frame::usual(HostKind::Pinned)],
            alphabet::mapped(0),
            bounds.mapped,
        ),
        two("two blocking streams", 1, 2, 0),
        two("legacy and a blocking stream", 0, 1, 0),
        two("legacy and a non-blocking stream", 0, 3, 0),
        two("legacy and the per-thread stream", 0, 4, 0),
        two("streams that look alike", 1, 3, 0b10),
        straight(
            "two pairs",
            vec![
                Frame::of(HostKind::Malloc, &[H, D, H2, D2], &[D, H, D2, H2]),
                Frame::of(HostKind::Pinned, &[H, H2, D2, D], &[D2, H, H2, D]),
            ],
            alphabet::pairs(0),
            bounds.pairs,
        ),
        region("one loop or branch", orders, alphabet::core(0), bounds.regions),
        Family {
            around_frame: true,
            ..region(
                "a loop or branch around allocations and frees",
                vec![malloc(), Frame::of(HostKind::Calloc, &[D, H], &[H, D])],
                alphabet::core(0),
                bounds.regions.min(3),
            )
        },
        region("lives", vec![bare(HostKind::Malloc), bare(HostKind::Calloc)], alphabet::lives(0), bounds.lives),
        Family {
            regions: vec![Kind::If, Kind::Return],
            two_regions: true,
            around_frame: true,
            ..region("two branches", vec![malloc()], alphabet::lives(0), bounds.lives - 1)
        },
        straight("strangers", vec![malloc(), blocking()], alphabet::strangers(0), bounds.strangers),
    ]
}
