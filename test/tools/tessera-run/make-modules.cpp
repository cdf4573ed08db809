//===- make-modules.cpp - modules for the test of tessera-run -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes into the folder given, for N = 1 to 4 ranks, linear-N.tsr:
//
//     y = x w'    x[b, 10] and w[6, 10] split over tp along the 10
//
// a product with a partial result, and an all-reduce; other-2.tsr, which is
// linear-2.tsr with a larger maximum of b; state-2.tsr with a state, s[5, 4]
// split by rows, that a run replaces by s w'; logged-2.tsr, state-2.tsr with
// the sum of the squares of s w', in parts and whole; choice-1.tsr,
// linear-1.tsr with two choices of one or two equal variants; and zeros-2.tsr
// with states s and t that start as zeros and stay as they are.
//
//===----------------------------------------------------------------------===//

#include "../../Module/PlanBuilder.h"

#include <cstdio>
#include <tuple>

using namespace tessera;
using namespace tessera::test;

static bool write(PlanBuilder &plan, const std::string &folder,
                  const std::string &name, const std::string &code = "") {
  // As compilers spell views; --verify compares their text.
  layout::Mesh mesh = *layout::parseMesh(plan.plan.mesh);
  for (const auto &tensor : plan.plan.tensors)
    tensor->view = toString(canonicalize(*layout::parseView(tensor->view, mesh),
                                         staticShape(*tensor), mesh),
                            mesh);
  ModuleBuilder module;
  module.setPlan(plan.plan);
  if (!code.empty())
    module.setCode(code, 0);
  Status status = module.write(folder + "/" + name + ".tsr");
  if (!status)
    fprintf(stderr, "%s\n", status.message().c_str());
  return bool(status);
}

