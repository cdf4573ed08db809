//===- Tolerance.cpp - how far a result may be from the reference --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Machine/Tolerance.h"

#include <cmath>

using namespace tessera;
using namespace tessera::interp;

/// 0 for equal values, infinities and NaNs included; infinite if only one is
/// finite.
static double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b)))
    return 0;
  double difference = std::fabs(a - b);
  return std::isfinite(difference) ? difference
                                   : std::numeric_limits<double>::infinity();
}

Comparison interp::compare(const Reference &reference, const NDArray &array,
                           int64_t devices, double largestAddend) {
  Comparison result;
  const Shape &shape = array.shape;
  int64_t count = array.data.size();
  auto note = [&](int64_t at, double error, double allowed) {
    result.largestError = std::fmax(result.largestError, error);
    if (error > allowed && !result.differs) {
      result.differs = delinearize(at, shape);
      result.allowed = allowed;
    }
  };
  if (!array.isFloat()) {
    for (int64_t i = 0; i < count; ++i)
      if (array.data[i].whole != reference.exact.data[i].whole)
        note(i,
             std::fabs(double(array.data[i].whole) -
                       double(reference.exact.data[i].whole)),
             0);
    return result;
  }
  double eps = std::ldexp(
      1.0,
      1 - int(llvm::cast<mlir::FloatType>(array.type).getFPMantissaWidth()));
  int64_t row = shape.empty() ? 1 : shape.back();
  auto norm = [&](int64_t begin) {
    double squares = 0;
    for (int64_t i = begin; i < begin + row; ++i)
      if (double exact = reference.exact.data[i].real; std::isfinite(exact))
        squares += exact * exact;
    return std::sqrt(squares);
  };
  double insideOps = 0;
  if (array.type.isF64())
    for (int64_t begin = 0; begin < count; begin += row)
      insideOps = std::fmax(insideOps, 4 * eps * norm(begin));
  for (int64_t begin = 0; begin < count; begin += row) {
    double worst = 0;
    for (int64_t i = begin; i < begin + row; ++i) {
      double exact = reference.exact.data[i].real;
      auto include = [&](const NDArray &other, double unit) {
        double error = distance(exact, other.data[i].real);
        if (std::isfinite(error))
          worst = std::fmax(worst, unit * error);
      };
      include(reference.rounded, 1);
      if (array.type.isF64() && reference.inFloat)
        include(*reference.inFloat, 0x1p-29);
    }
    double allowed = 4 * worst + eps * norm(begin) + insideOps +
                     double(devices - 1) * eps * largestAddend;
    for (int64_t i = begin; i < begin + row; ++i)
      note(i, distance(array.data[i].real, reference.exact.data[i].real),
           allowed);
  }
  return result;
}
