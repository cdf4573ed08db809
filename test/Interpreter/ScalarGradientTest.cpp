//===- ScalarGradientTest.cpp - slopes of scalar ops ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rule of TensorView/ScalarGradient.cpp against differences of what the
// interpreter computes, and by expected numbers where there is no slope.
//
//===----------------------------------------------------------------------===//

#include "TensorView/ScalarGradient.h"
#include "Interpreter/Ops/Evaluators.h"
#include "Interpreter/Ops/ScalarProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

namespace {
/// y of s and of an element t of a captured tensor, with both gradients.
class Function {
public:
  explicit Function(const std::string &body) : text(body) {
    context.loadDialect<arith::ArithDialect, func::FuncDialect,
                        math::MathDialect, tv::TensorViewDialect>();
    module =
        parseSourceString<ModuleOp>(
            R"(
      !x = tensor<1x1x1x1xf64>
      !l = tensor<1x1x1xf64>
      func.func @f(%x: !x, %l: !l, %tensor: tensor<f64>) {
        %0, %1, %2, %3 = tv.attention_grad %x, %x, %x, %x, %x, %l scale(1.0)
            captured %tensor : (!x, !x, !x, !x, !x, !l, tensor<f64>)
            -> (!x, !x, !x, tensor<f64>)
          score_mod (%s: f64, %b: index, %h: index, %q: index, %k: index) {
            %t = tv.load %tensor[] : tensor<f64> -> f64
            )" + body +
                R"(
            tv.yield %y : f64
          }
        return
      })",
            &context);
    if (!module)
      return;
    module->walk([&](tv::AttentionGradOp found) { op = found; });
    isDifferentiated = succeeded(tv::addScoreGrad(op));
    run.op = op;
    element = std::make_shared<NDArray>(Float64Type::get(&context), Shape{});
    run.captured = [this](Value) {
      return Part{std::make_shared<Placement>(Placement::whole({})), element};
    };
    isDifferentiated &= succeeded(forward.compile(op.getScoreMod(), run)) &&
                        succeeded(backward.compile(op.getScoreGrad(), run));
    backward.accumulate = [this](int64_t, ArrayRef<int64_t>, double value) {
      slopes.second += value;
    };
  }

  double operator()(double s, double t) {
    element->data[0] = real(t);
    Scalar arguments[] = {real(s), {}, {}, {}, {}};
    return forward(arguments)[0].real;
  }
  /// By s and by t, of a gradient of 1.
  std::pair<double, double> slopesAt(double s, double t) {
    element->data[0] = real(t);
    slopes = {};
    Scalar arguments[] = {real(s), real(1), {}, {}, {}, {}};
    slopes.first = backward(arguments)[0].real;
    return slopes;
  }
  /// The same by differences of the fourth order.
  std::pair<double, double> differencesAt(double s, double t) {
    double h = 1e-3;
    auto along = [&](double ds, double dt) {
      auto at = [&](double by) { return (*this)(s + by * ds, t + by * dt); };
      return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
    };
    return {along(1, 0), along(0, 1)};
  }

  bool isDifferentiated = false;
  std::string text;

private:
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  tv::AttentionGradOp op;
  std::shared_ptr<NDArray> element;
  OpRun run;
  ScalarProgram forward, backward;
  std::pair<double, double> slopes;
};
} // namespace

