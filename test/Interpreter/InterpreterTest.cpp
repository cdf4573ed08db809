//===- InterpreterTest.cpp - arrays, placements and the tolerance --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Machine/Tolerance.h"
#include "Interpreter/Ops/Placement.h"
#include "Support/DType.h"

#include "mlir/IR/Builders.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace tessera;
using namespace tessera::interp;

namespace {
class InterpreterTest : public testing::Test {
protected:
  std::shared_ptr<NDArray> floats(Shape shape, std::vector<double> values) {
    auto array = std::make_shared<NDArray>(builder.getF32Type(), shape);
    for (size_t i = 0; i < values.size(); ++i)
      array->data[i] = real(values[i]);
    return array;
  }
  Layout layoutOf(std::string_view mesh, std::string_view view) {
    layout::Mesh made = *layout::parseMesh(mesh);
    return {*layout::parseView(view, made), made};
  }

  mlir::MLIRContext context;
  mlir::Builder builder{&context};
};
} // namespace

TEST_F(InterpreterTest, RoundingIsThatOfTheElementTypes) {
  std::pair<mlir::Type, DType> types[] = {
      {builder.getBF16Type(), DType::BF16},
      {builder.getF16Type(), DType::F16},
      {mlir::Float8E4M3FNType::get(&context), DType::F8E4M3},
      {mlir::Float8E5M2Type::get(&context), DType::F8E5M2}};
  for (auto [type, dtype] : types)
    for (double value = -3.0; value < 3.0; value += 0.0371)
      EXPECT_EQ(roundTo(value, type),
                decodeSmallFloat(encodeSmallFloat(value, dtype), dtype))
          << info(dtype).name << " " << value;
  EXPECT_EQ(roundTo(1.0 / 3, builder.getF32Type()), double(1.0f / 3));
  EXPECT_EQ(roundTo(1.0 / 3, builder.getF64Type()), 1.0 / 3);
}

TEST_F(InterpreterTest, IntegersWrapToTheirType) {
  EXPECT_EQ(wrapTo(200, builder.getIntegerType(8)), -56);
  EXPECT_EQ(wrapTo(200, builder.getIntegerType(8, /*isSigned=*/false)), 200);
  EXPECT_EQ(wrapTo(3, builder.getI1Type()), 1);
  EXPECT_EQ(wrapTo(INT64_MIN, builder.getI64Type()), INT64_MIN);
  EXPECT_EQ(unsignedOf(-1, builder.getI32Type()), 0xffffffffu);
  EXPECT_EQ(identityOf(layout::Combiner::Max, builder.getI32Type()).whole,
            INT32_MIN);
  EXPECT_EQ(identityOf(layout::Combiner::Min, builder.getI64Type()).whole,
            INT64_MAX);
}

TEST_F(InterpreterTest, ElementsThatNobodyWroteAreNaN) {
  NDArray array(builder.getF32Type(), {2});
  EXPECT_TRUE(std::isnan(array.data[1].real));
}

