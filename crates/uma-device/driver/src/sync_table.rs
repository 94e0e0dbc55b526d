//! When a call that moves memory returns, and who moves the bytes: one row a case, as data. The driver's calls follow the runtime's rules.
//!
//! The rules are those of the CUDA Runtime API reference, section "API synchronization behavior" (named `ASB` below, numbered as in CUDA 12
//! and 13), and of the reference page of the call. What the rules leave open is decided for the strict side: a program that needs more than they promise should fail here.
//!
//! One freedom is used: after a synchronous copy from pageable memory the last step to device memory *may* still be running (ASB, Memcpy,
//! Synchronous, 1). In the eager schedule the bytes are put in place at once, which is as fast as one copy can be; in the lazy and random
//! schedules they are staged, so that work which doesn't wait for the copy sees old bytes.
//!
//! The rules speak of host and device memory. For managed memory this device adds what programs rely on: a synchronous copy from pageable memory
//! into memory that the host can read, and a synchronous copy of managed memory that names no direction (`cuMemcpy`), are complete at return
//! ([`completes_for_host`]); the memset rule says the same of memsets.

/// What kind of memory an address is, as the rules tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Any memory of the program that CUDA does not know.
    Pageable,
    /// `cudaMallocHost`, `cudaHostAlloc`, `cudaHostRegister`.
    Pinned,
    /// `cudaMallocManaged`, `__managed__`.
    Managed,
    /// `cudaMalloc` and its kin, `__device__`, `__constant__`.
    Device,
}

/// One end of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Host memory that only the host reaches.
    Pageable,
    /// Host memory that the device reaches too.
    Pinned,
    /// Device memory.
    Device,
}

/// Who moves the bytes, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The device, in stream order.
    Device,
    /// The host puts the source aside at once; the device does the rest in stream order.
    Stage,
    /// As [`Method::Stage`], but the host first waits for the stream.
    WaitThenStage,
    /// The host itself, when the stream has reached the copy.
    HostTurn,
}

/// When the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// When the command is queued (and the source, if staged, is consumed).
    Queued,
    /// When the bytes are in place.
    Complete,
}

/// A row of [`COPIES`].
#[derive(Clone, Copy, Debug)]
pub struct CopyRule {
    /// `cudaMemcpy…Async`.
    pub asynchronous: bool,
    /// Source.
    pub from: Side,
    /// Target.
    pub to: Side,
    /// Who moves the bytes.
    pub method: Method,
    /// When the call returns.
    pub returns: Returns,
    /// Where the rule comes from.
    pub source: &'static str,
}

const fn row(
    asynchronous: bool,
    from: Side,
    to: Side,
    method: Method,
    returns: Returns,
    source: &'static str,
) -> CopyRule {
    CopyRule { asynchronous, from, to, method, returns, source }
}

const SYNC: bool = false;
const ASYNC: bool = true;

/// Copies of every shape (`cudaMemcpy`, `2D`, `3D`, `ToSymbol`, `FromSymbol`).
pub const COPIES: [CopyRule; 18] = {
    use Method::{HostTurn, Stage, WaitThenStage};
    use Returns::{Complete, Queued};
    use Side::{Device, Pageable, Pinned};
    [
        row(SYNC, Pageable, Device, WaitThenStage, Queued, "ASB, Memcpy, Synchronous, 1"),
        row(SYNC, Pinned, Device, Method::Device, Complete, "ASB, Memcpy, Synchronous, 2"),
        row(SYNC, Device, Pageable, HostTurn, Complete, "ASB, Memcpy, Synchronous, 3"),
        row(SYNC, Device, Pinned, Method::Device, Complete, "ASB, Memcpy, Synchronous, 3"),
        row(SYNC, Device, Device, Method::Device, Queued, "ASB, Memcpy, Synchronous, 4"),
        row(SYNC, Pageable, Pageable, HostTurn, Complete, "ASB, Memcpy, Synchronous, 5"),
        row(SYNC, Pageable, Pinned, HostTurn, Complete, "ASB, Memcpy, Synchronous, 5"),
        row(SYNC, Pinned, Pageable, HostTurn, Complete, "ASB, Memcpy, Synchronous, 5"),
        row(SYNC, Pinned, Pinned, HostTurn, Complete, "ASB, Memcpy, Synchronous, 5"),
        row(ASYNC, Pageable, Device, Stage, Queued, "ASB, Memcpy, Asynchronous, 3"),
        row(ASYNC, Pinned, Device, Method::Device, Queued, "ASB, Memcpy, Asynchronous, 4"),
        row(ASYNC, Device, Pageable, HostTurn, Complete, "ASB, Memcpy, Asynchronous, 1"),
        row(ASYNC, Device, Pinned, Method::Device, Queued, "ASB, Memcpy, Asynchronous, 4"),
        row(ASYNC, Device, Device, Method::Device, Queued, "ASB, Memcpy, Asynchronous, 4"),
        row(ASYNC, Pageable, Pageable, HostTurn, Complete, "ASB, Memcpy, Asynchronous, 2"),
        row(ASYNC, Pageable, Pinned, HostTurn, Complete, "ASB, Memcpy, Asynchronous, 2"),
        row(ASYNC, Pinned, Pageable, HostTurn, Complete, "ASB, Memcpy, Asynchronous, 2"),
        row(ASYNC, Pinned, Pinned, HostTurn, Complete, "ASB, Memcpy, Asynchronous, 2"),
    ]
};

