//===- harness.cuh - what the GPU tests share -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checked calls, device memory, tensor maps, random data, errors against a
// reference, timing. Each test prints one line; each program a closing count.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_TEST_HARNESS_CUH
#define TESSERA_KERNELS_TEST_HARNESS_CUH

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "attention/attention_packed.cuh"

using namespace tessera;

#define CHECK(call)                                                            \
  do {                                                                         \
    auto status_ = (call);                                                     \
    if ((int)status_ != 0) {                                                   \
      printf("FAIL %s:%d: %s gave %d %s\n", __FILE__, __LINE__, #call,         \
             (int)status_, cudaGetErrorString(cudaGetLastError()));            \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

/// The memory type of an element tag, and its data type in tensor maps.
template <class T> struct Element;
template <> struct Element<bf16> {
  using Type = __nv_bfloat16;
  static constexpr auto kMap = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  static constexpr char const *kName = "bf16";
  static constexpr double kRounding = 1.0 / 256; // of one result, relative
};
template <> struct Element<f16> {
  using Type = __half;
  static constexpr auto kMap = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  static constexpr char const *kName = "f16";
  static constexpr double kRounding = 1.0 / 2048;
};

/// Device memory of n elements, all bits set: unwritten floats are NaN.
template <class T> class Array {
public:
  explicit Array(size_t n) : n(n) {
    CHECK(cudaMalloc(&data, std::max<size_t>(n, 1) * sizeof(T)));
    clear();
  }
  Array(Array const &) = delete;
  ~Array() { cudaFree(data); }
  void clear() { CHECK(cudaMemset(data, 0xff, n * sizeof(T))); }
  operator T *() const { return data; }
  std::vector<T> host() const {
    std::vector<T> copy(n);
    CHECK(cudaMemcpy(copy.data(), data, n * sizeof(T), cudaMemcpyDeviceToHost));
    return copy;
  }

  T *data;
  size_t n;
};

/// Extents and box from the innermost dimension; strides in elements, without
/// the innermost (1). A tensor without elements has no map: zeros.
template <class T>
TensorMap tensor_map(typename Element<T>::Type const *base,
                     std::vector<uint64_t> extents,
                     std::vector<uint64_t> strides, std::vector<unsigned> box) {
  static auto encode = [] {
    void *f;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000,
                                           cudaEnableDefault, &found));
    return (decltype(&cuTensorMapEncodeTiled))f;
  }();
  TensorMap map = {};
  for (uint64_t extent : extents)
    if (!extent)
      return map;
  for (auto &s : strides)
    s *= 2;
  std::vector<unsigned> ones(extents.size(), 1);
  CHECK(encode((CUtensorMap *)&map, Element<T>::kMap, (unsigned)extents.size(),
               (void *)base, (cuuint64_t *)extents.data(),
               (cuuint64_t *)strides.data(), box.data(), ones.data(),
               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
               // What lies beside a row of 128 bytes may be another head's.
               extents[0] * 2 % 256 && strides[0] != extents[0] * 2
                   ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B
                   : CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  return map;
}

/// For copies of boxes of 64 x `box` of packed sequences; strides in elements.
template <class T>
TensorMap ragged_map(typename Element<T>::Type const *base, uint64_t depth,
                     uint64_t positions, uint64_t heads, uint64_t row,
                     uint64_t head, unsigned box) {
  return tensor_map<T>(base,
                       {depth, kRaggedRows, heads, kRaggedRows + 1,
                        positions ? positions + 1 : 0},
                       {row, head, kRaggedStride / 2 - row, row},
                       {64, box, 1, 1, 1});
}

/// Normally distributed values from a counter hash.
template <class T>
__global__ void fill_random(T *p, size_t n, uint64_t seed, float scale) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
       i += (size_t)gridDim.x * blockDim.x) {
    uint64_t x = (i + 1) * 0x9E3779B97F4A7C15ul + seed * 0xD1B54A32D192ED03ul;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ul;
    x = (x ^ x >> 27) * 0x94D049BB133111EBul;
    x ^= x >> 31;
    float u = ((uint32_t)x >> 8) * 0x1p-24f + 0x1p-25f;
    float v = (uint32_t)(x >> 40) * 0x1p-24f;
    p[i] = (T)(scale * sqrtf(-2 * logf(u)) * cosf(6.2831853f * v));
  }
}
template <class T>
void randomize(Array<T> const &a, uint64_t seed, float scale = 1) {
  if (a.n)
    fill_random<<<1024, 256>>>(a.data, a.n, seed, scale);
  CHECK(cudaGetLastError());
}

