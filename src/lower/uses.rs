//! What instructions other than calls do with followed pointers.

use super::Lowering;
use super::allocations::{Delivery, POINTER_BYTES};
use super::pointers::Pointer;
use crate::analysis::program::{Access, AccessKind, Allocator, BlemishKind, Object, ObjectId, Site, Space, UseKind};
use crate::analysis::symbolic::Sym;
use crate::ir::{Opcode, Type, Use, Value};

impl<'m> Lowering<'_, 'm> {
    /// Records accesses and uses of every followed pointer, and what could not be followed.
    pub(super) fn pointer_uses(&mut self) {
        for (allocation, id) in self.allocations.iter().zip(0..) {
            if allocation.delivery == Delivery::Memory {
                self.record_use(allocation.call, ObjectId(id), UseKind::Stored);
            }
        }
        let pointers = self.pointers;
        for (value, pointer) in pointers.values() {
            for usage in value.uses() {
                if self.flow.reaches(usage.user) {
                    self.pointer_use(value, pointer, usage);
                }
            }
        }
        self.troubles();
    }

    fn pointer_use(&mut self, value: Value<'m>, pointer: &Pointer, usage: Use<'m>) {
        let user = usage.user;
        let object = pointer.object;
        if user.is_volatile_or_atomic() {
            self.record_use(user, object, UseKind::VolatileOrAtomic);
        }
        match user.opcode() {
            // Followed further, or checked where the mixing happens.
            Some(
                Opcode::LLVMGetElementPtr
                | Opcode::LLVMBitCast
                | Opcode::LLVMAddrSpaceCast
                | Opcode::LLVMFreeze
                | Opcode::LLVMPHI
                | Opcode::LLVMSelect,
            ) if self.pointers.get(user).is_some() => {}
            // `events` looks at all arguments of a call.
            Some(Opcode::LLVMCall | Opcode::LLVMInvoke) if usage.operand < user.argument_count() => {}
            Some(Opcode::LLVMLoad) => self.access(user, pointer, AccessKind::Read, user.ty()),
            Some(Opcode::LLVMStore) if usage.operand == 1 => {
                if let Some(stored) = user.operand(0) {
                    self.access(user, pointer, AccessKind::Write, stored.ty());
                }
            }
            Some(Opcode::LLVMStore) => {
                let slot = user.operand(1).and_then(|address| self.slots.cell(self.module, address));
                let escapes = slot.is_none_or(|cell| {
                    self.slots.is_argument_array(cell.alloca) || self.slots.leaks(cell, POINTER_BYTES)
                });
                if escapes {
                    self.record_use(user, object, UseKind::Stored);
                }
            }
            Some(Opcode::LLVMAtomicRMW | Opcode::LLVMAtomicCmpXchg) => {
                let unknown = Pointer { offset: None, ..pointer.clone() };
                self.access(user, &unknown, AccessKind::Read, user.ty());
                self.access(user, &unknown, AccessKind::Write, user.ty());
                if usage.operand != 0 {
                    self.record_use(user, object, UseKind::Stored);
                }
            }
            Some(Opcode::LLVMICmp) => {
                let other = user.operand(1 - usage.operand);
                let harmless = other.is_some_and(|other| {
                    other.is_null() || self.pointers.get(other).is_some_and(|other| other.object == object)
                });
                if !harmless {
                    self.record_use(user, object, UseKind::Compared);
                }
            }
            Some(Opcode::LLVMPtrToInt) => {
                if !self.is_difference_only(user, object) {
                    self.record_use(user, object, UseKind::CastToInteger);
                }
            }
            Some(Opcode::LLVMRet) => self.record_use(user, object, UseKind::Returned),
            Some(Opcode::LLVMCall | Opcode::LLVMInvoke | Opcode::LLVMCallBr) => {
                self.operand_of_call(user, value, object)
            }
            // Into an aggregate, a vector, va_arg, an unwinding: out of sight.
            _ => self.record_use(user, object, UseKind::Stored),
        }
    }

    /// The pointer is an operand of a call that is no argument: what is called, or part of an operand bundle.
    fn operand_of_call(&mut self, call: Value<'m>, value: Value<'m>, object: ObjectId) {
        let assumed = call.called_function().is_some_and(|callee| callee.name() == "llvm.assume");
        if assumed {
            // Alignment and size of p are no worse than those of h and d; being distinct is.
            if call.bundle_tags().iter().any(|tag| tag == "separate_storage") {
                self.record_use(call, object, UseKind::Compared);
            }
        } else if call.called() == Some(value) {
            self.record_use(call, object, UseKind::PassedTo("a call of it".to_owned()));
        } else {
            self.record_use(call, object, UseKind::PassedTo("an operand bundle".to_owned()));
        }
    }

    fn access(&mut self, at: Value<'m>, pointer: &Pointer, kind: AccessKind, ty: Type<'m>) {
        let length = self.module.store_size(ty).map(Sym::from);
        let range = self.range(pointer, length, at);
        let must = range != crate::analysis::program::Range::Unknown && !pointer.maybe_null;
        self.found.accesses.entry(at).or_default().push(Access { object: pointer.object, kind, range, must });
    }

    /// Is the integer used only to subtract pointers into the same object? The difference does not depend on where the object is.
    fn is_difference_only(&self, cast: Value<'m>, object: ObjectId) -> bool {
        let same = |other: Value<'m>| {
            other.opcode() == Some(Opcode::LLVMPtrToInt)
                && other
                    .operand(0)
                    .and_then(|pointer| self.pointers.get(pointer))
                    .is_some_and(|pointer| pointer.object == object)
        };
        cast.uses().iter().all(|usage| {
            usage.user.opcode() == Some(Opcode::LLVMSub) && usage.user.operand(1 - usage.operand).is_some_and(same)
        })
    }

    fn troubles(&mut self) {
        for trouble in &self.pointers.troubles {
            if trouble.slot {
                self.blemish(trouble.at, BlemishKind::AmbiguousSlot, trouble.objects.clone());
                continue;
            }
            let mut mixed = trouble.objects.clone();
            if trouble.foreign {
                mixed.push(self.foreign_object());
            }
            for object in &trouble.objects {
                for other in mixed.iter().filter(|other| *other != object) {
                    self.record_use(trouble.at, *object, UseKind::MixedWith(*other));
                }
            }
        }
    }

    /// The object that stands for all memory that this function did not allocate.
    fn foreign_object(&mut self) -> ObjectId {
        let objects = &mut self.program.objects;
        let known = self.allocations.len();
        if objects.len() == known {
            objects.push(Object {
                name: String::new(),
                space: Space::Both,
                origin: Allocator::Foreign,
                size: None,
                alignment: 0,
                may_be_absent: false,
                site: Site::default(),
            });
        }
        ObjectId(u32::try_from(known).unwrap_or(u32::MAX))
    }
}
