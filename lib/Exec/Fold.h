//===- Fold.h - the arithmetic of reductions ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_EXEC_FOLD_H
#define TESSERA_EXEC_FOLD_H

#include "Layout/View.h"
#include "Support/DType.h"

#include <cstddef>
#include <span>

namespace tessera {

/// Whether values of this type can be combined so.
Status canFold(DType dtype, layout::Combiner combiner);

/// out[i] = members[0][i] + members[1][i] + ..., in this order, accumulated in
/// f32 for smaller floats. `out` may be one of the members.
void fold(DType dtype, layout::Combiner combiner,
          std::span<const std::byte *const> members, int64_t count,
          std::byte *out);

/// The value that changes nothing, in the first bytes of `out`.
void identityOf(DType dtype, layout::Combiner combiner, std::byte *out);

} // namespace tessera

#endif // TESSERA_EXEC_FOLD_H
