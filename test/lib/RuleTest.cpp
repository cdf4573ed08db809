//===- RuleTest.cpp - every sharding rule, checked by brute force --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// test-sharding-rules evaluates each function on whole tensors, then each op
// again on devices: for every factor of the op's rule, every kind of split and
// several meshes, and for every two factors on the two axes of a mesh, it lays
// the operands out as the rule says, evaluates each device by itself and
// compares the assembled results. Then the same for partial states: for every
// set of operands and combiner that `transferPartial` allows, operands become
// addends, and the results must be what it says. Reinterpreting ops get every
// split of every operand dimension and the view that they answer; ops with
// windows every split of every dimension of the whole, and of every two, with
// the views of the boxes.
//
// Nothing of a rule is taken on trust: an evaluator finds elements by global
// index and misses those that a device does not hold. What the rule says of
// reductions decides only what partial state the result is assembled by.
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Machine/Inputs.h"
#include "Interpreter/Machine/Tolerance.h"
#include "TensorView/TensorView.h"
#include "lib/TestPasses.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;
using layout::Combiner;
using layout::Factor;
using layout::Mesh;
using layout::Product;
using layout::SubAxis;
using layout::View;
using Kind = layout::IterationFactor::Kind;
using State = std::optional<Combiner>;

namespace {
/// One way to split a dimension.
struct Split {
  const char *name;
  Product product;
};

class OpTest {
public:
  OpTest(Operation *op, const Interpreter &reference)
      : op(op), reference(reference) {}

  LogicalResult run();
  int64_t numCases = 0;

private:
  LogicalResult testFactors(const Mesh &mesh, const layout::Rule &rule);
  LogicalResult testSplits(const Mesh &mesh, const layout::Rule &rule,
                           const std::map<int, Product> &splits,
                           const Twine &what);
  LogicalResult testPartials(const Mesh &mesh);
  LogicalResult testReinterpret(const Mesh &mesh,
                                tv::ReinterpretOpInterface reinterpret);
  LogicalResult testWindows(const Mesh &mesh, tv::WindowOpInterface windows);
  /// Evaluates on each device, with the views of operands and results.
  LogicalResult check(const Mesh &mesh, ArrayRef<View> operands,
                      ArrayRef<View> results, const Twine &what);
  Tensor lay(const Tensor &tensor, const View &view, const Mesh &mesh);
  std::vector<View> wholeViews(ValueRange values);

  Operation *op;
  const Interpreter &reference;
};
} // namespace

/// The whole of an axis as a digit.
static Factor deviceOf(const Mesh &mesh, int axis) {
  return Factor::device({axis, 1, mesh.axes[axis].size});
}

static std::vector<Split> splitsOver(const Mesh &mesh) {
  std::vector<Factor> devices;
  for (size_t axis = 0; axis < mesh.axes.size(); ++axis)
    devices.push_back(deviceOf(mesh, axis));
  Factor rest = Factor::rest();
  std::vector<Split> splits{
      {"blocks", {devices[0], rest}},
      {"cyclic", {rest, devices[0]}},
      {"block-cyclic", {rest, devices[0], Factor::stored(2)}}};
  if (devices.size() > 1) {
    splits.push_back({"both axes", {devices[1], devices[0], rest}});
    splits.push_back({"both ends", {devices[0], rest, devices[1]}});
  }
  return splits;
}

/// A value as addends: for sums numbers that add up to it, for max and min the
/// value on one device and something beyond it on the others.
Tensor OpTest::lay(const Tensor &tensor, const View &view, const Mesh &mesh) {
  Tensor laid = distribute(tensor.parts[0], Layout{view, mesh});
  if (view.partial.empty())
    return laid;
  const auto &[axes, combiner] = view.partial[0];
  int64_t addends = 1;
  for (const SubAxis &sub : axes)
    addends *= sub.size;
  Type type = tensor.parts[0]->type;
  for (size_t rank = 0; rank < laid.parts.size(); ++rank) {
    int64_t digit = 0;
    for (const SubAxis &sub : axes)
      digit = digit * sub.size + sub.digit(mesh, mesh.coordsOfRank(rank));
    Placement place = Placement::of(view, laid.shape, mesh, rank);
    NDArray &part = *laid.parts[rank];
    place.forEach([&](ArrayRef<int64_t> index, int64_t at) {
      int64_t number = linearize(index, laid.shape);
      Scalar value = tensor.parts[0]->data[number];
      int64_t owner = number % addends;
      if (combiner == Combiner::Sum) {
        // 1, 2, ... on the others, the remainder on the owner.
        int64_t total = addends * (addends + 1) / 2 - (owner + 1);
        int64_t own = digit == owner ? -total : digit + 1;
        part.data[at] =
            isFloat(type)
                ? real((digit == owner ? value.real : 0) + double(own))
                : whole(wrapTo((digit == owner ? value.whole : 0) + own, type));
        return;
      }
      int64_t beyond = digit == owner              ? 0
                       : combiner == Combiner::Max ? -(digit + 1)
                                                   : digit + 1;
      part.data[at] = isFloat(type) ? real(value.real + double(beyond))
                      : type.isUnsignedInteger()
                          ? whole(std::max<int64_t>(value.whole + beyond, 0))
                          : whole(value.whole + beyond);
    });
  }
  return laid;
}

