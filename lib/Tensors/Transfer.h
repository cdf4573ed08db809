//===- Transfer.h - a rank's part of a tensor, from and to files ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file holds global tensors. Each rank reads only what its view says is its
// own, and writes only what it owns: of ranks that hold the same elements the
// one with coordinate 0 on the unused axes writes.
//
// An output file is made in four steps, between which the ranks must agree
// (that is the caller's part): checkWritable, before anything runs; rank 0
// creates a temporary file of full size beside the target; every rank opens
// and fills it; rank 0 renames it, so that the target is whole or untouched.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORS_TRANSFER_H
#define TESSERA_TENSORS_TRANSFER_H

#include "Tensors/Safetensors.h"

namespace tessera {

/// One of a program's global tensors and how it lies.
struct GlobalTensor {
  std::string name;
  DType dtype;
  layout::Shape shape;
  layout::View view;
  layout::Mesh mesh;
};

/// Fills `local`, which has the shape localShape() and the strides
/// localStrides() of the view, with the part of `stored` at `coords`. Shapes
/// must be equal, and types too unless `cast` names the program's type.
Status readLocal(const StoredTensor &stored, const GlobalTensor &tensor,
                 std::optional<DType> cast, const layout::Coords &coords,
                 void *local);

class OutputFile {
public:
  /// Rank 0: makes a file `temporary`, which is not there yet, beside `path`
  /// with the header and the space for `tensors`.
  static Result<OutputFile> create(const std::string &path,
                                   const std::string &temporary,
                                   const std::vector<GlobalTensor> &tensors);
  /// Other ranks: opens what rank 0 made.
  static Result<OutputFile> open(const std::string &path,
                                 const std::string &temporary,
                                 const std::vector<GlobalTensor> &tensors);

  OutputFile(OutputFile &&other);
  OutputFile &operator=(OutputFile &&) = delete;
  /// Removes the temporary file on the rank that made it, unless renamed.
  ~OutputFile();

  /// Writes what this rank owns of tensor `index`.
  Status write(size_t index, const layout::Coords &coords, const void *local);
  /// This rank's bytes are in the file.
  Status flush();
  /// Rank 0, after all ranks have flushed.
  Status rename();

private:
  OutputFile(std::string path, const std::vector<GlobalTensor> &tensors);

  std::string path;
  std::string temporary;
  std::vector<GlobalTensor> tensors;
  FileLayout layout;
  int fd = -1;
  bool owner = false;
};

} // namespace tessera

#endif // TESSERA_TENSORS_TRANSFER_H
