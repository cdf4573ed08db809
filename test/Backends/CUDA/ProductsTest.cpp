//===- ProductsTest.cpp - matrix products against plain loops -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Executes the calls that Products::create makes as the library would, over
// doubles that hold small integers.
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Blas/Products.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <random>

using namespace tessera;
using cuda::Products;

namespace {

using Labels = std::vector<int32_t>;
using Extents = std::map<int32_t, int64_t>;
using Index = std::map<int32_t, int64_t>;

struct Tensor {
  Labels labels;
  std::vector<int64_t> sizes, strides;
  std::vector<double> memory;

  Tensor(Labels labels, const Extents &extents, std::mt19937 &random, bool gaps,
         bool rowMajor = false)
      : labels(std::move(labels)) {
    for (int32_t label : this->labels)
      sizes.push_back(extents.at(label));
    std::vector<int> order(sizes.size());
    std::iota(order.begin(), order.end(), 0);
    std::reverse(order.begin(), order.end());
    if (!rowMajor)
      std::shuffle(order.begin(), order.end(), random);
    strides.resize(sizes.size());
    int64_t stride = gaps && random() % 2 ? 2 : 1;
    for (int d : order) {
      strides[d] = stride;
      stride *= std::max<int64_t>(sizes[d], 1) + (gaps ? random() % 3 : 0);
    }
    memory.assign(stride + 8, std::nan(""));
  }
  double &at(const Index &index) {
    int64_t offset = 0;
    for (size_t d = 0; d < labels.size(); ++d)
      offset += index.at(labels[d]) * strides[d];
    return memory[offset];
  }
  Contraction::Operand operand(DType dtype) const {
    return {dtype, sizes, strides, labels};
  }
};

void forEach(const Labels &labels, const Extents &extents,
             const std::function<void(const Index &)> &body, Index index = {}) {
  if (index.size() == labels.size())
    return body(index);
  int32_t label = labels[index.size()];
  for (int64_t i = 0; i < extents.at(label); ++i) {
    index[label] = i;
    forEach(labels, extents, body, index);
    index.erase(label);
  }
}

/// Copies between a tensor and its scratch.
void copy(const cuda::Staging &staging, double *from,
          const std::vector<int64_t> &fromStrides, double *to,
          const std::vector<int64_t> &toStrides) {
  Labels dims(staging.sizes.size());
  std::iota(dims.begin(), dims.end(), 0);
  Extents extents;
  for (size_t d = 0; d < dims.size(); ++d)
    extents[d] = staging.sizes[d];
  forEach(dims, extents, [&](const Index &index) {
    int64_t read = 0, write = 0;
    for (auto [d, i] : index) {
      read += i * fromStrides[d];
      write += i * toStrides[d];
    }
    to[write] = from[read];
  });
}

/// Stands for gelu, on integers.
double curve(double x) { return x * x - 3; }

double slope(double x) { return 2 * x; }

void execute(const Products &products, double *a, double *b, double *c,
             double *bias, double *aux, double *sums) {
  const cuda::MatrixProduct &p = products.product;
  double *tensors[] = {a, b, c, bias, aux, sums};
  std::vector<double> scratch[Products::Count];
  for (int t = 0; t < Products::Count; ++t)
    if (products.staged[t]) {
      const cuda::Staging &staging = *products.staged[t];
      scratch[t].assign(staging.elements, std::nan(""));
      if (!products.isWritten(t))
        copy(staging, tensors[t], staging.strides, scratch[t].data(),
             staging.dense);
    }
  auto base = [&](int t) {
    return products.staged[t] ? scratch[t].data() : tensors[t];
  };
  for (const auto &at : products.calls) {
    const double *x = p.swapped ? base(Products::B) + at[Products::B]
                                : base(Products::A) + at[Products::A];
    const double *y = p.swapped ? base(Products::A) + at[Products::A]
                                : base(Products::B) + at[Products::B];
    double *d = base(Products::C) + at[Products::C];
    auto element = [](const double *data, const cuda::MatrixProduct::Matrix &m,
                      int64_t batch, int64_t row, int64_t column) {
      return data[batch * m.batchStride + (m.transposed
                                               ? row * m.leading + column
                                               : column * m.leading + row)];
    };
    const fb::Summed summed = products.epilogue.summed;
    if (summed != fb::Summed::None) {
      EXPECT_EQ(products.calls.size() * p.batch, 1u);
      std::fill_n(base(Products::Sums), products.numSums, 0);
      const bool ofX = (summed == fb::Summed::B) == p.swapped;
      if (summed != fb::Summed::C)
        for (int64_t i = 0; i < products.numSums; ++i)
          for (int64_t k = 0; k < p.k; ++k)
            base(Products::Sums)[i] +=
                ofX ? element(x, p.x, 0, i, k) : element(y, p.y, 0, k, i);
    }
    for (int64_t batch = 0; batch < p.batch; ++batch)
      for (int64_t n = 0; n < p.n; ++n)
        for (int64_t m = 0; m < p.m; ++m) {
          double sum = 0;
          for (int64_t k = 0; k < p.k; ++k)
            sum += element(x, p.x, batch, m, k) * element(y, p.y, batch, k, n);
          if (products.epilogue.bias)
            sum += base(Products::Bias)[m];
          if (products.epilogue.geluGrad)
            sum *= slope(base(Products::Aux)[n * products.auxLeading + m]);
          else if (products.epilogue.aux)
            base(Products::Aux)[n * products.auxLeading + m] = sum;
          if (products.epilogue.summed == fb::Summed::C)
            base(Products::Sums)[m] += sum;
          if (products.epilogue.gelu)
            sum = curve(sum);
          double &to =
              d[batch * p.d.batchStride +
                (p.d.transposed ? m * p.d.leading + n : n * p.d.leading + m)];
          EXPECT_TRUE(std::isnan(to)) << "written twice";
          to = sum;
        }
  }
  for (int t = 0; t < Products::Count; ++t)
    if (products.staged[t] && products.isWritten(t))
      copy(*products.staged[t], scratch[t].data(), products.staged[t]->dense,
           tensors[t], products.staged[t]->strides);
}

struct Case {
  bool bias = false, gelu = false, aux = false;
  /// What went into the gelu lies in any order.
  bool grad = false;
  fb::Summed summed = fb::Summed::None;
};

Products check(Labels a, Labels b, Labels c, const Extents &extents,
               std::mt19937 &random, bool gaps, Case with = {}) {
  if (!with.aux)
    for (Labels *labels : {&a, &b, &c})
      std::shuffle(labels->begin(), labels->end(), random);
  // A second result lies as the compiler lays it.
  Tensor ta(a, extents, random, gaps, with.aux),
      tb(b, extents, random, gaps, with.aux),
      tc(c, extents, random, gaps, with.aux);
  Labels column;
  for (int32_t label : c)
    if (std::find(a.begin(), a.end(), label) == a.end())
      column.push_back(label);
  Tensor bias(with.bias ? column : Labels{}, extents, random, gaps);
  Tensor x(c, extents, random, gaps), aux = with.grad ? x : tc;
  // The one label that stays of what is summed.
  Labels kept;
  if (with.summed != fb::Summed::None)
    for (int32_t label : c)
      if (std::count(a.begin(), a.end(), label) ==
          (with.summed == fb::Summed::A))
        kept.push_back(label);
  Tensor columns(kept, extents, random, gaps);
  for (Tensor *tensor : {&ta, &tb, &bias, &aux})
    forEach(tensor->labels, extents, [&](const Index &index) {
      tensor->at(index) = int(random() % 5) - 2;
    });
  cuda::Epilogue epilogue;
  epilogue.bias = with.bias;
  epilogue.gelu = with.gelu;
  epilogue.aux = with.aux;
  if (with.bias)
    epilogue.biasStride = bias.strides[0];
  epilogue.geluGrad = with.grad;
  epilogue.aux |= with.grad;
  epilogue.auxStrides = aux.strides;
  epilogue.summed = with.summed;
  if (with.summed != fb::Summed::None)
    epilogue.sumsStride = columns.strides[0];
  Result<Products> products =
      Products::create(ta.operand(DType::BF16), tb.operand(DType::BF16),
                       tc.operand(DType::BF16), epilogue);
  EXPECT_TRUE(products) << products.message();
  if (!products)
    return {};
  if (products->empty)
    return *products;
  if (products->zero) {
    forEach(c, extents, [&](const Index &index) { tc.at(index) = 0; });
    forEach(kept, extents, [&](const Index &index) { columns.at(index) = 0; });
  } else {
    execute(*products, ta.memory.data(), tb.memory.data(), tc.memory.data(),
            bias.memory.data(), aux.memory.data(), columns.memory.data());
  }

  Labels sums;
  for (auto [label, size] : extents)
    if (std::find(c.begin(), c.end(), label) == c.end())
      sums.push_back(label);
  int wrong = 0;
  std::map<Index, double> totals;
  auto keptOf = [&](const Index &index) {
    Index result;
    for (int32_t label : kept)
      result[label] = index.at(label);
    return result;
  };
  if (with.summed == fb::Summed::A || with.summed == fb::Summed::B) {
    Tensor &tensor = with.summed == fb::Summed::A ? ta : tb;
    forEach(tensor.labels, extents, [&](const Index &index) {
      totals[keptOf(index)] += tensor.at(index);
    });
  }
  forEach(c, extents, [&](const Index &index) {
    double expected = 0;
    forEach(sums, extents, [&](const Index &inner) {
      Index all = index;
      all.insert(inner.begin(), inner.end());
      expected += ta.at(all) * tb.at(all);
    });
    if (with.bias)
      expected += bias.at(index);
    if (with.grad)
      expected *= slope(aux.at(index));
    if (with.aux)
      wrong += aux.at(index) != expected;
    if (with.summed == fb::Summed::C)
      totals[keptOf(index)] += expected;
    if (with.gelu)
      expected = curve(expected);
    wrong += tc.at(index) != expected;
  });
  if (with.summed != fb::Summed::None)
    forEach(kept, extents, [&](const Index &index) {
      wrong += columns.at(index) != totals[index];
    });
  EXPECT_EQ(wrong, 0) << testing::PrintToString(a) << testing::PrintToString(b)
                      << testing::PrintToString(c)
                      << testing::PrintToString(extents);
  return *products;
}

TEST(Products, AllOrdersOfMemory) {
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i)
    check({0, 2}, {2, 1}, {0, 1}, {{0, 5}, {1, 7}, {2, 4}}, random, i % 2);
}

