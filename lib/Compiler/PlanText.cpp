//===- PlanText.cpp - a module's plan for people --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compiler/PlanText.h"
#include "Module/Module.h"
#include "Support/DType.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace tessera;

namespace {
class Printer {
public:
  Printer(const fb::PlanT &plan, std::string &text) : plan(plan), os(text) {}

  void print() {
    os << "mesh " << plan.mesh << "\n";
    if (!plan.target.empty())
      os << "for " << plan.target << "\n";
    for (const auto &symbol : plan.symbols)
      os << "size " << symbol->name << " <= " << symbol->maximum
         << " multiple of " << symbol->multiple << "\n";
    for (size_t i = 0; i < plan.tensors.size(); ++i)
      printTensor(i);
    for (const auto &port : plan.ports) {
      os << lower(fb::EnumNamePortKind(port->kind)) << " '" << port->name
         << "' %" << port->tensor;
      if (port->kind == fb::PortKind::State)
        os << " becomes %" << port->state_result;
      if (port->zero_init)
        os << " from zeros";
      if (!port->check.empty())
        os << " is 0, else: " << port->check;
      os << "\n";
    }
    for (size_t i = 0; i < plan.alternatives.size(); ++i)
      printAlternative(i);
    for (const auto &step : plan.steps)
      printStep(*step);
  }

private:
  static std::string lower(const char *name) {
    return llvm::StringRef(name).lower();
  }

  void printTensor(size_t i) {
    const fb::TensorT &tensor = *plan.tensors[i];
    os << "%" << i << " = " << lower(fb::EnumNameStorage(tensor.storage)) << " "
       << info(static_cast<DType>(tensor.dtype)).name << " of [";
    llvm::interleaveComma(tensor.shape, os, [&](const auto &extent) {
      os << toString(*extent, plan);
    });
    os << "] as " << tensor.view;
    if (!tensor.devices.empty()) {
      os << " on [";
      llvm::interleaveComma(tensor.devices, os);
      os << "]";
    }
    if (tensor.storage == fb::Storage::Constant)
      os << " at " << tensor.constant_offset;
    if (tensor.alias) {
      const fb::AliasT &alias = *tensor.alias;
      os << " is " << lower(fb::EnumNameAliasKind(alias.kind)) << " of %"
         << alias.source;
      if (!alias.dims.empty())
        os << " ["
           << llvm::join(llvm::map_range(
                             alias.dims,
                             [](int32_t dim) { return std::to_string(dim); }),
                         ", ")
           << "]";
      if (!alias.offsets.empty()) {
        os << " [";
        llvm::interleaveComma(alias.offsets, os, [&](const auto &extent) {
          os << toString(*extent, plan);
        });
        os << "]";
      }
    }
    os << " // " << tensor.name << "\n";
  }

  void printAlternative(size_t i) {
    const fb::AlternativeT &alternative = *plan.alternatives[i];
    os << "alternative " << i << ": " << alternative.kind << " ";
    llvm::interleaveComma(alternative.variants, os, [&](const auto &variant) {
      os << variant->name;
      if (!variant->reason.empty())
        os << " (not there: " << variant->reason << ")";
    });
    os << " // " << alternative.op << " at " << alternative.location << "\n";
  }

  template <typename Range> void printIds(const Range &ids) {
    llvm::interleaveComma(ids, os, [&](int32_t id) { os << "%" << id; });
  }

  void printStep(const fb::StepT &step) {
    if (step.alternative >= 0)
      os << "if " << step.alternative << " is "
         << plan.alternatives[step.alternative]->variants[step.variant]->name
         << ": ";
    visit(step.action, [&](const auto &action) { print(action); });
    if (step.until >= 0)
      os << " until step " << step.until;
    os << " // " << step.op << " at " << step.location << "\n";
    if (const fb::LaunchT *launch = step.action.AsLaunch())
      for (const auto &function : launch->functions)
        printFunction(*function);
  }

