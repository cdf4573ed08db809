//===- Tolerance.h - how far a result may be from the reference ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Architecture section 11, written here and nowhere else. The reference runs in
// float64 on inputs rounded to the program's types. A float64 program that
// rounds each value to its type has an error of its own. A result may be
//
//   4 * the largest such error in its row
//   + eps * the row's Euclidean norm
//   + (p - 1) * eps * the largest addend of a reduction over devices
//
// away from the reference, with p devices, eps of the result's type, and the
// last dimension as row. Integers must be equal.
//
// The reference rounds to f64 itself, so it does not show what that costs: from
// op to op rounding to f32 does, in units that are 2^29 times as large; inside
// of an op it is 4 * eps * the norm of the largest row, as results may cancel.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERPRETER_MACHINE_TOLERANCE_H
#define TESSERA_INTERPRETER_MACHINE_TOLERANCE_H

#include "Interpreter/Ops/NDArray.h"

#include <optional>

namespace tessera::interp {

struct Reference {
  const NDArray &exact;   ///< in float64
  const NDArray &rounded; ///< with each value rounded to its type
  /// And f64 to f32; for results of f64.
  const NDArray *inFloat = nullptr;
};

struct Comparison {
  double largestError = 0;
  /// The first element that is too far away.
  std::optional<Index> differs;
  double allowed = 0; ///< at that element
};

Comparison compare(const Reference &reference, const NDArray &array,
                   int64_t devices, double largestAddend);

} // namespace tessera::interp

#endif // TESSERA_INTERPRETER_MACHINE_TOLERANCE_H
