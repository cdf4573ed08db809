//===- DTypeTest.cpp - element types and conversion -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The small floats are compared with the compiler's own for all bit patterns,
// and the 8-bit ones with a search for the nearest value.
//
//===----------------------------------------------------------------------===//

#include "Support/DType.h"

#include <bit>
#include <gtest/gtest.h>

using namespace tessera;

namespace {

TEST(DType, TableIsInOrderAndNamesAreUnique) {
  for (size_t i = 0; i < std::size(kDTypes); ++i) {
    EXPECT_EQ(static_cast<size_t>(kDTypes[i].dtype), i);
    EXPECT_EQ(dtypeFromName(kDTypes[i].name), kDTypes[i].dtype);
    EXPECT_EQ(dtypeFromSafetensors(kDTypes[i].safetensors), kDTypes[i].dtype);
  }
  EXPECT_EQ(dtypeFromName("f12"), std::nullopt);
}

TEST(DType, DecodesF16AndBF16AsTheCompilerDoes) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    uint16_t half = static_cast<uint16_t>(bits);
    double f16 = static_cast<double>(std::bit_cast<_Float16>(half));
    double bf16 = static_cast<double>(std::bit_cast<float>(bits << 16));
    double ours16 = decodeSmallFloat(bits, DType::F16);
    double oursB16 = decodeSmallFloat(bits, DType::BF16);
    ASSERT_EQ(std::isnan(f16), std::isnan(ours16)) << bits;
    ASSERT_EQ(std::isnan(bf16), std::isnan(oursB16)) << bits;
    if (!std::isnan(f16)) {
      ASSERT_EQ(f16, ours16) << bits;
      ASSERT_EQ(encodeSmallFloat(f16, DType::F16), bits);
    }
    if (!std::isnan(bf16)) {
      ASSERT_EQ(bf16, oursB16) << bits;
      ASSERT_EQ(encodeSmallFloat(bf16, DType::BF16), bits);
    }
  }
}

TEST(DType, EncodesF16AsTheCompilerDoes) {
  for (uint32_t i = 0; i < 2000000; ++i) {
    float value = std::bit_cast<float>(i * 2654435761u);
    if (std::isnan(value))
      continue;
    ASSERT_EQ(encodeSmallFloat(value, DType::F16),
              std::bit_cast<uint16_t>(static_cast<_Float16>(value)))
        << value;
  }
  EXPECT_EQ(encodeSmallFloat(65520.0, DType::F16), 0x7c00u);
  EXPECT_EQ(encodeSmallFloat(65519.0, DType::F16), 0x7bffu);
}

TEST(DType, EncodesF8ToTheNearestValue) {
  for (DType dtype : {DType::F8E4M3, DType::F8E5M2}) {
    for (uint32_t bits = 0; bits < 0x100; ++bits) {
      double value = decodeSmallFloat(bits, dtype);
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(
            decodeSmallFloat(encodeSmallFloat(value, dtype), dtype)));
      else
        EXPECT_EQ(encodeSmallFloat(value, dtype), bits);
    }
    double greatest = dtype == DType::F8E4M3 ? 448 : 57344;
    for (double value = greatest; value > 1e-8; value *= 0.987) {
      double best = std::numeric_limits<double>::infinity();
      for (uint32_t bits = 0; bits < 0x80; ++bits) {
        double other = decodeSmallFloat(bits, dtype);
        if (!std::isnan(other))
          best = std::min(best, std::fabs(other - value));
      }
      double got = decodeSmallFloat(encodeSmallFloat(value, dtype), dtype);
      EXPECT_EQ(std::fabs(got - value), best) << value;
    }
  }
}

TEST(DType, ConvertsWholeNumbersOnlyWhereTheyFit) {
  int64_t wide = 200;
  uint8_t byte = 0;
  EXPECT_TRUE(convertElement(&wide, DType::I64, &byte, DType::U8));
  EXPECT_EQ(byte, 200);
  EXPECT_FALSE(convertElement(&wide, DType::I64, &byte, DType::I8));
  EXPECT_FALSE(convertElement(&wide, DType::I64, &byte, DType::I1));
  double half = 0.5;
  EXPECT_FALSE(convertElement(&half, DType::F64, &wide, DType::I64));
  float real = 0;
  EXPECT_TRUE(convertElement(&wide, DType::I64, &real, DType::F32));
  EXPECT_EQ(real, 200.0f);
}

} // namespace
