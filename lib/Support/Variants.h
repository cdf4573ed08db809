//===- Variants.h - ops that are compiled in several variants -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The names that compiler, runtime and tools share.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_VARIANTS_H
#define TESSERA_SUPPORT_VARIANTS_H

#include "Support/Result.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// A kind of op, and its variants in default order of preference.
struct VariantKind {
  std::string_view name;
  std::span<const std::string_view> variants;
};
inline constexpr std::string_view kAttentionVariants[] = {"flash", "cudnn",
                                                          "math"};
inline constexpr std::string_view kMatmulVariants[] = {"cublaslt", "own"};
inline constexpr VariantKind kVariantKinds[] = {
    {"attention", kAttentionVariants}, {"matmul", kMatmulVariants}};

/// 'a', 'b' and 'c'
template <typename Range> std::string quoteNames(const Range &names) {
  std::string text;
  size_t left = std::size(names);
  for (const auto &name : names) {
    text += "'" + std::string(name) + "'";
    if (--left)
      text += left == 1 ? " and " : ", ";
  }
  return text;
}

/// The variants of a kind; an error that says which kinds there are.
inline Result<std::span<const std::string_view>>
variantsOf(std::string_view kind) {
  std::vector<std::string_view> kinds;
  for (const VariantKind &known : kVariantKinds) {
    if (known.name == kind)
      return known.variants;
    kinds.push_back(known.name);
  }
  return Error{"no kind of op '" + std::string(kind) +
               "' has variants; those that have: " + quoteNames(kinds)};
}

/// An error unless `kind` has each of the variants, which says what there is,
/// or if one is named twice.
inline Status checkVariants(std::string_view kind,
                            const std::vector<std::string> &names) {
  auto variants = variantsOf(kind);
  if (!variants)
    return variants.error();
  for (const std::string &name : names)
    if (std::ranges::count(*variants, name) == 0)
      return Error{"'" + name + "' is no variant of " + std::string(kind) +
                   "; there are " + quoteNames(*variants)};
  for (const std::string &name : names)
    if (std::ranges::count(names, name) > 1)
      return Error{"'" + name + "' is named twice"};
  if (names.empty())
    return Error{"no variant of " + std::string(kind) +
                 " is named; there are " + quoteNames(*variants)};
  return Ok{};
}

} // namespace tessera

#endif // TESSERA_SUPPORT_VARIANTS_H
