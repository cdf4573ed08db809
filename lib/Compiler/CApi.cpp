//===- CApi.cpp - compile.h -----------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Compiler.h"
#include "tessera/compile.h"

#include "llvm/ADT/StringExtras.h"

#include <cstring>
#include <new>

using namespace tessera;

struct tessera_compiled {
  CompileResult result;
};

/// The options as far as the caller's struct goes.
static tessera_compile_options read(const tessera_compile_options *given) {
  tessera_compile_options options = {};
  if (given)
    std::memcpy(&options, given, std::min(given->size, sizeof options));
  return options;
}

static void set(std::string &option, const char *text) {
  if (text)
    option = text;
}

static std::vector<std::string> split(const char *list) {
  std::vector<std::string> parts;
  if (list)
    for (llvm::StringRef part : llvm::split(list, ','))
      parts.push_back(part.str());
  return parts;
}

tessera_compiled *tessera_compile(const char *source, size_t count,
                                  const tessera_compile_options *given) try {
  auto *compiled = new (std::nothrow) tessera_compiled;
  if (!compiled)
    return nullptr;
  if (!source) {
    compiled->result.diagnostics = "error: the source is null\n";
    return compiled;
  }
  if (given && (given->size < sizeof given->size || given->size % 8 != 0)) {
    compiled->result.diagnostics =
        "error: the size of tessera_compile_options is " +
        std::to_string(given->size) + "; set it to sizeof\n";
    return compiled;
  }
  const tessera_compile_options in = read(given);
  CompileOptions options;
  set(options.name, in.name);
  options.mesh = split(in.mesh);
  set(options.shardings, in.shardings);
  set(options.memory, in.memory);
  set(options.target, in.target);
  options.attention = split(in.attention);
  options.matmul = split(in.matmul);
  options.strict = in.strict;
  options.opByOp = in.op_by_op;
  set(options.machine, in.machine);
  options.explain = in.explain;
  set(options.from, in.from);
  set(options.to, in.to);
  options.locations = in.locations;
  set(options.dumpDirectory, in.dump_directory);
  set(options.dumpKernels, in.dump_kernels);
  set(options.nvrtc, in.nvrtc);
  if (in.progress)
    options.progress = [in](size_t done, size_t all) {
      in.progress(in.progress_user, done, all);
    };
  compiled->result = compile({source, count}, options);
  return compiled;
} catch (const std::bad_alloc &) {
  return nullptr;
}

void tessera_compiled_free(tessera_compiled *compiled) { delete compiled; }

int32_t tessera_compiled_succeeded(const tessera_compiled *compiled) {
  return compiled && compiled->result.succeeded;
}

const char *tessera_compiled_output(const tessera_compiled *compiled,
                                    size_t *count) {
  if (count)
    *count = compiled ? compiled->result.output.size() : 0;
  return compiled ? compiled->result.output.data() : "";
}

const char *tessera_compiled_diagnostics(const tessera_compiled *compiled) {
  return compiled ? compiled->result.diagnostics.c_str() : "";
}

const char *tessera_compiled_remarks(const tessera_compiled *compiled) {
  return compiled ? compiled->result.remarks.c_str() : "";
}

const char *tessera_compiled_moves(const tessera_compiled *compiled) {
  return compiled ? compiled->result.moves.c_str() : "";
}

const char *tessera_compile_phases() {
  static const std::string phases = llvm::join(getPhases(), ",");
  return phases.c_str();
}
