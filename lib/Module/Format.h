//===- Format.h - the bytes of a module file's header ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by the builder and the reader only. The structs are written as they
// lie in memory on a little-endian machine, without padding.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_MODULE_FORMAT_H
#define TESSERA_MODULE_FORMAT_H

#include "Module/Module.h"

#include <bit>

namespace tessera::format {

static_assert(std::endian::native == std::endian::little);

/// A byte above 127 and line ends of both kinds show a transfer as text.
constexpr char kMagic[8] = {'\x89', 'T', 'S', 'R', '\r', '\n', '\x1a', '\n'};

struct Header {
  char magic[8];
  uint32_t major;
  uint32_t minor;
  uint64_t features;
  uint32_t cpuLevel;
  uint32_t numSections;
  uint64_t fileSize;
  uint64_t moduleHash;
  char producer[64];
};
static_assert(sizeof(Header) == 112);

struct Entry {
  uint32_t kind;
  uint32_t reserved;
  uint64_t offset;
  uint64_t size;
  uint64_t hash;
};
static_assert(sizeof(Entry) == 32);

constexpr uint64_t kKnownFeatures =
    kFeatureAlternatives | kFeatureSums | kFeatureAddends | kFeatureGroups |
    kFeatureAttentionGrads | kFeatureFetches | kFeatureDevices;
constexpr uint32_t kMaxSections =
    (kModulePage - sizeof(Header)) / sizeof(Entry);

inline uint64_t roundToPage(uint64_t bytes) {
  return (bytes + kModulePage - 1) / kModulePage * kModulePage;
}

/// Over page 0 with the field for it zero.
inline uint64_t moduleHashOf(std::string_view firstPage) {
  Header header;
  std::memcpy(&header, firstPage.data(), sizeof header);
  header.moduleHash = 0;
  return hashBytes(
      firstPage.substr(sizeof header),
      hashBytes({reinterpret_cast<char *>(&header), sizeof header}));
}

} // namespace tessera::format

#endif // TESSERA_MODULE_FORMAT_H
