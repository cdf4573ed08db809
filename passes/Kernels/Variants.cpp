//===- Variants.cpp - which variants of an op are compiled in -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernels/Variants.h"
#include "Support/Variants.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;

FailureOr<FittingVariants> tessera::getFittingVariants(
    Operation *op, StringRef kind, ArrayRef<std::string> allowed,
    llvm::function_ref<std::optional<std::string>(StringRef)> whyNot) {
  if (!allowed.empty())
    if (Status status = checkVariants(kind.str(), allowed.vec()); !status)
      return op->emitError() << status.message();
  llvm::SetVector<StringRef> order(allowed.begin(), allowed.end());
  for (const VariantKind &known : kVariantKinds)
    if (StringRef(known.name) == kind)
      order.insert_range(known.variants);
  FittingVariants fitting;
  NamedAttrList without;
  std::string reasons, others;
  for (StringRef variant : order) {
    std::optional<std::string> why = whyNot(variant);
    if (allowed.empty() || llvm::is_contained(allowed, variant)) {
      if (why)
        reasons += "; " + variant.str() + " does not fit: " + *why;
    } else {
      if (!why)
        others +=
            (others.empty() ? "; what would fit: " : ", ") + variant.str();
      why = "it is not compiled in";
    }
    if (why)
      without.append(variant, StringAttr::get(op->getContext(), *why));
    else
      fitting.names.push_back(variant);
  }
  if (fitting.names.empty())
    return op->emitError() << "has no variant that is allowed" << reasons
                           << others;
  if (!without.empty())
    fitting.without = without.getDictionary(op->getContext());
  return fitting;
}
