//===- LocalTensors.h - the tensors of a plan on one rank -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_EXEC_LOCALTENSORS_H
#define TESSERA_EXEC_LOCALTENSORS_H

#include "Module/Module.h"
#include "Support/DType.h"

namespace tessera {

/// A tensor with all symbols replaced, as this rank holds it. Its memory is
/// that of the tensor `root`, from element `offset` on.
struct LocalTensor {
  DType dtype;
  layout::Shape globalShape;
  layout::View view; ///< the module's, for globalShape
  const layout::Mesh *mesh; ///< the module's, on which it lies
  layout::Shape sizes;
  layout::Shape strides; ///< in elements
  int root;
  int64_t offset = 0;
  bool inModule = false; ///< a constant used where it lies in the module
  /// Of the root's memory, where that is a caller's; other memory begins as
  /// aligned as the backend says.
  uintptr_t address = 0;
  /// Local dimensions, outermost in memory first, as far as that is the same on
  /// all ranks: in this order a collective's messages list elements.
  std::vector<int> order;

  int64_t elements() const;
  int64_t elementBytes() const { return info(dtype).bytes; }
  /// Whether its first element's address is a multiple of so many bytes.
  bool isAligned(int64_t bytes) const {
    return (address + offset * elementBytes()) % bytes == 0;
  }
};

/// Finds the local tensors of a module for one rank and one set of symbol
/// values.
class Tensors {
public:
  /// Checks the values: their number, sign, maximum and multiple.
  static Result<Tensors> create(const ModuleReader &module, int rank,
                                std::span<const int64_t> symbols);
  /// The same module and sizes for another rank.
  Result<Tensors> onRank(int rank) const {
    return create(*reader, rank, symbols);
  }

  /// Where a root's memory is the caller's; before the first `get`.
  void setAddress(int root, const void *address) {
    addresses[root] = reinterpret_cast<uintptr_t>(address);
  }

  /// With its chain of aliases; found once, then kept.
  Result<const LocalTensor *> get(int tensor);
  /// Bytes of the memory of a root on this rank, and the most on any.
  int64_t bytes(const LocalTensor &root) const;
  Result<int64_t> maxBytes(int root);

  Result<int64_t> value(const fb::ExtentT &extent) const;
  /// What the kernel of a launch gets for a scalar on this rank.
  Result<int64_t> value(const fb::ScalarT &scalar, const fb::LaunchT &launch);
  const layout::Coords &coords() const { return coordinates; }
  int rank() const { return self; }
  const ModuleReader &module() const { return *reader; }
  std::string name(int tensor) const;

private:
  /// On the mesh of a tensor; -1: on the module's.
  layout::Coords coordsOf(int tensor) const;
  Result<LocalTensor> resolve(int tensor);
  Status applyAlias(int tensor, const LocalTensor &source, LocalTensor &result);
  Status applyConstant(LocalTensor &result);

  const ModuleReader *reader = nullptr;
  int self = 0;
  std::vector<int64_t> symbols;
  layout::Coords coordinates;
  std::vector<std::optional<LocalTensor>> known;
  std::vector<uintptr_t> addresses; ///< by root
};

} // namespace tessera

#endif // TESSERA_EXEC_LOCALTENSORS_H
