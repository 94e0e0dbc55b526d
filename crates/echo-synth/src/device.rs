//! The kernels of a module with CUDA: their launch stubs, as clang writes them, the constructor that registers them, and the embedded
//! device half, which is an ELF header and the effects record that the plugin would have put in it.

use std::fmt::Write;

use super::function::{Function, Metadata};

/// A kernel with a pointer and an integer as its parameters.
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    /// What it does with the pointer; `None`: it has no record.
    effect: Option<(bool, bool)>,
}

/// Reads and writes.
pub(crate) const CHANGE: Kernel = Kernel { name: "change", effect: Some((true, true)) };
/// Only reads.
pub(crate) const LOOK: Kernel = Kernel { name: "look", effect: Some((true, false)) };
/// Only writes.
pub(crate) const MAKE: Kernel = Kernel { name: "make", effect: Some((false, true)) };
/// Nothing is known of it.
pub(crate) const OTHER: Kernel = Kernel { name: "other", effect: None };

const KERNELS: [Kernel; 4] = [CHANGE, LOOK, MAKE, OTHER];

const DECLARATIONS: &str = r#"%struct.dim3 = type { i32, i32, i32 }
declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @cudaMalloc(ptr, i64)
declare i32 @cudaFree(ptr)
declare i32 @cudaMemcpy(ptr, ptr, i64, i32)
declare i32 @cudaMemcpyAsync(ptr, ptr, i64, i32, ptr)
declare i32 @cudaDeviceSynchronize()
declare i32 @cudaStreamCreate(ptr)
declare i32 @cudaStreamSynchronize(ptr)
declare i32 @cudaStreamDestroy(ptr)
declare i32 @cudaLaunchKernel(ptr, i64, i32, i64, i32, ptr, i64, ptr)
declare i32 @__cudaPushCallConfiguration(i64, i32, i64, i32, i64, ptr)
declare i32 @__cudaPopCallConfiguration(ptr, ptr, ptr, ptr)
declare i32 @__cudaRegisterFunction(ptr, ptr, ptr, ptr, i32, ptr, ptr, ptr, ptr, ptr)
declare ptr @__cudaRegisterFatBinary(ptr)
"#;

/// All that a module with CUDA has besides the functions that use it.
pub(crate) fn module_text(metadata: &mut Metadata, instructions: &mut usize) -> String {
    let mut text = DECLARATIONS.to_owned();
    let mut add = |written: super::function::Written| {
        *instructions += written.instructions;
        text += &written.text;
    };
    for kernel in &KERNELS {
        add(stub(kernel, metadata));
    }
    add(check(metadata));
    add(constructor(metadata));
    text += &names();
    text += &embedded();
    text
}

fn stub(kernel: &Kernel, metadata: &mut Metadata) -> super::function::Written {
    let name = kernel.name;
    let head = format!("define void @__device_stub__{name}(ptr %data, i32 %count)");
    let mut f = Function::with_head(name, head, metadata);
    let (data, count) = (f.variable("ptr"), f.variable("i32"));
    let (grid, block) = (f.variable("%struct.dim3"), f.variable("%struct.dim3"));
    let (shared, stream, arguments) = (f.variable("i64"), f.variable("ptr"), f.variable("[2 x ptr]"));
    f.effect(&format!("store ptr %data, ptr {data}"));
    f.effect(&format!("store i32 %count, ptr {count}"));
    f.effect(&format!("store ptr {data}, ptr {arguments}"));
    let second = f.value(&format!("getelementptr ptr, ptr {arguments}, i32 1"));
    f.effect(&format!("store ptr {count}, ptr {second}"));
    f.value(&format!("call i32 @__cudaPopCallConfiguration(ptr {grid}, ptr {block}, ptr {shared}, ptr {stream})"));
    let shared = f.value(&format!("load i64, ptr {shared}"));
    let stream = f.value(&format!("load ptr, ptr {stream}"));
    let mut sizes = Vec::new();
    for place in [grid, block] {
        let low = f.value(&format!("load i64, ptr {place}"));
        let rest = f.value(&format!("getelementptr inbounds i8, ptr {place}, i64 8"));
        let high = f.value(&format!("load i32, ptr {rest}"));
        sizes.push(format!("i64 {low}, i32 {high}"));
    }
    f.value(&format!(
        "call i32 @cudaLaunchKernel(ptr @__device_stub__{name}, {}, ptr {arguments}, i64 {shared}, ptr {stream})",
        sizes.join(", ")
    ));
    f.finish("ret void")
}

