//===- CheckPlan.cpp - a plan means something -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the FlatBuffers verifier cannot know: every id is in range, every enum a
// known value, every text parses, and each step's tensors fit together as far
// as that does not depend on symbol values. After this, the runtime indexes
// without looking.
//
//===----------------------------------------------------------------------===//

#include "Module/CheckAlternatives.h"
#include "Module/Module.h"
#include "Support/DType.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace tessera;
using layout::Shape;

std::optional<int64_t> tessera::evaluate(const fb::ExtentT &extent,
                                         std::span<const int64_t> symbols) {
  int64_t sum = extent.constant;
  for (const auto &term : extent.terms) {
    int64_t product = term->coefficient;
    for (int32_t symbol : term->symbols)
      if (__builtin_mul_overflow(product, symbols[symbol], &product))
        return std::nullopt;
    if (__builtin_add_overflow(sum, product, &sum))
      return std::nullopt;
  }
  return sum;
}

Shape tessera::staticShape(const fb::TensorT &tensor) {
  Shape shape;
  for (const auto &extent : tensor.shape)
    shape.push_back(extent->terms.empty() ? extent->constant
                                          : layout::kDynamic);
  return shape;
}

std::string tessera::toString(const fb::ExtentT &extent,
                              const fb::PlanT &plan) {
  std::string text;
  for (const auto &term : extent.terms) {
    if (!text.empty())
      text += " + ";
    bool first = term->coefficient == 1 && !term->symbols.empty();
    if (!first)
      text += std::to_string(term->coefficient);
    for (int32_t symbol : term->symbols) {
      text += (first ? "" : " * ") + plan.symbols[symbol]->name;
      first = false;
    }
  }
  if (extent.constant != 0 || text.empty())
    text += (text.empty() ? "" : " + ") + std::to_string(extent.constant);
  return text;
}

namespace {

/// Checks one plan. Each method returns what is wrong, or nothing.
class Checker {
public:
  using Problem = std::optional<std::string>;
  /// What a block can have on sm_90.
  static constexpr int32_t kMaxThreads = 1024;
  static constexpr int32_t kMaxShared = 232448;
  static constexpr int32_t kMaxCluster = 8;

  Checker(const fb::PlanT &plan, size_t codeBytes, size_t constantBytes)
      : plan(plan), codeBytes(codeBytes), constantBytes(constantBytes) {}

  layout::Mesh mesh;
  std::vector<layout::View> views;
  std::vector<std::vector<layout::SubAxis>> axes;

  Problem run() {
    if (Problem problem = checkMesh())
      return problem;
    if (Problem problem = checkSymbols())
      return problem;
    if (Problem problem = checkBinaries())
      return problem;
    for (size_t i = 0; i < plan.tensors.size(); ++i)
      if (Problem problem = checkTensor(*plan.tensors[i]))
        return name(i) + ": " + *problem;
    endsInMemory.assign(plan.tensors.size(), false);
    for (size_t i = 0; i < plan.tensors.size(); ++i)
      if (Problem problem = checkAlias(i))
        return name(i) + ": " + *problem;
    if (Problem problem = checkPorts())
      return problem;
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      const fb::StepT &step = *plan.steps[i];
      axes.emplace_back();
      if (Problem problem = checkStep(step))
        return "step " + std::to_string(i) + " ('" + step.op + "' at " +
               step.location + "): " + *problem;
    }
    return checkAlternatives(plan);
  }

private:
  std::string name(size_t tensor) const {
    return "tensor " + std::to_string(tensor) + " ('" +
           plan.tensors[tensor]->name + "')";
  }
  bool isTensor(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < plan.tensors.size();
  }
  static Problem noTensor(int32_t id) {
    return "there is no tensor " + std::to_string(id);
  }
  size_t localRank(int32_t tensor) const { return views[tensor].dims.size(); }

