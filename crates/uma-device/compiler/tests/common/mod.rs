//! Compiles kernels with uma-clang++ and runs them in this process.

// Each test program uses its own part.
#![allow(dead_code)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, OnceLock};
use uma_exec::{Kernel, KernelFault, Launch, Module, Pool};

/// The compiler under test.
pub(crate) fn uma_clang() -> Command {
    Command::new(env!("CARGO_BIN_EXE_uma-clang"))
}

/// A file of tests/kernels.
pub(crate) fn kernel_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels").join(name)
}

/// Compiles source text (as `kernel.cu` in a folder of its own) with the given options.
pub(crate) fn compile_text(source: &str, options: &[&str]) -> (tempfile::TempDir, Output) {
    let folder = tempfile::tempdir().expect("temporary folder");
    std::fs::write(folder.path().join("kernel.cu"), source).expect("written source");
    let output = uma_clang()
        .current_dir(folder.path())
        .args(["--image-only", "-O2", "kernel.cu", "-o", "kernel.img"])
        .args(options)
        .output()
        .expect("uma-clang runs");
    (folder, output)
}

/// The image of a file of tests/kernels, compiled once a test program.
fn image_of(name: &str, options: &[&str]) -> Arc<Vec<u8>> {
    type Images = Mutex<HashMap<String, Arc<OnceLock<Arc<Vec<u8>>>>>>;
    static IMAGES: OnceLock<Images> = OnceLock::new();
    let key = format!("{name} {options:?}");
    let image = IMAGES.get_or_init(Images::default).lock().unwrap().entry(key).or_default().clone();
    let compile = || {
        let folder = tempfile::tempdir().expect("temporary folder");
        let image = folder.path().join("kernels.img");
        let output = uma_clang()
            .arg("--image-only")
            .arg(kernel_file(name))
            .args(options)
            .arg("-o")
            .arg(&image)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Arc::new(std::fs::read(image).expect("an image"))
    };
    image.get_or_init(compile).clone()
}

/// A loaded module with its device globals, and a pool to run it.
pub(crate) struct Device {
    pub(crate) module: Module,
    pool: Pool,
    printed: Arc<Mutex<Vec<u8>>>,
    globals: Vec<(String, Vec<u128>)>,
}

impl Device {
    /// Compiles a file of tests/kernels at `-O2`.
    pub(crate) fn compile(name: &str) -> Device {
        Device::compile_with(name, &["-O2"])
    }

    pub(crate) fn compile_with(name: &str, options: &[&str]) -> Device {
        Device::load(&image_of(name, options))
    }

    pub(crate) fn load(image: &[u8]) -> Device {
        // SAFETY: the compiler made the image.
        let module = unsafe { Module::load(image) }.expect("loadable image");
        let printed = Arc::new(Mutex::new(Vec::new()));
        let sink = printed.clone();
        let pool = Pool::new(2, move |text: &[u8]| sink.lock().unwrap().extend_from_slice(text)).expect("a pool");
        let mut globals = Vec::new();
        for global in module.metadata().globals.clone() {
            assert!(global.align <= 16);
            let mut memory = vec![0u128; (global.size as usize).div_ceil(16)];
            // SAFETY: the memory has size and alignment of the global, and lives as long as the module.
            unsafe { module.place_global(&global, memory.as_mut_ptr().cast()) }.expect("placed global");
            globals.push((global.name, memory));
        }
        Device { module, pool, printed, globals }
    }

    /// The kernel of this name, or whose mangled name holds it.
    pub(crate) fn kernel(&self, name: &str) -> Kernel {
        if let Some(kernel) = self.module.kernel(name) {
            return kernel;
        }
        let all = &self.module.metadata().kernels;
        let found: Vec<_> = all.iter().filter(|kernel| kernel.name.contains(name)).collect();
        let [kernel] = found[..] else { panic!("{} kernels are named {name}: {all:?}", found.len()) };
        self.module.kernel(&kernel.name).expect("a kernel of the metadata")
    }

    pub(crate) fn launch(
        &self,
        name: &str,
        grid: impl Dim,
        block: impl Dim,
        params: Params,
    ) -> Result<(), KernelFault> {
        self.launch_with(name, grid, block, 0, params)
    }

    pub(crate) fn launch_with(
        &self,
        name: &str,
        grid: impl Dim,
        block: impl Dim,
        dynamic_shared: u32,
        params: Params,
    ) -> Result<(), KernelFault> {
        let kernel = self.kernel(name);
        assert_eq!(params.0.len(), kernel.info().packed_len(), "parameters of {name}");
        let launch = Launch { kernel, params: &params.0, grid: grid.dim(), block: block.dim(), dynamic_shared };
        // SAFETY: the tests pass what their kernels take.
        unsafe { self.pool.launch(&launch) }
    }

    /// What kernels have printed so far.
    pub(crate) fn printed(&self) -> String {
        String::from_utf8(self.printed.lock().unwrap().clone()).expect("text")
    }

    /// The memory of a device global whose mangled name holds `name`.
    pub(crate) fn global(&mut self, name: &str) -> &mut [u8] {
        let (_, memory) = self.globals.iter_mut().find(|(n, _)| n.contains(name)).expect("a global");
        // SAFETY: plain numbers are bytes too.
        unsafe { std::slice::from_raw_parts_mut(memory.as_mut_ptr().cast(), memory.len() * 16) }
    }
}

/// One to three dimensions.
pub(crate) trait Dim {
    fn dim(self) -> [u32; 3];
}

impl Dim for u32 {
    fn dim(self) -> [u32; 3] {
        [self, 1, 1]
    }
}

impl Dim for [u32; 3] {
    fn dim(self) -> [u32; 3] {
        self
    }
}

/// Packed kernel parameters.
#[derive(Default)]
pub(crate) struct Params(Vec<u8>);

impl Params {
    pub(crate) fn new() -> Params {
        Params::default()
    }

    /// Appends a value at its alignment.
    pub(crate) fn value<T: Copy>(mut self, value: T) -> Params {
        self.0.resize(self.0.len().next_multiple_of(align_of::<T>()), 0);
        // SAFETY: the tests pass numbers, pointers and structures without padding.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const value).cast::<u8>(), size_of::<T>()) };
        self.0.extend_from_slice(bytes);
        self
    }

    /// Appends the address of a slice.
    pub(crate) fn slice<T>(self, slice: &[T]) -> Params {
        self.value(slice.as_ptr())
    }

    /// Appends the address of a slice that the kernel writes.
    pub(crate) fn out<T>(self, slice: &mut [T]) -> Params {
        self.value(slice.as_mut_ptr())
    }
}

/// A source of fresh inputs; the seed is shown when the test fails.
pub(crate) fn random() -> fastrand::Rng {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    fastrand::Rng::with_seed(seed)
}

pub(crate) fn floats(rng: &mut fastrand::Rng, count: usize, low: f32, high: f32) -> Vec<f32> {
    (0..count).map(|_| low + rng.f32() * (high - low)).collect()
}

pub(crate) fn ints(rng: &mut fastrand::Rng, count: usize, range: std::ops::Range<i32>) -> Vec<i32> {
    (0..count).map(|_| rng.i32(range.clone())).collect()
}