/// The row of a copy. Every case has one (a test counts them).
pub fn copy_rule(asynchronous: bool, from: Side, to: Side) -> Option<&'static CopyRule> {
    COPIES.iter().find(|rule| rule.asynchronous == asynchronous && rule.from == from && rule.to == to)
}

/// Whether a synchronous copy is complete at return although its row says less, because the host sees its target, or the
/// call names no direction for managed memory.
pub fn completes_for_host(direction: Direction, method: Method, from: Memory, to: Memory) -> bool {
    match method {
        Method::WaitThenStage => to != Memory::Device,
        Method::Device => direction == Direction::UNSAID && (from == Memory::Managed || to == Memory::Managed),
        Method::Stage | Method::HostTurn => false,
    }
}

/// When a memset returns. `cudaMemset…`: ASB, Memset: asynchronous but for pinned and managed targets; `cudaMemset…Async`: always asynchronous.
pub fn memset_returns(asynchronous: bool, target: Memory) -> Returns {
    match (asynchronous, target) {
        (false, Memory::Pinned | Memory::Managed | Memory::Pageable) => Returns::Complete,
        (false, Memory::Device) | (true, _) => Returns::Queued,
    }
}

/// What a call says of one end of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Host memory.
    Host,
    /// Device memory.
    Device,
    /// Nothing: the address decides.
    Unsaid,
}

impl End {
    fn is_device(self, memory: Memory) -> bool {
        match self {
            End::Host => false,
            End::Device => true,
            End::Unsaid => matches!(memory, Memory::Device | Memory::Managed),
        }
    }
}

/// What a call says of both ends (`cudaMemcpyKind`, or the name of the driver's call).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direction {
    /// Of the source.
    pub from: End,
    /// Of the target.
    pub to: End,
}

impl Direction {
    /// `cuMemcpyHtoD`
    pub const HOST_TO_DEVICE: Direction = Direction { from: End::Host, to: End::Device };
    /// `cuMemcpyDtoH`
    pub const DEVICE_TO_HOST: Direction = Direction { from: End::Device, to: End::Host };
    /// `cuMemcpyDtoD`
    pub const DEVICE_TO_DEVICE: Direction = Direction { from: End::Device, to: End::Device };
    /// `cuMemcpy`
    pub const UNSAID: Direction = Direction { from: End::Unsaid, to: End::Unsaid };

    /// What the ends are for the rules; `None` when the memory is not what the call says.
    ///
    /// Pinned and managed memory can stand for either side. Where the address decides, managed memory is device memory.
    pub fn sides(self, from: Memory, to: Memory) -> Option<(Side, Side)> {
        Some((side(from, self.from.is_device(from))?, side(to, self.to.is_device(to))?))
    }
}

fn side(memory: Memory, as_device: bool) -> Option<Side> {
    match (memory, as_device) {
        (Memory::Pageable, false) => Some(Side::Pageable),
        (Memory::Pinned | Memory::Managed, false) => Some(Side::Pinned),
        (Memory::Device | Memory::Managed | Memory::Pinned, true) => Some(Side::Device),
        (Memory::Pageable, true) | (Memory::Device, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_one_row() {
        let sides = [Side::Pageable, Side::Pinned, Side::Device];
        for asynchronous in [false, true] {
            for from in sides {
                for to in sides {
                    let rows = COPIES.iter().filter(|r| r.asynchronous == asynchronous && r.from == from && r.to == to);
                    assert_eq!(rows.count(), 1, "{asynchronous} {from:?} {to:?}");
                }
            }
        }
    }

    #[test]
    fn pageable_memory_is_never_left_to_the_device() {
        for rule in &COPIES {
            if rule.from == Side::Pageable || rule.to == Side::Pageable {
                assert_ne!(rule.method, Method::Device, "{rule:?}");
            }
            // Nothing may write pageable memory after the call has returned.
            if rule.to == Side::Pageable {
                assert_eq!(rule.returns, Returns::Complete, "{rule:?}");
            }
        }
    }

    #[test]
    fn directions_must_fit_the_memory() {
        use Memory::{Device, Managed, Pageable, Pinned};
        let host_to_host = Direction { from: End::Host, to: End::Host };
        assert_eq!(Direction::HOST_TO_DEVICE.sides(Pageable, Pageable), None);
        assert_eq!(Direction::HOST_TO_DEVICE.sides(Device, Device), None);
        assert_eq!(Direction::DEVICE_TO_HOST.sides(Pageable, Pageable), None);
        assert_eq!(host_to_host.sides(Device, Pageable), None);
        assert_eq!(Direction::HOST_TO_DEVICE.sides(Pageable, Device), Some((Side::Pageable, Side::Device)));
        assert_eq!(Direction::HOST_TO_DEVICE.sides(Managed, Managed), Some((Side::Pinned, Side::Device)));
        assert_eq!(Direction::UNSAID.sides(Pinned, Managed), Some((Side::Pinned, Side::Device)));
        let half_said = Direction { from: End::Unsaid, to: End::Host };
        assert_eq!(half_said.sides(Device, Managed), Some((Side::Device, Side::Pinned)));
    }
}
