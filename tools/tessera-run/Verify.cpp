//===- Verify.cpp - results beside those of the CPU -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For an element of an output, with `eps` of the output's type, of p ranks, in
// a program that sums up to n values:
//
//   allowed = 2 (4 moved / 2 + (eps + accumulator's eps sqrt(n)) largest of row
//                + (p - 1) eps largest of the output)
//
// `moved`: the largest change in the row, or the usual one in the output, when
// the inputs move by a unit in the last place; a rounding error is half of that
// at most. Twice, as neither result is exact. A row is what lies within
// the last dimensions, enough of them for kRow elements. Ranks exchange what
// they know of rows, so that the bound does not depend on the sharding.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "Elements.h"
#include "Report.h"
#include "Support/Names.h"
#include "Support/Try.h"

#include "Module/Module.h"
#include "Support/DType.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace tessera;
using namespace tessera::run;

/// Of fewer elements no maximum is typical.
static constexpr int64_t kRow = 64;
/// What GPUs take for 0.
static constexpr double kNothing = std::numeric_limits<float>::min();
/// The project's tolerance: times what a program is off by itself.
static constexpr double kOwn = 4;
/// What a rounding error is of a unit in the last place.
static constexpr double kRounding = 0.5;

/// From 1 to the next number; 0 for integers.
static double epsilonOf(DType dtype) {
  return info(dtype).isFloat ? std::ldexp(1.0, -info(dtype).mantissaBits) : 0;
}

//===----------------------------------------------------------------------===//
// The other program
//===----------------------------------------------------------------------===//

static const char *kindText(tessera_port_kind kind) {
  return kind == TESSERA_INPUT    ? "input"
         : kind == TESSERA_OUTPUT ? "output"
                                  : "state";
}

/// By port of `mine`, the number of the same port of `other`.
static Result<std::vector<size_t>> matchPorts(const std::vector<Port> &mine,
                                              const std::vector<Port> &other) {
  std::vector<size_t> matches;
  std::vector<std::string> names;
  for (const Port &port : other)
    names.push_back(port.name());
  for (const Port &port : mine) {
    auto found = std::find(names.begin(), names.end(), port.name());
    const tessera_port &here = port.description;
    const std::string what = kindText(here.kind) + (" '" + port.name() + "'");
    if (found == names.end())
      return Error{"it has no " + what + suggestName(port.name(), names)};
    matches.push_back(found - names.begin());
    const tessera_port &there = other[matches.back()].description;
    if (here.kind != there.kind)
      return Error{"'" + port.name() + "' is an " + kindText(there.kind) +
                   " of it; here it is an " + kindText(here.kind)};
    auto type = [](const tessera_port &port) {
      return std::string(info(static_cast<DType>(port.dtype)).name) + " " +
             port.shape_text;
    };
    if (type(here) != type(there))
      return Error{what + " is " + type(there) + " in it; here it is " +
                   type(here)};
    // Its blocks, and on which devices they are.
    auto places = [](const tessera_port &port) {
      const std::string mesh = port.mesh;
      const size_t devices = mesh.find("devices");
      return port.view +
             (devices == mesh.npos ? "" : " on <" + mesh.substr(devices));
    };
    if (places(here) != places(there))
      return Error{what + " lies as " + places(there) +
                   " in it; here it lies as " + places(here) +
                   ": compile both for the same mesh"};
  }
  for (size_t i = 0; i < other.size(); ++i)
    if (std::find(matches.begin(), matches.end(), i) == matches.end())
      return Error{std::string("it has an ") +
                   kindText(other[i].description.kind) + " '" +
                   other[i].name() + "', which this one has not"};
  return matches;
}

/// Moves each floating input by about a unit in the last place of a type with
/// `epsilon`; a value that several ranks have by as much on each of them.
static void moveInputs(Session &cpu, double epsilon, int rank) {
  for (size_t i = 0; i < cpu.ports.size(); ++i) {
    Port &port = cpu.ports[i];
    const DType dtype = port.tensor.dtype;
    if (!port.isRead() || !info(dtype).isFloat)
      continue;
    char *data = static_cast<char *>(port.buffer.get());
    Elements(port.tensor, rank).forEach([&](int64_t local, int64_t global) {
      // Its sign is a bit of a hash of where it is.
      uint64_t hash = (uint64_t(global) + 1 + i) * 0x9e3779b97f4a7c15;
      hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93;
      const double by = (hash >> 63 ? 0.75 : -0.75) * epsilon;
      const double moved = valueOf(data, dtype, local) * (1 + by);
      convertElement(&moved, DType::F64, data + local * info(dtype).bytes,
                     dtype);
    });
  }
}

//===----------------------------------------------------------------------===//
// Comparing
//===----------------------------------------------------------------------===//

namespace {

/// What bounds depend on.
struct Precision {
  DType coarsest;     ///< of all values of the program, of floating types
  double accumulator; ///< the epsilon of sums
  double longest;     ///< values in a sum, at most

