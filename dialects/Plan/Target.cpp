//===- Target.cpp - what a program is compiled for ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan/Target.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

#include <mutex>

using namespace mlir;
using namespace tessera;
using namespace tessera::plan;

/// What a program without the attribute is for.
static constexpr StringLiteral kDefaultTarget = "cpu";

namespace {
/// Of the process, as passes are.
struct Registry {
  std::recursive_mutex mutex;
  SmallVector<TargetKind> kinds;
  llvm::StringMap<Result<std::string> (*)()> aliases;
  llvm::StringMap<std::unique_ptr<Target>> targets; ///< made so far
};
} // namespace

static Registry &getRegistry() {
  static Registry registry;
  return registry;
}

void plan::registerTargets(const TargetKind &kind) {
  std::lock_guard lock(getRegistry().mutex);
  getRegistry().kinds.push_back(kind);
}

void plan::registerTargetAlias(StringLiteral alias,
                               Result<std::string> (*resolve)()) {
  std::lock_guard lock(getRegistry().mutex);
  getRegistry().aliases[alias] = resolve;
}

/// "a, b and c": the names of the kinds that `fits` holds for.
static std::string
listKinds(llvm::function_ref<bool(const TargetKind &)> fits) {
  SmallVector<StringRef> names;
  for (const TargetKind &kind : getRegistry().kinds)
    if (fits(kind))
      names.push_back(kind.names);
  if (names.size() < 2)
    return llvm::join(names, "");
  StringRef last = names.pop_back_val();
  return llvm::join(names, ", ") + " and " + last.str();
}

Result<const Target *> plan::findTarget(StringRef name) {
  Registry &registry = getRegistry();
  std::lock_guard lock(registry.mutex);
  std::unique_ptr<Target> &target = registry.targets[name];
  for (const TargetKind &kind : registry.kinds)
    if (!target)
      target = kind.make(name);
  if (target)
    return target.get();
  registry.targets.erase(name);
  return Error{"there is no target '" + name.str() + "'; there are " +
               listKinds([](const TargetKind &) { return true; })};
}

Result<const Target *> plan::parseTarget(StringRef text) {
  Registry &registry = getRegistry();
  std::lock_guard lock(registry.mutex);
  auto alias = registry.aliases.find(text);
  if (alias == registry.aliases.end())
    return findTarget(text);
  Result<std::string> name = alias->second();
  if (!name)
    return name.error();
  return findTarget(*name);
}

std::optional<std::string> Target::whyNot(StringRef variant,
                                          Operation *op) const {
  if (llvm::is_contained(getVariants(), variant))
    return whyNotHere(variant, op);
  std::lock_guard lock(getRegistry().mutex);
  return "it is for " + listKinds([&](const TargetKind &kind) {
           return llvm::is_contained((*findTarget(kind.example))->getVariants(),
                                     variant);
         });
}

LogicalResult
TargetAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                   StringRef name) {
  Result<const Target *> target = findTarget(name);
  return target ? success() : emitError() << target.message();
}

const Target &plan::getTarget(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto target = op->getAttrOfType<TargetAttr>(kTargetAttr))
      return **findTarget(target.getName());
  return **findTarget(kDefaultTarget);
}

void plan::setTarget(ModuleOp program, const Target &target) {
  program->removeAttr(kTargetAttr);
  if (target.getName() != kDefaultTarget)
    program->setAttr(kTargetAttr,
                     TargetAttr::get(program.getContext(), target.getName()));
}
