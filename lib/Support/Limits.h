//===- Limits.h - what programs are bounded by ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_LIMITS_H
#define TESSERA_SUPPORT_LIMITS_H

#include <cstddef>

namespace tessera {

/// Dimensions of a tensor.
constexpr size_t kMaxRank = 16;

} // namespace tessera

#endif // TESSERA_SUPPORT_LIMITS_H
