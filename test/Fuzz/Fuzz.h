//===- Fuzz.h - what the fuzzers share ------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each fuzzer defines `fuzzOne`; libFuzzer calls it with inputs that it makes
// from those of a folder, and keeps what reaches code that none did before. A
// signal, a sanitizer's report, a failed FUZZ_CHECK or an input that takes too
// long or too much memory ends the program, and the input is in a file
// `crash-*` that the program takes as an argument.
//
//     ViewTextFuzzer -runs=20000 -seed=1 corpus/ViewText
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_FUZZ_FUZZ_H
#define TESSERA_TEST_FUZZ_FUZZ_H

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <sys/time.h>
#include <unistd.h>
#include <vector>

namespace tessera::test {

/// 0; or -1 where the input says so little that it is not kept.
int fuzzOne(std::string_view input);

inline std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (size_t end; (end = text.find(at)) != text.npos;
       text.remove_prefix(end + 1))
    parts.push_back(text.substr(0, end));
  parts.push_back(text);
  return parts;
}

} // namespace tessera::test

#define FUZZ_CHECK(...)                                                        \
  do {                                                                         \
    if (!(__VA_ARGS__)) {                                                      \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__,        \
                   #__VA_ARGS__);                                              \
      std::abort();                                                            \
    }                                                                          \
  } while (false)

/// Of the processor: a machine that does other things, too, finds nothing.
constexpr int kMaxSeconds = 10;

extern "C" inline __attribute__((used, visibility("default"))) int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::signal(SIGPROF, [](int) {
    static const char why[] = "an input takes too long\n";
    [[maybe_unused]] ssize_t written =
        write(STDERR_FILENO, why, sizeof why - 1);
    std::abort();
  });
  itimerval limit{{0, 0}, {kMaxSeconds, 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
  return tessera::test::fuzzOne({reinterpret_cast<const char *>(data), size});
}

#endif // TESSERA_TEST_FUZZ_FUZZ_H
