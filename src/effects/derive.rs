//! Device half: what each kernel does with the memory behind its parameters, from the kernel's final IR.
//!
//! # How
//! Every pointer-valued instruction gets an origin: the parameters that it may come from, and whether it may come from elsewhere
//! (forward data flow to a fixpoint over GEPs, casts, phis, selects). Then each instruction that uses a pointer adds to the effect of the
//! parameters in its origin. The fixpoint ignores order and branches: the claims are about all of a launch.
//!
//! # Why the claims hold
//! - *An unknown use is every use.* A pointer that is stored, turned into an integer, put into a vector or struct, returned, or given to a
//!   call that may keep it, makes its parameters [`ParamEffect::UNKNOWN`]. So a pointer that comes from elsewhere (loaded, made from an
//!   integer, returned by a call) never hides a parameter that is not already unknown.
//! - *A struct that is passed by value* is memory of the launch. A pointer loaded from it belongs to that parameter. If the kernel makes
//!   pointers in a way that is not followed, the struct's bytes may have gone there as integers: its entry is unknown then.
//! - *Calls* count by LLVM's attributes of the callee (`readonly`, `writeonly`, `captures(none)`, `memory(…)`), which are promises about
//!   the callee's code. Attributes of the kernel itself are not used: some (`readonly` of a struct passed by value) say less than they seem.
//! - *Another copy may run.* A template's kernel exists in each unit that uses it, and the linker or the runtime picks one. All are
//!   compiled from one source, so they differ only by accesses without effect, which one optimiser dropped: reads whose value is not used
//!   and writes of what is there already. The entry of such a kernel is at least `reads`: then host writes conflict with it, which is all
//!   that these accesses could disturb. A kernel that another, different definition may replace (`weak`) is unknown.
//! - *Code generation* after this pass only removes accesses.
//!
//! # Limits
//! Pointers in local memory (an array of pointers that was not dissolved) are not followed: their parameters are unknown.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{EffectTable, KernelEffects, ParamEffect, record, writes_all};
use crate::ir::{Linkage, Module, Opcode, TypeKind, Value, ValueKind, passes_pointer_on};
use crate::mutants::{Mutant, off};

/// LLVM's number of the calling convention `ptx_kernel`.
const PTX_KERNEL: u32 = 71;

/// Address spaces of NVPTX.
const GLOBAL: u32 = 1;
const SHARED: u32 = 3;
const CONSTANT: u32 = 4;

/// Bytes of a device pointer: a smaller struct holds none.
const POINTER_BYTES: u64 = 8;

/// Derives the effects of a device module's kernels and stores the record in the module; true if the module changed. A module of another
/// target, or one that has a record already, is left as it is.
pub fn record_effects(module: Module<'_>) -> bool {
    if !module.triple().starts_with("nvptx") || module.globals().any(|global| global.name() == record::SYMBOL) {
        return false;
    }
    let bytes = record::encode(&effects_of_device_module(module));
    module.keep_constant(record::SYMBOL, &bytes, GLOBAL);
    true
}

/// Effects of every kernel that the module defines.
#[must_use]
pub fn effects_of_device_module(module: Module<'_>) -> EffectTable {
    let annotated = annotated_kernels(module);
    let kernels = module
        .functions()
        .filter(|function| !function.is_declaration())
        .filter(|function| function.calling_convention() == Some(PTX_KERNEL) || annotated.contains(function))
        .map(|kernel| (kernel.name(), effects_of_kernel(module, kernel)));
    EffectTable { kernels: kernels.collect() }
}

/// Kernels as LLVM 19 marks them: `!nvvm.annotations = {!{ptr @k, !"kernel", i32 1}}`.
fn annotated_kernels<'m>(module: Module<'m>) -> HashSet<Value<'m>> {
    let is_kernel = |values: &[Option<Value<'m>>]| {
        values[1..].chunks(2).any(|pair| match pair {
            [Some(key), Some(value)] => {
                key.metadata_string().as_deref() == Some("kernel") && value.constant_uint() == Some(1)
            }
            _ => false,
        })
    };
    let nodes = module.named_metadata("nvvm.annotations");
    nodes.iter().filter(|node| node.len() > 1 && is_kernel(node)).filter_map(|node| node[0]).collect()
}

/// Where a pointer may come from. Nothing set: null or undefined.
#[derive(Clone, Default, PartialEq, Eq)]
struct Origin {
    /// It is, or is derived from, the pointer that these parameters hold.
    params: BTreeSet<usize>,
    /// It points into the parameter memory of these structs, passed by value.
    structs: BTreeSet<usize>,
    /// It points to a device variable that is not constant.
    variable: bool,
    /// It may come from anywhere else, but not from a parameter whose effect is not unknown.
    elsewhere: bool,
}

