//! Types.

use super::{Type, TypeKind, Value, context, take_message};
use llvm_sys::core::*;
use llvm_sys::prelude::LLVMTypeRef;
use std::ffi::c_uint;

impl Type {
    pub(crate) fn as_raw(self) -> LLVMTypeRef {
        self.0
    }

    pub(crate) fn int(bits: u32) -> Type {
        // SAFETY: the context lives.
        Type(unsafe { LLVMIntTypeInContext(context(), bits) })
    }

    pub(crate) fn pointer() -> Type {
        // SAFETY: the context lives.
        Type(unsafe { LLVMPointerTypeInContext(context(), 0) })
    }

    pub(crate) fn void() -> Type {
        // SAFETY: the context lives.
        Type(unsafe { LLVMVoidTypeInContext(context()) })
    }

    pub(crate) fn array(self, length: u64) -> Type {
        // SAFETY: a sized type of the context.
        Type(unsafe { LLVMArrayType2(self.0, length) })
    }

    pub(crate) fn function(result: Type, params: &[Type]) -> Type {
        let mut params: Vec<_> = params.iter().map(|param| param.0).collect();
        // SAFETY: types of the context; the length is right.
        Type(unsafe { LLVMFunctionType(result.0, params.as_mut_ptr(), params.len() as c_uint, 0) })
    }

    pub(crate) fn kind(self) -> TypeKind {
        // SAFETY: types live.
        unsafe { LLVMGetTypeKind(self.0) }
    }

    /// Of a function type.
    pub(crate) fn return_type(self) -> Type {
        // SAFETY: asked of function types only.
        Type(unsafe { LLVMGetReturnType(self.0) })
    }

    /// Of a function type.
    pub(crate) fn params(self) -> Vec<Type> {
        // SAFETY: asked of function types only; the vector has the length that LLVM fills.
        unsafe {
            let mut params = vec![std::ptr::null_mut(); LLVMCountParamTypes(self.0) as usize];
            LLVMGetParamTypes(self.0, params.as_mut_ptr());
            params.into_iter().map(Type).collect()
        }
    }

    /// Of a function type.
    pub(crate) fn is_variadic(self) -> bool {
        // SAFETY: asked of function types only.
        unsafe { LLVMIsFunctionVarArg(self.0) != 0 }
    }

    /// Of a pointer type.
    pub(crate) fn address_space(self) -> u32 {
        // SAFETY: asked of pointer types only.
        unsafe { LLVMGetPointerAddressSpace(self.0) }
    }

    pub(crate) fn constant(self, value: u64) -> Value {
        // SAFETY: asked of integer types only.
        Value(unsafe { LLVMConstInt(self.0, value, 0) })
    }

    pub(crate) fn null(self) -> Value {
        // SAFETY: a type that has a zero.
        Value(unsafe { LLVMConstNull(self.0) })
    }
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // SAFETY: types live.
        f.write_str(&take_message(unsafe { LLVMPrintTypeToString(self.0) }))
    }
}
