//===- Variants.cpp - which variant of an op runs -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Runtime/Variants.h"
#include "Support/Try.h"
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
  TSR_TRY(checkVariants(kind, entry.names));
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

/// Why a variant cannot run; empty: it can.
static std::string whyNot(const fb::VariantT &variant, const Backend &backend) {
  if (!variant.reason.empty())
    return variant.reason;
  Status status = backend.runs(variant.name);
  return status ? "" : status.message();
}

/// The first of `names`, or of all, that can run.
static std::optional<int> choose(const fb::AlternativeT &alternative,
                                 const std::vector<std::string> *names,
                                 const Backend &backend) {
  const auto &variants = alternative.variants;
  auto find = [&](const std::string *name) -> std::optional<int> {
    for (size_t i = 0; i < variants.size(); ++i)
      if ((!name || variants[i]->name == *name) &&
          whyNot(*variants[i], backend).empty())
        return i;
    return std::nullopt;
  };
  if (!names)
    return find(nullptr);
  for (const std::string &name : *names)
    if (std::optional<int> found = find(&name))
      return found;
  return std::nullopt;
}

static Failure noVariant(const fb::AlternativeT &alternative,
                         const std::vector<std::string> *names,
                         const Backend &backend) {
  std::string reasons, others;
  auto add = [](std::string &text, const char *between, std::string more) {
    text += (text.empty() ? "" : between) + std::move(more);
  };
  if (names)
    for (const std::string &name : *names)
      if (std::ranges::count(alternative.variants, name, &fb::VariantT::name) ==
          0)
        add(reasons, "; ", name + ": it is not in the module");
  for (const auto &variant : alternative.variants) {
    const std::string why = whyNot(*variant, backend);
    if (why.empty())
      add(others, ", ", variant->name);
    else if (!names || std::ranges::count(*names, variant->name))
      add(reasons, "; ", variant->name + ": " + why);
  }
  return {TESSERA_INVALID_ARGUMENT,
          "no variant of " + alternative.kind + " that is allowed is there: " +
              reasons + "; there is " + (others.empty() ? "none" : others),
          alternative.op, alternative.location};
}

Outcome<std::vector<int>> tessera::chooseVariants(const fb::PlanT &plan,
                                                  const Backend &backend) {
  std::vector<int> chosen;
  for (const auto &alternative : plan.alternatives) {
    const std::vector<std::string> *names = allowedOf(alternative->kind);
    std::optional<int> variant = choose(*alternative, names, backend);
    if (!variant)
      return noVariant(*alternative, names, backend);
    chosen.push_back(*variant);
  }
  return chosen;
}
