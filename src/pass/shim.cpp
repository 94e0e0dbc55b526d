// What LLVM's C API can't do: the plugin entry, registering passes, diagnostics and remarks, and attributes that the C API hides.
// Nothing is decided here: each callback asks Rust (entry.rs), each helper states one fact of LLVM.

#include ECHO_SR_PLUGIN_HEADER
#include "llvm-c/Core.h"
#include "llvm/Analysis/InlineCost.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DebugProgramInstruction.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

using namespace llvm;

// Implemented in entry.rs.
extern "C" {
// Runs the pass `Kind` on the module; true if it changed something. `Level` is the speed level of the pipeline (0..3), or -1 where the
// pass was named. `Parameters` is the text between `<` and `>`, null where there was none.
bool echo_sr_run_pass(LLVMModuleRef Module, uint32_t Kind, int32_t Level, const char *Parameters, size_t Length);
// The kind of the pass with that name (without parameters), or -1.
int32_t echo_sr_pass_kind(const char *Name, size_t Length);
}

namespace {

// Kinds and places; entry.rs has the same numbers.
enum Kind : uint32_t { Effects = 0, Prepare = 1, Merge = 2 };

struct RustPass : PassInfoMixin<RustPass> {
  uint32_t Which;
  int32_t Level;
  bool HasParameters;
  std::string Parameters;

  RustPass(uint32_t Which, int32_t Level) : Which(Which), Level(Level), HasParameters(false) {}
  RustPass(uint32_t Which, StringRef Text) : Which(Which), Level(-1), HasParameters(true), Parameters(Text.str()) {}

  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    bool Changed = echo_sr_run_pass(wrap(&M), Which, Level, HasParameters ? Parameters.data() : nullptr, Parameters.size());
    return Changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }
  // Functions without optimisation are looked at too, to say that nothing can be done for them.
  static bool isRequired() { return true; }
};

int32_t speed(OptimizationLevel Level) { return static_cast<int32_t>(Level.getSpeedupLevel()); }

void registerCallbacks(PassBuilder &PB) {
  // LLVM 20 added a phase parameter to some of these; it is not needed.
  PB.registerPipelineEarlySimplificationEPCallback(
      [](ModulePassManager &MPM, OptimizationLevel Level, auto...) { MPM.addPass(RustPass(Prepare, speed(Level))); });
  PB.registerOptimizerEarlyEPCallback(
      [](ModulePassManager &MPM, OptimizationLevel Level, auto...) { MPM.addPass(RustPass(Merge, speed(Level))); });
  PB.registerFullLinkTimeOptimizationEarlyEPCallback(
      [](ModulePassManager &MPM, OptimizationLevel Level) { MPM.addPass(RustPass(Merge, speed(Level))); });
  PB.registerOptimizerLastEPCallback(
      [](ModulePassManager &MPM, OptimizationLevel Level, auto...) { MPM.addPass(RustPass(Effects, speed(Level))); });
  PB.registerPipelineParsingCallback(
      [](StringRef Name, ModulePassManager &MPM, ArrayRef<PassBuilder::PipelineElement>) {
        StringRef Base = Name, Parameters;
        bool Parametrised = Name.ends_with(">") && Name.contains('<');
        if (Parametrised) {
          Base = Name.substr(0, Name.find('<'));
          Parameters = Name.substr(Base.size() + 1).drop_back();
        }
        int32_t Which = echo_sr_pass_kind(Base.data(), Base.size());
        if (Which < 0)
          return false;
        MPM.addPass(RustPass(static_cast<uint32_t>(Which), Parameters));
        return true;
      });
}

// The fields that PassPluginLibraryInfo has in every LLVM.
struct CommonInfo {
  uint32_t APIVersion;
  const char *PluginName;
  const char *PluginVersion;
  void (*RegisterPassBuilderCallbacks)(PassBuilder &);
};

StringRef text(const char *Data, size_t Length) { return StringRef(Data, Length); }

struct RustDiagnostic : DiagnosticInfo {
  StringRef Message;
  RustDiagnostic(StringRef Message, DiagnosticSeverity Severity)
      : DiagnosticInfo(pluginKind(), Severity), Message(Message) {}
  void print(DiagnosticPrinter &Printer) const override { Printer << Message; }
  static int pluginKind() {
    static const int Kind = getNextAvailablePluginDiagnosticKind();
    return Kind;
  }
};

