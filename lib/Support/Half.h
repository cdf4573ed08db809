//===- Half.h - fast conversion of 16-bit floats --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The same values as convertElement in DType.h, for inner loops.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_HALF_H
#define TESSERA_SUPPORT_HALF_H

#include <bit>
#include <cstdint>

namespace tessera {

struct BF16 {
  uint16_t bits;

  BF16() = default;
  /// To the nearest, ties to even; a NaN stays one.
  explicit BF16(float value) {
    uint32_t word = std::bit_cast<uint32_t>(value);
    bits = value != value ? (word >> 16 & 0x8000) | 0x7fc0
                          : (word + 0x7fff + (word >> 16 & 1)) >> 16;
  }
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

struct F16 {
  uint16_t bits;

  F16() = default;
  /// To the nearest, ties to even; a NaN stays one. Without branches, so that
  /// loops over it become vector code on any processor.
  explicit F16(float value) {
    const uint32_t word = std::bit_cast<uint32_t>(value);
    const uint32_t magnitude = word & 0x7fffffff;
    // Normal: the exponent's bias changes, 13 bits are rounded off.
    const uint32_t normal =
        (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    // Subnormal: adding 0.5 makes the last place of the sum that of a
    // subnormal.
    const uint32_t subnormal =
        std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
        std::bit_cast<uint32_t>(0.5f);
    const uint32_t beyond = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
    const uint32_t finite = magnitude < 0x38800000 ? subnormal : normal;
    bits = (word >> 16 & 0x8000) | (magnitude >= 0x47800000 ? beyond : finite);
  }
  explicit operator float() const {
    // A product by a power of two moves the exponent, subnormals included.
    const uint32_t magnitude = (bits & 0x7fffu) << 13;
    const uint32_t finite =
        std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
    const uint32_t beyond = magnitude | 0x7f800000;
    return std::bit_cast<float>((bits & 0x8000u) << 16 |
                                (magnitude >= 0x0f800000 ? beyond : finite));
  }
};

} // namespace tessera

#endif // TESSERA_SUPPORT_HALF_H
