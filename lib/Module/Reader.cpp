//===- Reader.cpp - reading and checking a module file --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From the outside in: magic, version, the header's hash, what the module needs
// of runtime and processor, the sections and their hashes, the FlatBuffer, and
// last the plan (CheckPlan.cpp). The first thing that is wrong is the error.
//
//===----------------------------------------------------------------------===//

#include "Module/Format.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tessera;
using namespace tessera::format;

void ModuleReader::FreeBytes::operator()(char *bytes) const {
  std::free(bytes);
}

// Sections start on pages of the file, so also in memory: constants and the
// FlatBuffer get the alignment they need.
ModuleReader::Bytes ModuleReader::allocate(size_t size) {
  return Bytes(static_cast<char *>(
      std::aligned_alloc(kModulePage, roundToPage(std::max<size_t>(size, 1)))));
}

Result<ModuleReader> ModuleReader::open(const std::string &path) {
  // A pipe would wait for who writes.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  auto fail = [&](const std::string &why) {
    if (fd >= 0)
      close(fd);
    return Error{"cannot read module '" + path + "': " + why};
  };
  if (fd < 0)
    return fail(std::strerror(errno));
  struct stat info;
  if (fstat(fd, &info))
    return fail(std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return fail("it is no regular file");
  size_t size = info.st_size;
  Bytes bytes = allocate(size);
  if (!bytes)
    return fail("no memory for its " + std::to_string(size) + " bytes");
  for (size_t done = 0; done < size;) {
    ssize_t n = ::read(fd, bytes.get() + done, size - done);
    if (n < 0 && errno != EINTR)
      return fail(std::strerror(errno));
    if (n == 0)
      return fail("it became shorter while it was read");
    done += n > 0 ? n : 0;
  }
  close(fd);
  Result<ModuleReader> reader = parse(std::move(bytes), size);
  if (!reader)
    return Error{"'" + path + "': " + reader.message()};
  return reader;
}

Result<ModuleReader> ModuleReader::read(std::string_view source) {
  Bytes bytes = allocate(source.size());
  if (!bytes)
    return Error{"no memory for a module of " + std::to_string(source.size()) +
                 " bytes"};
  source.copy(bytes.get(), source.size());
  return parse(std::move(bytes), source.size());
}

static bool processorHasLevel(uint32_t level) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  switch (level) {
  case 1:
    return true;
  case 2:
    return __builtin_cpu_supports("x86-64-v2");
  case 3:
    return __builtin_cpu_supports("x86-64-v3");
  case 4:
    return __builtin_cpu_supports("x86-64-v4");
  }
#endif
  return false;
}

Result<ModuleReader> ModuleReader::parse(Bytes bytes, size_t size) {
  std::string_view file(bytes.get(), size);
  if (size < sizeof kMagic || std::memcmp(file.data(), kMagic, sizeof kMagic))
    return Error{"this is not a Tessera module"};
  auto truncated = [&](uint64_t expected) {
    return Error{"the module is truncated: it has " + std::to_string(size) +
                 " bytes of " + std::to_string(expected)};
  };
  Header header;
  if (size < sizeof header)
    return truncated(kModulePage);
  std::memcpy(&header, file.data(), sizeof header);
  if (header.major != kModuleMajor)
    return Error{
        "the module has format version " + std::to_string(header.major) + "." +
        std::to_string(header.minor) + ", this runtime reads version " +
        std::to_string(kModuleMajor) + ".x: compile it anew"};
  if (size < kModulePage)
    return truncated(kModulePage);
  if (moduleHashOf(file.substr(0, kModulePage)) != header.moduleHash)
    return Error{"the module is damaged: the hash of its header does not fit"};
  if (size < header.fileSize)
    return truncated(header.fileSize);
  if (size > header.fileSize)
    return Error{"the module is damaged: it has " + std::to_string(size) +
                 " bytes, its header says " + std::to_string(header.fileSize)};

  ModuleReader reader;
  reader.moduleHash = header.moduleHash;
  reader.producerName.assign(header.producer,
                             strnlen(header.producer, sizeof header.producer));
  if (uint64_t unknown = header.features & ~kKnownFeatures)
    return Error{"the module needs feature bit " +
                 std::to_string(std::countr_zero(unknown)) +
                 ", which this runtime does not have: it was made by '" +
                 reader.producerName + "'"};
  if (header.cpuLevel > 4 ||
      (header.cpuLevel != 0 && !processorHasLevel(header.cpuLevel)))
    return Error{"the module's code needs a processor of level x86-64-v" +
                 std::to_string(header.cpuLevel) + ", this one is below it"};
  if (header.numSections > kMaxSections)
    return Error{"the module is damaged: it claims " +
                 std::to_string(header.numSections) + " sections"};

  static const char *const names[kNumSections] = {"plan", "code", "constants",
                                                  "report"};
  uint64_t end = kModulePage;
  for (uint32_t i = 0; i < header.numSections; ++i) {
    Entry entry;
    std::memcpy(&entry, file.data() + sizeof header + i * sizeof entry,
                sizeof entry);
    std::string name = entry.kind < kNumSections
                           ? names[entry.kind]
                           : "section " + std::to_string(entry.kind);
    if (entry.offset != end || entry.size == 0 || entry.size > size - end)
      return Error{"the module is damaged: " + name + " lies outside of it"};
    std::string_view section = file.substr(entry.offset, entry.size);
    if (hashBytes(section) != entry.hash)
      return Error{"the module is damaged: the hash of its " + name +
                   " does not fit"};
    end = roundToPage(entry.offset + entry.size);
    if (end > size ||
        file.substr(entry.offset + entry.size, end - entry.offset - entry.size)
                .find_first_not_of('\0') != std::string_view::npos)
      return Error{"the module is damaged: bytes between its sections"};
    if (entry.kind >= kNumSections)
      continue; // of a later minor version
    if (!reader.sections[entry.kind].empty())
      return Error{"the module is damaged: it has two sections '" + name + "'"};
    reader.sections[entry.kind] = section;
  }
  if (end != size)
    return Error{"the module is damaged: bytes after its sections"};

  std::string_view plan = reader.section(Section::Plan);
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t *>(plan.data()),
                                 plan.size(), /*max_depth=*/64,
                                 /*max_tables=*/50'000'000);
  if (plan.size() < 8 || !fb::VerifyPlanBuffer(verifier))
    return Error{"the module is damaged: its plan is no valid FlatBuffer"};
  reader.planObject.reset(fb::GetPlan(plan.data())->UnPack());
  reader.bytes = std::move(bytes);
  reader.size = size;
  if (Status status = reader.checkPlan(); !status)
    return Error{"the module's plan is wrong: " + status.message()};
  return reader;
}
