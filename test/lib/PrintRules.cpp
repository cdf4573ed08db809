//===- PrintRules.cpp - shows what ops do to dimensions ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `tv-print-rules`: one remark an op. A letter is a factor; each dimension
// lists its own.
//
//     // remark: (a, c) (b, c) -> (a, b) | a parallel 4, b parallel 16,
//     //         c reduction sum 8
//     %y = tv.linear %x, %w : ...
//
// With `partial`, the partial states that the op lets through; with `refused`,
// the others too, with the reason; with `extents`, the extents of its results
// in terms of dynamic sizes; with `rules=false`, only these.
//
//===----------------------------------------------------------------------===//

#include "TensorView/ExtentAnalysis.h"
#include "TensorView/TensorView.h"
#include "lib/TestPasses.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

/// "a", "b", ...; then "a1", "b1", ...
static std::string nameOf(int factor) {
  std::string name(1, char('a' + factor % 26));
  return factor < 26 ? name : name + std::to_string(factor / 26);
}

static const char *kindText(layout::IterationFactor::Kind kind) {
  using Kind = layout::IterationFactor::Kind;
  switch (kind) {
  case Kind::Parallel:
    return "parallel";
  case Kind::Reduction:
    return "reduction";
  case Kind::Shifted:
    return "shifted";
  case Kind::Indexed:
    return "indexed";
  case Kind::Sequential:
    return "sequential";
  }
  return "";
}

static std::string text(const std::vector<layout::DimFactors> &dims) {
  std::string text = "(";
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(dims, os, [&](const layout::DimFactors &factors) {
    if (factors.empty())
      os << "-";
    llvm::interleave(
        factors, os, [&](int f) { os << nameOf(f); }, "*");
  });
  return text + ")";
}

/// `(a, b) added (b) -> (a) | a parallel 4, b reduction sum 8`
static std::string text(const layout::Rule &rule) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (auto [dims, use] : llvm::zip_equal(rule.operands, rule.uses)) {
    if (use == layout::Use::Added)
      os << "added ";
    if (use == layout::Use::Unread)
      os << "unread ";
    os << ::text(dims) << " ";
  }
  os << "->";
  for (const auto &dims : rule.results)
    os << " " << ::text(dims);
  for (auto [f, factor] : llvm::enumerate(rule.factors)) {
    os << (f ? ", " : " | ") << nameOf(f) << " " << kindText(factor.kind);
    if (factor.kind == layout::IterationFactor::Kind::Reduction)
      os << " " << layout::toString(factor.combiner);
    if (factor.size == layout::kDynamic)
      os << " ?";
    else
      os << " " << factor.size;
  }
  return text;
}

using State = std::optional<layout::Combiner>;

static std::string text(ArrayRef<State> states) {
  std::string text = "(";
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(states, os, [&](State state) {
    os << (state ? layout::toString(*state) : "-");
  });
  return text + ")";
}

/// Every choice of operands that may be partial by one combiner, with the
/// results'. Lists refusals too if `why`.
static void printPartial(ShardingRuleOpInterface op, bool why) {
  unsigned count = std::min(op->getNumOperands(), 6u);
  for (auto combiner :
       {layout::Combiner::Sum, layout::Combiner::Max, layout::Combiner::Min})
    for (unsigned set = 1; set < 1u << count; ++set) {
      SmallVector<State> operands(op->getNumOperands()), results;
      for (unsigned i = 0; i < count; ++i)
        if (set >> i & 1)
          operands[i] = combiner;
      std::string reason;
      if (succeeded(op.transferPartial(operands, results, reason)))
        op->emitRemark() << "partial " << text(operands) << " -> "
                         << text(results);
      else if (why)
        op->emitRemark() << "partial " << text(operands) << ": " << reason;
    }
}

namespace {
class PrintRules : public PassWrapper<PrintRules, OperationPass<>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintRules)

  PrintRules() = default;
  PrintRules(const PrintRules &other) : PassWrapper(other) {}
  StringRef getArgument() const override { return "tv-print-rules"; }
  StringRef getDescription() const override {
    return "Shows what each op does to dimensions";
  }

  void runOnOperation() override {
    getOperation()->walk([&](func::FuncOp function) {
      if (extents)
        printExtents(function);
      function->walk([&](ShardingRuleOpInterface op) {
        if (rules)
          op->emitRemark() << text(op.getShardingRule());
        if (partial || refused)
          printPartial(op, refused);
      });
    });
    markAllAnalysesPreserved();
  }

private:
  Option<bool> rules{*this, "rules", llvm::cl::init(true),
                     llvm::cl::desc("The ops' rules")};
  Option<bool> partial{*this, "partial", llvm::cl::init(false),
                       llvm::cl::desc("Partial operands that an op may run on, "
                                      "with the results' states")};
  Option<bool> refused{
      *this, "refused", llvm::cl::init(false),
      llvm::cl::desc("And those that it may not, with the reason")};
  Option<bool> extents{
      *this, "extents", llvm::cl::init(false),
      llvm::cl::desc("Extents of results in terms of dynamic sizes")};

  void printExtents(func::FuncOp function) {
    FailureOr<ExtentAnalysis> analysis = ExtentAnalysis::run(function);
    if (failed(analysis))
      return signalPassFailure();
    for (Block &block : function.getBody())
      for (Operation &op : block)
        for (OpResult result : op.getResults()) {
          std::string text;
          llvm::raw_string_ostream os(text);
          llvm::interleaveComma(analysis->get(result), os,
                                [&](const layout::Extent &extent) {
                                  os << layout::toString(extent);
                                });
          op.emitRemark() << "extents of result #" << result.getResultNumber()
                          << ": [" << text << "]";
        }
  }
};
} // namespace

void tessera::test::registerPrintRulesPass() { PassRegistration<PrintRules>(); }
