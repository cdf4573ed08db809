/*===- compile.h - a program's text to a module, from C --------------------===*
 *
 * Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
 * See LICENSE for license information.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * The edge of libtessera-compiler.so for C and what speaks it; Compiler.h is
 * the same for C++. It needs no libtessera.so, and no MLIR where it is used.
 *
 * Different threads may compile at the same time. The library never exits,
 * aborts, raises signals or prints.
 *
 *===----------------------------------------------------------------------===*/

#ifndef TESSERA_COMPILE_H
#define TESSERA_COMPILE_H

#include "tessera/tessera.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fields that are null or 0 are at their defaults. */
typedef struct tessera_compile_options {
  size_t size; /* sizeof, set by the caller; fields beyond count as 0 */
  /* Of the source, for messages and the places of ops in the module; "-". */
  const char *name;
  /* Sizes of mesh axes, "tp=4,dp=2"; axes not named keep theirs. */
  const char *mesh;
  /* What the module runs on: "cpu" is the default; "cuda:sm_90a" is H100 and
   * H200, "cuda" the GPU of this machine. */
  const char *target;
  /* Variants to compile in, in order of preference: "flash,math". All. */
  const char *attention;
  /* The same of matrix products on cuda, "cublaslt,own". "cublaslt". */
  const char *matmul;
  /* Non-zero: a move of data that the source does not write is an error. */
  int32_t strict;
  /* Non-zero: the remarks say where each view and move comes from. */
  int32_t explain;
  /* The phases to start after and to stop after; "source" and "module". */
  const char *from;
  const char *to;
  /* Folders for the program after each phase, and for kernels of cuda as
   * programs of their own; nowhere. */
  const char *dump_directory;
  const char *dump_kernels;
  /* NVRTC's library or its folder; where it usually is. */
  const char *nvrtc;
  /* A file with a line "mesh <tp = 2>" and views by name, with patterns:
   * "layers.*.wq: [did(tp) * _, _]"; none. */
  const char *shardings;
  /* Bytes that a device may hold between steps, "80GiB": values beyond are made
   * again. All are kept. */
  const char *memory;
  /* Non-zero: programs in text have the places of ops, "loc(...)", and each
   * tensor type once, as an alias. */
  int32_t locations;
  /* Called with how many kernels for cuda are compiled, of how many, on any
   * thread, one at a time, while tessera_compile runs; not. */
  void (*progress)(void *user, size_t done, size_t all);
  void *progress_user;
  /* Changes nothing any more: ops are placed together. */
  int32_t together;
  /* Non-zero: ops are placed one after the other alone, not together where that
   * takes less time by the model. */
  int32_t op_by_op;
  /* What moves and loops are priced with, of one device: "<latency = 1.0e-5,
   * bandwidth = 2.0e10, copy = 2.5e11, loops = 4.0e13>", seconds, bytes a second
   * and iterations a second; what the program says, else what the target has. */
  const char *machine;
} tessera_compile_options;

/* What came of a compilation. Strings returned belong to it. */
typedef struct tessera_compiled tessera_compiled;

/* Compiles `count` bytes of text, or of bytecode that MLIR has written: damaged
 * bytecode may crash MLIR's reader. `options` may be null. Null only when there
 * is no memory for the result. */
TESSERA_API tessera_compiled *
tessera_compile(const char *source, size_t count,
                const tessera_compile_options *options);
TESSERA_API void tessera_compiled_free(tessera_compiled *compiled);

/* Non-zero if there is an output. */
TESSERA_API int32_t
tessera_compiled_succeeded(const tessera_compiled *compiled);
/* The program after the last phase: a module file, or text. `count` is set to
 * its bytes. */
TESSERA_API const char *
tessera_compiled_output(const tessera_compiled *compiled, size_t *count);
/* Errors and warnings, each with its place; the reasons of decisions. Never
 * null. */
TESSERA_API const char *
tessera_compiled_diagnostics(const tessera_compiled *compiled);
TESSERA_API const char *
tessera_compiled_remarks(const tessera_compiled *compiled);

/* What moves between devices: a line for each collective and place, with the
 * bytes of a device at the largest sizes. Never null. */
TESSERA_API const char *
tessera_compiled_moves(const tessera_compiled *compiled);

/* The names of phases in order, "source,...,module". */
TESSERA_API const char *tessera_compile_phases(void);

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_COMPILE_H */
