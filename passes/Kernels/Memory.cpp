//===- Memory.cpp - how values of a plan lie in memory --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Windows on memory have its order and its strides. Those are known when the
// plan is bound; here it is enough to know where dimensions lie in one piece,
// as a slice cuts one:
//
//     p            [B, S, 96]       in one piece
//     slice        [B, S, 32]       cut before its last dimension
//     reshape      [B, S, 4, 8]     splits that: as before
//     transpose    [B, 4, S, 8]     in the order B, S, 4, 8, cut before the 4
//     reshape      [B, 4, S * 8]    has no strides
//
//===----------------------------------------------------------------------===//

#include "Kernels/Memory.h"
#include "Kernels/KernelEmitter.h"
#include "Kernels/LoopKernels.h"
#include "TensorView/ExtentAnalysis.h"

using namespace mlir;
using namespace tessera;

bool Memory::isRowMajor() const {
  return unit && llvm::is_sorted(order) && !llvm::is_contained(cut, true);
}

static Memory getRowMajor(Type type) {
  const int64_t rank = cast<RankedTensorType>(type).getRank();
  Memory memory;
  llvm::append_range(memory.order, llvm::seq<int64_t>(0, rank));
  memory.cut.assign(rank, false);
  return memory;
}

Memory tessera::getOwnMemory(Type type) {
  Memory memory = getRowMajor(type);
  if (const auto &alloc = getLocal(type).getLayoutView().alloc)
    memory.order.assign(alloc->begin(), alloc->end());
  return memory;
}

Memory tessera::getMemory(Value planned) {
  auto alias = planned.getDefiningOp<plan::AliasOp>();
  if (!alias)
    return getOwnMemory(planned.getType());
  Value source = alias.getInput();
  Memory memory = getMemory(source);
  switch (alias.getKind()) {
  case plan::AliasKind::Reshape:
    return *getReshapedMemory(memory, source.getType(), planned.getType());
  case plan::AliasKind::Transpose:
    for (int64_t &dim : memory.order)
      dim = llvm::find(*alias.getAt(), dim) - alias.getAt()->begin();
    return memory;
  case plan::AliasKind::Slice:
  case plan::AliasKind::Shard:
    return getBoxMemory(std::move(memory), source.getType(), planned.getType());
  }
  llvm_unreachable("all kinds are covered");
}

Memory tessera::getBoxMemory(Memory memory, Type from, Type to) {
  const Space source = getSpace(from), target = getSpace(to);
  // (Outermost there is nothing that steps over it.)
  for (size_t place = 1; place < memory.order.size(); ++place) {
    const int64_t dim = memory.order[place];
    if (source[dim] != target[dim])
      memory.cut[place] = true;
  }
  return memory;
}

//===----------------------------------------------------------------------===//
// Reshapes
//===----------------------------------------------------------------------===//

std::optional<SmallVector<ReshapedRun>>
tessera::getReshapedRuns(ArrayRef<layout::Extent> from,
                         ArrayRef<layout::Extent> to) {
  SmallVector<ReshapedRun> runs;
  size_t i = 0, j = 0;
  auto skipOnes = [](ArrayRef<layout::Extent> extents, size_t &at) {
    while (at < extents.size() && extents[at].getStatic() == 1)
      ++at;
  };
  auto next = [](ArrayRef<layout::Extent> extents, size_t &at) -> int64_t {
    return at < extents.size() ? extents[at++].getStatic().value_or(0) : 0;
  };
  while (i < from.size() && j < to.size()) {
    if (from[i] != to[j]) {
      // They go along with what follows.
      skipOnes(from, i);
      skipOnes(to, j);
      if (i == from.size() || j == to.size())
        break;
    }
    if (from[i] == to[j]) {
      runs.push_back({++i, ++j});
      continue;
    }
    int64_t a = next(from, i), b = next(to, j);
    while (a != b && a != 0 && b != 0)
      if (a < b)
        a *= next(from, i);
      else
        b *= next(to, j);
    if (a == 0 || b == 0)
      return std::nullopt;
    runs.push_back({i, j});
  }
  skipOnes(from, i);
  skipOnes(to, j);
  if (i < from.size() || j < to.size())
    return std::nullopt;
  if (runs.empty())
    runs.emplace_back();
  runs.back() = {i, j};
  return runs;
}

