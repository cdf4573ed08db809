//===- CuBLASLt.h - what cuBLASLt does beside a product ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules that compiler and runtime share.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_CUBLASLT_H
#define TESSERA_SUPPORT_CUBLASLT_H

#include "Support/Result.h"

#include <algorithm>
#include <cstdint>
#include <span>

namespace tessera {

/// What a product c of a and b is to do as well.
struct BesideProduct {
  bool addend, bias, aux;
  bool gelu, slope; ///< the epilogue: none, or one of them
  bool sumsOfFactor, sumsOfResult;
  std::span<const int32_t> a, b, c; ///< labels of dimensions
};

inline Status checkCuBLASLt(const BesideProduct &of) {
  const bool sums = of.sumsOfFactor || of.sumsOfResult;
  if (of.addend && (of.bias || of.gelu || of.slope || sums))
    return Error{"cuBLASLt adds to a product that has neither bias, nor "
                 "epilogue, nor sums"};
  if (of.slope && (of.bias || of.aux))
    return Error{"cuBLASLt multiplies by the slope of a gelu without a bias "
                 "before it, and does not store what it multiplies"};
  if (!sums)
    return Ok{};
  if (of.bias || of.gelu || of.slope != of.sumsOfResult)
    return Error{"cuBLASLt sums what it multiplies by the slope of a gelu, and "
                 "a or b without bias and epilogue"};
  const bool hasBatch = std::ranges::any_of(of.c, [&](int32_t label) {
    return std::ranges::count(of.a, label) && std::ranges::count(of.b, label);
  });
  if (hasBatch || (of.sumsOfFactor && (of.a.size() != 2 || of.b.size() != 2 ||
                                       of.c.size() != 2)))
    return Error{"cuBLASLt sums rows or columns of one matrix"};
  return Ok{};
}

} // namespace tessera

#endif // TESSERA_SUPPORT_CUBLASLT_H
