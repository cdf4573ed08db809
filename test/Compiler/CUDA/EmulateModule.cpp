//===- EmulateModule.cpp - a module for GPUs becomes one for CPUs ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   emulate-module module.tsr kernels.cu emulated.tsr [blocks]
//
// The plan stays; its kernels are the text of those for GPUs, compiled for the
// host with Emulation.h, behind the interface of CPU kernels. So tests of
// programs run them without a GPU. Of what is made of wgmma and TMA, a matrix
// product is emulated by its definition (EmulatedProduct.h). An attention is
// not: it stays in its variant, and ends the program if it runs.
//
//===----------------------------------------------------------------------===//

#include "Module/Module.h"
#include "Support/DType.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

using namespace tessera;

static std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

[[noreturn]] static void fail(const std::string &message) {
  std::cerr << "emulate-module: error: " << message << "\n";
  std::exit(1);
}

/// Takes the text of attentions out of that of all kernels, where the text of
/// each begins with its name. Gives their names.
static std::set<std::string> dropAttentions(const fb::PlanT &plan,
                                            std::string &text) {
  std::map<size_t, std::string> begins = {{text.size(), ""}};
  for (const auto &step : plan.steps) {
    const fb::LaunchT *launch = step->action.AsLaunch();
    if (!launch)
      continue;
    std::string title = "// " + launch->symbol + ": ";
    size_t at = text.starts_with(title) ? 0 : text.find("\n" + title);
    if (at == std::string::npos)
      fail("the text has no kernel '" + launch->symbol + "'");
    begins[at] = launch->symbol;
  }
  std::set<std::string> dropped;
  for (auto kernel = std::next(begins.rbegin()); kernel != begins.rend();
       ++kernel) {
    size_t size = std::prev(kernel)->first - kernel->first;
    const std::string own = text.substr(kernel->first, size);
    if (own.find("attention_fwd<") == std::string::npos &&
        own.find("attention_few<") == std::string::npos &&
        own.find("attention_bwd<") == std::string::npos &&
        own.find("make_walks(") == std::string::npos)
      continue;
    dropped.insert(kernel->second);
    text.erase(kernel->first, size);
  }
  return dropped;
}

/// The functions that CPU backends call, in terms of the device functions.
static std::string getEntries(const ModuleReader &reader,
                              const std::set<std::string> &dropped,
                              const std::string &blocks) {
  std::ostringstream os;
  std::set<std::string> known;
  const fb::PlanT &plan = reader.plan();
  for (const auto &step : plan.steps) {
    const fb::LaunchT *launch = step->action.AsLaunch();
    if (!launch || !known.insert(launch->symbol).second)
      continue;
    std::string parameters = launch->symbol + "_Parameters";
    os << "extern \"C\" __attribute__((visibility(\"default\"))) void "
       << launch->symbol << "(void **args) {\n";
    if (dropped.contains(launch->symbol)) {
      // An order that attentions share may be made for none.
      os << (launch->symbol.starts_with("block_walks") ? "}\n"
                                                       : "  abort();\n}\n");
      continue;
    }
    os << "  " << parameters << " p;\n"
       << "  long long words[sizeof p / 8], *next = words;\n";
    size_t argument = 0;
    for (int32_t tensor : launch->tensors)
      os << "  next = emulation::addTensor(next, args[" << argument++ << "], "
         << reader.view(tensor).dims.size() << ", "
         << int(info(static_cast<DType>(plan.tensors[tensor]->dtype)).bytes)
         << ");\n";
    for (size_t i = 0; i < launch->scalars.size(); ++i)
      os << "  *next++ = *static_cast<long long *>(args[" << argument++
         << "]);\n";
    os << "  if (next != words + sizeof p / 8) abort();\n"
       << "  memcpy(&p, words, sizeof p);\n";
    for (const auto &function : launch->functions) {
      std::string type = parameters, value = "p";
      if (!function->boxed.empty()) {
        type = function->symbol + "_Boxed";
        value = type + "{p, {";
        for (const auto &boxed : function->boxed) {
          value += "tessera::TensorMap{args[" + std::to_string(boxed->tensor) +
                   "], {";
          for (int32_t extent : boxed->box)
            value += std::to_string(extent) + ", ";
          value += "}}, ";
        }
        value += "}}";
      }
      os << "  emulation::launch<" << type << ", " << function->symbol << ">("
         << blocks << ", " << function->threads << ", " << value << ");\n";
    }
    os << "}\n";
  }
  return os.str();
}

static const char *getElement(fb::DType dtype) {
  switch (dtype) {
  case fb::DType::F64:
    return "emulation::Element::F64";
  case fb::DType::F32:
    return "emulation::Element::F32";
  case fb::DType::BF16:
    return "emulation::Element::BF16";
  case fb::DType::F16:
    return "emulation::Element::F16";
  default:
    fail("a product of elements that are no floats");
  }
}

