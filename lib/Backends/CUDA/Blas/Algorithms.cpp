//===- Algorithms.cpp - measured algorithms of matrix products, in a file -===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lines of text. Each entry ends with a hash of what stands before it, and the
// last line counts them: bytes that a library trusts must not be damaged ones.
//
//   tessera-algorithms 1
//   cuBLASLt 13.1.0 on NVIDIA H200
//   KEY ALGORITHM MICROSECONDS HEURISTIC HASH
//   end 1
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Blas/Algorithms.h"
#include "Module/Module.h"
#include "Support/FileLock.h"
#include "Support/Try.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace tessera;
using namespace tessera::cuda;

static constexpr std::string_view kFormat = "tessera-algorithms ";
static constexpr std::string_view kVersion = "1";

static void addHex(std::string &text, uint64_t value) {
  for (int shift = 60; shift >= 0; shift -= 4)
    text += "0123456789abcdef"[value >> shift & 15];
}

/// 16 lower-case digits.
static std::optional<uint64_t> parseHex(std::string_view text) {
  uint64_t value = 0;
  if (text.size() != 16)
    return std::nullopt;
  for (char c : text) {
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
      return std::nullopt;
    value = value << 4 | uint64_t(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  return value;
}

static std::optional<double> parseTime(std::string_view text) {
  double value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() ||
      !std::isfinite(value) || value < 0)
    return std::nullopt;
  return value;
}

static std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == text.npos)
      return parts;
    text.remove_prefix(end + 1);
  }
}

std::string Algorithms::toLine(const std::string &key, const Entry &entry) {
  std::string line = key + " ";
  for (uint64_t word : entry.algorithm.data)
    addHex(line, word);
  for (double time : {entry.microseconds, entry.heuristic}) {
    char text[32];
    // Not printf, whose decimal point depends on the process.
    auto end = std::to_chars(text, text + sizeof text, time,
                             std::chars_format::fixed, 2);
    line += " " + std::string(text, end.ptr);
  }
  const uint64_t hash = hashBytes(line);
  line += " ";
  addHex(line, hash);
  return line;
}

Status Algorithms::addLine(std::string_view line) {
  std::vector<std::string_view> words = split(line, ' ');
  if (words.size() != 5 || words[0].empty() || words[1].size() != 128)
    return Error{"this is no entry: a product, its algorithm, two times and a "
                 "hash"};
  Entry entry;
  for (int i = 0; i < 8; ++i) {
    std::optional<uint64_t> word = parseHex(words[1].substr(16 * i, 16));
    if (!word)
      return Error{"an algorithm is 128 hexadecimal digits"};
    entry.algorithm.data[i] = *word;
  }
  std::optional<double> times[] = {parseTime(words[2]), parseTime(words[3])};
  if (!times[0] || !times[1])
    return Error{"a time is a number of microseconds"};
  entry.microseconds = *times[0];
  entry.heuristic = *times[1];
  if (parseHex(words[4]) !=
      hashBytes(line.substr(0, line.size() - words[4].size() - 1)))
    return Error{"the line is damaged: it does not fit its hash"};
  if (!entries.emplace(words[0], entry).second)
    return Error{"this product has an entry already"};
  return Ok{};
}

Result<Algorithms> Algorithms::parse(std::string_view text,
                                     const std::string &path) {
  Algorithms result;
  std::vector<std::string_view> lines = split(text, '\n');
  auto fail = [&](size_t line, const std::string &what) {
    return Error{path + ":" + std::to_string(line + 1) + ": " + what};
  };
  if (lines[0].substr(0, kFormat.size()) != kFormat)
    return fail(0, "this is no file of algorithms: it begins with '" +
                       std::string(kFormat) + std::string(kVersion) + "'");
  std::string_view version = lines[0].substr(kFormat.size());
  if (version != kVersion) {
    result.origin = "version '" + std::string(version) + "' of the format";
    return result;
  }
  if (lines.size() < 2 || lines[1].empty())
    return fail(1, "here stands what the algorithms are for");
  result.origin = lines[1];
  const size_t count = lines.size() - lines.back().empty();
  for (size_t i = 2; i < count; ++i) {
    if (lines[i].substr(0, 4) != "end ") {
      if (Status status = result.addLine(lines[i]); !status)
        return fail(i, status.message());
      continue;
    }
    if (lines[i].substr(4) != std::to_string(result.entries.size()))
      return fail(i, "there are " + std::to_string(result.entries.size()) +
                         " entries above");
    if (i + 1 != count)
      return fail(i + 1, "nothing follows the end");
    return result;
  }
  return fail(count, "the end is missing");
}

std::string Algorithms::toText() const {
  std::string text =
      std::string(kFormat) + std::string(kVersion) + "\n" + origin + "\n";
  for (const auto &[key, entry] : entries)
    text += toLine(key, entry) + "\n";
  return text + "end " + std::to_string(entries.size()) + "\n";
}

Result<std::optional<std::string>>
Algorithms::readFile(const std::string &path) {
  FILE *file = std::fopen(path.c_str(), "re");
  if (!file && errno == ENOENT)
    return std::optional<std::string>();
  if (!file)
    return Error{path + ": cannot be read: " + systemError()};
  std::string text;
  char part[4096];
  while (size_t count = std::fread(part, 1, sizeof part, file))
    text.append(part, count);
  const bool failed = std::ferror(file);
  std::string why = systemError();
  std::fclose(file);
  if (failed)
    return Error{path + ": cannot be read: " + why};
  return std::optional(std::move(text));
}

Result<Algorithms> Algorithms::save(const std::string &path,
                                    const Algorithms &seen,
                                    double seconds) const {
  Result<FileLock> lock = FileLock::take(path, seconds);
  if (!lock)
    return lock.error();
  Result<std::optional<std::string>> text = readFile(path);
  if (!text)
    return text.error();
  Algorithms merged = *this;
  if (*text) {
    Result<Algorithms> there = parse(**text, path);
    if (!there)
      return there.error();
    if (there->origin != origin && there->origin != seen.origin)
      return Error{path + ": another process has put algorithms for " +
                   there->origin + " there, these are for " + origin +
                   ": take a file for each"};
    if (there->origin == origin)
      for (const auto &[key, entry] : there->entries)
        if (auto old = seen.entries.find(key);
            old == seen.entries.end() || old->second != entry)
          merged.entries[key] = entry;
  }
  TSR_TRY(merged.write(path));
  return merged;
}

Status Algorithms::write(const std::string &path) const {
  std::string name;
  int fd = createTemporary(path, name);
  if (fd < 0)
    return Error{path + ": cannot be written: " + systemError()};
  const std::string text = toText();
  bool whole = true;
  for (size_t done = 0; whole && done < text.size();) {
    ssize_t count = ::write(fd, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    whole = count >= 0;
    done += whole ? count : 0;
  }
  whole = whole && fsync(fd) == 0;
  std::string why = whole ? "" : systemError();
  close(fd);
  if (whole && rename(name.c_str(), path.c_str()) != 0)
    whole = false, why = systemError();
  if (whole)
    return Ok{};
  unlink(name.c_str());
  return Error{path + ": cannot be written: " + why};
}
