//===- Describe.h - how a value lies, in words ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LSP_DESCRIBE_H
#define TESSERA_LSP_DESCRIBE_H

#include "Layout/View.h"

#include "mlir/IR/BuiltinTypes.h"

#include <string>

namespace tessera::lsp {

/// What the view of `type` says: what is split over which axes, bytes of a
/// device, and which indices each device has. As Markdown. `extents` are those
/// of `type`, with dynamic ones at their declared maximum, or kDynamic.
std::string describe(mlir::RankedTensorType type, const layout::Shape &extents);

} // namespace tessera::lsp

#endif // TESSERA_LSP_DESCRIBE_H
