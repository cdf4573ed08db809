//===- AttentionPlan.cpp - attention as a graph of cuDNN's ----------------===//
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
// that are never in memory.
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/CuDNN/AttentionPlan.h"
#include "Support/Try.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::cuda;
using namespace tessera::cuda::dnn;

std::string AttentionShape::text() const {
  return std::to_string(batch) + " x " + std::to_string(heads) + " heads, " +
         std::to_string(queries) + " queries on " + std::to_string(keys) +
         " keys of " + std::to_string(depth) + " " + info(dtype).name +
         (groups != heads ? ", " + std::to_string(groups) + " groups" : "") +
         (causal ? ", causal" : "");
}

//===----------------------------------------------------------------------===//
// The graph
//===----------------------------------------------------------------------===//

namespace {

/// What tensors in memory are aligned to, in bytes.
constexpr int64_t kAlignment = 16;

class GraphBuilder {
public:
  GraphBuilder(Objects &objects, const AttentionShape &shape)
      : objects(objects), shape(shape) {}

  Object build(Handle handle) {
    const auto &[dtype, causal, b, h, g, s, t, d, q, k, v, o, lse] = shape;
    const DataType half = dtype == DType::F16 ? DataType::F16 : DataType::BF16;
    using T = AttentionTensor;
    Object query = memory(T::Q, half, {b, h, s, d}, q);
    Object keys = memory(T::K, half, {b, g, d, t}, {k[0], k[1], k[3], k[2]});
    Object scores = scored();
    matmul(query, keys, scores);
    scores = pointwise(Mode::Mul, scored(), scores, number(T::Scale));
    if (causal)
      scores = masked(scores);

    Object maximum = rowed(), total = rowed(), lseOf;
    reduce(Operator::Max, scores, maximum);
    Object shifted = pointwise(Mode::Sub, scored(), scores, maximum);
    Object weights = pointwise(Mode::Exp, scored(), shifted);
    reduce(Operator::Sum, weights, total);
    Object log = pointwise(Mode::Log, rowed(), total);
    if (lse)
      lseOf = memory(T::Lse, DataType::F32, {b, h, s, 1},
                     {(*lse)[0], (*lse)[1], (*lse)[2], 1});
    else
      lseOf = rowed();
    pointwise(Mode::Add, lseOf, maximum, log);
    // As the matrix product takes it.
    Object shares = pointwise(Mode::Div, scored(half), weights, total);
    matmul(shares, memory(T::V, half, {b, g, t, d}, v),
           memory(T::O, half, {b, h, s, d}, o));

    Object graph = objects.make(Kind::Graph);
    objects.set(graph, Field::GraphOps, std::span<const Object>(ops));
    if (handle)
      objects.set(graph, Field::GraphHandle, handle);
    objects.finalize(graph);
    return graph;
  }

private:
  using Four = AttentionShape::Strides;

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
  /// One of the host's.
  Object number(AttentionTensor which, DataType type = DataType::F32) {
    Object tensor =
        begin(static_cast<int64_t>(which), type, {1, 1, 1, 1}, {1, 1, 1, 1});
    objects.set(tensor, Field::TensorByValue, true);
    return end(tensor);
  }
  /// Never in memory: one for each query and key, or each query.
  Object made(DataType type, int64_t last) {
    const int64_t h = shape.heads, s = shape.queries;
    Object tensor = begin(nextId++, type, {shape.batch, h, s, last},
                          {h * s * last, s * last, last, 1});
    objects.set(tensor, Field::TensorVirtual, true);
    return end(tensor);
  }
  Object scored(DataType type = DataType::F32) {
    return made(type, shape.keys);
  }
  Object rowed() { return made(DataType::F32, 1); }

  //===--------------------------------------------------------------------===//
  // Operations
  //===--------------------------------------------------------------------===//

  void matmul(Object a, Object b, Object c) {
    Object desc = objects.make(Kind::Matmul);
    objects.set(desc, Field::MatmulType, DataType::F32);
    objects.finalize(desc);
    Object op = objects.make(Kind::MatmulOp);
    objects.set(op, Field::MatmulOpDesc, desc);
    objects.set(op, Field::MatmulOpA, a);
    objects.set(op, Field::MatmulOpB, b);
    objects.set(op, Field::MatmulOpC, c);
    ops.push_back(end(op));
  }

