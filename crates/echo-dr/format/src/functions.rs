//! Names of CUDA's functions: whether one says that it copies, sets, frees or maps memory. What does and isn't hooked must not be passed by.

/// Beginnings of names, without `cu` or `cuda`, of functions that have to do with memory and with no block that a program could be given: of pools and
/// mappings themselves, of arrays, or they only ask for sizes. Graphs' sets write device memory when the graph is launched, as kernels do.
const HARMLESS: &[&str] = &[
    "MemGetInfo",
    "MemGetAccess",
    "MemGetAllocation",
    "MemGetDefaultMemPool",
    "MemGetMemPool",
    "MemSetMemPool",
    "MemSetAccess",
    "MemAddress",
    "MemCreate",
    "MemRelease",
    "MemRetain",
    "MemMap",
    "MemUnmap",
    "MemExport",
    "MemImport",
    "MemPool",
    "MemcpyAtoA",
    "MemcpyArrayToArray",
    "Memcpy2DArrayToArray",
    "GraphAddMemset",
    "GraphMemset",
    "GraphExecMemset",
    "GraphMemcpyNodeGetParams",
    "GraphAddMemAlloc",
    "GraphAddMemFree",
    "GraphMemAlloc",
    "GraphMemFree",
    "MallocArray",
    "Malloc3DArray",
    "MallocMipmapped",
    "FreeArray",
    "FreeMipmapped",
];

/// The name is one of CUDA's and says that it copies, sets, frees or maps memory.
#[must_use]
pub fn concerns_memory(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("cuda").or_else(|| name.strip_prefix("cu")) else { return false };
    let does = rest.contains("Memcpy")
        || rest.contains("Memset")
        || ["Mem", "Malloc", "Free", "Host"].iter().any(|begin| rest.starts_with(begin));
    does && rest.starts_with(|first: char| first.is_ascii_uppercase())
        && !HARMLESS.iter().any(|begin| rest.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_sets_and_frees_are_told_from_the_rest() {
        for name in ["cudaMemcpyOfTomorrow", "cuMemcpyHtoD", "cuMemFree_v9", "cuGraphAddMemcpyNode_v7", "cudaHostThing"]
        {
            assert!(concerns_memory(name), "{name}");
        }
        for name in
            ["cuMemGetInfo_v2", "cuMemPoolCreate", "cuLaunchKernel", "customMemcpy", "cumem", "memcpy", "cudaFreeArray"]
        {
            assert!(!concerns_memory(name), "{name}");
        }
    }
}
