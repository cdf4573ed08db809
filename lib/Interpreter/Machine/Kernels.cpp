//===- Kernels.cpp - runs kernels on strided memory ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A machine for the code that kernels are made of. Each SSA value has a slot;
// an op becomes a step on slots, a region a list of steps. Every load and store
// is checked: inside of its window, and written before it is read. A kernel's
// memref type is what its compiled code relies on, so its windows must have the
// extents and strides that the type states.
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Machine/Kernels.h"
#include "Interpreter/Ops/Evaluators.h"
#include "Plan/Plan.h"
#include "Schedule/Schedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

using Step = Kernel::Step;
using Kind = Step::Kind;

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

int Kernel::define(Value value) {
  if (isa<MemRefType>(value.getType())) {
    memrefs.push_back({});
    return slotOf[value] = memrefs.size() - 1;
  }
  scalars.slots.push_back(Scalar{});
  return slotOf[value] = scalars.slots.size() - 1;
}

LogicalResult Kernel::use(Operation *op, ValueRange values,
                          SmallVectorImpl<int> &in) {
  for (Value value : values) {
    auto found = slotOf.find(value);
    if (found == slotOf.end() || isa<MemRefType>(value.getType()))
      return op->emitError()
             << "the interpreter has no rule for an operand of type "
             << value.getType() << " in a kernel";
    in.push_back(found->second);
  }
  return success();
}

LogicalResult Kernel::useMemref(Operation *op, Value value, int &memref) {
  auto found = slotOf.find(value);
  if (found == slotOf.end() || !isa<MemRefType>(value.getType()))
    return op->emitError()
           << "the interpreter has no rule for an operand of type "
           << value.getType() << " in a kernel";
  memref = found->second;
  return success();
}

FailureOr<Step> Kernel::compile(Operation *op) {
  Step step;
  step.kind = Kind::Scalar;
  step.op = op;
  auto done = [&](LogicalResult result) -> FailureOr<Step> {
    if (failed(result))
      return failure();
    for (Value result : op->getResults())
      step.results.push_back(define(result));
    return std::move(step);
  };
  return TypeSwitch<Operation *, FailureOr<Step>>(op)
      .Case([&](memref::LoadOp load) {
        step.kind = Kind::Load;
        return done(
            success(succeeded(useMemref(op, load.getMemRef(), step.memref)) &&
                    succeeded(use(op, load.getIndices(), step.in))));
      })
      .Case([&](memref::StoreOp store) {
        step.kind = Kind::Store;
        return done(
            success(succeeded(useMemref(op, store.getMemRef(), step.memref)) &&
                    succeeded(use(op, store.getValue(), step.in)) &&
                    succeeded(use(op, store.getIndices(), step.in))));
      })
      .Case([&](memref::DimOp dim) {
        step.kind = Kind::Dim;
        return done(
            success(succeeded(useMemref(op, dim.getSource(), step.memref)) &&
                    succeeded(use(op, dim.getIndex(), step.in))));
      })
      .Case([&](scf::ForOp loop) -> FailureOr<Step> {
        step.kind = Kind::For;
        if (failed(use(op, op->getOperands(), step.in)))
          return failure();
        for (BlockArgument argument : loop.getBody()->getArguments())
          step.carried.push_back(define(argument));
        return done(compile(*loop.getBody(), step.body));
      })
      .Case([&](scf::ParallelOp loop) -> FailureOr<Step> {
        step.kind = Kind::Parallel;
        if (failed(use(op, op->getOperands(), step.in)))
          return failure();
        for (Value index : loop.getInductionVars())
          step.carried.push_back(define(index));
        if (failed(compile(*loop.getBody(), step.body)))
          return failure();
        auto reduce = cast<scf::ReduceOp>(loop.getBody()->getTerminator());
        for (Region &region : reduce.getReductions()) {
          if (failed(compile(region, step.functors.emplace_back())))
            return failure();
        }
        return done(success());
      })
      .Case([&](scf::IfOp branch) -> FailureOr<Step> {
        step.kind = Kind::If;
        if (failed(use(op, branch.getCondition(), step.in)) ||
            failed(compile(*branch.thenBlock(), step.body)))
          return failure();
        return done(branch.elseBlock()
                        ? compile(*branch.elseBlock(), step.otherwise)
                        : success());
      })
      .Case([&](plan::AttentionOp attention) -> FailureOr<Step> {
        step.kind = Kind::Attention;
        return done(useAttention(
            op,
            {attention.getQuery(), attention.getKey(), attention.getValue(),
             attention.getResult(), attention.getLse(), attention.getStep(),
             attention.getTiles(), attention.getPages()},
            {attention.getSeed(), attention.getStream()}, step));
      })
      .Case([&](plan::AttentionGradOp attention) -> FailureOr<Step> {
        step.kind = Kind::AttentionGrad;
        SmallVector<Value> tensors = {
            attention.getGrad(),      attention.getQuery(),
            attention.getKey(),       attention.getValue(),
            attention.getOutput(),    attention.getLse(),
            attention.getQueryGrad(), attention.getKeyGrad(),
            attention.getValueGrad(), attention.getScratch()};
        llvm::append_range(tensors, attention.getSums());
        tensors.append({attention.getLseGrad(), attention.getStep(),
                        attention.getKeyGradOfHeads(),
                        attention.getValueGradOfHeads(), attention.getTiles()});
        return done(useAttention(
            op, tensors, {attention.getSeed(), attention.getStream()}, step));
      })
      .Case([&](plan::BlockWalksOp walks) {
        // An order, of which no score depends.
        step.kind = Kind::Zeros;
        return done(useMemref(op, walks.getWalks(), step.memref));
      })
      .Case([&](plan::RandomOp random) {
        step.kind = Kind::Random;
        return done(use(op, random->getOperands(), step.in));
      })
      .Case([&](schedule::OneHotOp) {
        step.kind = Kind::OneHot;
        return done(use(op, op->getOperands(), step.in));
      })
      .Case([&](schedule::PairsOp) {
        step.kind = Kind::Pairs;
        return done(use(op, op->getOperands(), step.in));
      })
      .Case([&](plan::ProductOp product) -> FailureOr<Step> {
        step.kind = Kind::Product;
        for (Value tensor : op->getOperands())
          if (failed(useMemref(op, tensor, step.tensors.emplace_back())))
            return failure();
        if (failed(
                compile(product.getEpilogue(), step.functors.emplace_back())))
          return failure();
        return std::move(step);
      })
      .Default([&](Operation *op) -> FailureOr<Step> {
        std::optional<ScalarProgram::Step> scalar;
        if (isa<arith::ArithDialect, math::MathDialect>(op->getDialect()))
          scalar = ScalarProgram::stepOf(*op);
        if (!scalar)
          return op->emitError() << "the interpreter has no rule for '"
                                 << op->getName() << "' in a kernel";
        step.scalar = std::move(*scalar);
        if (failed(use(op, op->getOperands(), step.scalar.in)))
          return failure();
        step.scalar.out = define(op->getResult(0));
        return std::move(step);
      });
}

