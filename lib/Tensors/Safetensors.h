//===- Safetensors.h - tensors in files -----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A safetensors file is 8 bytes (little-endian length of the header), a JSON
// header `{"name": {"dtype", "shape", "data_offsets": [begin, end]}, ...}`, and
// the tensors' bytes, row-major, without gaps. Reading maps the files into
// memory: a rank touches the pages of its own slices only.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORS_SAFETENSORS_H
#define TESSERA_TENSORS_SAFETENSORS_H

#include "Layout/View.h"
#include "Support/DType.h"
#include "Support/Result.h"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// One tensor as a file holds it.
struct StoredTensor {
  std::string file;
  std::string name;
  std::string typeName; ///< as the file spells it
  layout::Shape shape;
  const std::byte *data;
  size_t bytes;
};

/// The tensors of some files. Keeps the files mapped.
class TensorFiles {
public:
  /// Each path is a safetensors file, an index (`*.json` with a "weight_map"
  /// from tensor to file), or a folder with `model.safetensors.index.json` or
  /// with safetensors files. No tensor may be in two of the files.
  static Result<TensorFiles> open(const std::vector<std::string> &paths);

  /// The error suggests the nearest name.
  Result<const StoredTensor *> find(const std::string &name) const;

  const std::map<std::string, StoredTensor> &tensors() const { return byName; }

private:
  class Mapping;
  Status addPath(const std::string &path);
  Status addFolder(const std::string &path);
  Status addIndex(const std::string &path);
  Status addFile(const std::string &path);

  std::vector<std::shared_ptr<const Mapping>> mappings;
  std::map<std::string, StoredTensor> byName;
};

/// From the names of a program's ports to the names of tensors in files: a JSON
/// object `{"port": "tensor", "port": {"name": "tensor", "cast": "f32"}}`. A
/// port that is not in it has its own name.
class NameMap {
public:
  struct Entry {
    std::string name;
    std::optional<DType> cast; ///< what the file's elements are turned into
  };

  NameMap() = default;
  static Result<NameMap> read(const std::string &path);

  Entry lookup(const std::string &port) const;
  /// That the map speaks of `ports` only.
  Status check(const std::vector<std::string> &ports) const;

private:
  std::string path;
  std::map<std::string, Entry> entries;
};

/// `[2, 3]`
std::string toString(const layout::Shape &shape);

/// What a file with these tensors starts with, and where each one's bytes are.
struct FileTensor {
  std::string name;
  DType dtype;
  layout::Shape shape;
};
struct FileLayout {
  std::string header;          ///< with its length in front
  std::vector<size_t> offsets; ///< in the file, one a tensor
  size_t bytes;                ///< of the whole file
};
FileLayout layoutFile(const std::vector<FileTensor> &tensors);

} // namespace tessera

#endif // TESSERA_TENSORS_SAFETENSORS_H
