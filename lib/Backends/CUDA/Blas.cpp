//===- Blas.cpp - cuBLASLt ------------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions and constants of cuBLASLt that are used here are declared here:
// no CUDA headers are needed to build. Sums are in f32 (f64 for f64), without
// TF32. The heuristic's first algorithm is taken; it depends on shapes, types,
// alignment, library version and GPU alone, so a program's bits are the same in
// every run.
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Blas.h"
#include "Backends/CUDA/Library.h"

#include <algorithm>
#include <cstdint>

using namespace tessera;
using namespace tessera::cuda;

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

namespace {

using BlasStatus = int; // cublasStatus_t; 0 is success

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
  BiasPointer = 8,
  AuxPointer = 11,
  AuxLeading = 12,
};
// cublasLtEpilogue_t: bits that combine
enum EpilogueBits : uint32_t {
  EpilogueNone = 1,
  EpilogueBias = 4,
  EpilogueGelu = 32,
  EpilogueAux = 128,
};
// cublasLtMatmulPreferenceAttributes_t
enum PreferenceAttribute : int {
  MaxWorkspace = 1,
  AlignmentA = 5,
  AlignmentB = 6,
  AlignmentC = 7,
  AlignmentD = 8,
};
// cublasOperation_t
constexpr int32_t kTransposed = 1;

struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace;
  BlasStatus state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Heuristic) == 96);

using Handle = void *;

} // namespace

struct tessera::cuda::BlasApi {
  BlasStatus (*create)(Handle *);
  BlasStatus (*destroy)(Handle);
  size_t (*version)();
  const char *(*statusName)(BlasStatus);
  BlasStatus (*descCreate)(Handle *, int computeType, int scaleType);
  BlasStatus (*descDestroy)(Handle);
  BlasStatus (*descSet)(Handle, int attribute, const void *, size_t);
  BlasStatus (*layoutCreate)(Handle *, int type, uint64_t rows,
                             uint64_t columns, int64_t leading);
  BlasStatus (*layoutDestroy)(Handle);
  BlasStatus (*layoutSet)(Handle, int attribute, const void *, size_t);
  BlasStatus (*preferenceCreate)(Handle *);
  BlasStatus (*preferenceDestroy)(Handle);
  BlasStatus (*preferenceSet)(Handle, int attribute, const void *, size_t);
  BlasStatus (*heuristic)(Handle, Handle desc, Handle a, Handle b, Handle c,
                          Handle d, Handle preference, int requested,
                          Heuristic *results, int *returned);
  BlasStatus (*matmul)(Handle, Handle desc, const void *alpha, const void *a,
                       Handle aLayout, const void *b, Handle bLayout,
                       const void *beta, const void *c, Handle cLayout, void *d,
                       Handle dLayout, const Algorithm *, void *workspace,
                       size_t workspaceBytes, void *stream);

  Status load();
  Status check(BlasStatus status, const char *doing) const {
    if (status == 0)
      return Ok{};
    return Error{std::string("cuBLASLt: ") + doing + ": " + statusName(status)};
  }
};

Status BlasApi::load() {
  Result<Library> library = Library::open("libcublasLt.so.13");
  if (!library)
    return library.error();
  Status status = Ok{};
  auto find = [&](auto *&function, const char *name) {
    if (status)
      status = library->find(function, name);
  };
  find(create, "cublasLtCreate");
  find(destroy, "cublasLtDestroy");
  find(version, "cublasLtGetVersion");
  find(statusName, "cublasLtGetStatusName");
  find(descCreate, "cublasLtMatmulDescCreate");
  find(descDestroy, "cublasLtMatmulDescDestroy");
  find(descSet, "cublasLtMatmulDescSetAttribute");
  find(layoutCreate, "cublasLtMatrixLayoutCreate");
  find(layoutDestroy, "cublasLtMatrixLayoutDestroy");
  find(layoutSet, "cublasLtMatrixLayoutSetAttribute");
  find(preferenceCreate, "cublasLtMatmulPreferenceCreate");
  find(preferenceDestroy, "cublasLtMatmulPreferenceDestroy");
  find(preferenceSet, "cublasLtMatmulPreferenceSetAttribute");
  find(heuristic, "cublasLtMatmulAlgoGetHeuristic");
  find(matmul, "cublasLtMatmul");
  return status;
}

Result<std::unique_ptr<Blas>> Blas::open() {
  std::unique_ptr<Blas> blas(new Blas());
  blas->api = std::make_unique<BlasApi>();
  if (Status status = blas->api->load(); !status)
    return status.error();
  if (Status status =
          blas->api->check(blas->api->create(&blas->handle), "a new handle");
      !status)
    return status.error();
  return blas;
}

Blas::~Blas() {
  if (handle)
    api->destroy(handle);
}