TEST(ScalarGradientTest, SlopesAreThoseOfDifferences) {
  const char *unary[] = {
      "arith.negf", "math.absf",      "math.exp",   "math.exp2",  "math.expm1",
      "math.log",   "math.log2",      "math.log10", "math.log1p", "math.sqrt",
      "math.rsqrt", "math.cbrt",      "math.tanh",  "math.sinh",  "math.cosh",
      "math.sin",   "math.cos",       "math.tan",   "math.asin",  "math.acos",
      "math.atan",  "math.erf",       "math.erfc",  "math.floor", "math.ceil",
      "math.round", "math.roundeven", "math.trunc"};
  std::vector<std::pair<std::string, std::pair<double, double>>> cases;
  for (std::string name : unary) {
    std::string body =
        "%m = arith.mulf %s, %t : f64\n %y = " + name + " %m : f64";
    cases.push_back({body, {0.6, 0.7}});
  }
  for (std::string name :
       {"arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.remf",
        "arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf",
        "math.powf", "math.atan2", "math.copysign"})
    for (auto at :
         {std::pair(2.3, 0.7), std::pair(0.4, 1.9), std::pair(1.3, -0.6)})
      cases.push_back({"%y = " + name + " %s, %t : f64", at});
  cases.push_back({"%y = math.fma %s, %t, %s : f64", {1.7, -0.3}});
  cases.push_back({"%n = arith.constant -3 : i32\n"
                   "%m = arith.mulf %s, %t : f64\n"
                   "%y = math.fpowi %m, %n : f64, i32",
                   {1.7, -0.3}});
  // Through both branches, one in the other, and a value with two uses.
  const char *branches = R"(
      %zero = arith.constant 0.0 : f64
      %c = arith.cmpf ogt, %s, %zero : f64
      %d = arith.cmpf ogt, %t, %zero : f64
      %a = arith.mulf %s, %t : f64
      %e = math.exp %a : f64
      %n = arith.select %d, %a, %e : f64
      %m = arith.select %c, %n, %t : f64
      %y = arith.mulf %m, %a : f64)";
  for (double s : {0.5, -0.5})
    for (double t : {0.8, -0.8})
      cases.push_back({branches, {s, t}});
  // Conversions are exact here, and pass gradients as they are.
  cases.push_back({"%u = arith.truncf %s : f64 to f32\n"
                   "%v = arith.extf %u : f32 to f64\n"
                   "%y = arith.mulf %v, %t : f64",
                   {1.5, 0.25}});
  for (const auto &[body, at] : cases) {
    Function function(body);
    ASSERT_TRUE(function.isDifferentiated) << body;
    auto [s, t] = function.slopesAt(at.first, at.second);
    auto [ds, dt] = function.differencesAt(at.first, at.second);
    bool isNaN = std::isnan(dt); // of the power of a negative number by t
    EXPECT_NEAR(s, ds, 1e-7 * (1 + std::fabs(ds)))
        << body << " at " << at.first;
    if (!isNaN)
      EXPECT_NEAR(t, dt, 1e-7 * (1 + std::fabs(dt)))
          << body << " at " << at.second;
  }
}

TEST(ScalarGradientTest, TiesShareEvenly) {
  for (std::string name : {"maximumf", "minimumf", "maxnumf", "minnumf"}) {
    Function function("%y = arith." + name + " %s, %t : f64");
    EXPECT_EQ(function.slopesAt(2, 2), std::pair(0.5, 0.5)) << name;
  }
  Function absolute("%m = arith.mulf %s, %t : f64\n %y = math.absf %m : f64");
  EXPECT_EQ(absolute.slopesAt(0, 3), std::pair(0.0, 0.0));
}

TEST(ScalarGradientTest, ABranchNotTakenAddsNothing) {
  // The root's slope at 0 is infinite, below it is no number.
  Function root(R"(
      %zero = arith.constant 0.0 : f64
      %c = arith.cmpf ogt, %s, %zero : f64
      %m = arith.mulf %s, %t : f64
      %r = math.sqrt %m : f64
      %n = arith.negf %zero : f64
      %y = arith.select %c, %r, %n : f64)");
  EXPECT_EQ(root.slopesAt(0, 1), std::pair(0.0, 0.0));
  EXPECT_EQ(root.slopesAt(-1, 1), std::pair(0.0, 0.0));
  EXPECT_EQ(root.slopesAt(4, 1), std::pair(0.25, 1.0));
  // So where it meets the other branch's.
  Function sum(R"(
      %zero = arith.constant 0.0 : f64
      %c = arith.cmpf ogt, %s, %zero : f64
      %r = math.sqrt %s : f64
      %e = arith.mulf %s, %t : f64
      %y = arith.select %c, %r, %e : f64)");
  EXPECT_EQ(sum.slopesAt(-1, 3), std::pair(3.0, -1.0));
  EXPECT_EQ(sum.slopesAt(0, 3), std::pair(3.0, 0.0));
}

TEST(ScalarGradientTest, PowersOfZero) {
  Function power("%y = math.powf %s, %t : f64");
  EXPECT_EQ(power.slopesAt(0, 0), std::pair(0.0, 0.0));
  EXPECT_EQ(power.slopesAt(0, 2), std::pair(0.0, 0.0));
  EXPECT_EQ(power.slopesAt(3, 0).first, 0.0);
}
