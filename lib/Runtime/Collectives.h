//===- Collectives.h - collectives on a grouped exchange ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_COLLECTIVES_H
#define TESSERA_RUNTIME_COLLECTIVES_H

#include "Layout/Planner.h"
#include "Runtime/Strided.h"
#include "Runtime/Work.h"

namespace tessera {

/// A collective as a list of phases. In each: copies, then one grouped
/// exchange, then reductions, then copies.
class CollectiveWork final : public Work {
public:
  /// Plans what this rank does to move `source` to `target`.
  static Result<std::unique_ptr<CollectiveWork>>
  create(const fb::CollectiveT &collective,
         const std::vector<layout::SubAxis> &axes, const LocalTensor &source,
         const LocalTensor &target, const layout::Mesh &mesh, int rank);

  void setAddresses(const Bases &bases) override;
  Status run(const Running &running) override;

  const Traffic *traffic() const override { return &figures; }
  size_t mostMessages() const;

private:
  struct Copy {
    CopyLoop loop;
    Place to, from;
    std::byte *target = nullptr;
    const std::byte *source = nullptr;
  };
  struct Fold {
    std::vector<Place> members;
    int64_t count;
    Place to;
    std::vector<const std::byte *> sources{};
    std::byte *target = nullptr;
  };
  struct Message {
    int peer;
    Place place;
    int64_t bytes;
  };
  struct Phase {
    std::vector<Copy> before;
    std::vector<Message> sends, receives;
    std::vector<Fold> folds;
    std::vector<Copy> after;
    std::vector<SendMessage> boundSends{};
    std::vector<ReceiveMessage> boundReceives{};
  };
  /// Boxes of a tensor as one message or part of a reduction: where they lie
  /// one after the other in memory, that place; else copies from or to scratch.
  struct Packing {
    Place place;
    std::vector<Copy> copies;
  };

  Status planExchange(const LocalTensor &source, const LocalTensor &target,
                      layout::Combiner combiner);
  Status planAllReduce(const LocalTensor &source, const LocalTensor &target);
  Status planReduceScatter(const LocalTensor &source,
                           const LocalTensor &target);
  Status checkReduction(const LocalTensor &source, const LocalTensor &target,
                        layout::Combiner combiner);
  std::vector<int> groupOf(const std::vector<layout::SubAxis> &axes) const;
  Packing pack(const LocalTensor &tensor, const std::vector<layout::Box> &boxes,
               bool toScratch, bool mustCopy);
  void count(const std::vector<Copy> &copies, bool &counted);
  void send(Phase &phase, int peer, Place place, int64_t bytes);
  void receive(Phase &phase, int peer, Place place, int64_t bytes);

  const layout::Mesh *mesh = nullptr;
  int rank = 0;
  std::vector<layout::SubAxis> axes;
  // Message order: the target's local dimensions, outermost first; empty means
  // row-major.
  std::vector<int> order;
  DType dtype{};
  layout::Combiner combiner{};
  std::vector<Phase> phases;
  Traffic figures;
  bool countedPack = false, countedUnpack = false;
  // A rank that holds no addend of a new partial state fills its target.
  std::byte identity[8];
  std::optional<Copy> fill;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_COLLECTIVES_H
