//===- VerifyLocalized.cpp - every tensor is one device's part ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The contract of the phase after tv-localize. The program is straight-line, so
// every device runs its comm ops in the same order.
//
//===----------------------------------------------------------------------===//

#include "Comm/Comm.h"
#include "Localize/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_VERIFYLOCALIZEDPASS
#include "Localize/Passes.h.inc"
} // namespace tessera::tv

static bool isLocal(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return !tensor || isa_and_present<LocalAttr>(tensor.getEncoding());
}

namespace {
struct VerifyLocalized : tv::impl::VerifyLocalizedPassBase<VerifyLocalized> {
  void runOnOperation() override {
    llvm::DenseMap<uint64_t, Operation *> ids;
    auto check = [&](Operation *op) -> LogicalResult {
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (BlockArgument argument : block.getArguments())
            if (!isLocal(argument.getType()))
              return op->emitError()
                     << "has an argument of type " << argument.getType()
                     << ", which is not one device's part; run tv-localize";
      for (Type type : op->getResultTypes())
        if (!isLocal(type))
          return op->emitError()
                 << "has a result of type " << type
                 << ", which is not one device's part; run tv-localize";
      auto collective = dyn_cast<comm::CollectiveOpInterface>(op);
      if (!collective) {
        if (isa<MoveOpInterface>(op))
          return op->emitError()
                 << "moves data, which only comm ops may after localization";
        return success();
      }
      auto [other, isNew] = ids.try_emplace(collective.getId(), op);
      if (!isNew) {
        InFlightDiagnostic diagnostic = op->emitError() << "has the number "
                                                        << collective.getId()
                                                        << " of another move";
        diagnostic.attachNote(other->second->getLoc()) << "the other";
        return diagnostic;
      }
      return success();
    };
    WalkResult result = getOperation()->walk([&](Operation *op) {
      return failed(check(op)) ? WalkResult::interrupt()
                               : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    markAllAnalysesPreserved(); // and nothing is verified again
  }
};
} // namespace
