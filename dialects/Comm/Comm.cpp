//===- Comm.cpp - text and checks of the comm dialect ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Comm/Comm.h"
#include "Layout/PlanViews.h"
#include "Layout/Transfers.h"
#include "TensorView/Contract.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::comm;

#include "Comm/CommDialect.cpp.inc"
#include "Comm/CommInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "Comm/CommAttrs.cpp.inc"

void CommDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Comm/CommAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "Comm/CommOps.cpp.inc"
      >();
  addInterfaces<tv::LocalDialectInterface>();
}

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

/// `#m [tp, dp:(1)2]`
static ParseResult parseAxes(AsmParser &parser, AxesAttr &axes) {
  tv::MeshAttr mesh;
  if (parser.parseAttribute(mesh))
    return failure();
  tv::AsmTokenSource tokens(parser);
  Result<std::vector<layout::SubAxis>> parsed =
      layout::parseAxes(tokens, mesh.getMesh());
  if (!parsed)
    return tokens.emitError() << parsed.message();
  axes = AxesAttr::get(parser.getContext(), mesh, *parsed);
  return success();
}

static void printAxes(AsmPrinter &printer, AxesAttr axes) {
  printer.printAttribute(axes.getMesh());
  printer << " [";
  llvm::interleaveComma(
      axes.getAxes(), printer, [&](const layout::SubAxis &sub) {
        printer << layout::toString(sub, axes.getMesh().getMesh());
      });
  printer << "]";
}

static void printAxes(AsmPrinter &printer, Operation *, AxesAttr axes) {
  printAxes(printer, axes);
}

Attribute AxesAttr::parse(AsmParser &parser, Type) {
  AxesAttr axes;
  if (parser.parseLess() || parseAxes(parser, axes) || parser.parseGreater())
    return {};
  return axes;
}

void AxesAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printAxes(printer, *this);
  printer << ">";
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

using SubAxes = std::vector<layout::SubAxis>;

/// The sub-axes along which `view` is partial with `combiner`.
static SubAxes partialAxes(const layout::View &view,
                           layout::Combiner combiner) {
  SubAxes axes;
  for (const layout::Partial &partial : view.partial)
    if (partial.combiner == combiner)
      llvm::append_range(axes, partial.axes);
  return axes;
}

/// Joined, without those of one device.
static SubAxes manyOf(SubAxes axes) {
  std::erase_if(axes, [](const layout::SubAxis &sub) { return sub.size == 1; });
  return layout::merged(std::move(axes));
}

static bool isFromPeerToPeer(tv::StepKind kind) {
  return layout::isFromPeerToPeer(static_cast<layout::Step::Kind>(kind));
}

/// Along which axes a move must go, by the views of its ends: what leaves or
/// enters. From peer to peer it may go along more.
static SubAxes alongOf(tv::StepKind kind, const layout::View &from,
                       const layout::View &to) {
  using layout::subtract;
  const SubAxes before = layout::splitAxes(from), after = layout::splitAxes(to),
                states = layout::partialAxes(from),
                made = subtract(layout::partialAxes(to), states);
  if (kind == tv::StepKind::AllReduce || kind == tv::StepKind::ReduceScatter)
    return subtract(states, layout::partialAxes(to));
  if (kind == tv::StepKind::Slice)
    return made.empty() ? subtract(after, before) : made;
  SubAxes along = subtract(before, layout::axesOf(to));
  if (!isFromPeerToPeer(kind))
    return along;
  llvm::append_range(along, made);
  auto spanAlike = [](const layout::Dim &a, const layout::Dim &b) {
    return a.span == b.span;
  };
  // What leaves a dimension may be in another after it.
  if (llvm::equal(from.dims, to.dims, spanAlike))
    for (auto [own, next] : llvm::zip_equal(from.dims, to.dims))
      llvm::append_range(along, subtract(subtract(layout::axesOf(own.product),
                                                  layout::axesOf(next.product)),
                                         along));
  return along;
}