  Problem checkMesh() {
    Result<layout::Mesh> parsed = layout::parseMesh(plan.mesh);
    if (!parsed)
      return "mesh '" + plan.mesh + "': " + parsed.message();
    mesh = *parsed;
    // The runtime keeps something for each device.
    constexpr int64_t limit = 1 << 20;
    int64_t devices = 1;
    for (const layout::Axis &axis : mesh.axes) {
      if (axis.size < 1 || axis.size > limit / devices)
        return "mesh '" + plan.mesh + "' has more than " +
               std::to_string(limit) + " devices";
      devices *= axis.size;
    }
    if (mesh.devices.empty())
      return std::nullopt;
    std::vector<int64_t> sorted = mesh.devices;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < sorted.size(); ++i)
      if (sorted[i] != static_cast<int64_t>(i))
        sorted.clear();
    if (static_cast<int64_t>(sorted.size()) != devices)
      return "the devices of mesh '" + plan.mesh +
             "' are no permutation of its ranks";
    return std::nullopt;
  }

  Problem checkBinaries() const {
    if (plan.target.empty())
      return plan.binaries.empty()
                 ? std::nullopt
                 : Problem("it has binaries for a GPU, but no target");
    for (const auto &binary : plan.binaries)
      if (binary->size == 0 || binary->offset > codeBytes ||
          binary->size > codeBytes - binary->offset)
        return "binary '" + binary->name + "' lies outside of the code";
    return std::nullopt;
  }

  Problem checkSymbols() {
    for (const auto &symbol : plan.symbols) {
      if (symbol->maximum < 0 || symbol->multiple < 1)
        return "symbol '" + symbol->name + "' has maximum " +
               std::to_string(symbol->maximum) + " and multiple " +
               std::to_string(symbol->multiple);
      maxima.push_back(symbol->maximum);
    }
    return std::nullopt;
  }

  Problem checkExtent(const fb::ExtentT &extent) const {
    for (const auto &term : extent.terms)
      for (int32_t symbol : term->symbols)
        if (symbol < 0 || static_cast<size_t>(symbol) >= plan.symbols.size())
          return "there is no symbol " + std::to_string(symbol);
    if (!evaluate(extent, maxima))
      return "an extent overflows at the symbols' maxima";
    return std::nullopt;
  }

  Problem checkTensor(const fb::TensorT &tensor) {
    if (tensor.dtype > fb::DType::MAX)
      return "unknown element type " +
             std::to_string(static_cast<int>(tensor.dtype));
    if (tensor.storage > fb::Storage::MAX)
      return "unknown storage " +
             std::to_string(static_cast<int>(tensor.storage));
    if (tensor.shape.size() > kMaxRank)
      return "more than " + std::to_string(kMaxRank) + " dimensions";
    int64_t bytes = info(static_cast<DType>(tensor.dtype)).bytes;
    for (const auto &extent : tensor.shape) {
      if (Problem problem = checkExtent(*extent))
        return problem;
      if (extent->terms.empty() && extent->constant < 0)
        return "extent " + std::to_string(extent->constant) + " is negative";
      int64_t largest = std::max<int64_t>(*evaluate(*extent, maxima), 1);
      if (__builtin_mul_overflow(bytes, largest, &bytes))
        return "its size overflows at the symbols' maxima";
    }
    Result<layout::View> view = layout::parseView(tensor.view, mesh);
    if (!view)
      return "view '" + tensor.view + "': " + view.message();
    Shape shape = staticShape(tensor);
    if (Status status = layout::verify(*view, shape, mesh); !status)
      return "view '" + tensor.view + "': " + status.message();
    views.push_back(std::move(*view));
    if ((tensor.storage == fb::Storage::Alias) != (tensor.alias != nullptr))
      return "storage and alias do not agree";
    if (tensor.storage == fb::Storage::Constant) {
      size_t element = info(static_cast<DType>(tensor.dtype)).bytes;
      if (tensor.constant_offset > constantBytes ||
          tensor.constant_offset % element)
        return "its constant lies outside the module or is not aligned";
      if (!std::count(shape.begin(), shape.end(), layout::kDynamic) &&
          static_cast<uint64_t>(bytes) >
              constantBytes - tensor.constant_offset &&
          !std::count(shape.begin(), shape.end(), 0))
        return "its constant reaches beyond the module's constants";
    }
    return std::nullopt;
  }

  Problem checkAlias(size_t id) {
    const fb::TensorT &tensor = *plan.tensors[id];
    if (!tensor.alias)
      return std::nullopt;
    const fb::AliasT &alias = *tensor.alias;
    if (!isTensor(alias.source))
      return noTensor(alias.source);
    if (alias.kind > fb::AliasKind::MAX)
      return "unknown alias kind " +
             std::to_string(static_cast<int>(alias.kind));
    // A chain of aliases that is longer than there are tensors goes round.
    std::vector<size_t> chain;
    for (size_t next = id; plan.tensors[next]->alias && !endsInMemory[next];
         next = plan.tensors[next]->alias->source) {
      if (!isTensor(plan.tensors[next]->alias->source))
        return noTensor(plan.tensors[next]->alias->source);
      if (chain.size() == plan.tensors.size())
        return "it is an alias of itself";
      chain.push_back(next);
    }
    for (size_t each : chain)
      endsInMemory[each] = true;
    const fb::TensorT &source = *plan.tensors[alias.source];
    if (source.dtype != tensor.dtype)
      return "it is an alias of a tensor of another element type";
    size_t rank = localRank(alias.source);
    if (alias.kind != fb::AliasKind::Reshape && localRank(id) != rank)
      return "it has another rank than what it is an alias of";
    if (alias.kind == fb::AliasKind::Transpose) {
      std::vector<int32_t> dims = alias.dims;
      std::sort(dims.begin(), dims.end());
      for (size_t i = 0; i < dims.size(); ++i)
        if (dims[i] != static_cast<int32_t>(i))
          dims.clear();
      if (dims.size() != rank)
        return "its transposition is no permutation of the dimensions";
    }
    if (alias.kind == fb::AliasKind::Slice) {
      if (alias.offsets.size() != rank)
        return "it needs one offset for each dimension";
      for (const auto &offset : alias.offsets)
        if (Problem problem = checkExtent(*offset))
          return problem;
    }
    return std::nullopt;
  }

  Problem checkPorts() const {
    std::set<std::string> names;
    std::set<int32_t> entered, left;
    for (const auto &port : plan.ports) {
      std::string what = "port '" + port->name + "': ";
      if (!names.insert(port->name).second)
        return what + "there are two of this name";
      if (port->kind > fb::PortKind::MAX)
        return what + "unknown kind";
      if (!isTensor(port->tensor))
        return what + *noTensor(port->tensor);
      const fb::TensorT &tensor = *plan.tensors[port->tensor];
      bool external = tensor.storage == fb::Storage::External;
      if (port->kind == fb::PortKind::Output) {
        if (external)
          left.insert(port->tensor);
      } else if (!external || !entered.insert(port->tensor).second) {
        return what + "an input needs an external tensor of its own";
      }
      if (port->kind == fb::PortKind::State) {
        if (!isTensor(port->state_result))
          return what + *noTensor(port->state_result);
        const fb::TensorT &result = *plan.tensors[port->state_result];
        if (result.dtype != tensor.dtype ||
            localRank(port->state_result) != localRank(port->tensor))
          return what + "its new value has another type";
      } else if (port->state_result != -1) {
        return what + "only state has a new value";
      }
    }
    for (size_t i = 0; i < plan.tensors.size(); ++i)
      if (plan.tensors[i]->storage == fb::Storage::External &&
          !entered.count(i) && !left.count(i))
        return name(i) + ": no port gives it its memory";
    return std::nullopt;
  }

  Problem checkStep(const fb::StepT &step) {
    if (!step.action.value)
      return "it has no action";
    switch (step.action.type) {
    case fb::Action::Launch:
      return checkLaunch(*step.action.AsLaunch());
    case fb::Action::Contract:
      return checkContract(*step.action.AsContract());
    case fb::Action::Attend:
      return checkAttend(*step.action.AsAttend());
    case fb::Action::Collective:
      return checkCollective(*step.action.AsCollective());
    case fb::Action::Copy: {
      const fb::CopyT &copy = *step.action.AsCopy();
      if (Problem problem = checkPair(copy.source, copy.target))
        return problem;
      if (localRank(copy.source) != localRank(copy.target))
        return "a copy between tensors of different rank";
      return std::nullopt;
    }
    default:
      return "unknown action " +
             std::to_string(static_cast<int>(step.action.type));
    }
  }

  Problem checkPair(int32_t source, int32_t target) const {
    for (int32_t id : {source, target})
      if (!isTensor(id))
        return noTensor(id);
    if (plan.tensors[source]->dtype != plan.tensors[target]->dtype)
      return "source and target have different element types";
    return std::nullopt;
  }

  Problem checkLaunch(const fb::LaunchT &launch) const {
    if (codeBytes == 0)
      return "a kernel is launched, but the module has no code";
    if (launch.symbol.empty())
      return "a kernel without a name";
    for (int32_t id : launch.tensors)
      if (!isTensor(id))
        return noTensor(id);
    if (Problem problem = checkScalars(launch.scalars))
      return problem;
    if (plan.target.empty())
      return launch.functions.empty()
                 ? std::nullopt
                 : Problem("device functions in a module for a CPU");
    if (launch.functions.empty())
      return "kernel '" + launch.symbol + "' has no device function";
    for (const auto &function : launch.functions)
      if (Problem problem = checkFunction(*function, launch))
        return "device function '" + function->symbol + "': " + *problem;
    return std::nullopt;
  }

  Problem checkFunction(const fb::FunctionT &function,
                        const fb::LaunchT &launch) const {
    if (function.binary < 0 ||
        static_cast<size_t>(function.binary) >= plan.binaries.size())
      return "there is no binary " + std::to_string(function.binary);
    if (function.symbol.empty())
      return "it has no name";
    if (function.threads < 1 || function.threads > kMaxThreads)
      return std::to_string(function.threads) + " threads; a block has 1 to " +
             std::to_string(kMaxThreads);
    if (function.shared < 0 || function.shared > kMaxShared)
      return std::to_string(function.shared) +
             " bytes of shared memory; a block has at most " +
             std::to_string(kMaxShared);
    if (function.items < 1)
      return std::to_string(function.items) + " points a block";
    if (function.cluster < 1 || function.cluster > kMaxCluster)
      return "clusters of " + std::to_string(function.cluster) +
             " blocks; there are 1 to " + std::to_string(kMaxCluster);
    for (const auto &boxed : function.boxed) {
      if (boxed->tensor < 0 ||
          static_cast<size_t>(boxed->tensor) >= launch.tensors.size())
        return "boxes of tensor " + std::to_string(boxed->tensor) +
               " of a launch with " + std::to_string(launch.tensors.size());
      for (int32_t extent : boxed->box)
        if (extent < 1)
          return "a box of " + std::to_string(extent) + " elements";
    }
    return checkScalars(function.space);
  }

  Problem
  checkScalars(const std::vector<std::unique_ptr<fb::ScalarT>> &scalars) const {
    for (const auto &scalar : scalars)
      switch (scalar->kind) {
      case fb::ScalarKind::Value:
        if (!scalar->extent)
          return "a scalar without a value";
        if (Problem problem = checkExtent(*scalar->extent))
          return problem;
        break;
      case fb::ScalarKind::Coord:
        if (scalar->axis < 0 ||
            static_cast<size_t>(scalar->axis) >= mesh.axes.size())
          return "the mesh has no axis " + std::to_string(scalar->axis);
        break;
      case fb::ScalarKind::Local:
        if (!isTensor(scalar->tensor))
          return noTensor(scalar->tensor);
        if (scalar->dim < 0 ||
            static_cast<size_t>(scalar->dim) >= localRank(scalar->tensor))
          return name(scalar->tensor) + " has no local dimension " +
                 std::to_string(scalar->dim);
        break;
      default:
        return "unknown scalar kind " +
               std::to_string(static_cast<int>(scalar->kind));
      }
    return std::nullopt;
  }

  Problem checkContract(const fb::ContractT &contract) const {
    const int32_t ids[] = {contract.a, contract.b, contract.c};
    const std::vector<int32_t> *labels[] = {
        &contract.a_labels, &contract.b_labels, &contract.c_labels};
    std::set<int32_t> sets[3];
    bool anyF64 = false, allF64 = true;
    for (int i = 0; i < 3; ++i) {
      if (!isTensor(ids[i]))
        return noTensor(ids[i]);
      if (labels[i]->size() != localRank(ids[i]))
        return "one label for each dimension is needed";
      for (int32_t label : *labels[i])
        if (!sets[i].insert(label).second)
          return "label " + std::to_string(label) + " twice on one operand";
      fb::DType dtype = plan.tensors[ids[i]]->dtype;
      if (dtype > fb::DType::F16)
        return std::string("a product of ") +
               info(static_cast<DType>(dtype)).name +
               " is not supported, only of f64, f32, bf16 and f16";
      anyF64 |= dtype == fb::DType::F64;
      allF64 &= dtype == fb::DType::F64;
    }
    if (anyF64 != allF64)
      return "a product of f64 and smaller types";
    for (int i = 0; i < 3; ++i)
      for (int32_t label : *labels[i])
        if (!sets[(i + 1) % 3].count(label) && !sets[(i + 2) % 3].count(label))
          return "label " + std::to_string(label) + " stands alone";
    return checkEpilogue(contract);
  }

  Problem checkEpilogue(const fb::ContractT &contract) const {
    if (contract.epilogue > fb::Epilogue::MAX)
      return "unknown epilogue " +
             std::to_string(static_cast<int>(contract.epilogue));
    if (contract.aux >= 0 && contract.epilogue != fb::Epilogue::GeluTanh)
      return "a product with aux has no epilogue that it goes into";
    if ((contract.x != -1) != (contract.epilogue == fb::Epilogue::GeluTanhGrad))
      return "x belongs to the epilogue GeluTanhGrad";
    for (int32_t id :
         {contract.bias, contract.x, contract.aux, contract.sums}) {
      if (id == -1)
        continue;
      if (!isTensor(id))
        return noTensor(id);
      if (plan.tensors[id]->dtype != plan.tensors[contract.c]->dtype)
        return "bias, x, aux or sums have other elements than the product";
    }
    auto isColumn = [&](int32_t label) {
      return std::ranges::count(contract.a_labels, label) == 0;
    };
    if (contract.bias >= 0 && contract.epilogue == fb::Epilogue::GeluTanhGrad)
      return "a product with GeluTanhGrad has a bias";
    const bool hasOneColumn =
        std::ranges::count_if(contract.c_labels, isColumn) == 1;
    if (contract.bias >= 0 && (localRank(contract.bias) != 1 || !hasOneColumn))
      return "a bias has one dimension, the product's one column";
    for (int32_t id : {contract.x, contract.aux})
      if (id >= 0 && localRank(id) != localRank(contract.c))
        return "x or aux has another rank than the product";
    return checkSums(contract, hasOneColumn);
  }

  Problem checkSums(const fb::ContractT &contract, bool hasOneColumn) const {
    if (contract.summed > fb::Summed::MAX)
      return "unknown sums " +
             std::to_string(static_cast<int>(contract.summed));
    if ((contract.sums != -1) != (contract.summed != fb::Summed::None))
      return "sums of nothing, or nowhere to store them";
    if (contract.summed == fb::Summed::None)
      return std::nullopt;
    const bool isGrad = contract.epilogue == fb::Epilogue::GeluTanhGrad;
    if (contract.bias >= 0 || isGrad != (contract.summed == fb::Summed::C) ||
        (contract.epilogue != fb::Epilogue::None && !isGrad))
      return "a product sums c with GeluTanhGrad alone, and a or b without "
             "bias and epilogue";
    const bool hasBatch =
        std::ranges::any_of(contract.c_labels, [&](int32_t label) {
          return std::ranges::count(contract.a_labels, label) &&
                 std::ranges::count(contract.b_labels, label);
        });
    const bool isMatrix = contract.a_labels.size() == 2 &&
                          contract.b_labels.size() == 2 &&
                          contract.c_labels.size() == 2;
    if (localRank(contract.sums) != 1 || hasBatch || !hasOneColumn ||
        (contract.summed != fb::Summed::C && !isMatrix))
      return "sums have one dimension: the rows or columns of one matrix";
    return std::nullopt;
  }

  Problem checkAttend(const fb::AttendT &attend) const {
    for (int32_t id : {attend.query, attend.key, attend.value, attend.result}) {
      if (!isTensor(id))
        return noTensor(id);
      const fb::DType dtype = plan.tensors[id]->dtype;
      if (localRank(id) != 4)
        return name(id) + " must have 4 local dimensions";
      if (dtype != fb::DType::BF16 && dtype != fb::DType::F16)
        return std::string("attention in ") +
               info(static_cast<DType>(dtype)).name +
               " is not supported, only in bf16 and f16";
      if (dtype != plan.tensors[attend.query]->dtype)
        return "query, key, value and result have different element types";
    }
    if (!std::isfinite(attend.scale))
      return "the scale is no finite number";
    if (attend.lse == -1)
      return std::nullopt;
    if (!isTensor(attend.lse))
      return noTensor(attend.lse);
    if (localRank(attend.lse) != 3 ||
        plan.tensors[attend.lse]->dtype != fb::DType::F32)
      return name(attend.lse) + " must have 3 local dimensions and be f32";
    return std::nullopt;
  }

  Problem checkCollective(const fb::CollectiveT &collective) {
    if (collective.kind > fb::CollectiveKind::MAX)
      return "unknown collective " +
             std::to_string(static_cast<int>(collective.kind));
    if (collective.combiner > fb::Combiner::MAX)
      return "unknown combiner " +
             std::to_string(static_cast<int>(collective.combiner));
    if (Problem problem = checkPair(collective.source, collective.target))
      return problem;
    const fb::TensorT &source = *plan.tensors[collective.source];
    const fb::TensorT &target = *plan.tensors[collective.target];
    if (staticShape(source) != staticShape(target))
      return "source and target have different global shapes";
    if (collective.axes.empty())
      return std::nullopt;
    // The grammar of sub-axes, as those of a partial state.
    std::string list;
    for (const std::string &axis : collective.axes)
      list += (list.empty() ? "" : ", ") + axis;
    Result<layout::View> parsed =
        layout::parseView("[], partial = [(" + list + ") : sum]", mesh);
    if (!parsed)
      return "axes [" + list + "]: " + parsed.message();
    if (parsed->partial.size() != 1)
      return "axes [" + list + "] are no list of axes";
    axes.back() = parsed->partial[0].axes;
    for (const layout::SubAxis &sub : axes.back()) {
      int64_t size = mesh.axes[sub.axis].size;
      if (sub.pre < 1 || sub.size < 1 || sub.pre > size || sub.size > size ||
          size % (sub.pre * sub.size))
        return "axes [" + list + "]: a sub-axis does not divide its axis";
      for (const layout::SubAxis &other : axes.back())
        if (&other != &sub && layout::overlap(sub, other))
          return "axes [" + list + "]: two of them overlap";
    }
    return std::nullopt;
  }

  std::vector<bool> endsInMemory; ///< aliases that were followed
  const fb::PlanT &plan;
  size_t codeBytes, constantBytes;
  std::vector<int64_t> maxima;
};

} // namespace

Status ModuleReader::checkPlan() {
  Checker checker(*planObject, section(Section::Code).size(),
                  section(Section::Constants).size());
  if (Checker::Problem problem = checker.run())
    return Error{*problem};
  checked = {std::move(checker.mesh), std::move(checker.views),
             std::move(checker.axes)};
  return Ok{};
}