std::string Blas::version() const {
  size_t number = api->version(); // 130100 is 13.1.0
  return std::to_string(number / 10000) + "." +
         std::to_string(number / 100 % 100) + "." +
         std::to_string(number % 100);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

struct Blas::Calls::Objects {
  Handle desc = nullptr, preference = nullptr;
  Handle x = nullptr, y = nullptr, d = nullptr;
  Algorithm algorithm;
};

static DataType typeOf(DType dtype) {
  switch (dtype) {
  case DType::F64:
    return R_64F;
  case DType::BF16:
    return R_16BF;
  case DType::F16:
    return R_16F;
  default:
    return R_32F;
  }
}

Blas::Calls::Calls(const Blas &blas, const Products &products,
                   const Addresses &at)
    : blas(blas), products(products), at(at),
      objects(std::make_unique<Objects>()) {}

Blas::Calls::~Calls() {
  const BlasApi &api = *blas.api;
  for (Handle layout : {objects->x, objects->y, objects->d})
    if (layout)
      api.layoutDestroy(layout);
  if (objects->desc)
    api.descDestroy(objects->desc);
  if (objects->preference)
    api.preferenceDestroy(objects->preference);
}

Status Blas::Calls::prepare() {
  const BlasApi &api = *blas.api;
  const MatrixProduct &product = products.product;
  const Epilogue &epilogue = products.epilogue;
  const bool wide = products.dtypes[Products::C] == DType::F64;
  Status status = Ok{};
  auto check = [&](BlasStatus code, const char *doing) {
    if (status)
      status = api.check(code, doing);
  };
  auto set = [&](MatmulAttribute attribute, auto value) {
    check(api.descSet(objects->desc, attribute, &value, sizeof value),
          "an attribute of a product");
  };

  check(api.descCreate(&objects->desc, wide ? Compute64F : Compute32F,
                       wide ? R_64F : R_32F),
        "a new product");
  if (!status)
    return status;
  if (product.x.transposed)
    set(TransposeA, kTransposed);
  if (product.y.transposed)
    set(TransposeB, kTransposed);
  uint32_t kind = 0;
  if (epilogue.bias) {
    kind |= EpilogueBias;
    set(BiasPointer, at.bias);
  }
  if (epilogue.gelu)
    kind |= EpilogueGelu;
  if (epilogue.aux) {
    kind |= EpilogueAux;
    set(AuxPointer, at.aux);
    set(AuxLeading, products.auxLeading);
  }
  set(EpilogueKind, kind ? kind : uint32_t(EpilogueNone));

  auto layout = [&](Handle &handle, const MatrixProduct::Matrix &matrix,
                    DType dtype, int64_t rows, int64_t columns) {
    if (matrix.transposed)
      std::swap(rows, columns);
    check(
        api.layoutCreate(&handle, typeOf(dtype), rows, columns, matrix.leading),
        "the layout of a matrix");
    if (!status || product.batch == 1)
      return;
    const int32_t count = static_cast<int32_t>(product.batch);
    check(api.layoutSet(handle, BatchCount, &count, sizeof count),
          "a batch of matrices");
    check(api.layoutSet(handle, BatchStride, &matrix.batchStride,
                        sizeof matrix.batchStride),
          "a batch of matrices");
  };
  const DType *dtypes = products.dtypes;
  const int x = product.swapped ? Products::B : Products::A;
  const int y = product.swapped ? Products::A : Products::B;
  layout(objects->x, product.x, dtypes[x], product.m, product.k);
  layout(objects->y, product.y, dtypes[y], product.k, product.n);
  layout(objects->d, product.d, dtypes[Products::C], product.m, product.n);

  // What every address of a matrix is a multiple of.
  std::byte *const bases[] = {at.a, at.b, at.c};
  auto alignment = [&](int t) {
    uint64_t bits = reinterpret_cast<uintptr_t>(bases[t]) | kAlignment;
    for (const auto &call : products.calls)
      bits |= call[t] * info(dtypes[t]).bytes;
    return static_cast<uint32_t>(bits & -bits);
  };
  check(api.preferenceCreate(&objects->preference), "preferences");
  if (!status)
    return status;
  auto prefer = [&](PreferenceAttribute attribute, auto value) {
    check(
        api.preferenceSet(objects->preference, attribute, &value, sizeof value),
        "a preference");
  };
  prefer(MaxWorkspace, static_cast<uint64_t>(kWorkspace));
  prefer(AlignmentA, alignment(x));
  prefer(AlignmentB, alignment(y));
  prefer(AlignmentC, alignment(Products::C));
  prefer(AlignmentD, alignment(Products::C));
  if (!status)
    return status;

  Heuristic found = {};
  int count = 0;
  check(api.heuristic(blas.handle, objects->desc, objects->x, objects->y,
                      objects->d, objects->d, objects->preference, 1, &found,
                      &count),
        "choosing an algorithm");
  if (!status)
    return status;
  if (count == 0 || found.state != 0)
    return Error{"cuBLASLt has no algorithm for a product of " +
                 std::to_string(product.m) + " x " + std::to_string(product.n) +
                 " x " + std::to_string(product.k) + " in " +
                 info(dtypes[x]).name};
  objects->algorithm = found.algorithm;
  return Ok{};
}

Result<std::unique_ptr<Blas::Calls>>
Blas::prepare(const Products &products, const Addresses &addresses) const {
  std::unique_ptr<Calls> calls(new Calls(*this, products, addresses));
  if (Status status = calls->prepare(); !status)
    return status.error();
  return calls;
}

Status Blas::Calls::run(void *stream) const {
  const bool wide = products.dtypes[Products::C] == DType::F64;
  const float one = 1, none = 0;
  const double wideOne = 1, wideNone = 0;
  const bool swapped = products.product.swapped;
  for (const auto &call : products.calls) {
    auto place = [&](std::byte *base, int t) {
      return base + call[t] * info(products.dtypes[t]).bytes;
    };
    std::byte *a = place(at.a, Products::A), *b = place(at.b, Products::B);
    std::byte *c = place(at.c, Products::C);
    BlasStatus status = blas.api->matmul(
        blas.handle, objects->desc,
        wide ? static_cast<const void *>(&wideOne) : &one, swapped ? b : a,
        objects->x, swapped ? a : b, objects->y,
        wide ? static_cast<const void *>(&wideNone) : &none, c, objects->d, c,
        objects->d, &objects->algorithm, at.workspace, kWorkspace, stream);
    if (status != 0)
      return blas.api->check(status, "a matrix product");
  }
  return Ok{};
}
