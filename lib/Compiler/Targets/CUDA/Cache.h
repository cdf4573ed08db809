//===- Cache.h - compiled kernels on disk ---------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_TARGETS_CUDA_CACHE_H
#define TESSERA_COMPILER_TARGETS_CUDA_CACHE_H

#include <optional>
#include <string>
#include <string_view>

namespace tessera::cuda {

/// What a compilation gave.
struct CacheEntry {
  std::string cubin, ptx, log;
};

/// The folder of TESSERA_CACHE, else tessera in that of XDG_CACHE_HOME or in
/// ~/.cache; empty if there is none of them.
std::string getCacheFolder();

/// The entry for a compilation of which `key` is all that it depends on, if it
/// is there and whole.
std::optional<CacheEntry> readCache(std::string_view key);

/// Keeps an entry, if that is possible. Others see it whole or not at all.
void writeCache(std::string_view key, const CacheEntry &entry);

} // namespace tessera::cuda

#endif // TESSERA_COMPILER_TARGETS_CUDA_CACHE_H
