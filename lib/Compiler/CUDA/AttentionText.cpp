//===- AttentionText.cpp - attention's functors ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernel is attention_fwd.cuh. Written here is what it is a template of:
// functors for the program's functions of a score, its configuration, and a
// `__global__` function that hands over the launch's parameters.
//
//===----------------------------------------------------------------------===//

#include "Compiler/CUDA/KernelForms.h"
#include "Compiler/CUDA/ScalarText.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;

/// A static member of the functors: `region` as a function of a score, if it
/// has one, batch, head, query and key.
static LogicalResult writeFunctor(KernelWriter &out, plan::AttentionOp op,
                                  Region &region, const std::string &functor) {
  static constexpr StringLiteral kArguments[] = {"s", "b", "h", "q", "k"};
  Block &block = region.front();
  auto variables = ArrayRef(kArguments).take_back(block.getNumArguments());
  auto type = [&](Value value) { return *getTypeName(value.getType()); };
  Value result = block.getTerminator()->getOperand(0);
  std::string text =
      "static __device__ " + type(result) + " " + functor + "(const Args &args";
  for (auto [variable, argument] :
       llvm::zip_equal(variables, block.getArguments()))
    text += ", " + type(argument) + " " + variable.str();
  out.open(text + ")");
  out.line() << "const " << out.getParametersType() << " &p = *args.p;\n";
  out.line() << "(void)p;\n";
  if (failed(out.enterFunction(op, &region)))
    return failure();
  for (auto [variable, argument] :
       llvm::zip_equal(variables, block.getArguments()))
    out.names[argument] = variable.str();
  if (failed(out.writeBlock(block)))
    return failure();
  out.line() << "return " << out.name(result) << ";\n";
  out.close();
  return success();
}

LogicalResult cuda::writeAttention(KernelWriter &out, plan::AttentionOp op,
                                   DeviceFunction &function) {
  auto type = cast<MemRefType>(op.getQuery().getType());
  const int64_t depth = type.getDimSize(3);
  if ((depth != 64 && depth != 128) ||
      cast<MemRefType>(op.getValue().getType()).getDimSize(3) != depth ||
      !(type.getElementType().isBF16() || type.getElementType().isF16()))
    return op.emitError() << "attention on cuda has a head dimension of 64 or "
                             "128 and elements of bf16 or f16, not "
                          << type;
  for (Value tensor :
       {op.getQuery(), op.getKey(), op.getValue(), op.getResult()}) {
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(cast<MemRefType>(tensor.getType())
                   .getStridesAndOffset(strides, offset)) ||
        strides.back() != 1)
      return op.emitError() << "attention on cuda reads and writes heads that "
                               "are contiguous in memory, not "
                            << tensor.getType();
  }
  const std::string &symbol = function.symbol,
                    parameters = out.getParametersType();
  const bool hasMods = !op.getScoreMod().empty() || !op.getMaskMod().empty();
  // FwdConfig of attention_fwd.cuh; the text says so again.
  const bool scaled =
      !op.getScoreMod().empty() || !(op.getScale().convertToDouble() > 0);
  const int32_t groups = depth == 64 && !hasMods && !scaled ? 3 : 2;
  const int32_t rows = 64 * groups, keys = 128;
  function.threads = 128 * (groups + 1);
  function.persistent = true;
  function.shared = (2 * rows + 4 * keys) * depth * 2 + 1024;
  auto number = [](Value tensor) {
    return cast<BlockArgument>(tensor).getArgNumber();
  };
  for (unsigned dim : {0, 1, 2})
    function.space.push_back(
        {SpaceExtent::Kind::Dimension, 0, number(op.getResult()), dim});
  function.boxed = {{number(op.getQuery()), {1, 1, rows, 64}},
                    {number(op.getKey()), {1, 1, keys, 64}},
                    {number(op.getValue()), {1, 1, keys, 64}},
                    {number(op.getResult()), {1, 1, 64, 64}}};

  out.line() << "\n";
  out.open("struct " + symbol + "_Mods : AttentionMods");
  out.line() << "struct Args {\n";
  out.line() << "  const " << parameters << " *p;\n";
  out.line() << "};\n";
  Builder b(op.getContext());
  out.line() << "static constexpr float Scale = "
             << getLiteral(b.getF32FloatAttr(op.getScale().convertToDouble()))
             << ";\n";
  if (op.getCausal())
    out.line() << "static constexpr bool Causal = true;\n";
  if (!op.getScoreMod().empty()) {
    out.line() << "static constexpr bool HasScore = true;\n";
    if (failed(writeFunctor(out, op, op.getScoreMod(), "score")))
      return failure();
  }
  if (!op.getMaskMod().empty()) {
    out.line() << "static constexpr bool HasMask = true;\n";
    if (failed(writeFunctor(out, op, op.getMaskMod(), "mask")))
      return failure();
  }
  out.close("};");

  out.nameParameters();
  auto size = [&](Value tensor, int dim) {
    return "int(" + out.name(tensor) + ".size[" + std::to_string(dim) + "])";
  };
  out.line() << "using " << symbol << "_Config = FwdConfig<"
             << *getTypeName(type.getElementType()) << ", " << depth << ", "
             << symbol << "_Mods>;\n";
  out.line() << "static_assert(" << symbol << "_Config::BM == " << rows
             << " && " << symbol << "_Config::BN == " << keys << " &&\n";
  out.line() << "              " << symbol
             << "_Config::Threads == " << function.threads << " &&\n";
  out.line() << "              sizeof(" << symbol
             << "_Config::Shared) == " << function.shared << ",\n";
  out.line() << "              \"what the launch says\");\n";
  out.line() << "// Launches of a module follow each other.\n";
  out.line() << "static __device__ int " << symbol << "_ticket;\n";
  out.line() << "struct " << symbol << "_Boxed {\n";
  out.line() << "  " << parameters << " p;\n";
  out.line() << "  FwdMaps maps;\n";
  out.line() << "};\n";
  out.line() << "extern \"C\" __global__ void __launch_bounds__("
             << function.threads << ", 1)\n";
  out.open(symbol + "(const __grid_constant__ " + symbol + "_Boxed boxed)");
  out.line() << "const " << parameters << " &p = boxed.p;\n";
  out.line() << "FwdParams<" << symbol << "_Mods::Args> f = {};\n";
  if (op.getLse()) {
    std::string lse = out.name(op.getLse());
    out.line() << "f.lse = " << lse << ".data;\n";
    for (int dim = 0; dim < 3; ++dim)
      out.line() << "f.lse_strides[" << dim << "] = " << lse << ".stride["
                 << dim << "];\n";
  }
  out.line() << "f.ticket = &" << symbol << "_ticket;\n";
  out.line() << "f.batch = " << size(op.getQuery(), 0) << ";\n";
  out.line() << "f.heads = " << size(op.getQuery(), 1) << ";\n";
  out.line() << "f.key_heads = " << size(op.getKey(), 1) << ";\n";
  out.line() << "f.queries = " << size(op.getQuery(), 2) << ";\n";
  out.line() << "f.keys = " << size(op.getKey(), 2) << ";\n";
  out.line() << "f.causal_shift = f.keys - f.queries;\n";
  out.line() << "f.args.p = &p;\n";
  out.line() << "attention_fwd<" << symbol << "_Config>(boxed.maps, f);\n";
  out.close();
  return success();
}