DiagnosticSeverity severity(uint32_t Number) {
  return Number == 0 ? DS_Error : Number == 1 ? DS_Warning : DS_Note;
}

} // namespace

extern "C" {

// Fills the memory in which the loader expects its PassPluginLibraryInfo. The loader checks APIVersion before anything else.
void *echo_sr_shim_fill_info(void *Out, const char *Name, const char *Version) {
  PassPluginLibraryInfo *Info = new (Out) PassPluginLibraryInfo();
  Info->APIVersion = LLVM_PLUGIN_API_VERSION;
  Info->PluginName = Name;
  Info->PluginVersion = Version;
  Info->RegisterPassBuilderCallbacks = registerCallbacks;
  return Out;
}

// The same for a loader of another LLVM, whose struct may be shorter: an API version that no loader accepts.
void *echo_sr_shim_refuse_info(void *Out, const char *Name, const char *Version) {
  new (Out) CommonInfo{0, Name, Version, nullptr};
  return Out;
}

// Severity: 0 error, 1 warning, 2 note.
void echo_sr_shim_diagnose(LLVMModuleRef M, uint32_t Severity, const char *Data, size_t Length) {
  unwrap(M)->getContext().diagnose(RustDiagnostic(text(Data, Length), severity(Severity)));
}

// A piece of a remark: its key in the optimization record, and its text. diagnostics.rs has the same.
struct EchoPiece {
  const char *Key;
  size_t KeyLength;
  const char *Text;
  size_t Length;
};

// A remark of pass "echo-sr" on a function, at the place of an instruction (of that function or of a copy of it). Kind: 0 passed,
// 1 missed, 2 analysis.
void echo_sr_shim_remark(LLVMValueRef Function, LLVMValueRef At, uint32_t Kind, const char *Name, size_t NameLength,
                         const EchoPiece *Pieces, size_t Count) {
  auto *Of = cast<llvm::Function>(unwrap(Function));
  DiagnosticLocation Where(cast<Instruction>(unwrap(At))->getDebugLoc());
  const BasicBlock *Region = &Of->getEntryBlock();
  OptimizationRemarkEmitter Emitter(Of);
  StringRef Title = text(Name, NameLength);
  auto Tell = [&](auto Remark) {
    for (const EchoPiece &Piece : ArrayRef(Pieces, Count))
      Remark << DiagnosticInfoOptimizationBase::Argument(text(Piece.Key, Piece.KeyLength), text(Piece.Text, Piece.Length));
    return Remark;
  };
  if (Kind == 0)
    Emitter.emit([&] { return Tell(OptimizationRemark("echo-sr", Title, Where, Region)); });
  else if (Kind == 1)
    Emitter.emit([&] { return Tell(OptimizationRemarkMissed("echo-sr", Title, Where, Region)); });
  else
    Emitter.emit([&] { return Tell(OptimizationRemarkAnalysis("echo-sr", Title, Where, Region)); });
}

// Memory that a call may touch. Bits: 1 reads and 2 writes through its arguments, 4 touches memory that it got in another way (memory
// that no program can reach, "inaccessible", left out), 8 writes any memory that it got in another way, inaccessible included.
uint32_t echo_sr_shim_call_memory(LLVMValueRef Call) {
  MemoryEffects Effects = cast<CallBase>(unwrap(Call))->getMemoryEffects();
  ModRefInfo Arguments = Effects.getModRef(IRMemLocation::ArgMem);
  MemoryEffects Rest = Effects.getWithoutLoc(IRMemLocation::ArgMem);
  MemoryEffects Elsewhere = Rest.getWithoutLoc(IRMemLocation::InaccessibleMem);
  return (isRefSet(Arguments) ? 1 : 0) | (isModSet(Arguments) ? 2 : 0) | (Elsewhere.doesNotAccessMemory() ? 0 : 4) |
         (Rest.onlyReadsMemory() ? 0 : 8);
}

// What a call does with its argument. Bits: 1 may read through it, 2 may write through it, 4 may capture it, 8 passed as a copy (byval).
uint32_t echo_sr_shim_call_argument(LLVMValueRef Call, uint32_t Index) {
  auto *Base = cast<CallBase>(unwrap(Call));
  return (Base->onlyWritesMemory(Index) ? 0 : 1) | (Base->onlyReadsMemory(Index) ? 0 : 2) |
         (Base->doesNotCapture(Index) ? 0 : 4) | (Base->isByValArgument(Index) ? 8 : 0);
}

// Size in bytes of the copy that a byval parameter is; all ones where the parameter is not byval.
uint64_t echo_sr_shim_byval_size(LLVMValueRef Function, uint32_t Index) {
  auto *F = cast<llvm::Function>(unwrap(Function));
  Type *Copied = F->getParamByValType(Index);
  return Copied ? F->getParent()->getDataLayout().getTypeAllocSize(Copied).getFixedValue() : UINT64_MAX;
}

// An invoke becomes a call followed by a branch to its normal block; returns the call. The invoke is gone.
LLVMValueRef echo_sr_shim_change_to_call(LLVMValueRef Invoke) { return wrap(changeToCall(cast<InvokeInst>(unwrap(Invoke)))); }

// From now on Inst runs only where Condition is false. Returns the terminator of the block that control passes otherwise; both ways meet
// behind Inst. `echo_sr_shim_join` says what stands for Inst's result on the other way.
LLVMValueRef echo_sr_shim_guard(LLVMValueRef Inst, LLVMValueRef Condition) {
  auto *Guarded = cast<Instruction>(unwrap(Inst));
  auto Split = [](Instruction *First, const char *Name) {
    return SplitBlock(First->getParent(), First->getIterator(), static_cast<DominatorTree *>(nullptr), nullptr, nullptr, Name);
  };
  BasicBlock *Head = Guarded->getParent(), *Own = Split(Guarded, "echo.own"), *Join;
  IRBuilder<> Builder(Own);
  Builder.SetCurrentDebugLocation(Guarded->getDebugLoc());
  if (auto *Call = dyn_cast<InvokeInst>(Guarded)) {
    BasicBlock *Normal = Call->getNormalDest();
    Join = BasicBlock::Create(Head->getContext(), "echo.join", Head->getParent(), Normal);
    Builder.SetInsertPoint(Join);
    Builder.CreateBr(Normal);
    Call->setNormalDest(Join);
    Normal->replacePhiUsesWith(Own, Join);
  } else {
    Join = Split(Guarded->getNextNode(), "echo.join");
  }
  BasicBlock *Other = BasicBlock::Create(Head->getContext(), "echo.merged", Head->getParent(), Own);
  Builder.SetInsertPoint(Other);
  Instruction *End = Builder.CreateBr(Join);
  Instruction *Before = Head->getTerminator();
  Builder.SetInsertPoint(Before);
  Builder.CreateCondBr(unwrap(Condition), Other, Own);
  Before->eraseFromParent();
  return wrap(End);
}

// Who used the result of Inst, which `echo_sr_shim_guard` guarded, uses it where Inst ran and Value where control came by End.
void echo_sr_shim_join(LLVMValueRef Inst, LLVMValueRef End, LLVMValueRef Value) {
  auto *Guarded = cast<Instruction>(unwrap(Inst)), *Other = cast<Instruction>(unwrap(End));
  BasicBlock *Join = Other->getSuccessor(0);
  IRBuilder<> Builder(Join, Join->begin());
  Builder.SetCurrentDebugLocation(Guarded->getDebugLoc());
  PHINode *Both = Builder.CreatePHI(Guarded->getType(), 2);
  Guarded->replaceAllUsesWith(Both);
  Both->addIncoming(Guarded, Guarded->getParent());
  Both->addIncoming(unwrap(Value), Other->getParent());
}

// The attributes of the two functions allow the callee's body in the caller: LLVM's own rules, and the same target.
bool echo_sr_shim_may_inline(LLVMValueRef Caller, LLVMValueRef Callee) {
  auto *To = cast<Function>(unwrap(Caller)), *From = cast<Function>(unwrap(Callee));
  auto Same = [&](StringRef Name) { return To->getFnAttribute(Name) == From->getFnAttribute(Name); };
  return AttributeFuncs::areInlineCompatible(*To, *From) && Same("target-cpu") && Same("target-features");
}

// Name of the member that a part of a variable is: "buffers.h"; the variable's name if the part is no member.
static std::string partName(const DIVariable &Variable, const DIExpression &Expression) {
  std::string Name = Variable.getName().str();
  auto Part = Expression.getFragmentInfo();
  const DIType *Of = Variable.getType();
  uint64_t Offset = Part ? Part->OffsetInBits : 0;
  while (Part && Of) {
    if (auto *Derived = dyn_cast<DIDerivedType>(Of);
        Derived && (Derived->getTag() == dwarf::DW_TAG_typedef || Derived->getTag() == dwarf::DW_TAG_const_type)) {
      Of = Derived->getBaseType();
      continue;
    }
    auto *Structure = dyn_cast<DICompositeType>(Of);
    const DIDerivedType *Found = nullptr;
    for (const DINode *Element : Structure ? Structure->getElements() : DINodeArray())
      if (auto *Member = dyn_cast<DIDerivedType>(Element); Member && Member->getTag() == dwarf::DW_TAG_member && !Member->isStaticMember() &&
          Member->getOffsetInBits() <= Offset && Offset < Member->getOffsetInBits() + Member->getSizeInBits())
        Found = Member;
    if (!Found || Structure->getSizeInBits() == Part->SizeInBits)
      break;
    Name += "." + Found->getName().str();
    Offset -= Found->getOffsetInBits();
    Of = Found->getBaseType();
  }
  return Name;
}

// Calls Visit for each variable that a debug record next to the instruction binds: the value, whether it is the variable's address (else
// it is what the variable holds), the variable's name, and how many calls deep its function is inlined. (The C API has this since LLVM 20
// only, and a plugin that names its functions does not even load in 19.)
void echo_sr_shim_debug_variables(LLVMValueRef At,
                                  void (*Visit)(void *, LLVMValueRef, bool, const char *, size_t, size_t), void *Data) {
  for (DbgVariableRecord &Record : filterDbgVars(cast<Instruction>(unwrap(At))->getDbgRecordRange())) {
    size_t Depth = 0;
    for (const DILocation *Place = Record.getDebugLoc()->getInlinedAt(); Place; Place = Place->getInlinedAt())
      ++Depth;
    std::string Name = partName(*Record.getVariable(), *Record.getExpression());
    auto Tell = [&](Value *Bound, bool IsAddress) {
      if (Bound)
        Visit(Data, wrap(Bound), IsAddress, Name.data(), Name.size(), Depth);
    };
    if (Record.isDbgAssign())
      Tell(Record.getAddress(), true);
    if (Record.getNumVariableLocationOps() != 0)
      Tell(Record.getVariableLocationOp(0), Record.isDbgDeclare() || Record.getExpression()->startsWithDeref());
  }
}

// A copy of a function that nobody calls.
LLVMValueRef echo_sr_shim_clone(LLVMValueRef Function) {
  ValueToValueMapTy Map;
  llvm::Function *Copy = CloneFunction(cast<llvm::Function>(unwrap(Function)), Map);
  Copy->setComdat(nullptr);
  Copy->setLinkage(GlobalValue::InternalLinkage);
  Copy->setName("echo-sr.scratch");
  return wrap(Copy);
}

// Puts the callee's body in place of a call, if LLVM can; else says why it can't.
bool echo_sr_shim_inline(LLVMValueRef Call, void (*Why)(void *, const char *, size_t), void *Data) {
  auto *Base = cast<CallBase>(unwrap(Call));
  Function *Callee = Base->getCalledFunction();
  InlineResult Result = Callee && !Callee->isDeclaration() ? isInlineViable(*Callee) : InlineResult::failure("not defined here");
  if (Result.isSuccess()) {
    InlineFunctionInfo Info;
    Result = InlineFunction(*Base, Info, /*MergeAttributes=*/true);
  }
  if (!Result.isSuccess()) {
    StringRef Reason = Result.getFailureReason();
    Why(Data, Reason.data(), Reason.size());
  }
  return Result.isSuccess();
}

// Runs function passes, named as for opt, on one function.
void echo_sr_shim_simplify(LLVMValueRef Function, const char *Passes, size_t Length) {
  PassBuilder Builder;
  LoopAnalysisManager Loops;
  FunctionAnalysisManager Functions;
  CGSCCAnalysisManager Components;
  ModuleAnalysisManager Modules;
  Builder.registerModuleAnalyses(Modules);
  Builder.registerCGSCCAnalyses(Components);
  Builder.registerFunctionAnalyses(Functions);
  Builder.registerLoopAnalyses(Loops);
  Builder.crossRegisterProxies(Loops, Functions, Components, Modules);
  FunctionPassManager Pipeline;
  cantFail(Builder.parsePassPipeline(Pipeline, text(Passes, Length)));
  Pipeline.run(*cast<llvm::Function>(unwrap(Function)), Functions);
}

// Tells debuggers that a part of a variable is in another variable now.
void echo_sr_shim_describe_part(LLVMValueRef Whole, LLVMValueRef Part, uint64_t Offset, uint64_t Size) {
  auto *From = cast<AllocaInst>(unwrap(Whole)), *To = cast<AllocaInst>(unwrap(Part));
  SmallVector<DbgVariableRecord *> Known(at::getDVRAssignmentMarkers(From));
  for (DbgVariableRecord *Declaration : findDVRDeclares(From))
    Known.push_back(Declaration);
  for (DbgVariableRecord *Record : Known) {
    DIExpression *Address = DIExpression::get(To->getContext(), {dwarf::DW_OP_deref});
    auto Fragment = DIExpression::createFragmentExpression(Address, Offset * 8, Size * 8);
    if (Record->getExpression()->getFragmentInfo() || !Fragment)
      continue;
    auto *Described = DbgVariableRecord::createDbgVariableRecord(To, Record->getVariable(), *Fragment, Record->getDebugLoc());
    To->getParent()->insertDbgRecordBefore(Described, std::next(To->getIterator()));
    return;
  }
}

// Makes constant expressions of a global variable instructions, in one function.
void echo_sr_shim_expand_constants(LLVMValueRef Global, LLVMValueRef Function) {
  Constant *Variable = cast<GlobalVariable>(unwrap(Global));
  convertUsersOfConstantsToInstructions({Variable}, cast<llvm::Function>(unwrap(Function)));
}

// Makes a local variable of a global one, for one function: initialised where the function starts, with the same name for debuggers.
// Calls are no tail calls any more: those touch no local variable of their caller.
void echo_sr_shim_make_local(LLVMValueRef Global, LLVMValueRef Function) {
  auto *Variable = cast<GlobalVariable>(unwrap(Global));
  auto *F = cast<llvm::Function>(unwrap(Function));
  IRBuilder<> Builder(&F->getEntryBlock(), F->getEntryBlock().getFirstInsertionPt());
  AllocaInst *Local = Builder.CreateAlloca(Variable->getValueType(), nullptr, Variable->getName());
  Local->setAlignment(std::max(Local->getAlign(), Variable->getAlign().valueOrOne()));
  Builder.CreateAlignedStore(Variable->getInitializer(), Local, Local->getAlign());
  Variable->replaceUsesWithIf(Local, [&](Use &Use) {
    auto *User = dyn_cast<Instruction>(Use.getUser());
    return User && User->getFunction() == F;
  });
  for (Instruction &I : instructions(F))
    if (auto *Call = dyn_cast<CallInst>(&I); Call && Call->getTailCallKind() == CallInst::TCK_Tail)
      Call->setTailCallKind(CallInst::TCK_None);
  SmallVector<DIGlobalVariableExpression *, 1> Known;
  Variable->getDebugInfo(Known);
  if (DISubprogram *Scope = F->getSubprogram(); Scope && !Known.empty()) {
    DIGlobalVariable *Name = Known.front()->getVariable();
    DIBuilder Debug(*F->getParent(), /*AllowUnresolved=*/false, Scope->getUnit());
    DILocalVariable *Entry = Debug.createAutoVariable(Scope, Name->getName(), Name->getFile(), Name->getLine(),
                                                      cast_or_null<DIType>(Name->getType()));
    DILocation *Place = DILocation::get(F->getContext(), 0, 0, Scope);
#if LLVM_VERSION_MAJOR >= 20
    auto Before = Builder.GetInsertPoint();
#else
    Instruction *Before = &*Builder.GetInsertPoint();
#endif
    Debug.insertDeclare(Local, Entry, Debug.createExpression(), Place, Before);
  }
}

// Whether the first instruction stands before the second in their block. (LLVM numbers a block's instructions the first time it is asked.)
bool echo_sr_shim_comes_before(LLVMValueRef First, LLVMValueRef Second) {
  return cast<Instruction>(unwrap(First))->comesBefore(cast<Instruction>(unwrap(Second)));
}

// Adds a constant to llvm.used.
void echo_sr_shim_keep(LLVMModuleRef M, LLVMValueRef Global) {
  appendToUsed(*unwrap(M), {cast<GlobalValue>(unwrap(Global))});
}

} // extern "C"
