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
#include <map>
#include <mutex>
#include <optional>

using namespace tessera;

namespace {
using Names = std::vector<std::string>;

struct Entry {
  std::string kind;
  Names names;
};
thread_local std::vector<Entry> entries;

/// Of the process: at most one for a kind.
struct Defaults {
  std::mutex mutex;
  std::map<std::string, Names, std::less<>> namesOf;
};
} // namespace

/// Never destroyed: a thread may yet bind while the process ends.
static Defaults &getDefaults() {
  static auto *defaults = new Defaults;
  return *defaults;
}

static Result<Names> parse(std::string_view kind, std::string_view text) {
  Names names;
  for (bool more = !text.empty(); more;) {
    size_t end = text.find(',');
    names.emplace_back(text.substr(0, end));
    more = end != text.npos; // what is after a last comma is no name either
    text.remove_prefix(more ? end + 1 : text.size());
  }
  TSR_TRY(checkVariants(kind, names));
  return names;
}

Status tessera::setDefaultVariants(std::string_view kind,
                                   std::string_view names) {
  Result<Names> parsed = parse(kind, names);
  TSR_TRY(parsed);
  Defaults &defaults = getDefaults();
  std::lock_guard lock(defaults.mutex);
  defaults.namesOf.insert_or_assign(std::string(kind), std::move(*parsed));
  return Ok{};
}

Status tessera::clearDefaultVariants(std::string_view kind) {
  TSR_TRY(variantsOf(kind));
  Defaults &defaults = getDefaults();
  std::lock_guard lock(defaults.mutex);
  if (auto entry = defaults.namesOf.find(kind); entry != defaults.namesOf.end())
    defaults.namesOf.erase(entry);
  return Ok{};
}

Status tessera::pushVariants(std::string_view kind, std::string_view names) {
  Result<Names> parsed = parse(kind, names);
  TSR_TRY(parsed);
  entries.push_back({std::string(kind), std::move(*parsed)});
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

/// None: all.
static std::optional<Names> allowedOf(const std::string &kind) {
  for (size_t i = entries.size(); i-- > 0;)
    if (entries[i].kind == kind)
      return entries[i].names;
  Defaults &defaults = getDefaults();
  std::lock_guard lock(defaults.mutex);
  if (auto entry = defaults.namesOf.find(kind); entry != defaults.namesOf.end())
    return entry->second;
  return std::nullopt;
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
                                 const std::optional<Names> &names,
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
                         const std::optional<Names> &names,
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
    const std::optional<Names> names = allowedOf(alternative->kind);
    std::optional<int> variant = choose(*alternative, names, backend);
    if (!variant)
      return noVariant(*alternative, names, backend);
    chosen.push_back(*variant);
  }
  return chosen;
}