/// Checks one operand of a move against its result.
static LogicalResult verifyPair(CollectiveOpInterface op, unsigned index) {
  auto from = cast<RankedTensorType>(op->getOperand(index).getType());
  auto to = cast<RankedTensorType>(op->getResult(index).getType());
  auto source = dyn_cast_or_null<tv::LocalAttr>(from.getEncoding());
  auto target = dyn_cast_or_null<tv::LocalAttr>(to.getEncoding());
  if (!source || !target)
    return op->emitOpError() << "needs tensors with a #tv.local encoding, but "
                             << (source ? "result" : "operand") << " #" << index
                             << " has type " << (source ? to : from);
  if (from.getElementType() != to.getElementType() ||
      source.getExtents() != target.getExtents())
    return op->emitOpError()
           << "operand and result #" << index
           << " must be parts of one tensor, but are " << from << " and " << to;
  tv::MeshAttr mesh = op.getAxes().getMesh();
  // Steps from peer to peer may be between other devices.
  const bool anyDevices = op.getKind() == tv::StepKind::Permute ||
                          op.getKind() == tv::StepKind::Exchange;
  for (tv::MeshAttr own :
       {source.getView().getMesh(), target.getView().getMesh()})
    if (anyDevices ? own->axes != mesh->axes : own != mesh)
      return op->emitOpError() << "operand and result #" << index
                               << " must lie on the mesh of the op, " << mesh;

  SubAxes gone, added;
  for (auto combiner :
       {layout::Combiner::Sum, layout::Combiner::Max, layout::Combiner::Min}) {
    auto before = partialAxes(source.getLayoutView(), combiner);
    auto after = partialAxes(target.getLayoutView(), combiner);
    llvm::append_range(gone, layout::subtract(before, after));
    llvm::append_range(added, layout::subtract(after, before));
  }
  bool reduces = op.getKind() == tv::StepKind::AllReduce ||
                 op.getKind() == tv::StepKind::ReduceScatter;
  bool makes = op.getKind() == tv::StepKind::Slice ||
               op.getKind() == tv::StepKind::Exchange;
  if (!reduces && !makes && !(gone.empty() && added.empty()))
    return op->emitOpError() << "may not change the partial state of operand #"
                             << index << "; all_reduce and reduce_scatter do";
  if (makes && !gone.empty())
    return op->emitOpError()
           << "may not combine the partial states of operand #" << index
           << "; all_reduce does";

  const bool isExact = !isFromPeerToPeer(op.getKind());
  const SubAxes along = manyOf(alongOf(op.getKind(), source.getLayoutView(),
                                       target.getLayoutView())),
                named = manyOf(op.getAxes().getAxes());
  if ((reduces && !added.empty()) ||
      (isExact ? along != named : !layout::subtract(along, named).empty()))
    return op->emitOpError()
           << "must "
           << (reduces                               ? "combine"
               : op.getKind() == tv::StepKind::Slice ? "split"
                                                     : "join the parts of")
           << " operand #" << index << " along " << (isExact ? "exactly " : "")
           << "the axes it names, from " << source.getView() << " to "
           << target.getView();
  return success();
}

std::optional<layout::Combiner> comm::getCombiner(Operation *op,
                                                  unsigned number) {
  return layout::changedCombiner(
      tv::getLocal(op->getOperand(number)).getLayoutView(),
      tv::getLocal(op->getResult(number)).getLayoutView());
}

