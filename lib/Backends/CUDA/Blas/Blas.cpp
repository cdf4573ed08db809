//===- Blas.cpp - cuBLASLt ------------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums are in f32 (f64 for f64), without TF32. What the heuristic chooses
// depends on shapes, types, alignment, library version and GPU alone, and so
// does what a file of algorithms says (Chooser.h): a program's bits are the
// same in every run.
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Blas/Blas.h"
#include "Backends/CUDA/Driver/Library.h"
#include "Module/Module.h"
#include "Support/Try.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::cuda;
using namespace tessera::cuda::blas;

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

Status Api::check(Code code, const char *doing) const {
  if (code == 0)
    return Ok{};
  return Error{std::string("cuBLASLt: ") + doing + ": " + statusName(code)};
}

Status Api::load() {
  Result<Library> library = Library::open("libcublasLt.so.13");
  if (!library)
    return library.error();
  Status status = Ok{};
  auto find = [&](auto *&function, const char *name) {
    if (status)
      status = library->find(function, name);
  };
  find(version, "cublasLtGetVersion");
  find(statusName, "cublasLtGetStatusName");
#define TESSERA_BLAS_FIND(member, name, parameters) find(member, #name);
  TESSERA_BLAS(TESSERA_BLAS_FIND)
#undef TESSERA_BLAS_FIND
  return status;
}

