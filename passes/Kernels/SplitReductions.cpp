//===- SplitReductions.cpp - reductions to few elements, in two steps -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block of threads makes elements of a reduction's result from all that they
// are made of (ScheduleRows.cpp). Few elements are few blocks, and leave most
// of a GPU idle: parts are reduced first, by blocks enough.
//
//===----------------------------------------------------------------------===//

#include "Kernels/BuildLocal.h"
#include "Kernels/Grouping.h"
#include "Kernels/Windows.h"
#include "Plan/Target.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;

namespace tessera {
#define GEN_PASS_DEF_SPLITREDUCTIONS
#include "Kernels/Passes.h.inc"
} // namespace tessera

namespace {
/// Fewer elements of all blocks, or of each, are not worth a second kernel.
constexpr int64_t kManyElements = 1 << 20, kManyOfBlock = 1 << 15;
/// A block keeps no more of a row, to read it again: a stage is worth less.
constexpr int64_t kKeptElements = 1 << 16;
/// As many blocks as a multiprocessor holds at a time: the last few of more
/// would keep but a few busy.
constexpr int64_t kBlocks = 4;
/// Of columns, a block has this much of each row.
constexpr int64_t kLineBits = 128 * 8;

/// A dimension to split into parts and the rest of each, which may be 1.
struct Split {
  LocalShape whole; ///< of the input, where reduced dimensions may be merged
  SmallVector<int64_t> dims; ///< the reduced ones of it
  bool isMerged;
  int64_t dim, rest;
  LocalShape shape; ///< both
};
} // namespace

/// How many parts of `size` there are to be: about `wanted`, rather fewer, else
/// more, else not much fewer; 0 if there is no such divisor.
static int64_t getParts(int64_t size, int64_t most, int64_t wanted) {
  auto find = [&](int64_t from, int64_t to) -> int64_t {
    for (int64_t parts = from; parts != to; parts += from < to ? 1 : -1)
      if (parts <= most && size % parts == 0)
        return parts;
    return 0;
  };
  if (int64_t parts = find(wanted, wanted / 2))
    return parts;
  if (int64_t parts = find(wanted, 16 * wanted + 1))
    return parts;
  return find(wanted / 2, wanted / 4);
}

/// Makes one of dimensions that lie side by side, whole on each device: it has
/// more divisors, and what counts through it does not divide.
static bool merge(LocalShape &shape, SmallVector<int64_t> &dims) {
  int64_t elements = 1;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    std::optional<int64_t> extent = shape.extents[dim].getStatic();
    if (dim != dims.front() + int64_t(i) || !extent ||
        !layout::axesOf(shape.dims[dim].product).empty())
      return false;
    elements *= *extent;
  }
  if (dims.size() < 2)
    return false;
  LocalShape merged;
  merged.mesh = shape.mesh;
  for (int64_t dim = 0; dim < int64_t(shape.dims.size()); ++dim)
    if (dim == dims.front())
      merged.add(layout::Extent(elements));
    else if (!llvm::is_contained(dims, dim))
      merged.add(shape, dim);
  shape = std::move(merged);
  dims.resize(1);
  return true;
}

