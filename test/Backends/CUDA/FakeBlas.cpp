//===- FakeBlas.cpp - a cuBLASLt for tests, without a GPU -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products of f32, in memory of the recording driver, with as many algorithms
// as a test wants: all compute the same, and move the driver's clock on by the
// time that each takes.
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Blas/BlasApi.h"
#include "RecordingDriver.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

using namespace tessera::cuda::blas;
using namespace tessera::test;

extern "C" RecordingDriver *tessera_recording_driver();
extern "C" int cuMemsetD8Async(unsigned long long to, unsigned char value,
                               size_t count, void *stream);

namespace tessera::cuda::blas {
struct HandleObject {};
struct DescObject {
  ComputeType compute;
  int32_t transposed[2] = {};
  uint32_t epilogue = EpilogueNone;
  float *bias = nullptr;
  const float *aux = nullptr;
  int64_t auxLeading = 0;
};
struct LayoutObject {
  DataType type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct PreferenceObject {
  uint32_t reductions = kAllReductions;
  uint64_t workspace = 0;
};
} // namespace tessera::cuda::blas

namespace {

constexpr Code kInvalidValue = 7, kNotSupported = 15;
constexpr uint64_t kMark = 0x7e55e7a;

RecordingDriver &fake() { return *tessera_recording_driver(); }

std::mutex mutex; // ranks are threads

template <typename T> Code make(T **to, T value) {
  std::lock_guard lock(mutex);
  *to = new T(value);
  ++fake().blas;
  return 0;
}
template <typename T> Code destroy(T *object) {
  std::lock_guard lock(mutex);
  delete object;
  --fake().blas;
  return 0;
}
template <typename T> Code take(T &to, const void *value, size_t bytes) {
  if (bytes != sizeof to)
    return kInvalidValue;
  std::memcpy(&to, value, bytes);
  return 0;
}

/// Negative: it is none of ours.
int numberOf(const Algorithm &algorithm) {
  const int number = static_cast<int>(algorithm.data[0]);
  return algorithm.data[7] == kMark &&
                 number < static_cast<int>(fake().algorithms.size())
             ? number
             : -1;
}

/// Column-major element.
const float *element(const void *base, const LayoutObject &layout,
                     bool transposed, int64_t batch, int64_t row,
                     int64_t column) {
  if (transposed)
    std::swap(row, column);
  return static_cast<const float *>(base) + batch * layout.stride +
         column * layout.leading + row;
}

/// Of gelu in its form with tanh.
double slope(double x) {
  const double t = std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 *
                             (1 + 3 * 0.044715 * x * x);
}

/// The combinations that the library has, of those that are ours.
bool isEpilogue(uint32_t bits) {
  for (uint32_t each : {uint32_t(EpilogueNone), uint32_t(EpilogueBias),
                        EpilogueGeluGrad | EpilogueAux,
                        EpilogueGeluGrad | EpilogueAux | EpilogueSumsOfD,
                        uint32_t(EpilogueSumsOfX), uint32_t(EpilogueSumsOfY)})
    if (bits == each)
      return true;
  return false;
}

} // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT size_t cublasLtGetVersion() { return fake().blasVersion; }
EXPORT const char *cublasLtGetStatusName(Code code) {
  return code == kNotSupported ? "CUBLAS_STATUS_NOT_SUPPORTED"
                               : "CUBLAS_STATUS_INVALID_VALUE";
}
EXPORT Code cublasLtCreate(Handle *handle) {
  return make(handle, HandleObject());
}
EXPORT Code cublasLtDestroy(Handle handle) { return destroy(handle); }
EXPORT Code cublasLtMatmulDescCreate(Desc *desc, ComputeType compute,
                                     DataType) {
  return make(desc, DescObject{compute});
}
EXPORT Code cublasLtMatmulDescDestroy(Desc desc) { return destroy(desc); }
EXPORT Code cublasLtMatmulDescSetAttribute(Desc desc, MatmulAttribute attribute,
                                           const void *value, size_t bytes) {
  switch (attribute) {
  case TransposeA:
  case TransposeB:
    return take(desc->transposed[attribute - TransposeA], value, bytes);
  case EpilogueKind:
    return take(desc->epilogue, value, bytes);
  case BiasPointer:
    return take(desc->bias, value, bytes);
  case AuxPointer:
    return take(desc->aux, value, bytes);
  case AuxLeading:
    return take(desc->auxLeading, value, bytes);
  default:
    return kNotSupported;
  }
}
EXPORT Code cublasLtMatrixLayoutCreate(Layout *layout, DataType type,
                                       uint64_t rows, uint64_t columns,
                                       int64_t leading) {
  if (leading < static_cast<int64_t>(rows))
    return kInvalidValue;
  return make(layout, LayoutObject{type, rows, columns, leading});
}
EXPORT Code cublasLtMatrixLayoutDestroy(Layout layout) {
  return destroy(layout);
}
EXPORT Code cublasLtMatrixLayoutSetAttribute(Layout layout,
                                             LayoutAttribute attribute,
                                             const void *value, size_t bytes) {
  return attribute == BatchCount ? take(layout->batch, value, bytes)
                                 : take(layout->stride, value, bytes);
}
EXPORT Code cublasLtMatmulPreferenceCreate(Preference *preference) {
  return make(preference, PreferenceObject());
}
EXPORT Code cublasLtMatmulPreferenceDestroy(Preference preference) {
  return destroy(preference);
}
EXPORT Code cublasLtMatmulPreferenceSetAttribute(Preference preference,
                                                 PreferenceAttribute attribute,
                                                 const void *value,
                                                 size_t bytes) {
  uint32_t alignment;
  switch (attribute) {
  case MaxWorkspace:
    return take(preference->workspace, value, bytes);
  case ReductionSchemes:
    return take(preference->reductions, value, bytes);
  default:
    return take(alignment, value, bytes);
  }
}

EXPORT Code cublasLtMatmulAlgoGetHeuristic(Handle, Desc, Layout, Layout, Layout,
                                           Layout, Preference preference,
                                           int requested, Heuristic *results,
                                           int *returned) {
  *returned = 0;
  for (int i = 0;
       i < static_cast<int>(fake().algorithms.size()) && *returned < requested;
       ++i) {
    if (preference->reductions == kReduceComputeType &&
        fake().imprecise.count(i))
      continue;
    Heuristic &result = results[(*returned)++];
    result = {};
    result.algorithm.data[0] = i;
    result.algorithm.data[7] = kMark;
  }
  return 0;
}
EXPORT Code cublasLtMatmulAlgoCheck(Handle, Desc, Layout, Layout, Layout,
                                    Layout, const Algorithm *algorithm,
                                    Heuristic *result) {
  *result = {};
  const int number = numberOf(*algorithm);
  return number < 0 || fake().refused.count(number) ? kNotSupported : 0;
}

EXPORT Code cublasLtMatmul(Handle, Desc desc, const void *, const void *x,
                           Layout xs, const void *y, Layout ys,
                           const void *beta, const void *c, Layout, void *d,
                           Layout ds, const Algorithm *algorithm,
                           void *workspace, size_t bytes, void *stream) {
  const int number = numberOf(*algorithm);
  if (number < 0 || fake().unable.count(number) || xs->type != R_32F ||
      desc->compute != Compute32F || !isEpilogue(desc->epilogue))
    return kNotSupported;
  if (desc->epilogue & EpilogueAux &&
      (!desc->aux || desc->auxLeading % 8 ||
       desc->auxLeading < static_cast<int64_t>(ds->rows) || ds->batch != 1))
    return kInvalidValue;
  if (!x || !y || !d || !workspace || bytes == 0 ||
      reinterpret_cast<uintptr_t>(workspace) % 256)
    return kInvalidValue;
  // What a graph keeps outlives these.
  const float scale = *static_cast<const float *>(beta);
  FakeTask task = [=, desc = *desc, xs = *xs, ys = *ys, ds = *ds](int device) {
    fake().products.push_back({number, x, y, d, workspace});
    if (fake().watch)
      fake().watch(fake().products.back());
    const bool tx = desc.transposed[0], ty = desc.transposed[1];
    const int64_t sums = tx ? xs.rows : xs.columns;
    for (int64_t b = 0; b < ds.batch; ++b)
      for (int64_t j = 0; j < static_cast<int64_t>(ds.columns); ++j)
        for (int64_t i = 0; i < static_cast<int64_t>(ds.rows); ++i) {
          float sum = desc.epilogue & EpilogueBias ? desc.bias[i] : 0;
          if (scale != 0)
            sum += scale * *element(c, ds, false, b, i, j);
          for (int64_t k = 0; k < sums; ++k)
            sum += *element(x, xs, tx, b, i, k) * *element(y, ys, ty, b, k, j);
          if (desc.epilogue & EpilogueGeluGrad)
            sum *= slope(desc.aux[j * desc.auxLeading + i]);
          *const_cast<float *>(element(d, ds, false, b, i, j)) = sum;
        }
    // Of D's rows over its columns, else over what is multiplied away.
    const bool ofD = desc.epilogue & EpilogueSumsOfD;
    const bool ofX = desc.epilogue & EpilogueSumsOfX;
    if (ofD || ofX || desc.epilogue & EpilogueSumsOfY) {
      const int64_t kept = ofD || ofX ? ds.rows : ds.columns;
      for (int64_t i = 0; i < kept; ++i) {
        desc.bias[i] = 0;
        for (int64_t k = 0, e = ofD ? ds.columns : sums; k < e; ++k)
          desc.bias[i] += *(ofD   ? element(d, ds, false, 0, i, k)
                            : ofX ? element(x, xs, tx, 0, i, k)
                                  : element(y, ys, ty, 0, k, i));
      }
    }
    auto own = fake().algorithmsOn.find(device);
    return own == fake().algorithmsOn.end() ? fake().algorithms[number]
                                            : own->second[number];
  };
  if (fake().sets)
    cuMemsetD8Async(reinterpret_cast<uintptr_t>(workspace), 0, fake().sets,
                    stream);
  return tessera_recording_perform("matmul", stream, &task) ? kInvalidValue : 0;
}
