//===- MakeModule.cpp - writes the tests' module to a file ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// make-test-module RANKS FILE: the MLP of MLP.h, for tests outside of C++.
//
//===----------------------------------------------------------------------===//

#include "MLP.h"

#include <cstdio>
#include <cstdlib>

int main(int argc, char **argv) {
  using namespace tessera;
  using namespace tessera::test;
  if (argc != 3)
    return std::fprintf(stderr, "usage: make-test-module RANKS FILE\n"), 2;
  MLP mlp(std::atoi(argv[1]));
  // Its last step, in a variant or in another one that does the same.
  PlanBuilder &b = mlp.b;
  int of = b.alternative(
      "attention", {{"flash", ""}, {"math", ""}, {"cudnn", "it is not here"}});
  b.inVariant(of, 0);
  fb::CollectiveT again = *b.plan.steps.back()->action.AsCollective();
  b.step<fb::CollectiveT>("tv.reshard", std::move(again));
  b.inVariant(of, 1);
  std::string bytes = b.module(kernels());
  std::ofstream file(argv[2], std::ios::binary);
  file << bytes;
  return file.good() ? 0 : 1;
}