impl Origin {
    fn elsewhere() -> Self {
        Self { elsewhere: true, ..Self::default() }
    }

    /// Adds what `other` has; true if that was new.
    fn add(&mut self, other: &Self) -> bool {
        let before = (self.params.len(), self.structs.len(), self.variable, self.elsewhere);
        self.params.extend(&other.params);
        self.structs.extend(&other.structs);
        self.variable |= other.variable;
        self.elsewhere |= other.elsewhere;
        before != (self.params.len(), self.structs.len(), self.variable, self.elsewhere)
    }
}

/// How a parameter holds pointers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Nothing,
    Pointer,
    Struct,
    /// A type that is not taken apart.
    Unknown,
}

fn effects_of_kernel<'m>(module: Module<'m>, kernel: Value<'m>) -> KernelEffects {
    let params: Vec<Holds> =
        kernel.parameters().iter().enumerate().map(|(at, param)| holds(kernel, at, *param)).collect();
    if kernel.is_interposable() && !off(Mutant::EffectsReplaced) {
        let unknown = params.iter().map(|holds| (*holds != Holds::Nothing).then_some(ParamEffect::UNKNOWN));
        return KernelEffects { params: unknown.collect(), touches_other_memory: true };
    }
    let copied = matches!(
        kernel.linkage(),
        Some(Linkage::LLVMWeakODRLinkage | Linkage::LLVMLinkOnceODRLinkage | Linkage::LLVMAvailableExternallyLinkage)
    );
    let mut walk = Walk::new(kernel, params);
    walk.find_origins();
    walk.count_uses();
    let mut effects = walk.finish(copied);
    for (effect, pointer) in effects.params.iter_mut().zip(kernel.parameters()) {
        if let Some(effect) = effect.as_mut().filter(|effect| effect.writes && !copied) {
            effect.writes_all = writes_all::claim(module, kernel, pointer);
        }
    }
    effects
}

fn holds(kernel: Value<'_>, at: usize, param: Value<'_>) -> Holds {
    let ty = param.ty();
    match ty.kind() {
        TypeKind::LLVMPointerTypeKind => match kernel.byval_size(at) {
            None => Holds::Pointer,
            Some(size) if size < POINTER_BYTES => Holds::Nothing,
            Some(_) => Holds::Struct,
        },
        // An integer may hold a pointer that the host cast; the host half sees that cast.
        TypeKind::LLVMIntegerTypeKind
        | TypeKind::LLVMHalfTypeKind
        | TypeKind::LLVMBFloatTypeKind
        | TypeKind::LLVMFloatTypeKind
        | TypeKind::LLVMDoubleTypeKind => Holds::Nothing,
        _ => Holds::Unknown,
    }
}

/// The two steps over one kernel: origins of pointers, then what their uses do.
struct Walk<'m> {
    params: Vec<Holds>,
    arguments: HashMap<Value<'m>, usize>,
    instructions: Vec<Value<'m>>,
    origins: HashMap<Value<'m>, Origin>,
    effects: Vec<ParamEffect>,
    /// The kernel uses a pointer whose origin is not followed.
    strays: bool,
    /// It uses a device variable by name.
    uses_variable: bool,
}

impl<'m> Walk<'m> {
    fn new(kernel: Value<'m>, params: Vec<Holds>) -> Self {
        let effects = params
            .iter()
            .map(|holds| if *holds == Holds::Unknown { ParamEffect::UNKNOWN } else { ParamEffect::NOTHING })
            .collect();
        Self {
            params,
            arguments: kernel.parameters().into_iter().enumerate().map(|(at, param)| (param, at)).collect(),
            instructions: kernel.instructions().collect(),
            origins: HashMap::new(),
            effects,
            strays: false,
            uses_variable: false,
        }
    }

    /// Forward to a fixpoint. Origins only grow, and are bounded by the parameters, so it ends.
    fn find_origins(&mut self) {
        let pointers: Vec<_> = self.instructions.iter().copied().filter(|inst| inst.ty().is_pointer()).collect();
        let mut changed = true;
        while changed {
            changed = false;
            for inst in &pointers {
                let origin = self.transfer(*inst);
                changed |= self.origins.entry(*inst).or_default().add(&origin);
            }
        }
    }

