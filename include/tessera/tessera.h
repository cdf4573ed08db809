/*===- tessera.h - running a compiled module -------------------------------===*
 *
 * Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
 * See LICENSE for license information.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * The whole edge of libtessera.so. A process holds one rank or several; each
 * rank has a context. A context loads modules; a binding fixes a module's sizes
 * and pointers; a run executes it without allocating.
 *
 *     context -> module -> (ask for the ports' local layouts) -> binding -> run
 *
 * Rules that hold everywhere:
 *  - A call returns null, or a status that the caller frees.
 *  - Structs begin with their size, set by the caller (sizeof), a multiple of
 *    8; fields that lie beyond it count as zero. Additions only.
 *  - A null handle or a null place for a result is an error; a function that
 *    returns no status gives 0, "" or rank -1 for a null handle, and destroying
 *    null does nothing.
 *  - Strings returned belong to the object they were asked from.
 *  - One thread at a time uses a context and what was made from it; different
 *    contexts are independent.
 *  - Calls marked *collective* are made by all ranks, in the same order. If one
 *    rank fails in them, all return an error.
 *  - The library never exits, aborts, raises signals or prints.
 *
 *===----------------------------------------------------------------------===*/

#ifndef TESSERA_TESSERA_H
#define TESSERA_TESSERA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TESSERA_API __attribute__((visibility("default")))

typedef struct tessera_status tessera_status;
typedef struct tessera_threads tessera_threads;
typedef struct tessera_context tessera_context;
typedef struct tessera_module tessera_module;
typedef struct tessera_binding tessera_binding;

/*===----------------------------------------------------------------------===*
 * Status
 *===----------------------------------------------------------------------===*/

typedef enum tessera_code {
  TESSERA_OK = 0,
  TESSERA_INVALID_ARGUMENT = 1, /* what the caller gave does not fit */
  TESSERA_INVALID_MODULE = 2,   /* damaged, other version, other CPU, ... */
  TESSERA_IO = 3,               /* a file cannot be read or written */
  TESSERA_OUT_OF_MEMORY = 4,    /* or over the context's limit */
  TESSERA_UNSUPPORTED = 5,      /* legal, but this version does not run it */
  TESSERA_PEER = 6,             /* another rank failed, died or is stuck */
  TESSERA_INTERNAL = 7,
  TESSERA_DATA = 8 /* a run ended, and the program says its data is wrong */
} tessera_code;

TESSERA_API tessera_code tessera_status_code(const tessera_status *status);
/* One sentence. Never null. */
TESSERA_API const char *tessera_status_message(const tessera_status *status);
/* The op and its place in the source; empty when none is known. */
TESSERA_API const char *tessera_status_op(const tessera_status *status);
TESSERA_API const char *tessera_status_location(const tessera_status *status);
/* The rank that is at fault, or -1. */
TESSERA_API int32_t tessera_status_rank(const tessera_status *status);
TESSERA_API void tessera_status_free(tessera_status *status);

/*===----------------------------------------------------------------------===*
 * Context
 *===----------------------------------------------------------------------===*/

/* How ranks find each other, filled by the embedding program. Each callback is
 * collective and returns 0 on success; who waits in it for a rank that does not
 * come must end the wait itself, with another value. */
typedef struct tessera_bootstrap {
  size_t size;
  void *user;
  /* `all` receives `bytes` from each rank, in rank order. */
  int (*all_gather)(void *user, const void *mine, void *all, size_t bytes);
  int (*barrier)(void *user);
} tessera_bootstrap;

typedef enum tessera_log_level {
  TESSERA_LOG_INFO = 0,
  TESSERA_LOG_WARNING = 1
} tessera_log_level;

