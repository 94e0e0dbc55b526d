//! Moves and sets bytes of device-visible memory, and makes that slow where a slow link is asked for.

use crate::command::{Element, Place, Shape};
use std::time::{Duration, Instant};

/// Bytes a second over the link of a discrete device: about what PCIe 3.0 x8 gives in practice.
const LINK_BYTES_PER_SECOND: f64 = 6.0e9;
/// What each transfer over that link costs at least.
const LINK_LATENCY: Duration = Duration::from_micros(8);

/// Calls `row` for each row of `shape`, with its offset at two places.
fn rows(to: Place, from: Place, shape: Shape, mut row: impl FnMut(usize, usize)) {
    for z in 0..shape.depth {
        for y in 0..shape.height {
            let at = |place: Place| place.address + z * place.slice + y * place.pitch;
            row(at(to), at(from));
        }
    }
}

/// Copies a box. Rows that follow each other without a gap are one copy.
///
/// # Safety
/// Both boxes are mapped in this process; what they hold may be changed by others only as the program's own races do.
pub unsafe fn copy(to: Place, from: Place, shape: Shape) {
    let (to, from, shape) = joined(to, from, shape);
    // SAFETY: each row lies in the boxes that the caller vouches for. They may overlap, so `copy` and not `copy_nonoverlapping`.
    rows(to, from, shape, |to, from| unsafe { std::ptr::copy(from as *const u8, to as *mut u8, shape.width) });
}

/// Sets each element of a box. What follows the last whole element of a row stays.
///
/// # Safety
/// As for [`copy`].
pub unsafe fn fill(to: Place, value: Element, shape: Shape) {
    let (to, _, shape) = joined(to, to, shape);
    let count = |size: usize| shape.width / size;
    rows(to, to, shape, |to, _| {
        // SAFETY: each row lies in the box that the caller vouches for; elements need not be aligned.
        unsafe {
            match value.bytes {
                1 => std::ptr::write_bytes(to as *mut u8, value.bits as u8, shape.width),
                2 => (0..count(2)).for_each(|at| (to as *mut u16).add(at).write_unaligned(value.bits as u16)),
                _ => (0..count(4)).for_each(|at| (to as *mut u32).add(at).write_unaligned(value.bits)),
            }
        }
    });
}

/// The same box with as few rows as possible.
fn joined(to: Place, from: Place, shape: Shape) -> (Place, Place, Shape) {
    let dense_rows = shape.height == 1 || (to.pitch == shape.width && from.pitch == shape.width);
    let slice = shape.width * shape.height;
    let dense_slices = shape.depth == 1 || (to.slice == slice && from.slice == slice);
    if dense_rows && dense_slices {
        return (to, from, Shape::line(slice * shape.depth));
    }
    (to, from, shape)
}

/// Waits until `bytes` that began to move at `start` would have crossed a slow link.
pub fn throttle(start: Instant, bytes: usize) {
    let needed = LINK_LATENCY + Duration::from_secs_f64(bytes as f64 / LINK_BYTES_PER_SECOND);
    if let Some(left) = needed.checked_sub(start.elapsed()) {
        std::thread::sleep(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_with_gaps() {
        let source: Vec<u8> = (0..120).collect();
        let mut target = vec![0u8; 200];
        let from = Place { address: source.as_ptr() as usize, pitch: 10, slice: 60 };
        let to = Place { address: target.as_mut_ptr() as usize, pitch: 20, slice: 100 };
        let shape = Shape { width: 7, height: 3, depth: 2 };
        // SAFETY: both boxes lie in the vectors.
        unsafe { copy(to, from, shape) };
        for z in 0..2 {
            for y in 0..5 {
                for x in 0..20 {
                    let inside = x < 7 && y < 3;
                    let expected = if inside { source[z * 60 + y * 10 + x] } else { 0 };
                    assert_eq!(target[z * 100 + y * 20 + x], expected, "{x} {y} {z}");
                }
            }
        }
        // SAFETY: as above.
        unsafe { fill(to, Element { bits: 9, bytes: 1 }, shape) };
        assert_eq!(target.iter().filter(|byte| **byte == 9).count(), 7 * 3 * 2);
        // SAFETY: as above; the rows are shorter than the box.
        unsafe { fill(to, Element { bits: 0x0201, bytes: 2 }, Shape { width: 6, ..shape }) };
        assert_eq!(target[..8], [1, 2, 1, 2, 1, 2, 9, target[7]]);
        // SAFETY: as above.
        unsafe { fill(to, Element { bits: 0x0706_0504, bytes: 4 }, Shape { width: 4, height: 1, depth: 1 }) };
        assert_eq!(target[..6], [4, 5, 6, 7, 1, 2]);
    }
}
