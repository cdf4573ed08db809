//===- Builder.cpp - writing a module file --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lays the sections out on pages, hashes them, and writes the whole through a
// temporary file, so that a reader never sees half a module.
//
//===----------------------------------------------------------------------===//

#include "Module/Format.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tessera;
using namespace tessera::format;

// Eight bytes a step. Each step, and the end, is a bijection of the state for
// fixed input and of the input for a fixed state, so changing one word always
// changes the result.
uint64_t tessera::hashBytes(std::string_view bytes, uint64_t seed) {
  constexpr uint64_t k0 = 0x9e3779b97f4a7c15, k1 = 0xd6e8feb86659fd93;
  uint64_t state = seed ^ (bytes.size() * k1);
  auto step = [&](uint64_t word) {
    state = std::rotl((state ^ word) * k0, 29) + k1;
  };
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    step(word);
  }
  uint64_t tail = 0;
  if (i < bytes.size())
    std::memcpy(&tail, bytes.data() + i, bytes.size() - i);
  step(tail);
  state ^= state >> 32;
  state *= k1;
  return state ^ (state >> 29);
}

/// What a reader must know of a step.
static uint64_t featuresOf(const fb::LaunchT &) { return 0; }
static uint64_t featuresOf(const fb::ContractT &contract) {
  return (contract.summed != fb::Summed::None ? kFeatureSums : 0) |
         (contract.addend >= 0 ? kFeatureAddends : 0);
}
static uint64_t featuresOf(const fb::AttendT &attend) {
  return attend.grad >= 0 ? kFeatureAttentionGrads : 0;
}
static uint64_t featuresOf(const fb::CollectiveT &collective) {
  const bool fetches = collective.kind == fb::CollectiveKind::Fetch;
  return (collective.more.empty() ? 0 : kFeatureGroups) |
         (fetches ? kFeatureFetches : 0);
}
static uint64_t featuresOf(const fb::CopyT &) { return 0; }

void ModuleBuilder::setPlan(std::string bytes) {
  sections[static_cast<size_t>(Section::Plan)] = std::move(bytes);
}

void ModuleBuilder::setPlan(const fb::PlanT &plan) {
  flatbuffers::FlatBufferBuilder builder;
  fb::FinishPlanBuffer(builder, fb::Plan::Pack(builder, &plan));
  setPlan(std::string(reinterpret_cast<char *>(builder.GetBufferPointer()),
                      builder.GetSize()));
  for (const auto &tensor : plan.tensors)
    if (!tensor->devices.empty())
      features |= kFeatureDevices;
  for (const auto &step : plan.steps) {
    if (step->alternative >= 0)
      features |= kFeatureAlternatives;
    if (step->action.value)
      features |= visit(step->action,
                        [](const auto &action) { return featuresOf(action); });
  }
}

void ModuleBuilder::setCode(std::string elf, uint32_t level) {
  sections[static_cast<size_t>(Section::Code)] = std::move(elf);
  cpuLevel = level;
}

void ModuleBuilder::setConstants(std::string bytes) {
  sections[static_cast<size_t>(Section::Constants)] = std::move(bytes);
}

void ModuleBuilder::setReport(std::string text) {
  sections[static_cast<size_t>(Section::Report)] = std::move(text);
}

void ModuleBuilder::setFeatures(uint64_t bits) { features |= bits; }

std::string ModuleBuilder::build() const {
  std::vector<Entry> table;
  uint64_t end = kModulePage;
  for (size_t kind = 0; kind < kNumSections; ++kind) {
    const std::string &bytes = sections[kind];
    if (bytes.empty())
      continue;
    table.push_back(
        {static_cast<uint32_t>(kind), 0, end, bytes.size(), hashBytes(bytes)});
    end = roundToPage(end + bytes.size());
  }

  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.major = kModuleMajor;
  header.minor = kModuleMinor;
  header.features = features;
  header.cpuLevel = cpuLevel;
  header.numSections = table.size();
  header.fileSize = end;
  std::strcpy(header.producer, "tessera");

  std::string file(end, '\0');
  auto writeHeader = [&] { std::memcpy(file.data(), &header, sizeof header); };
  writeHeader();
  std::memcpy(file.data() + sizeof header, table.data(),
              table.size() * sizeof(Entry));
  for (const Entry &entry : table)
    sections[entry.kind].copy(file.data() + entry.offset, entry.size);
  header.moduleHash = moduleHashOf({file.data(), kModulePage});
  writeHeader();
  return file;
}

Status ModuleBuilder::write(const std::string &path) const {
  std::string file = build();
  std::string temporary = path + ".XXXXXX";
  int fd = mkstemp(temporary.data());
  auto fail = [&](const char *what) {
    Error error{std::string("cannot ") + what + " '" + path +
                "': " + std::strerror(errno)};
    if (fd >= 0) {
      close(fd);
      unlink(temporary.c_str());
    }
    return error;
  };
  if (fd < 0)
    return fail("create a file beside");
  for (size_t done = 0; done < file.size();) {
    ssize_t n = ::write(fd, file.data() + done, file.size() - done);
    if (n < 0 && errno != EINTR)
      return fail("write");
    done += n > 0 ? n : 0;
  }
  // mkstemp makes files that only the owner reads.
  mode_t mask = umask(0);
  umask(mask);
  if (fchmod(fd, 0666 & ~mask) || fsync(fd) ||
      rename(temporary.c_str(), path.c_str()))
    return fail("write");
  close(fd);
  return Ok{};
}
