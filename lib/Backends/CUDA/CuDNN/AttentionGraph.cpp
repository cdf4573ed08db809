//===- AttentionGraph.cpp - attention as a graph of cuDNN's ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// cuDNN has no op for attention with a mask: an engine for it is found by the
// pattern of the operations, in which nothing may be left out. So the
// log-sum-exp is in the graph even if nobody wants it, as one of the values
// that are never in memory; and in that of the gradients each query's mean, of
// the gradients of its weights, is multiplied by 1 and lies in memory.
//
// Of the two patterns for gradients this is the one that NVIDIA's frontend
// takes when it is asked for the same bits in every run: a matrix product gives
// the query's gradient as it is. In the other it is added up in f32, in memory.
// No note of an engine tells them apart (9.19 gives none for either).
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/CuDNN/AttentionPlan.h"

using namespace tessera;
using namespace tessera::cuda;
using namespace tessera::cuda::dnn;

namespace {

/// What tensors in memory are aligned to, in bytes.
constexpr int64_t kAlignment = 16;

class GraphBuilder {
public:
  GraphBuilder(Objects &objects, const AttentionShape &shape)
      : objects(objects), shape(shape) {}

  Object build(Handle handle) {
    if (shape.grads)
      addGradients();
    else
      addAttention();
    Object graph = objects.make(Kind::Graph);
    objects.set(graph, Field::GraphOps, std::span<const Object>(ops));
    if (handle)
      objects.set(graph, Field::GraphHandle, handle);
    objects.finalize(graph);
    return graph;
  }

private:
  using Four = AttentionShape::Strides;
  using T = AttentionTensor;

  void addAttention() {
    const auto &[dtype, causal, b, h, g, s, t, d, q, k, v, o, lse, grads] =
        shape;
    Object query = memory(T::Q, half, {b, h, s, d}, q);
    Object keys = memory(T::K, half, {b, g, d, t}, swapped(k));
    Object scores = matmul(query, keys, scored());
    scores = pointwise(Mode::Mul, scored(), scores, number(T::Scale));
    if (causal)
      scores = masked(scores);

    Object maximum = rowed(), total = rowed();
    reduce(Operator::Max, scores, maximum);
    Object shifted = pointwise(Mode::Sub, scored(), scores, maximum);
    Object weights = pointwise(Mode::Exp, scored(), shifted);
    reduce(Operator::Sum, weights, total);
    Object log = pointwise(Mode::Log, rowed(), total);
    pointwise(Mode::Add, lse ? logSumExp() : rowed(), maximum, log);
    // As the matrix product takes it.
    Object shares = pointwise(Mode::Div, scored(half), weights, total);
    matmul(shares, memory(T::V, half, {b, g, t, d}, v),
           memory(T::O, half, {b, h, s, d}, o));
  }

  void addGradients() {
    const auto &[dtype, causal, b, h, g, s, t, d, q, k, v, o, lse, grads] =
        shape;
    Object query = memory(T::Q, half, {b, h, s, d}, q);
    Object keys = memory(T::K, half, {b, g, d, t}, swapped(k));
    Object values = memory(T::V, half, {b, g, d, t}, swapped(v));
    Object result = memory(T::O, half, {b, h, s, d}, o);
    Object grad = memory(T::OGrad, half, {b, h, s, d}, grads->o);
    Object scale = number(T::Scale);

    Object dots =
        pointwise(Mode::Mul, made(DataType::F32, {b, h, s, d}), grad, result);
    Object mean = reduce(Operator::Sum, dots, rowed());
    Object means =
        memory(T::Means, DataType::F32, {b, h, s, 1}, {h * s, s, 1, 1});
    pointwise(Mode::Mul, means, mean, number(T::One));

    Object scores = matmul(query, keys, scored());
    scores = pointwise(Mode::Mul, scored(), scores, scale);
    scores = pointwise(Mode::Sub, scored(), scores, logSumExp());
    if (causal)
      scores = masked(scores);
    Object weights = pointwise(Mode::Exp, scored(), scores);
    perKey(transposed(weights), grad,
           memory(T::VGrad, half, {b, g, t, d}, grads->v));

    Object ofWeights = matmul(grad, values, scored());
    Object above = pointwise(Mode::Sub, scored(), ofWeights, means);
    Object ofScores = pointwise(Mode::Mul, scored(), above, weights);
    ofScores = pointwise(Mode::Mul, scored(), ofScores, scale);
    perKey(transposed(ofScores), query,
           memory(T::KGrad, half, {b, g, t, d}, grads->k));
    Object rows = begin(nextId++, half, {b, g, t, d}, k);
    objects.set(rows, Field::TensorVirtual, true);
    matmul(ofScores, reshape(keys, end(rows)),
           memory(T::QGrad, half, {b, h, s, d}, grads->q));
  }

  /// The product of each head, added up by groups.
  void perKey(Object a, Object b, Object result) {
    const int64_t h = shape.heads, t = shape.keys;
    if (h == shape.groups)
      matmul(a, b, result);
    else
      reduce(Operator::Sum,
             matmul(a, b, made(half, {shape.batch, h, t, shape.depth})),
             result);
  }

  /// Keys by queries, as the matrix product takes it.
  Object transposed(Object scores) {
    const int64_t h = shape.heads, s = shape.queries, t = shape.keys;
    Object tensor =
        begin(nextId++, half, {shape.batch, h, t, s}, {h * s * t, s * t, 1, t});
    objects.set(tensor, Field::TensorVirtual, true);
    return reshape(scores, end(tensor));
  }

  //===--------------------------------------------------------------------===//
  // Tensors
  //===--------------------------------------------------------------------===//