  void print(const fb::LaunchT &launch) {
    os << "launch " << launch.symbol << " ";
    printIds(launch.tensors);
    for (const auto &scalar : launch.scalars) {
      os << ", ";
      printScalar(*scalar);
    }
  }

  void print(const fb::ContractT &contract) {
    os << "contract ";
    auto operand = [&](int32_t id, const std::vector<int32_t> &labels) {
      os << "%" << id << " [";
      llvm::interleaveComma(labels, os);
      os << "]";
    };
    operand(contract.a, contract.a_labels);
    os << ", ";
    operand(contract.b, contract.b_labels);
    if (contract.bias >= 0)
      os << " bias %" << contract.bias;
    if (contract.addend >= 0)
      os << " add %" << contract.addend;
    os << " to ";
    operand(contract.c, contract.c_labels);
    if (contract.epilogue != fb::Epilogue::None)
      os << " then " << lower(fb::EnumNameEpilogue(contract.epilogue));
    if (contract.x >= 0)
      os << " x %" << contract.x;
    if (contract.aux >= 0)
      os << " aux %" << contract.aux;
    if (contract.summed != fb::Summed::None)
      os << " sums " << lower(fb::EnumNameSummed(contract.summed)) << " %"
         << contract.sums;
  }

  void print(const fb::AttendT &attend) {
    const bool isGrad = attend.grad >= 0;
    os << (isGrad ? "attend grad %" + std::to_string(attend.grad) + ", "
                  : "attend ");
    printIds(std::vector<int32_t>{attend.query, attend.key, attend.value});
    os << (isGrad ? ", %" : " to %") << attend.result;
    if (attend.lse >= 0)
      os << " lse %" << attend.lse;
    if (isGrad) {
      os << " to ";
      printIds(std::vector<int32_t>{attend.query_grad, attend.key_grad,
                                    attend.value_grad});
    }
    os << " scale " << attend.scale << (attend.causal ? " causal" : "");
  }

  void print(const fb::CollectiveT &move) {
    os << lower(fb::EnumNameCollectiveKind(move.kind)) << " over ["
       << llvm::join(move.axes, ", ") << "]";
    for (const fb::Pair &pair : pairsOf(move))
      os << " %" << pair.source() << " to %" << pair.target();
    if (!move.indices.empty()) {
      os << " at ";
      printIds(move.indices);
    }
    if (!move.loser.empty())
      os << " rather than " << move.loser;
  }

  void print(const fb::CopyT &copy) {
    os << "copy %" << copy.source << " to %" << copy.target;
  }

  void printScalar(const fb::ScalarT &scalar) {
    if (scalar.kind == fb::ScalarKind::Coord)
      os << "coordinate " << scalar.axis;
    else if (scalar.kind == fb::ScalarKind::Local)
      os << "%" << scalar.tensor << "." << scalar.dim;
    else
      os << toString(*scalar.extent, plan);
  }

  void printFunction(const fb::FunctionT &function) {
    os << "  as " << function.symbol << " of " << function.threads
       << " threads";
    if (function.shared != 0)
      os << " and " << function.shared << " bytes of shared memory";
    if (function.cluster != 1)
      os << " in clusters of " << function.cluster;
    if (function.persistent)
      os << ", persistent,";
    os << " over ";
    llvm::interleaveComma(function.space, os,
                          [&](const auto &scalar) { printScalar(*scalar); });
    os << " by " << function.items;
    if (function.early)
      os << ", early";
    for (const auto &boxed : function.boxed) {
      os << ", operand " << boxed->tensor << " in "
         << (boxed->ragged ? "ragged " : "") << "boxes of ";
      llvm::interleave(boxed->box, os, "x");
    }
    os << "\n";
  }

  const fb::PlanT &plan;
  llvm::raw_string_ostream os;
};
} // namespace

std::string tessera::printPlan(std::string_view module) {
  Result<ModuleReader> reader = ModuleReader::read(module);
  if (!reader)
    return "no module: " + reader.message() + "\n";
  std::string text;
  Printer(reader->plan(), text).print();
  return text;
}
