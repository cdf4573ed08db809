//===- Fetch.h - rows that indices name, on a transport -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rank tells each other one of its group how many of its rows it wants,
// then which, then these move, a message a row, from where they lie to where
// they are wanted. Rows that are not one run of memory are packed.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CPU_FETCH_H
#define TESSERA_BACKENDS_CPU_FETCH_H

#include "Exec/FetchPlan.h"

namespace tessera {

class FetchWork final : public Work {
public:
  /// `axes` as FetchPlan's; `transport`: null where there is one rank.
  static Result<std::unique_ptr<Work>>
  create(const fb::CollectiveT &fetch, const std::vector<layout::SubAxis> &axes,
         Tensors &tensors, Transport *transport);

  void setAddresses(const Bases &bases) override;
  Status run(const Running &running) override;
  const CollectiveReport *collective() const override { return &report; }

private:
  int64_t bytesToRow(int64_t number) const;
  /// Sorts the wanted rows by who holds them; copies those held here.
  void findRows();
  Status exchange(const Running &running);
  Status swap(const Running &running);

  FetchPlan plan;
  int64_t wanted = 0, held = 0, rowBytes = 0; ///< the plan's
  /// Of a row: to the result, to and from what is packed, and of zeros.
  CopyLoop copy, pack, unpack, zeros;
  std::vector<int64_t> asked; ///< by member, the most rows that it may want

  // Filled by each run, with room for the most.
  std::vector<int64_t> counts, theirCounts; ///< by member
  std::vector<int64_t> wantedEnd;           ///< by member, of the next two
  std::vector<int64_t> requests;            ///< rows of the owner
  std::vector<std::byte *> targets;
  std::vector<int64_t> theirRequests;
  std::vector<SendMessage> sends;
  std::vector<ReceiveMessage> receives;

  std::byte *tableData = nullptr, *resultData = nullptr;
  std::vector<const std::byte *> indexData;
  /// Rows that are no run of memory, sent and received; else null.
  Place packedPlace{}, receivedPlace{};
  std::byte *packed = nullptr, *received = nullptr;
  CollectiveReport report;
};

} // namespace tessera

#endif // TESSERA_BACKENDS_CPU_FETCH_H