/// The extents of a tensor's dimensions; nothing if a local one stands for
/// several.
static std::optional<SmallVector<layout::Extent>> getExtents(Type type) {
  SmallVector<layout::Extent> extents;
  for (const LocalDim &dim : getSpace(type)) {
    if (dim.extents.size() != 1)
      return std::nullopt;
    extents.push_back(dim.extents.front());
  }
  return extents;
}

std::optional<Memory> tessera::getReshapedMemory(const Memory &memory,
                                                 Type from, Type to) {
  if (memory.isRowMajor())
    return getRowMajor(to);
  // What a device has of a run before it has of it after, so that runs of
  // extents are runs of its sizes.
  const auto before = getExtents(from), after = getExtents(to);
  const auto runs = before && after ? getReshapedRuns(*before, *after)
                                    : std::optional<SmallVector<ReshapedRun>>();
  if (!runs)
    return std::nullopt;

  // Dimensions of one element have no strides that matter.
  auto type = cast<RankedTensorType>(from);
  struct Place {
    size_t first, last;
  };
  SmallVector<std::optional<Place>> placeOf(runs->size());
  SmallVector<size_t> inOrder;
  auto isCut = [&](size_t after, size_t upTo) {
    return llvm::is_contained(
        ArrayRef(memory.cut).slice(after + 1, upTo - after), true);
  };
  for (auto [place, dim] : llvm::enumerate(memory.order)) {
    if (type.getDimSize(dim) == 1)
      continue;
    const size_t run = llvm::partition_point(*runs,
                                             [&](const ReshapedRun &r) {
                                               return int64_t(r.from) <= dim;
                                             }) -
                       runs->begin();
    std::optional<Place> &its = placeOf[run];
    if (!its) {
      inOrder.push_back(run);
      its = {place, place};
      continue;
    }
    // It goes on in one piece.
    if (inOrder.back() != run || memory.order[its->last] > dim ||
        isCut(its->last, place))
      return std::nullopt;
    its->last = place;
  }

  Memory result;
  auto add = [&](size_t run, bool isCut) {
    for (size_t dim = run ? (*runs)[run - 1].to : 0; dim < (*runs)[run].to;
         ++dim, isCut = false) {
      result.order.push_back(dim);
      result.cut.push_back(isCut);
    }
  };
  for (size_t run = 0; run < runs->size(); ++run)
    if (!placeOf[run])
      add(run, false);
  std::optional<size_t> last;
  for (size_t run : inOrder) {
    add(run, last && isCut(*last, placeOf[run]->first));
    last = placeOf[run]->last;
  }
  result.unit = memory.unit && !(last && isCut(*last, memory.order.size() - 1));
  return result;
}