/// Products with a bias, an epilogue or sums become products without, and
/// kernels: into a tensor of what is summed, and from there to the result; for
/// the sums. Gives the text of those kernels.
static std::string splitProducts(fb::PlanT &plan) {
  std::ostringstream os;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    fb::ContractT *contract = plan.steps[i]->action.AsContract();
    if (!contract)
      continue;
    const fb::StepT &product = *plan.steps[i];
    auto addKernel = [&, at = i](const char *what, std::vector<int32_t> tensors,
                                 const std::string &call) mutable {
      fb::LaunchT launch;
      launch.symbol = what + ("_" + std::to_string(at));
      launch.tensors = std::move(tensors);
      os << "extern \"C\" __attribute__((visibility(\"default\"))) void "
         << launch.symbol << "(void **args) {\n  emulation::" << call
         << ");\n}\n";
      auto step = std::make_unique<fb::StepT>();
      step->op = product.op;
      step->location = product.location;
      step->alternative = product.alternative;
      step->variant = product.variant;
      step->action.Set(std::move(launch));
      plan.steps.insert(plan.steps.begin() + ++i, std::move(step));
    };
    auto text = [](auto... values) {
      std::string text;
      ((text += ", " + std::to_string(values)), ...);
      return text;
    };
    auto has = [](const std::vector<int32_t> &labels, int32_t label) {
      return std::count(labels.begin(), labels.end(), label) != 0;
    };
    auto columnOf = [&](const std::vector<int32_t> &labels,
                        const std::vector<int32_t> &with,
                        const std::vector<int32_t> &without) {
      size_t column = labels.size();
      for (size_t dim = 0; dim < labels.size(); ++dim)
        if (has(with, labels[dim]) && !has(without, labels[dim]))
          column = dim;
      return column;
    };
    const auto &aLabels = contract->a_labels, &bLabels = contract->b_labels,
               &cLabels = contract->c_labels;
    const int32_t result = contract->c;
    const fb::DType type = plan.tensors[result]->dtype;
    if (contract->bias >= 0 || contract->epilogue != fb::Epilogue::None) {
      auto sums = std::make_unique<fb::TensorT>(*plan.tensors[result]);
      if (type != fb::DType::F64)
        sums->dtype = fb::DType::F32;
      sums->storage = fb::Storage::Local;
      sums->alias.reset();
      const fb::DType wide = sums->dtype;
      contract->c = plan.tensors.size();
      plan.tensors.push_back(std::move(sums));
      std::vector<int32_t> tensors = {contract->c};
      for (int32_t other : {contract->bias, contract->x, contract->aux})
        if (other >= 0)
          tensors.push_back(other);
      tensors.push_back(result);
      addKernel("epilogue", tensors,
                "epilogue(args" +
                    text(cLabels.size(), columnOf(cLabels, bLabels, aLabels)) +
                    ", " + getElement(wide) + ", " + getElement(type) +
                    text(contract->bias >= 0, contract->x >= 0,
                         contract->aux >= 0,
                         contract->epilogue == fb::Epilogue::GeluTanh));
    }
    const bool ofA = contract->summed == fb::Summed::A;
    const bool ofB = contract->summed == fb::Summed::B;
    if (contract->summed != fb::Summed::None) {
      const auto &labels = ofA ? aLabels : ofB ? bLabels : cLabels;
      const size_t kept = ofA ? columnOf(labels, cLabels, bLabels)
                              : columnOf(labels, cLabels, aLabels);
      addKernel("sums",
                {ofA   ? contract->a
                 : ofB ? contract->b
                       : result,
                 contract->sums},
                "sums(args" + text(labels.size(), kept) + ", " +
                    getElement(type));
    }
    contract->bias = contract->x = contract->aux = contract->sums = -1;
    contract->epilogue = fb::Epilogue::None;
    contract->summed = fb::Summed::None;
  }
  return os.str();
}

int main(int argc, char **argv) {
  if (argc < 4)
    fail("usage: emulate-module module.tsr kernels.cu emulated.tsr [blocks]");
  const std::string result = argv[3], source = result + ".cpp",
                    library = result + ".so";
  Result<ModuleReader> reader = ModuleReader::open(argv[1]);
  if (!reader)
    fail(reader.message());
  std::string text = readFile(argv[2]);
  std::set<std::string> dropped = dropAttentions(reader->plan(), text);
  // Their names are for those of the host.
  const std::string external = "extern \"C\" __global__";
  for (size_t at = 0; (at = text.find(external, at)) != std::string::npos;)
    text.replace(at, external.size(), "static __global__");
  fb::PlanT plan(reader->plan());
  std::ofstream(source) << splitProducts(plan) << text
                        << getEntries(*reader, dropped,
                                      argc > 4 ? argv[4] : "3");
  ModuleBuilder builder;
  if (!plan.binaries.empty()) {
    std::string command = TESSERA_COMPILE_KERNELS " -shared -nostdlib++ -o '" +
                          library + "' '" + source + "' -lm";
    if (std::system(command.c_str()))
      fail("kernels do not compile for the host: " + source);
    builder.setCode(readFile(library));
  }
  plan.target.clear();
  plan.binaries.clear();
  for (auto &step : plan.steps)
    if (fb::LaunchT *launch = step->action.AsLaunch())
      launch->functions.clear();
  builder.setPlan(plan);
  builder.setConstants(std::string(reader->section(Section::Constants)));
  if (Status status = builder.write(result); !status)
    fail(status.message());
}
