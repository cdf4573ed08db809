//===- FetchRows.cpp - rows by indices, in place of all of a table --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An op that reads rows of a split table by indices has either the whole table,
// from an all-gather, or what its device makes of the rows that it holds, which
// a reduction adds up. In both cases each device may fetch the rows that it
// needs instead. A dispatch reads, for each row of a buffer, a token, whose
// number a dispatch of the tokens' numbers says; a combine reads a row for each
// choice of its tokens, and adds them up.
//
//===----------------------------------------------------------------------===//

#include "Comm/Comm.h"
#include "Layout/PlanViews.h"
#include "Layout/Planner.h"
#include "Localize/Passes.h"
#include "TensorView/CoreBuilder.h"
#include "TensorView/ExtentAnalysis.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using layout::Dim;

namespace tessera::tv {
#define GEN_PASS_DEF_FETCHROWSPASS
#include "Localize/Passes.h.inc"
} // namespace tessera::tv

/// Latencies of a fetch in which no numbers of rows are sent: these are read
/// between two meetings.
static constexpr unsigned kMeetings = 2;

static const layout::View &viewOf(Value value) {
  return getLocal(value).getLayoutView();
}

static bool isPlain(Value value) {
  return llvm::all_of(viewOf(value).dims,
                      [](const Dim &dim) { return dim.span == 1; });
}

static bool isWhole(const Dim &dim) { return layout::liesInBlocks(dim, {}); }

/// The axes along which blocks of rows lie; null if they do not, or are whole.
static comm::AxesAttr getBlockAxes(Value table) {
  const layout::View &view = viewOf(table);
  if (!isPlain(table) || view.dims.empty() || !view.partial.empty())
    return {};
  std::vector<layout::SubAxis> axes;
  for (const layout::Factor &factor : view.dims[0].product)
    if (factor.kind == layout::Factor::Kind::Device)
      axes.push_back(factor.sub);
  if (axes.empty() || !layout::liesInBlocks(view.dims[0], axes))
    return {};
  return comm::AxesAttr::get(table.getContext(),
                             getLocal(table).getView().getMesh(), axes);
}

/// The local type, with the order in memory of `lies`, or row-major.
static RankedTensorType getType(Type element, LocalAttr like,
                                std::vector<layout::Extent> extents,
                                std::vector<Dim> dims, Value lies = {}) {
  layout::View view;
  view.dims = std::move(dims);
  if (lies)
    view.alloc = viewOf(lies).alloc;
  if (!view.alloc || view.alloc->size() != view.dims.size()) {
    view.alloc.emplace(view.dims.size());
    std::iota(view.alloc->begin(), view.alloc->end(), 0);
  }
  SmallVector<int64_t> shape;
  for (const layout::Extent &extent : extents)
    shape.push_back(extent.terms.empty() ? extent.constant : layout::kDynamic);
  return getLocalType(
      RankedTensorType::get(shape, element, like.getView().with(view)),
      std::move(extents));
}

static layout::Step::Kind kindOf(comm::CollectiveOpInterface op) {
  return static_cast<layout::Step::Kind>(op.getKind());
}

namespace {
/// How rows come to an op today.
struct Move {
  Value table; ///< as it is split
  comm::AxesAttr axes;
  comm::CollectiveOpInterface op; ///< that moves the table, or what is made
  unsigned number;                ///< of its tensors

