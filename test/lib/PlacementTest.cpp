//===- PlacementTest.cpp - the best placement of a program, exhaustively --===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// test-placement says in a remark what each function takes (Place/OpPrice.h).
// With `best` it says instead what the function, bound but not propagated,
// takes under the best of all placements. A placement divides each op in one
// way: each digit of the mesh (4 is two of 2) splits one loop, in every order,
// or none, or keeps operands partial. Between ops values move, one by one.
//
// What an op costs depends on how its operands come, so the best is found value
// by value. This needs a tree: at most one value, an argument or not, may have
// two uses. Such a value may lie twice: as it comes, and where it moves for one
// use, from where the other may have it.
//
//===----------------------------------------------------------------------===//

#include "Place/ChoosePlacement.h"
#include "Place/OpPrice.h"
#include "lib/TestPasses.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using layout::SubAxis;
using layout::View;

static constexpr double kNever = std::numeric_limits<double>::infinity();

/// By place, the digits that it has, outermost first.
using Deal = std::vector<std::vector<SubAxis>>;

/// Calls `visit` for each way to deal `digits` to the places of `deal`.
static void forEachDeal(ArrayRef<SubAxis> digits, Deal &deal,
                        function_ref<void(const Deal &)> visit) {
  if (digits.empty())
    return visit(deal);
  forEachDeal(digits.drop_front(), deal, visit);
  for (size_t place = 0; place < deal.size(); ++place)
    for (size_t at = 0; at <= deal[place].size(); ++at) {
      deal[place].insert(deal[place].begin() + at, digits[0]);
      forEachDeal(digits.drop_front(), deal, visit);
      deal[place].erase(deal[place].begin() + at);
    }
}

static layout::Product productOf(const std::vector<SubAxis> &digits) {
  layout::Product product;
  for (const SubAxis &digit : digits)
    product.push_back(layout::Factor::device(digit));
  product.push_back(layout::Factor::rest());
  return product;
}

namespace {
class BestPlacement {
public:
  BestPlacement(Moves &moves, layout::Plans &plans)
      : moves(moves), plans(plans), mesh(plans.getMesh()) {
    for (auto [number, axis] : llvm::enumerate(mesh.axes))
      for (int64_t pre = 1; pre < axis.size;) {
        int64_t digit = 2;
        while (axis.size / pre % digit)
          ++digit;
        digits.push_back({int(number), pre, digit});
        pre *= digit;
      }
  }

  /// The seconds of `function`, whose arguments have views; of its result too,
  /// if `result` is one. Fails with a diagnostic.
  FailureOr<double> find(func::FuncOp function, std::optional<View> result);

private:
  /// One way to place an op: the numbers of views.
  struct Way {
    std::vector<int> operands;
    int result;
    double work;
  };
  /// The views of a value, and the seconds between any two.
  struct Views {
    std::vector<View> views;
    std::map<View, int> numbers;
    std::map<std::pair<int, int>, double> seconds;
  };

  int numberOf(Value value, const View &view);
  double seconds(Value value, int from, int to);
  void findWays(Operation *op);
  void addWay(Operation *op, const Placement &placement);
  void evaluate(Operation *op);
  /// What it takes to have `value`, which lies in some view after the time of
  /// `lies`, in each view.
  void reach(Value value, const std::vector<double> &lies);

  Moves &moves;
  layout::Plans &plans;
  const layout::Mesh &mesh;
  std::vector<SubAxis> digits;
  llvm::DenseMap<Value, Views> views;
  llvm::DenseMap<Operation *, std::map<std::pair<std::vector<int>, int>, Way>>
      ways;
  llvm::DenseMap<Value, std::vector<double>> lies, reached;
};
} // namespace

int BestPlacement::numberOf(Value value, const View &view) {
  Views &of = views[value];
  auto [known, isNew] = of.numbers.try_emplace(view, int(of.views.size()));
  if (isNew)
    of.views.push_back(view);
  return known->second;
}

double BestPlacement::seconds(Value value, int from, int to) {
  if (from == to)
    return 0;
  Views &of = views[value];
  auto [known, isNew] = of.seconds.try_emplace({from, to}, kNever);
  if (isNew) {
    Result<const layout::Plan *> plan = plans.get(
        moves.getTypicalShape(value), ExtentAnalysis::getElementBytes(value),
        of.views[from], of.views[to]);
    if (plan)
      known->second = (*plan)->chosen.cost.seconds;
  }
  return known->second;
}

