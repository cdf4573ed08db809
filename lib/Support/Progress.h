//===- Progress.h - a stage that takes long, on a terminal ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_PROGRESS_H
#define TESSERA_SUPPORT_PROGRESS_H

#include "Support/Clock.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <unistd.h>
#include <utility>

namespace tessera {

/// One line on stderr: what, how much of it, for how long, and how long yet. It
/// comes after a second, goes with the stage, and is only for terminals.
class Progress {
public:
  /// `unit`: what is counted, as "kernels"; bytes come in MB and GB.
  Progress(std::string what, std::string unit, bool shows = true,
           int fd = STDERR_FILENO)
      : what(std::move(what)), unit(std::move(unit)), fd(fd),
        shows(shows && isatty(fd)) {}
  Progress(const Progress &) = delete;
  ~Progress() {
    if (shown > 0)
      print("\r\033[K");
  }

  /// `all`: 0 where it is not known.
  void show(uint64_t done, uint64_t all) {
    const double time = now();
    if (!shows || time - begin < 1 || time - shown < 0.1)
      return;
    shown = time;
    std::string line = "\r\033[K" + what + ": " + getAmount(done, all);
    line += ", " + getDuration(time - begin);
    if (done > 0 && done <= all)
      line +=
          ", " + getDuration((time - begin) * (all - done) / done) + " left";
    print(line);
  }

private:
  std::string getAmount(uint64_t done, uint64_t all) const {
    const bool isBytes = unit == "bytes";
    const bool isLarge = isBytes && std::max(done, all) >= 1'000'000'000;
    auto number = [&](uint64_t value) {
      if (!isBytes)
        return std::to_string(value);
      char text[32];
      snprintf(text, sizeof text, "%.1f", value / (isLarge ? 1e9 : 1e6));
      return std::string(text);
    };
    return number(done) + (all ? " of " + number(all) : "") + " " +
           (!isBytes  ? unit
            : isLarge ? "GB"
                      : "MB");
  }
  static std::string getDuration(double seconds) {
    char text[32];
    const auto whole = static_cast<unsigned long long>(seconds);
    snprintf(text, sizeof text, "%llu:%02llu", whole / 60, whole % 60);
    return text;
  }
  /// Nobody is told when it fails.
  void print(const std::string &text) const {
    (void)!write(fd, text.data(), text.size());
  }

  const std::string what, unit;
  const int fd;
  const bool shows;
  const double begin = now();
  double shown = 0; ///< when; 0: not yet
};

} // namespace tessera

#endif // TESSERA_SUPPORT_PROGRESS_H
