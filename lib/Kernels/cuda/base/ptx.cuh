//===- ptx.cuh - Hopper's instructions as plain functions -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Barriers, the tensor memory accelerator (TMA), fences, registers and
// accumulator fragments of sm_90a. This and the generated wgmma.cuh are the
// only files with such assembly. It includes nothing, so that NVRTC and nvcc
// compile it alike.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_PTX_CUH
#define TESSERA_KERNELS_PTX_CUH

#include "base/prelude.cuh"

#define TSR_MEMBER __device__ __forceinline__
#define TSR_DEVICE static TSR_MEMBER

namespace tessera {

/// The 128 bytes of a CUtensorMap. Lives in kernel parameters
/// (`__grid_constant__`), never in a copy.
struct alignas(64) TensorMap {
  char bytes[128];
};

TSR_DEVICE uint32 smem_address(void const *p) {
  return (uint32)__cvta_generic_to_shared(p);
}

//===----------------------------------------------------------------------===//
// mbarrier: a phase ends when the expected arrivals and the expected bytes have
// come.
//===----------------------------------------------------------------------===//

TSR_DEVICE void barrier_init(uint64 *b, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem_address(b)),
               "r"(arrivals)
               : "memory");
}
TSR_DEVICE void barrier_arrive(uint64 *b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(smem_address(b))
               : "memory");
}
/// Arrives and announces bytes that bulk copies will bring.
TSR_DEVICE void barrier_expect(uint64 *b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   smem_address(b)),
               "r"(bytes)
               : "memory");
}
/// Arrives at the same barrier of another block of the cluster. Not
/// .release.cluster, which was much slower: there is nothing to release where
/// the slot was only read, by wgmma.
TSR_DEVICE void barrier_arrive_at(uint64 *b, int block) {
  asm volatile("{\n.reg .b32 remote;\n"
               "mapa.shared::cluster.u32 remote, %0, %1;\n"
               "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(
                   smem_address(b)),
               "r"(block)
               : "memory");
}
/// The loop stands in C++: inside the assembly it made the compiler unroll its
/// surroundings.
TSR_DEVICE void barrier_wait(uint64 *b, int parity) {
  uint32 done;
  do {
    asm volatile("{\n.reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(smem_address(b)), "r"(parity)
                 : "memory");
  } while (!done);
}
/// Whether barrier_wait would not wait.
TSR_DEVICE bool barrier_test(uint64 *b, int parity) {
  uint32 done;
  asm volatile("{\n.reg .pred p;\n"
               "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
               "selp.u32 %0, 1, 0, p;\n}"
               : "=r"(done)
               : "r"(smem_address(b)), "r"(parity)
               : "memory");
  return done;
}

/// A position in a ring of stages, of which so many are used, and the parity of
/// the round.
template <int Stages> struct Ring {
  int stage = 0, phase = 0;
  TSR_MEMBER void next(int used = Stages) {
    if (++stage == used)
      stage = 0, phase ^= 1;
  }
};

//===----------------------------------------------------------------------===//
// Other synchronisation
//===----------------------------------------------------------------------===//

/// Makes barrier_init visible to the copy engine and to the cluster.
TSR_DEVICE void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/// Orders ordinary writes to shared memory before reads by wgmma and TMA.
TSR_DEVICE void fence_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
TSR_DEVICE void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n"
               "barrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}