  Value from() const { return op->getOperand(number); }
  Value to() const { return op->getResult(number); }
};

/// A reader of rows with its parts.
struct Reader {
  Operation *op;
  Value table;
  int64_t indices; ///< how many of the table's dimensions have one
};

class Fetcher {
public:
  Fetcher(func::FuncOp function, unsigned phases, bool chooses,
          uint64_t &nextId)
      : function(function), phases(phases), chooses(chooses), nextId(nextId) {
    if (auto sizes = function->getAttrOfType<DictionaryAttr>(kSizesAttr))
      for (NamedAttribute size : sizes)
        maximums[size.getName().str()] = DeclaredSize(size.getValue()).maximum;
  }
  LogicalResult run();

private:
  bool replace(const Reader &reader);
  std::optional<Move> findMove(const Reader &reader);
  void setPrices(const Move &move, Operation *op, Value result);
  void report(remark::detail::InFlightRemark &&remark, Move move);
  std::optional<layout::Shape> getMaxShape(Value value);
  Value place(OpBuilder &builder, Value index, ArrayRef<Dim> dims);
  Value fetch(OpBuilder &builder, const Move &move, ValueRange at, Value last);
  /// What is to replace `last`, the op's rows or what becomes of them; null if
  /// it is not all there.
  Value build(OpBuilder &builder, const Move &move, GatherOp op, Value last);
  Value build(OpBuilder &builder, const Move &move, DispatchOp op, Value last);
  Value build(OpBuilder &builder, const Move &move, CombineOp op, Value last);

  func::FuncOp function;
  const unsigned phases; ///< of a fetch
  const bool chooses;
  uint64_t &nextId;
  std::map<std::string, int64_t> maximums;
  /// Of the move that a fetch is to replace; nothing if sizes are not known.
  std::optional<layout::Candidate> now;
  layout::Price price; ///< of the fetch, of the most that a device may want
};

struct FetchRows : tv::impl::FetchRowsPassBase<FetchRows> {
  using FetchRowsPassBase::FetchRowsPassBase;

  void runOnOperation() override {
    uint64_t nextId = 0;
    getOperation().walk([&](comm::CollectiveOpInterface op) {
      nextId = std::max(nextId, op.getId() + 1);
    });
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(Fetcher(function, phases, chooses, nextId).run()))
        return signalPassFailure();
  }
};
} // namespace

static std::optional<Reader> getReader(Operation *op) {
  auto isLocal = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && isa_and_present<LocalAttr>(tensor.getEncoding());
  };
  if (!llvm::all_of(op->getOperandTypes(), isLocal) ||
      !llvm::all_of(op->getResultTypes(), isLocal))
    return std::nullopt;
  return TypeSwitch<Operation *, std::optional<Reader>>(op)
      .Case([](GatherOp op) -> std::optional<Reader> {
        if (op.getDim() != 0)
          return std::nullopt;
        return Reader{op, op.getTable(), 1};
      })
      .Case([](DispatchOp op) {
        return Reader{op, op.getTokens(), 1};
      })
      .Case([](CombineOp op) {
        return Reader{op, op.getBuffers(), 2};
      })
      .Default(std::nullopt);
}

/// The all-gather of the table, if it is for the reader alone; or the reduction
/// of what the reader makes of its own rows.
std::optional<Move> Fetcher::findMove(const Reader &reader) {
  auto areWhole = [&](Value table) {
    return llvm::all_of(
        ArrayRef(viewOf(table).dims).slice(1, reader.indices - 1), isWhole);
  };
  if (auto gather = reader.table.getDefiningOp<comm::AllGatherOp>()) {
    const unsigned number = cast<OpResult>(reader.table).getResultNumber();
    Value table = gather.getInputs()[number];
    comm::AxesAttr axes = getBlockAxes(table);
    if (!axes || !areWhole(table) || !reader.table.hasOneUse() ||
        !isPlain(reader.table) || !isWhole(viewOf(reader.table).dims[0]) ||
        !llvm::equal(ArrayRef(viewOf(table).dims).drop_front(),
                     ArrayRef(viewOf(reader.table).dims).drop_front()))
      return std::nullopt;
    return Move{table, axes, gather, number};
  }
  comm::AxesAttr axes = getBlockAxes(reader.table);
  Value made = reader.op->getResult(0);
  if (!axes || !areWhole(reader.table) || !made.hasOneUse())
    return std::nullopt;
  OpOperand &use = *made.use_begin();
  auto reduction = dyn_cast<comm::CollectiveOpInterface>(use.getOwner());
  if (!reduction ||
      !isa<comm::ReduceScatterOp, comm::AllReduceOp>(use.getOwner()))
    return std::nullopt;
  const layout::View &from = viewOf(made);
  Value to = reduction->getResult(use.getOperandNumber());
  if (from.partial.size() != 1 || !viewOf(to).partial.empty() || !isPlain(to) ||
      layout::merged(from.partial[0].axes) !=
          layout::merged(std::vector(axes.getAxes())))
    return std::nullopt;
  return Move{reader.table, axes, reduction, use.getOperandNumber()};
}

