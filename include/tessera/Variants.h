//===- Variants.h - which variants of ops run, as a scope -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// tessera_variants_push, or push_choice, and the pop, on every way out of a
// scope.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_VARIANTS_H
#define TESSERA_VARIANTS_H

#include "tessera/tessera.h"

#include <initializer_list>
#include <stdexcept>
#include <string>

namespace tessera {

/// From here to the end of the scope, what this thread binds takes these
/// variants of ops of a kind, and no others; the preferred first. Scopes nest:
/// the innermost for a kind counts. What is bound keeps what it took.
///
///     tessera::Variants scope("matmul", {"own", "cublaslt"});
class Variants {
public:
  /// Throws std::invalid_argument where there is no such kind or variant.
  Variants(const char *kind, std::initializer_list<const char *> names) {
    std::string list;
    for (const char *name : names)
      list += (list.empty() ? "" : ",") + std::string(name);
    check(tessera_variants_push(kind, list.c_str()));
  }
  /// What a binding chose, for the module of the gradients, in any thread:
  ///
  ///     std::string choice = tessera_binding_choice(forward, "attention");
  ///     ...
  ///     tessera::Variants scope(choice);
  ///
  /// Throws std::invalid_argument where that is no choice of a binding.
  explicit Variants(const std::string &choice) {
    check(tessera_variants_push_choice(choice.c_str()));
  }
  /// In the thread that made it.
  ~Variants() { tessera_status_free(tessera_variants_pop()); }
  Variants(const Variants &) = delete;
  Variants &operator=(const Variants &) = delete;

private:
  static void check(tessera_status *status) {
    if (!status)
      return;
    std::string message = tessera_status_message(status);
    tessera_status_free(status);
    throw std::invalid_argument(message);
  }
};

/// Of attention and its gradient:
///
///     tessera::AttentionBackends scope({"flash", "math"});
class AttentionBackends : public Variants {
public:
  explicit AttentionBackends(std::initializer_list<const char *> names)
      : Variants("attention", names) {}
};

} // namespace tessera

#endif // TESSERA_VARIANTS_H
