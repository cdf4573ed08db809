//===- Products.cpp - a product of tensors as matrix products -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of the loops that are left after merging, one row, one column, one contracted
// and one batch loop make one call; batches, rows and columns beyond that make
// several calls, which all have one shape. Sums are never split over calls,
// whose results would be rounded in between: an operand that would need it, or
// that has no unit stride, is copied to dense scratch first. Of the sets of
// operands to copy the one with the fewest bytes is taken.
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Products.h"

#include <algorithm>
#include <climits>

using namespace tessera;
using namespace tessera::cuda;

namespace {

using Loop = Contraction::Loop;
using Loops = Contraction::Loops;
constexpr int A = Products::A, B = Products::B, C = Products::C;

/// More calls than this cost more than a copy.
constexpr int64_t kMaxCalls = 256;

/// A matrix as the library wants it: columns one after the other, or its
/// transpose. Nothing where neither fits.
std::optional<MatrixProduct::Matrix> matrixOf(int64_t rows, int64_t columns,
                                              int64_t rowStride,
                                              int64_t columnStride) {
  for (bool transposed : {false, true}) {
    if (transposed) {
      std::swap(rows, columns);
      std::swap(rowStride, columnStride);
    }
    if ((rows == 1 || rowStride == 1) &&
        (columns == 1 || columnStride >= rows)) {
      int64_t leading =
          std::max<int64_t>(columns == 1 ? rows : columnStride, 1);
      if (std::max({rows, columns, leading}) <= INT_MAX)
        return MatrixProduct::Matrix{transposed, leading, 0};
    }
  }
  return std::nullopt;
}

/// The loops of the four kinds, merged; at least one of each.
struct Nest {
  Loops batches, rows, columns, sums;
};

Loops mergedOrOne(const Loops &labels) {
  Loops loops = Contraction::collapse(labels);
  if (loops.empty())
    loops.push_back(Loop{});
  return loops;
}

/// With stride 1 for the innermost loop of a nest in `operand`.
void makeDense(Contraction &contraction, int operand) {
  int64_t stride = 1;
  auto lay = [&](Loops &loops) {
    for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
      loop->stride[operand] = stride;
      stride *= loop->size;
    }
  };
  // Contracted innermost, so that both of them merge alike.
  if (operand != C)
    lay(contraction.sums);
  if (operand != A)
    lay(contraction.columns);
  if (operand != B)
    lay(contraction.rows);
  lay(contraction.batches);
}

/// One choice of loops for the call.
struct Choice {
  size_t batch, row, column;
  MatrixProduct product;
  double work;
};

std::optional<Choice> choose(const Nest &nest, const Epilogue &epilogue) {
  if (nest.sums.size() != 1)
    return std::nullopt;
  std::optional<Choice> best;
  const Loop &sum = nest.sums[0];
  for (size_t i = 0; i < nest.rows.size(); ++i)
    for (size_t j = 0; j < nest.columns.size(); ++j) {
      const Loop &row = nest.rows[i], &column = nest.columns[j];
      auto a = matrixOf(row.size, sum.size, row.stride[A], sum.stride[A]);
      auto b = matrixOf(sum.size, column.size, sum.stride[B], column.stride[B]);
      auto c = matrixOf(row.size, column.size, row.stride[C], column.stride[C]);
      if (!a || !b || !c)
        continue;
      // As the transpose of c its columns are the library's rows, along which
      // it adds a bias.
      auto turned =
          matrixOf(column.size, row.size, column.stride[C], row.stride[C]);
      const bool swapped = !turned->transposed;
      if ((epilogue.bias || epilogue.aux) &&
          (!swapped || nest.columns.size() != 1))
        continue;
      Choice choice{0, i, j, {}, double(row.size) * double(column.size)};
      MatrixProduct &product = choice.product;
      product.k = sum.size;
      product.swapped = swapped;
      if (swapped) {
        product.m = column.size, product.n = row.size;
        product.x =
            *matrixOf(column.size, sum.size, column.stride[B], sum.stride[B]);
        product.y = *matrixOf(sum.size, row.size, sum.stride[A], row.stride[A]);
        product.d = *turned;
      } else {
        product.m = row.size, product.n = column.size;
        product.x = *a, product.y = *b, product.d = *c;
      }
      // The batch loop with the most steps.
      for (size_t l = 1; l < nest.batches.size(); ++l)
        if (nest.batches[l].size > nest.batches[choice.batch].size)
          choice.batch = l;
      const Loop &batch = nest.batches[choice.batch];
      if (batch.size > INT_MAX)
        continue;
      product.batch = batch.size;
      product.x.batchStride = batch.stride[swapped ? B : A];
      product.y.batchStride = batch.stride[swapped ? A : B];
      product.d.batchStride = batch.stride[C];
      choice.work *= double(batch.size);
      if (!best || choice.work > best->work)
        best = choice;
    }
  if (!best)
    return std::nullopt;
  double calls = 1;
  for (const Loops *loops : {&nest.batches, &nest.rows, &nest.columns})
    for (const Loop &loop : *loops)
      calls *= double(loop.size);
  if (calls / best->work > kMaxCalls)
    return std::nullopt;
  return best;
}

int64_t product(std::span<const int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

Loop take(Loops &loops, size_t i) {
  Loop loop = loops[i];
  loops.erase(loops.begin() + i);
  return loop;
}

} // namespace

