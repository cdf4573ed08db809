//===- Try.h - what fails ends the function around it ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_TRY_H
#define TESSERA_SUPPORT_TRY_H

/// Returns the error of a Result from the function around, if it is one. (With
/// several arguments: what has commas outside of parentheses.)
#define TSR_TRY(...)                                                           \
  do {                                                                         \
    if (auto &&tried = (__VA_ARGS__); !tried)                                  \
      return tried.error();                                                    \
  } while (false)

#endif // TESSERA_SUPPORT_TRY_H
