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
// lowest rank's counts, or that of another process that was in the file first.
// So the run that measures computes what later ones do.
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Blas/Chooser.h"
#include "Backends/CUDA/Blas/Measure.h"
#include "Support/FileLock.h"
#include "Support/Try.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::cuda;

Outcome<Ok> Chooser::open(const std::string &path, bool measures,
                          const Blas &blas) {
  this->path = path;
  this->measures = measures;
  known.origin = "cuBLASLt " + blas.version() + " on " + device.name();
  auto fail = [](const std::string &message) {
    return Failure{TESSERA_IO, message};
  };
  Result<std::optional<std::string>> text = Algorithms::readFile(path);
  if (!text)
    return fail(text.message());
  if (!*text && !measures)
    return fail(path + ": there is no such file of algorithms");
  if (measures && peers.rank() == 0) {
    if (Status status = checkWritable(path); !status)
      return fail(status.message());
    if (Result<FileLock> lock = FileLock::take(path, patience()); !lock)
      return fail(lock.message());
  }
  shared =
      known.origin + (measures ? " measures\n" : "\n") + text->value_or("");
  if (!*text)
    return Ok{};
  Result<Algorithms> read = Algorithms::parse(**text, path);
  if (!read)
    return fail(read.message());
  seen.origin = read->origin;
  if (read->origin == known.origin) {
    known = seen = std::move(*read);
    return Ok{};
  }
  // All ranks run on the same, or there is an error.
  if (peers.rank() == 0)
    peers.log(TESSERA_LOG_WARNING,
              path + " holds algorithms for " + read->origin + "; this is " +
                  known.origin + ": " +
                  (measures ? "they are measured anew"
                            : "cuBLASLt's heuristic chooses"));
  return Ok{};
}

double Chooser::patience() const { return peers.deadline() / 2; }

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
    peers.log(TESSERA_LOG_INFO, "measuring algorithms for " + key);
    Outcome<Algorithms::Entry> entry = measure(blas, calls, device, memory);
    if (entry) {
      // As all will read it.
      const std::string line = Algorithms::toLine(key, *entry);
      pending += line + "\n";
      TSR_TRY(known.addLine(line));
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

/// Collective: the text of each rank.
static Outcome<std::vector<std::string>> gather(Peers &peers,
                                                std::string mine) {
  // How many bytes, then the bytes, as long as the longest.
  std::vector<uint64_t> sizes(peers.size());
  const uint64_t size = mine.size();
  Status status = peers.allGather(&size, sizes.data(), sizeof size);
  const size_t longest =
      status ? *std::max_element(sizes.begin(), sizes.end()) : 0;
  std::string all(longest * sizes.size(), '\0');
  mine.resize(longest);
  if (status && longest)
    status = peers.allGather(mine.data(), all.data(), longest);
  if (!status)
    return peers.giveUp({TESSERA_PEER, status.message()});
  std::vector<std::string> texts;
  for (size_t rank = 0; rank < sizes.size(); ++rank)
    texts.push_back(all.substr(rank * longest, sizes[rank]));
  return texts;
}

static std::vector<std::string_view> lines(std::string_view text) {
  std::vector<std::string_view> result;
  for (size_t end; !text.empty(); text.remove_prefix(end + 1)) {
    end = text.find('\n');
    result.push_back(text.substr(0, end));
  }
  return result;
}

Outcome<Ok> Chooser::agree() {
  if (path.empty())
    return Ok{};
  Outcome<std::vector<std::string>> texts =
      gather(peers, std::exchange(pending, {}));
  if (!texts)
    return texts.error();
  Algorithms news;
  std::set<std::string_view> said;
  for (const std::string &text : *texts)
    for (std::string_view line : lines(text)) {
      if (line[0] == '!') {
        if (said.insert(line).second && peers.rank() == 0)
          peers.log(TESSERA_LOG_WARNING, std::string(line.substr(1)));
      } else if (!news.addLine(line)) {
        continue; // a lower rank has this product
      }
    }
  if (news.entries.empty())
    return Ok{};
  for (const auto &[key, entry] : news.entries)
    known.entries[key] = entry;

  Outcome<Ok> written = Ok{};
  std::string theirs;
  if (peers.rank() == 0) {
    if (Result<Algorithms> saved = known.save(path, seen, patience()); !saved)
      written = Failure{TESSERA_IO, saved.message()};
    else
      for (const auto &[key, entry] : news.entries)
        if (const Algorithms::Entry &kept = saved->entries.at(key);
            kept != entry)
          theirs += Algorithms::toLine(key, kept) + "\n";
  }
  TSR_TRY(peers.agree(written, 0, ""));
  texts = gather(peers, std::move(theirs));
  if (!texts)
    return texts.error();
  Algorithms first;
  for (std::string_view line : lines(texts->front()))
    if (Status status = first.addLine(line); !status)
      return Failure{TESSERA_INTERNAL, status.message()};
  for (const auto &[key, entry] : news.entries)
    measured.insert(key);
  for (const auto &[key, entry] : first.entries) {
    known.entries[key] = entry;
    measured.erase(key);
  }
  // From now on these are no longer news of others.
  seen.origin = known.origin;
  for (const auto &[key, entry] : news.entries)
    seen.entries[key] = known.entries[key];
  return Ok{};
}

Choice Chooser::settle(Blas::Calls &calls, Choice chosen) const {
  auto found = known.entries.find(calls.key());
  if (found == known.entries.end())
    return chosen;
  calls.use(found->second.algorithm);
  return measured.count(calls.key()) ? Choice::Measured : Choice::Stored;
}
