//! Which kinds of merged buffer are possible on a device, and why.

use echo_rt::{Backend, DeviceFacts, PairFacts, usable};
use serde::Serialize;

use super::Finding;
use crate::device::Device;
use crate::summary;

/// A backend on this device.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Possible {
    /// What users call it.
    pub(crate) name: &'static str,
    /// A pair may get it, possibly on a condition that `why` names.
    pub(crate) possible: bool,
    /// The attributes that decide.
    pub(crate) why: String,
}

/// The backends that merge.
pub(crate) fn possible(device: DeviceFacts) -> Vec<Possible> {
    let facts = |exclusive| PairFacts { mergeable: true, exclusive, synchronous_copies: true };
    [Backend::Managed, Backend::Prefetched, Backend::Mapped, Backend::System]
        .into_iter()
        .map(|backend| {
            let (always, exclusive) = (usable(backend, device, facts(false)), usable(backend, device, facts(true)));
            let reason = reason(backend, device);
            let why = match (always, exclusive) {
                (true, _) => format!("yes, {reason}"),
                (false, true) => format!(
                    "only for pairs that the host never touches while any GPU work is in flight, as validation finds out: {reason}"
                ),
                (false, false) => format!("no, {reason}"),
            };
            Possible { name: backend.name(), possible: exclusive, why }
        })
        .collect()
}

fn reason(backend: Backend, device: DeviceFacts) -> String {
    let state = |name: &str, value: bool| format!("{name} is {}", u8::from(value));
    match backend {
        Backend::Managed | Backend::Prefetched if !device.managed_memory => state("ManagedMemory", false),
        Backend::Managed | Backend::Prefetched => state("ConcurrentManagedAccess", device.concurrent_managed_access),
        Backend::Mapped => state("CanMapHostMemory and UnifiedAddressing", device.mapped_host_memory),
        _ => state("PageableMemoryAccess", device.pageable_memory_access),
    }
}

/// One line on the device.
pub(crate) fn describe(device: &Device) -> Finding {
    let value = |name: &str| device.attributes.iter().find(|(known, _)| *known == name).map_or(-1, |(_, value)| *value);
    let name = device.name.as_deref().unwrap_or("device 0");
    let what = format!(
        "{name}, compute capability {}.{}, CUDA {} (says {})",
        value("ComputeCapabilityMajor"),
        value("ComputeCapabilityMinor"),
        summary::cuda_version(device.version),
        device.asked
    );
    if device.facts().integrated {
        return Finding::ok("device", format!("{what}; host and device share one memory"));
    }
    Finding::note(
        "device",
        format!("{what}; it has memory of its own, so a merged buffer is not sure to be faster"),
        "calibration decides: `echo-dr tune -- PROGRAM`",
    )
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

    #[test]
    fn on_orin_managed_memory_has_a_condition_and_system_memory_is_out() {
        let backends = possible(ORIN);
        let of = |name| backends.iter().find(|backend| backend.name == name).unwrap();
        assert!(of("managed").possible && of("managed").why.contains("only for pairs"), "{backends:?}");
        assert!(!of("managed+prefetch").possible, "nothing is moved ahead where only one side may touch it");
        assert!(of("mapped").possible && of("mapped").why.starts_with("yes"));
        assert!(!of("system").possible && of("system").why.contains("PageableMemoryAccess is 0"));
    }

    #[test]
    fn where_the_device_has_nothing_nothing_is_possible() {
        assert!(possible(DeviceFacts::default()).iter().all(|backend| !backend.possible));
    }
}