std::vector<View> OpTest::wholeViews(ValueRange values) {
  std::vector<View> views;
  for (Value value : values)
    views.push_back(View::replicated(reference.lookup(value)->shape.size()));
  return views;
}

LogicalResult OpTest::check(const Mesh &mesh, ArrayRef<View> operands,
                            ArrayRef<View> results, const Twine &what) {
  ++numCases;
  std::string views;
  for (ArrayRef<View> side : {operands, results}) {
    views += side.data() == results.data() ? " ->" : "";
    for (const View &view : side)
      views += " " + layout::toString(view, mesh);
  }
  auto describe = [&](InFlightDiagnostic diagnostic) -> InFlightDiagnostic {
    diagnostic.attachNote()
        << what << " on a mesh " << layout::toString(mesh) << ":" << views;
    return diagnostic;
  };
  std::vector<Tensor> in, out;
  for (auto [value, view] : llvm::zip_equal(op->getOperands(), operands))
    in.push_back(lay(*reference.lookup(value), view, mesh));
  for (auto [value, view] : llvm::zip_equal(op->getResults(), results))
    out.push_back({reference.lookup(value)->shape, Layout{view, mesh}, {}});
  for (int64_t rank = 0; rank < mesh.numDevices(); ++rank) {
    auto placeOf = [&](const Tensor &tensor) {
      return std::make_shared<Placement>(
          Placement::of(tensor.layout->view, tensor.shape, mesh, rank));
    };
    OpRun run;
    run.op = op;
    for (const Tensor &tensor : in)
      run.operands.push_back({placeOf(tensor), tensor.parts[rank]});
    for (auto [value, tensor] : llvm::zip_equal(op->getResults(), out)) {
      auto place = placeOf(tensor);
      Type element = reference.lookup(value)->parts[0]->type;
      run.results.push_back(
          {place, std::make_shared<NDArray>(element, place->localShape())});
    }
    run.captured = [&](Value value) {
      const Tensor &tensor = *reference.lookup(value);
      return Part{std::make_shared<Placement>(Placement::whole(tensor.shape)),
                  tensor.parts[0]};
    };
    LogicalResult ran = evaluatorOf(op)(run);
    if (failed(ran) || !run.error.empty())
      return describe(op->emitOpError()
                      << "cannot run as its rule says: on rank " << rank << " "
                      << run.error);
    for (auto [tensor, part] : llvm::zip_equal(out, run.results))
      tensor.parts.push_back(part.data);
  }
  for (auto [i, tensor] : llvm::enumerate(out)) {
    double largestAddend = 0;
    Result<std::shared_ptr<NDArray>> array = assemble(tensor, largestAddend);
    if (!array)
      return describe(op->emitOpError()
                      << "result #" << i << ": " << array.message());
    const NDArray &expected = *reference.lookup(op->getResult(i))->parts[0];
    for (auto [at, value] : llvm::enumerate((*array)->data)) {
      // Only the order of sums differs; addends are a few units large.
      Scalar exact = expected.data[at];
      bool equal = expected.isFloat()
                       ? value.real == exact.real ||
                             std::fabs(value.real - exact.real) <=
                                 1e-10 * (1 + std::fabs(exact.real))
                       : value.whole == exact.whole;
      if (!equal)
        return describe(op->emitOpError()
                        << "result #" << i << " differs at "
                        << indexText(delinearize(at, expected.shape)) << ": "
                        << toString(value, expected.type) << " on devices, "
                        << toString(exact, expected.type) << " whole");
    }
  }
  return success();
}

/// The products of the factors that are split.
using Splits = std::map<int, Product>;

/// The view of a value whose dimensions have these factors; nothing where the
/// sizes of several factors of one dimension are not known.
static std::optional<View> viewOf(const std::vector<layout::DimFactors> &dims,
                                  const layout::Rule &rule,
                                  const Splits &splits) {
  View view = View::replicated(dims.size());
  for (auto [d, factors] : llvm::enumerate(dims)) {
    if (!llvm::any_of(factors, [&](int f) { return splits.count(f); }))
      continue;
    if (factors.size() == 1) {
      view.dims[d].product = splits.at(factors[0]);
      continue;
    }
    // The factors' products in turn, each as a group of its size.
    Product all;
    for (int f : factors) {
      int64_t size = rule.factors[f].size;
      if (size == layout::kDynamic)
        return std::nullopt;
      auto split = splits.find(f);
      all.push_back(split == splits.end()
                        ? Factor::stored(size)
                        : Factor::group(split->second, 0, size));
    }
    view.dims[d].product = std::move(all);
  }
  return view;
}

