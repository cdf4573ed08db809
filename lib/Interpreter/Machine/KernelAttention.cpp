//===- KernelAttention.cpp - runs attention of kernels -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Machine/Kernels.h"
#include "Interpreter/Ops/Evaluators.h"
#include "Plan/Plan.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

LogicalResult Kernel::useAttention(Operation *op, ArrayRef<Value> tensors,
                                   ArrayRef<Value> scalars, Step &step) {
  for (Value tensor : tensors)
    if (tensor && failed(useMemref(op, tensor, step.tensors.emplace_back())))
      return failure();
  for (Value scalar : scalars)
    if (scalar && failed(use(op, scalar, step.in)))
      return failure();
  for (Region &region : op->getRegions())
    if (failed(compile(region, step.functors.emplace_back())))
      return failure();
  return success();
}

std::optional<bool> Kernel::isKept(const Functor &maskMod,
                                   const Functor &blockMod,
                                   ArrayRef<Scalar> pair) {
  int64_t kind = 1;
  if (!blockMod.arguments.empty()) {
    std::optional<Scalar> value = call(blockMod, pair);
    if (!value)
      return std::nullopt;
    kind = value->whole;
  }
  if (kind == 0 || kind == 2 || maskMod.arguments.empty())
    return kind != 0;
  std::optional<Scalar> value = call(maskMod, pair);
  if (!value)
    return std::nullopt;
  return value->whole != 0;
}

/// What dropout multiplies a weight by; `memory` has its step.
template <typename Op>
std::optional<double> Kernel::dropoutFactor(const Step &step, Op op,
                                            unsigned memory,
                                            ArrayRef<Scalar> pair) {
  if (!op.getDropout())
    return 1;
  std::optional<Scalar> number =
      call(step.functors[op.getNumberMod().getRegionNumber()], pair);
  Scalar at = whole(0);
  if (!number || (op.getStep() && !read(step, step.tensors[memory], {}, at)))
    return std::nullopt;
  const double rate = op.getDropout()->convertToDouble();
  const int64_t seed = scalars.slots[step.in[0]].whole,
                stream = scalars.slots[step.in[1]].whole;
  const double drawn = randomNumber(seed, stream + (at.whole << 32),
                                    number->whole, tv::DropoutOp::kBits);
  return tv::DropoutOp::keeps(rate, drawn) ? 1 / (1 - rate) : 0;
}

template <typename Op>
std::optional<bool> Kernel::sees(const Step &step, Op op, ArrayRef<Scalar> pair,
                                 int64_t queries, int64_t keys) {
  if (!op.getCausal())
    return true;
  int64_t last = pair[2].whole + keys - queries;
  if (!op.getCausalMod().empty()) {
    std::optional<Scalar> value =
        call(step.functors[op.getCausalMod().getRegionNumber()], pair);
    if (!value)
      return std::nullopt;
    last = value->whole;
  }
  return pair[3].whole <= last;
}

const std::vector<double> *Kernel::readRow(const Step &step, int memref,
                                           Rows &rows,
                                           std::array<int64_t, 3> outer) {
  auto [it, isNew] = rows.try_emplace(outer);
  if (!isNew)
    return &it->second;
  for (int64_t i = 0, e = memrefs[memref].shape[3]; i < e; ++i) {
    Scalar value;
    if (!read(step, memref, {outer[0], outer[1], outer[2], i}, value))
      return nullptr;
    it->second.push_back(value.real);
  }
  return &it->second;
}

static double dot(ArrayRef<double> a, ArrayRef<double> b) {
  double sum = 0;
  for (auto [x, y] : llvm::zip(a, b))
    sum += x * y;
  return sum;
}

/// The sequence of each of so many positions, by a list of tv.packed_tiles; -1
/// where there is none.
bool Kernel::readSequences(const Step &step, int tiles, int64_t positions,
                           std::vector<int64_t> &sequenceOf) {
  bool failed = false;
  auto word = [&](int64_t at) {
    Scalar value;
    failed |= !read(step, tiles, {0, at}, value);
    return value.whole;
  };
  sequenceOf.assign(positions, -1);
  const int64_t words = memrefs[tiles].shape[1],
                sequences = (words - positions - 4) / 8;
  // Tiles that are data may say anything; what is no position is nothing.
  for (int64_t i = 0; i < sequences && !failed; ++i) {
    const int64_t begin = word(4 + 4 * i), end = begin + word(5 + 4 * i);
    for (int64_t at = std::max<int64_t>(begin, 0),
                 last = std::min(end, positions);
         at < last; ++at)
      sequenceOf[at] = i;
  }
  return !failed;
}

