//===- Measure.cpp - the fastest algorithm of a matrix product ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The operands are not the binding's: nobody's memory is written before a run,
// and their bits are random numbers. What a binding's memory holds before its
// first run, often zeros, takes less power, and then other algorithms win.
//
// Candidates take turns, round after round, so that a GPU that slows down does
// so for all of them; between rounds it rests. Each is called once before it is
// timed: the host is then ahead of the GPU, and the GPU is in the state that
// this candidate leaves it in. Operands stay in the L2 cache as far as they
// fit, for all of them alike.
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Blas/Measure.h"
#include "Exec/Backend.h"
#include "Support/Clock.h"
#include "Support/Try.h"

#include <algorithm>
#include <cmath>
#include <ctime>

using namespace tessera;
using namespace tessera::cuda;

namespace {

constexpr int kCandidates = 16;
constexpr int kRounds = 7;
/// Slower than the best by this factor in the first look: out.
constexpr double kHopeless = 1.3;
/// What a winner takes of the heuristic's time, at most.
constexpr double kBetter = 0.99;
/// What one candidate computes in a round, in microseconds, and in how many
/// calls at most.
constexpr double kTurn = 300;
constexpr int kMaxRepeats = 30;
constexpr double kLongestRest = 0.02; ///< seconds
/// Bytes after which random numbers come again: a prime number of f64, so that
/// no two rows of a matrix are the same.
constexpr int64_t kPeriod = 8 * 131071;

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// Of either sign, from 1/16 to 1: sums are finite in each type.
std::vector<std::byte> randomNumbers(DType dtype, int64_t bytes) {
  const DTypeInfo &type = info(dtype);
  const int64_t oneBiased = (int64_t(1) << (type.exponentBits - 1)) - 1;
  std::vector<std::byte> result(bytes);
  uint64_t state = 0x9e3779b97f4a7c15;
  for (int64_t at = 0; at + type.bytes <= bytes; at += type.bytes) {
    // xorshift64
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    const uint64_t sign = state >> 63;
    const uint64_t exponent = oneBiased - 1 - (state >> 61 & 3);
    const uint64_t mantissa = state & ((uint64_t(1) << type.mantissaBits) - 1);
    const uint64_t bits =
        ((sign << type.exponentBits | exponent) << type.mantissaBits) |
        mantissa;
    std::memcpy(&result[at], &bits, type.bytes); // little-endian, as the GPU
  }
  return result;
}

Status fill(const Device &device, std::byte *to, DType dtype, int64_t bytes) {
  int64_t done = std::min(bytes, kPeriod);
  TSR_TRY(device.copy(to, randomNumbers(dtype, done).data(), done));
  const auto address = reinterpret_cast<DevicePointer>(to);
  while (done < bytes) {
    const int64_t more = std::min(done, bytes - done);
    TSR_TRY(device.check(device.driver().memcpyDtoDAsync(
                             address + done, address, more, device.stream()),
                         "fill an operand"));
    done += more;
  }
  return Ok{};
}

/// What one call reads or writes of each operand, in bytes.
std::array<int64_t, Products::Count> operandBytes(const Products &products) {
  const MatrixProduct &shape = products.product;
  std::array<int64_t, Products::Count> bytes = {};
  auto matrix = [&](int t, const MatrixProduct::Matrix &matrix, int64_t rows,
                    int64_t columns) {
    if (matrix.transposed)
      std::swap(rows, columns);
    bytes[t] = (rows + (columns - 1) * matrix.leading +
                (shape.batch - 1) * matrix.batchStride) *
               info(products.dtypes[t]).bytes;
  };
  matrix(shape.swapped ? Products::B : Products::A, shape.x, shape.m, shape.k);
  matrix(shape.swapped ? Products::A : Products::B, shape.y, shape.k, shape.n);
  matrix(Products::C, shape.d, shape.m, shape.n);
  const int64_t element = info(products.dtypes[Products::C]).bytes;
  if (products.epilogue.bias)
    bytes[Products::Bias] = shape.m * element;
  if (products.epilogue.aux)
    bytes[Products::Aux] = shape.n * products.auxLeading * element;
  bytes[Products::Sums] = products.numSums * element;
  if (products.epilogue.addend)
    bytes[Products::Addend] = bytes[Products::C];
  return bytes;
}

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

struct Candidate {
  blas::Algorithm algorithm;
  Event begin = nullptr, end = nullptr;
  std::vector<double> times{}; ///< microseconds of a call, one a round
  bool refused = false;        ///< proposed, but cannot be run

  double median() {
    std::nth_element(times.begin(), times.begin() + times.size() / 2,
                     times.end());
    return times[times.size() / 2];
  }
};

class Race {
public:
  Race(const Device &device, Blas::Calls &calls)
      : device(device), driver(device.driver()), calls(calls) {}
  ~Race() {
    driver.streamSynchronize(device.stream());
    for (Candidate &each : candidates)
      drop(each);
  }

