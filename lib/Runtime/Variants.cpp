//===- Variants.cpp - which variant of an op runs -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Runtime/Variants.h"
#include "Support/Variants.h"

#include <algorithm>

using namespace tessera;

namespace {
struct Entry {
  std::string kind;
  std::vector<std::string> names;
};
thread_local std::vector<Entry> entries;
} // namespace

Status tessera::pushVariants(std::string_view kind, std::string_view names) {
  Entry entry{std::string(kind), {}};
  while (!names.empty()) {
    size_t end = names.find(',');
    entry.names.emplace_back(names.substr(0, end));
    names.remove_prefix(end == names.npos ? names.size() : end + 1);
  }
  if (Status status = checkVariants(kind, entry.names); !status)
    return status;
  entries.push_back(std::move(entry));
  return Ok{};
}

Status tessera::popVariants() {
  if (entries.empty())
    return Error{"this thread has no variants to pop"};
  entries.pop_back();
  return Ok{};
}

std::string tessera::variantNames(const fb::AlternativeT &alternative) {
  std::string text;
  for (const auto &variant : alternative.variants)
    if (variant->reason.empty())
      text += (text.empty() ? "" : ", ") + variant->name;
  return text;
}

static const std::vector<std::string> *allowedOf(const std::string &kind) {
  for (size_t i = entries.size(); i-- > 0;)
    if (entries[i].kind == kind)
      return &entries[i].names;
  return nullptr;
}

/// The first of `names`, or of all, that is there.
static std::optional<int> choose(const fb::AlternativeT &alternative,
                                 const std::vector<std::string> *names) {
  const auto &variants = alternative.variants;
  auto isThere = [&](const auto &variant) { return variant->reason.empty(); };
  if (!names)
    return std::ranges::find_if(variants, isThere) - variants.begin();
  for (const std::string &name : *names)
    for (size_t i = 0; i < variants.size(); ++i)
      if (variants[i]->name == name && isThere(variants[i]))
        return i;
  return std::nullopt;
}

static Failure noVariant(const fb::AlternativeT &alternative,
                         const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names) {
    std::string reason = "it is not in the module";
    for (const auto &variant : alternative.variants)
      if (variant->name == name)
        reason = variant->reason;
    text += (text.empty() ? "" : "; ") + name + ": " + reason;
  }
  return {TESSERA_INVALID_ARGUMENT,
          "no variant of " + alternative.kind + " that is allowed is there: " +
              text + "; there is " + variantNames(alternative),
          alternative.op, alternative.location};
}

Outcome<std::vector<int>> tessera::chooseVariants(const fb::PlanT &plan) {
  std::vector<int> chosen;
  for (const auto &alternative : plan.alternatives) {
    const std::vector<std::string> *names = allowedOf(alternative->kind);
    std::optional<int> variant = choose(*alternative, names);
    if (!variant)
      return noVariant(*alternative, *names);
    chosen.push_back(*variant);
  }
  return chosen;
}
