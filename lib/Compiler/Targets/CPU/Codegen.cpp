//===- Codegen.cpp - kernels to machine code ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loops over memrefs go through MLIR's conversions to LLVM IR, LLVM's optimizer
// at O3, and lld; parallel ones run in order. Functions that are not made
// arithmetic before (ExpandMath) are calls into libm, which the object names as
// its one dependency; its symbols are resolved when it is loaded, so no libm is
// needed here.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CPU/Codegen.h"
#include "Compiler/Targets/CPU/ExpandMath.h"
#include "Plan/InPlace.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"

#include "lld/Common/Driver.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace mlir;
using namespace tessera;

//===----------------------------------------------------------------------===//
// To LLVM IR
//===----------------------------------------------------------------------===//

/// For each kernel `k` a function `k(void **args)` that calls the C interface
/// of the lowered `k`, whose arguments are pointers to descriptors and i64s.
static void addEntryPoints(ModuleOp module, ArrayRef<std::string> names) {
  OpBuilder b(module.getContext());
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  for (const std::string &name : names) {
    auto callee =
        module.lookupSymbol<LLVM::LLVMFuncOp>("_mlir_ciface_kernel_" + name);
    Location loc = callee.getLoc();
    b.setInsertionPointToEnd(module.getBody());
    auto entry = LLVM::LLVMFuncOp::create(
        b, loc, name,
        LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                    {pointer}));
    b.setInsertionPointToStart(entry.addEntryBlock(b));
    SmallVector<Value> arguments;
    for (auto [i, type] : llvm::enumerate(callee.getArgumentTypes())) {
      Value slot =
          LLVM::GEPOp::create(b, loc, pointer, pointer, entry.getArgument(0),
                              ArrayRef<LLVM::GEPArg>{int32_t(i)});
      Value argument = LLVM::LoadOp::create(b, loc, pointer, slot);
      if (!isa<LLVM::LLVMPointerType>(type))
        argument = LLVM::LoadOp::create(b, loc, type, argument);
      arguments.push_back(argument);
    }
    LLVM::CallOp::create(b, loc, callee, arguments);
    LLVM::ReturnOp::create(b, loc, ValueRange());
    // Only the entry points leave the object.
    for (std::string inner : {"kernel_" + name, "_mlir_ciface_kernel_" + name})
      module.lookupSymbol<LLVM::LLVMFuncOp>(inner).setLinkage(
          LLVM::Linkage::Internal);
  }
}

/// The places of the pointers through which a kernel writes, among the
/// arguments that it has once memrefs are taken apart.
static SmallVector<unsigned> getWrittenPointers(func::FuncOp kernel) {
  SmallVector<unsigned> places;
  unsigned next = 0;
  for (BlockArgument argument : kernel.getArguments()) {
    auto memref = dyn_cast<MemRefType>(argument.getType());
    if (!memref) {
      ++next;
      continue;
    }
    // Allocated, aligned, offset, sizes, strides.
    if (llvm::any_of(argument.getUsers(), llvm::IsaPred<memref::StoreOp>))
      places.push_back(next + 1);
    next += 3 + 2 * memref.getRank();
  }
  return places;
}

/// Puts what runs in order inside of a parallel loop around it, for the
/// innermost dimensions are those along memory.
static void interchangeLoops(ModuleOp module) {
  module.walk([](scf::ParallelOp parallel) {
    Block &body = *parallel.getBody();
    while (auto loop = dyn_cast<scf::ForOp>(body.front())) {
      bool isAll = &body.back() == loop->getNextNode();
      bool isFixed = llvm::all_of(loop->getOperands(), [&](Value bound) {
        return parallel.isDefinedOutsideOfLoop(bound);
      });
      if (!isAll || !isFixed || loop.getNumResults() ||
          parallel.getNumResults())
        return;
      Block &inner = *loop.getBody();
      loop->moveBefore(parallel);
      body.getOperations().splice(body.begin(), inner.getOperations(),
                                  inner.begin(), std::prev(inner.end()));
      parallel->moveBefore(inner.getTerminator());
    }
  });
}

/// Divides indices, which are not negative, as signed numbers. LLVM 22's loop
/// vectorizer gives wrong results where a loop has branches and divides,
/// unsigned, by what is known at run time.
static void signDivisions(ModuleOp module) {
  module.walk([](Operation *op) {
    if (!isa<arith::DivUIOp, arith::RemUIOp>(op) ||
        !op->getResult(0).getType().isIndex() ||
        matchPattern(op->getOperand(1), m_Constant()))
      return;
    OpBuilder b(op);
    Value x = op->getOperand(0), y = op->getOperand(1);
    Value result =
        isa<arith::DivUIOp>(op)
            ? arith::DivSIOp::create(b, op->getLoc(), x, y).getResult()
            : arith::RemSIOp::create(b, op->getLoc(), x, y).getResult();
    op->replaceAllUsesWith(ValueRange(result));
    op->erase();
  });
}

