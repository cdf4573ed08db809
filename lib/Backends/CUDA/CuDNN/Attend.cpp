//===- Attend.cpp - attention on a GPU by cuDNN ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The plan follows from sizes, so its workspace is scratch like any other; what
// it is executed with, from addresses. Both are there before the first run.
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/CuDNN/Attend.h"
#include "Support/Try.h"

#include <limits>

using namespace tessera;
using namespace tessera::cuda;
using namespace tessera::cuda::dnn;

/// What addresses and rows are multiples of, in bytes.
static constexpr int64_t kPiece = 16;

namespace {

/// The tensors of a step by their numbers less one, from Q on; null: none.
using Operands = std::array<const LocalTensor *,
                            static_cast<size_t>(AttentionTensor::VGrad)>;
const LocalTensor *get(const Operands &of, AttentionTensor tensor) {
  return of[static_cast<size_t>(tensor) - 1];
}

class AttendWork final : public Work {
  using T = AttentionTensor;

public:
  AttendWork(Binaries &binaries, const CuDNN &library,
             const AttentionShape &shape, double scale)
      : binaries(binaries), library(library), shape(shape),
        scale(static_cast<float>(scale)),
        keys(static_cast<int32_t>(shape.keys)),
        queries(static_cast<int32_t>(shape.queries)) {}

  Status plan(CuDNN &library, const Operands &of) {
    for (size_t i = 0; i < of.size(); ++i)
      if (of[i])
        places.emplace_back(static_cast<T>(i + 1), placeOf(*of[i]));
    const int64_t rows = shape.batch * shape.heads * shape.queries;
    if (rows == 0 || shape.keys == 0) {
      if (shape.grads)
        fill(of, {T::QGrad, T::KGrad, T::VGrad}, zero);
      else
        fill(of, {T::O}, zero);
      if (!shape.grads && get(of, T::Lse))
        fill(of, {T::Lse}, std::as_bytes(std::span(&never, 1)));
      return Ok{};
    }
    Result<std::shared_ptr<const AttentionPlan>> found = library.plan(shape);
    if (!found)
      return found.error();
    chosen = std::move(*found);
    if (shape.grads)
      places.emplace_back(T::Means, takeScratch(rows * int64_t(sizeof(float))));
    workspace = takeScratch(chosen->workspace(), /*alignment=*/256);
    return Ok{};
  }

  void setAddresses(const Bases &bases) override {
    addresses.clear();
    for (const auto &[tensor, place] : places)
      addresses.push_back(bases(place));
    scratch = bases(workspace);
  }

  Status prepare() override {
    if (!fills.empty()) {
      RuntimeLaunches launches(binaries.device().multiprocessors());
      for (const Fill &fill : fills)
        for (size_t i = 0; i < places.size(); ++i)
          if (places[i].first == fill.tensor)
            launches.fill(fill.loop, addresses[i], fill.value.data(),
                          fill.value.size());
      return queue.prepare(binaries, std::move(launches.launches));
    }
    if (!chosen)
      return Ok{};
    std::vector<int64_t> ids;
    std::vector<void *> pointers;
    auto add = [&](T tensor, void *pointer) {
      ids.push_back(static_cast<int64_t>(tensor));
      pointers.push_back(pointer);
    };
    for (size_t i = 0; i < places.size(); ++i)
      add(places[i].first, addresses[i]);
    add(T::Scale, &scale);
    if (shape.causal)
      add(T::Never, &never);
    if (needsLengths(shape)) {
      add(T::Keys, &keys);
      add(T::Queries, &queries);
    }
    if (shape.grads)
      add(T::One, &one);
    pack = objects.make(Kind::Pack);
    objects.set(pack, Field::PackIds, std::span<const int64_t>(ids));
    objects.set(pack, Field::PackPointers, std::span<void *const>(pointers));
    objects.set(pack, Field::PackWorkspace, static_cast<void *>(scratch));
    objects.finalize(pack);
    return objects.status;
  }

  Status run(const Running &) override {
    if (!fills.empty())
      return queue.enqueue();
    if (!chosen)
      return Ok{};
    const Api &api = library.api();
    const dnn::Code code =
        api.execute(library.handle(), chosen->object(), pack);
    return code ? api.check(code, "run attention") : Status(Ok{});
  }

  std::string text() const override {
    if (!chosen)
      return "attention over nothing";
    return "cuDNN's " + shape.text() + ", engine " +
           std::to_string(chosen->engine());
  }

private:
  /// Where there is no pair of a query and a key.
  struct Fill {
    T tensor;
    CopyLoop loop;
    std::span<const std::byte> value;
  };
  void fill(const Operands &of, std::initializer_list<T> tensors,
            std::span<const std::byte> value) {
    for (T each : tensors)
      if (const LocalTensor &tensor = *get(of, each); tensor.elements())
        fills.push_back(
            {each,
             CopyLoop(tensor.elementBytes(), tensor.sizes, tensor.strides,
                      layout::Shape(tensor.sizes.size(), 0)),
             value});
  }

