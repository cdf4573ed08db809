//===- Safetensors.cpp - any bytes as tensor files ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An input is a header, a zero byte, and the bytes of the tensors; the length
// in front is put there here. An input without a zero byte is the whole file.
// The same bytes are read as an index of files and as a map of names.
//
// Every tensor that is found must lie in the file, and a file made of what was
// read must hold the same.
//
//===----------------------------------------------------------------------===//

#include "Tensors/Safetensors.h"
#include "Fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

using namespace tessera;

namespace {
/// Files in memory, by names that end as their kinds must.
class Folder {
public:
  Folder() { FUZZ_CHECK(mkdtemp(path)); }
  ~Folder() {
    for (const std::string &name : names)
      unlink(name.c_str());
    rmdir(path);
    for (int file : files)
      close(file);
  }
  std::string write(const char *name, std::string_view bytes) {
    int file = memfd_create(name, MFD_CLOEXEC);
    FUZZ_CHECK(file >= 0 && pwrite(file, bytes.data(), bytes.size(), 0) ==
                                ssize_t(bytes.size()));
    files.push_back(file);
    names.push_back(std::string(path) + "/" + name);
    std::string target = "/proc/self/fd/" + std::to_string(file);
    FUZZ_CHECK(!symlink(target.c_str(), names.back().c_str()));
    return names.back();
  }

private:
  char path[32] = "/tmp/tessera-fuzz-XXXXXX";
  std::vector<int> files;
  std::vector<std::string> names;
};
} // namespace

/// A copy of a tensor's bytes, so that each is read.
static std::string bytesOf(const StoredTensor &tensor) {
  return {reinterpret_cast<const char *>(tensor.data), tensor.bytes};
}

static void checkWriting(const TensorFiles &files, Folder &folder) {
  std::vector<FileTensor> tensors;
  for (const auto &[name, tensor] : files.tensors()) {
    std::optional<DType> dtype = dtypeFromSafetensors(tensor.typeName);
    if (!dtype)
      return;
    tensors.push_back({name, *dtype, tensor.shape});
  }
  FileLayout layout = layoutFile(tensors);
  std::string bytes(layout.bytes, '\0');
  layout.header.copy(bytes.data(), bytes.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::string own = bytesOf(files.tensors().at(tensors[i].name));
    FUZZ_CHECK(layout.offsets[i] + own.size() <= bytes.size());
    own.copy(bytes.data() + layout.offsets[i], own.size());
  }
  Result<TensorFiles> again =
      TensorFiles::open({folder.write("copy.safetensors", bytes)});
  FUZZ_CHECK(again && again->tensors().size() == tensors.size());
  for (const auto &[name, tensor] : files.tensors()) {
    Result<const StoredTensor *> same = again->find(name);
    FUZZ_CHECK(same && (*same)->shape == tensor.shape &&
               bytesOf(**same) == bytesOf(tensor));
  }
}

int test::fuzzOne(std::string_view input) {
  Folder folder;
  std::string bytes(input);
  if (size_t end = input.find('\0'); end != input.npos) {
    bytes.erase(end, 1);
    uint64_t length = end;
    bytes.insert(0, reinterpret_cast<const char *>(&length), sizeof length);
  }
  std::string index = folder.write("index.json", input);
  if (Result<TensorFiles> files = TensorFiles::open({index}); !files)
    FUZZ_CHECK(!files.message().empty());
  if (Result<NameMap> names = NameMap::read(index)) {
    names->lookup("x");
    Status status = names->check({"x", "weight"});
    FUZZ_CHECK(status || !status.message().empty());
  } else {
    FUZZ_CHECK(!names.message().empty());
  }
  Result<TensorFiles> files =
      TensorFiles::open({folder.write("x.safetensors", bytes)});
  if (!files) {
    FUZZ_CHECK(!files.message().empty());
    return 0;
  }
  for (const auto &[name, tensor] : files->tensors())
    FUZZ_CHECK(bytesOf(tensor).size() == tensor.bytes);
  checkWriting(*files, folder);
  return 0;
}
