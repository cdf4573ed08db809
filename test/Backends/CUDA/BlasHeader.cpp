//===- BlasHeader.cpp - our declarations beside cuBLASLt's own ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Alike.h.
//
//===----------------------------------------------------------------------===//

#include "Alike.h"
#include "Backends/CUDA/Blas/BlasApi.h"

#include <cublasLt.h>

namespace ours = tessera::cuda::blas;

static_assert(ours::R_32F == int(CUDA_R_32F));
static_assert(ours::R_64F == int(CUDA_R_64F));
static_assert(ours::R_16F == int(CUDA_R_16F));
static_assert(ours::R_16BF == int(CUDA_R_16BF));
static_assert(ours::Compute32F == int(CUBLAS_COMPUTE_32F));
static_assert(ours::Compute64F == int(CUBLAS_COMPUTE_64F));
static_assert(ours::BatchCount == int(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT));
static_assert(ours::BatchStride ==
              int(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET));
static_assert(ours::TransposeA == int(CUBLASLT_MATMUL_DESC_TRANSA));
static_assert(ours::TransposeB == int(CUBLASLT_MATMUL_DESC_TRANSB));
static_assert(ours::EpilogueKind == int(CUBLASLT_MATMUL_DESC_EPILOGUE));
static_assert(ours::BiasPointer == int(CUBLASLT_MATMUL_DESC_BIAS_POINTER));
static_assert(ours::AuxPointer ==
              int(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER));
static_assert(ours::AuxLeading == int(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD));
static_assert(ours::EpilogueNone == int(CUBLASLT_EPILOGUE_DEFAULT));
static_assert(ours::EpilogueBias == int(CUBLASLT_EPILOGUE_BIAS));
static_assert(ours::EpilogueGelu == int(CUBLASLT_EPILOGUE_GELU));
static_assert((ours::EpilogueGelu | ours::EpilogueAux) ==
              int(CUBLASLT_EPILOGUE_GELU_AUX));
static_assert((ours::EpilogueGelu | ours::EpilogueAux | ours::EpilogueBias) ==
              int(CUBLASLT_EPILOGUE_GELU_AUX_BIAS));
static_assert((ours::EpilogueGeluGrad | ours::EpilogueAux) ==
              int(CUBLASLT_EPILOGUE_DGELU));
static_assert((ours::EpilogueGeluGrad | ours::EpilogueAux |
               ours::EpilogueSumsOfD) == int(CUBLASLT_EPILOGUE_DGELU_BGRAD));
static_assert(ours::EpilogueSumsOfX == int(CUBLASLT_EPILOGUE_BGRADA));
static_assert(ours::EpilogueSumsOfY == int(CUBLASLT_EPILOGUE_BGRADB));
static_assert(ours::MaxWorkspace ==
              int(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES));
static_assert(ours::ReductionSchemes ==
              int(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK));
static_assert(ours::AlignmentA ==
              int(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES));
static_assert(ours::AlignmentB ==
              int(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES));
static_assert(ours::AlignmentC ==
              int(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES));
static_assert(ours::AlignmentD ==
              int(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES));
static_assert(ours::kReduceComputeType ==
              int(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
static_assert(ours::kAllReductions == int(CUBLASLT_REDUCTION_SCHEME_MASK));
static_assert(CUBLASLT_REDUCTION_SCHEME_NONE == 0);
static_assert(ours::kTransposed == int(CUBLAS_OP_T));

static_assert(sizeof(ours::Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(ours::Heuristic) ==
              sizeof(cublasLtMatmulHeuristicResult_t));
#define SAME_PLACE(mine, theirs)                                               \
  static_assert(offsetof(ours::Heuristic, mine) ==                             \
                offsetof(cublasLtMatmulHeuristicResult_t, theirs))
SAME_PLACE(algorithm, algo);
SAME_PLACE(workspace, workspaceSize);
SAME_PLACE(state, state);
SAME_PLACE(waves, wavesCount);

using ours::Api;
using tessera::test::alike;
TESSERA_BLAS(TESSERA_ALIKE)
static_assert(alike(decltype(Api::version)(nullptr), &cublasLtGetVersion));
static_assert(alike(decltype(Api::statusName)(nullptr),
                    &cublasLtGetStatusName));
