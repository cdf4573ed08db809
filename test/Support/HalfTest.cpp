//===- HalfTest.cpp - fast conversion of 16-bit floats --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The same as the slow conversion: from each 16-bit value, and to 16 bits for
// each of them, the middle to its neighbour, and what lies next to both.
//
//===----------------------------------------------------------------------===//

#include "Support/Half.h"
#include "Support/DType.h"
#include "gtest/gtest.h"

using namespace tessera;

template <typename Half> static void check(DType dtype) {
  auto narrow = [&](float value) {
    uint16_t bits;
    convertElement(&value, DType::F32, &bits, dtype);
    return bits;
  };
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    Half half;
    half.bits = bits;
    float slow;
    convertElement(&half.bits, dtype, &slow, DType::F32);
    float fast = static_cast<float>(half);
    if (std::isnan(slow)) {
      ASSERT_TRUE(std::isnan(fast)) << bits;
      float again = static_cast<float>(Half(fast));
      ASSERT_TRUE(std::isnan(again)) << bits;
      continue;
    }
    ASSERT_EQ(std::bit_cast<uint32_t>(fast), std::bit_cast<uint32_t>(slow))
        << bits;
    if (std::isinf(slow))
      continue;
    half.bits = bits + 1;
    float next = static_cast<float>(half);
    float middle = std::isinf(next) ? slow * 1.0002f : slow / 2 + next / 2;
    for (float value : {slow, middle})
      for (float probe :
           {value, std::nextafter(value, 0.0f), std::nextafter(value, INFINITY),
            std::nextafter(value, -INFINITY)}) {
        if (!std::isnan(probe)) {
          ASSERT_EQ(Half(probe).bits, narrow(probe)) << probe;
        }
      }
  }
  for (float value : {65504.0f, 65519.0f, 65520.0f, 65536.0f, 1e10f, 3.4e38f,
                      INFINITY, 1e-30f, -0.0f}) {
    EXPECT_EQ(Half(value).bits, narrow(value)) << value;
    EXPECT_EQ(Half(-value).bits, narrow(-value)) << value;
  }
}

TEST(Half, F16) { check<F16>(DType::F16); }
TEST(Half, BF16) { check<BF16>(DType::BF16); }
