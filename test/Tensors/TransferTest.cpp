//===- TransferTest.cpp - parts of tensors from and to files --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rank's part is compared element by element with the algebra's map from
// local to global index, and the file that all ranks write together with the
// one that they read.
//
//===----------------------------------------------------------------------===//

#include "Tensors/Transfer.h"
#include "Scratch.h"
#include "Support/TemporaryFile.h"

#include <numeric>

using namespace tessera;

namespace {

class Transfer : public Scratch {
protected:
  static GlobalTensor tensor(const char *mesh, const char *view,
                             layout::Shape shape, DType dtype = DType::I32) {
    Result<layout::Mesh> parsedMesh = layout::parseMesh(mesh);
    EXPECT_TRUE(parsedMesh) << mesh;
    Result<layout::View> parsedView = layout::parseView(view, *parsedMesh);
    EXPECT_TRUE(parsedView) << view;
    return {"t", dtype, shape, *parsedView, *parsedMesh};
  }

  static int64_t elements(const layout::Shape &shape) {
    return std::accumulate(shape.begin(), shape.end(), int64_t{1},
                           std::multiplies<>());
  }

  /// A file whose tensor "t" holds 0, 1, 2, ...
  std::string iotaFile(const layout::Shape &shape) {
    FileLayout layout = layoutFile({{"t", DType::I32, shape}});
    std::string bytes = layout.header;
    for (int32_t i = 0; i < elements(shape); ++i)
      bytes.append(reinterpret_cast<const char *>(&i), sizeof i);
    return write("iota.safetensors", bytes);
  }

  /// The global row-major number of the local element at `index`.
  static int64_t globalNumber(const GlobalTensor &tensor,
                              const layout::Coords &coords,
                              const layout::Shape &index) {
    int64_t number = 0;
    for (size_t dim = 0; dim < index.size(); ++dim) {
      int64_t bound = layout::boundOf(tensor.view, dim, tensor.shape);
      number = number * bound +
               layout::localToGlobal(tensor.view.dims[dim].product, bound,
                                     tensor.mesh, coords, index[dim]);
    }
    return number;
  }
};

struct Case {
  const char *mesh;
  const char *view;
  layout::Shape shape;
};

TEST_F(Transfer, EachRankReadsItsPartAndAllWriteTheWhole) {
  const Case cases[] = {
      {"<x = 2>", "[_, _]", {3, 4}},
      {"<x = 2>", "[did(x) * _, _]", {6, 4}},
      {"<x = 3>", "[_, did(x) * _]", {2, 7}},
      {"<x = 3>", "[_, _ * did(x)]", {2, 7}},
      {"<x = 2>", "[_ * did(x) * 2, _, _]", {9, 2, 3}},
      {"<x = 2>", "[_, did(x) * _, _]", {2, 4, 3}},
      {"<x = 2, y = 3>", "[did(y) * did(x) * _, _]", {14, 2}},
      {"<x = 2, y = 3>", "[did(x) * _, did(y) * _], alloc = (1, 0)", {5, 8}},
      {"<x = 2, y = 2, devices = [3, 1, 0, 2]>", "[did(y) * _, _]", {4, 3}},
      {"<x = 4>", "[did(x:(2)2) * _, _]", {4, 3}},
      {"<x = 4>", "[did(x) * _]", {2}},
      {"<x = 2>", "[]", {}},
      {"<x = 2>", "[did(x) * _, _]", {0, 3}},
      {"<x = 2>", "[_, _], alloc = (1, 0)", {4, 3}},
      {"<x = 2>", "[flat(2) did(x) * _, _]", {3, 5, 2}},
      {"<x = 3>", "[_, (did(x) * _ | 4) * 3]", {2, 12}},
  };
  for (const Case &c : cases) {
    SCOPED_TRACE(std::string(c.mesh) + " " + c.view);
    GlobalTensor t = tensor(c.mesh, c.view, c.shape);
    std::string file = iotaFile(c.shape);
    Result<TensorFiles> files = TensorFiles::open({file});
    ASSERT_TRUE(files) << files.message();
    Result<const StoredTensor *> stored = files->find("t");
    ASSERT_TRUE(stored);

    Result<OutputFile> output =
        OutputFile::create(path("out"), path("new"), {t});
    ASSERT_TRUE(output) << output.message();
    for (int64_t rank = 0; rank < t.mesh.numDevices(); ++rank) {
      layout::Coords coords = t.mesh.coordsOfRank(rank);
      layout::Shape local = layout::localShape(t.view, t.shape, t.mesh, coords);
      std::vector<int64_t> strides = layout::localStrides(t.view, local);
      std::vector<int32_t> buffer(elements(local), -1);
      Status read = readLocal(**stored, t, std::nullopt, coords, buffer.data());
      ASSERT_TRUE(read) << read.message();

      layout::Shape index(local.size(), 0);
      for (int64_t i = 0; i < elements(local); ++i) {
        int64_t at = 0, rest = i;
        for (size_t dim = local.size(); dim-- > 0;) {
          index[dim] = rest % local[dim];
          rest /= local[dim];
          at += index[dim] * strides[dim];
        }
        ASSERT_EQ(buffer[at], globalNumber(t, coords, index));
      }

      Result<OutputFile> mine = OutputFile::open(path("out"), path("new"), {t});
      ASSERT_TRUE(mine) << mine.message();
      Status wrote = mine->write(0, coords, buffer.data());
      ASSERT_TRUE(wrote && mine->flush()) << wrote.message();
    }
    EXPECT_FALSE(std::filesystem::exists(path("out")));
    ASSERT_TRUE(output->rename());
    EXPECT_EQ(read("out"), read("iota.safetensors"));
    std::filesystem::remove(path("out"));
  }
}

TEST_F(Transfer, OnlyOneOfEqualRanksWrites) {
  GlobalTensor t = tensor("<x = 2, y = 2>", "[did(y) * _]", {4});
  Result<OutputFile> output = OutputFile::create(path("out"), path("new"), {t});
  ASSERT_TRUE(output);
  int32_t right[2] = {1, 2}, wrong[2] = {-1, -1};
  for (int64_t x = 1; x >= 0; --x)
    for (int64_t y = 0; y < 2; ++y)
      ASSERT_TRUE(output->write(0, {x, y}, x == 0 ? right : wrong));
  ASSERT_TRUE(output->write(0, {1, 1}, wrong));
  ASSERT_TRUE(output->rename());
  std::string bytes = read("out");
  int32_t values[4];
  memcpy(values, bytes.data() + bytes.size() - 16, 16);
  EXPECT_EQ(std::vector<int32_t>(values, values + 4),
            (std::vector<int32_t>{1, 2, 1, 2}));
}

TEST_F(Transfer, ConvertsOnlyWhenTold) {
  Result<TensorFiles> files = TensorFiles::open({iotaFile({2, 3})});
  ASSERT_TRUE(files);
  const StoredTensor &stored = **files->find("t");
  GlobalTensor t = tensor("<x = 2>", "[_, did(x) * _]", {2, 3}, DType::F32);
  float local[4] = {};
  Status refused = readLocal(stored, t, std::nullopt, {0}, local);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.message().find("\"cast\": \"f32\""), std::string::npos)
      << refused.message();
  Status converted = readLocal(stored, t, DType::F32, {0}, local);
  ASSERT_TRUE(converted) << converted.message();
  EXPECT_EQ((std::vector<float>(local, local + 4)),
            (std::vector<float>{0, 1, 3, 4}));
  Status other = readLocal(stored, t, DType::F64, {0}, local);
  ASSERT_FALSE(other);
  EXPECT_NE(other.message().find("casts it to f64"), std::string::npos);
}

