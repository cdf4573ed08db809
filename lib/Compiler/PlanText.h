//===- PlanText.h - a module's plan for people ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_PLANTEXT_H
#define TESSERA_COMPILER_PLANTEXT_H

#include <string>
#include <string_view>

namespace tessera {
/// The plan in a module file: its sizes, tensors, ports and steps, one a line.
std::string printPlan(std::string_view module);
} // namespace tessera

#endif // TESSERA_COMPILER_PLANTEXT_H
