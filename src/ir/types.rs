//! Types, and their sizes in the module's data layout.

use std::marker::PhantomData;

use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::LLVMTypeRef;
use inkwell::llvm_sys::target::*;

use super::{Module, Type, TypeKind};

impl Type<'_> {
    pub(super) fn wrap(raw: LLVMTypeRef) -> Self {
        Self { raw, life: PhantomData }
    }

    /// The handle for LLVM's C API.
    #[must_use]
    pub fn raw(self) -> LLVMTypeRef {
        self.raw
    }

    /// What sort of type it is.
    #[must_use]
    pub fn kind(self) -> TypeKind {
        // SAFETY: the type is valid ('m).
        unsafe { LLVMGetTypeKind(self.raw) }
    }

    /// Is it a pointer?
    #[must_use]
    pub fn is_pointer(self) -> bool {
        self.kind() == TypeKind::LLVMPointerTypeKind
    }

    /// The address space of a pointer.
    #[must_use]
    pub fn address_space(self) -> Option<u32> {
        // SAFETY: asked only of pointer types.
        self.is_pointer().then(|| unsafe { LLVMGetPointerAddressSpace(self.raw) })
    }

    /// The width of an integer type, in bits.
    #[must_use]
    pub fn int_width(self) -> Option<u32> {
        // SAFETY: asked only of integer types.
        (self.kind() == TypeKind::LLVMIntegerTypeKind).then(|| unsafe { LLVMGetIntTypeWidth(self.raw) })
    }

    /// Is it a structure?
    #[must_use]
    pub fn is_struct(self) -> bool {
        self.kind() == TypeKind::LLVMStructTypeKind
    }

    /// The type of an array's or fixed vector's element.
    #[must_use]
    pub fn element(self) -> Option<Self> {
        match self.kind() {
            TypeKind::LLVMArrayTypeKind | TypeKind::LLVMVectorTypeKind => {
                // SAFETY: asked only of arrays and vectors.
                Some(Self::wrap(unsafe { LLVMGetElementType(self.raw) }))
            }
            _ => None,
        }
    }

    /// The type of a structure's field.
    #[must_use]
    pub fn field(self, index: u32) -> Option<Self> {
        // SAFETY: checked to be a structure with that field.
        unsafe {
            (self.is_struct() && index < LLVMCountStructElementTypes(self.raw))
                .then(|| Self::wrap(LLVMStructGetTypeAtIndex(self.raw, index)))
        }
    }

    /// It has a size, and that is a number (not one of a scalable vector).
    fn has_fixed_size(self) -> bool {
        // SAFETY: the type is valid ('m).
        unsafe { LLVMTypeIsSized(self.raw) != 0 && self.kind() != TypeKind::LLVMScalableVectorTypeKind }
    }
}

/// Sizes.
impl<'m> Module<'m> {
    /// Bytes that a value of the type takes in memory (with padding); `None` for types without a size.
    #[must_use]
    pub fn alloc_size(self, ty: Type<'m>) -> Option<u64> {
        // SAFETY: the type and the module are valid ('m); only types with a size are asked for it.
        ty.has_fixed_size().then(|| unsafe { LLVMABISizeOfType(LLVMGetModuleDataLayout(self.raw), ty.raw) })
    }

    /// Bytes that a store of the type may write.
    #[must_use]
    pub fn store_size(self, ty: Type<'m>) -> Option<u64> {
        // SAFETY: as in `alloc_size`.
        ty.has_fixed_size().then(|| unsafe { LLVMStoreSizeOfType(LLVMGetModuleDataLayout(self.raw), ty.raw) })
    }

    /// Byte offset of a structure's field.
    #[must_use]
    pub fn field_offset(self, structure: Type<'m>, field: u32) -> Option<u64> {
        // SAFETY: checked to be a sized structure with that field.
        unsafe {
            if !structure.is_struct()
                || LLVMTypeIsSized(structure.raw) == 0
                || field >= LLVMCountStructElementTypes(structure.raw)
            {
                return None;
            }
            Some(LLVMOffsetOfElement(LLVMGetModuleDataLayout(self.raw), structure.raw, field))
        }
    }
}
