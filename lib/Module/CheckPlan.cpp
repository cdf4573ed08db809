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
#include "Support/Try.h"

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

/// Checks one plan.
class Checker {
public:
  /// What a block can have on sm_90.
  static constexpr int32_t kMaxThreads = 1024;
  static constexpr int32_t kMaxShared = 232448;
  static constexpr int32_t kMaxCluster = 8;

  Checker(const fb::PlanT &plan, size_t codeBytes, size_t constantBytes)
      : plan(plan), codeBytes(codeBytes), constantBytes(constantBytes) {}

  layout::Mesh mesh;
  std::map<int, layout::Mesh> others;
  std::vector<layout::View> views;
  std::vector<std::vector<layout::SubAxis>> axes;

  Status run() {
    TSR_TRY(checkMesh());
    TSR_TRY(checkSymbols());
    TSR_TRY(checkMachine());
    TSR_TRY(checkBinaries());
    for (size_t i = 0; i < plan.tensors.size(); ++i) {
      if (Status status = checkTensor(*plan.tensors[i]); !status)
        return Error{name(i) + ": " + status.message()};
      if (const auto &own = plan.tensors[i]->devices; !own.empty()) {
        const std::vector<int64_t> devices(own.begin(), own.end());
        if (!listsRanks(devices))
          return Error{name(i) + ": its devices are no permutation of ranks"};
        others[i] = {mesh.axes, devices};
      }
    }
    endsInMemory.assign(plan.tensors.size(), false);
    for (size_t i = 0; i < plan.tensors.size(); ++i)
      if (Status status = checkAlias(i); !status)
        return Error{name(i) + ": " + status.message()};
    TSR_TRY(checkPorts());
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      const fb::StepT &step = *plan.steps[i];
      axes.emplace_back();
      if (Status status = checkStep(step); !status)
        return Error{"step " + std::to_string(i) + " ('" + step.op + "' at " +
                     step.location + "): " + status.message()};
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
  static Error noTensor(int32_t id) {
    return {"there is no tensor " + std::to_string(id)};
  }
  size_t localRank(int32_t tensor) const { return views[tensor].dims.size(); }

  Status checkMesh() {
    Result<layout::Mesh> parsed = layout::parseMesh(plan.mesh);
    if (!parsed)
      return Error{"mesh '" + plan.mesh + "': " + parsed.message()};
    mesh = *parsed;
    // The runtime keeps something for each device.
    constexpr int64_t limit = 1 << 20;
    int64_t devices = 1;
    for (const layout::Axis &axis : mesh.axes) {
      if (axis.size < 1 || axis.size > limit / devices)
        return Error{"mesh '" + plan.mesh + "' has more than " +
                     std::to_string(limit) + " devices"};
      devices *= axis.size;
    }
    if (!mesh.devices.empty() && !listsRanks(mesh.devices))
      return Error{"the devices of mesh '" + plan.mesh +
                   "' are no permutation of its ranks"};
    return Ok{};
  }

  bool listsRanks(std::vector<int64_t> devices) const {
    std::sort(devices.begin(), devices.end());
    for (size_t i = 0; i < devices.size(); ++i)
      if (devices[i] != static_cast<int64_t>(i))
        return false;
    return static_cast<int64_t>(devices.size()) == mesh.numDevices();
  }

  Status checkMachine() const {
    if (const auto &of = plan.machine)
      for (double figure :
           {of->latency(), of->bandwidth(), of->copy(), of->loops()})
        if (!std::isfinite(figure) || figure <= 0)
          return Error{"a figure of its machine is no number above 0"};
    return Ok{};
  }

  Status checkBinaries() const {
    if (plan.target.empty())
      return plan.binaries.empty()
                 ? Status(Ok{})
                 : Error{"it has binaries for a GPU, but no target"};
    auto isInCode = [&](uint64_t offset, uint64_t size) {
      return offset <= codeBytes && size <= codeBytes - offset;
    };
    for (const auto &binary : plan.binaries)
      if (binary->size == 0 || !isInCode(binary->offset, binary->size) ||
          !isInCode(binary->ptx_offset, binary->ptx_size))
        return Error{"binary '" + binary->name + "' lies outside of the code"};
    return Ok{};
  }

  Status checkSymbols() {
    for (const auto &symbol : plan.symbols) {
      if (symbol->maximum < 0 || symbol->multiple < 1)
        return Error{"symbol '" + symbol->name + "' has maximum " +
                     std::to_string(symbol->maximum) + " and multiple " +
                     std::to_string(symbol->multiple)};
      maxima.push_back(symbol->maximum);
    }
    return Ok{};
  }

  Status checkExtent(const fb::ExtentT &extent) const {
    for (const auto &term : extent.terms)
      for (int32_t symbol : term->symbols)
        if (symbol < 0 || static_cast<size_t>(symbol) >= plan.symbols.size())
          return Error{"there is no symbol " + std::to_string(symbol)};
    if (!evaluate(extent, maxima))
      return Error{"an extent overflows at the symbols' maxima"};
    return Ok{};
  }

  Status checkTensor(const fb::TensorT &tensor) {
    if (tensor.dtype > fb::DType::MAX)
      return Error{"unknown element type " +
                   std::to_string(static_cast<int>(tensor.dtype))};
    if (tensor.storage > fb::Storage::MAX)
      return Error{"unknown storage " +
                   std::to_string(static_cast<int>(tensor.storage))};
    if (tensor.shape.size() > kMaxRank)
      return Error{"more than " + std::to_string(kMaxRank) + " dimensions"};
    int64_t bytes = info(static_cast<DType>(tensor.dtype)).bytes;
    for (const auto &extent : tensor.shape) {
      TSR_TRY(checkExtent(*extent));
      if (extent->terms.empty() && extent->constant < 0)
        return Error{"extent " + std::to_string(extent->constant) +
                     " is negative"};
      int64_t largest = std::max<int64_t>(*evaluate(*extent, maxima), 1);
      if (__builtin_mul_overflow(bytes, largest, &bytes))
        return Error{"its size overflows at the symbols' maxima"};
    }
    Result<layout::View> view = layout::parseView(tensor.view, mesh);
    if (!view)
      return Error{"view '" + tensor.view + "': " + view.message()};
    Shape shape = staticShape(tensor);
    if (Status status = layout::verify(*view, shape, mesh); !status)
      return Error{"view '" + tensor.view + "': " + status.message()};
    views.push_back(std::move(*view));
    if ((tensor.storage == fb::Storage::Alias) != (tensor.alias != nullptr))
      return Error{"storage and alias do not agree"};
    if (tensor.storage == fb::Storage::Constant) {
      size_t element = info(static_cast<DType>(tensor.dtype)).bytes;
      if (tensor.constant_offset > constantBytes ||
          tensor.constant_offset % element)
        return Error{"its constant lies outside the module or is not aligned"};
      if (!std::count(shape.begin(), shape.end(), layout::kDynamic) &&
          static_cast<uint64_t>(bytes) >
              constantBytes - tensor.constant_offset &&
          !std::count(shape.begin(), shape.end(), 0))
        return Error{"its constant reaches beyond the module's constants"};
    }
    return Ok{};
  }

  Status checkAlias(size_t id) {
    const fb::TensorT &tensor = *plan.tensors[id];
    if (!tensor.alias)
      return Ok{};
    const fb::AliasT &alias = *tensor.alias;
    if (!isTensor(alias.source))
      return noTensor(alias.source);
    if (alias.kind > fb::AliasKind::MAX)
      return Error{"unknown alias kind " +
                   std::to_string(static_cast<int>(alias.kind))};
    // A chain of aliases that is longer than there are tensors goes round.
    std::vector<size_t> chain;
    for (size_t next = id; plan.tensors[next]->alias && !endsInMemory[next];
         next = plan.tensors[next]->alias->source) {
      if (!isTensor(plan.tensors[next]->alias->source))
        return noTensor(plan.tensors[next]->alias->source);
      if (chain.size() == plan.tensors.size())
        return Error{"it is an alias of itself"};
      chain.push_back(next);
    }
    for (size_t each : chain)
      endsInMemory[each] = true;
    const fb::TensorT &source = *plan.tensors[alias.source];
    if (source.dtype != tensor.dtype)
      return Error{"it is an alias of a tensor of another element type"};
    if (source.devices != tensor.devices)
      return Error{"it is an alias of a tensor on other devices"};
    size_t rank = localRank(alias.source);
    if (alias.kind != fb::AliasKind::Reshape && localRank(id) != rank)
      return Error{"it has another rank than what it is an alias of"};
    if (alias.kind == fb::AliasKind::Transpose) {
      std::vector<int32_t> dims = alias.dims;
      std::sort(dims.begin(), dims.end());
      for (size_t i = 0; i < dims.size(); ++i)
        if (dims[i] != static_cast<int32_t>(i))
          dims.clear();
      if (dims.size() != rank)
        return Error{"its transposition is no permutation of the dimensions"};
    }
    if (alias.kind == fb::AliasKind::Slice) {
      if (alias.offsets.size() != rank)
        return Error{"it needs one offset for each dimension"};
      for (const auto &offset : alias.offsets)
        TSR_TRY(checkExtent(*offset));
    }
    return Ok{};
  }

  Status checkPorts() const {
    std::set<std::string> names;
    std::set<int32_t> entered, left;
    for (const auto &port : plan.ports) {
      std::string what = "port '" + port->name + "': ";
      if (!names.insert(port->name).second)
        return Error{what + "there are two of this name"};
      if (port->kind > fb::PortKind::MAX)
        return Error{what + "unknown kind"};
      if (!isTensor(port->tensor))
        return Error{what + noTensor(port->tensor).message};
      const fb::TensorT &tensor = *plan.tensors[port->tensor];
      bool external = tensor.storage == fb::Storage::External;
      if (port->kind == fb::PortKind::Output) {
        if (external)
          left.insert(port->tensor);
      } else if (!external || !entered.insert(port->tensor).second) {
        return Error{what + "an input needs an external tensor of its own"};
      }
      if (port->kind == fb::PortKind::State) {
        if (!isTensor(port->state_result))
          return Error{what + noTensor(port->state_result).message};
        const fb::TensorT &result = *plan.tensors[port->state_result];
        if (result.dtype != tensor.dtype || result.devices != tensor.devices ||
            localRank(port->state_result) != localRank(port->tensor))
          return Error{what + "its new value has another type"};
      } else if (port->state_result != -1 || port->zero_init) {
        return Error{what + "only state has a new value, or starts as zeros"};
      }
      if (!port->check.empty() &&
          (port->kind != fb::PortKind::Output ||
           info(static_cast<DType>(tensor.dtype)).isFloat))
        return Error{what + "only an output of integers is checked"};
    }
    for (size_t i = 0; i < plan.tensors.size(); ++i)
      if (plan.tensors[i]->storage == fb::Storage::External &&
          !entered.count(i) && !left.count(i))
        return Error{name(i) + ": no port gives it its memory"};
    return Ok{};
  }

  Status checkStep(const fb::StepT &step) {
    if (!step.action.value)
      return Error{"it has no action"};
    if (step.action.type > fb::Action::MAX)
      return Error{"unknown action " +
                   std::to_string(static_cast<int>(step.action.type))};
    std::vector<int32_t> ids, optional;
    listTensors(step.action, ids, optional);
    for (int32_t id : optional)
      if (id != -1)
        ids.push_back(id);
    for (int32_t id : ids) {
      if (!isTensor(id))
        return noTensor(id);
      if (!plan.tensors[id]->devices.empty() && !mayBeElsewhere(step.action))
        return Error{name(id) + " lies on other devices than the plan's"};
    }
    return visit(step.action,
                 [&](const auto &action) { return check(action); });
  }

  /// Whether an action may be of tensors on other devices.
  bool mayBeElsewhere(const fb::ActionUnion &action) const {
    if (const auto *moves = action.AsCollective())
      return moves->kind == fb::CollectiveKind::Permute ||
             moves->kind == fb::CollectiveKind::Exchange;
    // (Coordinates that a kernel gets are those on its tensors' devices.)
    std::vector<int32_t> alike;
    if (const auto *launch = action.AsLaunch())
      alike = launch->tensors;
    else if (const auto *copy = action.AsCopy())
      alike = {copy->source, copy->target};
    return !alike.empty() &&
           std::all_of(alike.begin(), alike.end(), [&](int32_t id) {
             return isTensor(id) && plan.tensors[id]->devices ==
                                        plan.tensors[alike[0]]->devices;
           });
  }

  Status checkPair(int32_t source, int32_t target) const {
    if (plan.tensors[source]->dtype != plan.tensors[target]->dtype)
      return Error{"source and target have different element types"};
    return Ok{};
  }

  Status check(const fb::CopyT &copy) const {
    TSR_TRY(checkPair(copy.source, copy.target));
    if (localRank(copy.source) != localRank(copy.target))
      return Error{"a copy between tensors of different rank"};
    return Ok{};
  }

  Status check(const fb::LaunchT &launch) const {
    if (codeBytes == 0)
      return Error{"a kernel is launched, but the module has no code"};
    if (launch.symbol.empty())
      return Error{"a kernel without a name"};
    TSR_TRY(checkScalars(launch.scalars));
    if (plan.target.empty())
      return launch.functions.empty()
                 ? Status(Ok{})
                 : Error{"device functions in a module for a CPU"};
    if (launch.functions.empty())
      return Error{"kernel '" + launch.symbol + "' has no device function"};
    for (const auto &function : launch.functions)
      if (Status status = checkFunction(*function, launch); !status)
        return Error{"device function '" + function->symbol +
                     "': " + status.message()};
    return Ok{};
  }

  Status checkFunction(const fb::FunctionT &function,
                       const fb::LaunchT &launch) const {
    if (function.binary < 0 ||
        static_cast<size_t>(function.binary) >= plan.binaries.size())
      return Error{"there is no binary " + std::to_string(function.binary)};
    if (function.symbol.empty())
      return Error{"it has no name"};
    if (function.threads < 1 || function.threads > kMaxThreads)
      return Error{std::to_string(function.threads) +
                   " threads; a block has 1 to " + std::to_string(kMaxThreads)};
    if (function.shared < 0 || function.shared > kMaxShared)
      return Error{std::to_string(function.shared) +
                   " bytes of shared memory; a block has at most " +
                   std::to_string(kMaxShared)};
    if (function.items < 1)
      return Error{std::to_string(function.items) + " points a block"};
    if (function.cluster < 1 || function.cluster > kMaxCluster)
      return Error{"clusters of " + std::to_string(function.cluster) +
                   " blocks; there are 1 to " + std::to_string(kMaxCluster)};
    for (const auto &boxed : function.boxed) {
      if (boxed->tensor < 0 ||
          static_cast<size_t>(boxed->tensor) >= launch.tensors.size())
        return Error{"boxes of tensor " + std::to_string(boxed->tensor) +
                     " of a launch with " +
                     std::to_string(launch.tensors.size())};
      if (boxed->ragged && boxed->box.size() != 4)
        return Error{"ragged boxes of " + std::to_string(boxed->box.size()) +
                     " dimensions; they have 4"};
      for (int32_t extent : boxed->box)
        if (extent < 1)
          return Error{"a box of " + std::to_string(extent) + " elements"};
    }
    return checkScalars(function.space);
  }

  Status
  checkScalars(const std::vector<std::unique_ptr<fb::ScalarT>> &scalars) const {
    for (const auto &scalar : scalars)
      switch (scalar->kind) {
      case fb::ScalarKind::Value:
        if (!scalar->extent)
          return Error{"a scalar without a value"};
        TSR_TRY(checkExtent(*scalar->extent));
        break;
      case fb::ScalarKind::Coord:
        if (scalar->axis < 0 ||
            static_cast<size_t>(scalar->axis) >= mesh.axes.size())
          return Error{"the mesh has no axis " + std::to_string(scalar->axis)};
        break;
      case fb::ScalarKind::Local:
        if (!isTensor(scalar->tensor))
          return noTensor(scalar->tensor);
        if (scalar->dim < 0 ||
            static_cast<size_t>(scalar->dim) >= localRank(scalar->tensor))
          return Error{name(scalar->tensor) + " has no local dimension " +
                       std::to_string(scalar->dim)};
        break;
      default:
        return Error{"unknown scalar kind " +
                     std::to_string(static_cast<int>(scalar->kind))};
      }
    return Ok{};
  }

  Status check(const fb::ContractT &contract) const {
    const int32_t ids[] = {contract.a, contract.b, contract.c};
    const std::vector<int32_t> *labels[] = {
        &contract.a_labels, &contract.b_labels, &contract.c_labels};
    std::set<int32_t> sets[3];
    bool anyF64 = false, allF64 = true;
    for (int i = 0; i < 3; ++i) {
      if (labels[i]->size() != localRank(ids[i]))
        return Error{"one label for each dimension is needed"};
      for (int32_t label : *labels[i])
        if (!sets[i].insert(label).second)
          return Error{"label " + std::to_string(label) +
                       " twice on one operand"};
      fb::DType dtype = plan.tensors[ids[i]]->dtype;
      if (dtype > fb::DType::F16)
        return Error{std::string("a product of ") +
                     info(static_cast<DType>(dtype)).name +
                     " is not supported, only of f64, f32, bf16 and f16"};
      anyF64 |= dtype == fb::DType::F64;
      allF64 &= dtype == fb::DType::F64;
    }
    if (anyF64 != allF64)
      return Error{"a product of f64 and smaller types"};
    for (int i = 0; i < 3; ++i)
      for (int32_t label : *labels[i])
        if (!sets[(i + 1) % 3].count(label) && !sets[(i + 2) % 3].count(label))
          return Error{"label " + std::to_string(label) + " stands alone"};
    return checkEpilogue(contract);
  }

  /// What it means; what a library does of it, its backend says.
  Status checkEpilogue(const fb::ContractT &contract) const {
    if (contract.epilogue > fb::Epilogue::MAX)
      return Error{"unknown epilogue " +
                   std::to_string(static_cast<int>(contract.epilogue))};
    if (contract.aux >= 0 && contract.epilogue == fb::Epilogue::None)
      return Error{"a product with aux has no epilogue that it goes into"};
    if ((contract.x != -1) != (contract.epilogue == fb::Epilogue::GeluTanhGrad))
      return Error{"x belongs to the epilogue GeluTanhGrad"};
    for (int32_t id : {contract.bias, contract.x, contract.aux, contract.sums,
                       contract.addend}) {
      if (id >= 0 && plan.tensors[id]->dtype != plan.tensors[contract.c]->dtype)
        return Error{
            "bias, x, aux, sums or addend have other elements than the "
            "product"};
    }
    auto isColumn = [&](int32_t label) {
      return std::ranges::count(contract.a_labels, label) == 0;
    };
    if (contract.bias >= 0 &&
        (localRank(contract.bias) != 1 ||
         std::ranges::count_if(contract.c_labels, isColumn) != 1))
      return Error{"a bias has one dimension, the product's one column"};
    for (int32_t id : {contract.x, contract.aux, contract.addend})
      if (id >= 0 && localRank(id) != localRank(contract.c))
        return Error{"x, aux or addend has another rank than the product"};
    return checkSums(contract);
  }

  Status checkSums(const fb::ContractT &contract) const {
    if (contract.summed > fb::Summed::MAX)
      return Error{"unknown sums " +
                   std::to_string(static_cast<int>(contract.summed))};
    if ((contract.sums != -1) != (contract.summed != fb::Summed::None))
      return Error{"sums of nothing, or nowhere to store them"};
    if (contract.summed == fb::Summed::None)
      return Ok{};
    const std::vector<int32_t> &other = contract.summed == fb::Summed::A
                                            ? contract.b_labels
                                            : contract.a_labels;
    if (localRank(contract.sums) != 1 ||
        std::ranges::count_if(contract.c_labels, [&](int32_t label) {
          return std::ranges::count(other, label) == 0;
        }) != 1)
      return Error{"sums have one dimension: the product's one row or column"};
    return Ok{};
  }

  Status check(const fb::AttendT &attend) const {
    std::vector<int32_t> ids = {attend.query, attend.key, attend.value,
                                attend.result};
    const std::vector<int32_t> grads = {attend.grad, attend.query_grad,
                                        attend.key_grad, attend.value_grad};
    if (std::ranges::count(grads, -1) != (attend.grad == -1 ? 4 : 0) ||
        (attend.grad != -1 && attend.lse == -1))
      return Error{"a gradient of attention has all of its gradients and the "
                   "log-sum-exp, an attention no gradient"};
    if (attend.grad != -1)
      ids.insert(ids.end(), grads.begin(), grads.end());
    for (int32_t id : ids) {
      const fb::DType dtype = plan.tensors[id]->dtype;
      if (localRank(id) != 4)
        return Error{name(id) + " must have 4 local dimensions"};
      if (dtype != fb::DType::BF16 && dtype != fb::DType::F16)
        return Error{std::string("attention in ") +
                     info(static_cast<DType>(dtype)).name +
                     " is not supported, only in bf16 and f16"};
      if (dtype != plan.tensors[attend.query]->dtype)
        return Error{
            "query, key, value and result have different element types"};
    }
    if (!std::isfinite(attend.scale))
      return Error{"the scale is no finite number"};
    if (attend.lse == -1)
      return Ok{};
    if (localRank(attend.lse) != 3 ||
        plan.tensors[attend.lse]->dtype != fb::DType::F32)
      return Error{name(attend.lse) +
                   " must have 3 local dimensions and be f32"};
    return Ok{};
  }

  Status check(const fb::CollectiveT &collective) {
    if (collective.kind > fb::CollectiveKind::MAX)
      return Error{"unknown collective " +
                   std::to_string(static_cast<int>(collective.kind))};
    if (collective.combiner > fb::Combiner::MAX)
      return Error{"unknown combiner " +
                   std::to_string(static_cast<int>(collective.combiner))};
    const bool fetches = collective.kind == fb::CollectiveKind::Fetch;
    if (!fetches && !collective.indices.empty())
      return Error{"a collective with indices that is no fetch"};
    for (const fb::Pair &pair : pairsOf(collective)) {
      TSR_TRY(checkPair(pair.source(), pair.target()));
      if (!fetches && staticShape(*plan.tensors[pair.source()]) !=
                          staticShape(*plan.tensors[pair.target()]))
        return Error{"source and target have different global shapes"};
    }
    TSR_TRY(checkAxes(collective));
    return fetches ? checkFetch(collective) : Status(Ok{});
  }

  /// That each index has a dimension, and what is not indexed lies as it did.
  Status checkFetch(const fb::CollectiveT &fetch) const {
    const size_t leading = fetch.indices.size();
    if (leading == 0 || !fetch.more.empty())
      return Error{"a fetch needs indices, and one tensor"};
    const layout::View &rows = views[fetch.source], &to = views[fetch.target];
    const layout::View &at = views[fetch.indices[0]];
    layout::Shape shape = staticShape(*plan.tensors[fetch.indices[0]]);
    for (int32_t id : fetch.indices)
      if ((plan.tensors[id]->dtype != fb::DType::I32 &&
           plan.tensors[id]->dtype != fb::DType::I64) ||
          plan.tensors[id]->dtype != plan.tensors[fetch.indices[0]]->dtype ||
          staticShape(*plan.tensors[id]) != shape || views[id].dims != at.dims)
        return Error{"indices of a fetch must be i32 or i64, and alike"};
    layout::Shape table = staticShape(*plan.tensors[fetch.source]);
    if (table.size() < leading)
      return Error{"a fetch with more indices than its table has dimensions"};
    shape.insert(shape.end(), table.begin() + leading, table.end());
    std::vector<layout::Dim> dims = at.dims;
    auto isFlat = [](const layout::Dim &dim) { return dim.span != 1; };
    if (std::ranges::any_of(rows.dims, isFlat) ||
        std::ranges::any_of(dims, isFlat))
      return Error{"a fetch of flat dimensions"};
    dims.insert(dims.end(), rows.dims.begin() + leading, rows.dims.end());
    if (staticShape(*plan.tensors[fetch.target]) != shape || to.dims != dims)
      return Error{"what a fetch gives must be as its indices and rows"};
    if (!rows.partial.empty() || !at.partial.empty() || !to.partial.empty())
      return Error{"a fetch of partial values"};
    if (!layout::liesInBlocks(rows.dims[0], axes.back()))
      return Error{"the rows of a fetch must lie in blocks along its axes"};
    for (size_t i = 1; i < leading; ++i)
      if (!layout::liesInBlocks(rows.dims[i], {}))
        return Error{"a fetch of rows with a split index"};
    return Ok{};
  }

  Status checkAxes(const fb::CollectiveT &collective) {
    if (collective.axes.empty())
      return Ok{};
    // The grammar of sub-axes, as those of a partial state.
    std::string list;
    for (const std::string &axis : collective.axes)
      list += (list.empty() ? "" : ", ") + axis;
    Result<layout::View> parsed =
        layout::parseView("[], partial = [(" + list + ") : sum]", mesh);
    if (!parsed)
      return Error{"axes [" + list + "]: " + parsed.message()};
    if (parsed->partial.size() != 1)
      return Error{"axes [" + list + "] are no list of axes"};
    axes.back() = parsed->partial[0].axes;
    for (const layout::SubAxis &sub : axes.back()) {
      int64_t size = mesh.axes[sub.axis].size;
      if (sub.pre < 1 || sub.size < 1 || sub.pre > size || sub.size > size ||
          size % (sub.pre * sub.size))
        return Error{"axes [" + list +
                     "]: a sub-axis does not divide its axis"};
      for (const layout::SubAxis &other : axes.back())
        if (&other != &sub && layout::overlap(sub, other))
          return Error{"axes [" + list + "]: two of them overlap"};
    }
    return Ok{};
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
  TSR_TRY(checker.run());
  checked = {std::move(checker.mesh), std::move(checker.others),
             std::move(checker.views), std::move(checker.axes)};
  return Ok{};
}