LogicalResult Kernel::compile(Block &block, Code &code) {
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>())
      return use(&op, op.getOperands(), code.yields);
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      if (!isa<FloatAttr, IntegerAttr>(constant.getValue()))
        return op.emitError() << "the interpreter has no rule for a constant "
                                 "that is no scalar in a kernel";
      int slot = define(constant);
      scalars.slots[slot] = scalarOf(constant.getValue());
      continue;
    }
    FailureOr<Step> step = compile(&op);
    if (failed(step))
      return failure();
    code.steps.push_back(std::move(*step));
  }
  return success();
}

LogicalResult Kernel::compile(Region &region, Functor &functor) {
  if (region.empty())
    return success();
  for (BlockArgument argument : region.getArguments())
    functor.arguments.push_back(define(argument));
  return compile(region.front(), functor.code);
}

std::unique_ptr<Kernel> Kernel::compile(func::FuncOp function) {
  if (!function.getBody().hasOneBlock()) {
    mlir::emitError(function.getLoc())
        << "the interpreter runs kernels of one block only";
    return nullptr;
  }
  auto kernel = std::unique_ptr<Kernel>(new Kernel(function));
  for (BlockArgument argument : function.getArguments())
    kernel->define(argument);
  if (failed(kernel->compile(function.getBody().front(), kernel->code)))
    return nullptr;
  return kernel;
}

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

bool Kernel::fail(const Step &step, const Twine &message) {
  step.op->emitOpError() << message << " on rank " << rank << ", in kernel @"
                         << function.getName();
  return false;
}

static Index gather(ArrayRef<int> slots, ArrayRef<Scalar> values) {
  Index index;
  for (int slot : slots)
    index.push_back(values[slot].whole);
  return index;
}

bool Kernel::run(const Code &code) {
  for (const Step &step : code.steps)
    if (!run(step))
      return false;
  return true;
}

/// At once, for what is yielded may be among what it replaces.
void Kernel::assign(ArrayRef<int> to, ArrayRef<int> from) {
  SmallVector<Scalar, 4> values;
  for (int slot : from)
    values.push_back(scalars.slots[slot]);
  for (auto [slot, value] : llvm::zip_equal(to, values))
    scalars.slots[slot] = value;
}