  static Result<Precision> of(const std::string &path,
                              const std::vector<Port> &ports);
};

/// What is known of the rows of an output.
class Rows {
public:
  Rows(const layout::Shape &shape, int64_t count) {
    for (size_t d = shape.size(); d-- > 0 && length < kRow;)
      length *= std::max<int64_t>(shape[d], 1);
    values.resize(count / length);
  }
  struct Row {
    double largest = 0, moved = 0;
    double held = 0; ///< elements, on all ranks: some hold the same ones
  };
  Row &operator[](int64_t place) { return values[place / length]; }

  /// All ranks: what each knows, together.
  Status merge(Team &team) {
    constexpr size_t kAtOnce = 1 << 16;
    for (size_t begin = 0; begin < values.size(); begin += kAtOnce) {
      const size_t count = std::min(kAtOnce, values.size() - begin);
      std::vector<Row> all(count * team.size());
      TSR_TRY(team.allGather(&values[begin], all.data(), count * sizeof(Row)));
      std::fill_n(&values[begin], count, Row());
      for (size_t i = 0; i < all.size(); ++i) {
        Row &row = values[begin + i % count];
        row.largest = std::max(row.largest, all[i].largest);
        row.moved = std::max(row.moved, all[i].moved);
        row.held += all[i].held;
      }
    }
    double squares = 0;
    for (const Row &row : values) {
      most = std::max(most, row.largest);
      squares += row.moved * row.moved;
    }
    usual = values.empty() ? 0 : std::sqrt(squares / double(values.size()));
    return Ok{};
  }

  int64_t length = 1;
  double most = 0, usual = 0; ///< of all: the largest; how far rows move

private:
  std::vector<Row> values;
};

} // namespace

Result<Precision> Precision::of(const std::string &path,
                                const std::vector<Port> &ports) {
  Result<ModuleReader> module = ModuleReader::open(path);
  if (!module)
    return module.error();
  Precision result = {DType::F64, epsilonOf(DType::F64), 1};
  for (const auto &tensor : module->plan().tensors) {
    const DType dtype = static_cast<DType>(tensor->dtype);
    if (epsilonOf(dtype) > epsilonOf(result.coarsest))
      result.coarsest = dtype;
  }
  if (result.coarsest != DType::F64)
    result.accumulator = epsilonOf(DType::F32);
  for (const Port &port : ports) {
    double rows = 1;
    for (size_t d = 0; d + 1 < port.tensor.shape.size(); ++d)
      rows *= double(port.tensor.shape[d]);
    const double last =
        port.tensor.shape.empty() ? 1 : double(port.tensor.shape.back());
    result.longest = std::max({result.longest, rows, last});
  }
  return result;
}

/// `moved`: what the CPU leaves when the inputs have moved.
static Result<Difference> compare(const Port &port, const void *mine,
                                  const void *reference, const void *moved,
                                  const Precision &precision, Team &team) {
  const DType dtype = port.tensor.dtype;
  const bool integer = !info(dtype).isFloat;
  const Elements elements(port.tensor, team.rank());
  Difference result = {port.name(), dtype, port.tensor.shape, {}, {}, {}};
  result.elements = elements.globalCount();
  if (result.elements == 0)
    return result;

  Rows rows(port.tensor.shape, result.elements);
  elements.forEach([&](int64_t local, int64_t global) {
    Rows::Row &row = rows[global];
    ++row.held;
    const double value = valueOf(reference, dtype, local);
    if (!std::isfinite(value))
      return;
    row.largest = std::max(row.largest, std::fabs(value));
    const double change = std::fabs(value - valueOf(moved, dtype, local));
    if (std::isfinite(change))
      row.moved = std::max(row.moved, change);
  });
  TSR_TRY(rows.merge(team));

  const double epsilon = epsilonOf(dtype);
  const double sums =
      integer ? 0 : precision.accumulator * std::sqrt(precision.longest);
  elements.forEach([&](int64_t local, int64_t global) {
    const double a = valueOf(mine, dtype, local);
    const double b = valueOf(reference, dtype, local);
    const bool same = integer
                          ? !std::memcmp(static_cast<const char *>(mine) +
                                             local * info(dtype).bytes,
                                         static_cast<const char *>(reference) +
                                             local * info(dtype).bytes,
                                         info(dtype).bytes)
                          : a == b || (std::isnan(a) && std::isnan(b));
    if (same)
      return;
    const Rows::Row &row = rows[global];
    const double allowed =
        integer ? 0
                : 2 * (kOwn * kRounding * std::max(row.moved, rows.usual) +
                       (epsilon + sums) * row.largest +
                       (team.size() - 1) * epsilon * rows.most) +
                      kNothing;
    // NaN or infinity on one side only is too far in every respect.
    const double infinite = std::numeric_limits<double>::infinity();
    const double difference = std::fabs(a - b);
    Worst worst = {std::isfinite(difference) ? difference : infinite, global, a,
                   b, allowed};
    result.largest.meet(worst);
    worst.value = worst.value < infinite
                      ? difference / std::max(std::fabs(a), std::fabs(b))
                      : infinite;
    result.relative.meet(worst);
    worst.value =
        allowed > 0 && worst.value < infinite ? difference / allowed : infinite;
    result.share.meet(worst);
    if (worst.value > 1)
      result.wrong += double(rows.length) / row.held;
  });

  struct Found {
    Worst largest, relative, share;
    double wrong;
  };
  Result<std::vector<Found>> all = team.allGather(
      Found{result.largest, result.relative, result.share, result.wrong});
  if (!all)
    return all.error();
  result.wrong = 0;
  for (const Found &found : *all) {
    result.largest.meet(found.largest);
    result.relative.meet(found.relative);
    result.share.meet(found.share);
    result.wrong += found.wrong;
  }
  return result;
}

