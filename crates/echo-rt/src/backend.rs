//! Which backend a pair gets.

/// What a merged buffer is made of. See the table in the crate's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Backend {
    /// `cudaMallocManaged`.
    Managed,
    /// `cudaMallocManaged`, and each upload or download that goes leaves a prefetch to where the data is needed next. For Echo-DR, which
    /// calibrates it; nothing chooses it without a measurement.
    Prefetched,
    /// Mapped page-locked memory; host and device use one address.
    Mapped,
    /// Aligned heap memory that the GPU reaches through the host's page tables.
    System,
    /// Two buffers, the host one page-locked; the copies stay.
    Pinned,
    /// Two buffers as the program had them; the copies stay.
    Separate,
}

impl Backend {
    /// What users call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Prefetched => "managed+prefetch",
            Self::Mapped => "mapped",
            Self::System => "system",
            Self::Pinned => "pinned",
            Self::Separate => "separate",
        }
    }

    /// Host and device share the bytes, so linking copies go.
    #[must_use]
    pub fn is_merged(self) -> bool {
        matches!(self, Self::Managed | Self::Prefetched | Self::Mapped | Self::System)
    }
}

/// What the device says of itself (attributes of `cudaDeviceGetAttribute`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceFacts {
    /// `cudaDevAttrIntegrated`: one DRAM.
    pub integrated: bool,
    /// `cudaDevAttrManagedMemory`.
    pub managed_memory: bool,
    /// `cudaDevAttrConcurrentManagedAccess`: the host may touch managed memory while the GPU works.
    pub concurrent_managed_access: bool,
    /// `cudaDevAttrPageableMemoryAccess`: the GPU reaches all memory of the process.
    pub pageable_memory_access: bool,
    /// `cudaDevAttrPageableMemoryAccessUsesHostPageTables`: it does so without migrating.
    pub host_page_tables: bool,
    /// `cudaDevAttrCanMapHostMemory` and `cudaDevAttrUnifiedAddressing`.
    pub mapped_host_memory: bool,
}

/// What the proof, or the plan, says of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairFacts {
    /// S1–S4 and C hold: the two buffers may be one.
    pub mergeable: bool,
    /// S5 holds: the host never touches the pair while GPU work may be in flight anywhere in the process.
    pub exclusive: bool,
    /// Every copy of the program between the two returns only when it is done. (An asynchronous copy of pageable memory may return staged, of
    /// page-locked memory it may not, so the program could overwrite a source that is still being read.)
    pub synchronous_copies: bool,
}

/// Whether `backend` keeps the program's meaning for this pair on this device.
#[must_use]
pub fn usable(backend: Backend, device: DeviceFacts, pair: PairFacts) -> bool {
    match backend {
        Backend::Managed => {
            pair.mergeable && device.managed_memory && (pair.exclusive || device.concurrent_managed_access)
        }
        // Where access is exclusive the driver refuses to prefetch.
        Backend::Prefetched => pair.mergeable && device.managed_memory && device.concurrent_managed_access,
        Backend::Mapped => pair.mergeable && device.mapped_host_memory,
        Backend::System => pair.mergeable && device.pageable_memory_access,
        Backend::Pinned => pair.synchronous_copies,
        Backend::Separate => true,
    }
}

/// The backend for a pair: the first usable one of `wanted` (a calibrated plan's preference), else the one that is known to pay without
/// measuring. Where memory is not shared nothing is known to pay, so the buffers stay separate.
#[must_use]
pub fn choose(device: DeviceFacts, pair: PairFacts, wanted: &[Backend]) -> Backend {
    let without_plan: &[Backend] = if device.host_page_tables {
        // Cached by both sides; managed memory is not cached by the GPU on some of these machines.
        &[Backend::System, Backend::Managed, Backend::Mapped]
    } else if device.integrated {
        &[Backend::Managed, Backend::Mapped]
    } else {
        &[]
    };
    let candidates = wanted.iter().chain(without_plan).copied();
    candidates.into_iter().find(|&backend| usable(backend, device, pair)).unwrap_or(Backend::Separate)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIN: DeviceFacts = DeviceFacts {
        integrated: true,
        managed_memory: true,
        concurrent_managed_access: false,
        pageable_memory_access: false,
        host_page_tables: false,
        mapped_host_memory: true,
    };
    const THOR: DeviceFacts =
        DeviceFacts { concurrent_managed_access: true, pageable_memory_access: true, host_page_tables: true, ..ORIN };
    const DISCRETE: DeviceFacts = DeviceFacts { integrated: false, concurrent_managed_access: true, ..ORIN };
    const PROVED: PairFacts = PairFacts { mergeable: true, exclusive: true, synchronous_copies: true };

    #[test]
    fn shared_dram_with_exclusive_access_gets_managed_memory_only_under_s5() {
        assert_eq!(choose(ORIN, PROVED, &[]), Backend::Managed);
        assert_eq!(choose(ORIN, PairFacts { exclusive: false, ..PROVED }, &[]), Backend::Mapped);
    }

    #[test]
    fn host_page_tables_get_system_memory() {
        assert_eq!(choose(THOR, PROVED, &[]), Backend::System);
        assert_eq!(choose(THOR, PairFacts { exclusive: false, ..PROVED }, &[]), Backend::System);
    }

    #[test]
    fn a_discrete_device_stays_separate_without_a_plan() {
        assert_eq!(choose(DISCRETE, PROVED, &[]), Backend::Separate);
        assert_eq!(choose(DISCRETE, PROVED, &[Backend::Mapped]), Backend::Mapped);
    }

    #[test]
    fn no_plan_makes_an_unusable_backend_used() {
        let all = [
            Backend::Managed,
            Backend::Prefetched,
            Backend::Mapped,
            Backend::System,
            Backend::Pinned,
            Backend::Separate,
        ];
        for device in [ORIN, THOR, DISCRETE, DeviceFacts::default()] {
            for bits in 0..8 {
                let pair =
                    PairFacts { mergeable: bits & 1 != 0, exclusive: bits & 2 != 0, synchronous_copies: bits & 4 != 0 };
                for wanted in all {
                    let chosen = choose(device, pair, &[wanted]);
                    assert!(usable(chosen, device, pair), "{chosen:?} on {device:?} for {pair:?}");
                    assert!(pair.mergeable || !chosen.is_merged(), "merged a pair that was not proved");
                    assert!(
                        chosen != Backend::Managed || pair.exclusive || device.concurrent_managed_access,
                        "managed memory against S5"
                    );
                    assert!(
                        chosen != Backend::Prefetched || device.concurrent_managed_access,
                        "the driver would refuse"
                    );
                    assert!(chosen != Backend::Pinned || pair.synchronous_copies);
                }
            }
        }
    }
}
