//! Makes an image from a device module: retarget, optimise, link, and put the header before it.

use crate::codegen::Target;
use crate::ir::{self, Module, Type};
use crate::retarget::{RetargetError, retarget};
use crate::thread_loop;
use crate::toolchain::Toolchain;
use std::path::{Path, PathBuf};
use std::process::Command;
use uma_abi::{IMAGE_MAGIC, ImageHeader, ImageMetadata, KernelInfo, METADATA_SECTION};

/// How an image is made.
#[derive(Default)]
pub(crate) struct ImageOptions {
    /// The CPU, as `-march` names it; `None` is this machine's.
    pub(crate) cpu: Option<String>,
    /// Keep debug information.
    pub(crate) debug: bool,
    /// Where to keep the IR of each step: a path to which `.retargeted.ll` and the like is appended.
    pub(crate) save_ir: Option<PathBuf>,
}

/// The image of a device module, given as bitcode.
pub(crate) fn build(bitcode: &[u8], tools: &Toolchain, options: &ImageOptions) -> Result<Vec<u8>, RetargetError> {
    let target = Target::new(options.cpu.as_deref())?;
    let module = Module::parse(bitcode, "device")?;
    let save = |step: &str| match &options.save_ir {
        Some(base) => module.save(&PathBuf::from(format!("{}.{step}.ll", base.display()))),
        None => Ok(()),
    };
    save("device")?;
    let (kernels, globals) = retarget(&module, &target)?;
    if !options.debug {
        module.strip_debug_info();
    }
    save("retargeted")?;
    target.run_passes(&module, thread_loop::PREPARE)?;
    let kernels = kernels
        .iter()
        .map(|kernel| KernelInfo {
            name: kernel.name.clone(),
            symbol: thread_loop::add_entry(&module, &target, kernel),
            params: kernel.params.clone(),
            static_shared: kernel.static_shared as u32,
            mode: kernel.mode,
            max_threads: kernel.max_threads,
        })
        .collect();
    add_metadata(&module, &ImageMetadata { kernels, globals })?;
    module.verify().map_err(|problem| format!("the kernel entries are broken: {problem}"))?;
    save("entries")?;
    target.run_passes(&module, "default<O3>")?;
    save("optimized")?;
    Ok(with_header(&link(&module, &target, tools)?))
}

fn add_metadata(module: &Module, metadata: &ImageMetadata) -> Result<(), String> {
    let json = serde_json::to_vec(metadata).map_err(|error| error.to_string())?;
    let global = module.add_global("uma.metadata", Type::int(8).array(json.len() as u64));
    global.set_initializer(ir::bytes(&json));
    global.set_global_constant(true);
    global.set_section(METADATA_SECTION);
    global.set_exported();
    Ok(())
}

fn link(module: &Module, target: &Target, tools: &Toolchain) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("temporary files: {error}");
    let folder = tempfile::tempdir().map_err(failed)?;
    let (object, shared) = (folder.path().join("kernels.o"), folder.path().join("kernels.so"));
    target.emit_object(module, &object)?;
    run(Command::new(&tools.clang)
        .args(["-shared", "-fuse-ld=lld", "-nostartfiles", "-Wl,-z,defs", "-Wl,-Bsymbolic", "-Wl,--build-id=none"])
        .arg(&object)
        .arg("-o")
        .arg(&shared)
        .arg("-lm"))?;
    std::fs::read(&shared).map_err(failed)
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("the image does not link: {}", String::from_utf8_lossy(&output.stderr)))
}

fn with_header(elf: &[u8]) -> Vec<u8> {
    let mut image = Vec::with_capacity(size_of::<ImageHeader>() + elf.len());
    image.extend(IMAGE_MAGIC);
    image.extend((elf.len() as u64).to_le_bytes());
    image.extend(elf);
    image
}

/// Writes an image.
pub(crate) fn write(image: &[u8], path: &Path) -> Result<(), String> {
    std::fs::write(path, image).map_err(|error| format!("{}: {error}", path.display()))
}
