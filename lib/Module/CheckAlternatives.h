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

/// Whether, whatever is chosen, no step reads what another variant would have
/// written. Steps, ports and aliases of the plan are checked before.
Status checkAlternatives(const fb::PlanT &plan);

} // namespace tessera

#endif // TESSERA_MODULE_CHECKALTERNATIVES_H
