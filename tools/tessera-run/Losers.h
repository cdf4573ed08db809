//===- Losers.h - what moves would have cost otherwise --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUN_LOSERS_H
#define TESSERA_RUN_LOSERS_H

#include "Support/Result.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tessera::run {

/// By collective of the module's plan, the alternative that lost to the move
/// that the collective is of, with its cost at these sizes; "" without one.
/// `hash`: of the module that the file must still be; `sizes`: values of its
/// symbols.
Result<std::vector<std::string>> priceLosers(const std::string &module,
                                             uint64_t hash,
                                             std::span<const int64_t> sizes);

} // namespace tessera::run

#endif // TESSERA_RUN_LOSERS_H
