//! Where the time of the passes goes: `lower` and `analyse` on the functions of generated modules, in this process. What the passes cost
//! within `opt -O2` is `cargo xtask bench`; docs/performance.md has both.
//!
//! `cargo bench --bench passes`; with `-- --save-baseline NAME` and `-- --baseline NAME` before and after a change.

#[cfg(any(feature = "llvm19", feature = "llvm22"))]
fn main() {
    bench::run();
}

#[cfg(not(any(feature = "llvm19", feature = "llvm22")))]
fn main() {
    eprintln!("the passes are built with LLVM only: choose a feature, llvm22 or llvm19");
}

#[cfg(any(feature = "llvm19", feature = "llvm22"))]
mod bench {
    use std::hint::black_box;

    use criterion::{BenchmarkId, Criterion, Throughput};
    use echo_sr::analysis::{Options, analyse};
    use echo_sr::effects::host;
    use echo_sr::ir::Module;
    use echo_sr::lower::{Context, Lowered, has_device_allocation, lower_function};
    use echo_sr::pass::prepare;
    use echo_synth::{Request, Shape};
    use inkwell::llvm_sys::error::LLVMGetErrorMessage;
    use inkwell::llvm_sys::transforms::pass_builder::{
        LLVMCreatePassBuilderOptions, LLVMDisposePassBuilderOptions, LLVMRunPasses,
    };

    const SIZES: [usize; 2] = [10_000, 100_000];
    const SHAPES: [(&str, Shape); 2] = [("many", Shape::ManyFunctions), ("huge", Shape::FewFunctions)];
    /// What LLVM does to the functions before `echo-sr` sees them, as far as that matters to it.
    const BEFORE: &std::ffi::CStr = c"always-inline,function(sroa,simplifycfg,instsimplify)";

    pub(crate) fn run() {
        let mut criterion = Criterion::default().sample_size(10).configure_from_args();
        for (name, shape) in SHAPES {
            for instructions in SIZES {
                let pairs = instructions / 1_000;
                let made = echo_synth::module(&Request { instructions, pairs, shape, seed: 1, locations: false });
                with_module(&made.text, |module| {
                    let effects = host::effects_of_module(module);
                    let context = Context::new(module, effects);
                    let lower = || -> Vec<Lowered<'_>> {
                        let functions = module.functions().filter(|function| !function.is_declaration());
                        let cuda = functions.filter(|function| has_device_allocation(*function));
                        cuda.filter_map(|function| lower_function(&context, function)).collect()
                    };
                    let lowered = lower();
                    let options = Options::default();
                    for (part, work) in [
                        (
                            "context",
                            &(|| drop(black_box(Context::new(module, host::effects_of_module(module))))) as &dyn Fn(),
                        ),
                        ("lower", &|| drop(black_box(lower()))),
                        ("analyse", &|| {
                            for lowered in &lowered {
                                black_box(analyse(&lowered.program, &options));
                            }
                        }),
                    ] {
                        let mut group = criterion.benchmark_group(format!("{part}/{name}"));
                        group.throughput(Throughput::Elements(made.instructions as u64));
                        group.bench_function(BenchmarkId::from_parameter(instructions), |bencher| bencher.iter(work));
                        group.finish();
                    }
                });
            }
        }
        criterion.final_summary();
    }

    /// Parses a module, brings it to where `echo-sr` runs, and lends it.
    fn with_module(text: &str, use_it: impl FnOnce(Module<'_>)) {
        let context = inkwell::context::Context::create();
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        let buffer = inkwell::memory_buffer::MemoryBuffer::create_from_memory_range_copy(&bytes, "synthetic.ll");
        let module = context.create_module_from_ir(buffer).expect("the generator writes valid IR");
        // SAFETY: the module lives until the end of this function, and nobody else has it.
        let view = unsafe { Module::new(module.as_mut_ptr()) };
        prepare::run(view);
        // SAFETY: the module is valid, the names are a C string, no target is needed, and the options live as long as the call.
        unsafe {
            let options = LLVMCreatePassBuilderOptions();
            let error = LLVMRunPasses(module.as_mut_ptr(), BEFORE.as_ptr(), std::ptr::null_mut(), options);
            LLVMDisposePassBuilderOptions(options);
            assert!(error.is_null(), "{:?}", std::ffi::CStr::from_ptr(LLVMGetErrorMessage(error)));
        }
        use_it(view);
    }
}