/// One copy is less than one for each that would read rows in another order.
bool tessera::mayBeReshaped(const Memory &memory, Type from, Type to) {
  const auto reshaped = getReshapedMemory(memory, from, to);
  return reshaped && reshaped->unit &&
         (reshaped->order.empty() ||
          reshaped->order.back() == int64_t(reshaped->order.size()) - 1);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

bool tessera::hasMultiple(const LocalDim &dim, int64_t count, int64_t of) {
  if (count == 0 || count % of != 0 || dim.extents.size() != 1 ||
      dim.product.empty())
    return count == 0;
  const layout::Factor &last = dim.product.back();
  return last.kind == layout::Factor::Kind::Stored && last.size % of == 0;
}

/// Whether each device has a multiple of `of` of the dimension.
static bool hasMultiple(Value tensor, int64_t dim, int64_t of) {
  const int64_t size = cast<RankedTensorType>(tensor.getType()).getDimSize(dim);
  if (!ShapedType::isDynamic(size))
    return size % of == 0;
  const LocalDim its = getSpace(tensor.getType())[dim];
  const std::optional<int64_t> extent = its.extents.front().getStatic();
  return extent && tessera::hasMultiple(its, *extent, of);
}

bool tessera::isAligned(Value planned, int64_t unit) {
  auto alias = planned.getDefiningOp<plan::AliasOp>();
  if (!alias)
    return ::hasMultiple(planned, unit, 8);
  Value source = alias.getInput();
  switch (alias.getKind()) {
  case plan::AliasKind::Reshape:
    return ::hasMultiple(planned, unit, 8) &&
           isAligned(source, getMemory(source).order.back());
  case plan::AliasKind::Transpose:
    return isAligned(source, (*alias.getAt())[unit]);
  case plan::AliasKind::Slice:
    return hasMultiple(getSpace(source.getType())[unit], (*alias.getAt())[unit],
                       8) &&
           isAligned(source, unit);
  case plan::AliasKind::Shard:
    return getSpace(source.getType())[unit] ==
               getSpace(planned.getType())[unit] &&
           isAligned(source, unit);
  }
  llvm_unreachable("all kinds are covered");
}

/// Rows in memory must be whole sectors, for which kernels need no other
/// accesses than in memory of their own.
static bool hasSectors(Value tensor, int64_t unit) {
  constexpr int64_t sector = 32; // bytes
  return ::hasMultiple(tensor, unit,
                       sector / tv::ExtentAnalysis::getElementBytes(tensor));
}

/// What writes `operand`, whose place in memory becomes that of what it writes;
/// nothing if that is none.
static std::optional<Memory> getWritten(Value &operand, Memory there) {
  while (auto alias = operand.getDefiningOp<plan::AliasOp>()) {
    Value before = alias.getInput();
    if (alias.getKind() == plan::AliasKind::Transpose)
      for (int64_t &dim : there.order)
        dim = (*alias.getAt())[dim];
    else if (auto reshaped =
                 getReshapedMemory(there, operand.getType(), before.getType()))
      there = *reshaped;
    else
      return std::nullopt;
    operand = before;
  }
  return there;
}

/// Whether what writes `operand` could write it `there`.
static bool mayBeWritten(Value operand, const Memory &there) {
  const auto written = getWritten(operand, there);
  const Memory own = getOwnMemory(operand.getType());
  return written && !own.order.empty() && written->unit &&
         written->order.back() == own.order.back() &&
         hasSectors(operand, own.order.back());
}

bool tessera::mayBeReturned(Value planned) {
  if (!isPlain(planned) || !plan::canBeJoined(planned))
    return false;
  const auto written = getWritten(planned, getOwnMemory(planned.getType()));
  return written && written->unit &&
         written->order == getOwnMemory(planned.getType()).order;
}

bool tessera::mayBeJoined(tv::WindowOpInterface op) {
  Value whole = op.getWhole();
  const tv::LocalAttr view = getLocal(whole);
  const Memory memory = getOwnMemory(whole.getType());
  const auto boxes =
      tv::getBoxViews(op, view.getLayoutView(), view.getLayoutMesh());
  if (!boxes || !hasSectors(whole, memory.order.back()) ||
      !plan::haveOneChoice(op->getOperands()))
    return false;
  return llvm::all_of(
      llvm::zip_equal(op->getOperands(), *boxes), [&](auto operandAndBox) {
        auto [operand, box] = operandAndBox;
        return plan::canBeJoined(operand) &&
               getLocal(operand).getLayoutView().dims == box.dims &&
               mayBeWritten(operand, getBoxMemory(memory, whole.getType(),
                                                  operand.getType()));
      });
}