/// By its definition, a query after the other.
bool Kernel::runAttention(const Step &step) {
  auto op = cast<plan::AttentionOp>(step.op);
  const int q = step.tensors[0], k = step.tensors[1], v = step.tensors[2];
  const Shape &queries = memrefs[q].shape;
  const int64_t own = memrefs[k].shape[2], depth = memrefs[v].shape[3];
  const int64_t keys =
      op.getPages() ? memrefs[step.tensors.back()].shape[1] * own : own;
  Rows ofQueries, ofKeys, ofValues;
  // A key or a value; nothing, for zeros, in a page that there is not.
  const std::vector<double> none;
  auto keyRow = [&](int tensor, Rows &rows, int64_t batch, int64_t head,
                    int64_t key) -> const std::vector<double> * {
    if (op.getPages()) {
      Scalar page;
      if (!read(step, step.tensors.back(), {batch, key / own}, page))
        return nullptr;
      if (page.whole < 0 || page.whole >= memrefs[tensor].shape[0])
        return &none;
      batch = page.whole, key %= own;
    }
    return readRow(step, tensor, rows, {batch, head, key});
  };
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<int64_t> sequenceOf;
  if (op.getTiles() &&
      !readSequences(step, step.tensors.back(), keys, sequenceOf))
    return false;
  Shape rows(queries.begin(), queries.begin() + 3);
  for (int64_t i = 0, e = numElements(rows); i < e; ++i) {
    Index row = delinearize(i, rows);
    const int64_t b = row[0], h = row[1], s = row[2];
    const int64_t group = h / (queries[1] / memrefs[k].shape[1]);
    const std::vector<double> *query = readRow(step, q, ofQueries, {b, h, s});
    if (!query)
      return false;
    std::vector<double> scores(keys, -infinity), factors(keys);
    double largest = -infinity, sum = 0;
    for (int64_t t = 0; t < keys; ++t) {
      const std::vector<double> *key = keyRow(k, ofKeys, b, group, t);
      if (!key)
        return false;
      Scalar at[] = {real(dot(*query, *key) * op.getScale().convertToDouble()),
                     whole(b), whole(h), whole(s), whole(t)};
      if (!step.functors[0].arguments.empty()) {
        std::optional<Scalar> value = call(step.functors[0], at);
        if (!value)
          return false;
        at[0] = *value;
      }
      std::optional<bool> kept =
          isKept(step.functors[1], step.functors[2], ArrayRef(at).drop_front());
      std::optional<bool> seen =
          sees(step, op, ArrayRef(at).drop_front(), queries[2], keys);
      if (!kept || !seen)
        return false;
      if (!*kept || !*seen ||
          (op.getTiles() &&
           (sequenceOf[s] < 0 || sequenceOf[s] != sequenceOf[t])))
        at[0] = real(-infinity);
      std::optional<double> factor = dropoutFactor(
          step, op, 4 + bool(op.getLse()), ArrayRef(at).drop_front());
      if (!factor)
        return false;
      factors[t] = *factor;
      scores[t] = at[0].real;
      largest = std::fmax(largest, scores[t]);
    }
    for (double &score : scores)
      sum += score = score == -infinity ? 0 : std::exp(score - largest);
    std::vector<double> totals(depth, 0);
    for (int64_t t = 0; t < keys; ++t) {
      if (scores[t] == 0)
        continue;
      const std::vector<double> *value = keyRow(v, ofValues, b, group, t);
      if (!value)
        return false;
      for (auto [total, x] : llvm::zip(totals, *value))
        total += scores[t] * factors[t] * x;
    }
    for (auto [d, total] : llvm::enumerate(totals))
      if (!writeReal(step, step.tensors[3], {b, h, s, int64_t(d)},
                     sum > 0 ? total / sum : 0))
        return false;
    if (op.getLse() &&
        !writeReal(step, step.tensors[4], row,
                   sum > 0 ? largest + std::log(sum) : -infinity))
      return false;
  }
  return true;
}

