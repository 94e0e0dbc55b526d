//! What the lanes of one warp do together: which of the waiting lanes can go on, and with what answer. Pure functions.
//!
//! An operation on a mask is complete when every lane of the mask either waits with the same operation and mask or has exited. A value
//! asked from a lane that exited is undefined in CUDA; here it is the asking lane's own.

use crate::services::WarpRequest;
use uma_abi::WARP_SIZE;

/// One lane of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneState {
    /// It has exited, or the block has no such thread.
    Exited,
    /// It waits for something that is no business of its warp (a barrier).
    Elsewhere,
    /// It waits for its warp.
    Waits(WarpRequest),
}

/// The lanes that can go on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Released {
    /// One bit a lane.
    pub(crate) lanes: u32,
    /// The answer of each lane in `lanes`.
    pub(crate) answers: [u64; WARP_SIZE as usize],
}

/// A lane that is not in its own mask.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotInMask {
    pub(crate) lane: usize,
    pub(crate) mask: u32,
}

type Lanes = [LaneState; WARP_SIZE as usize];

/// Completes one operation; `lanes` is empty where none can complete. To be called when no lane of the warp can run.
pub(crate) fn resolve(lanes: &Lanes) -> Result<Released, NotInMask> {
    for (lane, state) in lanes.iter().enumerate() {
        let LaneState::Waits(request) = state else { continue };
        let Some(mask) = mask_of(request) else { continue };
        if mask & (1 << lane) == 0 {
            return Err(NotInMask { lane, mask });
        }
        let partners = select(lanes, |other| same_operation(request, other));
        if mask & !partners & !exited(lanes) == 0 {
            return Ok(answer(lanes, request, partners & mask));
        }
    }
    // All complete operations have gone on. A lane that asks who is active has now been joined by all that can come.
    for state in lanes {
        if let LaneState::Waits(WarpRequest::ActiveMask { site }) = state {
            let here = select(lanes, |other| matches!(other, WarpRequest::ActiveMask { site: s } if s == site));
            return Ok(Released { lanes: here, answers: [u64::from(here); 32] });
        }
    }
    Ok(Released { lanes: 0, answers: [0; 32] })
}

fn mask_of(request: &WarpRequest) -> Option<u32> {
    match *request {
        WarpRequest::Shuffle { mask, .. } | WarpRequest::Ballot { mask, .. } | WarpRequest::Sync { mask } => Some(mask),
        WarpRequest::ActiveMask { .. } => None,
    }
}

fn same_operation(a: &WarpRequest, b: &WarpRequest) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b) && mask_of(a) == mask_of(b)
}

fn select(lanes: &Lanes, wanted: impl Fn(&WarpRequest) -> bool) -> u32 {
    bits(lanes, |state| matches!(state, LaneState::Waits(request) if wanted(request)))
}

fn exited(lanes: &Lanes) -> u32 {
    bits(lanes, |state| *state == LaneState::Exited)
}

fn bits(lanes: &Lanes, wanted: impl Fn(&LaneState) -> bool) -> u32 {
    lanes.iter().enumerate().filter(|(_, state)| wanted(state)).fold(0, |mask, (lane, _)| mask | 1 << lane)
}

fn answer(lanes: &Lanes, request: &WarpRequest, members: u32) -> Released {
    let mut answers = [0; WARP_SIZE as usize];
    match request {
        WarpRequest::Ballot { .. } => {
            let votes = members & select(lanes, |r| matches!(r, WarpRequest::Ballot { predicate: true, .. }));
            answers = [u64::from(votes); 32];
        }
        WarpRequest::Shuffle { .. } => {
            for (lane, answer) in answers.iter_mut().enumerate() {
                if let LaneState::Waits(WarpRequest::Shuffle { mode, value, b, c, .. }) = lanes[lane] {
                    let (source, in_range) = shuffle_source(lane as u32, mode, b, c);
                    let value = match lanes[source as usize] {
                        LaneState::Waits(WarpRequest::Shuffle { value, .. }) if members & (1 << source) != 0 => value,
                        _ => value,
                    };
                    *answer = u64::from(value) | u64::from(in_range) << 32;
                }
            }
        }
        WarpRequest::Sync { .. } | WarpRequest::ActiveMask { .. } => {}
    }
    Released { lanes: members, answers }
}