    /// Origin of what an instruction yields.
    fn transfer(&self, inst: Value<'m>) -> Origin {
        let operands = inst.operands();
        let mut origin = Origin::default();
        match inst.opcode() {
            Some(Opcode::LLVMAlloca) => {}
            Some(Opcode::LLVMGetElementPtr | Opcode::LLVMBitCast | Opcode::LLVMAddrSpaceCast | Opcode::LLVMFreeze) => {
                origin = self.origin(operands[0])
            }
            Some(Opcode::LLVMSelect) => {
                origin.add(&self.origin(operands[if off(Mutant::EffectsSelect) { 2 } else { 1 }]));
                origin.add(&self.origin(operands[2]));
            }
            Some(Opcode::LLVMPHI) => {
                for (incoming, _) in inst.incoming() {
                    origin.add(&self.origin(incoming));
                }
            }
            Some(Opcode::LLVMLoad) => {
                let from = self.origin(operands[0]);
                // From a struct parameter and nothing else: the pointers of that parameter.
                if !from.structs.is_empty() && from.params.is_empty() && !from.variable && !from.elsewhere {
                    origin.params = from.structs;
                } else {
                    origin.params.clone_from(&from.structs);
                    origin.elsewhere = true;
                }
            }
            Some(Opcode::LLVMCall) if intrinsic(inst).is_some_and(|name| passes_pointer_on(&name)) => {
                origin = self.origin(inst.arguments()[0]);
            }
            _ => origin = Origin::elsewhere(),
        }
        origin
    }

    /// Origin of any value that is used as a pointer.
    fn origin(&self, value: Value<'m>) -> Origin {
        use ValueKind::{
            LLVMArgumentValueKind, LLVMConstantExprValueKind, LLVMConstantPointerNullValueKind, LLVMFunctionValueKind,
            LLVMGlobalVariableValueKind, LLVMInstructionValueKind, LLVMPoisonValueKind, LLVMUndefValueValueKind,
        };
        match value.kind() {
            LLVMInstructionValueKind if value.ty().is_pointer() => {
                self.origins.get(&value).cloned().unwrap_or_default()
            }
            LLVMArgumentValueKind => match self.arguments.get(&value).map(|at| (*at, self.params[*at])) {
                Some((at, Holds::Pointer)) => Origin { params: [at].into(), ..Origin::default() },
                Some((at, Holds::Struct)) => Origin { structs: [at].into(), ..Origin::default() },
                Some((_, Holds::Nothing)) => Origin::default(),
                _ => Origin::elsewhere(),
            },
            LLVMConstantPointerNullValueKind
            | LLVMUndefValueValueKind
            | LLVMPoisonValueKind
            | LLVMFunctionValueKind => Origin::default(),
            LLVMGlobalVariableValueKind => {
                let space = value.ty().address_space();
                let own = space == Some(SHARED) || space == Some(CONSTANT) || value.is_global_constant();
                Origin { variable: !own, ..Origin::default() }
            }
            LLVMConstantExprValueKind => match (value.opcode(), value.operands().first()) {
                (Some(Opcode::LLVMGetElementPtr | Opcode::LLVMBitCast | Opcode::LLVMAddrSpaceCast), Some(base)) => {
                    self.origin(*base)
                }
                _ => Origin::elsewhere(),
            },
            _ => Origin::elsewhere(),
        }
    }

    fn count_uses(&mut self) {
        for inst in self.instructions.clone() {
            self.count(inst);
        }
    }

    /// Adds what one instruction does with its pointers.
    fn count(&mut self, inst: Value<'m>) {
        let operands = inst.operands();
        match inst.opcode() {
            Some(Opcode::LLVMLoad) => self.access(operands[0], true, false),
            Some(Opcode::LLVMStore) => {
                self.access(operands[1], false, true);
                if !off(Mutant::EffectsStored) {
                    self.escape(operands[0]);
                }
            }
            Some(Opcode::LLVMAtomicRMW) => {
                self.access(operands[0], true, true);
                self.escape(operands[1]);
            }
            Some(Opcode::LLVMAtomicCmpXchg) => {
                self.access(operands[0], true, true);
                self.escape(operands[1]);
                self.escape(operands[2]);
            }
            // The pointer that these yield has its origin; a vector of pointers has none.
            Some(
                Opcode::LLVMGetElementPtr
                | Opcode::LLVMBitCast
                | Opcode::LLVMAddrSpaceCast
                | Opcode::LLVMFreeze
                | Opcode::LLVMSelect
                | Opcode::LLVMPHI,
            ) if inst.ty().is_pointer() => {}
            // A comparison keeps nothing of a pointer.
            Some(Opcode::LLVMICmp) => {}
            Some(Opcode::LLVMCall | Opcode::LLVMInvoke | Opcode::LLVMCallBr) => self.count_call(inst),
            Some(Opcode::LLVMPHI) => inst.incoming().into_iter().for_each(|(value, _)| self.escape(value)),
            _ => operands.into_iter().for_each(|value| self.escape(value)),
        }
    }

