//===- AttentionPlan.h - attention as a graph of cuDNN's --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_CUDNN_ATTENTIONPLAN_H
#define TESSERA_BACKENDS_CUDA_CUDNN_ATTENTIONPLAN_H

#include "Backends/CUDA/CuDNN/CuDNN.h"
#include "Backends/CUDA/Driver/Device.h"
#include "Support/DType.h"

#include <array>
#include <map>
#include <memory>
#include <optional>

namespace tessera::cuda {

/// All that a plan depends on. Strides are in elements, of [b, h, s, d] and
/// [b, h, s].
struct AttentionShape {
  using Strides = std::array<int64_t, 4>;

  DType dtype; ///< bf16 or f16
  bool causal;
  /// `groups`: of heads with the same keys. `depth`: elements of a head.
  int64_t batch, heads, groups, queries, keys, depth;
  Strides q, k, v, o;
  /// There is one for gradients.
  std::optional<std::array<int64_t, 3>> lse;
  /// Of the gradients of the result, and of query, key and value: it is the
  /// gradient of an attention then.
  struct Grads {
    Strides o, q, k, v;
    auto operator<=>(const Grads &) const = default;
  };
  std::optional<Grads> grads = std::nullopt;

  auto operator<=>(const AttentionShape &) const = default;
  /// "attention of 2 x 16 heads, 4096 queries on 4096 keys of 128 bf16, causal"
  std::string text() const;
};

/// What a variant pack gives an address for. Those from Scale on are numbers of
/// the host's: f32, f32, i32, i32, f32; Keys and Queries only if
/// `needsLengths`.
enum class AttentionTensor : int64_t {
  Q = 1,
  K,
  V,
  O,
  Lse,
  // Of gradients alone.
  OGrad,
  QGrad,
  KGrad,
  VGrad,
  Means, ///< scratch: for each query, an f32
  Scale,
  Never, ///< the score of a key that is not seen
  Keys,
  Queries,
  One, ///< of gradients alone
};
inline bool needsLengths(const AttentionShape &shape) {
  return shape.causal && shape.keys != shape.queries;
}

/// The operations, as a finalized graph; `handle` may be null.
dnn::Object makeAttentionGraph(dnn::Objects &objects,
                               const AttentionShape &shape, dnn::Handle handle);

/// Why this cuDNN has no right gradients on a GPU, the same in every run.
Status whyNotGradients(const dnn::Api &api, const Device &device);

/// A graph with the engine that runs it.
class AttentionPlan {
public:
  /// The first that the heuristics propose, can be made ready, and has the same
  /// bits in every run. Needs the handle's CUDA context.
  static Result<std::unique_ptr<AttentionPlan>>
  create(const dnn::Api &api, dnn::Handle handle, const AttentionShape &shape);

  dnn::Object object() const { return plan; }
  int64_t workspace() const { return bytes; }
  /// cuDNN's number of the engine.
  int64_t engine() const { return number; }

private:
  explicit AttentionPlan(const dnn::Api &api) : graph(api) {}
  /// Makes the plan with an engine's configuration.
  Status take(dnn::Object config);

  // Each of what is above it.
  dnn::Objects graph;
  std::unique_ptr<dnn::Objects> proposed, made;
  dnn::Object plan = nullptr;
  int64_t bytes = 0, number = 0;
};

/// One handle of cuDNN on a device's stream, and the plans made with it.
class CuDNN {
public:
  static Result<std::unique_ptr<CuDNN>> open(const Device &device);
  /// With the device's context current.
  ~CuDNN();

  const dnn::Api &api() const { return api_; }
  dnn::Handle handle() const { return handle_; }
  /// Made for the first that asks, as it takes a second or so, and kept for the
  /// next, unless there are many that nobody uses.
  Result<std::shared_ptr<const AttentionPlan>>
  plan(const AttentionShape &shape);

private:
  CuDNN(const dnn::Api &api, const Device &device)
      : api_(api), device(device) {}

  const dnn::Api &api_;
  const Device &device;
  dnn::Handle handle_ = nullptr;
  std::map<AttentionShape, std::shared_ptr<const AttentionPlan>> plans;
};

} // namespace tessera::cuda

#endif // TESSERA_BACKENDS_CUDA_CUDNN_ATTENTIONPLAN_H