LogicalResult OpTest::testSplits(const Mesh &mesh, const layout::Rule &rule,
                                 const Splits &splits, const Twine &what) {
  // Sums over devices, and what joins them once, are partial.
  auto partialOf = [&](size_t result) {
    std::vector<layout::Partial> partial;
    for (const auto &[f, product] : splits) {
      if (!rule.makesPartial(f, result))
        continue;
      if (partial.empty())
        partial.push_back({{}, rule.factors[f].combiner});
      llvm::append_range(partial[0].axes, layout::axesOf(product));
    }
    return partial;
  };
  std::vector<View> operands, results;
  auto lay = [&](const std::vector<layout::DimFactors> &dims,
                 std::vector<layout::Partial> partial,
                 std::vector<View> &views) {
    std::optional<View> view = viewOf(dims, rule, splits);
    if (!view)
      return failure();
    view->partial = std::move(partial);
    views.push_back(std::move(*view));
    return success();
  };
  for (auto [dims, use] : llvm::zip_equal(rule.operands, rule.uses))
    if (failed(lay(dims,
                   use == layout::Use::Added ? partialOf(0)
                                             : std::vector<layout::Partial>(),
                   operands)))
      return op->emitOpError() << "has factors without sizes";
  for (auto [number, dims] : llvm::enumerate(rule.results))
    if (failed(lay(dims, partialOf(number), results)))
      return op->emitOpError() << "has factors without sizes";
  return check(mesh, operands, results, what);
}

LogicalResult OpTest::testFactors(const Mesh &mesh, const layout::Rule &rule) {
  auto splits = [&](size_t f) {
    return rule.factors[f].kind != Kind::Sequential &&
           rule.factors[f].kind != Kind::Shifted;
  };
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    if (!splits(f))
      continue;
    for (const Split &split : splitsOver(mesh))
      if (failed(testSplits(mesh, rule, {{int(f), split.product}},
                            "factor " + Twine(f) + " in " + split.name)))
        return failure();
    // Two factors, one on each axis: blocks and cyclic.
    for (size_t g = 0; g < rule.factors.size() && mesh.axes.size() > 1; ++g)
      if (g != f && splits(g) &&
          failed(testSplits(mesh, rule,
                            {{int(f), {deviceOf(mesh, 0), Factor::rest()}},
                             {int(g), {Factor::rest(), deviceOf(mesh, 1)}}},
                            "factor " + Twine(f) + " in blocks and factor " +
                                Twine(g) + " cyclic")))
        return failure();
  }
  return success();
}

LogicalResult OpTest::testPartials(const Mesh &mesh) {
  auto rules = cast<tv::ShardingRuleOpInterface>(op);
  unsigned count = op->getNumOperands();
  SubAxis axis{0, 1, mesh.axes[0].size};
  if (count > 8)
    return op->emitOpError() << "has too many operands for this test";
  for (Combiner combiner : {Combiner::Sum, Combiner::Max, Combiner::Min})
    for (unsigned set = 1; set < (1u << count); ++set) {
      SmallVector<State> in, out;
      for (unsigned i = 0; i < count; ++i)
        in.push_back(set >> i & 1 ? State(combiner) : State());
      std::string why;
      if (failed(rules.transferPartial(in, out, why)))
        continue;
      std::vector<View> operands = wholeViews(op->getOperands());
      std::vector<View> results = wholeViews(op->getResults());
      for (auto [view, state] : llvm::zip_equal(operands, in))
        if (state)
          view.partial = {{{axis}, *state}};
      for (auto [view, state] : llvm::zip_equal(results, out))
        if (state)
          view.partial = {{{axis}, *state}};
      if (failed(check(mesh, operands, results, "partial operands")))
        return failure();
    }
  return success();
}

