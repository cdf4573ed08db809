//===- Products.h - a product of tensors as matrix products ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plain host code: which calls of a matrix library on a GPU make a product of
// tensors, and what is copied before and after them where memory does not suit
// the library.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_BLAS_PRODUCTS_H
#define TESSERA_BACKENDS_CUDA_BLAS_PRODUCTS_H

#include "Backends/Common/Contraction.h"
#include "Module/Module.h"

#include <array>
#include <optional>

namespace tessera::cuda {

/// Column-major d[m, n] = x[m, k] * y[k, n], `batch` times. x and y may be
/// given transposed.
struct MatrixProduct {
  struct Matrix {
    bool transposed = false;
    int64_t leading = 1;
    int64_t batchStride = 0;
    bool operator==(const Matrix &) const = default;
  };
  int64_t m = 1, n = 1, k = 1, batch = 1;
  Matrix x, y, d;
  /// Whether x is b and y is a: d is then c read as its transpose.
  bool swapped = false;
};

/// Where the library finds an operand: in the tensor itself, or in dense
/// scratch that is copied from it before or, if it is written, to it after.
struct Staging {
  /// Of the tensor and of the scratch, in elements, dimension by dimension.
  std::vector<int64_t> sizes, strides, dense;
  int64_t elements = 0; ///< of the scratch
};

struct Epilogue {
  bool bias = false;
  int64_t biasStride = 1;
  bool gelu = false;
  /// What is summed, times the slope of gelu at aux.
  bool geluGrad = false;
  bool aux = false; ///< read by geluGrad, else written
  /// Of aux, in elements; its dimensions are c's.
  std::span<const int64_t> auxStrides{};
  /// Sums of c's columns over its rows, with geluGrad; of a's rows or b's
  /// columns over what is contracted, without bias, gelu and geluGrad.
  fb::Summed summed = fb::Summed::None;
  int64_t sumsStride = 1;
  /// The product is added to what lies as c does, in c or elsewhere.
  bool addend = false;
};

/// Whether the library does all of it in its calls, or why not.
Status checkEpilogue(const fb::ContractT &contract);

/// What follows from sizes and strides.
struct Products {
  enum { A, B, C, Bias, Aux, Sums, Addend, Count };

  static Result<Products> create(const Contraction::Operand &a,
                                 const Contraction::Operand &b,
                                 const Contraction::Operand &c,
                                 const Epilogue &epilogue);

  DType dtypes[3];
  bool isWritten(int t) const {
    return t == C || t == Sums || (t == Aux && !epilogue.geluGrad);
  }
  bool empty = false; ///< c has no elements: nothing to do
  bool zero = false;  ///< no term is summed: c and sums are filled with zeros
  MatrixProduct product;
  /// The calls: offsets of a, b, c in elements (of the scratch where staged).
  std::vector<std::array<int64_t, 3>> calls;
  std::optional<Staging> staged[Count];
  int64_t auxLeading = 0;
  int64_t numSums = 0;
  Epilogue epilogue;
};

} // namespace tessera::cuda

#endif // TESSERA_BACKENDS_CUDA_BLAS_PRODUCTS_H
