//===- PlanBuilder.h - plans written by hand ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For tests of the module file and the runtime, without a compiler.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_MODULE_PLANBUILDER_H
#define TESSERA_TEST_MODULE_PLANBUILDER_H

#include "Module/Module.h"

#include <cstdlib>

namespace tessera::test {

/// constant + the sum of some coefficient * symbol.
struct Size {
  int64_t constant = 0;
  std::vector<std::pair<int64_t, int32_t>> terms;
  Size(int64_t constant) : constant(constant) {}
  static Size symbol(int32_t symbol, int64_t coefficient = 1) {
    Size size(0);
    size.terms.push_back({coefficient, symbol});
    return size;
  }
};

struct PlanBuilder {
  fb::PlanT plan;

  explicit PlanBuilder(std::string mesh) { plan.mesh = std::move(mesh); }

  static std::unique_ptr<fb::ExtentT> extent(const Size &size) {
    auto result = std::make_unique<fb::ExtentT>();
    result->constant = size.constant;
    for (auto [coefficient, symbol] : size.terms) {
      result->terms.push_back(std::make_unique<fb::TermT>());
      result->terms.back()->coefficient = coefficient;
      result->terms.back()->symbols = {symbol};
    }
    return result;
  }

  /// Makes it a plan for GPUs: each launch gets one device function, all of
  /// them one binary, the first byte of the code.
  void forCUDA() {
    plan.target = "cuda:sm_90a";
    auto binary = std::make_unique<fb::BinaryT>();
    binary->name = "kernels";
    binary->size = 1;
    plan.binaries.push_back(std::move(binary));
    for (const auto &step : plan.steps)
      if (fb::LaunchT *launch = step->action.AsLaunch()) {
        launch->functions.push_back(std::make_unique<fb::FunctionT>());
        launch->functions.back()->symbol = launch->symbol;
        launch->functions.back()->threads = 128;
      }
  }

  int symbol(std::string name, int64_t maximum, int64_t multiple = 1) {
    auto symbol = std::make_unique<fb::SymbolT>();
    symbol->name = std::move(name);
    symbol->maximum = maximum;
    symbol->multiple = multiple;
    plan.symbols.push_back(std::move(symbol));
    return plan.symbols.size() - 1;
  }

  int tensor(std::string name, std::vector<Size> shape, std::string view,
             fb::Storage storage = fb::Storage::Local,
             fb::DType dtype = fb::DType::F32) {
    auto tensor = std::make_unique<fb::TensorT>();
    tensor->name = std::move(name);
    tensor->dtype = dtype;
    for (const Size &size : shape)
      tensor->shape.push_back(extent(size));
    tensor->view = std::move(view);
    tensor->storage = storage;
    plan.tensors.push_back(std::move(tensor));
    return plan.tensors.size() - 1;
  }

  int alias(std::string name, int source, fb::AliasKind kind,
            std::vector<Size> shape, std::string view,
            std::vector<int32_t> dims = {}, std::vector<Size> offsets = {}) {
    int id = tensor(std::move(name), std::move(shape), std::move(view),
                    fb::Storage::Alias, plan.tensors[source]->dtype);
    auto alias = std::make_unique<fb::AliasT>();
    alias->source = source;
    alias->kind = kind;
    alias->dims = std::move(dims);
    for (const Size &offset : offsets)
      alias->offsets.push_back(extent(offset));
    plan.tensors[id]->alias = std::move(alias);
    return id;
  }

  int port(int tensor, fb::PortKind kind, int stateResult = -1) {
    auto port = std::make_unique<fb::PortT>();
    port->name = plan.tensors[tensor]->name;
    for (const auto &other : plan.ports)
      if (other->name == port->name)
        port->name += "_" + std::to_string(plan.ports.size());
    port->tensor = tensor;
    port->kind = kind;
    port->state_result = stateResult;
    plan.ports.push_back(std::move(port));
    return plan.ports.size() - 1;
  }
  int input(std::string name, std::vector<Size> shape, std::string view,
            fb::DType dtype = fb::DType::F32) {
    int id = tensor(std::move(name), std::move(shape), std::move(view),
                    fb::Storage::External, dtype);
    port(id, fb::PortKind::Input);
    return id;
  }
  int output(std::string name, std::vector<Size> shape, std::string view,
             fb::DType dtype = fb::DType::F32) {
    int id = tensor(std::move(name), std::move(shape), std::move(view),
                    fb::Storage::External, dtype);
    port(id, fb::PortKind::Output);
    return id;
  }

