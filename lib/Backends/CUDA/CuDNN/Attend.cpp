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

class AttendWork final : public Work {
public:
  AttendWork(Binaries &binaries, const CuDNN &library,
             const AttentionShape &shape, double scale)
      : binaries(binaries), library(library), shape(shape),
        scale(static_cast<float>(scale)),
        keys(static_cast<int32_t>(shape.keys)),
        queries(static_cast<int32_t>(shape.queries)) {}

  /// `of`: q, k, v, o, and lse or null.
  Status plan(CuDNN &library, const std::array<const LocalTensor *, 5> &of) {
    for (const LocalTensor *tensor : of)
      if (tensor)
        places.push_back(placeOf(*tensor));
    if (isEmpty())
      return Ok{};
    if (shape.keys == 0) {
      const LocalTensor &o = *of[3];
      fills.emplace_back(o.elementBytes(), o.sizes, o.strides,
                         layout::Shape(o.sizes.size(), 0));
      if (const LocalTensor *lse = of[4])
        fills.emplace_back(lse->elementBytes(), lse->sizes, lse->strides,
                           layout::Shape(lse->sizes.size(), 0));
      return Ok{};
    }
    Result<std::shared_ptr<const AttentionPlan>> found = library.plan(shape);
    if (!found)
      return found.error();
    chosen = std::move(*found);
    workspace = takeScratch(chosen->workspace(), /*alignment=*/256);
    return Ok{};
  }

  void setAddresses(const Bases &bases) override {
    addresses.clear();
    for (const Place &place : places)
      addresses.push_back(bases(place));
    scratch = bases(workspace);
  }

  Status prepare() override {
    if (!fills.empty()) {
      RuntimeLaunches launches(binaries.device().multiprocessors());
      const std::byte zero[2] = {};
      launches.fill(fills[0], addresses[3], zero, sizeof zero);
      if (shape.lse)
        launches.fill(fills[1], addresses[4],
                      reinterpret_cast<const std::byte *>(&never),
                      sizeof never);
      return queue.prepare(binaries, std::move(launches.launches));
    }
    if (!chosen)
      return Ok{};
    for (std::byte *address : addresses)
      if (reinterpret_cast<uintptr_t>(address) % kPiece)
        return Error{"attention by cuDNN needs memory that is aligned to " +
                     std::to_string(kPiece) + " bytes"};
    using T = AttentionTensor;
    std::vector<int64_t> ids;
    std::vector<void *> pointers;
    auto add = [&](T tensor, void *pointer) {
      ids.push_back(static_cast<int64_t>(tensor));
      pointers.push_back(pointer);
    };
    for (size_t i = 0; i < addresses.size(); ++i)
      add(static_cast<T>(static_cast<int64_t>(T::Q) + i), addresses[i]);
    add(T::Scale, &scale);
    if (shape.causal)
      add(T::Never, &never);
    if (needsLengths(shape)) {
      add(T::Keys, &keys);
      add(T::Queries, &queries);
    }
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
    return "cuDNN's attention of " + shape.text() + ", engine " +
           std::to_string(chosen->engine());
  }

private:
  bool isEmpty() const {
    return shape.batch * shape.heads * shape.queries == 0;
  }

  Binaries &binaries;
  const CuDNN &library;
  const AttentionShape shape;
  std::vector<Place> places; ///< of q, k, v, o and lse
  std::vector<std::byte *> addresses;
  Place workspace{Place::kScratch, 0};
  std::byte *scratch = nullptr;
  std::shared_ptr<const AttentionPlan> chosen;
  Objects objects{library.api()};
  Object pack = nullptr;
  // cuDNN reads them when it is called.
  float scale, never = -std::numeric_limits<float>::infinity();
  int32_t keys, queries;
  // When there are no keys.
  std::vector<CopyLoop> fills;
  RuntimeQueue queue;
};

} // namespace

/// Of q, k, v, o, and lse or null.
static Result<AttentionShape>
shapeOf(const std::array<const LocalTensor *, 5> &of, bool causal,
        const Tensors &tensors, const fb::AttendT &attend) {
  const auto [q, k, v, o, lse] = of;
  AttentionShape shape;
  shape.dtype = q->dtype;
  shape.causal = causal;
  shape.batch = q->sizes[0], shape.heads = q->sizes[1];
  shape.groups = k->sizes[1], shape.queries = q->sizes[2];
  shape.keys = k->sizes[2], shape.depth = q->sizes[3];
  const bool fits = q->sizes == o->sizes && k->sizes == v->sizes &&
                    k->sizes[0] == shape.batch && k->sizes[3] == shape.depth &&
                    (!lse || std::equal(lse->sizes.begin(), lse->sizes.end(),
                                        q->sizes.begin()));
  if (!fits ||
      (shape.heads && (!shape.groups || shape.heads % shape.groups != 0)))
    return Error{"query, key, value and result of an attention have local "
                 "shapes that do not fit together"};
  if (causal && shape.queries > shape.keys)
    return Error{"causal attention of " + std::to_string(shape.queries) +
                 " queries on " + std::to_string(shape.keys) +
                 " keys; cuDNN needs as many keys as queries, or more"};
  const int32_t ids[] = {attend.query, attend.key, attend.value, attend.result};
  AttentionShape::Strides *strides[] = {&shape.q, &shape.k, &shape.v, &shape.o};
  const int64_t piece = kPiece / q->elementBytes();
  for (int i = 0; i < 4; ++i) {
    const LocalTensor &tensor = *of[i];
    bool aligned = tensor.offset % piece == 0 && tensor.strides[3] == 1 &&
                   shape.depth % piece == 0;
    for (int dim = 0; dim < 3; ++dim)
      aligned &= tensor.sizes[dim] <= 1 || tensor.strides[dim] % piece == 0;
    if (!aligned)
      return Error{tensors.name(ids[i]) + " must lie in rows of " +
                   std::to_string(kPiece) +
                   "-byte pieces for cuDNN's attention"};
    std::copy_n(tensor.strides.begin(), 4, strides[i]->begin());
  }
  if (lse) {
    shape.lse.emplace();
    std::copy_n(lse->strides.begin(), 3, shape.lse->begin());
  }
  return shape;
}

Result<std::unique_ptr<Work>>
tessera::cuda::makeAttend(Binaries &binaries, CuDNN &library,
                          const fb::AttendT &attend, Tensors &tensors) {
  std::array<const LocalTensor *, 5> local = {};
  const int ids[] = {attend.query, attend.key, attend.value, attend.result,
                     attend.lse};
  for (int i = 0; i < 5; ++i)
    if (ids[i] >= 0) {
      Result<const LocalTensor *> tensor = tensors.get(ids[i]);
      if (!tensor)
        return tensor.error();
      local[i] = *tensor;
    }
  Result<AttentionShape> shape = shapeOf(local, attend.causal, tensors, attend);
  if (!shape)
    return shape.error();
  auto work =
      std::make_unique<AttendWork>(binaries, library, *shape, attend.scale);
  TSR_TRY(work->plan(library, local));
  return std::unique_ptr<Work>(std::move(work));
}
