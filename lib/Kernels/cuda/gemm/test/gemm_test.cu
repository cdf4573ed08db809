//===- gemm_test.cu - gemm.cuh by float64, and beside cuBLASLt ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//     gemm_test [check | small | bench]
//
// Checks some rows of each product in float64 (all rows of small ones). `bench`
// times beside cuBLASLt's first choice, with a workspace of 64 MiB, on random
// data, in the same run.
//
//===----------------------------------------------------------------------===//

#include "gemm/gemm.cuh"
#include "test/harness.cuh"

#include <cublasLt.h>

/// f(sum + bias[column]).
template <bool Gelu, class T> struct Bias : GemmMods {
  struct Args {
    typename Element<T>::Type const *bias;
  };
  static constexpr char const *kName = Gelu ? "bias, gelu" : "bias";
  TSR_DEVICE void epilogue(Args const &a, float (&x)[1],
                           GemmElement const &at) {
    x[0] += (float)a.bias[at.column];
    if (Gelu)
      x[0] = gelu_tanh(x[0]);
  }
};
/// gelu(sum + bias[column]), and what goes into it.
template <class T> struct Pair : GemmMods {
  using Args = typename Bias<true, T>::Args;
  static constexpr int Results = 2;
  static constexpr bool Rolled = true;
  static constexpr char const *kName = "bias, gelu, aux";
  TSR_DEVICE void epilogue(Args const &a, float (&x)[2],
                           GemmElement const &at) {
    x[1] = x[0] + (float)a.bias[at.column];
    x[0] = gelu_tanh(x[1]);
  }
};
/// The sum, and bias[row], by the batch's number: what a functor is told.
template <class T> struct Place : GemmMods {
  using Args = typename Bias<true, T>::Args;
  static constexpr char const *kName = "place";
  TSR_DEVICE void epilogue(Args const &a, float (&x)[1],
                           GemmElement const &at) {
    x[0] += at.batch * (float)a.bias[at.row];
  }
};
/// Rows of A that another kernel delivers while the product runs.
template <class T> struct Awaited : GemmMods {
  struct Args {
    typename Element<T>::Type const *bias;
    unsigned const *arrived; ///< by batch and 128 rows
    int rows, groups;
  };
  static constexpr char const *kName = "prologue";
  template <class A> TSR_DEVICE void prologue(A const &a, int batch, int row) {
    if (row >= a.rows)
      return;
    unsigned const *flag = a.arrived + batch * a.groups + row / 128;
    unsigned there;
    do
      asm volatile("ld.acquire.gpu.u32 %0, [%1];"
                   : "=r"(there)
                   : "l"(flag)
                   : "memory");
    while (!there);
    asm volatile("fence.proxy.async;" ::
                     : "memory"); // TMA reads what was stored
  }
};
template <class T> struct Plain : GemmMods {
  struct Args {
    typename Element<T>::Type const *bias;
  };
  static constexpr char const *kName = "plain";
};

template <class C>
__global__ __cluster_dims__(C::Cluster)
    __launch_bounds__(C::Threads, 1) void kernel(
        const __grid_constant__ GemmMaps<C::Mods::Results> maps,
        const __grid_constant__ GemmParams<typename C::Mods::Args> p) {
  gemm<C>(maps, p);
}

template <class T> struct Problem {
  using Stored = typename Element<T>::Type;
  int m, n, k, batch, results;
  Array<Stored> a{(size_t)batch * m * k}, b{(size_t)batch * n * k},
      c{(size_t)results * batch * m * n}, bias{(size_t)std::max(m, n)};

  Problem(int m, int n, int k, int batch = 1, int results = 1)
      : m(m), n(n), k(k), batch(batch), results(results) {
    randomize(a, 1), randomize(b, 2, 1 / std::sqrt((float)k));
    randomize(bias, 3);
  }
};

template <class T, int BN, int Stages, int Cluster, class M, int Rank = 2,
          bool BatchedB = false>
struct Gemm {
  using C = GemmConfig<T, BN, Stages, Cluster, M, Rank, BatchedB>;
  GemmMaps<M::Results> maps;
  GemmParams<typename M::Args> p;
  int grid;