std::optional<layout::Shape> Fetcher::getMaxShape(Value value) {
  layout::Shape shape;
  for (const layout::Extent &extent : getLocal(value).getExtents()) {
    std::optional<int64_t> size = extent.evaluate(maximums);
    if (!size)
      return std::nullopt;
    shape.push_back(*size);
  }
  return shape;
}

/// Sets `now` and `price`, of the rows of `result`.
void Fetcher::setPrices(const Move &move, Operation *op, Value result) {
  std::optional<layout::Shape> moved = getMaxShape(move.from());
  std::optional<layout::Shape> made = getMaxShape(result);
  std::optional<layout::Shape> table = getMaxShape(move.table);
  std::optional<layout::Shape> at = getMaxShape(op->getOperand(1));
  now.reset();
  price = {};
  if (!moved || !made || !table || !at)
    return;
  const layout::Mesh &mesh = move.axes.getMesh().getMesh();
  const layout::Machine machine = getMachine(op);
  const int64_t bytes = ExtentAnalysis::getElementBytes(move.table);
  layout::Plans plans(mesh, machine);
  auto places = [](Value value) {
    layout::View view = viewOf(value);
    view.alloc.reset();
    return view;
  };
  auto plan = plans.get(*moved, bytes, places(move.from()), places(move.to()),
                        kindOf(move.op));
  if (!plan)
    return;
  now = (*plan)->chosen;
  // Of the rows, which lie evenly, and where they are sent their numbers.
  int64_t members = 1;
  for (const layout::SubAxis &sub : move.axes.getAxes())
    members *= sub.size;
  const layout::Shape own = layout::maxLocalShape(viewOf(result), *made, mesh);
  const layout::Shape held =
      layout::maxLocalShape(viewOf(move.table), *table, mesh);
  const int64_t indices = isa<CombineOp>(op) ? 2 : 1;
  const int64_t row =
      computeProduct(ArrayRef(held).drop_front(indices)) * bytes;
  // A combine has a row for each choice.
  const int64_t choices = indices == 2 ? at->back() : 1;
  price.bytes = computeProduct(own) * choices * bytes;
  const int64_t numbers =
      row && phases != kMeetings ? price.bytes / row * sizeof(int64_t) : 0;
  price.seconds = phases * machine.latency + double(price.bytes + numbers) *
                                                 (members - 1) / members /
                                                 machine.bandwidth;
}

/// `index` where its dimensions lie as `dims`, of what this device has of it;
/// null if that is not all there.
Value Fetcher::place(OpBuilder &builder, Value index, ArrayRef<Dim> dims) {
  LocalAttr local = getLocal(index);
  if (!isPlain(index) || !local.getLayoutView().partial.empty())
    return {};
  for (auto [now, then] : llvm::zip_equal(local.getLayoutView().dims, dims))
    if (now != then && !isWhole(now))
      return {};
  RankedTensorType type =
      getType(Core::elementOf(index), local, local.getExtents(),
              std::vector<Dim>(dims.begin(), dims.end()));
  if (type == index.getType())
    return index;
  if (auto gather = index.getDefiningOp<comm::AllGatherOp>()) {
    Value own = gather.getInputs()[cast<OpResult>(index).getResultNumber()];
    if (own.getType() == type)
      return own;
  }
  layout::View view = getLocal(type).getLayoutView();
  auto axes = comm::AxesAttr::get(
      builder.getContext(), local.getView().getMesh(),
      layout::subtract(layout::axesOf(view),
                       layout::axesOf(local.getLayoutView())));
  return comm::SliceOp::create(builder, index.getLoc(), TypeRange{type},
                               ValueRange{index}, axes, nextId++, StringAttr())
      .getResult(0);
}

