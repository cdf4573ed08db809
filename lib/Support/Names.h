//===- Names.h - what a wrong name was likely meant to be -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_NAMES_H
#define TESSERA_SUPPORT_NAMES_H

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

/// How many letters change, come, go or swap with the next from `a` to `b`.
inline size_t editDistance(const std::string &a, const std::string &b) {
  std::vector<size_t> before, last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min(
          {last[j - 1] + (a[i - 1] != b[j - 1]), last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

/// The one of `names` that `name` was likely meant to be, as "; did you mean
/// 'x'?", or nothing.
inline std::string suggestName(const std::string &name,
                               const std::vector<std::string> &names) {
  const std::string *best = nullptr;
  size_t least = 0;
  for (const std::string &other : names) {
    // A name within another one (a prefix like "bert.") counts as near.
    bool within = std::min(name.size(), other.size()) >= 3 &&
                  (other.find(name) != std::string::npos ||
                   name.find(other) != std::string::npos);
    size_t distance = within ? 1 : editDistance(name, other);
    if (distance <= std::max<size_t>(1, name.size() / 3) &&
        distance < std::max(name.size(), other.size()) &&
        (!best || distance < least)) {
      best = &other;
      least = distance;
    }
  }
  return best ? "; did you mean '" + *best + "'?" : "";
}

} // namespace tessera

#endif // TESSERA_SUPPORT_NAMES_H