typedef struct tessera_context_options {
  size_t size;
  int32_t rank;
  int32_t world; /* number of ranks */
  /* The plug-in that moves bytes: null for one rank; "threads", with `handle` a
   * tessera_threads; "mpi", with `handle` an MPI_Comm* or null for the world
   * (then rank and world are taken from it). */
  const char *transport;
  void *handle;
  /* Null: what ranks must agree on goes over the transport. */
  const tessera_bootstrap *bootstrap;
  void (*log)(void *user, tessera_log_level level, const char *message);
  void *log_user;
  /* Memory for temporaries, 64-byte aligned, of the backend's kind (on cuda
   * the device's); null: the library's own. */
  void *(*allocate)(void *user, size_t bytes);
  void (*deallocate)(void *user, void *pointer, size_t bytes);
  void *allocate_user;
  /* What a binding may need in all classes but external, in bytes; 0: no
   * limit. */
  uint64_t memory_limit;
  /* Seconds after which a wait for other ranks ends with an error; with a
   * control channel only if no rank makes progress. 0: 60. MPI's own start,
   * where the library makes it, has no such end. */
  double deadline;
  /* Non-zero: start the control channel, which names a dead or stuck rank. */
  int32_t control;
  /* What runs the program: null or "cpu"; "cuda". Modules must be compiled for
   * it, and the pointers of a binding are to its memory. */
  const char *backend;
  /* The ordinal of the GPU; null: this rank modulo the machine's GPUs. */
  const int32_t *device;
  uint32_t flags; /* tessera_context_flags, together */
  /* cuda: a file of algorithms for matrix products, as TESSERA_AUTOTUNE makes
   * it; null: cuBLASLt's heuristic chooses, as it does for products that are
   * not in the file. With another version of cuBLASLt or model of GPU than the
   * file's nothing of it is used, which the log says. The same file on all
   * ranks. */
  const char *algorithms;
} tessera_context_options;

/* Flags of a context, for people who look into a program. */
typedef enum tessera_context_flags {
  TESSERA_NO_GRAPH = 1,    /* cuda: enqueue the steps anew in each run */
  TESSERA_TIME_STEPS = 2,  /* measure each step: see tessera_binding_step */
  TESSERA_CHECK_STEPS = 4, /* log each step and wait for its end */
  /* cuda: temporaries that collectives use are memory that NCCL knows and maps
   * between peers; and it copies with copy engines where it can. A context of
   * several ranks then needs NCCL 2.28. The GPUs of each communicator need peer
   * access to each other: without it binding fails on all ranks, with
   * TESSERA_UNSUPPORTED. */
  TESSERA_SYMMETRIC = 8,
  TESSERA_COPY_ENGINES = 16,
  /* cuda: a binding measures the algorithms of the products that the file
   * `algorithms` does not have, and adds them there, as other processes may at
   * the same time; the file may be absent. While it measures, it takes memory
   * for one product's operands on top of what it needs; no pointer of the
   * caller is written. */
  TESSERA_AUTOTUNE = 32
} tessera_context_flags;

/* The meeting point of `world` contexts of this process, 1 to 4096. Destroy it
 * after all of them. */
TESSERA_API tessera_status *tessera_threads_create(int32_t world,
                                                   tessera_threads **out);
TESSERA_API void tessera_threads_destroy(tessera_threads *threads);

/* Collective. */
TESSERA_API tessera_status *
tessera_context_create(const tessera_context_options *options,
                       tessera_context **out);
/* After the modules made from it. */
TESSERA_API void tessera_context_destroy(tessera_context *context);
TESSERA_API int32_t tessera_context_rank(const tessera_context *context);
TESSERA_API int32_t tessera_context_world(const tessera_context *context);

/* What a context runs on. */
typedef struct tessera_device {
  size_t size;
  const char *target;      /* as modules are compiled for: "cuda:sm_90a" */
  const char *description; /* "GPU 0, NVIDIA H200, driver ...", and libraries
                            * as far as they are open; until the next call */
  uint64_t free_bytes;     /* of its memory, now; 0 when not known */
  /* The parts of the description; texts are empty where there is none. */
  int32_t ordinal; /* of a GPU; else -1 */
  const char *model, *driver;
  const char *libraries; /* "cuBLASLt 13.1.0, cuDNN 9.19.0, NCCL 2.28.9" */
} tessera_device;

TESSERA_API tessera_status *tessera_context_device(tessera_context *context,
                                                   tessera_device *out);

/* Memory of the context's backend, for callers that have no allocator for it;
 * aligned to 64 bytes. */
TESSERA_API tessera_status *tessera_device_allocate(tessera_context *context,
                                                    size_t bytes, void **out);
TESSERA_API void tessera_device_free(tessera_context *context, void *pointer,
                                     size_t bytes);
/* Between any two of the host's and the backend's places; finished when it
 * returns. */
TESSERA_API tessera_status *tessera_device_copy(tessera_context *context,
                                                void *to, const void *from,
                                                size_t bytes);

/*===----------------------------------------------------------------------===*
 * Module
 *===----------------------------------------------------------------------===*/

/* Collective: the ranks must load the same module. Loading a module is trusting
 * it: its hashes find damage, not malice. */
TESSERA_API tessera_status *tessera_module_load(tessera_context *context,
                                                const void *bytes, size_t count,
                                                tessera_module **out);