/// In sequential order.
bool Kernel::runParallel(const Step &step) {
  size_t rank = step.carried.size();
  Index lower = gather(ArrayRef(step.in).take_front(rank), scalars.slots);
  Index upper = gather(ArrayRef(step.in).slice(rank, rank), scalars.slots);
  Index by = gather(ArrayRef(step.in).slice(2 * rank, rank), scalars.slots);
  Shape trips;
  for (size_t d = 0; d < rank; ++d) {
    if (by[d] <= 0)
      return fail(step, "has a step of " + Twine(by[d]));
    trips.push_back(std::max<int64_t>(0, upper[d] - lower[d] + by[d] - 1) /
                    by[d]);
  }
  assign(step.results, ArrayRef(step.in).drop_front(3 * rank));
  for (int64_t i = 0, e = numElements(trips); i < e; ++i) {
    for (auto [d, trip] : llvm::enumerate(delinearize(i, trips)))
      scalars.slots[step.carried[d]] = whole(lower[d] + trip * by[d]);
    if (!run(step.body))
      return false;
    for (auto [n, combiner] : llvm::enumerate(step.functors)) {
      assign(combiner.arguments, {step.results[n], step.body.yields[n]});
      if (!run(combiner.code))
        return false;
      assign(step.results[n], combiner.code.yields);
    }
  }
  return true;
}

bool Kernel::read(const Step &step, int memref, ArrayRef<int64_t> index,
                  Scalar &value) {
  const Window &window = memrefs[memref];
  std::optional<int64_t> at = window.find(index);
  if (!at)
    return fail(step, "reads element " + indexText(index) +
                          " of memory of shape " + indexText(window.shape));
  if (!window.memory->written[*at])
    return fail(step, "reads element " + indexText(index) +
                          ", which was never written,");
  value = window.memory->data[*at];
  // The kernel may have another integer type than the tensor: u32 and i32.
  if (step.kind == Kind::Load)
    if (Type type = step.op->getResult(0).getType(); !isFloat(type))
      value.whole = wrapTo(value.whole, type);
  return true;
}

bool Kernel::write(const Step &step, int memref, ArrayRef<int64_t> index,
                   Scalar value) {
  Window &window = memrefs[memref];
  std::optional<int64_t> at = window.find(index);
  if (!at)
    return fail(step, "writes element " + indexText(index) +
                          " of memory of shape " + indexText(window.shape));
  Memory &memory = *window.memory;
  if (!isFloat(memory.type))
    value.whole = wrapTo(value.whole, memory.type);
  memory.data[*at] = value;
  memory.written[*at] = true;
  return true;
}

std::optional<Scalar> Kernel::call(const Functor &functor,
                                   ArrayRef<Scalar> arguments) {
  for (auto [slot, value] : llvm::zip_equal(functor.arguments, arguments))
    scalars.slots[slot] = value;
  if (!run(functor.code))
    return std::nullopt;
  return scalars.slots[functor.code.yields.front()];
}

bool Kernel::writeReal(const Step &step, int memref, ArrayRef<int64_t> index,
                       double value) {
  if (scalarRun.roundScalars)
    value = roundTo(value, memrefs[memref].memory->type);
  return write(step, memref, index, real(value));
}

/// By its definition, an element after the other.
bool Kernel::runProduct(const Step &step) {
  const int a = step.tensors[0], b = step.tensors[1];
  ArrayRef<int> results = ArrayRef(step.tensors).drop_front(2);
  const Shape &shape = memrefs[results[0]].shape;
  const int64_t terms = memrefs[a].shape.back();
  const Functor &epilogue = step.functors.front();
  for (int64_t i = 0, e = numElements(shape); i < e; ++i) {
    Index at = delinearize(i, shape), row(at), column(at);
    column.erase(column.end() - 2);
    if (memrefs[b].shape.size() < shape.size())
      column.erase(column.begin());
    column.push_back(0);
    double sum = 0;
    for (int64_t term = 0; term < terms; ++term) {
      row.back() = column.back() = term;
      Scalar x, y;
      if (!read(step, a, row, x) || !read(step, b, column, y))
        return false;
      sum += x.real * y.real;
    }
    if (scalarRun.roundScalars)
      sum = roundTo(sum, Float32Type::get(step.op->getContext()));
    SmallVector<Scalar> values = {real(sum)};
    if (!epilogue.arguments.empty()) {
      for (int64_t index : at)
        values.push_back(whole(index));
      if (!call(epilogue, values))
        return false;
      values.clear();
      for (int slot : epilogue.code.yields)
        values.push_back(scalars.slots[slot]);
    }
    for (auto [result, value] : llvm::zip_equal(results, values))
      if (!writeReal(step, result, at, value.real))
        return false;
  }
  return true;
}

