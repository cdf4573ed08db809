//===- DType.h - the element types ----------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one table of element types and their names elsewhere, and conversion of
// single elements.
// The order is that of `DType` in Module/module.fbs.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_DTYPE_H
#define TESSERA_SUPPORT_DTYPE_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

namespace tessera {

enum class DType : uint8_t {
  F64,
  F32,
  BF16,
  F16,
  I64,
  I32,
  U32,
  I8,
  U8,
  I1, ///< one byte in memory, 0 or 1
  F8E4M3,
  F8E5M2,
};

struct DTypeInfo {
  DType dtype;
  const char *name; ///< as MLIR prints it; `u` for unsigned
  const char *safetensors;
  const char *numpy; ///< array protocol; bf16 and f8 as raw bytes
  uint8_t bytes;
  uint8_t dlpackCode;
  bool isFloat;
  uint8_t exponentBits; ///< of a float
  uint8_t mantissaBits; ///< of a float, stored ones; of an integer its digits
};

inline constexpr DTypeInfo kDTypes[] = {
    {DType::F64, "f64", "F64", "<f8", 8, 2, true, 11, 52},
    {DType::F32, "f32", "F32", "<f4", 4, 2, true, 8, 23},
    {DType::BF16, "bf16", "BF16", "<V2", 2, 4, true, 8, 7},
    {DType::F16, "f16", "F16", "<f2", 2, 2, true, 5, 10},
    {DType::I64, "i64", "I64", "<i8", 8, 0, false, 0, 63},
    {DType::I32, "i32", "I32", "<i4", 4, 0, false, 0, 31},
    {DType::U32, "u32", "U32", "<u4", 4, 1, false, 0, 32},
    {DType::I8, "i8", "I8", "|i1", 1, 0, false, 0, 7},
    {DType::U8, "u8", "U8", "|u1", 1, 1, false, 0, 8},
    {DType::I1, "i1", "BOOL", "|b1", 1, 6, false, 0, 1},
    {DType::F8E4M3, "f8E4M3FN", "F8_E4M3", "|V1", 1, 10, true, 4, 3},
    {DType::F8E5M2, "f8E5M2", "F8_E5M2", "|V1", 1, 12, true, 5, 2},
};

inline const DTypeInfo &info(DType dtype) {
  return kDTypes[static_cast<size_t>(dtype)];
}

inline std::optional<DType> dtypeFromName(std::string_view name) {
  for (const DTypeInfo &type : kDTypes)
    if (name == type.name)
      return type.dtype;
  return std::nullopt;
}

inline std::optional<DType> dtypeFromSafetensors(std::string_view name) {
  for (const DTypeInfo &type : kDTypes)
    if (name == type.safetensors)
      return type.dtype;
  return std::nullopt;
}

/// The bits of `value` as a small float, to the nearest, ties to even. Beyond
/// the largest value: infinity, or NaN where there is none (f8E4M3FN).
inline uint32_t encodeSmallFloat(double value, DType dtype) {
  const DTypeInfo &type = info(dtype);
  const int m = type.mantissaBits, e = type.exponentBits;
  const bool finiteOnly = dtype == DType::F8E4M3;
  const uint32_t sign = std::signbit(value) ? 1u << (e + m) : 0;
  const uint32_t top = ((1u << e) - 1) << m; // infinity, where there is one
  const uint32_t nan = finiteOnly ? top | ((1u << m) - 1) : top | 1u << (m - 1);
  if (std::isnan(value))
    return sign | nan;
  const uint32_t beyond = finiteOnly ? nan : top;
  if (std::isinf(value))
    return sign | beyond;
  // The value in units of the last place at its exponent (the smallest normal
  // one for subnormals); rounding up into the next binade carries by itself.
  const int bias = (1 << (e - 1)) - 1;
  const int exponent =
      value == 0 ? 1 - bias : std::max(std::ilogb(value), 1 - bias);
  const double units =
      std::nearbyint(std::scalbn(std::fabs(value), m - exponent));
  const double bits =
      std::scalbn(static_cast<double>(exponent + bias - 1), m) + units;
  return sign | (bits >= beyond ? beyond : static_cast<uint32_t>(bits));
}

inline double decodeSmallFloat(uint32_t bits, DType dtype) {
  const DTypeInfo &type = info(dtype);
  const int m = type.mantissaBits, e = type.exponentBits;
  const uint32_t mantissa = bits & ((1u << m) - 1);
  const uint32_t exponent = bits >> m & ((1u << e) - 1);
  const uint32_t last = (1u << e) - 1;
  const int bias = (1 << (e - 1)) - 1;
  double value;
  if (dtype == DType::F8E4M3 && exponent == last && mantissa == (1u << m) - 1)
    value = std::numeric_limits<double>::quiet_NaN();
  else if (dtype != DType::F8E4M3 && exponent == last)
    value = mantissa ? std::numeric_limits<double>::quiet_NaN()
                     : std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    value = std::scalbn(static_cast<double>(mantissa), 1 - bias - m);
  else
    value = std::scalbn(static_cast<double>(mantissa | 1u << m),
                        static_cast<int>(exponent) - bias - m);
  return bits >> (e + m) & 1 ? -value : value;
}

/// Converts one element. False when an integer target cannot hold the value.
inline bool convertElement(const void *from, DType fromType, void *to,
                           DType toType) {
  auto load = [&]<typename T>(T) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  };
  auto store = [&]<typename T>(T value) {
    std::memcpy(to, &value, sizeof value);
    return true;
  };
  double real = 0;
  int64_t whole = 0;
  const bool isFloat = info(fromType).isFloat;
  switch (fromType) {
  case DType::F64:
    real = load(double{});
    break;
  case DType::F32:
    real = load(float{});
    break;
  case DType::BF16:
  case DType::F16:
    real = decodeSmallFloat(load(uint16_t{}), fromType);
    break;
  case DType::F8E4M3:
  case DType::F8E5M2:
    real = decodeSmallFloat(load(uint8_t{}), fromType);
    break;
  case DType::I64:
    whole = load(int64_t{});
    break;
  case DType::I32:
    whole = load(int32_t{});
    break;
  case DType::U32:
    whole = load(uint32_t{});
    break;
  case DType::I8:
    whole = load(int8_t{});
    break;
  case DType::U8:
  case DType::I1:
    whole = load(uint8_t{});
    break;
  }
  if (info(toType).isFloat) {
    if (!isFloat)
      real = static_cast<double>(whole);
    switch (toType) {
    case DType::F64:
      return store(real);
    case DType::F32:
      return store(static_cast<float>(real));
    case DType::BF16:
    case DType::F16:
      return store(static_cast<uint16_t>(encodeSmallFloat(real, toType)));
    default:
      return store(static_cast<uint8_t>(encodeSmallFloat(real, toType)));
    }
  }
  if (isFloat) {
    if (!(real >= -0x1p63 && real < 0x1p63) || real != std::trunc(real))
      return false;
    whole = static_cast<int64_t>(real);
  }
  auto narrow = [&]<typename T>(T) {
    if (whole < static_cast<int64_t>(std::numeric_limits<T>::min()) ||
        whole > static_cast<int64_t>(std::numeric_limits<T>::max()))
      return false;
    return store(static_cast<T>(whole));
  };
  switch (toType) {
  case DType::I64:
    return store(whole);
  case DType::I32:
    return narrow(int32_t{});
  case DType::U32:
    return narrow(uint32_t{});
  case DType::I8:
    return narrow(int8_t{});
  case DType::U8:
    return narrow(uint8_t{});
  default:
    return (whole == 0 || whole == 1) && narrow(uint8_t{});
  }
}

} // namespace tessera

#endif // TESSERA_SUPPORT_DTYPE_H