/// What a driver of tests takes for a cubin.
static std::string fakeCode(PlanBuilder &b) {
  std::string code = "runtime";
  b.plan.binaries.push_back(std::make_unique<fb::BinaryT>());
  b.plan.binaries[0]->name = "runtime";
  b.plan.binaries[0]->size = code.size();
  return code;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: make-modules FOLDER\n");
    return 1;
  }
  for (auto [name, ranks, maximum] :
       {std::tuple("linear-1", 1, 16), std::tuple("linear-2", 2, 16),
        std::tuple("linear-3", 3, 16), std::tuple("linear-4", 4, 16),
        std::tuple("other-2", 2, 32)}) {
    PlanBuilder b("<tp = " + std::to_string(ranks) + ">");
    int size = b.symbol("b", maximum);
    Size batch = Size::symbol(size);
    int x = b.input("x", {batch, 10}, "[_, did(tp) * _]");
    int w = b.input("w", {6, 10}, "[_, did(tp) * _]");
    int part = b.tensor("part", {batch, 6}, "[_, _], partial = [(tp) : sum]",
                        fb::Storage::Symmetric);
    int y = b.output("y", {batch, 6}, "[_, _]");
    b.contract(x, {0, 2}, w, {1, 2}, part, {0, 1});
    b.collective(fb::CollectiveKind::AllReduce, part, y, {"tp"});
    if (!write(b, argv[1], name))
      return 1;
  }

  // The same ports, with another result, and for another target.
  for (auto [name, target] :
       {std::pair("squared-1", ""), std::pair("cuda-1", "cuda:sm_90a")}) {
    PlanBuilder b("<tp = 1>");
    b.plan.target = target;
    int size = b.symbol("b", 16);
    Size batch = Size::symbol(size);
    int x = b.input("x", {batch, 10}, "[_, _]");
    int w = b.input("w", {6, 10}, "[_, _]");
    int square = b.alias("square", w, fb::AliasKind::Slice, {6, 6}, "[_, _]",
                         {}, {0, 0});
    int t = b.tensor("t", {batch, 6}, "[_, _]");
    int y = b.output("y", {batch, 6}, "[_, _]");
    b.contract(x, {0, 2}, w, {1, 2}, t, {0, 1});
    b.contract(t, {0, 2}, square, {1, 2}, y, {0, 1});
    if (!write(b, argv[1], name))
      return 1;
  }

  // y = x transposed; no kernel of the module's own.
  for (auto [name, ranks, target] :
       {std::tuple("turn-1", 1, ""), std::tuple("turn-2", 2, ""),
        std::tuple("turn-cuda-1", 1, "cuda:sm_90a"),
        std::tuple("turn-cuda-2", 2, "cuda:sm_90a")}) {
    PlanBuilder b("<tp = " + std::to_string(ranks) + ">");
    b.plan.target = target;
    int size = b.symbol("b", 16);
    Size batch = Size::symbol(size);
    int x = b.input("x", {batch, 10}, "[_, did(tp) * _]");
    int whole =
        b.tensor("whole", {batch, 10}, "[_, _]", fb::Storage::Symmetric);
    int turned = b.alias("turned", whole, fb::AliasKind::Transpose, {10, batch},
                         "[_, _]", {1, 0});
    int y = b.output("y", {10, batch}, "[_, _]");
    b.collective(fb::CollectiveKind::AllGather, x, whole, {"tp"});
    b.copy(turned, y);
    if (*target) {
      // In one of two variants that do the same.
      b.alternative("attention", {{"flash", ""}, {"math", ""}});
      b.inVariant(0, 0);
      b.copy(turned, y);
      b.inVariant(0, 1);
    }
    if (!write(b, argv[1], name, *target ? fakeCode(b) : ""))
      return 1;
  }

  // Gathers over each axis by NCCL, then turns over both.
  for (auto [name, target] :
       {std::pair("axes-4", ""), std::pair("axes-cuda-4", "cuda:sm_90a")}) {
    PlanBuilder b("<dp = 2, tp = 2>");
    b.plan.target = target;
    int x = b.input("x", {8, 8}, "[did(dp) * did(tp) * _, _]");
    int rows =
        b.tensor("rows", {8, 8}, "[did(dp) * _, _]", fb::Storage::Symmetric);
    int whole = b.tensor("whole", {8, 8}, "[_, _]", fb::Storage::Symmetric);
    int y = b.output("y", {8, 8}, "[_, did(dp) * did(tp) * _]");
    b.collective(fb::CollectiveKind::AllGather, x, rows, {"tp"});
    b.collective(fb::CollectiveKind::AllGather, rows, whole, {"dp"});
    b.collective(fb::CollectiveKind::AllToAll, x, y, {"dp", "tp"});
    if (!write(b, argv[1], name, *target ? fakeCode(b) : ""))
      return 1;
  }

  // y = z, or y = other: what --verify compares can be anything.
  for (auto [dtype, type] :
       {std::pair("f32", fb::DType::F32), std::pair("f16", fb::DType::F16),
        std::pair("i32", fb::DType::I32)})
    for (int ranks : {1, 2})
      for (const char *from :
           {"z", "other", "cuda-other", "whole-z", "only-z"}) {
        PlanBuilder b("<tp = " + std::to_string(ranks) + ">");
        const bool cuda = from == std::string("cuda-other");
        const std::string view = from == std::string("whole-z")
                                     ? "[_, _]"
                                     : "[_, did(tp) * _], alloc = (1, 0)";
        int z = b.input("z", {5, 6}, view, type);
        int other = from == std::string("only-z")
                        ? -1
                        : b.input("other", {5, 6}, view, type);
        int y = b.output("y", {5, 6}, view, type);
        b.copy(std::string(from).ends_with("z") ? z : other, y);
        if (cuda)
          b.plan.target = "cuda:sm_90a";
        if (!write(b, argv[1],
                   std::string(from) + "-" + dtype + "-" +
                       std::to_string(ranks),
                   cuda ? fakeCode(b) : ""))
          return 1;
      }

  PlanBuilder choice("<tp = 1>");
  {
    Size batch = Size::symbol(choice.symbol("b", 16));
    int x = choice.input("x", {batch, 10}, "[_, _]");
    int w = choice.input("w", {6, 10}, "[_, _]");
    int t = choice.tensor("t", {batch, 6}, "[_, _]");
    int y = choice.output("y", {batch, 6}, "[_, _]");
    choice.alternative("attention",
                       {{"math", ""}, {"flash", "it is too wide"}});
    choice.alternative("attention", {{"flash", ""}, {"math", ""}});
    choice.contract(x, {0, 2}, w, {1, 2}, t, {0, 1});
    choice.copy(t, y);
    choice.inVariant(1, 1);
    choice.contract(x, {0, 2}, w, {1, 2}, y, {0, 1});
    choice.inVariant(1, 0);
    if (!write(choice, argv[1], "choice-1"))
      return 1;
  }

  PlanBuilder two("<tp = 1>");
  const int from = two.input("x", {5, 10}, "[_, _]");
  for (const char *name : {"y", "z"})
    two.copy(from, two.output(name, {5, 10}, "[_, _]"));
  if (!write(two, argv[1], "two-1"))
    return 1;

  for (const char *name : {"state-2", "logged-2"}) {
    PlanBuilder b("<tp = 2>");
    const std::string rows = "[did(tp) * _, _]";
    int state = b.tensor("s", {5, 4}, rows, fb::Storage::External);
    int w = b.input("w", {4, 4}, "[_, _]");
    int next = b.tensor("next", {5, 4}, rows);
    b.port(state, fb::PortKind::State, next);
    b.contract(state, {0, 2}, w, {1, 2}, next, {0, 1});
    if (name == std::string("logged-2")) {
      int part = b.output("part", {}, "[], partial = [(tp) : sum]");
      int norm = b.output("norm", {}, "[]");
      b.contract(next, {0, 1}, next, {0, 1}, part, {});
      b.collective(fb::CollectiveKind::AllReduce, part, norm, {"tp"});
    }
    if (!write(b, argv[1], name))
      return 1;
  }

  PlanBuilder checked("<tp = 2>");
  {
    int state =
        checked.tensor("s", {5, 4}, "[did(tp) * _, _]", fb::Storage::External);
    int next = checked.tensor("next", {5, 4}, "[did(tp) * _, _]");
    checked.port(state, fb::PortKind::State, next);
    checked.copy(state, next);
    int codes = checked.input("codes", {2, 3}, "[_, _]", fb::DType::I32);
    int wrong = checked.output("wrong", {2, 3}, "[_, _], alloc = (1, 0)",
                               fb::DType::I32);
    checked.copy(codes, wrong);
    checked.plan.ports.back()->check = "codes are not 0";
    checked.plan.ports.back()->location = "a.mlir:3:7";
    if (!write(checked, argv[1], "checked-2"))
      return 1;
  }

  PlanBuilder zeros("<tp = 2>");
  for (const char *name : {"s", "t"}) {
    int state =
        zeros.tensor(name, {600, 4}, "[did(tp) * _, _]", fb::Storage::External);
    int next = zeros.output(std::string(name) + " before", {600, 4},
                            "[did(tp) * _, _]");
    zeros.copy(state, next);
    int port = zeros.port(state, fb::PortKind::State, next);
    zeros.plan.ports[port]->zero_init = true;
  }
  return write(zeros, argv[1], "zeros-2") ? 0 : 1;
}
