//===- make-modules.cpp - modules for the test of tessera-run -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes linear-N.tsr into the folder given, for N = 1 to 4 ranks:
//
//     y = x w'    x[b, 10] and w[6, 10] split over tp along the 10
//
// a product with a partial result, and an all-reduce. other-2.tsr is
// linear-2.tsr with a larger maximum of b.
//
//===----------------------------------------------------------------------===//

#include "../../Module/PlanBuilder.h"

#include <cstdio>
#include <tuple>

using namespace tessera;
using namespace tessera::test;

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
    ModuleBuilder module;
    module.setPlan(b.plan);
    std::string path = std::string(argv[1]) + "/" + name + ".tsr";
    if (Status status = module.write(path); !status) {
      fprintf(stderr, "%s\n", status.message().c_str());
      return 1;
    }
  }
  return 0;
}