  Object begin(int64_t id, DataType type, const Four &sizes,
               const Four &strides) {
    Object tensor = objects.make(Kind::Tensor);
    objects.set(tensor, Field::TensorId, id);
    objects.set(tensor, Field::TensorType, type);
    objects.set(tensor, Field::TensorSizes, std::span<const int64_t>(sizes));
    objects.set(tensor, Field::TensorStrides,
                std::span<const int64_t>(strides));
    objects.set(tensor, Field::TensorAlignment, kAlignment);
    return tensor;
  }
  Object end(Object tensor) {
    objects.finalize(tensor);
    return tensor;
  }
  Object memory(AttentionTensor which, DataType type, const Four &sizes,
                const Four &strides) {
    return end(begin(static_cast<int64_t>(which), type, sizes, strides));
  }
  static Four swapped(const Four &strides) {
    return {strides[0], strides[1], strides[3], strides[2]};
  }
  Object logSumExp() {
    const auto &[b, h, s] = *shape.lse;
    return memory(T::Lse, DataType::F32,
                  {shape.batch, shape.heads, shape.queries, 1}, {b, h, s, 1});
  }
  /// One of the host's.
  Object number(AttentionTensor which, DataType type = DataType::F32) {
    Object tensor =
        begin(static_cast<int64_t>(which), type, {1, 1, 1, 1}, {1, 1, 1, 1});
    objects.set(tensor, Field::TensorByValue, true);
    return end(tensor);
  }
  /// Never in memory.
  Object made(DataType type, const Four &sizes) {
    Object tensor = begin(
        nextId++, type, sizes,
        {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1});
    objects.set(tensor, Field::TensorVirtual, true);
    return end(tensor);
  }
  /// One for each query and key, or each query.
  Object scored(DataType type = DataType::F32) {
    return made(type, {shape.batch, shape.heads, shape.queries, shape.keys});
  }
  Object rowed() {
    return made(DataType::F32, {shape.batch, shape.heads, shape.queries, 1});
  }

  //===--------------------------------------------------------------------===//
  // Operations, which give their last tensor
  //===--------------------------------------------------------------------===//

  Object matmul(Object a, Object b, Object c) {
    Object desc = objects.make(Kind::Matmul);
    objects.set(desc, Field::MatmulType, DataType::F32);
    objects.finalize(desc);
    Object op = objects.make(Kind::MatmulOp);
    objects.set(op, Field::MatmulOpDesc, desc);
    objects.set(op, Field::MatmulOpA, a);
    objects.set(op, Field::MatmulOpB, b);
    objects.set(op, Field::MatmulOpC, c);
    ops.push_back(end(op));
    return c;
  }

  Object reduce(Operator by, Object x, Object y) {
    Object desc = objects.make(Kind::Reduction);
    objects.set(desc, Field::ReductionType, DataType::F32);
    objects.set(desc, Field::ReductionOperator, by);
    objects.finalize(desc);
    Object op = objects.make(Kind::ReductionOp);
    objects.set(op, Field::ReductionOpDesc, desc);
    objects.set(op, Field::ReductionOpX, x);
    objects.set(op, Field::ReductionOpY, y);
    ops.push_back(end(op));
    return y;
  }

  /// The same elements in other dimensions.
  Object reshape(Object x, Object y) {
    Object op = objects.make(Kind::ReshapeOp);
    objects.set(op, Field::ReshapeOpX, x);
    objects.set(op, Field::ReshapeOpY, y);
    ops.push_back(end(op));
    return y;
  }

  /// Gives `y`.
  Object pointwise(Mode mode, Object y, Object x, Object b = nullptr,
                   Object t = nullptr, DataType type = DataType::F32,
                   std::optional<int64_t> axis = std::nullopt) {
    Object desc = objects.make(Kind::Pointwise);
    objects.set(desc, Field::PointwiseMode, mode);
    objects.set(desc, Field::PointwiseType, type);
    if (axis)
      objects.set(desc, Field::PointwiseAxis, *axis);
    objects.finalize(desc);
    Object op = objects.make(Kind::PointwiseOp);
    objects.set(op, Field::PointwiseOpDesc, desc);
    objects.set(op, Field::PointwiseOpX, x);
    if (b)
      objects.set(op, Field::PointwiseOpB, b);
    if (t)
      objects.set(op, Field::PointwiseOpT, t);
    objects.set(op, Field::PointwiseOpY, y);
    ops.push_back(end(op));
    return y;
  }

  /// Query i sees the keys up to i + keys - queries.
  Object masked(Object scores) {
    const DataType whole = DataType::I32;
    Object row = pointwise(Mode::Index, scored(whole), scores, nullptr, nullptr,
                           DataType::F32, 2);
    Object column = pointwise(Mode::Index, scored(whole), scores, nullptr,
                              nullptr, DataType::F32, 3);
    if (needsLengths(shape)) {
      row = pointwise(Mode::Add, scored(whole), row,
                      number(AttentionTensor::Keys, whole), nullptr, whole);
      row = pointwise(Mode::Sub, scored(whole), row,
                      number(AttentionTensor::Queries, whole), nullptr, whole);
    }
    Object seen = pointwise(Mode::GreaterEqual, scored(DataType::Boolean), row,
                            column, nullptr, DataType::Boolean);
    return pointwise(Mode::Select, scored(), scores,
                     number(AttentionTensor::Never), seen);
  }

  Objects &objects;
  const AttentionShape &shape;
  const DataType half =
      shape.dtype == DType::F16 ? DataType::F16 : DataType::BF16;
  std::vector<Object> ops;
  int64_t nextId = 100; ///< of what is never in memory
};

} // namespace

Object tessera::cuda::makeAttentionGraph(Objects &objects,
                                         const AttentionShape &shape,
                                         Handle handle) {
  return GraphBuilder(objects, shape).build(handle);
}