TEST(Products, SeveralLabelsOfEachKind) {
  std::mt19937 random(2);
  for (int i = 0; i < 2000; ++i) {
    Extents extents;
    for (int32_t label = 0; label < 8; ++label)
      extents[label] = 1 + random() % 3;
    // 0, 1 batches; 2, 3 rows; 4, 5 columns; 6, 7 contracted
    check({0, 1, 2, 3, 6, 7}, {0, 1, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5}, extents,
          random, i % 2, {});
  }
}

TEST(Products, Epilogues) {
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    Extents extents;
    for (int32_t label = 0; label < 4; ++label)
      extents[label] = 1 + random() % 9;
    // A batch of rows times a weight, as a linear is.
    check({0, 1, 2}, {3, 2}, {0, 1, 3}, extents, random, i % 2,
          {true, i % 4 > 1, false});
  }
  for (int i = 0; i < 200; ++i) {
    Extents extents{{0, 1 + i % 3}, {1, 5}, {2, 4}, {3, 1 + i % 20}};
    check({0, 1, 2}, {3, 2}, {0, 1, 3}, extents, random, false,
          {true, true, true});
  }
}

TEST(Products, Gradients) {
  std::mt19937 random(5);
  for (int i = 0; i < 600; ++i) {
    Extents extents;
    for (int32_t label = 0; label < 4; ++label)
      extents[label] = 1 + random() % 17;
    Case with;
    with.grad = true;
    with.summed = i % 3 ? fb::Summed::C : fb::Summed::None;
    check({0, 1, 2}, {3, 2}, {0, 1, 3}, extents, random, i % 2, with);
    with.grad = false;
    with.summed = i % 4 > 1 ? fb::Summed::A : fb::Summed::B;
    extents.erase(1);
    check({0, 2}, {3, 2}, {0, 3}, extents, random, i % 2, with);
  }
  // No rows, or nothing to multiply: sums of nothing.
  for (int32_t empty : {0, 2}) {
    Extents extents{{0, 3}, {1, 4}, {2, 5}, {3, 2}};
    extents[empty] = 0;
    Case with;
    with.grad = true;
    with.summed = fb::Summed::C;
    EXPECT_TRUE(
        check({0, 1, 2}, {3, 2}, {0, 1, 3}, extents, random, false, with).zero);
  }
  Case with;
  with.summed = fb::Summed::B;
  Extents extents{{0, 3}, {1, 4}, {2, 0}};
  EXPECT_TRUE(check({0, 2}, {1, 2}, {0, 1}, extents, random, false, with).zero);
}

