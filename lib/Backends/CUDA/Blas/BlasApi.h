//===- BlasApi.h - cuBLASLt's functions, opened at run time ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What we use of cuBLASLt, declared in our own words (a test compares it with a
// toolkit's header where there is one).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_BLAS_BLASAPI_H
#define TESSERA_BACKENDS_CUDA_BLAS_BLASAPI_H

#include "Support/Result.h"

#include <cstddef>
#include <cstdint>

namespace tessera::cuda::blas {

/// What a call returns; 0 is success.
using Code = int;
using Handle = struct HandleObject *;
using Desc = struct DescObject *;
using Layout = struct LayoutObject *;
using Preference = struct PreferenceObject *;

// cudaDataType
enum DataType : int { R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14 };
// cublasComputeType_t
enum ComputeType : int { Compute32F = 68, Compute64F = 70 };
// cublasLtMatrixLayoutAttribute_t
enum LayoutAttribute : int { BatchCount = 5, BatchStride = 6 };
// cublasLtMatmulDescAttributes_t
enum MatmulAttribute : int {
  TransposeA = 3,
  TransposeB = 4,
  EpilogueKind = 7,
  BiasPointer = 8, // of sums, too
  AuxPointer = 11,
  AuxLeading = 12,
};
// cublasLtEpilogue_t: bits that combine
enum EpilogueBits : uint32_t {
  EpilogueNone = 1,
  EpilogueBias = 4,
  EpilogueSumsOfD = 16, // with EpilogueGeluGrad
  EpilogueGelu = 32,
  EpilogueGeluGrad = 64, // with EpilogueAux, which it reads
  EpilogueAux = 128,
  EpilogueSumsOfX = 256, // the library's a
  EpilogueSumsOfY = 512, // the library's b
};
// cublasLtMatmulPreferenceAttributes_t
enum PreferenceAttribute : int {
  MaxWorkspace = 1,
  ReductionSchemes = 3,
  AlignmentA = 5,
  AlignmentB = 6,
  AlignmentC = 7,
  AlignmentD = 8,
};
// cublasLtReductionScheme_t: bits; an algorithm that sums in one sequence,
// which has none, is always allowed
constexpr uint32_t kReduceComputeType = 2, kAllReductions = 7;
// cublasOperation_t
constexpr int32_t kTransposed = 1;

/// cublasLtMatmulAlgo_t: opaque, but may be stored and used again with the same
/// version of the library.
struct Algorithm {
  uint64_t data[8] = {};
  bool operator==(const Algorithm &) const = default;
};
/// cublasLtMatmulHeuristicResult_t
struct Heuristic {
  Algorithm algorithm;
  size_t workspace;
  Code state;
  float waves;
  int reserved[4];
};

/// F(member, exported name, parameters), of functions that return a Code
#define TESSERA_BLAS(F)                                                        \
  F(create, cublasLtCreate, (Handle * handle))                                 \
  F(destroy, cublasLtDestroy, (Handle handle))                                 \
  F(descCreate, cublasLtMatmulDescCreate,                                      \
    (Desc * desc, ComputeType computeType, DataType scaleType))                \
  F(descDestroy, cublasLtMatmulDescDestroy, (Desc desc))                       \
  F(descSet, cublasLtMatmulDescSetAttribute,                                   \
    (Desc desc, MatmulAttribute attribute, const void *value, size_t bytes))   \
  F(layoutCreate, cublasLtMatrixLayoutCreate,                                  \
    (Layout * layout, DataType type, uint64_t rows, uint64_t columns,          \
     int64_t leading))                                                         \
  F(layoutDestroy, cublasLtMatrixLayoutDestroy, (Layout layout))               \
  F(layoutSet, cublasLtMatrixLayoutSetAttribute,                               \
    (Layout layout, LayoutAttribute attribute, const void *value,              \
     size_t bytes))                                                            \
  F(preferenceCreate, cublasLtMatmulPreferenceCreate,                          \
    (Preference * preference))                                                 \
  F(preferenceDestroy, cublasLtMatmulPreferenceDestroy,                        \
    (Preference preference))                                                   \
  F(preferenceSet, cublasLtMatmulPreferenceSetAttribute,                       \
    (Preference preference, PreferenceAttribute attribute, const void *value,  \
     size_t bytes))                                                            \
  F(heuristic, cublasLtMatmulAlgoGetHeuristic,                                 \
    (Handle handle, Desc desc, Layout a, Layout b, Layout c, Layout d,         \
     Preference preference, int requested, Heuristic *results, int *returned)) \
  F(algorithmCheck, cublasLtMatmulAlgoCheck,                                   \
    (Handle handle, Desc desc, Layout a, Layout b, Layout c, Layout d,         \
     const Algorithm *algorithm, Heuristic *result))                           \
  F(matmul, cublasLtMatmul,                                                    \
    (Handle handle, Desc desc, const void *alpha, const void *a,               \
     Layout aLayout, const void *b, Layout bLayout, const void *beta,          \
     const void *c, Layout cLayout, void *d, Layout dLayout,                   \
     const Algorithm *algorithm, void *workspace, size_t workspaceBytes,       \
     void *stream))

struct Api {
  Status load();
  /// Success, or one sentence: "cuBLASLt: `doing`: CUBLAS_STATUS_...".
  Status check(Code code, const char *doing) const;

  size_t (*version)();
  const char *(*statusName)(Code);
#define TESSERA_BLAS_MEMBER(member, name, parameters) Code(*member) parameters;
  TESSERA_BLAS(TESSERA_BLAS_MEMBER)
#undef TESSERA_BLAS_MEMBER
};

} // namespace tessera::cuda::blas

#endif // TESSERA_BACKENDS_CUDA_BLAS_BLASAPI_H
