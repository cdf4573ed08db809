//===- Collectives.h - collectives on a transport -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CPU_COLLECTIVES_H
#define TESSERA_BACKENDS_CPU_COLLECTIVES_H

#include "Exec/CollectivePlan.h"

namespace tessera {

/// Runs a plan over a transport.
class CollectiveWork final : public Work {
public:
  explicit CollectiveWork(CollectivePlan plan);

  void setAddresses(const Bases &bases) override;
  Status run(const Running &running) override;
  const CollectiveReport *collective() const override { return &report; }

private:
  struct Copy {
    const CopyLoop *loop;
    std::byte *target;
    const std::byte *source;
  };
  struct Fold {
    DType dtype;
    std::vector<const std::byte *> sources;
    int64_t count;
    std::byte *target;
  };
  struct Phase {
    BoundMessages messages;
    std::vector<Copy> before{}, after{};
    std::vector<Fold> folds{};
  };

  CollectivePlan plan;
  CollectiveReport report;
  std::vector<Phase> phases; ///< the plan's, with addresses
  std::vector<std::byte *> filled; ///< by fill
};

} // namespace tessera

#endif // TESSERA_BACKENDS_CPU_COLLECTIVES_H
