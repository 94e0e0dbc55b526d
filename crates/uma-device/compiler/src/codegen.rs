//! LLVM's optimiser and code generator for the CPU.

use crate::ir::{Module, Type};
use llvm_sys::error::{LLVMDisposeErrorMessage, LLVMGetErrorMessage};
use llvm_sys::target::*;
use llvm_sys::target_machine::*;
use llvm_sys::transforms::pass_builder::*;
use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::sync::Once;

/// Interleaved access groups move stores past later loads of the same thread where the loop is said to carry no dependence between
/// threads (`thread_loop` says so), which is wrong for a thread that reads what it wrote.
const LLVM_OPTIONS: [&CStr; 3] = [c"uma-clang++", c"-enable-interleaved-mem-accesses=false", c"-inline-threshold=1000"];

/// A CPU to compile for.
pub(crate) struct Target {
    machine: LLVMTargetMachineRef,
    data: LLVMTargetDataRef,
    triple: String,
}

impl Drop for Target {
    fn drop(&mut self) {
        // SAFETY: both are owned.
        unsafe {
            LLVMDisposeTargetData(self.data);
            LLVMDisposeTargetMachine(self.machine);
        }
    }
}

/// A message that LLVM allocated.
fn take(message: *mut c_char) -> String {
    if message.is_null() {
        return String::new();
    }
    // SAFETY: a C string that the caller owns.
    unsafe {
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        llvm_sys::core::LLVMDisposeMessage(message);
        text
    }
}

fn initialize() {
    static ONCE: Once = Once::new();
    // SAFETY: initialisers have no precondition but to run once; the options are C strings that LLVM copies.
    ONCE.call_once(|| unsafe {
        LLVMInitializeX86TargetInfo();
        LLVMInitializeX86Target();
        LLVMInitializeX86TargetMC();
        LLVMInitializeX86AsmPrinter();
        LLVMInitializeAArch64TargetInfo();
        LLVMInitializeAArch64Target();
        LLVMInitializeAArch64TargetMC();
        LLVMInitializeAArch64AsmPrinter();
        let options = LLVM_OPTIONS.map(CStr::as_ptr);
        llvm_sys::support::LLVMParseCommandLineOptions(options.len() as i32, options.as_ptr(), std::ptr::null());
    });
}

impl Target {
    /// The CPU of this machine, or the one that `cpu` names as `-march` does; of another machine than this, which `triple` names, any.
    pub(crate) fn new(triple: Option<&str>, cpu: Option<&str>) -> Result<Target, String> {
        initialize();
        // SAFETY: owned strings of LLVM.
        let (own, native, features) =
            unsafe { (take(LLVMGetDefaultTargetTriple()), take(LLVMGetHostCPUName()), take(LLVMGetHostCPUFeatures())) };
        let architecture = |triple: &str| triple.split('-').next().map(str::to_owned);
        let is_own = triple.is_none_or(|triple| architecture(triple) == architecture(&own));
        let triple = triple.map_or(own, str::to_owned);
        let (cpu, features) = match cpu {
            None | Some("native") if is_own => (native.as_str(), features.as_str()),
            None | Some("native") => ("generic", ""),
            Some(cpu) => (cpu, ""),
        };
        let [c_triple, c_cpu, c_features] =
            [triple.as_str(), cpu, features].map(|text| CString::new(text).unwrap_or_default());
        let mut target = std::ptr::null_mut();
        let mut message = std::ptr::null_mut();
        // SAFETY: C strings; the results are checked.
        let machine = unsafe {
            if LLVMGetTargetFromTriple(c_triple.as_ptr(), &mut target, &mut message) != 0 {
                return Err(take(message));
            }
            LLVMCreateTargetMachine(
                target,
                c_triple.as_ptr(),
                c_cpu.as_ptr(),
                c_features.as_ptr(),
                LLVMCodeGenOptLevel::LLVMCodeGenLevelAggressive,
                LLVMRelocMode::LLVMRelocPIC,
                LLVMCodeModel::LLVMCodeModelDefault,
            )
        };
        if machine.is_null() {
            return Err(format!("LLVM has no target for {triple}"));
        }
        // SAFETY: a live machine.
        let data = unsafe { LLVMCreateTargetDataLayout(machine) };
        Ok(Target { machine, data, triple })
    }

    pub(crate) fn triple(&self) -> &str {
        &self.triple
    }

    /// The data layout as text.
    pub(crate) fn layout(&self) -> String {
        // SAFETY: live data; the string is owned.
        take(unsafe { LLVMCopyStringRepOfTargetData(self.data) })
    }

    /// Bytes from one element of an array to the next.
    pub(crate) fn size_of(&self, ty: Type) -> u64 {
        // SAFETY: a sized type.
        unsafe { LLVMABISizeOfType(self.data, ty.as_raw()) }
    }

    pub(crate) fn align_of(&self, ty: Type) -> u64 {
        // SAFETY: a sized type.
        unsafe { LLVMABIAlignmentOfType(self.data, ty.as_raw()) }.into()
    }

    /// Runs a pass pipeline in `opt`'s syntax.
    pub(crate) fn run_passes(&self, module: &Module, pipeline: &str) -> Result<(), String> {
        let text = CString::new(pipeline).unwrap_or_default();
        // SAFETY: live module and machine; options and error are freed.
        unsafe {
            let options = LLVMCreatePassBuilderOptions();
            LLVMPassBuilderOptionsSetLoopVectorization(options, 1);
            LLVMPassBuilderOptionsSetSLPVectorization(options, 1);
            LLVMPassBuilderOptionsSetLoopInterleaving(options, 1);
            LLVMPassBuilderOptionsSetLoopUnrolling(options, 1);
            let error = LLVMRunPasses(module.as_raw(), text.as_ptr(), self.machine, options);
            LLVMDisposePassBuilderOptions(options);
            if error.is_null() {
                return Ok(());
            }
            let message = LLVMGetErrorMessage(error);
            let text = CStr::from_ptr(message).to_string_lossy().into_owned();
            LLVMDisposeErrorMessage(message);
            Err(format!("{pipeline}: {text}"))
        }
    }

    /// Writes an object file.
    pub(crate) fn emit_object(&self, module: &Module, path: &Path) -> Result<(), String> {
        let path = CString::new(path.to_string_lossy().as_bytes()).unwrap_or_default();
        let mut message = std::ptr::null_mut();
        let kind = LLVMCodeGenFileType::LLVMObjectFile;
        // SAFETY: live module and machine, a C string.
        let failed =
            unsafe { LLVMTargetMachineEmitToFile(self.machine, module.as_raw(), path.as_ptr(), kind, &mut message) };
        if failed != 0 { Err(take(message)) } else { Ok(()) }
    }
}
