//===- Fold.cpp - the arithmetic of reductions ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks of elements are accumulated on the stack, member after member, so the
// order of additions is that of the members whatever the machine does, and the
// result may overwrite a member.
//
//===----------------------------------------------------------------------===//

#include "Exec/Fold.h"
#include "Support/Half.h"

#include <limits>

using namespace tessera;
using layout::Combiner;

Status tessera::canFold(DType dtype, Combiner combiner) {
  if (dtype == DType::F8E4M3 || dtype == DType::F8E5M2)
    return Error{std::string(info(dtype).name) +
                 " is for storage: values of it cannot be combined"};
  if (dtype == DType::I1 && combiner == Combiner::Sum)
    return Error{"a sum of i1 is none: convert to i32 first"};
  return Ok{};
}

namespace {

constexpr int64_t kBlock = 512;

struct Sum {
  template <typename T> static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) // wraps
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                            static_cast<std::make_unsigned_t<T>>(b));
    else
      return a + b;
  }
};
// A NaN wins.
struct Max {
  template <typename T> static T apply(T a, T b) {
    return b > a || b != b ? b : a;
  }
};
struct Min {
  template <typename T> static T apply(T a, T b) {
    return b < a || b != b ? b : a;
  }
};

template <typename Op, typename T, typename Accumulator>
void foldAs(std::span<const std::byte *const> members, int64_t count,
            std::byte *out) {
  Accumulator sums[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t n = std::min(kBlock, count - begin);
    auto block = [&](const std::byte *member) {
      return reinterpret_cast<const T *>(member) + begin;
    };
    const T *first = block(members[0]);
    for (int64_t i = 0; i < n; ++i)
      sums[i] = static_cast<Accumulator>(first[i]);
    for (size_t m = 1; m < members.size(); ++m) {
      const T *next = block(members[m]);
      for (int64_t i = 0; i < n; ++i)
        sums[i] = Op::apply(sums[i], static_cast<Accumulator>(next[i]));
    }
    T *target = reinterpret_cast<T *>(out) + begin;
    for (int64_t i = 0; i < n; ++i)
      target[i] = static_cast<T>(sums[i]);
  }
}

template <typename Op>
void foldWith(DType dtype, std::span<const std::byte *const> members,
              int64_t count, std::byte *out) {
  switch (dtype) {
  case DType::F64:
    return foldAs<Op, double, double>(members, count, out);
  case DType::F32:
    return foldAs<Op, float, float>(members, count, out);
  case DType::BF16:
    return foldAs<Op, BF16, float>(members, count, out);
  case DType::F16:
    return foldAs<Op, F16, float>(members, count, out);
  case DType::I64:
    return foldAs<Op, int64_t, int64_t>(members, count, out);
  case DType::I32:
    return foldAs<Op, int32_t, int32_t>(members, count, out);
  case DType::U32:
    return foldAs<Op, uint32_t, uint32_t>(members, count, out);
  case DType::I8:
    return foldAs<Op, int8_t, int8_t>(members, count, out);
  case DType::U8:
  case DType::I1:
    return foldAs<Op, uint8_t, uint8_t>(members, count, out);
  case DType::F8E4M3:
  case DType::F8E5M2:
    return; // refused by canFold
  }
}

} // namespace

void tessera::fold(DType dtype, Combiner combiner,
                   std::span<const std::byte *const> members, int64_t count,
                   std::byte *out) {
  switch (combiner) {
  case Combiner::Sum:
    return foldWith<Sum>(dtype, members, count, out);
  case Combiner::Max:
    return foldWith<Max>(dtype, members, count, out);
  case Combiner::Min:
    return foldWith<Min>(dtype, members, count, out);
  }
}

void tessera::identityOf(DType dtype, Combiner combiner, std::byte *out) {
  if (combiner == Combiner::Sum) {
    std::memset(out, 0, info(dtype).bytes);
    return;
  }
  const bool max = combiner == Combiner::Max;
  auto store = [&]<typename T>(T lowest, T highest) {
    T value = max ? lowest : highest;
    std::memcpy(out, &value, sizeof value);
  };
  auto limits = [&]<typename T>(T) {
    store(std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max());
  };
  switch (dtype) {
  case DType::I64:
    return limits(int64_t{});
  case DType::I32:
    return limits(int32_t{});
  case DType::U32:
    return limits(uint32_t{});
  case DType::I8:
    return limits(int8_t{});
  case DType::U8:
    return limits(uint8_t{});
  case DType::I1:
    return store(uint8_t{0}, uint8_t{1});
  default: {
    double infinity = max ? -std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::infinity();
    convertElement(&infinity, DType::F64, out, dtype);
  }
  }
}