static LogicalResult lowerToLLVM(ModuleOp module) {
  expandMath(module);
  signDivisions(module);
  interchangeLoops(module);
  PassManager passes(module.getContext());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createLoopInvariantCodeMotionPass());
  passes.addPass(memref::createExpandStridedMetadataPass());
  passes.addPass(createLowerAffinePass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createConvertMathToLibmPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertIndexToLLVMPass());
  passes.addPass(createFinalizeMemRefToLLVMConversionPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  return passes.run(module);
}

//===----------------------------------------------------------------------===//
// To an object
//===----------------------------------------------------------------------===//

static std::unique_ptr<llvm::TargetMachine> createMachine() {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  llvm::TargetOptions options;
  // Products are not fused into sums unless the program says so.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, "x86-64-v3", "", options, llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive));
}

/// Makes loads and stores of bf16 those of its bits, with which kernels
/// compute. A value of type bf16 in between, such as a select, would be rounded
/// by a function of a newer libgcc than Debian 12's.
static void replaceBF16Memory(llvm::Module &module) {
  llvm::Type *bits = llvm::Type::getInt16Ty(module.getContext());
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction :
         llvm::make_early_inc_range(llvm::instructions(function))) {
      llvm::IRBuilder<> b(&instruction);
      if (auto *load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
          load && load->getType()->isBFloatTy()) {
        auto *loaded = b.CreateAlignedLoad(bits, load->getPointerOperand(),
                                           load->getAlign());
        loaded->copyMetadata(*load);
        for (llvm::User *user : llvm::make_early_inc_range(load->users()))
          if (auto *cast = llvm::dyn_cast<llvm::BitCastInst>(user);
              cast && cast->getType() == bits)
            cast->replaceAllUsesWith(loaded);
        if (!load->use_empty())
          load->replaceAllUsesWith(b.CreateBitCast(loaded, load->getType()));
      } else if (auto *store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
                 store && store->getValueOperand()->getType()->isBFloatTy()) {
        llvm::Value *value = store->getValueOperand();
        auto *cast = llvm::dyn_cast<llvm::BitCastInst>(value);
        value = cast && cast->getSrcTy() == bits ? cast->getOperand(0)
                                                 : b.CreateBitCast(value, bits);
        auto *stored = b.CreateAlignedStore(value, store->getPointerOperand(),
                                            store->getAlign());
        stored->copyMetadata(*store);
        store->eraseFromParent();
      }
    }
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  replaceBF16Memory(module);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager cgscc;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = true;
  tuning.LoopUnrolling = true;
  llvm::PassBuilder passes(&machine, tuning);
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(cgscc);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, cgscc, modules);
  passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(module, modules);
}

static FailureOr<std::string> emitCode(llvm::Module &module,
                                       llvm::TargetMachine &machine,
                                       llvm::CodeGenFileType type) {
  llvm::SmallVector<char> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type))
    return failure();
  passes.run(module);
  return std::string(bytes.data(), bytes.size());
}

//===----------------------------------------------------------------------===//
// To a shared object
//===----------------------------------------------------------------------===//

namespace {
/// Files that vanish with the object.
class TemporaryFiles {
public:
  ~TemporaryFiles() {
    for (const std::string &path : paths)
      llvm::sys::fs::remove(path);
  }
  /// A new file with these bytes, or an empty string.
  std::string create(StringRef suffix, StringRef bytes) {
    SmallString<128> path;
    int fd;
    if (llvm::sys::fs::createTemporaryFile("tessera", suffix, fd, path))
      return {};
    paths.push_back(path.str().str());
    llvm::raw_fd_ostream stream(fd, /*shouldClose=*/true);
    stream << bytes;
    stream.close();
    if (stream.has_error()) {
      stream.clear_error();
      return {};
    }
    return paths.back();
  }

private:
  SmallVector<std::string> paths;
};
} // namespace

/// Links an object; `error` gets what lld said.
static FailureOr<std::string>
link(StringRef object, llvm::TargetMachine &machine, std::string &error) {
  // Programs may compile in several threads, and lld keeps its state for all.
  static std::mutex linking;
  std::lock_guard<std::mutex> alone(linking);
  llvm::raw_string_ostream messages(error);
  auto run = [&](ArrayRef<const char *> arguments) {
    lld::Result result = lld::lldMain(arguments, messages, messages,
                                      {{lld::Gnu, &lld::elf::link}});
    return result.retCode == 0;
  };
  TemporaryFiles files;
  llvm::LLVMContext context;
  llvm::Module none("none", context);
  none.setTargetTriple(machine.getTargetTriple());
  none.setDataLayout(machine.createDataLayout());
  FailureOr<std::string> empty =
      emitCode(none, machine, llvm::CodeGenFileType::ObjectFile);
  if (failed(empty))
    return failure();
  // A stand-in for libm, so that the result names libm as a dependency.
  std::string emptyObject = files.create("o", *empty);
  std::string libm = files.create("so", ""), result = files.create("so", "");
  std::string kernels = files.create("o", object);
  if (emptyObject.empty() || libm.empty() || result.empty() ||
      kernels.empty()) {
    messages << "cannot write temporary files";
    return failure();
  }
  if (!run({"ld.lld", "-shared", "-soname", "libm.so.6", "-o", libm.c_str(),
            emptyObject.c_str()}) ||
      !run({"ld.lld", "-shared", "--no-as-needed", "-z", "undefs",
            "--gc-sections", "--hash-style=gnu", "-s", "-o", result.c_str(),
            kernels.c_str(), libm.c_str()}))
    return failure();
  auto bytes = llvm::MemoryBuffer::getFile(result);
  if (!bytes) {
    messages << "cannot read back what lld wrote";
    return failure();
  }
  return (*bytes)->getBuffer().str();
}

