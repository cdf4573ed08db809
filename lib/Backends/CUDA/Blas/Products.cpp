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

#include "Backends/CUDA/Blas/Products.h"
#include "Support/CuBLASLt.h"

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

/// The same of a factor. A single row that is dense in memory is a column of
/// its transpose, which is aligned as that is.
std::optional<MatrixProduct::Matrix> factorOf(int64_t rows, int64_t columns,
                                              int64_t rowStride,
                                              int64_t columnStride) {
  if (rows == 1 && columnStride == 1 && columns <= INT_MAX)
    return MatrixProduct::Matrix{true, columns, 0};
  return matrixOf(rows, columns, rowStride, columnStride);
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

/// Aux has a leading dimension of its own, and each call begins its sums anew.
bool needsOneCall(const Epilogue &epilogue) {
  return epilogue.aux || epilogue.summed != fb::Summed::None;
}

std::optional<Choice> choose(const Nest &nest, const Epilogue &epilogue) {
  if (nest.sums.size() != 1)
    return std::nullopt;
  std::optional<Choice> best;
  const Loop &sum = nest.sums[0];
  for (size_t i = 0; i < nest.rows.size(); ++i)
    for (size_t j = 0; j < nest.columns.size(); ++j) {
      const Loop &row = nest.rows[i], &column = nest.columns[j];
      auto a = factorOf(row.size, sum.size, row.stride[A], sum.stride[A]);
      auto b = factorOf(sum.size, column.size, sum.stride[B], column.stride[B]);
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
      if (needsOneCall(epilogue) &&
          (nest.rows.size() != 1 || nest.columns.size() != 1))
        continue;
      Choice choice{0, i, j, {}, double(row.size) * double(column.size)};
      MatrixProduct &product = choice.product;
      product.k = sum.size;
      product.swapped = swapped;
      if (swapped) {
        product.m = column.size, product.n = row.size;
        product.x =
            *factorOf(column.size, sum.size, column.stride[B], sum.stride[B]);
        product.y = *factorOf(sum.size, row.size, sum.stride[A], row.stride[A]);
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

Status cuda::checkEpilogue(const fb::ContractT &contract) {
  const fb::Summed summed = contract.summed;
  return checkCuBLASLt(
      {.addend = contract.addend >= 0,
       .bias = contract.bias >= 0,
       .aux = contract.aux >= 0,
       .gelu = contract.epilogue == fb::Epilogue::GeluTanh,
       .slope = contract.epilogue == fb::Epilogue::GeluTanhGrad,
       .sumsOfFactor = summed == fb::Summed::A || summed == fb::Summed::B,
       .sumsOfResult = summed == fb::Summed::C,
       .a = contract.a_labels,
       .b = contract.b_labels,
       .c = contract.c_labels});
}

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
  if (wide && (epilogue.bias || epilogue.gelu || needsOneCall(epilogue)))
    return Error{"a product of f64 has no epilogue on the cuda backend"};
  if (epilogue.bias && loops->columns.size() != 1)
    return Error{"a product with a bias needs one column label, not " +
                 std::to_string(loops->columns.size())};
  if (needsOneCall(epilogue))
    for (const Loop &loop : loops->batches)
      if (loop.size != 1)
        return Error{"a product with a second result, or with sums, is of one "
                     "matrix, not of a batch"};
  if (epilogue.summed != fb::Summed::None) {
    const Loops &kept =
        epilogue.summed == fb::Summed::A ? loops->rows : loops->columns;
    products.numSums = 1;
    for (const Loop &loop : kept)
      products.numSums *= loop.size;
    if (loops->empty && epilogue.summed != fb::Summed::C)
      return Error{"a product with sums of a factor has no elements"};
  }
  if (loops->empty && products.numSums == 0) {
    products.empty = true;
    return products;
  }
  if (loops->empty || loops->sumsNothing) {
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
  if (products.numSums > 1 && epilogue.sumsStride != 1)
    products.staged[Sums] = Staging{
        {products.numSums}, {epilogue.sumsStride}, {1}, products.numSums};

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
    // The library has it in rows of its own length, a multiple of 8.
    const MatrixProduct &shape = products.product;
    products.auxLeading = (shape.m + 7) / 8 * 8;
    const bool asC =
        std::equal(epilogue.auxStrides.begin(), epilogue.auxStrides.end(),
                   c.strides.begin(), c.strides.end());
    if (!asC || products.staged[C] || products.auxLeading != shape.d.leading) {
      // (Its labels come in one order, whatever its strides.)
      Result<Contraction> own = Contraction::create(
          a, b, {c.dtype, c.sizes, epilogue.auxStrides, c.labels});
      if (!own)
        return own.error();
      Staging staging;
      auto add = [&](const Loops &from, const Loops &to, auto place) {
        for (size_t i = 0; i < from.size(); ++i) {
          staging.sizes.push_back(from[i].size);
          staging.strides.push_back(from[i].stride[C]);
          staging.dense.push_back(place(to[i].stride[C]));
        }
      };
      add(own->rows, dense.rows, [&](int64_t stride) {
        return stride / shape.d.leading * products.auxLeading;
      });
      add(own->columns, dense.columns, [](int64_t stride) { return stride; });
      staging.elements = shape.n * products.auxLeading;
      products.staged[Aux] = std::move(staging);
    }
  }
  return products;
}
