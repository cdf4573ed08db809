//===- NDArray.h - arrays of the interpreter -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERPRETER_OPS_NDARRAY_H
#define TESSERA_INTERPRETER_OPS_NDARRAY_H

#include "Layout/View.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

#include <limits>
#include <string>
#include <vector>

namespace tessera::interp {

using layout::Shape;
using Index = llvm::SmallVector<int64_t, 6>;

/// A float as double; an integer exactly, sign-extended (zero-extended if its
/// type is unsigned, and i1). The type that goes with it says which.
union Scalar {
  double real;
  int64_t whole;
};
inline Scalar real(double value) { return {.real = value}; }
inline Scalar whole(int64_t value) { return {.whole = value}; }
inline bool isFloat(mlir::Type type) {
  return !type.isIntOrIndex(); // no look for an interface: this is asked often
}

/// To the nearest value of `type`, ties to even.
double roundTo(double value, mlir::Type type);
/// Modulo 2^width of `type`.
int64_t wrapTo(int64_t value, mlir::Type type);
/// The value with its bits read as unsigned.
uint64_t unsignedOf(int64_t value, mlir::Type type);

/// The bits of a value of `type`, a float rounded to it, and back.
uint64_t bitsOf(Scalar value, mlir::Type type);
Scalar fromBits(uint64_t bits, mlir::Type type);

Scalar identityOf(layout::Combiner combiner, mlir::Type type);
Scalar combine(layout::Combiner combiner, mlir::Type type, Scalar a, Scalar b);
/// `value` of a float or integer attribute.
Scalar scalarOf(mlir::Attribute value);
std::string toString(Scalar value, mlir::Type type);

/// Dense and row-major.
struct NDArray {
  mlir::Type type;
  Shape shape;
  std::vector<Scalar> data;

  NDArray() = default;
  /// Floats are NaN until written, integers the smallest of 64 bits.
  NDArray(mlir::Type type, Shape shape);

  bool isFloat() const { return interp::isFloat(type); }
  /// Every float to the nearest of `type`.
  /// Floats to `type`; with `doublesToFloat` f64 to f32.
  void round(bool doublesToFloat = false);
};

int64_t numElements(const Shape &shape);
/// The row-major number of `index`, and back.
int64_t linearize(llvm::ArrayRef<int64_t> index, llvm::ArrayRef<int64_t> shape);
Index delinearize(int64_t number, llvm::ArrayRef<int64_t> shape);
std::string indexText(llvm::ArrayRef<int64_t> index);

} // namespace tessera::interp

#endif // TESSERA_INTERPRETER_OPS_NDARRAY_H
