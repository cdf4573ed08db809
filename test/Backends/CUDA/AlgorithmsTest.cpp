//===- AlgorithmsTest.cpp - the file that keeps measured algorithms -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Autotune.h"
#include "Support/FileLock.h"

using namespace tessera;
using namespace tessera::test;

namespace {

//===----------------------------------------------------------------------===//
// Another library or GPU
//===----------------------------------------------------------------------===//

TEST_F(Autotune, AnotherVersionIsSaidOnceAndTheHeuristicChooses) {
  driver().algorithms = {3, 1};
  {
    Session session;
    ASSERT_EQ(bindThree(session, options(TESSERA_AUTOTUNE)), "");
  }
  const std::string text = read();
  driver().blasVersion = 130201;
  {
    Session session;
    ASSERT_EQ(bindThree(session, options()), "");
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_EQ(warnings[0],
              file + " holds algorithms for cuBLASLt 13.1.0 on Fake 0; this is "
                     "cuBLASLt 13.2.1 on Fake 0: cuBLASLt's heuristic chooses");
    EXPECT_EQ(runThree(session), Ints({0, 0, 0}));
    EXPECT_EQ(counts(session), Counts({0, 0, 3}));
    EXPECT_EQ(warnings.size(), 1u);
  }
  EXPECT_EQ(read(), text);
  {
    Session session;
    ASSERT_EQ(bindThree(session, options(TESSERA_AUTOTUNE)), "");
    EXPECT_EQ(runThree(session), Ints({1, 1, 1}));
    ASSERT_EQ(warnings.size(), 2u);
    EXPECT_ERROR(warnings[1], "they are measured anew");
  }
  EXPECT_EQ(stored().origin, "cuBLASLt 13.2.1 on Fake 0");
  EXPECT_EQ(stored().entries.size(), 2u);
  {
    // On another GPU.
    Session session;
    tessera_context_options other = options();
    int32_t ordinal = 1;
    other.device = &ordinal;
    ASSERT_EQ(bindThree(session, other), "");
    EXPECT_EQ(runThree(session), Ints({0, 0, 0}));
    ASSERT_EQ(warnings.size(), 3u);
    EXPECT_ERROR(warnings[2], "cuBLASLt 13.2.1 on Fake 0; this is cuBLASLt "
                              "13.2.1 on Fake 1");
  }
  write("tessera-algorithms 2\nwhatever");
  Session session;
  ASSERT_EQ(bindThree(session, options()), "");
  EXPECT_EQ(runThree(session), Ints({0, 0, 0}));
  ASSERT_EQ(warnings.size(), 4u);
  EXPECT_ERROR(warnings[3], "holds algorithms for version '2' of the format");
}

TEST_F(Autotune, AnAlgorithmThatTheLibraryRefuses) {
  driver().algorithms = {3, 2, 1};
  {
    Session session;
    ASSERT_EQ(bindThree(session, options(TESSERA_AUTOTUNE)), "");
  }
  driver().refused = {2};
  {
    Session session;
    ASSERT_EQ(bindThree(session, options()), "");
    EXPECT_EQ(runThree(session), Ints({0, 0, 0}));
    EXPECT_EQ(counts(session), Counts({0, 0, 3}));
    ASSERT_EQ(warnings.size(), 2u); // kinds of products
    EXPECT_ERROR(warnings[0],
                 file + ": the algorithm for 6x4x8*1/f32:n:6:0:256/f32:n:8:0:"
                        "256/f32:n:6:0:256 is refused (cuBLASLt: checking an "
                        "algorithm: CUBLAS_STATUS_NOT_SUPPORTED): cuBLASLt's "
                        "heuristic chooses");
  }
  driver().unable = {2};
  Session session;
  ASSERT_EQ(bindThree(session, options(TESSERA_AUTOTUNE)), "");
  EXPECT_EQ(runThree(session), Ints({1, 1, 1}));
  EXPECT_EQ(counts(session), Counts({0, 3, 0}));
  ASSERT_EQ(warnings.size(), 4u);
  EXPECT_ERROR(warnings[2], "it is measured anew");
  for (const auto &[key, entry] : stored().entries)
    EXPECT_EQ(entry.algorithm.data[0], 1u) << key;
}

//===----------------------------------------------------------------------===//
// Several ranks
//===----------------------------------------------------------------------===//

/// Binds and runs on two ranks; their errors, and each call's algorithm by the
/// address of its result.
struct TwoRanks {
  std::string errors[2], contexts[2];
  std::vector<int> algorithms[2];
  std::vector<uint64_t> chosen[2];