/// The rows of the table at `at`, all of one type, in memory as `last` if that
/// is these; null without one of them.
Value Fetcher::fetch(OpBuilder &builder, const Move &move, ValueRange at,
                     Value last) {
  if (llvm::is_contained(at, Value()) || !llvm::all_equal(at.getTypes()))
    return {};
  LocalAttr table = getLocal(move.table), index = getLocal(at[0]);
  std::vector<layout::Extent> extents = index.getExtents();
  std::vector<Dim> dims = index.getLayoutView().dims;
  llvm::append_range(extents,
                     ArrayRef(table.getExtents()).drop_front(at.size()));
  llvm::append_range(
      dims, ArrayRef(table.getLayoutView().dims).drop_front(at.size()));
  RankedTensorType type = getType(Core::elementOf(move.table), table,
                                  std::move(extents), std::move(dims), last);
  return comm::FetchOp::create(
      builder, last.getLoc(), type, move.table, at, move.axes, nextId++,
      now ? builder.getStringAttr(layout::describe(*now)) : StringAttr());
}

Value Fetcher::build(OpBuilder &builder, const Move &move, GatherOp op,
                     Value last) {
  const int64_t rank = getGlobalShape(op.getIndices().getType()).size();
  Value at = place(builder, op.getIndices(),
                   ArrayRef(viewOf(last).dims).take_front(rank));
  return fetch(builder, move, at, last);
}

Value Fetcher::build(OpBuilder &builder, const Move &move, DispatchOp op,
                     Value last) {
  Core core(builder, op);
  Type i32 = builder.getI32Type();
  auto plus = [&](Value value, int64_t more) {
    return core.map(value, value.getType(), [&](auto &b, ValueRange in) {
      Value number = arith::ConstantOp::create(b, b.getI32IntegerAttr(more));
      return SmallVector<Value>{arith::AddIOp::create(b, in[0], number)};
    });
  };
  // From 1: rows of no token have 0, and then -1.
  Value numbers =
      core.reduce(Combiner::Max, core.iota(0, op.getExperts(), i32), 1);
  if (!numbers)
    return {};
  auto inRows = [&](Value like, size_t kept) {
    LocalAttr local = getLocal(like);
    std::vector<layout::Extent> extents = local.getExtents();
    std::vector<Dim> dims = local.getLayoutView().dims;
    extents.resize(kept);
    dims.resize(kept);
    return std::pair(std::move(extents), std::move(dims));
  };
  auto withOne = [&](Value like, size_t kept) {
    auto [extents, dims] = inRows(like, kept);
    extents.push_back(1);
    dims.push_back(layout::canonicalize(layout::View::replicated(1), {1},
                                        getLocal(like).getLayoutMesh())
                       .dims[0]);
    return getType(i32, getLocal(like), std::move(extents), std::move(dims));
  };
  Value tokens = ReshapeOp::create(builder, op.getLoc(), withOne(numbers, 1),
                                   plus(numbers, 1));
  auto numbered = DispatchOp::create(builder, op.getLoc(),
                                     TypeRange{withOne(op.getResult(), 2),
                                               op.getCounts().getType(),
                                               op.getSlots().getType()},
                                     tokens, op.getExperts());
  auto [extents, dims] = inRows(op.getResult(), 2);
  Value at = ReshapeOp::create(builder, op.getLoc(),
                               getType(i32, getLocal(op.getResult()),
                                       std::move(extents), std::move(dims)),
                               plus(numbered.getResult(), -1));
  Value rows = fetch(builder, move, at, last);
  if (!rows || rows.getType() != last.getType())
    return {};
  op.getCounts().replaceAllUsesWith(numbered.getCounts());
  op.getSlots().replaceAllUsesWith(numbered.getSlots());
  return rows;
}

