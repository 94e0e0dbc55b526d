//! What a plan was made for. A plan holds for one program with one argument list on one machine; anything else runs unchanged.

use serde::{Deserialize, Serialize};

use crate::reason::Refusal;
use crate::site::Hash64;

/// A file that was loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileIdentity {
    /// Where it was. Not compared: the same file may be reached by another name.
    pub path: String,
    /// The linker's build-id in hex; empty if the file has none.
    pub build_id: String,
    /// Size in bytes.
    pub bytes: u64,
    /// FNV-1a of the contents; of a file of more than 8 MiB, of its first and last 4 MiB (libraries have hundreds, and this is computed at each
    /// start of a program).
    pub hash: Hash64,
}

impl FileIdentity {
    fn is_same(&self, other: &Self) -> bool {
        self.build_id == other.build_id && self.bytes == other.bytes && self.hash == other.hash
    }
}

/// The device and what drives it, known once CUDA is in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceIdentity {
    /// As the driver names it.
    pub name: String,
    /// UUID in hex; empty if it has none.
    pub uuid: String,
    /// Compute capability, major and minor.
    pub compute: (u32, u32),
    /// Version of the driver, as `cuDriverGetVersion` says it.
    pub driver: u32,
    /// Version of the CUDA runtime, as `cudaRuntimeGetVersion` says it; absent in a program without one.
    pub runtime: Option<u32>,
    /// What decides which backends are possible.
    pub attributes: Attributes,
}

/// Attributes of the device (`cudaDeviceGetAttribute`), as [`echo_rt::DeviceFacts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attributes {
    /// One DRAM for host and device.
    pub integrated: bool,
    /// Managed memory exists.
    pub managed_memory: bool,
    /// The host may touch managed memory while the GPU works.
    pub concurrent_managed_access: bool,
    /// The GPU reaches all memory of the process.
    pub pageable_memory_access: bool,
    /// It does so without migrating.
    pub host_page_tables: bool,
    /// Mapped page-locked memory has one address for host and device.
    pub mapped_host_memory: bool,
}

impl From<Attributes> for echo_rt::DeviceFacts {
    fn from(from: Attributes) -> Self {
        Self {
            integrated: from.integrated,
            managed_memory: from.managed_memory,
            concurrent_managed_access: from.concurrent_managed_access,
            pageable_memory_access: from.pageable_memory_access,
            host_page_tables: from.host_page_tables,
            mapped_host_memory: from.mapped_host_memory,
        }
    }
}

/// The process, known when it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// The program.
    pub executable: FileIdentity,
    /// Shared libraries that are loaded at the start.
    pub libraries: Vec<FileIdentity>,
    /// Name of the machine.
    pub host: String,
    /// The argument list, without the program's name; what is no UTF-8 is replaced.
    pub arguments: Vec<String>,
}

/// Process and device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// The process.
    pub process: Process,
    /// The device; absent if the program never used CUDA, and then nothing is planned.
    pub device: Option<DeviceIdentity>,
}

impl Process {
    /// Why a plan made in this process must not be used in `now`. Libraries are compared where both processes have loaded one of that
    /// file name, since some are loaded late.
    ///
    /// # Errors
    /// The first difference.
    pub fn admits(&self, now: &Self) -> Result<(), Refusal> {
        if !self.executable.is_same(&now.executable) {
            return Err(Refusal::Executable);
        }
        if self.arguments != now.arguments {
            return Err(Refusal::Arguments);
        }
        if self.host != now.host {
            return Err(Refusal::Host { planned: self.host.clone(), found: now.host.clone() });
        }
        for planned in &self.libraries {
            let found = now.libraries.iter().find(|library| file_name(&library.path) == file_name(&planned.path));
            if found.is_some_and(|found| !found.is_same(planned)) {
                return Err(Refusal::Library { path: planned.path.clone() });
            }
        }
        Ok(())
    }
}

impl Context {
    /// Why a plan of this context must not be used on the device `now`.
    ///
    /// # Errors
    /// The first difference.
    pub fn admits_device(&self, now: &DeviceIdentity) -> Result<(), Refusal> {
        let Some(planned) = &self.device else {
            return Err(Refusal::Device { planned: "none".into(), found: now.name.clone() });
        };
        if planned.runtime != now.runtime || planned.driver != now.driver {
            return Err(Refusal::Runtime);
        }
        if planned != now {
            return Err(Refusal::Device { planned: planned.name.clone(), found: now.name.clone() });
        }
        Ok(())
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