TSR_DEVICE int cluster_rank() {
  int r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
TSR_DEVICE void named_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
TSR_DEVICE void named_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
/// Lets the stream's next kernel start, where its launch allows that, once all
/// blocks have said so or ended: then it shares the GPU with this one.
TSR_DEVICE void start_next() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
/// Until the kernel before has ended, in one that may have started before that.
TSR_DEVICE void wait_before() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
template <int N> TSR_DEVICE void registers_raise() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N> TSR_DEVICE void registers_lower() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

//===----------------------------------------------------------------------===//
// TMA: boxes of a tensor map. Reads outside of the tensor give zeros, writes
// outside are dropped.
//===----------------------------------------------------------------------===//

constexpr uint64 kEvictFirst = 0x12F0000000000000ull;
constexpr uint64 kEvictNormal = 0x1000000000000000ull;
constexpr uint64 kEvictLast = 0x14F0000000000000ull;

TSR_DEVICE void tma_load(void *to, TensorMap const *m, uint64 *b, int c0,
                         int c1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::"
      "bytes [%0], [%1, {%3,%4}], [%2];" ::"r"(smem_address(to)),
      "l"(m), "r"(smem_address(b)), "r"(c0), "r"(c1)
      : "memory");
}
TSR_DEVICE void tma_load(void *to, TensorMap const *m, uint64 *b, int c0,
                         int c1, int c2) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::"
      "bytes [%0], [%1, {%3,%4,%5}], [%2];" ::"r"(smem_address(to)),
      "l"(m), "r"(smem_address(b)), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
}
/// To the same address in every block of the mask, each of whose barriers
/// counts the bytes. A cluster lies inside one GPU.
TSR_DEVICE void tma_load_multicast(void *to, TensorMap const *m, uint64 *b,
                                   int c0, int c1, unsigned short blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::"
      "bytes.multicast::cluster [%0], [%1, {%3,%4}], [%2], %5;" ::"r"(
          smem_address(to)),
      "l"(m), "r"(smem_address(b)), "r"(c0), "r"(c1), "h"(blocks)
      : "memory");
}
TSR_DEVICE void tma_load_multicast(void *to, TensorMap const *m, uint64 *b,
                                   int c0, int c1, int c2,
                                   unsigned short blocks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::"
      "bytes.multicast::cluster [%0], [%1, {%3,%4,%5}], [%2], %6;" ::"r"(
          smem_address(to)),
      "l"(m), "r"(smem_address(b)), "r"(c0), "r"(c1), "r"(c2), "h"(blocks)
      : "memory");
}
TSR_DEVICE void tma_load_multicast(void *to, TensorMap const *m, uint64 *b,
                                   int c0, int c1, int c2, int c3,
                                   unsigned short blocks, uint64 hint) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::"
      "bytes.multicast::cluster.L2::cache_hint [%0], [%1, {%3,%4,%5,%6}], "
      "[%2], %7, %8;" ::"r"(smem_address(to)),
      "l"(m), "r"(smem_address(b)), "r"(c0), "r"(c1), "r"(c2), "r"(c3),
      "h"(blocks), "l"(hint)
      : "memory");
}
TSR_DEVICE void tma_load(void *to, TensorMap const *m, uint64 *b, int c0,
                         int c1, int c2, int c3, uint64 hint) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::"
      "bytes.L2::cache_hint [%0], [%1, {%3,%4,%5,%6}], [%2], %7;" ::"r"(
          smem_address(to)),
      "l"(m), "r"(smem_address(b)), "r"(c0), "r"(c1), "r"(c2), "r"(c3),
      "l"(hint)
      : "memory");
}
TSR_DEVICE void tma_load(void *to, TensorMap const *m, uint64 *b, int c0,
                         int c1, int c2, int c3, int c4, uint64 hint) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::"
      "bytes.L2::cache_hint [%0], [%1, {%3,%4,%5,%6,%7}], [%2], %8;" ::"r"(
          smem_address(to)),
      "l"(m), "r"(smem_address(b)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4),
      "l"(hint)
      : "memory");
}
TSR_DEVICE void tma_store(TensorMap const *m, void const *from, int c0,
                          int c1) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group "
               "[%0, {%2,%3}], [%1];" ::"l"(m),
               "r"(smem_address(from)), "r"(c0), "r"(c1)
               : "memory");
}
TSR_DEVICE void tma_store(TensorMap const *m, void const *from, int c0, int c1,
                          int c2) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group "
               "[%0, {%2,%3,%4}], [%1];" ::"l"(m),
               "r"(smem_address(from)), "r"(c0), "r"(c1), "r"(c2)
               : "memory");
}
TSR_DEVICE void tma_store(TensorMap const *m, void const *from, int c0, int c1,
                          int c2, int c3) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group "
               "[%0, {%2,%3,%4,%5}], [%1];" ::"l"(m),
               "r"(smem_address(from)), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
               : "memory");
}
TSR_DEVICE void tma_store(TensorMap const *m, void const *from, int c0, int c1,
                          int c2, int c3, int c4) {
  asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.bulk_group "
               "[%0, {%2,%3,%4,%5,%6}], [%1];" ::"l"(m),
               "r"(smem_address(from)), "r"(c0), "r"(c1), "r"(c2), "r"(c3),
               "r"(c4)
               : "memory");
}
/// Contiguous bytes, without a map: multiples of 16 at such addresses.
TSR_DEVICE void bulk_load(void *to, void const *from, int bytes, uint64 *b) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
               "bytes [%0], [%1], %2, [%3];" ::"r"(smem_address(to)),
               "l"(from), "r"(bytes), "r"(smem_address(b))
               : "memory");
}
/// To another block of the cluster, whose barrier b counts the bytes; `to` and
/// b are where this block has them.
TSR_DEVICE void bulk_copy_at(void *to, void const *from, int bytes, uint64 *b,
                             int block) {
  asm volatile(
      "{\n.reg .b32 to, b;\n"
      "mapa.shared::cluster.u32 to, %0, %4;\n"
      "mapa.shared::cluster.u32 b, %3, %4;\n"
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::"
      "complete_tx::bytes [to], [%1], %2, [b];\n}" ::"r"(smem_address(to)),
      "r"(smem_address(from)), "r"(bytes), "r"(smem_address(b)), "r"(block)
      : "memory");
}
/// Likewise four bytes of a thread.
TSR_DEVICE void store_at(int *to, int x, uint64 *b, int block) {
  asm volatile("{\n.reg .b32 to, b;\n"
               "mapa.shared::cluster.u32 to, %0, %3;\n"
               "mapa.shared::cluster.u32 b, %2, %3;\n"
               "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 "
               "[to], %1, [b];\n}" ::"r"(smem_address(to)),
               "r"(x), "r"(smem_address(b)), "r"(block)
               : "memory");
}
/// Likewise to global memory, where they stay in L2.
TSR_DEVICE void bulk_store(float *to, float const *from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint "
               "[%0], [%1], %2, %3;" ::"l"(to),
               "r"(smem_address(from)), "r"(bytes), "l"(kEvictLast)
               : "memory");
}
/// Adds them there.
TSR_DEVICE void bulk_add(float *to, float const *from, int bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group."
               "L2::cache_hint.add.f32 [%0], [%1], %2, %3;" ::"l"(to),
               "r"(smem_address(from)), "r"(bytes), "l"(kEvictLast)
               : "memory");
}
TSR_DEVICE void bulk_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Until at most N groups of this thread still have to read shared memory.
template <int N> TSR_DEVICE void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}
/// Until at most N groups of this thread still have to write.
template <int N> TSR_DEVICE void bulk_wait_done() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory");
}

