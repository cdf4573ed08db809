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

#include "Exec/Strided.h"
#include "Exec/Work.h"

namespace tessera {

class FetchWork final : public Work {
public:
  /// `axes`: along which the table's rows lie in blocks, outermost first.
  /// `transport`: null where there is one rank.
  static Result<std::unique_ptr<Work>>
  create(const fb::CollectiveT &fetch, const std::vector<layout::SubAxis> &axes,
         Tensors &tensors, Transport *transport);

  void setAddresses(const Bases &bases) override;
  Status run(const Running &running) override;
  const CollectiveReport *collective() const override { return &report; }

private:
  /// Of one of the table's dimensions, at each place of the result.
  struct Index {
    Place place;
    bool isWide; ///< i64
    layout::Shape strides;
    const std::byte *data = nullptr;
  };

  int64_t bytesToRow(int64_t number) const;
  /// Sorts the wanted rows by who holds them; copies those held here.
  void findRows();
  Status exchange(const Running &running);
  Status swap(const Running &running);

  std::vector<int> group; ///< ranks, by block of rows
  size_t self = 0;        ///< of the group
  int64_t block = 1;      ///< rows of a member, but for the last ones
  Place table, result;
  std::vector<Index> indices;
  layout::Shape extents;      ///< of the table's dimensions with indices
  layout::Shape tableStrides; ///< of these, in bytes
  layout::Shape places;       ///< local sizes of the indices
  layout::Shape placeStrides; ///< of these in the result, in bytes
  int64_t wanted = 0;         ///< how many rows this rank wants
  int64_t held = 0;           ///< how many it has
  int64_t rowBytes = 0;
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
  /// Rows that are no run of memory, sent and received; else null.
  Place packedPlace{}, receivedPlace{};
  std::byte *packed = nullptr, *received = nullptr;
  CollectiveReport report;
};

} // namespace tessera

#endif // TESSERA_BACKENDS_CPU_FETCH_H
