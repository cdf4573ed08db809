//===- MLP.h - a module for tests -----------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_RUNTIME_MLP_H
#define TESSERA_TEST_RUNTIME_MLP_H

#include "../Module/PlanBuilder.h"

#include <fstream>
#include <sstream>

namespace tessera::test {

inline std::string readFile(const char *path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

inline std::string kernels() { return readFile(TESSERA_TEST_KERNELS); }

inline double small(const layout::Shape &index) {
  int64_t n = 1;
  for (int64_t i : index)
    n = n * 7 + i;
  return n % 5 - 2;
}

/// The two-linear MLP with its weights split over tp: x is [batch, 8], the
/// hidden layer 2 * (x w0^T) + 1, the result one all-reduce.
struct MLP {
  PlanBuilder b;
  static constexpr int64_t kHidden = 32, kIn = 8;

  explicit MLP(int ranks) : b("<tp = " + std::to_string(ranks) + ">") {
    int batch = b.symbol("batch", 64, 2);
    Size rows = Size::symbol(batch);
    int x = b.input("x", {rows, kIn}, "[_, _]");
    int w0 = b.input("w0", {kHidden, kIn}, "[did(tp) * _, _]");
    int w1 = b.input("w1", {kIn, kHidden}, "[_, did(tp) * _]");
    int h = b.tensor("h", {rows, kHidden}, "[_, did(tp) * _]");
    int a = b.tensor("a", {rows, kHidden}, "[_, did(tp) * _]");
    int p = b.tensor("p", {rows, kIn}, "[_, _], partial = [tp : sum]",
                     fb::Storage::Symmetric);
    int y = b.output("y", {rows, kIn}, "[_, _]");
    b.contract(x, {0, 2}, w0, {1, 2}, h, {0, 1});
    b.launch("twice_plus", {h, a}, {valueScalar(1)});
    b.contract(a, {0, 2}, w1, {1, 2}, p, {0, 1});
    b.collective(fb::CollectiveKind::AllReduce, p, y, {"tp"});
  }
  static double input(const std::string &port, const layout::Shape &index,
                      int) {
    return small(index) + (port == "w0");
  }
  static double expected(const std::string &, const layout::Shape &index, int) {
    double sum = 0;
    for (int64_t j = 0; j < kHidden; ++j) {
      double hidden = 0;
      for (int64_t k = 0; k < kIn; ++k)
        hidden += input("x", {index[0], k}, 0) * input("w0", {j, k}, 0);
      sum += (2 * hidden + 1) * input("w1", {index[1], j}, 0);
    }
    return sum;
  }
};

} // namespace tessera::test

#endif // TESSERA_TEST_RUNTIME_MLP_H
