//===- NCCL.cpp - NCCL, opened at run time --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/NCCL/NCCL.h"
#include "Backends/CUDA/Driver/Library.h"
#include "Support/Try.h"

#include <cstdlib>
#include <cstring>

using namespace tessera;
using namespace tessera::cuda;
using namespace tessera::cuda::nccl;

/// The first that shares a communicator's resources with its parts.
static constexpr int kOldest = 21800;
/// The first whose windows tell whether memory is mapped.
static constexpr int kWindows = 22800;

Result<Api *> Api::open() {
  Result<Library> library = Library::open("libnccl.so.2");
  if (!library)
    return library.error();
  static Api api;
#define TESSERA_NCCL_FIND(member, name, parameters)                            \
  if (Status status = library->find(api.member, #name); !status)               \
    return status.error();
  TESSERA_NCCL(TESSERA_NCCL_FIND)
#undef TESSERA_NCCL_FIND
  TSR_TRY(library->find(api.getErrorString, "ncclGetErrorString"));
  TSR_TRY(library->find(api.getLastError, "ncclGetLastError"));
  int version = 0;
  TSR_TRY(api.check(api.getVersion(&version), "tell its version", nullptr));
  if (version < kOldest)
    return Error{library->path() + " is NCCL " + toVersionText(version) + "; " +
                 toVersionText(kOldest) + " or later is needed"};
  api.versionText = toVersionText(version);
  api.windows = version >= kWindows;
  if (!api.windows)
    return &api;
#define TESSERA_NCCL_FIND(member, name, parameters)                            \
  if (Status status = library->find(api.member, #name); !status)               \
    return status.error();
  TESSERA_NCCL_WINDOWS(TESSERA_NCCL_FIND)
#undef TESSERA_NCCL_FIND
  return &api;
}

Result<const Api *> Api::get() {
  // No field of a communicator's configuration turns multicast off, and the
  // environment is the program's to change, before any thread reads it.
  const char *multicast = getenv("NCCL_NVLS_ENABLE");
  if (!multicast || std::strcmp(multicast, "0") != 0)
    return Error{
        "NVLink multicast is never used, and NCCL must be told so: set "
        "NCCL_NVLS_ENABLE=0 in the environment before the program "
        "starts"};
  static const Result<Api *> opened = open();
  if (!opened)
    return opened.error();
  return *opened;
}

Status Api::check(State state, std::string_view what, Comm comm) const {
  if (state == kSuccess || state == kInProgress)
    return Ok{};
  std::string message = "NCCL cannot " + std::string(what) + ": ";
  message += getErrorString(state);
  const char *last = getLastError(comm);
  if (last && *last)
    message += std::string(" (") + last + ")";
  return Error{message};
}

Status Api::hasWindows() const {
  if (windows)
    return Ok{};
  return Error{"symmetric memory needs NCCL " + toVersionText(kWindows) +
               " or later, this is " + versionText};
}

Type nccl::typeOf(DType dtype) {
  switch (dtype) {
  case DType::F64:
    return kFloat64;
  case DType::F32:
    return kFloat32;
  case DType::BF16:
    return kBfloat16;
  case DType::F16:
    return kFloat16;
  case DType::I64:
    return kInt64;
  case DType::I32:
    return kInt32;
  case DType::U32:
    return kUint32;
  case DType::I8:
    return kInt8;
  case DType::U8:
  case DType::I1:
  case DType::F8E4M3:
  case DType::F8E5M2:
    return kUint8; // moved as bytes; those that are no integers are not reduced
  }
  return kUint8;
}

Reduction nccl::reductionOf(layout::Combiner combiner) {
  switch (combiner) {
  case layout::Combiner::Sum:
    return kSum;
  case layout::Combiner::Max:
    return kMax;
  case layout::Combiner::Min:
    return kMin;
  }
  return kSum;
}