TESSERA_API tessera_status *tessera_module_load_file(tessera_context *context,
                                                     const char *path,
                                                     tessera_module **out);
/* After the bindings made from it. */
TESSERA_API void tessera_module_destroy(tessera_module *module);

TESSERA_API uint64_t tessera_module_hash(const tessera_module *module);
TESSERA_API const char *tessera_module_mesh(const tessera_module *module);
/* Free text that the compiler left; may be empty. */
TESSERA_API const char *tessera_module_report(const tessera_module *module);

/* What a file says before there is a context for it. */
typedef struct tessera_module_info {
  size_t size;
  char target[64]; /* "cpu", "cuda:sm_90a" */
} tessera_module_info;

TESSERA_API tessera_status *tessera_module_inspect(const char *path,
                                                   tessera_module_info *out);

/* A size that is fixed when the module is bound. */
typedef struct tessera_symbol {
  size_t size;
  const char *name;
  int64_t maximum;
  int64_t multiple;
} tessera_symbol;

TESSERA_API size_t tessera_module_symbol_count(const tessera_module *module);
TESSERA_API tessera_status *tessera_module_symbol(const tessera_module *module,
                                                  size_t index,
                                                  tessera_symbol *out);

typedef enum tessera_dtype {
  TESSERA_F64 = 0,
  TESSERA_F32 = 1,
  TESSERA_BF16 = 2,
  TESSERA_F16 = 3,
  TESSERA_I64 = 4,
  TESSERA_I32 = 5,
  TESSERA_U32 = 6,
  TESSERA_I8 = 7,
  TESSERA_U8 = 8,
  TESSERA_I1 = 9, /* one byte */
  TESSERA_F8E4M3 = 10,
  TESSERA_F8E5M2 = 11
} tessera_dtype;

typedef enum tessera_port_kind {
  TESSERA_INPUT = 0,
  TESSERA_OUTPUT = 1,
  TESSERA_STATE = 2 /* read, then replaced by a run */
} tessera_port_kind;

#define TESSERA_MAX_RANK 16

typedef struct tessera_port {
  size_t size;
  const char *name;
  tessera_port_kind kind;
  tessera_dtype dtype;
  int32_t rank;
  /* The global extent, or -1 where it depends on a symbol. */
  int64_t shape[TESSERA_MAX_RANK];
  const char *shape_text; /* "[batch, 4 * heads, 128]" */
  const char *view;       /* how it lies over the mesh */
  /* A state that the program has as zeros before the first run: who binds it
   * may clear its memory in place of reading a file. */
  int32_t zero_init;
  /* Of an output of which each rank has all: what it means where one of its
   * integers is not 0 after a run; "" where the program says nothing. */
  const char *check;
  /* The mesh that it lies on: the module's, or one of the same axes that lists
   * other devices. */
  const char *mesh;
} tessera_port;

TESSERA_API size_t tessera_module_port_count(const tessera_module *module);
TESSERA_API tessera_status *tessera_module_port(const tessera_module *module,
                                                size_t index,
                                                tessera_port *out);

/* A run of one local dimension that is contiguous in the global dimension. */
typedef struct tessera_run {
  int64_t local;
  int64_t global;
  int64_t length;
} tessera_run;

/* This rank's part of a port for given symbol values. A dimension of the local
 * tensor may stand for several adjacent global ones, taken row-major as one
 * (`flat` in the view): `span` says how many. */
typedef struct tessera_layout {
  size_t size;
  int32_t rank; /* of the local tensor */
  int32_t global_rank;
  int64_t global_shape[TESSERA_MAX_RANK];
  int64_t shape[TESSERA_MAX_RANK];
  int64_t strides[TESSERA_MAX_RANK]; /* in elements */
  int64_t span[TESSERA_MAX_RANK];
  uint64_t bytes;
} tessera_layout;

/* `symbols`: one value for each symbol, in order. */
TESSERA_API tessera_status *tessera_module_layout(const tessera_module *module,
                                                  size_t port,
                                                  const int64_t *symbols,
                                                  size_t symbol_count,
                                                  tessera_layout *out);
/* Which global indices local dimension `dimension` holds. `*count` is the
 * capacity of `runs` on entry and the number there is on return; at most the
 * capacity is written. */
TESSERA_API tessera_status *
tessera_module_runs(const tessera_module *module, size_t port,
                    const int64_t *symbols, size_t symbol_count,
                    int32_t dimension, tessera_run *runs, size_t *count);