Result<Products> Products::create(const Contraction::Operand &a,
                                  const Contraction::Operand &b,
                                  const Contraction::Operand &c,
                                  const Epilogue &epilogue) {
  Result<Contraction> loops = Contraction::create(a, b, c);
  if (!loops)
    return loops.error();
  Products products;
  products.epilogue = epilogue;
  std::copy(std::begin(loops->dtypes), std::end(loops->dtypes),
            products.dtypes);
  const DType input = a.dtype, output = c.dtype;
  const bool wide = input == DType::F64 && output == DType::F64;
  const bool narrow =
      (input == DType::BF16 || input == DType::F16 || input == DType::F32) &&
      (output == input || output == DType::F32);
  if (a.dtype != b.dtype || !(wide || narrow))
    return Error{"the cuda backend has no product of " +
                 std::string(info(a.dtype).name) + " and " +
                 info(b.dtype).name + " to " + info(c.dtype).name +
                 "; both factors need one type of f64, f32, bf16 or f16, and "
                 "the result that type or f32"};
  if (wide && (epilogue.bias || epilogue.gelu))
    return Error{"a product of f64 has no epilogue on the cuda backend"};
  if (epilogue.bias && loops->columns.size() != 1)
    return Error{"a product with a bias needs one column label, not " +
                 std::to_string(loops->columns.size())};
  if (loops->empty) {
    products.empty = true;
    return products;
  }
  if (loops->sumsNothing) {
    if (epilogue.bias || epilogue.gelu)
      return Error{"a product with an epilogue sums no terms"};
    products.zero = true;
    return products;
  }

  // The cheapest set of operands to stage.
  const Contraction::Operand *operands[] = {&a, &b, &c};
  std::optional<Choice> best;
  Nest nest;
  int64_t bestBytes = 0;
  unsigned bestSet = 0;
  for (unsigned set = 0; set < 8; ++set) {
    Contraction staged = *loops;
    int64_t bytes = 0;
    for (int t : {A, B, C})
      if (set >> t & 1) {
        makeDense(staged, t);
        bytes += ::product(operands[t]->sizes) * info(operands[t]->dtype).bytes;
      }
    if (best && bytes >= bestBytes)
      continue;
    Nest merged{mergedOrOne(staged.batches), mergedOrOne(staged.rows),
                mergedOrOne(staged.columns), mergedOrOne(staged.sums)};
    std::optional<Choice> choice = choose(merged, epilogue);
    if (!choice)
      continue;
    best = choice, nest = merged, bestBytes = bytes, bestSet = set;
  }
  if (!best)
    return Error{"a product whose extents are beyond 2^31 - 1"};
  products.product = best->product;

  // Where each operand's labels lie in dense scratch.
  Contraction dense = *loops;
  for (int t : {A, B, C})
    if (bestSet >> t & 1) {
      makeDense(dense, t);
      Staging staging;
      auto add = [&](const Loops &from, const Loops &to) {
        for (size_t i = 0; i < from.size(); ++i) {
          staging.sizes.push_back(from[i].size);
          staging.strides.push_back(from[i].stride[t]);
          staging.dense.push_back(to[i].stride[t]);
        }
      };
      add(loops->batches, dense.batches);
      if (t != B)
        add(loops->rows, dense.rows);
      if (t != A)
        add(loops->columns, dense.columns);
      if (t != C)
        add(loops->sums, dense.sums);
      staging.elements = ::product(staging.sizes);
      products.staged[t] = std::move(staging);
    }
  if (epilogue.bias && epilogue.biasStride != 1 && best->product.m != 1)
    products.staged[Bias] =
        Staging{{best->product.m}, {epilogue.biasStride}, {1}, best->product.m};

  take(nest.batches, best->batch);
  take(nest.rows, best->row);
  take(nest.columns, best->column);
  Loops outer = nest.batches;
  outer.insert(outer.end(), nest.rows.begin(), nest.rows.end());
  outer.insert(outer.end(), nest.columns.begin(), nest.columns.end());
  products.calls.push_back({0, 0, 0});
  for (const Loop &loop : outer) {
    auto before = std::move(products.calls);
    products.calls.clear();
    for (const std::array<int64_t, 3> &at : before)
      for (int64_t i = 0; i < loop.size; ++i) {
        products.calls.push_back(at);
        for (int t : {A, B, C})
          products.calls.back()[t] += i * loop.stride[t];
      }
  }

  if (epilogue.aux) {
    // The library stores it with rows of its own length, a multiple of 8.
    const MatrixProduct &shape = products.product;
    bool asC =
        std::equal(epilogue.auxStrides.begin(), epilogue.auxStrides.end(),
                   c.strides.begin(), c.strides.end());
    if (products.calls.size() != 1 || shape.batch != 1 || !asC ||
        products.staged[C])
      return Error{"the second result of a product must lie in memory as the "
                   "first, in one matrix"};
    products.auxLeading = (shape.m + 7) / 8 * 8;
    if (products.auxLeading != shape.d.leading)
      products.staged[Aux] = Staging{{shape.n, shape.m},
                                     {shape.d.leading, 1},
                                     {products.auxLeading, 1},
                                     shape.n * products.auxLeading};
  }
  return products;
}
