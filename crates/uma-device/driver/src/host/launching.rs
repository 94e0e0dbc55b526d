//! Loads modules when they are first used, and checks and queues launches.

use super::arena::{Allocation, Origin};
use super::engine::Engine;
use super::registry::{KernelEntry, Registry, registry};
use super::state::State;
use crate::command::{Command, Launch};
use crate::error::{CuError, Result};
use crate::settings::Link;
use crate::statistics;
use crate::sync_table::Memory;
use std::sync::Arc;

/// Largest grid, as on every GPU of the last ten years.
pub const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
/// Largest block by dimension.
pub const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];

/// How a kernel is launched.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    /// gridDim
    pub grid: [u32; 3],
    /// blockDim
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: usize,
}

/// Where a global of a module lies in device memory.
#[derive(Clone, Copy, Debug)]
pub struct Symbol {
    /// Its address.
    pub address: usize,
    /// Its size.
    pub bytes: usize,
    /// `__managed__`
    pub managed: bool,
}

/// The kernel with this handle, in a module that the device process has.
pub fn loaded_kernel(engine: &Engine, handle: usize) -> Result<Arc<KernelEntry>> {
    let mut registry = registry();
    let kernel = registry.kernel(handle)?;
    load_module(&mut registry, engine, kernel.module)?;
    Ok(kernel)
}

/// The global of this name, in a module that the device process has.
pub fn loaded_symbol(engine: &Engine, module: usize, name: &str) -> Result<Symbol> {
    let mut registry = registry();
    let number = registry.number(module)?;
    let position = registry.module(number)?.metadata.globals.iter().position(|global| global.name == name);
    let position = position.ok_or(CuError::NOT_FOUND)?;
    load_module(&mut registry, engine, number)?;
    let module = registry.module(number)?;
    let address = module.globals.as_ref().and_then(|globals| globals.get(position)).copied();
    let global = &module.metadata.globals[position];
    Ok(Symbol { address: address.ok_or(CuError::NOT_FOUND)?, bytes: global.size as usize, managed: global.managed })
}

/// Has the device process load a module, unless it has it, and gives the module's globals memory.
pub fn load_module(registry: &mut Registry, engine: &Engine, number: u32) -> Result<()> {
    let module = registry.module(number)?;
    if module.globals.is_some() {
        return Ok(());
    }
    let mut state = engine.lock();
    let mut globals: Vec<Allocation> = Vec::with_capacity(module.metadata.globals.len());
    let loaded = module.metadata.globals.iter().try_for_each(|global| {
        let memory = if global.managed { Memory::Managed } else { Memory::Device };
        let idle = state.coverage.is_idle();
        let allocation = state.arena.allocate(global.size as usize, memory, Origin::Global, idle)?;
        globals.push(allocation);
        if (allocation.base as u64).is_multiple_of(global.align.max(1)) { Ok(()) } else { Err(CuError::INVALID_IMAGE) }
    });
    let addresses: Vec<usize> = globals.iter().map(|allocation| allocation.base).collect();
    let loaded = loaded.and_then(|()| send_image(&mut state, engine, number, &module.image, &addresses));
    if let Err(error) = loaded {
        for allocation in globals {
            state.arena.forget(allocation.base);
            state.arena.release(&allocation);
        }
        return Err(error);
    }
    module.globals = Some(addresses);
    Ok(())
}

/// Takes a module away. Its globals are freed if no work is queued that may use them; else their memory stays in use until a reset.
pub fn unload_module(handle: usize) -> Result<()> {
    let module = registry().remove_module(handle)?;
    // A program that ends unloads its modules, and must not wait for the lock where nothing is to be freed.
    let Some(globals) = module.globals.filter(|globals| !globals.is_empty()) else { return Ok(()) };
    let Some(engine) = super::engine::engine_if_made() else { return Ok(()) };
    let mut state = engine.lock();
    let idle = state.is_all_done();
    for base in globals {
        let forgotten = state.arena.forget(base);
        if let Some(allocation) = forgotten.filter(|_| idle) {
            state.arena.release(&allocation);
        }
    }
    Ok(())
}

/// Has the device process load an image, which goes through device-visible memory.
fn send_image(state: &mut State, engine: &Engine, number: u32, image: &[u8], globals: &[usize]) -> Result<()> {
    state.device()?;
    let staged = state.arena.allocate(image.len(), Memory::Pinned, Origin::Staging, false)?;
    state.arena.forget(staged.base);
    let target = engine.regions.reach(staged.base) as *mut u8;
    // SAFETY: the block is ours and as long as the image.
    unsafe { std::ptr::copy_nonoverlapping(image.as_ptr(), target, image.len()) };
    let result = state.request(|request| Command::Load {
        request,
        module: number,
        image: staged.base,
        bytes: image.len(),
        globals: globals.iter().map(|address| *address as u64).collect(),
    });
    state.arena.release(&staged);
    result
}

/// Checks a configuration against the limits of the device and of the kernel.
pub fn check(kernel: &KernelEntry, configuration: &Configuration) -> Result<()> {
    let within = |value: [u32; 3], limit: [u32; 3]| (0..3).all(|d| value[d] >= 1 && value[d] <= limit[d]);
    let threads: u64 = configuration.block.iter().map(|n| u64::from(*n)).product();
    if !within(configuration.grid, MAX_GRID)
        || !within(configuration.block, MAX_BLOCK)
        || threads > u64::from(uma_exec::MAX_BLOCK_THREADS)
    {
        return Err(CuError::INVALID_VALUE);
    }
    if threads > u64::from(kernel.info.max_threads) {
        return Err(CuError::LAUNCH_OUT_OF_RESOURCES);
    }
    if configuration.dynamic_shared + kernel.info.static_shared as usize > uma_exec::MAX_SHARED_BYTES as usize {
        return Err(CuError::INVALID_VALUE);
    }
    if configuration.dynamic_shared > kernel.dynamic_limit() as usize {
        return Err(CuError::INVALID_VALUE);
    }
    Ok(())
}

/// Queues a launch. `parameters`: the packed block, in words.
pub fn launch(
    engine: &Engine,
    kernel: &KernelEntry,
    configuration: &Configuration,
    parameters: Vec<u64>,
    stream: (usize, bool),
) -> Result<()> {
    statistics::note_launch();
    let mut state = engine.lock();
    let stream = state.stream(stream.0, stream.1)?;
    let moves = engine.settings.link == Link::Discrete && state.arena.has_open_managed();
    let migrate = if moves { state.arena.managed_bytes() as u64 } else { 0 };
    let command = Command::Launch(Launch {
        module: kernel.module,
        kernel: kernel.index,
        grid: configuration.grid,
        block: configuration.block,
        dynamic_shared: configuration.dynamic_shared as u32,
        migrate,
        parameters,
    });
    state.enqueue(stream, command, None, true).map(|_| ())
}
