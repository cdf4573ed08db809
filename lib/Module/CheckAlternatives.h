//===- CheckAlternatives.h - one variant is as good as another --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_MODULE_CHECKALTERNATIVES_H
#define TESSERA_MODULE_CHECKALTERNATIVES_H

#include "Module/Module.h"

namespace tessera {

/// What is wrong with the alternatives of a plan whose steps, ports and aliases
/// are checked; nothing if whatever is chosen, no step reads what another
/// variant would have written.
std::optional<std::string> checkAlternatives(const fb::PlanT &plan);

} // namespace tessera

#endif // TESSERA_MODULE_CHECKALTERNATIVES_H
