//===- Result.h - a value or one error message ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The libraries below the compiler (layout algebra, module file, runtime) use
// neither LLVM nor exceptions. What can fail returns a Result.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_RESULT_H
#define TESSERA_SUPPORT_RESULT_H

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace tessera {

/// One sentence that names the thing that is wrong and what would be right.
struct Error {
  std::string message;
};

/// A `T`, or the reason why there is none.
template <typename T, typename E = Error> class [[nodiscard]] Result {
public:
  Result(T value) : state(std::in_place_index<0>, std::move(value)) {}
  Result(E error) : state(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state.index() == 0; }
  T &operator*() { return std::get<0>(state); }
  const T &operator*() const { return std::get<0>(state); }
  T *operator->() { return &std::get<0>(state); }
  const T *operator->() const { return &std::get<0>(state); }

  /// Only when there is no value.
  const E &error() const { return std::get<1>(state); }
  const std::string &message() const { return error().message; }

private:
  std::variant<T, E> state;
};

/// Success, or the reason for failure.
struct Ok {};
using Status = Result<Ok>;

} // namespace tessera

#endif // TESSERA_SUPPORT_RESULT_H