  void reduce(Operator by, Object x, Object y) {
    Object desc = objects.make(Kind::Reduction);
    objects.set(desc, Field::ReductionType, DataType::F32);
    objects.set(desc, Field::ReductionOperator, by);
    objects.finalize(desc);
    Object op = objects.make(Kind::ReductionOp);
    objects.set(op, Field::ReductionOpDesc, desc);
    objects.set(op, Field::ReductionOpX, x);
    objects.set(op, Field::ReductionOpY, y);
    ops.push_back(end(op));
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
  std::vector<Object> ops;
  int64_t nextId = 100; ///< of what is never in memory
};

} // namespace

Object tessera::cuda::makeAttentionGraph(Objects &objects,
                                         const AttentionShape &shape,
                                         Handle handle) {
  return GraphBuilder(objects, shape).build(handle);
}

//===----------------------------------------------------------------------===//
// Engines
//===----------------------------------------------------------------------===//

/// What a heuristic proposes for a graph, the best first.
static std::vector<Object> propose(Objects &objects, Object graph,
                                   Heuristic mode) {
  Object heuristics = objects.make(Kind::Heuristics);
  objects.set(heuristics, Field::HeuristicsGraph, graph);
  objects.set(heuristics, Field::HeuristicsMode, mode);
  objects.finalize(heuristics);
  const int64_t count =
      objects.get(heuristics, Field::HeuristicsResults, std::span<Object>());
  std::vector<Object> configs;
  for (int64_t i = 0; i < count; ++i)
    configs.push_back(objects.make(Kind::Config));
  configs.resize(
      objects.get(heuristics, Field::HeuristicsResults, std::span(configs)));
  return configs;
}

Status AttentionPlan::take(Object config) {
  std::array<Object, 1> engine = {made->make(Kind::Engine)};
  made->get(config, Field::ConfigEngine, std::span<Object>(engine));
  made->get(engine[0], Field::EngineIndex, std::span(&number, 1));
  std::array<Note, static_cast<int>(Note::Count)> notes;
  const int64_t count =
      made->get(engine[0], Field::EngineNotes, std::span<Note>(notes));
  if (made->status &&
      std::count(notes.begin(), notes.begin() + count, Note::Nondeterministic))
    return Error{"it has other bits in every run"};
  plan = made->make(Kind::Plan);
  made->set(plan, Field::PlanConfig, config);
  made->finalize(plan);
  made->get(plan, Field::PlanWorkspace, std::span(&bytes, 1));
  return made->status;
}

Result<std::unique_ptr<AttentionPlan>>
AttentionPlan::create(const Api &api, Handle handle,
                      const AttentionShape &shape) {
  std::unique_ptr<AttentionPlan> result(new AttentionPlan(api));
  Object graph = makeAttentionGraph(result->graph, shape, handle);
  if (!result->graph.status)
    return result->graph.status.error();
  std::string why;
  auto refuse = [&](const std::string &reason) {
    if (why.find(reason) == std::string::npos)
      why += (why.empty() ? ": " : "; ") + reason;
  };
  for (Heuristic mode : {Heuristic::A, Heuristic::Fallback}) {
    result->proposed = std::make_unique<Objects>(api);
    const std::vector<Object> configs = propose(*result->proposed, graph, mode);
    if (!result->proposed->status)
      refuse(result->proposed->status.message());
    for (Object config : configs) {
      result->made = std::make_unique<Objects>(api);
      Status taken = result->take(config);
      if (taken)
        return result;
      refuse("engine " + std::to_string(result->number) + ": " +
             taken.message());
    }
    result->made.reset(); // before what it was made of
  }
  return Error{"cuDNN " + api.version() + " has no engine for attention of " +
               shape.text() + why};
}

//===----------------------------------------------------------------------===//
// The handle
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<CuDNN>> CuDNN::open(const Device &device) {
  Result<const Api *> api = Api::get();
  if (!api)
    return api.error();
  Device::Current current(device);
  std::unique_ptr<CuDNN> result(new CuDNN(**api, device));
  TSR_TRY((*api)->check((*api)->create(&result->handle_), "make a handle"));
  TSR_TRY((*api)->check((*api)->setStream(result->handle_, device.stream()),
                        "take a stream"));
  return result;
}

CuDNN::~CuDNN() {
  plans.clear();
  if (handle_)
    api_.destroy(handle_);
}

/// How many plans there may be before those that nobody uses go.
static constexpr size_t kManyPlans = 64;

Result<std::shared_ptr<const AttentionPlan>>
CuDNN::plan(const AttentionShape &shape) {
  if (auto found = plans.find(shape); found != plans.end())
    return found->second;
  Device::Current current(device);
  if (plans.size() >= kManyPlans)
    std::erase_if(
        plans, [](const auto &each) { return each.second.use_count() == 1; });
  Result<std::unique_ptr<AttentionPlan>> made =
      AttentionPlan::create(api_, handle_, shape);
  if (!made)
    return made.error();
  return plans[shape] = std::move(*made);
}
