//===- Verify.cpp - results beside those of the CPU -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Neither result is exact, so what the project's tolerance allows around the
// exact one applies only as far as its floor: a multiple of the rounding error
// of the program's coarsest type, of the norm of a row. The program's own error
// is not known here. Integers must be equal.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"

#include "Support/DType.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace tessera;
using namespace tessera::run;

/// The distance of 1 to the next number; 0 for integers.
static double epsilonOf(DType dtype) {
  switch (dtype) {
  case DType::F64:
    return std::ldexp(1.0, -52);
  case DType::F32:
    return std::ldexp(1.0, -23);
  case DType::F16:
    return std::ldexp(1.0, -10);
  case DType::BF16:
    return std::ldexp(1.0, -7);
  case DType::F8E4M3:
    return std::ldexp(1.0, -3);
  case DType::F8E5M2:
    return std::ldexp(1.0, -2);
  default:
    return 0;
  }
}

/// Of a row's norm. Sums in f32 lose some bits on the way, in another order on
/// each side.
static double boundFor(const std::vector<Port> &ports, DType dtype) {
  if (epsilonOf(dtype) == 0)
    return 0;
  double coarsest = 0;
  for (const Port &port : ports)
    coarsest = std::max(coarsest, epsilonOf(port.tensor.dtype));
  return 16 * (coarsest > epsilonOf(DType::F64)
                   ? std::max(coarsest, std::ldexp(1.0, -18))
                   : coarsest);
}

namespace {

/// The elements of a port's local part, in memory order, as numbers.
class Elements {
public:
  Elements(const Port &port, const void *data)
      : dtype(port.tensor.dtype), bytes(info(dtype).bytes),
        data(static_cast<const char *>(data)) {}
  double operator[](size_t i) const {
    double value;
    convertElement(data + i * bytes, dtype, &value, DType::F64);
    return value;
  }

private:
  DType dtype;
  size_t bytes;
  const char *data;
};

} // namespace

static Difference compare(const Port &port, const void *mine,
                          const void *reference, double bound) {
  Difference result{port.name(), 0, 0, bound, 0};
  const size_t count = port.bytes / info(port.tensor.dtype).bytes;
  const size_t row = std::max<size_t>(port.row, 1);
  Elements ours(port, mine), theirs(port, reference);
  // A row that is almost nothing is measured by what rows usually are.
  double all = 0;
  for (size_t i = 0; i < count; ++i)
    if (std::isfinite(theirs[i]))
      all += theirs[i] * theirs[i];
  for (size_t begin = 0; begin < count; begin += row) {
    const size_t end = std::min(begin + row, count);
    double squares = 0, errors = 0;
    for (size_t i = begin; i < end; ++i) {
      const double a = ours[i], b = theirs[i];
      if (a == b || (std::isnan(a) && std::isnan(b))) {
        if (std::isfinite(b))
          squares += b * b;
        continue;
      }
      double error = std::fabs(a - b);
      if (!std::isfinite(error))
        error = std::numeric_limits<double>::infinity();
      result.largest = std::max(result.largest, error);
      errors += error * error;
      if (std::isfinite(b))
        squares += b * b;
    }
    if (errors == 0)
      continue;
    const double usual = 1e-3 * all * double(end - begin) / double(count);
    const double norm = std::sqrt(std::max(squares, usual));
    const double relative = norm > 0 ? std::sqrt(errors) / norm
                                     : std::numeric_limits<double>::infinity();
    result.row = std::max(result.row, relative);
    if (relative > bound)
      result.wrong += double(end - begin);
  }
  return result;
}

Result<std::vector<Difference>> run::compareWithCPU(const Session &session,
                                                    const Options &options,
                                                    Team &team,
                                                    tessera_threads *threads) {
  Session cpu(options, team);
  if (Status status = cpu.load(options.verify, "cpu", threads); !status)
    return status.error();
  const std::string another =
      "--verify '" + options.verify + "': it is another program: its ";
  if (cpu.ports.size() != session.ports.size())
    return Error{another + "number of ports differs"};
  for (size_t i = 0; i < cpu.ports.size(); ++i) {
    const tessera_port &mine = session.ports[i].description;
    const tessera_port &other = cpu.ports[i].description;
    if (std::strcmp(mine.name, other.name) || mine.kind != other.kind ||
        mine.dtype != other.dtype ||
        std::strcmp(mine.shape_text, other.shape_text) ||
        std::strcmp(mine.view, other.view))
      return Error{another + "port '" + other.name + "' differs"};
  }
  if (Status status = cpu.readInputs(); !status)
    return status.error();
  if (Status status = cpu.execute(); !status)
    return status.error();
  std::vector<Difference> differences;
  for (size_t i = 0; i < cpu.ports.size(); ++i) {
    const Port &port = session.ports[i];
    if (!port.isWritten())
      continue;
    Result<HostBuffer> mine = session.fetch(port);
    if (!mine)
      return mine.error();
    differences.push_back(compare(port, mine->get(), cpu.ports[i].buffer.get(),
                                  boundFor(session.ports, port.tensor.dtype)));
  }
  return differences;
}