/// The products of an MLP's backward are calls on the memory as it is.
TEST(Products, GradientsAreOneCall) {
  const int64_t rows = 4096, in = 512, out = 768;
  const int64_t dy[] = {rows, out}, dys[] = {out, 1};
  const int64_t dyt[] = {out, rows}, dyts[] = {1, out};
  const int64_t xt[] = {in, rows}, xts[] = {1, in};
  const int64_t wt[] = {in, out}, wts[] = {1, in};
  const int64_t dw[] = {out, in}, dws[] = {in, 1};
  const int64_t du[] = {rows, in}, dus[] = {in, 1};
  const int32_t al[] = {0, 1}, bl[] = {2, 1}, cl[] = {0, 2};
  cuda::Epilogue grad;
  grad.geluGrad = grad.aux = true;
  grad.auxStrides = dus;
  grad.summed = fb::Summed::C;
  Products products =
      *Products::create({DType::BF16, dy, dys, al}, {DType::BF16, wt, wts, bl},
                        {DType::BF16, du, dus, cl}, grad);
  EXPECT_EQ(products.auxLeading, in);
  EXPECT_EQ(products.numSums, in);
  EXPECT_TRUE(products.product.swapped);
  for (const auto &staged : products.staged)
    EXPECT_FALSE(staged);
  cuda::Epilogue sums;
  sums.summed = fb::Summed::A;
  products = *Products::create({DType::BF16, dyt, dyts, al},
                               {DType::BF16, xt, xts, bl},
                               {DType::BF16, dw, dws, cl}, sums);
  EXPECT_EQ(products.numSums, out);
  // x and dy as cuBLASLt wants them for a bias' gradient: n, t.
  EXPECT_TRUE(products.product.swapped);
  EXPECT_EQ(products.product.x, (cuda::MatrixProduct::Matrix{false, in, 0}));
  EXPECT_EQ(products.product.y, (cuda::MatrixProduct::Matrix{true, out, 0}));
  for (const auto &staged : products.staged)
    EXPECT_FALSE(staged);
}