/// What tv-emit-kernels makes: loops over memory.
static LogicalResult verifyKernel(func::FuncOp kernel) {
  if (kernel.isExternal())
    return kernel.emitError() << "is a kernel without a body";
  auto isKnown = [](Type type) {
    return isa<MemRefType>(type) || type.isIntOrIndexOrFloat();
  };
  for (Type type : kernel.getArgumentTypes())
    if (!isKnown(type))
      return kernel.emitError() << "is a kernel with an argument of type "
                                << type << "; it may have memory and numbers";
  if (kernel.getNumResults() != 0)
    return kernel.emitError() << "is a kernel with results; it writes memory";
  WalkResult known = kernel.walk([&](Operation *op) {
    if (isa_and_present<arith::ArithDialect, math::MathDialect, scf::SCFDialect,
                        memref::MemRefDialect, func::FuncDialect,
                        plan::PlanDialect>(op->getDialect()) &&
        (op == kernel || !isa<func::FuncOp, func::CallOp>(op)) &&
        llvm::all_of(op->getResultTypes(), isKnown))
      return WalkResult::advance();
    op->emitError() << "'" << op->getName() << "' is no op of a kernel";
    return WalkResult::interrupt();
  });
  return failure(known.wasInterrupted());
}

FailureOr<std::string> cpu::compileKernels(ModuleOp program,
                                           KernelDumps *dumps) {
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(program.getLoc());
  OpBuilder b = OpBuilder::atBlockEnd(kernels->getBody());
  std::vector<std::string> names;
  std::vector<SmallVector<unsigned>> written;
  plan::InPlace inPlace;
  if (auto main = program.lookupSymbol<func::FuncOp>("main"))
    inPlace = plan::findInPlace(main);
  for (auto function : program.getOps<func::FuncOp>()) {
    if (!function->hasAttr(plan::kKernelAttr))
      continue;
    if (failed(verifyKernel(function)))
      return failure();
    names.push_back(function.getName().str());
    auto kernel = cast<func::FuncOp>(b.clone(*function));
    kernel.setName("kernel_" + names.back());
    kernel->removeAttr(plan::kKernelAttr);
    // By the one pointer, so that loops have no other to beware of.
    for (auto [out, in] : inPlace.kernels.lookup(names.back()))
      kernel.getArgument(out).replaceAllUsesWith(kernel.getArgument(in));
    written.push_back(getWrittenPointers(kernel));
    kernel->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                    b.getUnitAttr());
  }
  if (names.empty())
    return std::string();
  if (failed(lowerToLLVM(*kernels)))
    return program.emitError() << "kernels do not lower to LLVM IR";
  // No tensor that is written here shares memory with another that is touched.
  for (auto [name, places] : llvm::zip_equal(names, written))
    for (unsigned place : places)
      kernels->lookupSymbol<LLVM::LLVMFuncOp>("kernel_" + name)
          .setArgAttr(place, LLVM::LLVMDialect::getNoAliasAttrName(),
                      b.getUnitAttr());
  addEntryPoints(*kernels, names);

  registerBuiltinDialectTranslation(*program.getContext());
  registerLLVMDialectTranslation(*program.getContext());
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module =
      translateModuleToLLVMIR(*kernels, context, "kernels");
  std::unique_ptr<llvm::TargetMachine> machine = createMachine();
  if (!module || !machine)
    return program.emitError() << "kernels do not translate to LLVM IR";
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  // What the vectorizer and the code generator may use.
  for (llvm::Function &function : *module)
    if (!function.isDeclaration())
      function.addFnAttr("target-cpu", "x86-64-v3");
  optimize(*module, *machine);
  if (dumps) {
    llvm::raw_string_ostream stream(dumps->llvm);
    module->print(stream, nullptr);
    FailureOr<std::string> assembly =
        emitCode(*llvm::CloneModule(*module), *machine,
                 llvm::CodeGenFileType::AssemblyFile);
    if (succeeded(assembly))
      dumps->assembly = *assembly;
  }
  FailureOr<std::string> object =
      emitCode(*module, *machine, llvm::CodeGenFileType::ObjectFile);
  std::string error = "no code for x86-64";
  FailureOr<std::string> elf = failure();
  if (succeeded(object)) {
    error.clear();
    elf = link(*object, *machine, error);
  }
  if (failed(elf))
    return program.emitError() << "kernels do not become a library: " << error;
  return elf;
}