  Gemm(Problem<T> const &q, int group) {
    auto map = [&](auto *x, int rows, int columns, unsigned box, bool batched) {
      const uint64_t width = columns, height = rows;
      if (!batched)
        return tensor_map<T>(x, {width, height}, {width}, {64, box});
      return tensor_map<T>(x, {width, height, (uint64_t)q.batch},
                           {width, width * height}, {64, box, 1});
    };
    maps.a = map(q.a.data, q.m, q.k, C::BM, Rank == 3);
    maps.b = map(q.b.data, q.n, q.k, BN / Cluster, BatchedB);
    for (int r = 0; r < M::Results; r++)
      maps.c[r] = map(q.c.data + (size_t)r * q.batch * q.m * q.n, q.m, q.n, 64,
                      Rank == 3);
    p = {q.batch, q.m, q.n, q.k, group, {q.bias}};
    const int rows =
        q.batch * ((q.m + C::BM * Cluster - 1) / (C::BM * Cluster));
    const int columns = (q.n + BN - 1) / BN;
    grid = std::min(multiprocessors() / Cluster, rows * columns) * Cluster;
    allow_shared(kernel<C>, sizeof(typename C::Shared));
  }
  void launch() {
    kernel<C><<<grid, C::Threads, sizeof(typename C::Shared)>>>(maps, p);
    CHECK(cudaGetLastError());
  }
  static std::string name() {
    return format("%s 128x%d cluster %d %s%s", Element<T>::kName, BN, Cluster,
                  Rank == 2  ? ""
                  : BatchedB ? "batch, "
                             : "batch of one B, ",
                  M::kName);
  }
};

/// What follows a sum.
enum Kind { kPlain, kBias, kGelu, kPlace };

/// f of float64 sums; a warp an element, rows `step` apart. Rows of one B after
/// each other, `height` of them each.
template <class S>
__global__ void reference(S const *a, S const *b, S const *bias, float *out,
                          int rows, int n, int k, int step, int kind,
                          int height, bool batched) {
  const int64_t id = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / 32;
  if (id >= (int64_t)rows * n)
    return;
  const int64_t row = id / n * step, column = id % n;
  if (batched)
    b += row / height * n * k;
  double sum = 0;
  for (int i = threadIdx.x % 32; i < k; i += 32)
    sum += (double)(float)a[row * k + i] * (double)(float)b[column * k + i];
  for (int w = 16; w; w /= 2)
    sum += __shfl_xor_sync(~0u, sum, w);
  if (kind == kBias || kind == kGelu)
    sum += (double)(float)bias[column];
  if (kind == kPlace)
    sum += row / height * (double)(float)bias[row % height];
  if (kind == kGelu)
    sum = 0.5 * sum *
          (1 + tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
  if (threadIdx.x % 32 == 0)
    out[id] = sum;
}

/// Copies 128 rows a block, each after a while of its own.
template <class S>
__global__ void deliver(S const *from, S *to, unsigned *arrived, int rows,
                        int groups, int k) {
  const int batch = blockIdx.x / groups, group = blockIdx.x % groups;
  const int64_t until = clock64() + (blockIdx.x * 7 % 13) * 10000;
  while (clock64() < until)
    ;
  const int64_t first = ((int64_t)batch * rows + group * 128) * k;
  const int64_t count = (int64_t)min(128, rows - group * 128) * k;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x)
    to[first + i] = from[first + i];
  __syncthreads();
  if (threadIdx.x == 0)
    asm volatile("fence.acq_rel.gpu; st.release.gpu.u32 [%0], %1;" ::"l"(
                     arrived + blockIdx.x),
                 "r"(1)
                 : "memory");
}

Report report;

template <class T, int BN, int Stages, int Cluster, class M, int Rank = 2,
          bool BatchedB = false>