TEST(Products, MissingKindsAndEmptyExtents) {
  std::mt19937 random(4);
  for (int i = 0; i < 50; ++i) {
    check({0}, {0}, {}, {{0, 9}}, random, false);
    check({0}, {1}, {0, 1}, {{0, 3}, {1, 4}}, random, false);
    check({0, 1}, {1}, {0}, {{0, 3}, {1, 4}}, random, true);
    check({0}, {0}, {0}, {{0, 5}}, random, false);
    check({}, {}, {}, {}, random, false);
    for (int32_t empty = 0; empty < 5; ++empty) {
      Extents extents{{0, 3}, {1, 4}, {2, 5}, {3, 2}, {4, 3}};
      extents[empty] = 0;
      Products products =
          check({0, 1, 3, 4}, {0, 2, 3, 4}, {0, 1, 2}, extents, random, i % 2);
      EXPECT_EQ(products.zero, empty > 2);
      EXPECT_EQ(products.empty, empty <= 2);
    }
  }
}

/// A linear on contiguous memory is one call on the memory as it is.
TEST(Products, LinearIsOneCall) {
  const int64_t x[] = {2, 2048, 512}, xs[] = {2048 * 512, 512, 1};
  const int64_t w[] = {768, 512}, ws[] = {512, 1};
  const int64_t y[] = {2, 2048, 768}, ys[] = {2048 * 768, 768, 1};
  const int32_t xl[] = {0, 1, 2}, wl[] = {3, 2}, yl[] = {0, 1, 3};
  cuda::Epilogue epilogue;
  epilogue.bias = true;
  Products products =
      *Products::create({DType::BF16, x, xs, xl}, {DType::BF16, w, ws, wl},
                        {DType::BF16, y, ys, yl}, epilogue);
  EXPECT_EQ(products.calls.size(), 1u);
  EXPECT_EQ(products.product.m, 768);
  EXPECT_EQ(products.product.n, 4096);
  EXPECT_EQ(products.product.k, 512);
  EXPECT_EQ(products.product.batch, 1);
  EXPECT_TRUE(products.product.swapped);
  EXPECT_EQ(products.product.x, (cuda::MatrixProduct::Matrix{true, 512, 0}));
  EXPECT_EQ(products.product.y, (cuda::MatrixProduct::Matrix{false, 512, 0}));
  EXPECT_EQ(products.product.d, (cuda::MatrixProduct::Matrix{false, 768, 0}));
  for (const auto &staged : products.staged)
    EXPECT_FALSE(staged);
}