LogicalResult comm::verifyCollective(Operation *op) {
  if (isa<FetchOp>(op))
    return success(); // moves no tensor from view to view
  if (op->getNumOperands() != op->getNumResults() || op->getNumOperands() == 0)
    return op->emitOpError()
           << "has " << op->getNumOperands() << " operands and "
           << op->getNumResults() << " results; each operand needs its result";
  std::optional<std::pair<unsigned, layout::Combiner>> first;
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    if (failed(verifyPair(cast<CollectiveOpInterface>(op), i)))
      return failure();
    std::optional<layout::Combiner> combiner = getCombiner(op, i);
    if (combiner && first && first->second != *combiner)
      return op->emitOpError() << "has operands #" << first->first << " and #"
                               << i << " of different combiners";
    if (combiner && !first)
      first = {i, *combiner};
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Fetch
//===----------------------------------------------------------------------===//

tv::StepKind FetchOp::getKind() { return tv::StepKind::Fetch; }
OperandRange FetchOp::getRowIndices() { return getAt(); }

LogicalResult FetchOp::verify() {
  auto localOf = [](Value value) {
    return dyn_cast_or_null<tv::LocalAttr>(
        cast<RankedTensorType>(value.getType()).getEncoding());
  };
  for (Value value : llvm::concat<Value>(llvm::to_vector(getOperands()),
                                         SmallVector<Value>{getResult()})) {
    tv::LocalAttr local = localOf(value);
    if (!local)
      return emitOpError()
             << "needs tensors with a #tv.local encoding, but one "
                "has type "
             << value.getType();
    if (local.getView().getMesh() != getAxes().getMesh())
      return emitOpError() << "tensors must lie on the mesh of the op, "
                           << getAxes().getMesh();
    if (!local.getLayoutView().partial.empty())
      return emitOpError() << "moves no partial values, such as "
                           << value.getType();
  }
  tv::LocalAttr table = localOf(getTable()), result = localOf(getResult());
  if (getAt().empty())
    return emitOpError() << "needs the indices of the table's first dimension";
  if (!llvm::all_equal(getAt().getTypes()))
    return emitOpError() << "needs indices of one type";
  tv::LocalAttr at = localOf(getAt()[0]);
  const layout::View &rows = table.getLayoutView();
  const layout::View &places = at.getLayoutView();
  const layout::View &to = result.getLayoutView();
  const size_t leading = getAt().size();
  if (table.getExtents().size() < leading)
    return emitOpError() << "has " << leading << " indices for a table of "
                         << table.getExtents().size() << " dimensions";
  auto expected = at.getExtents();
  llvm::append_range(expected,
                     ArrayRef(table.getExtents()).drop_front(leading));
  if (getTable().getType().getElementType() !=
          getResult().getType().getElementType() ||
      result.getExtents() != expected)
    return emitOpError() << "must give rows of the table at each index, but is "
                         << getResult().getType() << " of "
                         << getTable().getType();
  // Flat dimensions are none that rows could be counted in.
  auto isPlain = [](const layout::View &view) {
    return llvm::all_of(view.dims,
                        [](const layout::Dim &dim) { return dim.span == 1; });
  };
  if (!isPlain(rows) || !isPlain(places) || !isPlain(to))
    return emitOpError() << "takes no flat dimensions";
  auto lie = [](ArrayRef<layout::Dim> a, ArrayRef<layout::Dim> b) {
    return llvm::equal(a, b);
  };
  if (!lie(ArrayRef(to.dims).take_front(places.dims.size()), places.dims) ||
      !lie(ArrayRef(to.dims).drop_front(places.dims.size()),
           ArrayRef(rows.dims).drop_front(leading)))
    return emitOpError() << "result must lie as the indices and the rows do, "
                            "not in "
                         << result.getView();
  if (!layout::liesInBlocks(rows.dims[0], getAxes().getAxes()))
    return emitOpError() << "table's first dimension must be split by blocks "
                            "over the axes that the op names, not in "
                         << table.getView();
  for (const layout::Dim &dim : ArrayRef(rows.dims).slice(1, leading - 1))
    if (!layout::liesInBlocks(dim, {}))
      return emitOpError() << "table's other dimensions that have indices must "
                              "be whole, not in "
                           << table.getView();
  return success();
}

#define GET_OP_CLASSES
#include "Comm/CommOps.cpp.inc"