void BestPlacement::addWay(Operation *op, const Placement &placement) {
  auto isLegal = [&](Value value, const View &view) {
    return bool(layout::verify(view, moves.getMaxShape(value), mesh));
  };
  Way way;
  for (auto [value, view] :
       llvm::zip_equal(op->getOperands(), placement.operands)) {
    if (!isLegal(value, view))
      return;
    way.operands.push_back(numberOf(value, view));
  }
  if (!isLegal(op->getResult(0), placement.results[0]))
    return;
  way.result = numberOf(op->getResult(0), placement.results[0]);
  way.work = getWork(op, placement, moves);
  auto [known, isNew] =
      ways[op].try_emplace({way.operands, way.result}, std::move(way));
  if (!isNew)
    known->second.work = std::min(known->second.work, way.work);
}

void BestPlacement::findWays(Operation *op) {
  if (auto reinterpretation = dyn_cast<ReinterpretOpInterface>(op)) {
    for (Value value : {op->getOperand(0), Value(op->getResult(0))}) {
      auto type = cast<RankedTensorType>(value.getType());
      Deal deal(type.getRank() + 1); // the last are partial
      forEachDeal(digits, deal, [&](const Deal &deal) {
        View view;
        for (int64_t d = 0; d < type.getRank(); ++d)
          view.dims.push_back({productOf(deal[d]), 1});
        if (!deal.back().empty())
          view.partial.push_back({deal.back(), layout::Combiner::Sum});
        view = layout::canonicalize(view, moves.getMaxShape(value), mesh);
        if (value == op->getResult(0)) {
          Result<View> operand = reinterpretation.getOperandView(view, mesh);
          if (!operand)
            return;
          view = placesOf(*operand);
        }
        if (auto result = reinterpret(reinterpretation, view, mesh))
          addWay(op, {{view}, {*result}});
      });
    }
    return;
  }
  auto ruled = cast<ShardingRuleOpInterface>(op);
  PlacedOp placed(ruled, {});
  const size_t factors = placed.getRule().factors.size();
  // Which operands may be partial sums.
  std::vector<Delay> delays;
  for (unsigned mask = 1; mask < 1u << op->getNumOperands(); ++mask) {
    Delay delay{{}, {}, {}};
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      delay.operands.push_back(
          mask >> i & 1 ? std::optional(layout::Combiner::Sum) : std::nullopt);
    std::string why;
    if (succeeded(ruled.transferPartial(delay.operands, delay.results, why)))
      delays.push_back(std::move(delay));
  }
  Deal deal(factors + delays.size());
  forEachDeal(digits, deal, [&](const Deal &deal) {
    Division division;
    for (size_t f = 0; f < factors; ++f)
      division.products.push_back(productOf(deal[f]));
    for (size_t i = 0; i < delays.size(); ++i)
      for (const SubAxis &axis : deal[factors + i]) {
        division.delays.push_back(delays[i]);
        division.delays.back().axis = axis;
      }
    if (Result<Placement> placement = placed.place(division))
      addWay(op, *placement);
  });
}

void BestPlacement::reach(Value value, const std::vector<double> &lies) {
  std::vector<double> &least = reached[value];
  least.assign(views[value].views.size(), kNever);
  for (size_t from = 0; from < lies.size(); ++from)
    for (size_t to = 0; lies[from] < kNever && to < least.size(); ++to)
      least[to] = std::min(least[to], lies[from] + seconds(value, from, to));
}

void BestPlacement::evaluate(Operation *op) {
  Value result = op->getResult(0);
  std::vector<double> &least = lies[result];
  least.assign(views[result].views.size(), kNever);
  for (const auto &[key, way] : ways[op]) {
    double sum = way.work;
    for (auto [value, view] : llvm::zip_equal(op->getOperands(), way.operands))
      sum += reached[value][view];
    least[way.result] = std::min(least[way.result], sum);
  }
}