void check(int m, int n, int k, int group, int batch = 1) {
  using G = Gemm<T, BN, Stages, Cluster, M, Rank, BatchedB>;
  using Stored = typename Element<T>::Type;
  report.begin(format("%s %dx%dx%dx%d", G::name().c_str(), batch, m, n, k));
  Problem<T> q(m, n, k, batch, M::Results);
  G gemm(q, group);
  const int groups = (m + 127) / 128;
  Array<Stored> kept((size_t)batch * m * k);
  Array<unsigned> arrived((size_t)batch * groups);
  CHECK(cudaMemcpy(kept.data, q.a.data, kept.n * sizeof(Stored),
                   cudaMemcpyDeviceToDevice));
  auto launch = [&] {
    if constexpr (std::is_same_v<M, Awaited<T>>) {
      gemm.p.args = {q.bias, arrived, m, groups};
      CHECK(cudaMemset(q.a.data, 0xff, q.a.n * sizeof(Stored))); // NaNs
      CHECK(cudaMemset(arrived.data, 0, arrived.n * sizeof(unsigned)));
      CHECK(cudaDeviceSynchronize());
      cudaStream_t beside;
      CHECK(cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking));
      deliver<Stored><<<batch * groups, 128, 0, beside>>>(kept, q.a, arrived, m,
                                                          groups, k);
      CHECK(cudaGetLastError());
      CHECK(cudaStreamDestroy(beside));
    }
    gemm.launch();
    CHECK(cudaDeviceSynchronize());
  };
  launch();
  const auto c = q.c.host();
  const int all = batch * m, step = std::max(1, all / 100),
            rows = (all + step - 1) / step;
  const Kind kind = std::is_same_v<M, Plain<T>> || std::is_same_v<M, Awaited<T>>
                        ? kPlain
                    : std::is_same_v<M, Bias<false, T>> ? kBias
                    : std::is_same_v<M, Place<T>>       ? kPlace
                                                        : kGelu;
  Errors e = {};
  for (int result = 0; result < M::Results; result++) {
    Array<float> ref((size_t)rows * n);
    reference<Stored><<<((size_t)rows * n * 32 + 255) / 256, 256>>>(
        q.a, q.b, q.bias, ref, rows, n, k, step, result == 0 ? kind : kBias, m,
        BatchedB);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    std::vector<float> own;
    for (int r = 0; r < rows; r++)
      for (int i = 0; i < n; i++)
        own.push_back(
            (float)c[((size_t)result * all + (size_t)r * step) * n + i]);
    const Errors of = errors(own, ref.host(), n);
    e = {std::max(e.norm, of.norm), std::max(e.worst, of.worst)};
  }
  q.c.clear();
  launch();
  const bool same =
      !memcmp(c.data(), q.c.host().data(), c.size() * sizeof(Stored));
  const double unit = Element<T>::kRounding;
  // Half a unit in the last place at most, which a few elements may all have.
  report.end(e.norm <= unit && e.worst <= unit && same,
             format("err %.1e worst %.1e%s", e.norm, e.worst,
                    same ? "" : " NOT REPRODUCIBLE"));
}

template <class T> void checkShapes() {
  const int shapes[][3] = {{512, 768, 256}, {300, 200, 72},
                           {1, 8, 8},       {129, 520, 1000},
                           {256, 256, 64},  {1000, 1000, 3000}};
  for (auto &[m, n, k] : shapes) {
    check<T, 256, 4, 2, Plain<T>>(m, n, k, 8);
    check<T, 256, 4, 1, Bias<false, T>>(m, n, k, 16);
    check<T, 192, 5, 2, Bias<true, T>>(m, n, k, 8);
    check<T, 128, 6, 2, Pair<T>>(m, n, k, 8);
    check<T, 256, 4, 2, Place<T>, 3>(m, n, k, 8, 3);
    check<T, 192, 5, 2, Pair<T>, 3>(m, n, k, 8, 5);
    check<T, 256, 4, 1, Pair<T>, 3, true>(m, n, k, 16, 2);
    check<T, 128, 6, 2, Place<T>, 3, true>(m, n, k, 8, 3);
    check<T, 256, 4, 2, Awaited<T>>(m, n, k, 8);
    check<T, 192, 5, 1, Awaited<T>, 3>(m, n, k, 16, 3);
  }
}

//===----------------------------------------------------------------------===//
// Beside cuBLASLt
//===----------------------------------------------------------------------===//