Value Fetcher::build(OpBuilder &builder, const Move &move, CombineOp op,
                     Value last) {
  Core core(builder, op);
  layout::Shape table = getGlobalShape(move.table.getType());
  if (!isPlain(op.getExperts()) || !isWhole(viewOf(op.getExperts()).dims[1]) ||
      table[0] == layout::kDynamic || table[1] == layout::kDynamic)
    return {};
  Dim dims[] = {viewOf(last).dims[0], viewOf(op.getExperts()).dims[1]};
  Value experts = place(builder, op.getExperts(), dims);
  Value slots = place(builder, op.getSlots(), dims);
  Value weights = place(builder, op.getWeights(), dims);
  Value rows = fetch(builder, move, {experts, slots}, last);
  if (!rows || !weights)
    return {};
  // A choice without a row adds nothing, whatever its weight.
  Type wide = core.wide(rows);
  Value kept = core.map(
      {weights, experts, slots}, core.like(weights, wide),
      [&](ImplicitLocOpBuilder &b, ArrayRef<Value> in) {
        Value isRow;
        for (auto [index, extent] :
             {std::pair(in[1], table[0]), {in[2], table[1]}}) {
          Value limit = arith::ConstantOp::create(
              b, b.getIntegerAttr(index.getType(), extent));
          Value isInside =
              arith::CmpIOp::create(b, arith::CmpIPredicate::ult, index, limit);
          isRow = isRow ? arith::AndIOp::create(b, isRow, isInside) : isInside;
        }
        return SmallVector<Value>{arith::SelectOp::create(
            b, isRow, in[0], Core::constant(b, in[0].getType(), 0))};
      });
  Value products = core.map(
      {rows, core.broadcast(kept, {0, 1}, rows)}, core.like(rows, wide),
      [](ImplicitLocOpBuilder &b, ArrayRef<Value> in) {
        return SmallVector<Value>{arith::MulFOp::create(b, in[0], in[1])};
      });
  Value sum = core.reduce(Combiner::Sum, products, 1);
  if (!sum)
    return {};
  return core.map(sum, core.like(sum, Core::elementOf(rows)),
                  [](ImplicitLocOpBuilder &, ArrayRef<Value> in) {
                    return SmallVector<Value>{in[0]};
                  });
}

/// Moves only what somebody reads.
static void dropUnused(comm::CollectiveOpInterface op) {
  if (!op.getRowIndices().empty())
    return;
  for (OpResult result : llvm::reverse(op->getResults()))
    if (result.use_empty())
      remark::passed(op.getLoc(), remark::RemarkOpts::name("dropped").category(
                                      "tv-fetch-rows"))
          << remark::metric("id", op.getId())
          << remark::metric("tensor", result.getResultNumber());
  if (op->use_empty()) {
    op->erase();
    return;
  }
  if (llvm::none_of(op->getResults(),
                    [](Value result) { return result.use_empty(); }))
    return;
  OperationState state(op.getLoc(), op->getName());
  SmallVector<Value> used;
  for (auto [operand, result] :
       llvm::zip_equal(op->getOperands(), op->getResults()))
    if (!result.use_empty()) {
      state.addOperands(operand);
      state.addTypes(result.getType());
      used.push_back(result);
    }
  state.addAttributes(op->getAttrs());
  OpBuilder builder(op);
  Operation *rest = builder.create(state);
  for (auto [result, value] : llvm::zip_equal(used, rest->getResults()))
    result.replaceAllUsesWith(value);
  op->erase();
}

