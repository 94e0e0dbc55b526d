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
    /// The machine, as `--target` names it; `None` is this one.
    pub(crate) triple: Option<String>,
    /// Keep debug information.
    pub(crate) debug: bool,
    /// Where to keep the IR of each step: a path to which `.retargeted.ll` and the like is appended.
    pub(crate) save_ir: Option<PathBuf>,
}

/// The image of a device module, given as bitcode.
pub(crate) fn build(bitcode: &[u8], tools: &Toolchain, options: &ImageOptions) -> Result<Vec<u8>, RetargetError> {
    let target = Target::new(options.triple.as_deref(), options.cpu.as_deref())?;
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
        .arg(format!("--target={}", target.triple()))
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

#[cfg(test)]
mod tests {
    use super::{ImageOptions, build};
    use crate::toolchain::Toolchain;
    use std::path::{Path, PathBuf};

    fn tools() -> Toolchain {
        let clang = Path::new(env!("UMA_LLVM_BINDIR")).join("clang++");
        Toolchain { clang, cuda: PathBuf::new(), verbose: false }
    }

    /// What a pass of the device half may leave in the module for others to read.
    const WITH_RECORD: &str = r#"
        target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
        target triple = "nvptx64-nvidia-cuda"
        @__echo_effects_k = internal constant [7 x i8] c"record\00", section "echo"
        @llvm.used = appending global [1 x ptr] [ptr @__echo_effects_k], section "llvm.metadata"
        define ptx_kernel void @k(ptr %p) { store i32 1, ptr %p ret void }
    "#;

    #[test]
    fn records_of_other_passes_stay_as_they_are() {
        let image = build(WITH_RECORD.as_bytes(), &tools(), &ImageOptions::default()).unwrap();
        let elf = &image[16..];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image.so");
        std::fs::write(&path, elf).unwrap();
        // SAFETY: the image was just made; its only constructor is none.
        let library = unsafe { libloading::Library::new(&path) }.unwrap();
        // SAFETY: the module above says that the symbol has seven bytes.
        let record = unsafe { **library.get::<*const [u8; 7]>(b"__echo_effects_k").unwrap() };
        assert_eq!(&record, b"record\0");
        assert!(!String::from_utf8_lossy(elf).contains("uma.pointer.__echo"));
    }

    #[test]
    fn a_module_without_kernels_is_an_empty_image() {
        let text = "target triple = \"nvptx64-nvidia-cuda\"\ndefine void @unused() { ret void }";
        assert!(build(text.as_bytes(), &tools(), &ImageOptions::default()).is_ok());
    }

    #[test]
    fn a_broken_module_is_an_error() {
        let error = build(b"no IR", &tools(), &ImageOptions::default()).unwrap_err();
        assert!(error.to_string().starts_with("error: the kernel compiler failed: "), "{error}");
    }
}
