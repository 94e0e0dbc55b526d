//! Where device-visible memory lies: the same addresses in the program and in the device process.

/// First address of the arena. Neither Linux's own placement of programs, libraries, heap and stacks on x86-64 and AArch64 nor the shadow
/// memory of the sanitizers reaches it.
pub const ARENA_BASE: usize = 0x4000_0000_0000;

/// Bytes of address space of one region (only touched pages cost memory).
pub const REGION_BYTES: usize = 1 << 40;

/// Alignment of device allocations, as `cudaMalloc` promises it.
pub const DEVICE_ALIGN: usize = 256;

/// Pitch of `cudaMallocPitch` is a multiple of this.
pub const PITCH_ALIGN: usize = 512;

/// Streams that can exist at a time, the two default ones included.
pub const STREAMS: usize = 1024;

/// Events that can exist at a time.
pub const EVENTS: usize = 1 << 16;

/// Slot of the legacy default stream.
pub const LEGACY_STREAM: u32 = 0;

/// One region of the arena; each is backed by a memory file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Region {
    /// `cudaMalloc`: the host can't touch it.
    Device,
    /// `cudaMallocManaged`: both can, in [`Exclusive`](crate::settings::Access::Exclusive) mode in turns.
    Managed,
    /// `cudaMallocHost`, staging buffers, the pages of registered memory: both can.
    Pinned,
}

impl Region {
    /// All regions, in address order.
    pub const ALL: [Region; 3] = [Region::Device, Region::Managed, Region::Pinned];

    /// Position in [`Region::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// First address.
    pub fn base(self) -> usize {
        ARENA_BASE + self.index() * REGION_BYTES
    }

    /// The region that holds `address`, and the offset in it.
    pub fn of(address: usize) -> Option<(Region, usize)> {
        let offset = address.checked_sub(ARENA_BASE)?;
        let region = *Region::ALL.get(offset / REGION_BYTES)?;
        Some((region, offset % REGION_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn region_of_its_own_addresses() {
        for region in Region::ALL {
            assert_eq!(Region::of(region.base()), Some((region, 0)));
            assert_eq!(Region::of(region.base() + REGION_BYTES - 1), Some((region, REGION_BYTES - 1)));
        }
        assert_eq!(Region::of(ARENA_BASE - 1), None);
        assert_eq!(Region::of(ARENA_BASE + 3 * REGION_BYTES), None);
    }
}
