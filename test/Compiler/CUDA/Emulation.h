//===- Emulation.h - kernels for GPUs on the host -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Included before the text of kernels, it makes them functions of the host: all
// threads of a block, each with a stack of its own, which change at barriers
// and shuffles. So everything but PTX runs as it does on a GPU, with a few
// blocks.
//
//===----------------------------------------------------------------------===//

#pragma once

#define TESSERA_EMULATION

#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>

#define __device__
#define __global__
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __shared__ static thread_local

struct uint2 {
  unsigned x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};

namespace emulation {

constexpr int kLanes = 32;
constexpr int kMaxThreads = 1024;
constexpr size_t kStack = 64 << 10;

struct Index {
  unsigned x;
};

/// Where threads wait for each other.
struct Barrier {
  unsigned count, generation;
};

/// A context is what a thread begins with; changing by jumps takes no system
/// call.
struct Block {
  ucontext_t threads[kMaxThreads];
  jmp_buf scheduler, places[kMaxThreads];
  bool begun[kMaxThreads], done[kMaxThreads];
  char *stacks;
  unsigned size;
  void (*body)(const void *);
  const void *argument;
  Barrier all, warps[kMaxThreads / kLanes];
  unsigned anyAt[2]; ///< the last two barriers that a thread came to with true
  alignas(8) unsigned char lanes[kMaxThreads][8]; ///< what a shuffle passes on
};

inline thread_local Block *block;
/// Of a block, as much as one can have.
alignas(16) inline thread_local char shared[227 << 10];
inline thread_local Index gridDim, blockDim, blockIdx, threadIdx;

/// Lets the other threads run.
[[gnu::noinline]] inline void yield() {
  if (_setjmp(block->places[threadIdx.x]) == 0)
    _longjmp(block->scheduler, 1);
}

inline void wait(Barrier &barrier, unsigned threads) {
  unsigned generation = barrier.generation;
  if (++barrier.count == threads) {
    barrier.count = 0;
    ++barrier.generation;
  }
  while (barrier.generation == generation)
    yield();
}

inline void waitForWarp() { wait(block->warps[threadIdx.x / kLanes], kLanes); }

inline void enter() {
  block->body(block->argument);
  block->done[threadIdx.x] = true;
  _longjmp(block->scheduler, 1);
}

/// Runs a thread until it waits or ends.
[[gnu::noinline]] inline void resume(unsigned thread) {
  threadIdx.x = thread;
  if (_setjmp(block->scheduler) != 0)
    return;
  if (block->begun[thread])
    _longjmp(block->places[thread], 1);
  block->begun[thread] = true;
  setcontext(&block->threads[thread]);
}

/// Runs all threads of a block in turns until all have ended.
inline void runBlock() {
  Block &b = *block;
  memset(b.begun, 0, sizeof b.begun);
  memset(b.done, 0, sizeof b.done);
  memset(&b.all, 0, sizeof b.all);
  memset(b.warps, 0, sizeof b.warps);
  memset(b.anyAt, 0, sizeof b.anyAt);
  for (unsigned i = 0; i < b.size; ++i) {
    getcontext(&b.threads[i]);
    b.threads[i].uc_stack.ss_sp = b.stacks + i * kStack;
    b.threads[i].uc_stack.ss_size = kStack;
    b.threads[i].uc_link = nullptr;
    makecontext(&b.threads[i], enter, 0);
  }
  unsigned left = b.size;
  for (unsigned long rounds = 0; left > 0; ++rounds) {
    if (rounds == 50'000'000) {
      fputs("emulation: threads of a block wait for ever\n", stderr);
      abort();
    }
    for (unsigned i = 0; i < b.size; ++i) {
      if (b.done[i])
        continue;
      resume(i);
      left -= b.done[i];
    }
  }
}

template <class Parameters, void (*kernel)(Parameters)>
void launch(unsigned blocks, unsigned threads, const Parameters &parameters) {
  // Too large for the stack of a function that launches several.
  Block *own = new Block;
  own->size = threads;
  own->stacks = static_cast<char *>(malloc(threads * kStack));
  own->body = [](const void *p) {
    kernel(*static_cast<const Parameters *>(p));
  };
  own->argument = &parameters;
  block = own;
  gridDim.x = blocks;
  blockDim.x = threads;
  for (unsigned i = 0; i < blocks; ++i) {
    blockIdx.x = i;
    runBlock();
  }
  free(own->stacks);
  delete own;
}

/// A memref's descriptor, as CPU kernels get it, as words of a device
/// function's parameter; gives the next word.
inline long long *addTensor(long long *words, const void *descriptor, int rank,
                            int bytes) {
  // Allocated, aligned, offset, sizes, strides.
  const long long *from = static_cast<const long long *>(descriptor);
  *words++ = from[1] + from[2] * bytes;
  for (int i = 0; i < 2 * rank; ++i)
    *words++ = from[3 + i];
  return words;
}

//===----------------------------------------------------------------------===//
// What products do to their sums, which CPUs' products do not
//===----------------------------------------------------------------------===//

enum class Element { F64, F32, BF16, F16 };

inline double readElement(const void *descriptor, long long at, Element type) {
  const long long *d = static_cast<const long long *>(descriptor);
  at += d[2];
  switch (type) {
  case Element::F64:
    return reinterpret_cast<const double *>(d[1])[at];
  case Element::F32:
    return reinterpret_cast<const float *>(d[1])[at];
  case Element::BF16: {
    unsigned bits = reinterpret_cast<const unsigned short *>(d[1])[at] << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
  }
  case Element::F16:
    return reinterpret_cast<const _Float16 *>(d[1])[at];
  }
  abort();
}

inline void writeElement(const void *descriptor, long long at, Element type,
                         double value) {
  const long long *d = static_cast<const long long *>(descriptor);
  at += d[2];
  switch (type) {
  case Element::F64:
    reinterpret_cast<double *>(d[1])[at] = value;
    return;
  case Element::F32:
    reinterpret_cast<float *>(d[1])[at] = value;
    return;
  case Element::BF16: {
    float single = value;
    unsigned bits;
    memcpy(&bits, &single, sizeof bits);
    bits = value != value ? 0x7fff0000 : bits + 0x7fff + (bits >> 16 & 1);
    reinterpret_cast<unsigned short *>(d[1])[at] = bits >> 16;
    return;
  }
  case Element::F16:
    reinterpret_cast<_Float16 *>(d[1])[at] =
        static_cast<_Float16>(static_cast<float>(value));
    return;
  }
}

/// The arguments are the sums, bias, x and aux if there are such, and the
/// result.
inline void epilogue(void **args, int rank, int column, Element sums,
                     Element type, bool hasBias, bool hasX, bool hasAux,
                     bool isGelu) {
  const void *from = *args++, *bias = hasBias ? *args++ : nullptr,
             *slopeAt = hasX ? *args++ : nullptr,
             *aux = hasAux ? *args++ : nullptr, *to = *args;
  // Sizes, then strides.
  auto word = [&](const void *descriptor, int i) {
    return static_cast<const long long *>(descriptor)[3 + i];
  };
  long long count = 1;
  for (int i = 0; i < rank; ++i)
    count *= word(to, i);
  for (long long point = 0; point < count; ++point) {
    long long rest = point, index[16];
    for (int i = rank; i-- > 0; rest /= word(to, i))
      index[i] = rest % word(to, i);
    auto at = [&](const void *descriptor) {
      long long offset = 0;
      for (int i = 0; i < rank; ++i)
        offset += index[i] * word(descriptor, rank + i);
      return offset;
    };
    double x = readElement(from, at(from), sums);
    if (hasBias)
      x += readElement(bias, index[column] * word(bias, 1), type);
    if (hasAux)
      writeElement(aux, at(aux), type, x);
    if (isGelu)
      x = 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    if (hasX) {
      double u = readElement(slopeAt, at(slopeAt), type);
      double t = tanh(0.7978845608028654 * (u + 0.044715 * u * u * u));
      x *= 0.5 *
           (1 + t +
            u * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * u * u));
    }
    writeElement(to, at(to), type, x);
  }
}

