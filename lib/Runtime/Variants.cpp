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
#include <functional>
#include <mutex>
#include <optional>

using namespace tessera;

namespace {
using Names = std::vector<std::string>;

/// Of a choice.
struct Problem {
  std::string text;
  Names variants;
  std::string op; ///< the first that has it, with its location
};

struct Entry {
  std::string kind;
  Names names;
  std::vector<Problem> problems; ///< of a choice, which has no names
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
  entries.push_back({std::string(kind), std::move(*parsed), {}});
  return Ok{};
}

std::string tessera::choiceText(const fb::PlanT &plan,
                                const std::vector<int> &chosen,
                                std::string_view kind) {
  Names lines; // layers are alike
  for (size_t i = 0; i < chosen.size(); ++i) {
    const fb::AlternativeT &alternative = *plan.alternatives[i];
    if (alternative.kind != kind || alternative.problem.empty())
      continue;
    const std::string line = alternative.variants[chosen[i]]->name + "\t" +
                             alternative.problem + "\t";
    if (std::ranges::any_of(lines, [&](const std::string &known) {
          return known.starts_with(line);
        }))
      continue;
    std::string op = alternative.op + " at " + alternative.location;
    std::ranges::replace(op, '\n', ' '); // of a file's name
    lines.push_back(line + op);
  }
  std::string text;
  for (const std::string &line : lines)
    text += "\n" + line;
  return text.empty() ? "" : std::string(kind) + text;
}

Status tessera::pushChoice(std::string_view choice) {
  auto next = [&](std::string_view &text, char end) {
    std::string_view part = text.substr(0, text.find(end));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    return part;
  };
  Entry entry;
  entry.kind = next(choice, '\n');
  bool fits = !choice.empty();
  while (fits && !choice.empty()) {
    std::string_view line = next(choice, '\n');
    Names variants = {std::string(next(line, '\t'))};
    const std::string problem(next(line, '\t'));
    fits = checkVariants(entry.kind, variants) && !problem.empty() &&
           !line.empty();
    auto known = std::ranges::find(entry.problems, problem, &Problem::text);
    if (known == entry.problems.end())
      entry.problems.push_back({problem, variants, std::string(line)});
    else
      known->variants.push_back(variants[0]);
  }
  if (!fits)
    return Error{"this is no choice that tessera_binding_choice gave, of a "
                 "binding with ops of the kind"};
  entries.push_back(std::move(entry));
  return Ok{};
}

Status tessera::popVariants() {
  if (entries.empty())
    return Error{"this thread has no variants to pop"};
  entries.pop_back();
  return Ok{};
}

std::optional<std::pair<int, int>> tessera::variantOf(const fb::PlanT &plan,
                                                      const fb::StepT &step) {
  if (step.alternative >= 0)
    return std::pair<int, int>(step.alternative, step.variant);
  for (size_t i = 0; i < plan.alternatives.size(); ++i) {
    const fb::AlternativeT &of = *plan.alternatives[i];
    auto isThere = [](const auto &variant) { return variant->reason.empty(); };
    if (of.op == step.op && of.location == step.location &&
        std::ranges::count_if(of.variants, isThere) == 1)
      return std::pair<int, int>(i, std::ranges::find_if(of.variants, isThere) -
                                        of.variants.begin());
  }
  return std::nullopt;
}

std::string tessera::variantNames(const fb::AlternativeT &alternative) {
  std::string text;
  for (const auto &variant : alternative.variants)
    if (variant->reason.empty())
      text += (text.empty() ? "" : ", ") + variant->name;
  return text;
}

/// What the thread or the process says of a kind; none: nothing.
static std::optional<Entry> entryOf(const std::string &kind) {
  for (size_t i = entries.size(); i-- > 0;)
    if (entries[i].kind == kind)
      return entries[i];
  Defaults &defaults = getDefaults();
  std::lock_guard lock(defaults.mutex);
  if (auto entry = defaults.namesOf.find(kind); entry != defaults.namesOf.end())
    return Entry{kind, entry->second, {}};
  return std::nullopt;
}

/// Why a variant, by its number, cannot run; empty: it can.
using WhyNot = std::function<std::string(int)>;

/// The first of `names`, or of all, that can run.
static std::optional<int> choose(const fb::AlternativeT &alternative,
                                 const std::optional<Names> &names,
                                 const WhyNot &whyNot) {
  const auto &variants = alternative.variants;
  auto find = [&](const std::string *name) -> std::optional<int> {
    for (size_t i = 0; i < variants.size(); ++i)
      if ((!name || variants[i]->name == *name) && whyNot(i).empty())
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
                         const WhyNot &whyNot) {
  std::string reasons, others;
  auto add = [](std::string &text, const char *between, std::string more) {
    text += (text.empty() ? "" : between) + std::move(more);
  };
  const auto &variants = alternative.variants;
  if (names)
    for (const std::string &name : *names)
      if (std::ranges::count(variants, name, &fb::VariantT::name) == 0)
        add(reasons, "; ", name + ": it is not in the module");
  for (size_t i = 0; i < variants.size(); ++i) {
    const std::string why = whyNot(i), &name = variants[i]->name;
    if (why.empty())
      add(others, ", ", name);
    else if (!names || std::ranges::count(*names, name))
      add(reasons, "; ", name + ": " + why);
  }
  return {TESSERA_INVALID_ARGUMENT,
          "no variant of " + alternative.kind + " that is allowed is there: " +
              reasons + "; there is " + (others.empty() ? "none" : others),
          alternative.op, alternative.location};
}

/// The ops of a choice that an alternative is to follow. An error where there
/// are none.
static Outcome<const Problem *> follow(const fb::AlternativeT &alternative,
                                       const Entry &entry) {
  std::string others;
  for (const Problem &problem : entry.problems) {
    if (problem.text == alternative.problem)
      return &problem;
    others +=
        (others.empty() ? "" : "; ") + problem.text + " (" + problem.op + ")";
  }
  return Failure{TESSERA_INVALID_ARGUMENT,
                 "the choice is of " + alternative.kind + " of " + others +
                     ", not of " + alternative.problem +
                     ": it must be of a binding of the same",
                 alternative.op, alternative.location};
}

Outcome<std::vector<int>> tessera::chooseVariants(const fb::PlanT &plan,
                                                  const Backend &backend,
                                                  const Refusals &refused) {
  std::vector<int> chosen;
  for (const auto &alternative : plan.alternatives) {
    const WhyNot whyNot = [&](int variant) -> std::string {
      const fb::VariantT &of = *alternative->variants[variant];
      if (!of.reason.empty())
        return of.reason;
      if (Status status = backend.runs(of.name, *alternative); !status)
        return status.message();
      auto found = refused.find({static_cast<int>(chosen.size()), variant});
      return found == refused.end() ? "" : found->second;
    };
    std::optional<Names> names;
    std::string from;
    if (const std::optional<Entry> entry = entryOf(alternative->kind)) {
      names = entry->names;
      if (!entry->problems.empty()) {
        Outcome<const Problem *> problem = follow(*alternative, *entry);
        if (!problem)
          return problem.error();
        names = (*problem)->variants;
        from = ", and " + (*problem)->op + " chose " + quoteNames(*names);
      }
    }
    std::optional<int> variant = choose(*alternative, names, whyNot);
    if (!variant) {
      Failure failure = noVariant(*alternative, names, whyNot);
      failure.message += from;
      return failure;
    }
    chosen.push_back(*variant);
  }
  return chosen;
}
