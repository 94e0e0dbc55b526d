//! What the lowering of one function needs to know of the module around it; computed once a module.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};

use super::callees::ParameterEffect;
use super::launches::is_stub;
use crate::analysis::program::{BlemishKind, ModuleFacts};
use crate::calls::cuda::Meaning;
use crate::calls::{Callee, classify};
use crate::effects::host::kernels_of_module;
use crate::effects::{EffectTable, KernelEffects};
use crate::ir::{Module, Value};
use crate::mutants::{Mutant, off};

/// Facts of a module.
pub struct Context<'m> {
    /// The module.
    pub module: Module<'m>,
    /// For the analysis.
    pub facts: ModuleFacts,
    effects: EffectTable,
    kernels: HashMap<Value<'m>, String>,
    stubs: HashSet<Value<'m>>,
    summaries: HashMap<Value<'m>, Summary>,
    /// What `callees` found out about parameters so far.
    pub(super) parameters: RefCell<HashMap<(Value<'m>, u32), ParameterEffect>>,
}

/// What calling a function of the module may entail, its callees included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The GPU work that it may start.
    pub work: GpuWork,
    /// It may select a device.
    pub selects_device: bool,
    /// It may do something that the event program cannot say.
    pub blemishes: BTreeSet<Obstacle>,
}

/// What GPU work a call may start; each includes those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum GpuWork {
    /// None.
    #[default]
    None,
    /// Launches and copies in plain sight, of what it was given.
    Known,
    /// It may call any function of the CUDA runtime, and so reset the device too.
    Unknown,
}

/// The [`BlemishKind`]s that concern every buffer, in an order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// See [`BlemishKind::DeviceReset`].
    DeviceReset,
    /// See [`BlemishKind::StreamCapture`].
    StreamCapture,
    /// See [`BlemishKind::NonLocalJump`].
    NonLocalJump,
    /// See [`BlemishKind::Fork`].
    Fork,
    /// See [`BlemishKind::UnmodelledCudaCall`].
    UnmodelledCudaCall(String),
}

impl From<Obstacle> for BlemishKind {
    fn from(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::DeviceReset => Self::DeviceReset,
            Obstacle::StreamCapture => Self::StreamCapture,
            Obstacle::NonLocalJump => Self::NonLocalJump,
            Obstacle::Fork => Self::Fork,
            Obstacle::UnmodelledCudaCall(name) => Self::UnmodelledCudaCall(name),
        }
    }
}

/// What one call may entail that no other part of the lowering says.
pub(super) struct CallFacts {
    /// See [`Summary`].
    pub summary: Summary,
    /// It starts threads, or may.
    pub threads: bool,
    /// It selects a device: `Some(None)` if it is not constant.
    pub device: Option<Option<u64>>,
}

impl<'m> Context<'m> {
    /// Of a host module, with what is known of its kernels.
    #[must_use]
    pub fn new(module: Module<'m>, effects: EffectTable) -> Self {
        let defined: Vec<_> = module.functions().filter(|function| !function.is_declaration()).collect();
        let mut threads = !defined.iter().any(|function| function.name() == "main");
        let mut devices = HashSet::new();
        let mut summaries: HashMap<_, Summary> = HashMap::new();
        let mut calls: HashMap<_, Vec<Value<'m>>> = HashMap::new();
        for function in &defined {
            let mut summary = Summary::default();
            for call in function.instructions().filter(|instruction| instruction.is_call()) {
                match call.called_function().filter(|callee| !callee.is_declaration() && !callee.is_interposable()) {
                    Some(callee) => calls.entry(*function).or_default().push(callee),
                    None => {
                        let facts = call_facts(call);
                        threads |= facts.threads;
                        devices.extend(facts.device);
                        summary.work = summary.work.max(facts.summary.work);
                        summary.selects_device |= facts.device.is_some();
                        summary.blemishes.extend(facts.summary.blemishes);
                    }
                }
            }
            summaries.insert(*function, summary);
        }
        if !off(Mutant::LowerCalleesOfCallees) {
            close(&mut summaries, &calls);
        }
        // Without a call the device is 0: where another one is selected, what comes before the call is on 0.
        let selects_devices =
            devices.iter().any(|device| *device != Some(0) && (devices.len() > 1 || !off(Mutant::CallsFirstDevice)));
        let stubs = defined.iter().copied().filter(|function| is_stub(*function)).collect();
        let names = kernels_of_module(module);
        let kernels = module.functions().filter_map(|stub| Some((stub, names.get(&stub.name())?.clone()))).collect();
        Self {
            module,
            facts: ModuleFacts { starts_threads: threads, selects_devices, ..ModuleFacts::default() },
            effects,
            kernels,
            stubs,
            summaries,
            parameters: RefCell::default(),
        }
    }

    /// Does a function of the module capture a stream? Any stream of any function may then be capturing.
    #[must_use]
    pub fn captures_streams(&self) -> bool {
        self.summaries.values().any(|summary| summary.blemishes.contains(&Obstacle::StreamCapture))
    }

    /// What calling a defined function may entail.
    #[must_use]
    pub fn summary(&self, function: Value<'m>) -> Summary {
        self.summaries.get(&function).cloned().unwrap_or_else(|| Summary {
            work: GpuWork::Unknown,
            selects_device: true,
            blemishes: BTreeSet::new(),
        })
    }

    /// Is it the call of a kernel's host stub, which was not inlined?
    #[must_use]
    pub fn is_stub_call(&self, call: Value<'m>) -> bool {
        call.called_function().is_some_and(|callee| self.is_stub(callee))
    }

