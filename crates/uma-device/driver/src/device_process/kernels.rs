//! Loaded modules and the launch of their kernels.

use crate::command::Launch;
use crate::error::CuError;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use uma_exec::{Kernel, KernelFault, Module, Pool};

/// Text that kernels printed and that the program has not got yet.
type Text = Arc<Mutex<Vec<u8>>>;

/// The modules of a program.
pub(super) struct Kernels {
    /// Started by the first launch: a program that only copies needs no threads.
    pool: Option<Pool>,
    modules: HashMap<u32, Vec<Kernel>>,
    text: Text,
    parameters: Vec<Aligned>,
}

/// Bytes of parameters, aligned for any type.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Aligned([u64; 8]);

impl Kernels {
    /// No modules.
    pub(super) fn new() -> Kernels {
        Kernels { pool: None, modules: HashMap::new(), text: Text::default(), parameters: Vec::new() }
    }

    /// Loads an image and puts its globals at `globals`.
    ///
    /// # Safety
    /// `image` comes from the kernel compiler. The addresses are memory of this process that fits the globals.
    pub(super) unsafe fn load(&mut self, number: u32, image: &[u8], globals: &[u64]) -> Result<(), String> {
        // SAFETY: the caller vouches for the image.
        let module = unsafe { Module::load(image) }.map_err(|error| error.to_string())?;
        if module.metadata().globals.len() != globals.len() {
            return Err(format!("{} globals have {} addresses", module.metadata().globals.len(), globals.len()));
        }
        for (global, address) in module.metadata().globals.iter().zip(globals) {
            // SAFETY: the caller vouches for the addresses; no kernel of the module has run yet.
            unsafe { module.place_global(global, *address as *mut u8) }.map_err(|error| error.to_string())?;
        }
        let names = module.metadata().kernels.iter().map(|kernel| kernel.name.clone());
        let kernels: Option<Vec<Kernel>> = names.map(|name| module.kernel(&name)).collect();
        self.modules.insert(number, kernels.ok_or("the image has two kernels of one name")?);
        Ok(())
    }

    /// Runs a kernel to its end.
    ///
    /// # Safety
    /// The parameters are what the kernel takes.
    pub(super) unsafe fn launch(&mut self, launch: &Launch) -> Result<(), CuError> {
        let kernel = self.modules.get(&launch.module).and_then(|kernels| kernels.get(launch.kernel as usize));
        let kernel = kernel.ok_or(CuError::INVALID_HANDLE)?.clone();
        let pool = match &mut self.pool {
            Some(pool) => pool,
            empty => {
                let text = Arc::clone(&self.text);
                let sink = move |bytes: &[u8]| text.lock().unwrap_or_else(PoisonError::into_inner).extend(bytes);
                let pool = Pool::with_all_cores(sink).map_err(|error| {
                    eprintln!("uma-device: no threads for kernels: {error}");
                    CuError::LAUNCH_OUT_OF_RESOURCES
                })?;
                empty.insert(pool)
            }
        };
        self.parameters.clear();
        let lines = launch.parameters.chunks(8).map(|words| {
            let mut line = [0; 8];
            line[..words.len()].copy_from_slice(words);
            Aligned(line)
        });
        self.parameters.extend(lines);
        // SAFETY: `parameters` holds at least as many words as the launch, which are plain bytes.
        let params =
            unsafe { std::slice::from_raw_parts(self.parameters.as_ptr().cast::<u8>(), launch.parameters.len() * 8) };
        let name = kernel.clone();
        super::faults::set_kernel(Some(&name.info().name));
        let request = uma_exec::Launch {
            kernel,
            params,
            grid: launch.grid,
            block: launch.block,
            dynamic_shared: launch.dynamic_shared,
        };
        // SAFETY: the caller vouches for the parameters; the globals were placed when the module was loaded.
        let result = unsafe { pool.launch(&request) };
        super::faults::set_kernel(None);
        result.map_err(|fault| {
            eprintln!("uma-device: {fault}");
            match fault {
                KernelFault::Assert { .. } => CuError::ASSERT,
                KernelFault::Configuration { .. } => CuError::INVALID_VALUE,
                KernelFault::NoStack { .. } => CuError::LAUNCH_OUT_OF_RESOURCES,
                KernelFault::Trap { .. } | KernelFault::Deadlock { .. } | KernelFault::LaneNotInMask { .. } => {
                    CuError::LAUNCH_FAILED
                }
            }
        })
    }

    /// Takes what kernels have printed.
    pub(super) fn take_text(&mut self) -> Vec<u8> {
        std::mem::take(&mut *self.text.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