Result<std::unique_ptr<Blas>> Blas::open() {
  std::unique_ptr<Blas> blas(new Blas());
  blas->api = std::make_unique<Api>();
  TSR_TRY(blas->api->load());
  TSR_TRY(blas->api->check(blas->api->create(&blas->handle), "a new handle"));
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
  Desc desc = nullptr;
  Preference preference = nullptr;
  Layout x = nullptr, y = nullptr, d = nullptr;
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

/// Which matrix of the library's a product sums, if one.
static uint32_t sumsBits(const Products &products) {
  switch (products.epilogue.summed) {
  case fb::Summed::None:
    return 0;
  case fb::Summed::C:
    return EpilogueSumsOfD;
  case fb::Summed::A:
    return products.product.swapped ? EpilogueSumsOfY : EpilogueSumsOfX;
  case fb::Summed::B:
    return products.product.swapped ? EpilogueSumsOfX : EpilogueSumsOfY;
  }
  return 0;
}

Blas::Calls::Calls(const Blas &blas, const Products &products,
                   const Addresses &at)
    : library(blas), products_(products), at(at),
      objects(std::make_unique<Objects>()) {
  std::byte *const bases[] = {at.a,   at.b,    at.c,     at.bias,
                              at.aux, at.sums, at.addend};
  for (int t = 0; t < Products::Count; ++t) {
    uint64_t bits = reinterpret_cast<uintptr_t>(bases[t]) | kAlignment;
    const int as = t == Products::Addend ? Products::C : t;
    if (as <= Products::C)
      for (const auto &call : products_.calls)
        bits |= call[as] * info(products_.dtypes[as]).bytes;
    alignments[t] = static_cast<int64_t>(bits & -bits);
  }

  // "2048x512x64*1/bf16:t:64:0:256/bf16:n:64:0:256/bf16:n:2048:0:256"
  const MatrixProduct &shape = products_.product;
  auto matrix = [&](const MatrixProduct::Matrix &matrix, int t) {
    text += std::string("/") + info(products_.dtypes[t]).name +
            (matrix.transposed ? ":t:" : ":n:") +
            std::to_string(matrix.leading) + ":" +
            std::to_string(matrix.batchStride) + ":" +
            std::to_string(alignments[t]);
  };
  text = std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" +
         std::to_string(shape.k) + "*" + std::to_string(shape.batch);
  matrix(shape.x, shape.swapped ? Products::B : Products::A);
  matrix(shape.y, shape.swapped ? Products::A : Products::B);
  matrix(shape.d, Products::C);
  if (products_.epilogue.bias)
    text += "/bias:" + std::to_string(alignments[Products::Bias]);
  if (products_.epilogue.gelu)
    text += "/gelu";
  if (products_.epilogue.geluGrad)
    text += "/dgelu";
  if (products_.epilogue.aux)
    text += "/aux:" + std::to_string(products_.auxLeading) + ":" +
            std::to_string(alignments[Products::Aux]);
  if (uint32_t bits = sumsBits(products_))
    text += (bits == EpilogueSumsOfD   ? "/sums:d:"
             : bits == EpilogueSumsOfX ? "/sums:x:"
                                       : "/sums:y:") +
            std::to_string(alignments[Products::Sums]);
  if (products_.epilogue.addend)
    text += "/add:" + std::to_string(alignments[Products::Addend]);
}

Blas::Calls::~Calls() {
  const Api &api = *library.api;
  for (Layout layout : {objects->x, objects->y, objects->d})
    if (layout)
      api.layoutDestroy(layout);
  if (objects->desc)
    api.descDestroy(objects->desc);
  if (objects->preference)
    api.preferenceDestroy(objects->preference);
}

Status Blas::Calls::prepare() {
  const Api &api = *library.api;
  const MatrixProduct &shape = products_.product;
  const Epilogue &epilogue = products_.epilogue;
  const DType *dtypes = products_.dtypes;
  const bool wide = dtypes[Products::C] == DType::F64;
  Status status = Ok{};
  auto check = [&](Code code, const char *doing) {
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
  if (shape.x.transposed)
    set(TransposeA, kTransposed);
  if (shape.y.transposed)
    set(TransposeB, kTransposed);
  uint32_t kind = 0;
  if (epilogue.bias) {
    kind |= EpilogueBias;
    set(BiasPointer, at.bias);
  }
  if (epilogue.gelu)
    kind |= EpilogueGelu;
  if (epilogue.geluGrad)
    kind |= EpilogueGeluGrad;
  if (uint32_t sums = sumsBits(products_)) {
    kind |= sums;
    set(BiasPointer, at.sums);
  }
  if (epilogue.aux) {
    kind |= EpilogueAux;
    set(AuxPointer, at.aux);
    set(AuxLeading, products_.auxLeading);
  }
  set(EpilogueKind, kind ? kind : uint32_t(EpilogueNone));

  auto layout = [&](Layout &handle, const MatrixProduct::Matrix &matrix,
                    DType dtype, int64_t rows, int64_t columns) {
    if (matrix.transposed)
      std::swap(rows, columns);
    check(
        api.layoutCreate(&handle, typeOf(dtype), rows, columns, matrix.leading),
        "the layout of a matrix");
    if (!status || shape.batch == 1)
      return;
    const int32_t count = static_cast<int32_t>(shape.batch);
    check(api.layoutSet(handle, BatchCount, &count, sizeof count),
          "a batch of matrices");
    check(api.layoutSet(handle, BatchStride, &matrix.batchStride,
                        sizeof matrix.batchStride),
          "a batch of matrices");
  };
  const int x = shape.swapped ? Products::B : Products::A;
  const int y = shape.swapped ? Products::A : Products::B;
  layout(objects->x, shape.x, dtypes[x], shape.m, shape.k);
  layout(objects->y, shape.y, dtypes[y], shape.k, shape.n);
  layout(objects->d, shape.d, dtypes[Products::C], shape.m, shape.n);

  check(api.preferenceCreate(&objects->preference), "preferences");
  if (!status)
    return status;
  auto prefer = [&](PreferenceAttribute attribute, auto value) {
    check(
        api.preferenceSet(objects->preference, attribute, &value, sizeof value),
        "a preference");
  };
  prefer(MaxWorkspace, static_cast<uint64_t>(kWorkspace));
  prefer(AlignmentA, static_cast<uint32_t>(alignments[x]));
  prefer(AlignmentB, static_cast<uint32_t>(alignments[y]));
  prefer(AlignmentC,
         static_cast<uint32_t>(
             alignments[epilogue.addend ? Products::Addend : Products::C]));
  prefer(AlignmentD, static_cast<uint32_t>(alignments[Products::C]));
  return status;
}

Result<std::unique_ptr<Blas::Calls>>
Blas::prepare(const Products &products, const Addresses &addresses) const {
  std::unique_ptr<Calls> calls(new Calls(*this, products, addresses));
  TSR_TRY(calls->prepare());
  return calls;
}

//===----------------------------------------------------------------------===//
// Algorithms
//===----------------------------------------------------------------------===//

/// Adds what is not yet there.
Status Blas::Calls::search(int count, uint32_t reductions,
                           std::vector<Algorithm> &found) const {
  TSR_TRY(library.api->check(
      library.api->preferenceSet(objects->preference, ReductionSchemes,
                                 &reductions, sizeof reductions),
      "a preference"));
  std::vector<Heuristic> results(count);
  int returned = 0;
  TSR_TRY(library.api->check(
      library.api->heuristic(
          library.handle, objects->desc, objects->x, objects->y, objects->d,
          objects->d, objects->preference, count, results.data(), &returned),
      "choosing an algorithm"));
  results.resize(std::clamp(returned, 0, count));
  for (const Heuristic &each : results)
    if (each.state == 0 &&
        std::find(found.begin(), found.end(), each.algorithm) == found.end())
      found.push_back(each.algorithm);
  return Ok{};
}

Result<std::vector<Algorithm>> Blas::Calls::candidates(int count) const {
  std::vector<Algorithm> found;
  TSR_TRY(search(1, kAllReductions, found));
  const MatrixProduct &shape = products_.product;
  if (found.empty())
    return Error{"cuBLASLt has no algorithm for a product of " +
                 std::to_string(shape.m) + " x " + std::to_string(shape.n) +
                 " x " + std::to_string(shape.k) + " in " +
                 info(products_.dtypes[Products::A]).name};
  // The library may have none of these, which it calls an error.
  if (count > 1 && !search(count, kReduceComputeType, found))
    found.resize(1);
  if (found.size() > size_t(count))
    found.resize(count);
  return found;
}

Status Blas::Calls::accepts(const Algorithm &algorithm) const {
  Heuristic result = {};
  TSR_TRY(library.api->check(
      library.api->algorithmCheck(library.handle, objects->desc, objects->x,
                                  objects->y, objects->d, objects->d,
                                  &algorithm, &result),
      "checking an algorithm"));
  if (result.workspace > size_t(kWorkspace))
    return Error{"it needs a workspace of " + std::to_string(result.workspace) +
                 " bytes"};
  return Ok{};
}

void Blas::Calls::use(const Algorithm &algorithm) {
  objects->algorithm = algorithm;
}

uint64_t Blas::Calls::algorithmHash() const {
  const auto &data = objects->algorithm.data;
  return hashBytes({reinterpret_cast<const char *>(data), sizeof data});
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

Status Blas::Calls::run(void *stream) const {
  const bool wide = products_.dtypes[Products::C] == DType::F64;
  const bool adds = products_.epilogue.addend;
  const float one = 1, beta = adds;
  const double wideOne = 1, wideBeta = adds;
  const bool swapped = products_.product.swapped;
  for (const auto &call : products_.calls) {
    auto place = [&](std::byte *base, int t) {
      return base + call[t] * info(products_.dtypes[t]).bytes;
    };
    std::byte *a = place(at.a, Products::A), *b = place(at.b, Products::B);
    std::byte *c = place(at.c, Products::C);
    std::byte *addend = adds ? place(at.addend, Products::C) : c;
    Code code = library.api->matmul(
        library.handle, objects->desc,
        wide ? static_cast<const void *>(&wideOne) : &one, swapped ? b : a,
        objects->x, swapped ? a : b, objects->y,
        wide ? static_cast<const void *>(&wideBeta) : &beta, addend, objects->d,
        c, objects->d, &objects->algorithm, at.workspace, kWorkspace, stream);
    if (code != 0)
      return library.api->check(code, "a matrix product");
  }
  return Ok{};
}