    fn count_call(&mut self, call: Value<'m>) {
        let arguments = call.arguments();
        let name = intrinsic(call).or_else(|| call.called_function().filter(|f| f.is_declaration()).map(Value::name));
        match name.as_deref() {
            Some(name) if passes_pointer_on(name) && call.ty().is_pointer() => return,
            Some(name) if touches_nothing(name) => return,
            // The device's printf and assert read their texts and the argument buffer; what is stored in that has escaped already.
            Some("vprintf" | "__assertfail") => {
                arguments.iter().for_each(|argument| self.access(*argument, true, false));
                return;
            }
            // The device's mathematical functions use memory for results alone (sincos, modf, frexp). They are declarations where the
            // library is linked later.
            Some(name) if name.starts_with("__nv_") => {
                for argument in arguments.into_iter().filter(|argument| argument.ty().is_pointer()) {
                    self.access(argument, true, true);
                }
                return;
            }
            Some(name) if name.starts_with("llvm.memcpy.") || name.starts_with("llvm.memmove.") => {
                self.access(arguments[0], false, true);
                self.access(arguments[1], true, false);
                // The copy of a struct parameter has its pointers.
                let structs = self.origin(arguments[1]).structs;
                self.make_unknown(structs);
                return;
            }
            _ => {}
        }
        self.strays |= !call.touches_arguments_only() && !off(Mutant::EffectsCallTouches);
        for (argument, at) in arguments.into_iter().zip(0..) {
            if !argument.ty().is_pointer() {
                // A vector or struct of pointers escaped where it was made; constants have no parameter in them.
                continue;
            }
            let effect = call.argument_effect(at);
            let structs = self.origin(argument).structs;
            self.make_unknown(structs);
            self.access(argument, effect.reads, effect.writes);
            if effect.captures && !effect.copied && !off(Mutant::EffectsCallKeeps) {
                self.escape(argument);
            }
        }
        if let Some(called) = call.called().filter(|called| !called.is_function()) {
            self.escape(called);
        }
    }

    /// Memory behind `pointer` is read or written.
    fn access(&mut self, pointer: Value<'m>, reads: bool, writes: bool) {
        if !reads && !writes {
            return;
        }
        let origin = self.origin(pointer);
        for at in &origin.params {
            self.effects[*at].reads |= reads;
            self.effects[*at].writes |= writes;
        }
        if writes {
            // Pointers loaded from the struct later need not be those of the launch.
            self.strays |= !origin.structs.is_empty();
            self.make_unknown(origin.structs);
        }
        self.strays |= origin.elsewhere && !off(Mutant::EffectsElsewhere);
        self.uses_variable |= origin.variable && !off(Mutant::EffectsVariable);
    }

    /// `value` goes where it is not followed.
    fn escape(&mut self, value: Value<'m>) {
        if value.ty().is_pointer() {
            let Origin { params, structs, .. } = self.origin(value);
            self.make_unknown(params);
            self.make_unknown(structs);
        }
    }

    fn make_unknown(&mut self, params: BTreeSet<usize>) {
        for at in params {
            self.effects[at] = ParamEffect::UNKNOWN;
        }
    }

    fn finish(self, copied: bool) -> KernelEffects {
        let strays = self.strays;
        let params = self.params.iter().zip(self.effects).map(|(holds, mut effect)| {
            if *holds == Holds::Nothing {
                return None;
            }
            if *holds == Holds::Struct && strays && !off(Mutant::EffectsStruct) {
                effect = ParamEffect::UNKNOWN;
            }
            effect.reads |= copied && !effect.writes && !off(Mutant::EffectsCopies);
            Some(effect)
        });
        KernelEffects { params: params.collect(), touches_other_memory: strays || self.uses_variable }
    }
}

/// Name of the intrinsic that is called.
fn intrinsic(call: Value<'_>) -> Option<String> {
    call.called_function().map(Value::name).filter(|name| name.starts_with("llvm."))
}

/// Intrinsics that access no memory through a pointer and keep none, though LLVM's attributes do not say so: barriers and fences order
/// accesses, warp operations move registers, the rest are notes to the compiler.
fn touches_nothing(name: &str) -> bool {
    const PREFIXES: [&str; 18] = [
        "llvm.assume",
        "llvm.dbg.",
        "llvm.debugtrap",
        "llvm.experimental.noalias.scope.decl",
        "llvm.lifetime.",
        "llvm.nvvm.activemask",
        "llvm.nvvm.bar.",
        "llvm.nvvm.barrier",
        "llvm.nvvm.exit",
        "llvm.nvvm.isspacep.",
        "llvm.nvvm.match.",
        "llvm.nvvm.membar.",
        "llvm.nvvm.nanosleep",
        "llvm.nvvm.read.ptx.sreg.",
        "llvm.nvvm.redux.",
        "llvm.nvvm.shfl.",
        "llvm.nvvm.vote.",
        "llvm.trap",
    ];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}