/* Bytes that a binding needs on this rank. */
typedef struct tessera_memory {
  size_t size;
  uint64_t external;  /* what the caller's pointers must hold */
  uint64_t local;     /* temporaries, packing included */
  uint64_t symmetric; /* temporaries at equal offsets on all ranks */
  uint64_t constants; /* what the module brings along */
} tessera_memory;

/* Before anything is allocated, and without the other ranks: where one of them
 * cannot take the sizes in a variant that this one can, or a port begins where
 * that cannot take it, a binding needs the memory of another variant. */
TESSERA_API tessera_status *tessera_module_memory(const tessera_module *module,
                                                  const int64_t *symbols,
                                                  size_t symbol_count,
                                                  tessera_memory *out);

/*===----------------------------------------------------------------------===*
 * Variants
 *
 * An op may be compiled in several variants: attention as "flash", "cudnn" and
 * "math", matrix products ("matmul") as "cublaslt" and "own".
 * Which one runs is fixed when a module is bound: the first that this thread
 * allows, or by default the process, that the module has, that can run here
 * ("cudnn" needs cuDNN) and that can take the sizes and where ports begin, on
 * all ranks. Without a word, the first of the module's that can.
 * C++ has a scope for it in tessera/Variants.h.
 *===----------------------------------------------------------------------===*/

/* From here to the matching pop, what this thread binds, or asks the memory of,
 * takes these variants of ops of the kind, and no others; the preferred first:
 * "flash,math". Calls nest: the innermost for a kind counts. A module that
 * leaves no such choice is bound as ever. The ranks of a binding must choose
 * alike. Of calls that failed there is nothing to pop. */
TESSERA_API tessera_status *tessera_variants_push(const char *kind,
                                                  const char *names);
TESSERA_API tessera_status *tessera_variants_pop(void);
/* The same of what a binding chose (tessera_binding_choice): ops of the kind,
 * in any module, take the variant that those of the same problem took, so that
 * a gradient follows its op. A module with one of another problem, or without
 * the variant, is an error at that op. */
TESSERA_API tessera_status *tessera_variants_push_choice(const char *choice);
/* What binds anywhere in the process takes, from now on, in a thread that has
 * pushed nothing for the kind; null: what it would without a word. */
TESSERA_API tessera_status *tessera_variants_default(const char *kind,
                                                     const char *names);

/*===----------------------------------------------------------------------===*
 * Binding
 *===----------------------------------------------------------------------===*/

/* Collective: the ranks must bind the same module with the same symbol values.
 * `pointers`: one for each port, to memory of the port's local layout that
 * stays valid until the binding is destroyed; null only where it has no bytes.
 * Aligned to its elements; no two overlap. */
TESSERA_API tessera_status *
tessera_binding_create(tessera_module *module, const int64_t *symbols,
                       size_t symbol_count, void *const *pointers,
                       size_t pointer_count, tessera_binding **out);
/* After the end of what was enqueued. */
TESSERA_API void tessera_binding_destroy(tessera_binding *binding);

/* Collective. Reads inputs and state, writes outputs and state; allocates
 * nothing. Where an output with a `check` is not 0, returns TESSERA_DATA: the
 * run has ended, and others may follow. After another error the context is of
 * no use any more, and every run of it returns that error. */
TESSERA_API tessera_status *tessera_binding_run(tessera_binding *binding);
/* Collective; cuda only. A run in `stream`, a CUstream of the context's device:
 * behind what the stream holds so far, ahead of what it gets later. Returns
 * when all is enqueued; the first run of a binding also waits for its end, as
 * peers meet and libraries get ready in it. If the stream is being captured,
 * the run becomes part of the capture; it must not be the first, and what is
 * captured must not run beside other runs of the context. */
TESSERA_API tessera_status *tessera_binding_enqueue(tessera_binding *binding,
                                                    void *stream);
/* Waits for the end of what was enqueued last, and looks at outputs with a
 * `check`. Where a caller waits by other means, a dead or stuck rank has no
 * verdict, and these are its own to look at. */
TESSERA_API tessera_status *tessera_binding_wait(tessera_binding *binding);

TESSERA_API tessera_status *
tessera_binding_memory(const tessera_binding *binding, tessera_memory *out);

/* How many matrix products have an algorithm of the file `algorithms`, one that
 * was measured in this context, and one that the library's heuristic chose. */
typedef struct tessera_products {
  size_t size;
  uint64_t stored, measured, heuristic;
  uint64_t hash; /* of the stored and measured algorithms, in order; 0: none */
} tessera_products;

TESSERA_API tessera_status *
tessera_binding_products(const tessera_binding *binding, tessera_products *out);