  Result<Algorithms::Entry> run(std::span<const blas::Algorithm> algorithms) {
    for (const blas::Algorithm &algorithm : algorithms) {
      candidates.push_back({algorithm});
      for (Event *event : {&candidates.back().begin, &candidates.back().end})
        TSR_TRY(device.check(driver.eventCreate(event, kEventTimed),
                             "make an event"));
    }
    TSR_TRY(round(1));
    double best = candidates[0].times[0];
    for (Candidate &each : candidates)
      best = std::min(best, each.times[0]);
    keep([&](const Candidate &each) {
      return each.times[0] <= kHopeless * best;
    });
    for (Candidate &each : candidates)
      each.times.clear();
    const int repeats = static_cast<int>(
        std::clamp(std::ceil(kTurn / best), 1.0, double(kMaxRepeats)));
    for (int i = 0; i < kRounds; ++i)
      TSR_TRY(round(repeats));

    const double heuristic = candidates[0].median();
    Algorithms::Entry winner{candidates[0].algorithm, heuristic, heuristic};
    for (Candidate &each : candidates)
      if (double time = each.median();
          time < kBetter * heuristic && time < winner.microseconds) {
        winner.algorithm = each.algorithm;
        winner.microseconds = time;
      }
    return winner;
  }

private:
  void drop(Candidate &each) {
    for (Event event : {each.begin, each.end})
      if (event)
        driver.eventDestroy(event);
  }
  /// The first, and those that are good.
  template <typename Good> void keep(Good good) {
    size_t kept = 1;
    for (size_t i = 1; i < candidates.size(); ++i)
      if (good(candidates[i]))
        std::swap(candidates[kept++], candidates[i]);
    for (; candidates.size() > kept; candidates.pop_back())
      drop(candidates.back());
  }

  Status record(Event event) {
    return device.check(driver.eventRecord(event, device.stream()),
                        "record an event");
  }

  Status round(int repeats) {
    const double began = now();
    for (Candidate &each : candidates) {
      calls.use(each.algorithm);
      Status status = calls.run(device.stream());
      if (status)
        status = record(each.begin);
      for (int i = 0; status && i < repeats; ++i)
        status = calls.run(device.stream());
      if (status)
        status = record(each.end);
      if (!status && &each == &candidates[0])
        return status;
      each.refused = !status;
    }
    TSR_TRY(device.check(driver.streamSynchronize(device.stream()),
                         "measure a matrix product"));
    keep([](const Candidate &each) { return !each.refused; });
    for (Candidate &each : candidates) {
      float milliseconds = 0;
      TSR_TRY(device.check(
          driver.eventElapsedTime(&milliseconds, each.begin, each.end),
          "read the time of a matrix product"));
      each.times.push_back(1e3 * milliseconds / repeats);
    }
    const double rest = std::min(now() - began, kLongestRest);
    timespec pause{0, static_cast<long>(1e9 * rest)};
    nanosleep(&pause, nullptr);
    return Ok{};
  }

  const Device &device;
  const Driver &driver;
  Blas::Calls &calls;
  std::vector<Candidate> candidates; ///< first what the heuristic chooses
};

} // namespace

//===----------------------------------------------------------------------===//
// Measuring
//===----------------------------------------------------------------------===//

Outcome<Algorithms::Entry> tessera::cuda::measure(const Blas &blas,
                                                  const Blas::Calls &calls,
                                                  const Device &device,
                                                  Backend &backend) {
  auto fail = [](const std::string &message) {
    return Failure{TESSERA_INTERNAL, message};
  };
  Result<std::vector<blas::Algorithm>> algorithms =
      calls.candidates(kCandidates);
  if (!algorithms)
    return fail(algorithms.message());

  // One of the calls is enough. Each address is as much aligned as theirs.
  Products products = calls.products();
  products.calls = {{0, 0, 0}};
  const auto bytes = operandBytes(products);
  int64_t total = Blas::kWorkspace, offsets[Products::Count] = {};
  for (int t = 0; t < Products::Count; ++t) {
    if (bytes[t] == 0)
      continue;
    offsets[t] = total + calls.alignment(t) % Blas::kAlignment;
    total = offsets[t] + bytes[t];
    total += -total & (Blas::kAlignment - 1);
  }
  // The caller's allocator aligns to less.
  const size_t size = total + Blas::kAlignment;
  Result<std::byte *> taken = backend.allocate(MemoryKind::Local, size);
  if (!taken)
    return Failure{TESSERA_OUT_OF_MEMORY, taken.message()};
  Block block(backend, MemoryKind::Local, *taken, size);
  std::byte *base = block.data() + (-reinterpret_cast<uintptr_t>(block.data()) &
                                    (Blas::kAlignment - 1));

  for (int t = 0; t < Products::Count; ++t) {
    if (products.isWritten(t))
      continue;
    const DType dtype = products.dtypes[std::min<int>(t, Products::C)];
    if (Status status = fill(device, base + offsets[t], dtype, bytes[t]);
        !status)
      return fail(status.message());
  }
  auto at = [&](int t) { return bytes[t] ? base + offsets[t] : nullptr; };
  Result<std::unique_ptr<Blas::Calls>> own =
      blas.prepare(products, {at(Products::A), at(Products::B), at(Products::C),
                              at(Products::Bias), at(Products::Aux),
                              at(Products::Sums), at(Products::Addend), base});
  if (!own)
    return fail(own.message());
  Result<Algorithms::Entry> winner = Race(device, **own).run(*algorithms);
  if (!winner)
    return fail(winner.message());
  return *winner;
}
