//===- Cache.cpp - compiled kernels on disk -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One file an entry, named by a hash of its key: a line with the hash of the
// rest, the sizes of cubin and PTX (none without), then both and the log.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/Cache.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>

using namespace llvm;
using namespace tessera;

static std::string hash(StringRef bytes) {
  return toHex(SHA256::hash(arrayRefFromStringRef(bytes)), /*LowerCase=*/true);
}

std::string cuda::getCacheFolder() {
  auto variable = [](const char *name) {
    const char *value = std::getenv(name);
    return StringRef(value ? value : "");
  };
  if (StringRef own = variable("TESSERA_CACHE"); !own.empty())
    return own.str();
  SmallString<128> folder;
  if (StringRef caches = variable("XDG_CACHE_HOME"); !caches.empty())
    sys::path::append(folder, caches, "tessera");
  else if (StringRef home = variable("HOME"); !home.empty())
    sys::path::append(folder, home, ".cache", "tessera");
  return folder.str().str();
}

static std::string getPath(std::string_view key) {
  std::string folder = cuda::getCacheFolder();
  if (folder.empty())
    return folder;
  SmallString<128> path(folder);
  sys::path::append(path, hash(key) + ".cubin");
  return path.str().str();
}

std::optional<cuda::CacheEntry> cuda::readCache(std::string_view key) {
  std::string path = getPath(key);
  if (path.empty())
    return std::nullopt;
  auto file = MemoryBuffer::getFile(path, /*IsText=*/false,
                                    /*RequiresNullTerminator=*/false);
  if (!file)
    return std::nullopt;
  auto [head, rest] = (*file)->getBuffer().split('\n');
  if (head != hash(rest))
    return std::nullopt;
  auto [sizes, bytes] = rest.split('\n');
  size_t cubin, ptx = 0;
  auto [ofCubin, ofPTX] = sizes.split(' ');
  if (ofCubin.getAsInteger(10, cubin) ||
      (!ofPTX.empty() && ofPTX.getAsInteger(10, ptx)) || cubin > bytes.size() ||
      ptx > bytes.size() - cubin)
    return std::nullopt;
  return CacheEntry{bytes.take_front(cubin).str(),
                    bytes.substr(cubin, ptx).str(),
                    bytes.drop_front(cubin + ptx).str()};
}

void cuda::writeCache(std::string_view key, const CacheEntry &entry) {
  std::string path = getPath(key);
  if (path.empty() || sys::fs::create_directories(sys::path::parent_path(path)))
    return;
  std::string rest = std::to_string(entry.cubin.size());
  if (!entry.ptx.empty())
    rest += " " + std::to_string(entry.ptx.size());
  rest += "\n" + entry.cubin + entry.ptx + entry.log;
  SmallString<128> temporary;
  int fd;
  if (sys::fs::createUniqueFile(path + ".%%%%%%%%", fd, temporary))
    return;
  raw_fd_ostream stream(fd, /*shouldClose=*/true);
  stream << hash(rest) << "\n" << rest;
  stream.close();
  bool failed = stream.has_error();
  stream.clear_error();
  if (failed || sys::fs::rename(temporary, path))
    sys::fs::remove(temporary);
}