namespace {
struct Recorder final : OpBuilder::Listener {
  SmallVector<Operation *> made;
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    made.push_back(op);
  }
};
} // namespace

/// Whether some collective has to do with the table or what is made of it.
static bool isMoved(const Reader &reader) {
  auto moves = [](Operation *op) {
    return isa_and_present<comm::CollectiveOpInterface>(op) &&
           !isa<comm::SliceOp>(op);
  };
  return moves(reader.table.getDefiningOp()) ||
         llvm::any_of(reader.op->getResult(0).getUsers(), moves);
}

/// Says what a fetch in place of the move takes.
void Fetcher::report(remark::detail::InFlightRemark &&remark, Move move) {
  std::string axes;
  for (const layout::SubAxis &sub : move.axes.getAxes())
    axes += (axes.empty() ? "" : ", ") +
            layout::toString(sub, move.axes.getMesh().getMesh());
  remark << remark::metric("plan", "fetch over [" + axes + "]")
         << remark::metric("most", price.bytes)
         << remark::metric("us", price.seconds * 1e6)
         << remark::metric("id", move.op.getId())
         << remark::metric("tensor", move.number)
         << remark::metric("of",
                           now ? now->text : layout::toString(kindOf(move.op)))
         << remark::metric("bytes", now ? layout::Price(now->cost).bytes : 0)
         << remark::metric("otherwise", now ? now->cost.seconds * 1e6 : 0);
}

/// False if nothing changed.
bool Fetcher::replace(const Reader &reader) {
  Operation *op = reader.op;
  std::optional<Move> move = findMove(reader);
  if (!move)
    return false;
  const bool isAfter = op->isBeforeInBlock(move->op);
  Value last = isAfter ? move->to() : op->getResult(0);
  if (!isPlain(last))
    return false;
  setPrices(*move, op, last);
  const auto opts = remark::RemarkOpts::name("fetch")
                        .category("tv-fetch-rows")
                        .function(function.getName());
  if (!op->hasAttr(kStepAttr) &&
      !(now && layout::isLess(price.seconds, now->cost.seconds))) {
    if (now)
      report(remark::missed(op->getLoc(), opts), *move);
    return false;
  }
  Recorder recorder;
  OpBuilder builder(op->getContext(), &recorder);
  builder.setInsertionPoint(op);
  Value rows =
      TypeSwitch<Operation *, Value>(op).Case<GatherOp, DispatchOp, CombineOp>(
          [&](auto reader) { return build(builder, *move, reader, last); });
  if (!rows || rows.getType() != last.getType()) {
    for (Operation *made : llvm::reverse(recorder.made))
      made->erase();
    return false;
  }
  report(remark::passed(op->getLoc(), opts), *move);
  last.replaceAllUsesWith(rows);
  if (isAfter)
    dropUnused(move->op);
  op->erase();
  return true;
}

LogicalResult Fetcher::run() {
  SmallVector<Operation *> readers;
  function.walk([&](Operation *op) {
    if (getReader(op))
      readers.push_back(op);
  });
  bool any = false;
  for (Operation *op : readers) {
    // Its table may be what was fetched before.
    const Reader reader = *getReader(op);
    // On a mesh on which nothing has to move nothing is to be fetched.
    const bool isTold = reader.op->hasAttr(kStepAttr) && isMoved(reader);
    const bool isReplaced = (isTold || chooses) && replace(reader);
    any |= isReplaced;
    if (isTold && !isReplaced)
      return reader.op->emitOpError()
             << "is to fetch rows (tv.step), but no collective alone brings it "
                "rows that lie in blocks over devices";
  }
  if (!any)
    return success();
  SmallVector<comm::CollectiveOpInterface> moves;
  function.walk([&](comm::CollectiveOpInterface op) { moves.push_back(op); });
  for (comm::CollectiveOpInterface op : llvm::reverse(moves))
    dropUnused(op);
  return success();
}