/// `static void check(cudaError_t error, int line) { if (error) { printf(…); exit(1); } }`
fn check(metadata: &mut Metadata) -> super::function::Written {
    let mut f = Function::with_head("check", "define internal void @check(i32 %error, i32 %line)".into(), metadata);
    let (bad, good) = (f.name(), f.name());
    let failed = f.value("icmp ne i32 %error, 0");
    f.branch(&failed, &bad, &good);
    f.start(&bad);
    f.value("call i32 (ptr, ...) @printf(ptr @format, i32 %error, i32 %line)");
    f.effect("call void @exit(i32 1)");
    f.effect("unreachable");
    f.start(&good);
    f.finish("ret void")
}

fn constructor(metadata: &mut Metadata) -> super::function::Written {
    let mut f = Function::with_head("ctor", "define internal void @__cuda_module_ctor()".into(), metadata);
    let handle = f.value("call ptr @__cudaRegisterFatBinary(ptr @__cuda_fatbin_wrapper)");
    for Kernel { name, .. } in &KERNELS {
        f.value(&format!(
            "call i32 @__cudaRegisterFunction(ptr {handle}, ptr @__device_stub__{name}, ptr @name.{name}, ptr @name.{name}, i32 -1, ptr null, ptr null, ptr null, ptr null, ptr null)"
        ));
    }
    f.finish("ret void")
}

fn names() -> String {
    let mut text = String::new();
    for Kernel { name, .. } in &KERNELS {
        let _ = writeln!(text, "@name.{name} = private constant [{} x i8] c\"{name}\\00\"", name.len() + 1);
    }
    text
}

/// The device half, where the host half has it.
fn embedded() -> String {
    let image = [b"\x7fELF".to_vec(), record()].concat();
    let size = image.len();
    let mut bytes = String::new();
    for byte in image {
        let _ = write!(bytes, "\\{byte:02X}");
    }
    format!(
        "@device_code = private constant [{size} x i8] c\"{bytes}\", section \".nv_fatbin\"\n\
         @__cuda_fatbin_wrapper = internal constant {{ i32, i32, ptr, ptr }} {{ i32 1180844977, i32 1, ptr @device_code, ptr null }}, \
         section \".nvFatBinSegment\"\n\
         @llvm.global_ctors = appending global [1 x {{ i32, ptr, ptr }}] [{{ i32, ptr, ptr }} {{ i32 65535, ptr @__cuda_module_ctor, ptr null }}]\n"
    )
}

/// The version of the record that [`record`] writes.
const RECORD_VERSION: u32 = 2;

/// The effects record of the kernels that have one (its format is that of `src/effects/record.rs`; a test reads it back with that).
fn record() -> Vec<u8> {
    let kernels = KERNELS.iter().filter_map(|kernel| {
        let (reads, writes) = kernel.effect?;
        let name = kernel.name;
        Some(format!(
            r#""{name}":{{"params":[{{"reads":{reads},"writes":{writes},"captures":false,"writes_all":null}},null],"touches_other_memory":false}}"#
        ))
    });
    let payload = format!(r#"{{"kernels":{{{}}}}}"#, kernels.collect::<Vec<_>>().join(","));
    let sum = payload
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let mut bytes = b"\x7fECHO-SR-EFFECT\0".to_vec();
    bytes.extend(RECORD_VERSION.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(sum.to_le_bytes());
    bytes.extend(payload.bytes());
    bytes
}
