//===- Contract.h - products of tensors on the CPU ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CPU_CONTRACT_H
#define TESSERA_BACKENDS_CPU_CONTRACT_H

#include "Backends/Common/Contraction.h"
#include "Support/Result.h"

#include <cstddef>
#include <span>
#include <vector>

namespace tessera {

/// c = a * b by labels: a label in a, b and c is a batch, in a and c a row, in
/// b and c a column, in a and b contracted. f64, or any of f32, bf16 and f16
/// with sums in f32.
class Contract {
public:
  using Operand = Contraction::Operand;
  static Result<Contract> create(const Operand &a, const Operand &b,
                                 const Operand &c);

  int64_t scratchBytes() const;
  /// No operand overlaps c, which is added to if `adds`. Allocates nothing and
  /// starts no thread.
  void run(const std::byte *a, const std::byte *b, std::byte *c,
           std::byte *scratch, bool adds = false) const;

private:
  using Loop = Contraction::Loop;

  template <typename T>
  void runDirect(const std::byte *a, const std::byte *b, std::byte *c,
                 bool adds) const;
  template <typename T>
  void runTiled(const std::byte *a, const std::byte *b, std::byte *c,
                std::byte *scratch, bool adds) const;

  bool isDirect(const Loop &m, const Loop &n, const Loop &k) const;

  DType dtypes[3];
  bool empty = false;          ///< c has no elements
  bool direct = false;         ///< the matrices go to BLAS as they are
  std::vector<Loop> outer;     ///< batches and all other rows and columns
  std::vector<Loop> outerSums; ///< contracted, summed over BLAS calls
  Loop m, n, k;                ///< of one matrix product
};

} // namespace tessera

#endif // TESSERA_BACKENDS_CPU_CONTRACT_H