FailureOr<double> BestPlacement::find(func::FuncOp function,
                                      std::optional<View> result) {
  Block &body = function.getBody().front();
  Value returned = body.getTerminator()->getOperand(0), shared;
  std::vector<Operation *> ops;
  for (Operation &op : body.without_terminator())
    ops.push_back(&op);
  SmallVector<Value> values(function.getArguments());
  for (Operation *op : ops) {
    findWays(op);
    values.push_back(op->getResult(0));
  }
  for (Value value : values) {
    if (value.hasOneUse())
      continue;
    if (shared || std::distance(value.use_begin(), value.use_end()) != 2)
      return emitError(value.getLoc())
             << "test-placement needs a tree of one use a value, but for one "
                "value with two";
    shared = value;
  }
  const int end = result ? numberOf(returned, *result) : -1;
  for (Value argument : function.getArguments()) {
    int number = numberOf(argument, placesOf(argument));
    lies[argument].assign(views[argument].views.size(), kNever);
    lies[argument][number] = 0;
  }

  double best = kNever;
  auto finish = [&](double before) {
    if (end >= 0)
      return best = std::min(best, before + reached[returned][end]);
    for (auto [number, view] : llvm::enumerate(views[returned].views))
      if (view.partial.empty())
        best = std::min(best, before + reached[returned][number]);
    return best;
  };
  // All but the shared value, and what is computed from it.
  llvm::DenseSet<Operation *> later;
  for (Value argument : function.getArguments())
    if (argument != shared)
      reach(argument, lies[argument]);
  for (Operation *op : ops) {
    if (llvm::any_of(op->getOperands(), [&](Value value) {
          return value == shared || later.contains(value.getDefiningOp());
        })) {
      later.insert(op);
      continue;
    }
    evaluate(op);
    reach(op->getResult(0), lies[op->getResult(0)]);
  }
  if (!shared)
    return finish(0);
  const std::vector<double> from = lies[shared];
  for (size_t is = 0; is < from.size(); ++is)
    for (size_t copy = 0; copy < views[shared].views.size(); ++copy) {
      double before = from[is] + seconds(shared, is, copy);
      if (before >= best)
        continue;
      std::vector<double> both(copy + 1 > is + 1 ? copy + 1 : is + 1, kNever);
      both[is] = both[copy] = 0;
      reach(shared, both);
      for (Operation *op : ops)
        if (later.contains(op)) {
          evaluate(op);
          reach(op->getResult(0), lies[op->getResult(0)]);
        }
      finish(before);
    }
  return best;
}

namespace {
struct TestPlacementPass
    : public PassWrapper<TestPlacementPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestPlacementPass)
  TestPlacementPass() = default;
  TestPlacementPass(const TestPlacementPass &other) : PassWrapper(other) {}
  StringRef getArgument() const override { return "test-placement"; }
  StringRef getDescription() const override {
    return "Say what each function takes, or takes at best";
  }
  Option<bool> best{*this, "best",
                    llvm::cl::desc("Under the best of all placements"),
                    llvm::cl::init(false)};

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      FailureOr<double> seconds =
          best ? ofBest(function) : ofFunction(function);
      if (failed(seconds))
        return signalPassFailure();
      function.emitRemark()
          << (best ? "at best " : "takes ")
          << llvm::formatv("{0:f4}", *seconds * 1e6).str() << " us";
    }
  }

  FailureOr<double> ofFunction(func::FuncOp function) {
    FailureOr<Moves> moves = Moves::get(function);
    if (failed(moves))
      return failure();
    // What the user says of the result holds.
    auto type = cast<RankedTensorType>(function.getResultTypes()[0]);
    if (auto user = function.getResultAttrOfType<ViewAttr>(0, kUserViewAttr);
        user && placesOf(getView(type).getView()) !=
                    layout::canonicalize(placesOf(user.getView()),
                                         layout::Shape(type.getShape()),
                                         user.getLayoutMesh()))
      return function.emitError() << "returns what does not lie as " << user;
    std::optional<layout::Price> price = priceOf(function, *moves);
    if (!price)
      return function.emitError() << "has a move without a plan";
    return price->seconds;
  }

  FailureOr<double> ofBest(func::FuncOp function) {
    Type type = function.getFunctionType().getResult(0);
    std::optional<View> result;
    if (ViewAttr view = getView(type))
      result = placesOf(view.getView());
    MeshAttr mesh = getView(function.getArgumentTypes()[0]).getMesh();
    // A rule needs types with views; which does not matter.
    OwningOpRef<func::FuncOp> copy = function.clone();
    for (Operation &op : copy->getBody().front().without_terminator()) {
      auto type = cast<RankedTensorType>(op.getResult(0).getType());
      op.getResult(0).setType(
          withEncoding(type, ViewAttr::get(&getContext(), mesh,
                                           View::replicated(type.getRank()))));
    }
    FailureOr<Moves> moves = Moves::get(*copy);
    if (failed(moves))
      return failure();
    if (!plans || plans->getMesh() != mesh.getMesh())
      plans.emplace(mesh.getMesh());
    return BestPlacement(*moves, *plans).find(*copy, result);
  }

  std::optional<layout::Plans> plans; ///< over the last mesh
};
} // namespace

void tessera::test::registerPlacementTestPass() {
  PassRegistration<TestPlacementPass>();
}