/// The lane that `lane` reads, and whether it was in range: PTX ISA, `shfl.sync`.
fn shuffle_source(lane: u32, mode: u32, b: u32, c: u32) -> (u32, bool) {
    let (step, clamp, segment) = (b & 31, c & 31, (c >> 8) & 31);
    let (first, last) = (lane & segment, (lane & segment) | (clamp & !segment));
    let (source, in_range) = match mode {
        0 => {
            let source = lane as i32 - step as i32;
            (source as u32, source >= last as i32)
        }
        1 => (lane + step, lane + step <= last),
        2 => (lane ^ step, lane ^ step <= last),
        _ => {
            let source = first | (step & !segment);
            (source, source <= last)
        }
    };
    if in_range { (source, true) } else { (lane, false) }
}

#[cfg(test)]
mod tests {
    use super::{LaneState, NotInMask, WarpRequest, resolve, shuffle_source};

    fn ballot(mask: u32, predicate: bool) -> LaneState {
        LaneState::Waits(WarpRequest::Ballot { mask, predicate })
    }

    #[test]
    fn a_ballot_waits_for_the_lanes_of_its_mask() {
        let mut lanes = [LaneState::Elsewhere; 32];
        lanes[0] = ballot(0b101, true);
        assert_eq!(resolve(&lanes).unwrap().lanes, 0);
        lanes[2] = ballot(0b101, false);
        let released = resolve(&lanes).unwrap();
        assert_eq!((released.lanes, released.answers[0]), (0b101, 0b001));
        lanes[2] = LaneState::Exited;
        assert_eq!(resolve(&lanes).unwrap().lanes, 0b001);
    }

    #[test]
    fn two_masks_do_not_mix() {
        let mut lanes = [LaneState::Elsewhere; 32];
        lanes[0] = ballot(0b011, true);
        lanes[1] = ballot(0b110, true);
        lanes[2] = ballot(0b110, true);
        assert_eq!(resolve(&lanes).unwrap().lanes, 0b110);
    }

    #[test]
    fn a_lane_outside_its_mask_is_an_error() {
        let mut lanes = [LaneState::Elsewhere; 32];
        lanes[3] = ballot(0b1, true);
        assert_eq!(resolve(&lanes), Err(NotInMask { lane: 3, mask: 1 }));
    }

    #[test]
    fn active_lanes_are_those_at_the_same_place() {
        let mut lanes = [LaneState::Elsewhere; 32];
        lanes[1] = LaneState::Waits(WarpRequest::ActiveMask { site: 7 });
        lanes[4] = LaneState::Waits(WarpRequest::ActiveMask { site: 8 });
        lanes[9] = LaneState::Waits(WarpRequest::ActiveMask { site: 7 });
        let released = resolve(&lanes).unwrap();
        assert_eq!((released.lanes, released.answers[1]), (1 << 1 | 1 << 9, 1 << 1 | 1 << 9));
    }

    #[test]
    fn shuffles_stay_in_their_segment() {
        let width8 = (32 - 8) << 8;
        assert_eq!(shuffle_source(9, 0, 1, width8), (8, true));
        assert_eq!(shuffle_source(8, 0, 1, width8), (8, false));
        assert_eq!(shuffle_source(14, 1, 1, width8 | 31), (15, true));
        assert_eq!(shuffle_source(15, 1, 1, width8 | 31), (15, false));
        assert_eq!(shuffle_source(12, 2, 4, width8 | 31), (8, true));
        assert_eq!(shuffle_source(13, 3, 2, width8 | 31), (10, true));
        assert_eq!(shuffle_source(31, 1, 1, 31), (31, false));
    }
}
