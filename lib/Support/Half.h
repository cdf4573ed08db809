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
  explicit F16(float value) {
    bits = std::bit_cast<uint16_t>(static_cast<_Float16>(value));
  }
  explicit operator float() const {
    return static_cast<float>(std::bit_cast<_Float16>(bits));
  }
};

} // namespace tessera

#endif // TESSERA_SUPPORT_HALF_H