    /// Is a defined function a kernel's host stub?
    #[must_use]
    pub fn is_stub(&self, function: Value<'m>) -> bool {
        self.stubs.contains(&function)
    }

    /// The kernel that a host stub launches, for people; the stub's own name if the module does not register it.
    #[must_use]
    pub fn kernel_name(&self, stub: Value<'m>) -> String {
        self.kernels.get(&stub).cloned().unwrap_or_else(|| stub.name())
    }

    /// What the kernel of a host stub does; `None` without a record, or if the module does not register the stub.
    #[must_use]
    pub fn kernel_effects(&self, stub: Value<'m>) -> Option<&KernelEffects> {
        self.effects.kernels.get(self.kernels.get(&stub)?)
    }

    /// May code that ran before `main`, in this module, have started GPU work?
    #[must_use]
    pub fn constructors_launch(&self) -> bool {
        let list = self.module.globals().find(|global| global.name() == "llvm.global_ctors");
        let Some(list) = list.filter(|_| !off(Mutant::LowerConstructors)) else {
            return false;
        };
        list.initializer().into_iter().flat_map(Value::operands).flat_map(Value::operands).any(|constructor| {
            constructor.is_function()
                && !constructor.name().starts_with("__cuda_module_ctor")
                && self.summary(constructor).work != GpuWork::None
        })
    }
}

/// What a call of something that the module does not define may entail.
#[must_use]
pub(super) fn call_facts(call: Value<'_>) -> CallFacts {
    let mut facts = CallFacts { summary: Summary::default(), threads: false, device: None };
    let Some(callee) = call.called_function() else {
        let harmless = call.called().is_some_and(Value::is_inline_asm) || is_widening(call);
        facts.summary.work = if harmless { GpuWork::None } else { GpuWork::Unknown };
        facts.threads = !harmless;
        return facts;
    };
    let name = callee.name();
    if name.starts_with("llvm.") {
        return facts;
    }
    let obstacle = match classify(&name) {
        // A body that may be replaced, or that shadows a library's name, is not what the model describes.
        _ if !callee.is_declaration() => {
            (facts.summary.work, facts.threads) = (GpuWork::Unknown, true);
            None
        }
        Callee::Cuda { row, .. } => match row.meaning {
            Meaning::SelectDevice { device } => {
                facts.device = Some(call.argument(u32::from(device)).and_then(Value::constant_uint));
                None
            }
            Meaning::DeviceReset => Some(Obstacle::DeviceReset),
            Meaning::StreamCapture => Some(Obstacle::StreamCapture),
            Meaning::Launch { .. }
            | Meaning::Copy { .. }
            | Meaning::SymbolCopy { .. }
            | Meaning::Memset { .. }
            | Meaning::OtherWork => {
                facts.summary.work = GpuWork::Known;
                None
            }
            _ => None,
        },
        Callee::UnmodelledCuda => {
            facts.summary.work = GpuWork::Unknown;
            Some(Obstacle::UnmodelledCudaCall(name))
        }
        Callee::Modelled(model) => {
            facts.summary.work = match (model.callback, model.library) {
                (true, _) => GpuWork::Unknown,
                (false, Some(_)) => GpuWork::Known,
                (false, None) => GpuWork::None,
            };
            facts.threads = model.threads && !off(Mutant::CallsThreads);
            if model.forks { Some(Obstacle::Fork) } else { model.returns_twice.then_some(Obstacle::NonLocalJump) }
        }
        Callee::Unknown => {
            let harmless = call.writes_arguments_only() || off(Mutant::CallsUnknown);
            facts.summary.work = if harmless { GpuWork::None } else { GpuWork::Unknown };
            facts.threads = !harmless;
            None
        }
    };
    facts.summary.blemishes.extend(obstacle);
    facts
}

/// libstdc++ inlines `std::endl` down to a virtual call of the locale's character table, right after it called `_M_widen_init` on the
/// same table, which does nothing else than make that call for every character: the model of the one is that of the other.
fn is_widening(call: Value<'_>) -> bool {
    let Some(table) = call.argument(0) else { return false };
    table.uses().into_iter().map(|usage| usage.user).any(|before| {
        before.called_function().is_some_and(|callee| callee.name() == "_ZNKSt5ctypeIcE13_M_widen_initEv")
            && before.argument(0) == Some(table)
            && (before.normal_destination() == call.block() || before.block() == call.block())
    })
}

/// Adds to each summary those of the functions called, until nothing changes.
fn close<'m>(summaries: &mut HashMap<Value<'m>, Summary>, calls: &HashMap<Value<'m>, Vec<Value<'m>>>) {
    let mut callers: HashMap<Value<'m>, Vec<Value<'m>>> = HashMap::new();
    for (caller, callees) in calls {
        for callee in callees {
            callers.entry(*callee).or_default().push(*caller);
        }
    }
    let mut open: Vec<_> = summaries.keys().copied().collect();
    while let Some(callee) = open.pop() {
        let Some(summary) = summaries.get(&callee).cloned() else { continue };
        for caller in callers.get(&callee).into_iter().flatten() {
            let Some(own) = summaries.get_mut(caller) else { continue };
            let before = own.clone();
            own.work = own.work.max(summary.work);
            own.selects_device |= summary.selects_device;
            own.blemishes.extend(summary.blemishes.iter().cloned());
            if *own != before {
                open.push(*caller);
            }
        }
    }
}