static std::optional<Split> getSplit(tv::ReduceOp op, int64_t multiprocessors) {
  LocalShape whole(op.getInput());
  if (!whole.isPlain())
    return std::nullopt;
  SmallVector<int64_t> dims(op.getDims());
  const bool columns =
      !llvm::is_contained(dims, int64_t(whole.dims.size()) - 1);
  const bool isMerged = columns && merge(whole, dims);
  RankedTensorType type = whole.type(getElement(op.getInput()));
  if (!type.hasStaticShape() ||
      getPermutation(op.getInput().getDefiningOp())) // rows lie elsewhere
    return std::nullopt;
  int64_t blocks = 1;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (!llvm::is_contained(dims, dim))
      blocks *= type.getDimSize(dim);
  if (columns)
    blocks = llvm::divideCeil(
        blocks * type.getElementType().getIntOrFloatBitWidth(), kLineBits);
  if (blocks >= multiprocessors / 2 ||
      (type.getNumElements() < kManyElements &&
       type.getNumElements() / std::max<int64_t>(blocks, 1) < kManyOfBlock))
    return std::nullopt;
  for (int64_t dim : dims) {
    const int64_t size = type.getDimSize(dim);
    const int64_t parts = getParts(size, dims.size() > 1 ? size : size / 2,
                                   kBlocks * multiprocessors / blocks);
    if (parts == 0)
      continue;
    // Each device splits what it has, in a view that says so.
    const int64_t rest = size / parts;
    const std::optional<int64_t> all = whole.extents[dim].getStatic();
    if (!all || *all % rest != 0)
      continue;
    layout::View view;
    view.dims = {whole.dims[dim]};
    Result<layout::View> both = layout::reshapeView(
        view, {*all}, {*all / rest, rest}, whole.mesh.getMesh());
    if (!both)
      continue;
    Split split{whole, dims, isMerged, dim, rest, {}};
    split.shape.mesh = whole.mesh;
    split.shape.dims = both->dims;
    split.shape.extents = {*all / rest, rest};
    if (split.shape.isPlain())
      return split;
  }
  return std::nullopt;
}

/// Whether a library may sum as well, beside a product (tv-group-ops): one that
/// reads what is summed, or that it is made of.
static bool mayJoinProduct(tv::ReduceOp op, const plan::Target &target) {
  auto joins = [&](Operation *product) {
    return product && target.fuse(product, op).has_value();
  };
  Operation *maker = op.getInput().getDefiningOp();
  return llvm::any_of(op.getInput().getUsers(), joins) ||
         (maker && llvm::any_of(maker->getOperands(), [&](Value operand) {
            return joins(operand.getDefiningOp());
          }));
}

/// Whether the reduction is a stage of a kernel over rows: another one of the
/// same rows goes into it, or its rows are read again with the result.
static bool isStage(tv::ReduceOp op) {
  if (op.getInput().getType().getNumElements() >
      kKeptElements * op.getResult().getType().getNumElements())
    return false;
  auto hasRows = [&](Value value) {
    return cast<RankedTensorType>(value.getType()).getShape() ==
           op.getInput().getType().getShape();
  };
  llvm::SetVector<Operation *> ops;
  auto insert = [&](Operation *op) {
    if (op && (isPointwise(op) || isFree(op) || getReduction(op)))
      ops.insert(op);
  };
  insert(op.getInput().getDefiningOp());
  for (size_t i = 0; i < ops.size(); ++i) {
    std::optional<tv::Reduction> other = getReduction(ops[i]);
    if (other && hasRows(ops[i]->getOperand(0)) && other->dims == op.getDims())
      return true;
    if (!other)
      for (Value operand : getReadValues(ops[i]))
        insert(operand.getDefiningOp());
  }
  ops.clear();
  for (Operation *user : op->getUsers())
    insert(user);
  for (size_t i = 0; i < ops.size(); ++i) {
    if (isFree(ops[i]) && hasRows(ops[i]->getResult(0)))
      return true;
    if (isPointwise(ops[i]))
      for (Operation *user : ops[i]->getUsers())
        insert(user);
  }
  return false;
}

/// The sums of columns that kernels of rows will have (tv-group-ops).
static llvm::DenseSet<Operation *> getSumsOfRows(func::FuncOp main) {
  llvm::DenseSet<Operation *> sums;
  // (What no kernel can be made of is said later.)
  for (auto op : main.getBody().getOps<tv::ElementOpInterface>())
    if (op.getReduction() && !getReducedDims(op))
      return sums;
  FailureOr<Grouping> grouping = groupSteps(main, {});
  if (failed(grouping))
    return sums;
  for (const PlanStep &step : grouping->steps) {
    if (!step.fused)
      continue;
    auto [columns, others] = partitionColumns(step.fused->ops.getArrayRef());
    if (llvm::any_of(others, [](Operation *op) { return getReduction(op); }))
      sums.insert_range(columns);
  }
  return sums;
}

