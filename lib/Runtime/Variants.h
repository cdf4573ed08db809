//===- Variants.h - which variant of an op runs -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each thread has a stack of what it allows, in names or as a binding chose; of
// entries for one kind of op the innermost counts, and where there is none the
// process' default. They are read when a module's memory is asked for and when
// it is bound, and not kept.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_VARIANTS_H
#define TESSERA_RUNTIME_VARIANTS_H

#include "Exec/Backend.h"
#include "Exec/Failure.h"
#include "Module/Module.h"

#include <map>

namespace tessera {

/// Until the matching pop, this thread allows `names`, separated by commas, the
/// preferred first. An error, and no entry, where there is no such kind or
/// name.
Status pushVariants(std::string_view kind, std::string_view names);
/// The same of what `choiceText` gave of a binding.
Status pushChoice(std::string_view choice);
/// An error if nothing was pushed.
Status popVariants();

/// What threads allow that say nothing, of any time; errors as of a push.
Status setDefaultVariants(std::string_view kind, std::string_view names);
/// They allow all again.
Status clearDefaultVariants(std::string_view kind);

/// Why variants cannot take the sizes, by alternative and variant.
using Refusals = std::map<std::pair<int, int>, std::string>;

/// The variant of each alternative that this thread would run: the first that
/// it allows, that is in the module, that the backend can run and that is not
/// refused. Without a word, all are allowed, in the module's order.
Outcome<std::vector<int>> chooseVariants(const fb::PlanT &plan,
                                         const Backend &backend,
                                         const Refusals &refused);

/// The alternative and the variant that a step is of. Where one variant is
/// alone in the module, steps do not say it: then that of its op.
std::optional<std::pair<int, int>> variantOf(const fb::PlanT &plan,
                                             const fb::StepT &step);

/// Names of what the module has of an alternative: "flash, math".
std::string variantNames(const fb::AlternativeT &alternative);

/// For pushChoice, what was chosen of the alternatives of a kind that have a
/// problem: line by line, after the kind, the variant, the problem and an op
/// that has it. Empty without any.
std::string choiceText(const fb::PlanT &plan, const std::vector<int> &chosen,
                       std::string_view kind);

} // namespace tessera

#endif // TESSERA_RUNTIME_VARIANTS_H
