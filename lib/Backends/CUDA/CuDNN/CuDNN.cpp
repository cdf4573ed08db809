//===- CuDNN.cpp - cuDNN's graphs, opened at run time ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/CuDNN/CuDNN.h"
#include "Backends/CUDA/Driver/Library.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::cuda;
using namespace tessera::cuda::dnn;

/// Attention has known faults in 9.10.0 and 9.10.1; before, masked scores had
/// another value, and masks no single query.
static constexpr size_t kOldest = 91002;

Result<Api *> Api::open() {
  Result<Library> library = Library::open("libcudnn.so.9");
  if (!library)
    return library.error();
  static Api api;
  Status status = Ok{};
  auto find = [&](auto *&function, const char *name) {
    if (status)
      status = library->find(function, name);
  };
  find(api.getVersion, "cudnnGetVersion");
  find(api.getErrorString, "cudnnGetErrorString");
  find(api.getLastErrorString, "cudnnGetLastErrorString");
#define TESSERA_CUDNN_FIND(member, name, parameters) find(api.member, #name);
  TESSERA_CUDNN(TESSERA_CUDNN_FIND)
#undef TESSERA_CUDNN_FIND
  if (!status)
    return status.error();
  const size_t version = api.getVersion();
  if (version < kOldest)
    return Error{library->path() + " is cuDNN " + toVersionText(version) +
                 "; " + toVersionText(kOldest) + " or later is needed"};
  api.versionText = toVersionText(version);
  return &api;
}

Result<const Api *> Api::get() {
  static const Result<Api *> opened = open();
  if (!opened)
    return opened.error();
  return *opened;
}

Status Api::needs(size_t oldest, std::string_view what) const {
  if (getVersion() >= oldest)
    return Ok{};
  return Error{"it is cuDNN " + versionText + "; " + std::string(what) +
               " need " + toVersionText(oldest) + " or later"};
}

Status Api::check(Code code, std::string_view what) const {
  if (code == 0)
    return Ok{};
  std::string message = "cuDNN cannot " + std::string(what) + ": ";
  message += getErrorString(code);
  char last[512] = "";
  getLastErrorString(last, sizeof last);
  last[sizeof last - 1] = 0;
  if (last[0])
    message += std::string(" (") + last + ")";
  return Error{message};
}

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

Objects::~Objects() {
  // What refers to others goes first.
  for (size_t i = made.size(); i-- > 0;)
    api.objectDestroy(made[i]);
}

Object Objects::make(Kind kind) {
  Object object = nullptr;
  if (status)
    status = api.check(api.objectCreate(kind, &object), "make a descriptor");
  if (!status)
    return nullptr;
  made.push_back(object);
  return object;
}

void Objects::setElements(Object object, Field field, Type type, size_t count,
                          const void *elements) {
  if (status)
    status =
        api.check(api.setField(object, field, type, static_cast<int64_t>(count),
                               elements),
                  "set attribute " + std::to_string(static_cast<int>(field)));
}

int64_t Objects::getElements(Object object, Field field, Type type, size_t room,
                             void *elements) {
  int64_t count = 0;
  if (status)
    status =
        api.check(api.getField(object, field, type, static_cast<int64_t>(room),
                               &count, elements),
                  "tell attribute " + std::to_string(static_cast<int>(field)));
  if (!status)
    return 0;
  return room ? std::min(count, static_cast<int64_t>(room)) : count;
}

void Objects::finalize(Object object) {
  if (status)
    status = api.check(api.finalize(object), "finalize a descriptor");
}