/* One collective of the plan, in order. Bytes and copies are those of one run
 * on this rank. */
typedef struct tessera_collective {
  size_t size;
  const char *kind;     /* "all-reduce" */
  const char *axes;     /* "[tp]" */
  const char *op;       /* the op it comes from */
  const char *location; /* file:line:column */
  const char *loser;    /* the alternative that lost, with its cost at the
                         * largest sizes */
  uint64_t bytes_sent;
  uint64_t bytes_received;
  uint64_t copies; /* packing and unpacking passes */
  uint64_t copied_bytes;
  double seconds; /* of the last run; 0 when it did not measure steps */
  uint64_t tensors; /* that it moves, all together */
} tessera_collective;

TESSERA_API size_t
tessera_binding_collective_count(const tessera_binding *binding);
TESSERA_API tessera_status *
tessera_binding_collective(const tessera_binding *binding, size_t index,
                           tessera_collective *out);

/* What ranks of the binding's context exchange bytes through, in the order in
 * which they were made: NCCL's communicators. There is one of all ranks, and
 * one split from it, with the same resources, for each set of mesh axes in use
 * that has other groups. */
typedef struct tessera_communicator {
  size_t size;
  const char *library; /* "NCCL" */
  const char *ranks;   /* this rank's group, in its order: "[0, 2]" */
  const char *axes;    /* of the collectives below: "[tp]"; may be empty */
  int32_t groups;      /* disjoint ones, of all ranks together */
  int32_t split;       /* non-zero: from the first */
  /* The binding's collectives that are to go through it, and what this rank
   * handed to it in the run that enqueued them last, of which a graph's later
   * runs are copies: counted where the library is called; its own collectives
   * as a ring moves them. 0 before the first run. */
  uint64_t collectives, bytes_sent, bytes_received;
  /* What making it took of the device's memory, about, and of time. */
  uint64_t memory;
  double seconds;
  uint64_t calls; /* of the library, in that run: each message is one */
} tessera_communicator;

TESSERA_API size_t
tessera_binding_communicator_count(const tessera_binding *binding);
TESSERA_API tessera_status *
tessera_binding_communicator(const tessera_binding *binding, size_t index,
                             tessera_communicator *out);

/* One step of a run, in order. Times are those of the last run, in seconds of
 * CLOCK_MONOTONIC; 0 where it did not measure them: on cuda that takes
 * TESSERA_TIME_STEPS. */
typedef struct tessera_step {
  size_t size;
  const char *op;       /* the op it comes from; empty: a copy to a port */
  const char *location; /* file:line:column */
  const char *text;     /* "kernel 'softmax'"; may be empty */
  int32_t collective;   /* its index among the collectives, or -1 */
  double begin, end;
  const char *kind;   /* "kernel", "product", "attention", "collective", "copy" */
  const char *symbol; /* of a kernel; else empty */
  /* When the host enqueued it; 0 where the host does the step itself. */
  double enqueue_begin, enqueue_end;
} tessera_step;

TESSERA_API size_t tessera_binding_step_count(const tessera_binding *binding);
TESSERA_API tessera_status *tessera_binding_step(const tessera_binding *binding,
                                                 size_t index,
                                                 tessera_step *out);
/* How far the times of steps may be from the host's clock, all by as much, in
 * seconds; 0 where the host measured them itself. */
TESSERA_API double tessera_binding_clock_error(const tessera_binding *binding);

/* An op of the program that has variants. */
typedef struct tessera_alternative {
  size_t size;
  const char *kind;     /* "attention" */
  const char *op;       /* the op it comes from */
  const char *location; /* file:line:column */
  const char *chosen;   /* "flash" */
  const char *variants; /* those in the module: "flash, math" */
} tessera_alternative;

TESSERA_API size_t
tessera_binding_alternative_count(const tessera_binding *binding);
TESSERA_API tessera_status *
tessera_binding_alternative(const tessera_binding *binding, size_t index,
                            tessera_alternative *out);
/* Which variants the ops of a kind took, "attention" say, in a text that may be
 * kept, in another process, too: for tessera_variants_push_choice. It names
 * problems, not a module: their shapes, type, scale and mask, which an op and
 * its gradient have in common. "" where there is no such op. */
TESSERA_API const char *tessera_binding_choice(const tessera_binding *binding,
                                               const char *kind);

/* What the host did in the last run, enqueued or not, before it only waited. */
TESSERA_API double tessera_binding_host_seconds(const tessera_binding *binding);

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_TESSERA_H */
