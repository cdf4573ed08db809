//===- gemm_test.cu - gemm.cuh against a float64 reference and cuBLASLt
//----===//
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

#include "gemm.cuh"
#include "harness.cuh"

#include <cublasLt.h>

/// f(sum + bias[column]).
template <bool Gelu, class T> struct Bias : GemmMods {
  struct Args {
    typename Element<T>::Type const *bias;
  };
  static constexpr char const *kName = Gelu ? "bias, gelu" : "bias";
  TSR_DEVICE float epilogue(Args const &a, float sum, int column) {
    const float x = sum + (float)a.bias[column];
    return Gelu ? gelu_tanh(x) : x;
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
        const __grid_constant__ GemmMaps maps,
        const __grid_constant__ GemmParams<typename C::Mods::Args> p) {
  gemm<C>(maps, p);
}

template <class T> struct Problem {
  using Stored = typename Element<T>::Type;
  int m, n, k;
  Array<Stored> a{(size_t)m * k}, b{(size_t)n * k}, c{(size_t)m * n},
      bias{(size_t)n};

  Problem(int m, int n, int k) : m(m), n(n), k(k) {
    randomize(a, 1), randomize(b, 2, 1 / std::sqrt((float)k));
    randomize(bias, 3);
  }
};

template <class T, int BN, int Stages, int Cluster, class M> struct Gemm {
  using C = GemmConfig<T, BN, Stages, Cluster, M>;
  GemmMaps maps;
  GemmParams<typename M::Args> p;
  int grid;

  Gemm(Problem<T> const &q, int group) {
    auto map = [](auto *x, int rows, int columns, unsigned box) {
      return tensor_map<T>(x, {(uint64_t)columns, (uint64_t)rows},
                           {(uint64_t)columns}, {64, box});
    };
    maps = {map(q.a.data, q.m, q.k, C::BM),
            map(q.b.data, q.n, q.k, BN / Cluster), map(q.c.data, q.m, q.n, 64)};
    p = {q.m, q.n, q.k, group, {q.bias}};
    const int rows = (q.m + C::BM * Cluster - 1) / (C::BM * Cluster);
    const int columns = (q.n + BN - 1) / BN;
    grid = std::min(multiprocessors() / Cluster, rows * columns) * Cluster;
    allow_shared(kernel<C>, sizeof(typename C::Shared));
  }
  void launch() {
    kernel<C><<<grid, C::Threads, sizeof(typename C::Shared)>>>(maps, p);
    CHECK(cudaGetLastError());
  }
  static std::string name() {
    return format("%s 128x%d cluster %d %s", Element<T>::kName, BN, Cluster,
                  M::kName);
  }
};

/// f of float64 sums; a warp an element, rows `step` apart.
template <class S>
__global__ void reference(S const *a, S const *b, S const *bias, float *out,
                          int rows, int n, int k, int step, int kind) {
  const int64_t id = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / 32;
  if (id >= (int64_t)rows * n)
    return;
  const int64_t row = id / n * step, column = id % n;
  double sum = 0;
  for (int i = threadIdx.x % 32; i < k; i += 32)
    sum += (double)(float)a[row * k + i] * (double)(float)b[column * k + i];
  for (int w = 16; w; w /= 2)
    sum += __shfl_xor_sync(~0u, sum, w);
  if (kind)
    sum += (double)(float)bias[column];
  if (kind == 2)
    sum = 0.5 * sum *
          (1 + tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
  if (threadIdx.x % 32 == 0)
    out[id] = sum;
}

Report report;

template <class T, int BN, int Stages, int Cluster, class M>
void check(int m, int n, int k, int group) {
  using G = Gemm<T, BN, Stages, Cluster, M>;
  using Stored = typename Element<T>::Type;
  report.begin(format("%s %dx%dx%d", G::name().c_str(), m, n, k));
  Problem<T> q(m, n, k);
  G gemm(q, group);
  gemm.launch();
  CHECK(cudaDeviceSynchronize());
  const auto c = q.c.host();
  const int step = std::max(1, m / 100), rows = (m + step - 1) / step;
  const int kind = std::is_same_v<M, Plain<T>>         ? 0
                   : std::is_same_v<M, Bias<false, T>> ? 1
                                                       : 2;
  Array<float> ref((size_t)rows * n);
  reference<Stored><<<((size_t)rows * n * 32 + 255) / 256, 256>>>(
      q.a, q.b, q.bias, ref, rows, n, k, step, kind);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  std::vector<float> own;
  for (int r = 0; r < rows; r++)
    for (int i = 0; i < n; i++)
      own.push_back((float)c[(size_t)r * step * n + i]);
  const Errors e = errors(own, ref.host(), n);
  q.c.clear();
  gemm.launch();
  CHECK(cudaDeviceSynchronize());
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
  } else {
    checkShapes<bf16>();
    checkShapes<f16>();
    check<bf16, 256, 4, 2, Plain<bf16>>(2048, 12288, 12288, 8);
    check<bf16, 192, 5, 2, Bias<true, bf16>>(2048, 9216, 12288, 8);
  }
  return report.close("gemm");
}