static Error failed(const Options &options, const std::string &why) {
  return Error{"--verify '" + options.verify + "': " + why};
}

Result<std::unique_ptr<Reference>>
run::openReference(const Session &session, const Options &options, Team &team,
                   tessera_threads *threads) {
  std::unique_ptr<Reference> reference(
      new Reference{Session(options, team), {}});
  Session &cpu = reference->cpu;
  if (Status status = cpu.load(options.verify, kHostBackend, threads); !status)
    return failed(options, status.message());
  Result<std::vector<size_t>> matches = matchPorts(session.ports, cpu.ports);
  if (!matches)
    return failed(options, "it is another program: " + matches.message());
  reference->ports = std::move(*matches);
  return reference;
}

Result<Comparison> run::compareWithCPU(const Session &session,
                                       Reference &reference,
                                       const Options &options, Team &team) {
  Session &cpu = reference.cpu;
  TSR_TRY(cpu.readInputs());
  Result<Precision> precision = Precision::of(options.verify, cpu.ports);
  if (!precision)
    return precision.error();

  const double epsilon = epsilonOf(precision->coarsest);
  moveInputs(cpu, epsilon, team.rank());
  if (Status status = cpu.execute(); !status)
    return failed(options, status.message());
  std::vector<HostBuffer> moved(cpu.ports.size());
  for (size_t i = 0; i < cpu.ports.size(); ++i) {
    if (!cpu.ports[i].isWritten())
      continue;
    Result<HostBuffer> copy = cpu.fetch(cpu.ports[i]);
    if (!copy)
      return copy.error();
    moved[i] = std::move(*copy);
  }
  TSR_TRY(cpu.fillPorts());
  if (Status status = cpu.execute(); !status)
    return failed(options, status.message());

  Comparison result;
  char rule[512];
  const char *type = info(precision->coarsest).name;
  snprintf(rule, sizeof rule,
           "%g x what the row moves by when each input moves by a unit in the "
           "last place of %s, + 2 x (eps + %.2g) x the largest of the row, + "
           "%d x eps x the largest of the output; eps is the type's",
           2 * kOwn * kRounding, type,
           precision->accumulator * std::sqrt(precision->longest),
           2 * (team.size() - 1));
  result.rule = rule;
  for (size_t i = 0; i < session.ports.size(); ++i) {
    const Port &port = session.ports[i];
    if (!port.isWritten())
      continue;
    Result<HostBuffer> mine = session.fetch(port);
    if (!mine)
      return mine.error();
    const size_t other = reference.ports[i];
    Result<Difference> difference =
        compare(port, mine->get(), cpu.ports[other].buffer.get(),
                moved[other].get(), *precision, team);
    if (!difference)
      return difference.error();
    result.outputs.push_back(std::move(*difference));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// What people see
//===----------------------------------------------------------------------===//

static std::string number(double value, const char *format = "%.3g") {
  char text[64];
  snprintf(text, sizeof text, format, value);
  return text;
}

std::string Comparison::text() const {
  if (rule.empty())
    return "";
  std::vector<std::vector<std::string>> rows = {
      {"output", "type", "difference", "at", "relative", "at", "of allowed",
       "which is", "at"}};
  for (const Difference &each : outputs) {
    auto at = [&](const Worst &worst) {
      return worst.place < 0 ? "-" : indexText(worst.place, each.shape);
    };
    rows.push_back({each.name, info(each.dtype).name,
                    number(each.largest.value), at(each.largest),
                    number(each.relative.value), at(each.relative),
                    number(each.share.value),
                    each.share.place < 0 ? "-" : number(each.share.allowed),
                    at(each.share)});
  }
  return "largest differences from the CPU's results\n" +
         table(rows,
               {false, false, true, false, true, false, true, true, false}) +
         "  allowed is " + rule + "\n";
}

Status Comparison::check() const {
  for (const Difference &each : outputs)
    if (each.share.value > 1) {
      const Worst &worst = each.share;
      return Error{"'" + each.name + "' differs from cpu at " +
                   indexText(worst.place, each.shape) + ": it is " +
                   number(worst.mine, "%.9g") + ", cpu has " +
                   number(worst.reference, "%.9g") + ", which may differ by " +
                   number(worst.allowed) + "; " + number(each.wrong, "%.0f") +
                   " of " + std::to_string(each.elements) +
                   " elements are too far"};
    }
  return Ok{};
}