TEST_F(Transfer, RefusesWrongShapesAndPartialViews) {
  Result<TensorFiles> files = TensorFiles::open({iotaFile({2, 3})});
  ASSERT_TRUE(files);
  const StoredTensor &stored = **files->find("t");
  int32_t local[6];
  GlobalTensor transposed = tensor("<x = 2>", "[_, _]", {3, 2});
  Status shape = readLocal(stored, transposed, std::nullopt, {0}, local);
  ASSERT_FALSE(shape);
  EXPECT_NE(shape.message().find("has shape [2, 3], but input 't' is [3, 2]"),
            std::string::npos)
      << shape.message();
  GlobalTensor partial =
      tensor("<x = 2>", "[_, _], partial = [(x) : sum]", {2, 3});
  Status read = readLocal(stored, partial, std::nullopt, {0}, local);
  ASSERT_FALSE(read);
  EXPECT_NE(read.message().find("partial"), std::string::npos);
  EXPECT_FALSE(OutputFile::create(path("out"), path("new"), {partial}));
}

TEST_F(Transfer, AnAbandonedOutputLeavesNothing) {
  GlobalTensor t = tensor("<x = 2>", "[_]", {4});
  write("out", "old");
  {
    Result<OutputFile> output =
        OutputFile::create(path("out"), path("new"), {t});
    ASSERT_TRUE(output);
  }
  EXPECT_EQ(read("out"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST_F(Transfer, UnwritableTargetsAreKnownBefore) {
  EXPECT_TRUE(checkWritable(path("new")));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  Status missing = checkWritable(path("no/such/file"));
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.message().find("No such file"), std::string::npos);
  Status isFolder = checkWritable(folder.string());
  ASSERT_FALSE(isFolder);
  EXPECT_NE(isFolder.message().find("folder"), std::string::npos);
}

} // namespace