//===----------------------------------------------------------------------===//
// Global memory that several blocks write
//===----------------------------------------------------------------------===//

TSR_DEVICE void global_add(float *to, float x) {
  asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(to), "f"(x)
               : "memory");
}
/// Four neighbouring floats, 16-byte aligned, which stay in L2.
TSR_DEVICE void global_add(float *to, float const (&x)[4]) {
  asm volatile("red.relaxed.gpu.global.add.L2::cache_hint.v4.f32 "
               "[%0], {%1, %2, %3, %4}, %5;" ::"l"(to),
               "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]), "l"(kEvictLast)
               : "memory");
}
/// Adds them, or stores them as the first.
TSR_DEVICE void global_add(float *to, float const (&x)[4], bool first) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %5, 0;\n"
               "@p st.relaxed.gpu.global.L2::cache_hint.v4.f32 "
               "[%0], {%1, %2, %3, %4}, %6;\n"
               "@!p red.relaxed.gpu.global.add.L2::cache_hint.v4.f32 "
               "[%0], {%1, %2, %3, %4}, %6;\n}" ::"l"(to),
               "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]), "r"((int)first),
               "l"(kEvictLast)
               : "memory");
}
/// 16 bytes that give way to anything in L2.
TSR_DEVICE uint4 load_last(void const *p) {
  uint4 v;
  asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v4.u32 "
               "{%0, %1, %2, %3}, [%4], %5;"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p), "l"(kEvictFirst)
               : "memory");
  return v;
}
TSR_DEVICE int load_acquire(int const *p) {
  int v;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];"
               : "=r"(v)
               : "l"(p)
               : "memory");
  return v;
}
TSR_DEVICE int load_relaxed(int const *p) {
  int v;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];"
               : "=r"(v)
               : "l"(p)
               : "memory");
  return v;
}
TSR_DEVICE void store_relaxed(int *p, int v) {
  asm volatile("st.relaxed.gpu.global.s32 [%0], %1;" ::"l"(p), "r"(v)
               : "memory");
}
TSR_DEVICE void fence_acquire() {
  asm volatile("fence.acquire.gpu;" ::: "memory");
}
TSR_DEVICE void fence_release() {
  asm volatile("fence.release.gpu;" ::: "memory");
}