/// What a plan may say of a product, and the library has no call for.
TEST(Products, EpiloguesThatTheLibraryLacks) {
  auto message = [](auto change) {
    fb::ContractT contract;
    contract.a_labels = {0, 2}, contract.b_labels = {1, 2};
    contract.c_labels = {0, 1};
    change(contract);
    Status status = cuda::checkEpilogue(contract);
    return status ? std::string() : status.message();
  };
  auto grad = [](fb::ContractT &c) {
    c.epilogue = fb::Epilogue::GeluTanhGrad, c.x = 0;
  };
  auto sums = [](fb::ContractT &c, fb::Summed summed) {
    c.summed = summed, c.sums = 0;
  };
  auto gelu = [](fb::ContractT &c) { c.epilogue = fb::Epilogue::GeluTanh; };
  EXPECT_EQ(message([](fb::ContractT &) {}), "");
  EXPECT_EQ(message([](fb::ContractT &c) { c.addend = 0; }), "");
  EXPECT_EQ(message([&](fb::ContractT &c) { gelu(c), c.bias = c.aux = 0; }),
            "");
  EXPECT_EQ(message([&](fb::ContractT &c) { grad(c), sums(c, fb::Summed::C); }),
            "");
  for (fb::Summed summed : {fb::Summed::A, fb::Summed::B})
    EXPECT_EQ(message([&](fb::ContractT &c) { sums(c, summed); }), "");

  const std::string adds = "cuBLASLt adds to a product that has neither bias, "
                           "nor epilogue, nor sums";
  EXPECT_EQ(message([](fb::ContractT &c) { c.addend = c.bias = 0; }), adds);
  EXPECT_EQ(message([&](fb::ContractT &c) { gelu(c), c.addend = 0; }), adds);
  EXPECT_EQ(message([&](fb::ContractT &c) {
              sums(c, fb::Summed::A), c.addend = 0;
            }),
            adds);
  const std::string slope =
      "cuBLASLt multiplies by the slope of a gelu without a bias before it, "
      "and does not store what it multiplies";
  EXPECT_EQ(message([&](fb::ContractT &c) { grad(c), c.bias = 0; }), slope);
  EXPECT_EQ(message([&](fb::ContractT &c) { grad(c), c.aux = 0; }), slope);
  const std::string of = "cuBLASLt sums what it multiplies by the slope of a "
                         "gelu, and a or b without bias and epilogue";
  EXPECT_EQ(message([&](fb::ContractT &c) { sums(c, fb::Summed::C); }), of);
  EXPECT_EQ(message([&](fb::ContractT &c) { gelu(c), sums(c, fb::Summed::C); }),
            of);
  for (fb::Summed summed : {fb::Summed::A, fb::Summed::B}) {
    EXPECT_EQ(message([&](fb::ContractT &c) { sums(c, summed), c.bias = 0; }),
              of);
    EXPECT_EQ(message([&](fb::ContractT &c) { gelu(c), sums(c, summed); }), of);
    EXPECT_EQ(message([&](fb::ContractT &c) { grad(c), sums(c, summed); }), of);
    EXPECT_EQ(message([&](fb::ContractT &c) {
                sums(c, summed);
                c.a_labels = {3, 0, 2}, c.b_labels = {3, 1, 2};
                c.c_labels = {3, 0, 1};
              }),
              "cuBLASLt sums rows or columns of one matrix");
  }
}

TEST(Products, RefusesWhatTheLibraryLacks) {
  const int64_t n[] = {4, 4}, s[] = {4, 1};
  const int32_t al[] = {0, 2}, bl[] = {2, 1}, cl[] = {0, 1};
  auto message = [&](DType a, DType b, DType c, cuda::Epilogue epilogue = {}) {
    Result<Products> products =
        Products::create({a, n, s, al}, {b, n, s, bl}, {c, n, s, cl}, epilogue);
    return products ? std::string() : products.message();
  };
  EXPECT_EQ(message(DType::F16, DType::F16, DType::F32), "");
  EXPECT_NE(message(DType::I32, DType::I32, DType::I32).find("i32 and i32"),
            std::string::npos);
  EXPECT_NE(message(DType::F32, DType::BF16, DType::F32).find("f32 and bf16"),
            std::string::npos);
  cuda::Epilogue gelu;
  gelu.gelu = true;
  EXPECT_NE(message(DType::F64, DType::F64, DType::F64, gelu).find("epilogue"),
            std::string::npos);
  cuda::Epilogue sums;
  sums.summed = fb::Summed::A;
  EXPECT_EQ(message(DType::BF16, DType::BF16, DType::BF16, sums), "");
  EXPECT_NE(message(DType::F64, DType::F64, DType::F64, sums).find("epilogue"),
            std::string::npos);
  const int64_t batch[] = {2, 4, 4}, strides[] = {16, 4, 1};
  const int32_t bal[] = {3, 0, 2}, bbl[] = {3, 2, 1}, bcl[] = {3, 0, 1};
  EXPECT_NE(Products::create({DType::BF16, batch, strides, bal},
                             {DType::BF16, batch, strides, bbl},
                             {DType::BF16, batch, strides, bcl}, sums)
                .message()
                .find("not of a batch"),
            std::string::npos);
}

} // namespace