  template <typename Action> Action &step(std::string op, Action action = {}) {
    auto step = std::make_unique<fb::StepT>();
    step->op = std::move(op);
    step->location =
        "test.mlir:" + std::to_string(plan.steps.size() + 1) + ":1";
    step->action.Set(std::move(action));
    auto *stored = static_cast<Action *>(step->action.value);
    plan.steps.push_back(std::move(step));
    return *stored;
  }
  void launch(std::string symbol, std::vector<int32_t> tensors,
              std::vector<fb::ScalarT> scalars = {}) {
    auto &launch = step<fb::LaunchT>("tv.map");
    launch.symbol = std::move(symbol);
    launch.tensors = std::move(tensors);
    for (fb::ScalarT &scalar : scalars)
      launch.scalars.push_back(
          std::make_unique<fb::ScalarT>(std::move(scalar)));
  }
  void contract(int a, std::vector<int32_t> aLabels, int b,
                std::vector<int32_t> bLabels, int c,
                std::vector<int32_t> cLabels) {
    auto &contract = step<fb::ContractT>("tv.matmul");
    contract.a = a, contract.b = b, contract.c = c;
    contract.a_labels = std::move(aLabels);
    contract.b_labels = std::move(bLabels);
    contract.c_labels = std::move(cLabels);
  }
  void attend(int query, int key, int value, int result, int lse, double scale,
              bool causal) {
    auto &attend = step<fb::AttendT>("tv.attention");
    attend.query = query, attend.key = key, attend.value = value;
    attend.result = result, attend.lse = lse;
    attend.scale = scale, attend.causal = causal;
  }
  void attendGrad(int grad, int query, int key, int value, int result, int lse,
                  std::array<int, 3> grads, double scale, bool causal) {
    attend(query, key, value, result, lse, scale, causal);
    plan.steps.back()->op = "tv.attention_grad";
    fb::AttendT &attend = *plan.steps.back()->action.AsAttend();
    attend.grad = grad, attend.query_grad = grads[0];
    attend.key_grad = grads[1], attend.value_grad = grads[2];
  }
  void collective(fb::CollectiveKind kind, int source, int target,
                  std::vector<std::string> axes = {},
                  fb::Combiner combiner = fb::Combiner::Sum,
                  std::vector<fb::Pair> more = {}) {
    auto &collective = step<fb::CollectiveT>("tv.reshard");
    collective.more = std::move(more);
    collective.kind = kind;
    collective.source = source;
    collective.target = target;
    collective.axes = std::move(axes);
    collective.combiner = combiner;
    collective.loser = "exchange, 999 bytes, 12.0 us";
  }
  void fetch(int table, std::vector<int32_t> indices, int result,
             std::vector<std::string> axes) {
    collective(fb::CollectiveKind::Fetch, table, result, std::move(axes));
    plan.steps.back()->action.AsCollective()->indices = std::move(indices);
  }
  void copy(int source, int target) {
    auto &copy = step<fb::CopyT>("tv.copy");
    copy.source = source;
    copy.target = target;
  }

  /// Variants with a reason are not in the plan.
  int alternative(std::string kind,
                  std::vector<std::pair<std::string, std::string>> variants) {
    auto alternative = std::make_unique<fb::AlternativeT>();
    alternative->kind = std::move(kind);
    alternative->op = "tv.attention";
    alternative->location =
        "choice.mlir:" + std::to_string(plan.alternatives.size() + 1) + ":1";
    for (auto &[name, reason] : variants) {
      alternative->variants.push_back(std::make_unique<fb::VariantT>());
      alternative->variants.back()->name = name;
      alternative->variants.back()->reason = reason;
    }
    plan.alternatives.push_back(std::move(alternative));
    return plan.alternatives.size() - 1;
  }
  /// The last step belongs to a variant.
  void inVariant(int alternative, int variant) {
    plan.steps.back()->alternative = alternative;
    plan.steps.back()->variant = variant;
  }

  /// For the backend that Runtime/Ranks.h uses.
  std::string module(std::string code = "", std::string constants = "",
                     uint32_t cpuLevel = kCPULevelCode) const {
    fb::PlanT plan = this->plan;
    const char *backend = std::getenv("TESSERA_TEST_BACKEND");
    if (backend && backend == std::string("cuda")) {
      code = "the fake driver looks at names alone";
      if (plan.target.empty())
        plan.target = "cuda:sm_90a";
      plan.binaries.clear();
      plan.binaries.push_back(std::make_unique<fb::BinaryT>());
      plan.binaries[0]->name = "runtime";
      plan.binaries[0]->size = code.size();
    }
    ModuleBuilder builder;
    builder.setPlan(plan);
    if (!code.empty())
      builder.setCode(std::move(code), cpuLevel);
    builder.setConstants(std::move(constants));
    builder.setReport("made by hand");
    return builder.build();
  }
};

inline fb::ScalarT valueScalar(const Size &size) {
  fb::ScalarT scalar;
  scalar.kind = fb::ScalarKind::Value;
  scalar.extent = PlanBuilder::extent(size);
  return scalar;
}

} // namespace tessera::test

#endif // TESSERA_TEST_MODULE_PLANBUILDER_H