/// By the chain rule, a score after the other; the sums are in memory of this
/// function.
bool Kernel::runAttentionGrad(const Step &step) {
  auto op = cast<plan::AttentionGradOp>(step.op);
  enum {
    kGrad,
    kQuery,
    kKey,
    kValue,
    kOutput,
    kLse,
    kGrads,
    kScratch = 9,
    kSums
  };
  const int numSums = op.getSums().size(), lseGrad = kSums + numSums,
            ofHeads = step.tensors.size() - bool(op.getTiles()) - 2;
  auto shapeOf = [&](int n) -> const Shape & {
    return memrefs[step.tensors[n]].shape;
  };
  bool failed = false;
  auto at = [&](int n, ArrayRef<int64_t> index) {
    Scalar value;
    failed |= !read(step, step.tensors[n], index, value);
    return value.real;
  };
  Rows rows[kOutput + 1];
  auto rowAt = [&](int n, int64_t b, int64_t h,
                   int64_t position) -> ArrayRef<double> {
    const std::vector<double> *row =
        readRow(step, step.tensors[n], rows[n], {b, h, position});
    failed |= !row;
    return row ? ArrayRef(*row) : ArrayRef<double>();
  };
  const Shape &queries = shapeOf(kQuery);
  const int64_t keys = shapeOf(kKey)[2], heads = queries[1];
  const double scale = op.getScale().convertToDouble();
  // Of the query, the key and the value, and for captured tensors.
  SmallVector<int> outputs = {kGrads, kGrads + 1, kGrads + 2};
  for (int n = 0; n < numSums; ++n)
    outputs.push_back(kSums + n);
  std::vector<std::vector<double>> sums;
  for (int output : outputs)
    sums.emplace_back(numElements(shapeOf(output)), 0);
  std::vector<int64_t> sequenceOf;
  if (op.getTiles() &&
      !readSequences(step, step.tensors.back(), keys, sequenceOf))
    return false;
  Shape scores = {queries[0], heads, queries[2], keys};
  for (int64_t i = 0, e = numElements(scores); i < e && !failed; ++i) {
    Index score = delinearize(i, scores);
    const int64_t b = score[0], h = score[1], s = score[2], t = score[3];
    const int64_t group = h / (heads / shapeOf(kKey)[1]);
    const double lse = at(kLse, {b, h, s});
    const Scalar pair[] = {whole(b), whole(h), whole(s), whole(t)};
    std::optional<bool> seen = sees(step, op, pair, queries[2], keys);
    if (!seen)
      return false;
    if (lse == -std::numeric_limits<double>::infinity() || !*seen ||
        (op.getTiles() &&
         (sequenceOf[s] < 0 || sequenceOf[s] != sequenceOf[t])))
      continue;
    ArrayRef<double> grad = rowAt(kGrad, b, h, s),
                     query = rowAt(kQuery, b, h, s),
                     mean = rowAt(kOutput, b, h, s),
                     key = rowAt(kKey, b, group, t),
                     value = rowAt(kValue, b, group, t);
    const double product = dot(query, key);
    double slope = op.getLseGrad() ? at(lseGrad, {b, h, s}) : 0;
    std::optional<double> factor =
        dropoutFactor(step, op, lseGrad + bool(op.getLseGrad()), pair);
    if (!factor)
      return false;
    for (auto [g, x, o] : llvm::zip(grad, value, mean))
      slope += g * (*factor * x - o);
    Scalar arguments[] = {real(product * scale),
                          real(product * scale),
                          whole(b),
                          whole(h),
                          whole(s),
                          whole(t)};
    std::optional<Scalar> yielded;
    auto evaluate = [&](int n, ArrayRef<Scalar> given) {
      if (step.functors[n].arguments.empty())
        return false;
      yielded = call(step.functors[n], given);
      failed |= !yielded;
      return bool(yielded);
    };
    std::optional<bool> kept = isKept(step.functors[1], step.functors[3],
                                      ArrayRef(arguments).drop_front(2));
    failed |= !kept;
    if (!kept || !*kept)
      continue;
    double modified = product * scale;
    if (evaluate(0, ArrayRef(arguments).drop_front()))
      modified = yielded->real;
    const double weight = std::exp(modified - lse);
    arguments[1] = real(weight * slope);
    double scoreGrad = weight * slope;
    auto add = [&](int n, ArrayRef<int64_t> index, double addend) {
      sums[n][linearize(index, shapeOf(outputs[n]))] += addend;
    };
    if (evaluate(2, arguments)) {
      scoreGrad = yielded->real;
      for (int n = 0; n < numSums; ++n) {
        const double addend =
            scalars.slots[step.functors[2].code.yields[1 + n]].real;
        StringRef by = cast<StringAttr>(op.getSumsBy()[n]).getValue();
        if (by == "score")
          add(3 + n, {b, h, s, t}, addend);
        else
          add(3 + n,
              {b, h,
               by == "query" ? s
               : by == "key" ? t
                             : s - t + keys},
              addend);
      }
    }
    auto addRow = [&](int n, ArrayRef<int64_t> begin, double factor,
                      ArrayRef<double> row) {
      const int64_t at = linearize(begin, shapeOf(outputs[n]));
      for (auto [d, x] : llvm::enumerate(row))
        sums[n][at + d] += factor * x;
    };
    addRow(0, {b, h, s, 0}, scoreGrad * scale, key);
    addRow(1, {b, group, t, 0}, scoreGrad * scale, query);
    addRow(2, {b, group, t, 0}, weight * *factor, grad);
  }
  // Whatever the kernel leaves there.
  // Its own memory: what it leaves there is no one's.
  SmallVector<int> scratch = {kScratch};
  if (op.getKeyGradOfHeads())
    scratch.append({ofHeads, ofHeads + 1});
  for (int n : scratch)
    for (int64_t i = 0, e = numElements(shapeOf(n)); i < e; ++i)
      if (!writeReal(step, step.tensors[n], delinearize(i, shapeOf(n)), 0))
        return false;
  for (auto [output, all] : llvm::zip_equal(outputs, sums))
    for (auto [i, sum] : llvm::enumerate(all))
      if (failed || !writeReal(step, step.tensors[output],
                               delinearize(i, shapeOf(output)), sum))
        return false;
  return !failed;
}
