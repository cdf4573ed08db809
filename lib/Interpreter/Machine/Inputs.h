//===- Inputs.h - arguments of an interpreted function -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERPRETER_MACHINE_INPUTS_H
#define TESSERA_INTERPRETER_MACHINE_INPUTS_H

#include "Interpreter/Machine/Interpreter.h"

namespace tessera {
class TensorFiles;
}

namespace tessera::interp {

/// The sizes that `function` declares in `tv.sizes`: those in `given`, else
/// about 6, within maximum and multiple.
mlir::FailureOr<std::map<std::string, int64_t>>
chooseSizes(mlir::func::FuncOp function,
            const std::map<std::string, int64_t> &given);

/// The whole arguments of `function`, rounded to their types. Each has the name
/// `tv.name`, or `argI`. From `files` if it is not null, else made of the name
/// and `seed`: floats in [-1, 1), integers in [0, 4), or in `tv.range`.
mlir::FailureOr<std::vector<std::shared_ptr<NDArray>>>
makeInputs(mlir::func::FuncOp function,
           const std::map<std::string, int64_t> &sizes, uint64_t seed,
           const TensorFiles *files);

} // namespace tessera::interp

#endif // TESSERA_INTERPRETER_MACHINE_INPUTS_H
