//===- Algorithms.h - measured algorithms of matrix products, in a file ---===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_BLAS_ALGORITHMS_H
#define TESSERA_BACKENDS_CUDA_BLAS_ALGORITHMS_H

#include "Backends/CUDA/Blas/BlasApi.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::cuda {

/// What was measured with one version of cuBLASLt on one model of GPU.
struct Algorithms {
  struct Entry {
    blas::Algorithm algorithm;
    double microseconds = 0;
    double heuristic = 0; ///< microseconds of what cuBLASLt would have chosen
    bool operator==(const Entry &) const = default;
  };

  /// "cuBLASLt 13.1.0 on NVIDIA H200"
  std::string origin;
  /// By Blas::Calls::key().
  std::map<std::string, Entry> entries;

  /// `path` is for errors, which name it and the line. A file of another
  /// version of this format has an origin that says so, and no entries.
  static Result<Algorithms> parse(std::string_view text,
                                  const std::string &path);
  std::string toText() const;
  /// Nothing if there is no such file.
  static Result<std::optional<std::string>> readFile(const std::string &path);
  /// Adds these to the file at `path`. Entries that it did not have when it was
  /// `seen` are of other processes: they stay, also where these have another.
  /// Gives what the file holds then. Waits for `seconds` while others write.
  Result<Algorithms> save(const std::string &path, const Algorithms &seen,
                          double seconds) const;

  /// One line without its end.
  static std::string toLine(const std::string &key, const Entry &entry);
  /// What is wrong with the line, if it is none.
  Status addLine(std::string_view line);

private:
  /// As a file beside `path` that is then renamed to it.
  Status write(const std::string &path) const;
};

} // namespace tessera::cuda

#endif // TESSERA_BACKENDS_CUDA_BLAS_ALGORITHMS_H
