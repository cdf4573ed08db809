//===- TensorViewComposites.cpp - composites in terms of core ops --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorView/TensorView.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

#define NOTYET(Op)                                                             \
  LogicalResult Op::decompose(OpBuilder &, SmallVectorImpl<Value> &) {         \
    return emitOpError() << "cannot be decomposed in this version";            \
  }
NOTYET(AddOp)
NOTYET(MulOp)
NOTYET(GeluOp)
NOTYET(SiluOp)
NOTYET(SoftmaxOp)
NOTYET(LayerNormOp)
NOTYET(RmsNormOp)
NOTYET(RopeOp)
NOTYET(CrossEntropyOp)
NOTYET(DropoutOp)