LogicalResult OpTest::testReinterpret(const Mesh &mesh,
                                      tv::ReinterpretOpInterface reinterpret) {
  Shape from = reference.lookup(op->getOperand(0))->shape;
  Shape to = reference.lookup(op->getResult(0))->shape;
  for (bool forward : {true, false})
    for (size_t dim = 0; dim < (forward ? from : to).size(); ++dim)
      for (const Split &split : splitsOver(mesh)) {
        const Shape &shape = forward ? from : to;
        View given = View::replicated(shape.size());
        given.dims[dim].product = split.product;
        given = layout::canonicalize(given, shape, mesh);
        Result<View> other = forward ? reinterpret.getResultView(given, mesh)
                                     : reinterpret.getOperandView(given, mesh);
        if (!other)
          return op->emitOpError()
                 << "gives no view for " << layout::toString(given, mesh)
                 << ": " << other.message();
        if (failed(check(
                mesh, {forward ? given : *other}, {forward ? *other : given},
                Twine("dimension ") + Twine(dim) + " in " + split.name)))
          return failure();
      }
  return success();
}

LogicalResult OpTest::testWindows(const Mesh &mesh,
                                  tv::WindowOpInterface windows) {
  Value value = windows.getWhole();
  const Shape &shape = reference.lookup(value)->shape;
  auto test = [&](View whole, const Twine &what) -> LogicalResult {
    whole = layout::canonicalize(whole, shape, mesh);
    Result<std::vector<View>> boxes = tv::getBoxViews(windows, whole, mesh);
    if (!boxes)
      return op->emitOpError()
             << "gives no views for " << layout::toString(whole, mesh) << ": "
             << boxes.message();
    return value.getDefiningOp() == op ? check(mesh, *boxes, {whole}, what)
                                       : check(mesh, {whole}, *boxes, what);
  };
  for (size_t d = 0; d < shape.size(); ++d) {
    for (const Split &split : splitsOver(mesh)) {
      View whole = View::replicated(shape.size());
      whole.dims[d].product = split.product;
      if (failed(test(whole, "dimension " + Twine(d) + " of the whole in " +
                                 split.name)))
        return failure();
    }
    for (size_t e = 0; e < shape.size() && mesh.axes.size() > 1; ++e) {
      View whole = View::replicated(shape.size());
      whole.dims[d].product = {deviceOf(mesh, 0), Factor::rest()};
      whole.dims[e].product = {Factor::rest(), deviceOf(mesh, 1)};
      if (d != e &&
          failed(test(whole, "dimension " + Twine(d) +
                                 " of the whole in blocks, dimension " +
                                 Twine(e) + " cyclic")))
        return failure();
    }
  }
  return success();
}

LogicalResult OpTest::run() {
  for (Value value : op->getOperands())
    if (!reference.lookup(value))
      return success();
  Mesh meshes[] = {{{{"x", 2}}, {}},
                   {{{"x", 3}}, {}},
                   {{{"x", 4}}, {3, 1, 0, 2}},
                   {{{"x", 2}, {"y", 2}}, {}},
                   {{{"x", 3}, {"y", 2}}, {}}};
  for (const Mesh &mesh : meshes) {
    if (auto reinterpret = dyn_cast<tv::ReinterpretOpInterface>(op)) {
      if (failed(testReinterpret(mesh, reinterpret)))
        return failure();
    } else if (auto rules = dyn_cast<tv::ShardingRuleOpInterface>(op)) {
      if (failed(testFactors(mesh, rules.getShardingRule())) ||
          failed(testPartials(mesh)))
        return failure();
    }
    if (auto windows = dyn_cast<tv::WindowOpInterface>(op))
      if (failed(testWindows(mesh, windows)))
        return failure();
  }
  return success();
}

namespace {
struct TestShardingRulesPass
    : public PassWrapper<TestShardingRulesPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestShardingRulesPass)
  StringRef getArgument() const override { return "test-sharding-rules"; }
  StringRef getDescription() const override {
    return "Check the rule of each op in each function by brute force";
  }

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(test(function)))
        signalPassFailure();
  }

  LogicalResult test(func::FuncOp function) {
    if (function.isExternal())
      return function.emitError() << "has no body to test";
    Config config;
    config.ignoreViews = true;
    FailureOr<std::map<std::string, int64_t>> sizes = chooseSizes(function, {});
    if (failed(sizes))
      return failure();
    config.sizes = *sizes;
    FailureOr<std::vector<std::shared_ptr<NDArray>>> inputs =
        makeInputs(function, *sizes, /*seed=*/1, /*files=*/nullptr);
    Interpreter interpreter(config);
    if (failed(inputs) || failed(interpreter.run(function, *inputs)))
      return failure();
    LogicalResult result = success();
    for (Operation &op : function.getBody().front()) {
      if (!isa<tv::ShardingRuleOpInterface, tv::ReinterpretOpInterface>(op))
        continue;
      OpTest test(&op, interpreter);
      if (failed(test.run()))
        result = failure();
      else
        llvm::outs() << op.getName() << ": " << test.numCases
                     << " cases agree\n";
    }
    return result;
  }
};
} // namespace

void tessera::test::registerRuleTestPass() {
  PassRegistration<TestShardingRulesPass>();
}
