//===- Moves.h - what a compiled program moves, for people ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes say of each move how it is planned, with what it goes together, of
// which ops it becomes steps, and that rows are fetched in its place or nobody
// reads its result. When all have run, what is left is told.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_MOVES_H
#define TESSERA_COMPILER_MOVES_H

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringMap.h"

#include <map>
#include <string>
#include <vector>

namespace tessera {

class Moves {
public:
  /// Takes what is said of one remark; `behind` is what has been told before.
  void take(const mlir::remark::detail::Remark &remark, size_t behind);

  /// A line for each step in which something moves.
  std::string getLines() const;
  /// `told` with a line for each move, with its price and those of others,
  /// where it was planned.
  std::string explain(llvm::StringRef told) const;

  /// What of the remarks of passes is to be taken.
  static mlir::remark::RemarkCategories getCategories();

private:
  using Said = llvm::StringMap<std::string>;
  struct Price {
    uint64_t bytes = 0; ///< of the busiest device
    double us = 0;
  };
  struct Move {
    std::string place, views, plan, loser;
    Price price;
    uint64_t bound = 0;
    size_t behind = 0; ///< how much has been told before it
    bool isOneStep = true;
    int steps = 0;      ///< ops of which it is a tensor
    bool isThere = true;
    std::string was;    ///< what fetching was chosen in place of
    std::string others; ///< what was not chosen in its place
  };
  /// Moves that go in one step, and the bytes of its busiest device.
  struct Step {
    llvm::SmallVector<size_t> moves;
    std::optional<uint64_t> bytes;
  };

  Move *find(const Said &said);
  void plan(const mlir::remark::detail::Remark &remark, const Said &said,
            size_t behind);
  static void fetch(Move &move, const Said &said, bool isChosen);
  std::string print(const Step &step) const;

  std::vector<Move> moves;
  /// Where each is, by its function and its number there.
  std::map<std::pair<std::string, uint64_t>, size_t> planned;
  /// Of an op's tensors, by its number: -1 for none.
  std::map<uint64_t, llvm::SmallVector<int>> tensors;
  std::vector<Step> together;
  llvm::SmallVector<size_t> joining; ///< of the next of them
};

} // namespace tessera

#endif // TESSERA_COMPILER_MOVES_H