//===----------------------------------------------------------------------===//
// wgmma: what stands around the products of wgmma.cuh
//===----------------------------------------------------------------------===//

TSR_DEVICE void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
TSR_DEVICE void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int N> TSR_DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

/// An operand in shared memory: panels of 64 16-bit elements (128 bytes) a row,
/// 128-byte swizzle, panel base 1024-byte aligned. K-major (rows = M or N): a
/// k16 step adds kStepK. MN-major (rows = K; transpose bit set): `panel` is the
/// byte distance of the next 64 columns, a k16 step adds kStepMN (16 rows).
/// Addresses count in 16 bytes.
TSR_DEVICE uint64 operand(void const *p, int panel = 16) {
  return (uint64)((smem_address(p) & 0x3ffff) >> 4) |
         (uint64)(panel >> 4) << 16 | (uint64)(1024 >> 4) << 32 |
         uint64(1) << 62;
}
constexpr int kStepK = 32 >> 4, kStepMN = 2048 >> 4;

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// Two elements of type T in a register.
template <class T> TSR_DEVICE uint32 pack(float low, float high);
template <> TSR_MEMBER uint32 pack<bf16>(float low, float high) {
  uint32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
template <> TSR_MEMBER uint32 pack<f16>(float low, float high) {
  uint32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

template <class T> TSR_DEVICE void unpack(uint32 pair, float &low, float &high);
template <> TSR_MEMBER void unpack<bf16>(uint32 pair, float &low, float &high) {
  low = __uint_as_float(pair << 16), high = __uint_as_float(pair & 0xffff0000);
}
template <> TSR_MEMBER void unpack<f16>(uint32 pair, float &low, float &high) {
  low = widen<float>(f16{(uint16)pair});
  high = widen<float>(f16{(uint16)(pair >> 16)});
}

TSR_DEVICE float exp2_fast(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
TSR_DEVICE float log2_fast(float x) {
  float r;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
/// A row of an accumulator lives in four neighbouring lanes.
TSR_DEVICE float quad_max(float v) {
  v = fmaxf(v, __shfl_xor_sync(~0u, v, 1));
  return fmaxf(v, __shfl_xor_sync(~0u, v, 2));
}
TSR_DEVICE float quad_sum(float v) {
  v += __shfl_xor_sync(~0u, v, 1);
  return v + __shfl_xor_sync(~0u, v, 2);
}

//===----------------------------------------------------------------------===//
// Accumulators: of m64nN, thread (warp w, lane l) holds rows 16w + l/4 + {0, 8}
// and columns 8j + 2(l%4) + {0, 1}: element i is row (i/2)%2, column 8(i/4) +
// i%2.
//===----------------------------------------------------------------------===//

TSR_DEVICE int fragment_row(int i) { return i / 2 % 2 * 8; }
TSR_DEVICE int fragment_column(int i) { return i / 4 * 8 + i % 2; }

/// Elements of a 16-column group, as an A operand or as the four 8x8 matrices
/// of stmatrix.
struct Fragment16 {
  uint32 r[4];

  /// Here and not before: a product that reads this may have been under way.
  TSR_MEMBER void copy(Fragment16 const &from) {
#pragma unroll
    for (int i = 0; i < 4; i++)
      asm volatile("mov.b32 %0, %1;" : "=r"(r[i]) : "r"(from.r[i]));
  }
};
template <class T> TSR_DEVICE void convert(Fragment16 &out, float const *x) {
#pragma unroll
  for (int j = 0; j < 4; j++)
    out.r[j] = pack<T>(x[2 * j], x[2 * j + 1]);
}
/// Where a thread's row of 16 columns (column16 counts them) of a warp's 16
/// rows lies in a swizzled panel that starts at the warp group's first row.
TSR_DEVICE uint32 fragment_address(void *panel, int column16) {
  int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  // Of chunks of 16 bytes, column16 * 2 + lane / 16 is swizzled by the row.
  int row = warp * 16 + lane % 16, first = (lane / 16 ^ (row & 7)) * 16;
  return (smem_address(panel) + row * 128 + first) ^ column16 * 32;
}
TSR_DEVICE void store_fragment(void *panel, int column16, Fragment16 const &f) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(
          fragment_address(panel, column16)),
      "r"(f.r[0]), "r"(f.r[1]), "r"(f.r[2]), "r"(f.r[3])
      : "memory");
}
TSR_DEVICE void load_fragment(Fragment16 &f, void *panel, int column16) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(f.r[0]), "=r"(f.r[1]), "=r"(f.r[2]), "=r"(f.r[3])
               : "r"(fragment_address(panel, column16))
               : "memory");
}
/// Word i of lane j of a quad becomes word j of lane i. By a whole warp.
TSR_DEVICE void quad_transpose(uint32 (&words)[4], int lane) {
#pragma unroll
  for (int bit = 1; bit < 4; bit *= 2) {
    const bool upper = lane & bit;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      uint32 &low = words[i * (3 - bit)], &high = words[i * (3 - bit) + bit];
      const uint32 got = __shfl_xor_sync(~0u, upper ? low : high, bit);
      low = upper ? got : low, high = upper ? high : got;
    }
  }
}
/// Stores a warp group's N columns to memory, 16 bytes at a time: `element(i)`
/// of each thread, of those of its 64 rows, which begin at `begin(row)`, and of
/// their 32 columns from `column` on that there are, by `has(row, column)`.
template <class T, int N, class B, class H, class F>
TSR_DEVICE void store_rows(int thread, B begin, H has, F element) {
  const int lane = thread % 32;
  const int own = thread / 32 % 4 * 16 + lane / 4;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const int row = own + 8 * r;
    T *const to = begin(row) + lane % 4 * 8;
#pragma unroll
    for (int c = 0; c < N / 32; c++) {
      uint32 words[4];
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const int i = 16 * c + 4 * j + 2 * r;
        words[j] = pack<T>(element(i), element(i + 1));
      }
      quad_transpose(words, lane);
      if (has(row, 32 * c))
        storeWord(reinterpret_cast<uint4 *>(to + 32 * c),
                  make_uint4(words[0], words[1], words[2], words[3]));
    }
  }
}

} // namespace tessera

#endif // TESSERA_KERNELS_PTX_CUH