bool Kernel::run(const Step &step) {
  std::vector<Scalar> &slots = scalars.slots;
  switch (step.kind) {
  case Kind::Scalar: {
    step.scalar.apply(scalars, step.scalar);
    if (scalarRun.roundScalars && isFloat(step.scalar.outType)) {
      double &value = slots[step.scalar.out].real;
      value = roundTo(value, step.scalar.outType);
    }
    return true;
  }
  case Kind::Load:
    return read(step, step.memref, gather(step.in, slots),
                slots[step.results[0]]);
  case Kind::Store:
    return write(step, step.memref,
                 gather(ArrayRef(step.in).drop_front(), slots),
                 slots[step.in[0]]);
  case Kind::Dim: {
    const Shape &shape = memrefs[step.memref].shape;
    int64_t dim = slots[step.in[0]].whole;
    if (dim < 0 || dim >= static_cast<int64_t>(shape.size()))
      return fail(step, "asks for dimension " + Twine(dim) + " of " +
                            Twine(shape.size()));
    slots[step.results[0]] = whole(shape[dim]);
    return true;
  }
  case Kind::For: {
    int64_t lower = slots[step.in[0]].whole, upper = slots[step.in[1]].whole,
            by = slots[step.in[2]].whole;
    if (by <= 0)
      return fail(step, "has a step of " + Twine(by));
    ArrayRef<int> carried = ArrayRef(step.carried).drop_front();
    assign(carried, ArrayRef(step.in).drop_front(3));
    for (int64_t i = lower; i < upper; i += by) {
      slots[step.carried[0]] = whole(i);
      if (!run(step.body))
        return false;
      assign(carried, step.body.yields);
    }
    assign(step.results, carried);
    return true;
  }
  case Kind::Parallel:
    return runParallel(step);
  case Kind::Attention:
    return runAttention(step);
  case Kind::AttentionGrad:
    return runAttentionGrad(step);
  case Kind::Random: {
    slots[step.results[0]] = real(randomNumber(
        slots[step.in[1]].whole, slots[step.in[2]].whole,
        slots[step.in[0]].whole, cast<plan::RandomOp>(step.op).getBits()));
    return true;
  }
  case Kind::Product:
    return runProduct(step);
  case Kind::OneHot: {
    auto op = cast<schedule::OneHotOp>(step.op);
    const bool isHot =
        wrapTo(slots[step.in[1]].whole, op.getOther().getType()) ==
        slots[step.in[2]].whole;
    slots[step.results[0]] = isHot ? slots[step.in[0]] : real(0);
    return true;
  }
  case Kind::Pairs:
    slots[step.results[0]] = slots[step.in[0]];
    return true;
  case Kind::Zeros: {
    const Shape shape = memrefs[step.memref].shape;
    for (int64_t i = 0, e = numElements(shape); i < e; ++i)
      if (!write(step, step.memref, delinearize(i, shape), whole(0)))
        return false;
    return true;
  }
  case Kind::If: {
    const Code &taken = slots[step.in[0]].whole ? step.body : step.otherwise;
    if (!run(taken))
      return false;
    assign(step.results, taken.yields);
    return true;
  }
  }
  llvm_unreachable("all kinds are covered");
}

/// Whether a window is what the kernel's code takes it for.
static bool fits(const Window &window, MemRefType type) {
  int64_t offset;
  SmallVector<int64_t> strides;
  if (type.getRank() != static_cast<int64_t>(window.shape.size()) ||
      failed(type.getStridesAndOffset(strides, offset)) ||
      (!ShapedType::isDynamic(offset) && offset != window.offset))
    return false;
  for (size_t d = 0; d < strides.size(); ++d) {
    if (!type.isDynamicDim(d) && type.getDimSize(d) != window.shape[d])
      return false;
    if (!ShapedType::isDynamic(strides[d]) && window.shape[d] > 1 &&
        strides[d] != window.strides[d])
      return false;
  }
  return true;
}

LogicalResult Kernel::run(ArrayRef<Window> tensors, ArrayRef<int64_t> numbers,
                          int64_t rank, bool roundValues) {
  this->rank = rank;
  scalarRun.roundScalars = roundValues;
  scalars.run = &scalarRun;
  for (auto [i, argument] : llvm::enumerate(function.getArguments())) {
    int slot = slotOf[argument];
    auto type = dyn_cast<MemRefType>(argument.getType());
    if (bool(type) != (i < tensors.size()))
      return mlir::emitError(function.getLoc())
             << "kernel @" << function.getName() << " gets "
             << (i < tensors.size() ? "a tensor" : "a scalar")
             << " for argument #" << i << ", of type " << argument.getType();
    if (!type) {
      scalars.slots[slot] =
          whole(wrapTo(numbers[i - tensors.size()], argument.getType()));
      continue;
    }
    if (!fits(tensors[i], type))
      return mlir::emitError(function.getLoc())
             << "argument #" << i << " of kernel @" << function.getName()
             << " on rank " << rank << " has shape "
             << indexText(tensors[i].shape) << " and strides "
             << indexText(tensors[i].strides) << ", not as " << type;
    memrefs[slot] = tensors[i];
  }
  return success(run(code));
}