  Binaries &binaries;
  const CuDNN &library;
  const AttentionShape shape;
  std::vector<std::pair<T, Place>> places;
  std::vector<std::byte *> addresses; ///< of these
  Place workspace{Place::kScratch, 0};
  std::byte *scratch = nullptr;
  std::shared_ptr<const AttentionPlan> chosen;
  Objects objects{library.api()};
  Object pack = nullptr;
  // cuDNN reads them when it is called.
  float scale, never = -std::numeric_limits<float>::infinity(), one = 1;
  int32_t keys, queries;
  std::vector<Fill> fills;
  static constexpr std::byte zero[2] = {};
  RuntimeQueue queue;
};

} // namespace

static Result<AttentionShape> shapeOf(const Operands &of, bool causal,
                                      const Tensors &tensors,
                                      const std::vector<int> &ids) {
  using T = AttentionTensor;
  const auto [q, k, v, o, lse, oGrad, qGrad, kGrad, vGrad] = of;
  AttentionShape shape;
  shape.dtype = q->dtype;
  shape.causal = causal;
  shape.batch = q->sizes[0], shape.heads = q->sizes[1];
  shape.groups = k->sizes[1], shape.queries = q->sizes[2];
  shape.keys = k->sizes[2], shape.depth = q->sizes[3];
  bool fits = q->sizes == o->sizes && k->sizes == v->sizes &&
              k->sizes[0] == shape.batch && k->sizes[3] == shape.depth &&
              (!lse || std::equal(lse->sizes.begin(), lse->sizes.end(),
                                  q->sizes.begin()));
  if (oGrad) {
    shape.grads.emplace();
    fits = fits && oGrad->sizes == q->sizes && qGrad->sizes == q->sizes &&
           kGrad->sizes == k->sizes && vGrad->sizes == k->sizes;
  }
  if (!fits ||
      (shape.heads && (!shape.groups || shape.heads % shape.groups != 0)))
    return Error{"query, key, value and result of an attention have local "
                 "shapes that do not fit together"};
  if (causal && shape.queries > shape.keys)
    return Error{"causal attention of " + std::to_string(shape.queries) +
                 " queries on " + std::to_string(shape.keys) +
                 " keys; cuDNN needs as many keys as queries, or more"};
  if (oGrad && shape.queries == 1 && shape.keys == 1)
    return Error{"cuDNN has no gradients of attention of one query on one key"};
  const int64_t piece = kPiece / q->elementBytes();
  auto take = [&](T which, AttentionShape::Strides &strides) -> Status {
    const LocalTensor &tensor = *get(of, which);
    bool aligned = tensor.isAligned(kPiece) && tensor.strides[3] == 1 &&
                   shape.depth % piece == 0;
    for (int dim = 0; dim < 3; ++dim)
      aligned &= tensor.sizes[dim] <= 1 || tensor.strides[dim] % piece == 0;
    if (!aligned)
      return Error{tensors.name(ids[static_cast<size_t>(which) - 1]) +
                   " must lie in rows of " + std::to_string(kPiece) +
                   "-byte pieces for cuDNN's attention"};
    std::copy_n(tensor.strides.begin(), 4, strides.begin());
    return Ok{};
  };
  TSR_TRY(take(T::Q, shape.q));
  TSR_TRY(take(T::K, shape.k));
  TSR_TRY(take(T::V, shape.v));
  TSR_TRY(take(T::O, shape.o));
  if (lse) {
    if (!lse->isAligned(kPiece))
      return Error{tensors.name(ids[static_cast<size_t>(T::Lse) - 1]) +
                   " must begin at a multiple of " + std::to_string(kPiece) +
                   " bytes for cuDNN's attention"};
    shape.lse.emplace();
    std::copy_n(lse->strides.begin(), 3, shape.lse->begin());
  }
  if (shape.grads) {
    TSR_TRY(take(T::OGrad, shape.grads->o));
    TSR_TRY(take(T::QGrad, shape.grads->q));
    TSR_TRY(take(T::KGrad, shape.grads->k));
    TSR_TRY(take(T::VGrad, shape.grads->v));
  }
  return shape;
}

Result<std::unique_ptr<Work>>
tessera::cuda::makeAttend(Binaries &binaries, CuDNN &library,
                          const fb::AttendT &attend, Tensors &tensors) {
  const std::vector<int> ids = {
      attend.query,      attend.key,      attend.value,
      attend.result,     attend.lse,      attend.grad,
      attend.query_grad, attend.key_grad, attend.value_grad};
  Operands local = {};
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] >= 0) {
      Result<const LocalTensor *> tensor = tensors.get(ids[i]);
      if (!tensor)
        return tensor.error();
      local[i] = *tensor;
    }
  Result<AttentionShape> shape = shapeOf(local, attend.causal, tensors, ids);
  if (!shape)
    return shape.error();
  auto work =
      std::make_unique<AttendWork>(binaries, library, *shape, attend.scale);
  TSR_TRY(work->plan(library, local));
  return std::unique_ptr<Work>(std::move(work));
}