/// The arguments are a tensor, and its sums over all dimensions but `kept`.
inline void sums(void **args, int rank, int kept, Element type) {
  const void *from = args[0], *to = args[1];
  auto word = [&](const void *descriptor, int i) {
    return static_cast<const long long *>(descriptor)[3 + i];
  };
  for (long long i = 0; i < word(from, kept); ++i) {
    long long count = 1;
    for (int dim = 0; dim < rank; ++dim)
      count *= dim == kept ? 1 : word(from, dim);
    double total = 0;
    for (long long point = 0; point < count; ++point) {
      long long rest = point, offset = i * word(from, rank + kept);
      for (int dim = 0; dim < rank; ++dim)
        if (dim != kept) {
          offset += rest % word(from, dim) * word(from, rank + dim);
          rest /= word(from, dim);
        }
      total += readElement(from, offset, type);
    }
    writeElement(to, i * word(to, 1), type, total);
  }
}

} // namespace emulation

using emulation::blockDim;
using emulation::blockIdx;
using emulation::gridDim;
using emulation::threadIdx;

inline void __syncthreads() {
  emulation::wait(emulation::block->all, emulation::block->size);
}
inline bool __syncthreads_or(bool value) {
  // A thread may be at the next barrier already, but not at the one after.
  const unsigned now = emulation::block->all.generation + 1;
  if (value)
    emulation::block->anyAt[now % 2] = now;
  __syncthreads();
  return emulation::block->anyAt[now % 2] == now;
}
inline void __syncwarp() { emulation::waitForWarp(); }

template <class T> T __shfl_sync(unsigned, T value, int lane) {
  const unsigned first = threadIdx.x / emulation::kLanes * emulation::kLanes;
  memcpy(emulation::block->lanes[threadIdx.x], &value, sizeof value);
  emulation::waitForWarp();
  memcpy(&value, emulation::block->lanes[first + lane], sizeof value);
  emulation::waitForWarp();
  return value;
}
template <class T> T __shfl_xor_sync(unsigned threads, T value, int mask) {
  return __shfl_sync(threads, value, threadIdx.x % emulation::kLanes ^ mask);
}

inline unsigned __ballot_sync(unsigned, bool value) {
  const unsigned first = threadIdx.x / emulation::kLanes * emulation::kLanes;
  emulation::block->lanes[threadIdx.x][0] = value;
  emulation::waitForWarp();
  unsigned bits = 0;
  for (int i = 0; i < emulation::kLanes; ++i)
    bits |= unsigned(emulation::block->lanes[first + i][0]) << i;
  emulation::waitForWarp();
  return bits;
}