/// Whether `reshape` costs nothing: pointwise ops on what is in memory, or that
/// alone.
static bool isReshapable(Value value) {
  Operation *op = value.getDefiningOp();
  if (op && isPointwise(op))
    return op->getNumResults() == 1 &&
           llvm::all_of(op->getOperands(), [&](Value input) {
             return cast<RankedTensorType>(input.getType()).getShape() ==
                        cast<RankedTensorType>(value.getType()).getShape() &&
                    isReshapable(input);
           });
  return !op || !(isFree(op) || getReduction(op));
}

/// The value in another shape: of what is in memory, with pointwise ops done
/// again, for they are part of the kernel that reduces.
static Value reshape(Value value, const LocalShape &shape, OpBuilder &b,
                     bool through) {
  Operation *op = value.getDefiningOp();
  if (!op || !isPointwise(op) || !through)
    return tv::ReshapeOp::create(b, value.getLoc(),
                                 shape.type(getElement(value)), value);
  SmallVector<Value> inputs;
  for (Value input : op->getOperands())
    inputs.push_back(reshape(input, shape, b, through));
  // (Its region may load from a tensor that is an operand, too.)
  Operation *again = b.clone(*op);
  again->setOperands(inputs);
  again->getResult(0).setType(shape.type(getElement(value)));
  return again->getResult(0);
}

static void split(tv::ReduceOp op, const Split &at, OpBuilder &b) {
  Build build{b, op.getLoc()};
  RankedTensorType result = op.getResult().getType();
  Type element = result.getElementType();
  // Small floats are added in f32.
  const bool widens = op.getCombiner() == tv::Combiner::Sum &&
                      (element.isBF16() || element.isF16());
  Type wide = widens ? Type(b.getF32Type()) : element;

  const LocalShape &whole = at.whole;
  LocalShape parted, partial;
  parted.mesh = partial.mesh = whole.mesh;
  SmallVector<int64_t> dims;
  int64_t place = 0; // of the parts, among what is left
  for (int64_t dim = 0; dim < int64_t(whole.dims.size()); ++dim) {
    if (dim == at.dim) {
      place = partial.dims.size();
      parted.add(at.shape, 0);
      partial.add(at.shape, 0);
      if (at.rest > 1) {
        dims.push_back(parted.dims.size());
        parted.add(at.shape, 1);
      }
      continue;
    }
    if (llvm::is_contained(at.dims, dim))
      dims.push_back(parted.dims.size());
    else
      partial.add(whole, dim);
    parted.add(whole, dim);
  }
  Value value = op.getInput();
  if (merge(parted, dims) || at.isMerged || at.rest > 1)
    value = reshape(value, parted, b, isReshapable(value));
  value = build.widen(value, wide);
  value =
      tv::ReduceOp::create(b, op.getLoc(), partial.type(wide), op.getCombiner(),
                           value, b.getDenseI64ArrayAttr(dims));
  value = tv::ReduceOp::create(
      b, op.getLoc(),
      RankedTensorType::get(result.getShape(), wide, result.getEncoding()),
      op.getCombiner(), value, b.getDenseI64ArrayAttr(place));
  if (widens)
    value =
        build.map(value, result, [&](OpBuilder &b, ValueRange args) -> Value {
          return arith::TruncFOp::create(b, op.getLoc(), element, args[0]);
        });
  op.getResult().replaceAllUsesWith(value);
  op.erase();
}

namespace {
struct SplitReductions
    : public tessera::impl::SplitReductionsBase<SplitReductions> {
  void runOnContract() override {
    const plan::Target &target = plan::getTarget(getOperation());
    if (target.getLimits().multiprocessors == 0)
      return;
    const llvm::DenseSet<Operation *> sumsOfRows =
        getSumsOfRows(getOperation());
    SmallVector<std::pair<tv::ReduceOp, Split>> splits;
    getOperation().walk([&](tv::ReduceOp op) {
      std::optional<Split> at =
          getSplit(op, target.getLimits().multiprocessors);
      if (at && !mayJoinProduct(op, target) && !isStage(op) &&
          !sumsOfRows.contains(op))
        splits.push_back({op, *at});
    });
    for (auto &[op, at] : splits) {
      OpBuilder builder(op);
      split(op, at, builder);
    }
  }
};
} // namespace
