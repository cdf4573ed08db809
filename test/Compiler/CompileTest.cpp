//===- CompileTest.cpp - local programs compiled and run ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs of one device, as localization leaves them, go through the lower
// half of the compiler and run on ranks that are threads. Expected values are
// computed here in double, from the same inputs.
//
//===----------------------------------------------------------------------===//

#include "../Runtime/Ranks.h"
#include "tessera/Compiler.h"

#include <cmath>
#include <fstream>

using namespace tessera;
using layout::Shape;

namespace {

/// A number in [-1, 1) that depends on the place.
double number(const std::string &port, const Shape &index) {
  uint64_t hash = 1469598103934665603u;
  auto mix = [&](uint64_t x) { hash = (hash ^ x) * 1099511628211u; };
  for (char c : port)
    mix(c);
  for (int64_t i : index)
    mix(i + 1);
  hash ^= hash >> 29;
  hash *= 0xbf58476d1ce4e5b9u;
  hash ^= hash >> 32;
  // As an f32 holds it.
  return static_cast<float>((hash >> 40) * 0x1p-23 - 1);
}

double input(const std::string &port, const Shape &index, int) {
  return number(port, index);
}

std::string replaceAll(std::string text, const std::string &from,
                       const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
       at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string compileLocal(const std::string &source) {
  CompileOptions options;
  options.name = "test.mlir";
  options.from = "local";
  CompileResult result = compile(source, options);
  EXPECT_TRUE(result.succeeded) << result.diagnostics;
  return result.output;
}

void compileAndRun(const std::string &source, int ranks,
                   const test::Value &expected, test::RunOptions options,
                   const test::Value &inputs = input) {
  std::string module = compileLocal(source);
  if (!module.empty())
    test::runModule(module, ranks, inputs, expected, options);
}

//===----------------------------------------------------------------------===//
// MLP
//===----------------------------------------------------------------------===//

const char *const kMlp = R"(
#m = #tv.mesh<tp = RANKS>
#x = #tv.view<#m, [_, 8]>
#w0 = #tv.view<#m, [SPLIT, 8]>
#b0 = #tv.view<#m, [SPLIT]>
#h = #tv.view<#m, [_, SPLIT]>
#w1 = #tv.view<#m, [8, SPLIT]>
#p = #tv.view<#m, [_, 8]PARTIAL>
!x = tensor<?x8xf32, #tv.local<#x, of [b, 8]>>
!w0 = tensor<PARTx8xf32, #tv.local<#w0, of [12, 8]>>
!b0 = tensor<PARTxf32, #tv.local<#b0, of [12]>>
!h = tensor<?xPARTxf32, #tv.local<#h, of [b, 12]>>
!w1 = tensor<8xPARTxf32, #tv.local<#w1, of [8, 12]>>
!p = tensor<?x8xf32, #tv.local<#p, of [b, 8]>>
func.func @main(%x: !x {tv.name = "x", tv.dims = ["b"]},
                %w0: !w0 {tv.name = "w0"}, %b0: !b0 {tv.name = "b0"},
                %w1: !w1 {tv.name = "w1"})
    -> (!x {tv.name = "y"}) attributes {tv.sizes = {b = 64}} {
  %0 = tv.linear %x, %w0 bias %b0 : (!x, !w0, !b0) -> !h
  %1 = tv.gelu tanh %0 : (!h) -> !h
  %2 = tv.linear %1, %w1 : (!h, !w1) -> !p
  REDUCE
}
)";

double mlp(const Shape &index) {
  double sum = 0;
  for (int64_t j = 0; j < 12; ++j) {
    double u = number("b0", {j});
    for (int64_t k = 0; k < 8; ++k)
      u += number("x", {index[0], k}) * number("w0", {j, k});
    double gelu =
        0.5 * u *
        (1 + std::tanh(std::sqrt(2 / M_PI) * (u + 0.044715 * u * u * u)));
    sum += gelu * number("w1", {index[1], j});
  }
  return sum;
}

void runMlp(int ranks, const std::string &split, const std::string &part) {
  std::string source = kMlp;
  bool one = ranks == 1;
  source = replaceAll(source, "RANKS", std::to_string(ranks));
  source = replaceAll(source, "SPLIT", split);
  source = replaceAll(source, "PARTIAL", one ? "" : ", partial = [tp : sum]");
  source = replaceAll(source, "PART", part);
  source = replaceAll(
      source, "REDUCE",
      one ? "return %2 : !p"
          : "%3 = comm.all_reduce %2 over #m [tp] id 0 : (!p) -> !x\n"
            "return %3 : !x");
  for (int64_t batch : {1, 5}) {
    test::RunOptions options;
    options.symbols = {batch};
    options.tolerance = 1e-5;
    options.inspect = [&](tessera_binding *binding, int) {
      EXPECT_EQ(tessera_binding_collective_count(binding), one ? 0u : 1u);
    };
    compileAndRun(
        source, ranks,
        [](const std::string &, const Shape &index, int) { return mlp(index); },
        options);
  }
}

TEST(Compile, MlpOnOneRank) { runMlp(1, "12", "12"); }
TEST(Compile, MlpOnTwoRanks) { runMlp(2, "did(tp) * 6", "6"); }
TEST(Compile, MlpOnFiveUnevenRanks) { runMlp(5, "did(tp) * 3", "?"); }

} // namespace
