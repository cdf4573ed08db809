//===- Device.cpp - one GPU for one rank ----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Driver/Device.h"
#include "Support/Try.h"

#include <optional>

using namespace tessera;
using namespace tessera::cuda;

Outcome<std::unique_ptr<Device>> Device::open(const int32_t *ordinal,
                                              int rank) {
  Outcome<const Driver *> opened = Driver::get();
  if (!opened)
    return opened.error();
  const Driver &driver = **opened;
  if (ordinal && (*ordinal < 0 || *ordinal >= driver.deviceCount()))
    return Failure{TESSERA_INVALID_ARGUMENT,
                   "there is no GPU " + std::to_string(*ordinal) +
                       ": this machine has " +
                       std::to_string(driver.deviceCount())};
  std::unique_ptr<Device> self(new Device());
  self->driver_ = &driver;
  self->number = ordinal ? *ordinal : rank % driver.deviceCount();
  const std::string gpu = "GPU " + std::to_string(self->number);
  auto check = [&](Code code, const std::string &what) -> Outcome<Ok> {
    if (Status status = driver.check(code, what + " " + gpu); !status)
      return Failure{TESSERA_UNSUPPORTED, status.message()};
    return Ok{};
  };

  TSR_TRY(check(driver.deviceGet(&self->device, self->number), "find"));
  char name[256] = {};
  TSR_TRY(check(driver.deviceGetName(name, sizeof name - 1, self->device),
                "get the name of"));
  self->model = name;
  int major = 0, minor = 0, unified = 0;
  const std::pair<int, int *> attributes[] = {
      {kCapabilityMajor, &major},
      {kCapabilityMinor, &minor},
      {kUnifiedAddressing, &unified},
      {kMultiprocessors, &self->processors}};
  for (auto [attribute, value] : attributes)
    TSR_TRY(check(driver.deviceGetAttribute(value, attribute, self->device),
                  "ask for the properties of"));
  self->capability_ = major * 10 + minor;
  if (!unified)
    return Failure{TESSERA_UNSUPPORTED,
                   gpu + " (" + self->model +
                       ") has no unified address space, which is needed"};
  TSR_TRY(check(driver.primaryRetain(&self->context, self->device),
                "make a context on"));
  Current current(*self);
  for (Stream *stream : {&self->stream_, &self->aside_})
    TSR_TRY(check(driver.streamCreate(stream, kStreamNonBlocking),
                  "make a stream on"));
  return self;
}

Device::~Device() {
  // Destroying the last context's stream could wait for what never ends.
  if (!context || stuck)
    return;
  Current current(*this);
  for (Stream stream : {stream_, aside_})
    if (stream)
      driver_->streamDestroy(stream);
  driver_->primaryRelease(device);
}

std::string Device::target() const {
  // Hopper's alone has features of this very architecture.
  return "cuda:sm_" + std::to_string(capability_) +
         (capability_ == 90 ? "a" : "");
}

Device::Uuid Device::uuid() const {
  Uuid uuid{};
  driver_->deviceGetUuid(uuid.data(), device);
  return uuid;
}

bool Device::lacksPeer(const Uuid &from, const Uuid &to) const {
  auto find = [&](const Uuid &wanted) -> std::optional<int> {
    for (int i = 0; i < driver_->deviceCount(); ++i) {
      int found = 0;
      Uuid uuid{};
      if (!driver_->deviceGet(&found, i) &&
          !driver_->deviceGetUuid(uuid.data(), found) && uuid == wanted)
        return found;
    }
    return std::nullopt;
  };
  const std::optional<int> device = find(from), peer = find(to);
  int can = 1;
  return device && peer && device != peer &&
         !driver_->canAccessPeer(&can, *device, *peer) && !can;
}

Result<DevicePointer> Device::allocate(size_t bytes) const {
  DevicePointer pointer = 0;
  Code code = driver_->memAlloc(&pointer, bytes ? bytes : 1);
  if (Status status =
          check(code, "allocate " + std::to_string(bytes) + " bytes on GPU " +
                          std::to_string(number));
      !status)
    return Error{code == kOutOfMemory ? "not enough memory: " + status.message()
                                      : status.message()};
  return pointer;
}

void Device::free(DevicePointer pointer) const {
  if (!stuck && pointer)
    driver_->memFree(pointer);
}

bool Device::isOnDevice(const void *pointer) const {
  unsigned memory = 0;
  return !driver_->pointerGetAttribute(
             &memory, kPointerMemory,
             reinterpret_cast<DevicePointer>(pointer)) &&
         memory == kMemoryDevice;
}

Status Device::copy(void *to, const void *from, size_t bytes) const {
  if (bytes == 0)
    return Ok{};
  // On the stream, as a plain copy of pageable memory may return before the
  // bytes are there, and the stream would not wait for it.
  const std::string what = "copy " + std::to_string(bytes) + " bytes";
  if (stuck)
    return Error{"cannot " + what +
                 ": a run that failed has not ended on GPU " +
                 std::to_string(number)};
  TSR_TRY(check(driver_->memcpyAsync(reinterpret_cast<DevicePointer>(to),
                                     reinterpret_cast<DevicePointer>(from),
                                     bytes, stream_),
                what));
  return check(driver_->streamSynchronize(stream_), what);
}