  TwoRanks(
      const std::string &module, tessera_context_options options,
      const std::function<void()> &bound = [] {}) {
    tessera_threads *group;
    EXPECT_OK(tessera_threads_create(2, &group));
    options.world = 2;
    options.transport = "threads";
    options.handle = group;
    options.deadline = 20;
    Session sessions[2];
    auto onBoth = [&](const std::function<void(int)> &body) {
      std::thread other(body, 1);
      body(0);
      other.join();
    };
    onBoth([&](int rank) {
      tessera_context_options own = options;
      own.rank = rank;
      contexts[rank] = sessions[rank].open(module, own);
    });
    bound();
    if (contexts[0].empty() && contexts[1].empty()) {
      onBoth([&](int rank) { errors[rank] = sessions[rank].bind(); });
      for (int rank : {0, 1}) {
        if (!errors[rank].empty())
          continue;
        driver().products.clear();
        errors[rank] = sessions[rank].run();
        for (const FakeProduct &each : driver().products)
          algorithms[rank].push_back(each.algorithm);
        chosen[rank] = counts(sessions[rank]);
      }
    }
    for (Session &session : sessions)
      session.close();
    tessera_threads_destroy(group);
  }
};

TEST_F(Autotune, RanksTakeWhatTheLowestOneMeasured) {
  driver().name = "Fake";
  driver().algorithms = {3, 1, 2};
  driver().algorithmsOn[1] = {3, 2, 1};
  const std::string module = ThreeProducts("<tp = 2>").module();
  {
    TwoRanks ranks(module, options(TESSERA_AUTOTUNE));
    for (int rank : {0, 1}) {
      EXPECT_EQ(ranks.contexts[rank] + ranks.errors[rank], "");
      EXPECT_EQ(ranks.algorithms[rank], Ints({1, 1, 1})) << rank;
      EXPECT_EQ(ranks.chosen[rank], Counts({0, 3, 0})) << rank;
    }
  }
  EXPECT_EQ(stored().entries.size(), 2u);
  for (const auto &[key, entry] : stored().entries)
    EXPECT_EQ(entry.algorithm.data[0], 1u) << key;
  {
    TwoRanks ranks(module, options());
    for (int rank : {0, 1}) {
      EXPECT_EQ(ranks.contexts[rank] + ranks.errors[rank], "");
      EXPECT_EQ(ranks.algorithms[rank], Ints({1, 1, 1})) << rank;
      EXPECT_EQ(ranks.chosen[rank], Counts({3, 0, 0})) << rank;
    }
  }
  EXPECT_TRUE(warnings.empty());
  // Said by one.
  driver().blasVersion = 130200;
  TwoRanks ranks(module, options());
  EXPECT_EQ(warnings.size(), 1u);
  EXPECT_EQ(ranks.algorithms[1], Ints({0, 0, 0}));
}

TEST_F(Autotune, WhatOnlyOneRankHasIsKeptToo) {
  driver().name = "Fake";
  driver().algorithms = {3, 1};
  CUDAPlan plan("<tp = 2>");
  int x = plan.input("x", {4, 8}, "[_, _]"),
      w = plan.input("w", {8, 5}, "[_, did(tp) * _]");
  int p = plan.output("p", {4, 5}, "[_, did(tp) * _]");
  plan.contract(x, {0, 2}, w, {2, 1}, p, {0, 1});
  TwoRanks ranks(plan.module(), options(TESSERA_AUTOTUNE));
  for (int rank : {0, 1}) {
    EXPECT_EQ(ranks.contexts[rank] + ranks.errors[rank], "");
    EXPECT_EQ(ranks.algorithms[rank], Ints({1})) << rank;
  }
  std::vector<std::string> shapes;
  for (const auto &[key, entry] : stored().entries)
    shapes.push_back(key.substr(0, key.find('*')));
  EXPECT_EQ(shapes, std::vector<std::string>({"2x4x8", "3x4x8"}));

  // What one is refused is said by rank 0, once.
  driver().refused = {1};
  Algorithms part = stored();
  part.entries.erase(part.entries.begin()->first == "2x4x8"
                         ? part.entries.begin()
                         : std::prev(part.entries.end()));
  write(part.toText());
  TwoRanks again(plan.module(), options());
  EXPECT_EQ(warnings.size(), 1u);
  EXPECT_EQ(again.algorithms[0], Ints({0}));
  EXPECT_EQ(again.algorithms[1], Ints({0}));
}

TEST_F(Autotune, RanksMustHaveOneGPUAndOneFile) {
  const std::string module = ThreeProducts("<tp = 2>").module();
  TwoRanks ranks(module, options(TESSERA_AUTOTUNE)); // Fake 0 and Fake 1
  for (const std::string &error : ranks.contexts)
    EXPECT_ERROR(
        error, "ranks 0 and 1 differ in what they run on: target, flags, GPU, "
               "cuBLASLt or the file of algorithms");
}

TEST_F(Autotune, AFileThatCannotBeWrittenInTheEndFailsOnAllRanks) {
  driver().name = "Fake";
  TwoRanks ranks(ThreeProducts("<tp = 2>").module(), options(TESSERA_AUTOTUNE),
                 [&] { std::filesystem::remove_all(folder); });
  for (const std::string &error : ranks.errors)
    EXPECT_ERROR(error, file + ": cannot be locked: No such file");
}

//===----------------------------------------------------------------------===//
// Several writers
//===----------------------------------------------------------------------===//

/// p = x w
std::string oneProduct(int64_t columns, const char *mesh = "<tp = 1>") {
  CUDAPlan plan(mesh);
  int x = plan.input("x", {4, 8}, "[_, _]"),
      w = plan.input("w", {8, columns}, "[_, _]");
  int p = plan.output("p", {4, columns}, "[_, _]");
  plan.contract(x, {0, 2}, w, {2, 1}, p, {0, 1});
  return plan.module();
}

TEST_F(Autotune, WritersKeepWhatOthersWrote) {
  driver().algorithms = {3, 1};
  const tessera_context_options own = options(TESSERA_AUTOTUNE);
  Session first, second;
  ASSERT_EQ(first.open(oneProduct(5), own), "");
  ASSERT_EQ(second.open(oneProduct(6), own), "");
  ASSERT_EQ(first.bind(), "");
  EXPECT_EQ(stored().entries.size(), 1u);
  ASSERT_EQ(second.bind(), "");
  EXPECT_EQ(stored().entries.size(), 2u);
  // Nor does it undo them later, with a smaller product in the same memory.
  tessera_binding_destroy(std::exchange(first.binding, nullptr));
  tessera_module_destroy(std::exchange(first.module, nullptr));
  const std::string more = oneProduct(3);
  ASSERT_OK(tessera_module_load(first.context, more.data(), more.size(),
                                &first.module));
  ASSERT_EQ(first.bindAllocated(), "");
  EXPECT_EQ(stored().entries.size(), 3u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST_F(Autotune, OfOneProductTheFirstWriterCounts) {
  const tessera_context_options own = options(TESSERA_AUTOTUNE);
  Session first, second;
  ASSERT_EQ(first.open(oneProduct(5), own), "");
  ASSERT_EQ(second.open(oneProduct(5), own), "");
  driver().algorithms = {3, 2, 1};
  ASSERT_EQ(first.bind(), "");
  EXPECT_EQ(counts(first), Counts({0, 1, 0}));
  const std::string text = read();
  driver().algorithms = {3, 1, 2};
  ASSERT_EQ(second.bind(), "");
  EXPECT_EQ(counts(second), Counts({1, 0, 0}));
  EXPECT_EQ(read(), text);
  driver().products.clear();
  ASSERT_EQ(second.run(), "");
  EXPECT_EQ(driver().products.at(0).algorithm, 2);
}

TEST_F(Autotune, AllRanksTakeWhatAnotherWriterHas) {
  driver().name = "Fake";
  driver().algorithms = {3, 2, 1};
  TwoRanks ranks(oneProduct(5, "<tp = 2>"), options(TESSERA_AUTOTUNE), [&] {
    Session other;
    EXPECT_EQ(other.open(oneProduct(5), options(TESSERA_AUTOTUNE)), "");
    EXPECT_EQ(other.bind(), "");
    other.close();
    driver().algorithms = {3, 1, 2};
  });
  for (int rank : {0, 1}) {
    EXPECT_EQ(ranks.contexts[rank] + ranks.errors[rank], "");
    EXPECT_EQ(ranks.algorithms[rank], Ints({2})) << rank;
    EXPECT_EQ(ranks.chosen[rank], Counts({1, 0, 0})) << rank;
  }
}

TEST_F(Autotune, ManyWritersAtOnceLoseNothing) {
  constexpr int kWriters = 8, kSaves = 20;
  auto write = [&](int writer) {
    Algorithms mine, seen;
    mine.origin = "here";
    for (int i = 0; i < kSaves; ++i) {
      const std::string key = std::to_string(writer) + "-" + std::to_string(i);
      mine.entries[key].algorithm.data[0] = writer;
      Result<Algorithms> saved = mine.save(file, seen, 60);
      ASSERT_TRUE(saved) << saved.message();
      EXPECT_EQ(saved->entries.at(key), mine.entries.at(key));
      seen = mine;
    }
  };
  std::vector<std::thread> threads;
  for (int writer = 0; writer < kWriters; ++writer)
    threads.emplace_back(write, writer);
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(stored().entries.size(), size_t(kWriters * kSaves));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST_F(Autotune, WhatOthersDidToTheFileMayBeAnError) {
  driver().algorithms = {3, 1};
  tessera_context_options own = options(TESSERA_AUTOTUNE);
  own.deadline = 0.2;
  auto error = [&](const std::function<void()> &meanwhile) {
    Session session;
    EXPECT_EQ(session.open(oneProduct(5), own), "");
    meanwhile();
    return session.bind();
  };
  EXPECT_ERROR(error([&] { write("tessera-algorithms 1\nhere\n"); }),
               file + ":3: the end is missing");
  std::filesystem::remove(file);
  EXPECT_EQ(
      error([&] { write("tessera-algorithms 1\nsomewhere\nend 0\n"); }),
      file + ": another process has put algorithms for somewhere there, these "
             "are for cuBLASLt 13.1.0 on Fake 0: take a file for each");
  std::filesystem::remove(file);

  std::optional<FileLock> held;
  auto hold = [&] {
    Result<FileLock> lock = FileLock::take(file, 0);
    ASSERT_TRUE(lock) << lock.message();
    held.emplace(std::move(*lock));
  };
  const std::string why =
      file + ": cannot be locked: another process holds " + file + ".lock";
  EXPECT_EQ(error(hold), why);
  // It is known before anything is measured.
  tessera_context *context;
  EXPECT_EQ(take(tessera_context_create(&own, &context)), why);
  held.reset();
  EXPECT_EQ(error([] {}), "");
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST_F(Autotune, AFileThatCannotBeWrittenIsKnownBeforeAnythingRuns) {
  file = folder / "missing" / "algorithms";
  tessera_context_options own = options(TESSERA_AUTOTUNE);
  tessera_context *context;
  tessera_status *status = tessera_context_create(&own, &context);
  EXPECT_EQ(tessera_status_code(status), TESSERA_IO);
  EXPECT_ERROR(take(status), file + ": cannot be written: No such file");
  EXPECT_TRUE(driver().calls.empty());

  file = folder;
  own = options(TESSERA_AUTOTUNE);
  EXPECT_ERROR(take(tessera_context_create(&own, &context)),
               file + ": cannot be read: Is a directory");
}

TEST_F(Autotune, WhatTheOptionsMustSay) {
  tessera_context *context;
  tessera_context_options own = options();
  EXPECT_ERROR(take(tessera_context_create(&own, &context)),
               file + ": there is no such file of algorithms");
  own = cudaOptions(TESSERA_AUTOTUNE);
  EXPECT_ERROR(take(tessera_context_create(&own, &context)),
               "TESSERA_AUTOTUNE needs `algorithms`");
  own = options();
  own.backend = "cpu";
  EXPECT_ERROR(take(tessera_context_create(&own, &context)),
               "`algorithms` is for the backend \"cuda\"");
  // A caller built with an older header has no such field.
  own = options();
  own.size = offsetof(tessera_context_options, algorithms);
  ASSERT_OK(tessera_context_create(&own, &context));
  tessera_context_destroy(context);
}

TEST_F(Autotune, ADamagedFileIsAnErrorThatNamesTheLine) {
  {
    Session session;
    ASSERT_EQ(bindThree(session, options(TESSERA_AUTOTUNE)), "");
  }
  const std::string text = read();
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  ASSERT_EQ(lines.size(), 5u);
  auto expect = [&](const std::string &damaged, const std::string &error) {
    write(damaged);
    for (uint32_t flags : {0u, uint32_t(TESSERA_AUTOTUNE)}) {
      tessera_context_options own = options(flags);
      tessera_context *context;
      tessera_status *status = tessera_context_create(&own, &context);
      EXPECT_EQ(tessera_status_code(status), TESSERA_IO);
      EXPECT_ERROR(take(status), file + ":" + error);
    }
    EXPECT_EQ(read(), damaged);
  };
  auto with = [&](size_t line, const std::string &instead) {
    std::string result;
    for (size_t i = 0; i < lines.size(); ++i)
      result += (i == line ? instead : lines[i]) + "\n";
    return result;
  };
  auto changed = [&](size_t line, size_t at, char to) {
    std::string damaged = lines[line];
    damaged[at] = to;
    return with(line, damaged);
  };
  expect("", "1: this is no file of algorithms");
  expect("{}", "1: this is no file of algorithms");
  expect(with(1, ""), "2: here stands what the algorithms are for");
  expect(with(2, "x"), "3: this is no entry");
  expect(with(3, lines[3] + " "), "4: this is no entry");
  expect(with(3, lines[2]), "4: this product has an entry already");
  const size_t algorithm = lines[2].find(' ') + 1;
  expect(changed(2, algorithm, 'g'),
         "3: an algorithm is 128 hexadecimal digits");
  expect(changed(2, algorithm, 'f'), "3: the line is damaged");
  expect(changed(2, 0, '8'), "3: the line is damaged");
  expect(changed(3, algorithm + 129, '9'), "4: ");
  expect(changed(3, lines[3].size() - 1, 'x'), "4: the line is damaged");
  expect(changed(2, lines[2].find('.', algorithm), ','), "3: a time is");
  expect(with(4, "end 3"), "5: there are 2 entries above");
  expect(with(4, ""), "5: this is no entry");
  expect(text.substr(0, text.size() - 6), "5: the end is missing");
  expect(text + "more", "6: nothing follows the end");
}

} // namespace