/// Errors of x against ref, both in rows: in the 2-norm, and the largest of one
/// element over |ref| + the root mean square of its row in ref + `floor` times
/// that of all rows. NaN if x is NaN where ref is not. Equal infinities are
/// right.
struct Errors {
  double norm, worst;
};
inline Errors errors(std::vector<float> const &x, std::vector<float> const &ref,
                     size_t row, double floor = 0) {
  Errors result = {0, 0};
  double squares = 0, all = 0;
  if (floor) {
    for (float one : ref)
      all += std::isfinite(one) ? (double)one * one : 0;
    floor *= std::sqrt(all / ref.size());
    all = 0;
  }
  for (size_t first = 0; first < x.size(); first += row) {
    double own = 0;
    for (size_t i = first; i < first + row; i++)
      if (std::isfinite(ref[i]))
        own += (double)ref[i] * ref[i];
    all += own;
    const double rms = std::sqrt(own / row) + floor;
    for (size_t i = first; i < first + row; i++) {
      if (x[i] == ref[i])
        continue;
      const double d = std::fabs((double)x[i] - ref[i]);
      const double relative = d / (std::fabs(ref[i]) + rms);
      squares += d * d;
      if (!(relative <= result.worst))
        result.worst = relative;
    }
  }
  result.norm = squares == 0 ? 0 : std::sqrt(squares / all);
  return result;
}
template <class T> std::vector<float> to_float(std::vector<T> const &x) {
  std::vector<float> result(x.size());
  for (size_t i = 0; i < x.size(); i++)
    result[i] = (float)x[i];
  return result;
}

/// Test lines and their count.
struct Report {
  int passed = 0, failed = 0;
  /// Before a test runs, so that a hang has a name.
  void begin(std::string const &name) {
    printf("%-64s ", name.c_str());
    fflush(stdout);
  }
  void end(bool ok, std::string const &details) {
    printf("%s %s\n", ok ? "ok  " : "FAIL", details.c_str());
    fflush(stdout);
    (ok ? passed : failed)++;
  }
  int close(char const *program) {
    printf("%s: %d passed, %d failed\n", program, passed, failed);
    return failed || !passed;
  }
};
template <class... A> std::string format(char const *pattern, A... arguments) {
  char text[512];
  snprintf(text, sizeof text, pattern, arguments...);
  return text;
}

__global__ void spin(long cycles) {
  for (long end = clock64() + cycles; clock64() < end;) {
  }
}

/// A launch of clusters of so many blocks; `early`: it may start as soon as the
/// kernel before lets it.
template <class... Args>
void launch_clusters(int cluster, bool early, void (*kernel)(Args...),
                     dim3 blocks, int threads, int shared, cudaStream_t stream,
                     std::common_type_t<Args> const &...args) {
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = early;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {(unsigned)cluster, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks, config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared, config.stream = stream;
  config.attrs = attributes, config.numAttrs = cluster > 1 ? 2 : 1;
  CHECK(cudaLaunchKernelEx(&config, kernel, args...));
}
template <class... Args>
void launch_early(void (*kernel)(Args...), dim3 blocks, int threads, int shared,
                  cudaStream_t stream,
                  std::common_type_t<Args> const &...args) {
  launch_clusters(1, true, kernel, blocks, threads, shared, stream, args...);
}

/// Milliseconds of one launch. cold: the median of single launches, each after
/// a flush of L2 and a pause. hot: the mean of launches back to back for ~0.1
/// s. A rest before lets the power controller forget what ran before.
inline double measure(bool hot, std::function<void()> launch) {
  static Array<char> scratch(1 << 28);
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  auto elapsed = [&] {
    float ms;
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    return (double)ms;
  };
  timespec rest{0, 100000000};
  nanosleep(&rest, nullptr);
  std::vector<double> ms;
  for (int i = -3; i < (hot ? 1 : 12); i++) {
    scratch.clear();
    spin<<<1, 1>>>(2000000);
    CHECK(cudaEventRecord(begin));
    launch();
    CHECK(cudaEventRecord(end));
    double t = elapsed();
    if (i >= 0)
      ms.push_back(t);
  }
  std::sort(ms.begin(), ms.end());
  double result = ms[ms.size() / 2];
  if (hot) {
    int count = std::max(5, std::min(600, (int)(100 / result)));
    for (int i = 0; i < count / 2; i++)
      launch();
    CHECK(cudaEventRecord(begin));
    for (int i = 0; i < count; i++)
      launch();
    CHECK(cudaEventRecord(end));
    result = elapsed() / count;
  }
  CHECK(cudaGetLastError());
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
  return result;
}

template <class K> void allow_shared(K *kernel, int bytes) {
  CHECK(cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}
inline int multiprocessors() {
  int n;
  CHECK(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, 0));
  return n;
}

#endif // TESSERA_KERNELS_TEST_HARNESS_CUH
