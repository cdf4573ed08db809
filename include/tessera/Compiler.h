//===- Compiler.h - a program's text to a module --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compiler for programs that embed it. What goes in and comes out is bytes.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_H
#define TESSERA_COMPILER_H

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#define TESSERA_VISIBLE __attribute__((visibility("default")))

namespace tessera {

struct CompileOptions {
  /// Of the source, for messages and the places of ops in the module.
  std::string name = "-";
  /// Sizes of mesh axes: "tp=4". Axes not named keep theirs.
  std::vector<std::string> mesh;
  /// A file with a line "mesh <tp = 2>" and views by name, with patterns:
  /// "layers.*.wq: [did(tp) * _, _]"; empty: none.
  std::string shardings;
  /// Bytes that a device may hold between steps, "80GiB": values beyond are
  /// made again. Empty: all are kept.
  std::string memory;
  /// What the module runs on: "cpu", "cuda:sm_90a" for H100 and H200, or
  /// "cuda:sm_80", "cuda:sm_89" and so on for GPUs from there on. "cuda" is the
  /// GPU of this machine.
  std::string target = "cpu";
  /// What moves and loops are priced with, "<latency = 1.0e-5, bandwidth =
  /// 2.0e10, copy = 2.5e11, loops = 4.0e13>": of one device, seconds of a step
  /// that communicates, bytes a second of its link and of a local copy,
  /// iterations a second of a product. Empty: what the program says
  /// (`tv.machine`), else what the target has.
  std::string machine;
  /// Variants of attention to compile in, in order of preference: "flash",
  /// "cudnn", "math". Empty: all, in this order.
  std::vector<std::string> attention;
  /// Of matrix products on cuda: "cublaslt", "own". Empty: "cublaslt", and
  /// nothing to choose.
  std::vector<std::string> matmul;
  /// A move of data that the source does not write is an error.
  bool strict = false;
  /// Ops are placed one after the other alone, not together where that takes
  /// less time by the model.
  bool opByOp = false;
  /// Whether `CompileResult::remarks` says where each view and move comes from.
  bool explain = false;
  /// The phase to start after and the one to stop after, by the names of
  /// `getPhases`. What has been through a phase may be compiled on from there.
  std::string from = "source";
  std::string to = "module";
  /// Whether programs that are written out have the places of ops, `loc(...)`,
  /// and each tensor type once, as an alias.
  bool locations = false;
  /// Where the program is written after each phase; empty: nowhere.
  std::string dumpDirectory;
  /// Where each kernel for cuda is written as a program of its own; empty:
  /// nowhere.
  std::string dumpKernels;
  /// NVRTC's library or its folder; empty: where it usually is.
  std::string nvrtc;
  /// Called with how many kernels for cuda are compiled, of how many, on any
  /// thread, one at a time.
  std::function<void(size_t done, size_t all)> progress;
};

struct CompileResult {
  bool succeeded = false;
  /// The program after the last phase: a module file, or text.
  std::string output;
  /// Errors and warnings, each with its place; the reasons of decisions.
  std::string diagnostics;
  std::string remarks;
  /// What moves between devices: a line for each collective and place, with
  /// the bytes of a device at the largest sizes.
  std::string moves;
};

/// Whether MLIR's reader survives `source`: it trusts the numbers in bytecode,
/// so that damage may crash it. A child process reads it first; what it says is
/// empty, or an error. Not for a process of several threads. Text needs no try.
TESSERA_VISIBLE std::string tryBytecode(std::string_view source);

/// Compiles a program in text or bytecode. Bytecode is trusted to be whole: it
/// is what MLIR has written, or what `tryBytecode` finds nothing against.
TESSERA_VISIBLE CompileResult compile(std::string_view source,
                                      const CompileOptions &options);

/// In order: "source", ..., "module".
TESSERA_VISIBLE std::vector<std::string> getPhases();

} // namespace tessera

#endif // TESSERA_COMPILER_H
