//===- Chooser.cpp - which algorithm makes a matrix product ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rank reads the file and, where it has no entry, measures; then the ranks
// exchange what they found, and of one product that several have measured the
// lowest rank's counts. So the run that measures computes what later ones do.
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Chooser.h"
#include "Backends/CUDA/Measure.h"
#include "Runtime/Context.h"
#include "Support/TemporaryFile.h"

#include <algorithm>
#include <cstdio>

using namespace tessera;
using namespace tessera::cuda;

/// Nothing if there is no such file.
static Result<std::optional<std::string>> readFile(const std::string &path) {
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

Outcome<Ok> Chooser::open(const std::string &path, bool measures,
                          const Blas &blas) {
  this->path = path;
  this->measures = measures;
  known.origin = "cuBLASLt " + blas.version() + " on " + device.name();
  auto fail = [](const std::string &message) {
    return Failure{TESSERA_IO, message};
  };
  Result<std::optional<std::string>> text = readFile(path);
  if (!text)
    return fail(text.message());
  if (!*text && !measures)
    return fail(path + ": there is no such file of algorithms");
  if (measures && context.rank() == 0)
    if (Status status = checkWritable(path); !status)
      return fail(status.message());
  shared =
      known.origin + (measures ? " measures\n" : "\n") + text->value_or("");
  if (!*text)
    return Ok{};
  Result<Algorithms> read = Algorithms::parse(**text, path);
  if (!read)
    return fail(read.message());
  if (read->origin == known.origin) {
    known = std::move(*read);
    return Ok{};
  }
  // All ranks run on the same, or there is an error.
  if (context.rank() == 0)
    context.log(TESSERA_LOG_WARNING,
                path + " holds algorithms for " + read->origin + "; this is " +
                    known.origin + ": " +
                    (measures ? "they are measured anew"
                              : "cuBLASLt's heuristic chooses"));
  return Ok{};
}

void Chooser::say(const std::string &line) {
  std::string text = line;
  std::replace(text.begin(), text.end(), '\n', ' ');
  pending += "!" + text + "\n";
}

Result<Choice> Chooser::choose(const Blas &blas, Blas::Calls &calls) {
  const std::string &key = calls.key();
  if (auto found = known.entries.find(key); found != known.entries.end()) {
    Status status = calls.accepts(found->second.algorithm);
    if (status) {
      calls.use(found->second.algorithm);
      return measured.count(key) ? Choice::Measured : Choice::Stored;
    }
    known.entries.erase(found);
    say(path + ": the algorithm for " + key + " is refused (" +
        status.message() + "): " +
        (measures ? "it is measured anew" : "cuBLASLt's heuristic chooses"));
  }
  if (measures) {
    Outcome<Algorithms::Entry> entry = measure(blas, calls, device, memory);
    if (entry) {
      // As all will read it.
      const std::string line = Algorithms::toLine(key, *entry);
      pending += line + "\n";
      if (Status status = known.addLine(line); !status)
        return status.error();
      measured.insert(key);
      calls.use(entry->algorithm);
      return Choice::Measured;
    }
    if (entry.error().code != TESSERA_OUT_OF_MEMORY)
      return Error{entry.message()};
    say(entry.message() + ", to measure algorithms for " + key +
        ": cuBLASLt's heuristic chooses");
  }
  Result<std::vector<blas::Algorithm>> first = calls.candidates(1);
  if (!first)
    return first.error();
  calls.use(first->front());
  return Choice::Heuristic;
}

Outcome<Ok> Chooser::agree() {
  if (path.empty())
    return Ok{};
  // Of each rank: how many bytes, then the bytes, as long as the longest.
  auto exchange = [&](const void *mine, void *all,
                      size_t bytes) -> std::optional<Failure> {
    if (Status status = context.allGather(mine, all, bytes); !status)
      return context.giveUp({TESSERA_PEER, status.message()});
    return std::nullopt;
  };
  std::vector<uint64_t> sizes(context.size());
  const uint64_t size = pending.size();
  if (auto failure = exchange(&size, sizes.data(), sizeof size))
    return *failure;
  const size_t longest = *std::max_element(sizes.begin(), sizes.end());
  if (longest == 0)
    return Ok{};
  std::string mine = std::move(pending), all(longest * sizes.size(), '\0');
  pending.clear();
  mine.resize(longest);
  if (auto failure = exchange(mine.data(), all.data(), longest))
    return *failure;

  Algorithms news;
  std::set<std::string_view> said;
  for (size_t rank = 0; rank < sizes.size(); ++rank) {
    std::string_view lines(&all[rank * longest], sizes[rank]);
    for (size_t end; !lines.empty(); lines.remove_prefix(end + 1)) {
      end = lines.find('\n');
      std::string_view line = lines.substr(0, end);
      if (line[0] == '!') {
        if (said.insert(line).second && context.rank() == 0)
          context.log(TESSERA_LOG_WARNING, std::string(line.substr(1)));
      } else if (!news.addLine(line)) {
        continue; // a lower rank has this product
      }
    }
  }
  if (news.entries.empty())
    return Ok{};
  for (const auto &[key, entry] : news.entries) {
    known.entries[key] = entry;
    measured.insert(key);
  }
  std::optional<Failure> failure;
  if (context.rank() == 0)
    if (Status status = known.write(path); !status)
      failure = Failure{TESSERA_IO, status.message()};
  return context.agree(failure, 0, "");
}

Choice Chooser::settle(Blas::Calls &calls, Choice chosen) const {
  auto found = known.entries.find(calls.key());
  if (found == known.entries.end())
    return chosen;
  calls.use(found->second.algorithm);
  return measured.count(calls.key()) ? Choice::Measured : Choice::Stored;
}