class CublasLt {
public:
  explicit CublasLt(Problem<bf16> const &q, bool gelu) {
    CHECK(cublasLtCreate(&handle));
    CHECK(cublasLtMatmulDescCreate(&op, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    cublasOperation_t transpose = CUBLAS_OP_T;
    CHECK(cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_TRANSA,
                                         &transpose, sizeof transpose));
    if (gelu) {
      cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_GELU_BIAS;
      void *bias = q.bias.data;
      cudaDataType_t type = CUDA_R_16BF;
      CHECK(cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                           &epilogue, sizeof epilogue));
      CHECK(cublasLtMatmulDescSetAttribute(
          op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
      CHECK(cublasLtMatmulDescSetAttribute(
          op, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type));
    }
    // Row-major C[M,N] is column-major [N,M].
    CHECK(cublasLtMatrixLayoutCreate(&a, CUDA_R_16BF, q.k, q.n, q.k));
    CHECK(cublasLtMatrixLayoutCreate(&b, CUDA_R_16BF, q.k, q.m, q.k));
    CHECK(cublasLtMatrixLayoutCreate(&c, CUDA_R_16BF, q.n, q.m, q.n));
    cublasLtMatmulPreference_t preference;
    CHECK(cublasLtMatmulPreferenceCreate(&preference));
    CHECK(cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace.n,
        sizeof workspace.n));
    int found = 0;
    CHECK(cublasLtMatmulAlgoGetHeuristic(handle, op, a, b, c, c, preference, 1,
                                         &choice, &found));
    if (!found) {
      printf("FAIL cuBLASLt has no algorithm\n");
      exit(1);
    }
  }
  void launch(Problem<bf16> const &q) {
    const float one = 1, zero = 0;
    CHECK(cublasLtMatmul(handle, op, &one, q.b.data, a, q.a.data, b, &zero,
                         q.c.data, c, q.c.data, c, &choice.algo, workspace.data,
                         workspace.n, nullptr));
  }

private:
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t op;
  cublasLtMatrixLayout_t a, b, c;
  cublasLtMatmulHeuristicResult_t choice;
  Array<char> workspace{64 << 20};
};

struct Rates {
  double cold, hot;
};
template <class F> Rates rates(Problem<bf16> const &q, F launch) {
  const double work = 2. * q.m * q.n * q.k * 1e-9;
  Rates r = {work / measure(false, launch), work / measure(true, launch)};
  return r;
}
void bench(int m, int n, int k) {
  Problem<bf16> q(m, n, k);
  for (bool gelu : {false, true}) {
    CublasLt lt(q, gelu);
    Rates first = rates(q, [&] { lt.launch(q); });
    auto line = [&](char const *name, Rates r) {
      printf("bench gemm %dx%dx%d %-4s %-22s cold %.0f hot %.0f TFLOP/s, "
             "of cuBLASLt %.3f %.3f\n",
             m, n, k, gelu ? "gelu" : "", name, r.cold, r.hot,
             r.cold / first.cold, r.hot / first.hot);
      fflush(stdout);
    };
    line("cuBLASLt", first);
    auto own = [&](char const *name, auto gemm) {
      line(name, rates(q, [&] { gemm.launch(); }));
    };
    if (gelu) {
      own("128x256 cluster 2", Gemm<bf16, 256, 4, 2, Bias<true, bf16>>(q, 8));
      own("128x192 cluster 2", Gemm<bf16, 192, 5, 2, Bias<true, bf16>>(q, 8));
    } else {
      own("128x256 cluster 2", Gemm<bf16, 256, 4, 2, Plain<bf16>>(q, 8));
      own("128x192 cluster 2", Gemm<bf16, 192, 5, 2, Plain<bf16>>(q, 8));
    }
    line("cuBLASLt again", rates(q, [&] { lt.launch(q); }));
  }
}

int main(int argc, char **argv) {
  const std::string mode = argc > 1 ? argv[1] : "check";
  if (mode == "bench") {
    bench(2048, 9216, 12288);
    bench(2048, 12288, 12288);
    bench(8192, 8192, 8192);
    return 0;
  }
  if (mode == "small") {
    check<bf16, 256, 4, 2, Plain<bf16>>(300, 520, 136, 8);
    check<bf16, 256, 4, 1, Bias<false, bf16>>(300, 520, 136, 16);
    check<bf16, 128, 6, 2, Pair<bf16>, 3, true>(300, 200, 72, 8, 3);
    check<bf16, 256, 4, 2, Awaited<bf16>>(300, 520, 136, 8);
  } else {
    checkShapes<bf16>();
    checkShapes<f16>();
    check<bf16, 256, 4, 2, Plain<bf16>>(2048, 12288, 12288, 8);
    check<bf16, 192, 5, 2, Bias<true, bf16>>(2048, 9216, 12288, 8);
    check<bf16, 256, 4, 2, Awaited<bf16>>(2048, 9216, 1024, 8);
  }
  return report.close("gemm");
}