TEST_F(InterpreterTest, DistributeAndAssembleAreInverse) {
  auto whole = floats({2, 5}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  for (const char *view :
       {"[_, _]", "[did(x) * _, _]", "[_, _ * did(x)]", "[_, did(y) * _]",
        "[did(x) * _, 2 * did(y)]", "[_, _], partial = [x : sum]",
        "[_, did(y) * _], partial = [x : max]",
        "flat(2) did(x) * did(y) * _"}) {
    std::string text = view;
    if (text[0] != '[')
      text = "[" + text + "]";
    Layout layout =
        layoutOf("<x = 2, y = 3, devices = [5, 4, 3, 2, 1, 0]>", text);
    Tensor tensor = distribute(whole, layout);
    ASSERT_EQ(tensor.parts.size(), 6u);
    double largestAddend = 0;
    auto back = assemble(tensor, largestAddend);
    ASSERT_TRUE(bool(back)) << back.message();
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ((*back)->data[i].real, i) << text;
    EXPECT_EQ(largestAddend, layout.view.partial.empty() ? 0 : 9) << text;
  }
}

TEST_F(InterpreterTest, ReplicasThatDifferAreNamed) {
  Tensor tensor = distribute(floats({2}, {1, 2}), layoutOf("<x = 2>", "[_]"));
  tensor.parts[1] = floats({2}, {1, 3});
  double largestAddend = 0;
  auto array = assemble(tensor, largestAddend);
  ASSERT_FALSE(bool(array));
  EXPECT_EQ(array.message(),
            "replicas differ at [1]: 2 on rank 0, 3 on rank 1");
}

TEST_F(InterpreterTest, ZeroAndItsNegativeAreDifferentReplicas) {
  Tensor tensor = distribute(floats({1}, {0.0}), layoutOf("<x = 2>", "[_]"));
  tensor.parts[1] = floats({1}, {-0.0});
  double largestAddend = 0;
  EXPECT_FALSE(bool(assemble(tensor, largestAddend)));
}

TEST_F(InterpreterTest, ToleranceIsFourTimesTheRoundedProgramsError) {
  auto exact = floats({2, 2}, {1, 2, 3, 4});
  auto rounded = floats({2, 2}, {1.5, 2, 3, 4});
  // The error of a row counts for all of its elements.
  auto near = floats({2, 2}, {1, 4, 3, 4});
  EXPECT_FALSE(compare({*exact, *rounded}, *near, 1, 0).differs);
  auto far = floats({2, 2}, {1, 4.1, 3, 4});
  auto result = compare({*exact, *rounded}, *far, 1, 0);
  ASSERT_TRUE(result.differs);
  EXPECT_EQ(*result.differs, (Index{0, 1}));
  EXPECT_NEAR(result.largestError, 2.1, 1e-12);
  auto otherRow = floats({2, 2}, {1, 2, 3.1, 4});
  EXPECT_EQ(*compare({*exact, *rounded}, *otherRow, 1, 0).differs,
            (Index{1, 0}));
}

TEST_F(InterpreterTest, ToleranceGrowsWithAddendsOfADeviceReduction) {
  auto exact = floats({1}, {0});
  double eps = std::ldexp(1.0, -23);
  auto off = floats({1}, {2.5 * eps});
  EXPECT_TRUE(compare({*exact, *exact}, *off, 1, 1).differs);
  EXPECT_TRUE(compare({*exact, *exact}, *off, 3, 1).differs);
  EXPECT_FALSE(compare({*exact, *exact}, *off, 4, 1).differs);
}

TEST_F(InterpreterTest, ToleranceOfDoublesIsFromTheErrorOfFloats) {
  auto exact = floats({2, 1}, {0.17, 0.2});
  exact->type = builder.getF64Type();
  auto with = [&](int at, double error) {
    auto array = std::make_shared<NDArray>(*exact);
    array->data[at].real += error;
    return array;
  };
  auto near = with(0, 0x1p-51), far = with(0, 0x1p-49);
  EXPECT_FALSE(compare({*exact, *exact}, *with(0, 0x1p-53), 1, 0).differs);
  EXPECT_TRUE(compare({*exact, *exact}, *near, 1, 0).differs);
  // The error of its row counts.
  EXPECT_TRUE(
      compare({*exact, *exact, &*with(1, 0x1p-24)}, *near, 1, 0).differs);
  EXPECT_FALSE(
      compare({*exact, *exact, &*with(0, 0x1p-24)}, *near, 1, 0).differs);
  EXPECT_TRUE(
      compare({*exact, *exact, &*with(0, 0x1p-24)}, *far, 1, 0).differs);
}

TEST_F(InterpreterTest, NaNAndInfinityMustBeEqual) {
  double nan = std::nan(""), infinity = HUGE_VAL;
  auto exact = floats({3}, {nan, infinity, 1});
  EXPECT_FALSE(compare({*exact, *exact}, *exact, 1, 0).differs);
  auto other = floats({3}, {nan, -infinity, 1});
  EXPECT_EQ(*compare({*exact, *exact}, *other, 1, 0).differs, (Index{1}));
  auto unwritten = floats({3}, {nan, infinity, nan});
  EXPECT_EQ(*compare({*exact, *exact}, *unwritten, 1, 0).differs, (Index{2}));
}
