//===- Scratch.h - a folder for a test's files ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_RUNTIME_TENSORS_SCRATCH_H
#define TESSERA_TEST_RUNTIME_TENSORS_SCRATCH_H

#include "Tensors/Safetensors.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tessera {

/// A folder that goes with the test.
class Scratch : public ::testing::Test {
protected:
  Scratch() {
    std::string name =
        (std::filesystem::temp_directory_path() / "tessera-XXXXXX").string();
    folder = mkdtemp(name.data());
  }
  ~Scratch() override { std::filesystem::remove_all(folder); }

  std::string path(const std::string &name) const {
    return (folder / name).string();
  }

  std::string write(const std::string &name, const std::string &bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

  std::string read(const std::string &name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// A file with this header, its length in front, and `data`.
  static std::string fileBytes(const std::string &header,
                               const std::string &data) {
    std::string bytes;
    for (int i = 0; i < 8; ++i)
      bytes += static_cast<char>(header.size() >> 8 * i & 0xff);
    return bytes + header + data;
  }

  /// The message of opening `paths`, "" when that succeeds.
  static std::string openError(const std::vector<std::string> &paths) {
    Result<TensorFiles> files = TensorFiles::open(paths);
    return files ? "" : files.message();
  }

  std::filesystem::path folder;
};

} // namespace tessera

#endif // TESSERA_TEST_RUNTIME_TENSORS_SCRATCH_H
