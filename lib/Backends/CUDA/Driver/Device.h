//===- Device.h - one GPU for one rank ------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The primary context, retained and current only inside of our calls; one
// stream, which waits for no other, and one for what runs beside it; memory.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_DRIVER_DEVICE_H
#define TESSERA_BACKENDS_CUDA_DRIVER_DEVICE_H

#include "Backends/CUDA/Driver/Driver.h"

#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace tessera::cuda {

/// What runs on its own beside the stream and may fail there: communicators.
class Companion {
public:
  /// Asked while a run is waited for. An error ends the run.
  virtual Status poll() = 0;
  /// Ends what is in flight, so that the stream comes to its end.
  virtual void abort() = 0;

protected:
  ~Companion() = default;
};

class Device {
public:
  /// `ordinal` null: the one for this rank.
  static Outcome<std::unique_ptr<Device>> open(const int32_t *ordinal,
                                               int rank);
  ~Device();

  /// Makes the context current for as long as it lives.
  class Current {
  public:
    explicit Current(const Device &device) : driver(*device.driver_) {
      driver.ctxPush(device.context);
    }
    ~Current() {
      ContextHandle popped;
      driver.ctxPop(&popped);
    }
    Current(const Current &) = delete;
    Current &operator=(const Current &) = delete;

  private:
    const Driver &driver;
  };

  /// Makes the stream beside the stream as long as it lives.
  class Aside {
  public:
    explicit Aside(Device &device) : device(device) {
      std::swap(device.stream_, device.aside_);
    }
    ~Aside() { std::swap(device.stream_, device.aside_); }
    Aside(const Aside &) = delete;
    Aside &operator=(const Aside &) = delete;

  private:
    Device &device;
  };

  const Driver &driver() const { return *driver_; }
  ContextHandle handle() const { return context; }
  Stream stream() const { return stream_; }
  Stream aside() const { return aside_; }
  int ordinal() const { return number; }
  int multiprocessors() const { return processors; }
  /// 90 for compute capability 9.0.
  int capability() const { return capability_; }
  const std::string &name() const { return model; }
  /// What modules are to be compiled for, to run here best: "cuda:sm_90a".
  std::string target() const;
  /// As the driver knows it, on this machine or another; zeros if it does not.
  using Uuid = std::array<char, 16>;
  Uuid uuid() const;
  /// Whether both GPUs are in this process' sight, and the first cannot reach
  /// the memory of the other.
  bool lacksPeer(const Uuid &from, const Uuid &to) const;

  // The calls below, and all of the driver's, need a Current.
  /// `what`: parts of a phrase, put together only for an error, as runs
  /// allocate nothing.
  template <typename... Parts>
  Status check(Code code, const Parts &...what) const {
    if (code == 0)
      return Ok{};
    return driver_->check(code, (std::string() + ... + what));
  }
  Result<DevicePointer> allocate(size_t bytes) const;
  void free(DevicePointer pointer) const;
  /// Whether that is an address in a GPU's memory.
  bool isOnDevice(const void *pointer) const;
  /// Between any two places; finished when it returns.
  Status copy(void *to, const void *from, size_t bytes) const;

  /// Work that never ends may be in flight: nothing that waits for the device
  /// may be called any more. Its memory is lost until the process ends.
  void giveUp() { stuck = true; }
  bool isStuck() const { return stuck; }

  std::vector<Companion *> companions;
  /// The caller's stream that holds all runs that were enqueued last, in front
  /// of which our stream waits; none if ours holds one itself.
  std::optional<unsigned long long> follows;

private:
  Device() = default;

  const Driver *driver_ = nullptr;
  int number = 0, device = 0, processors = 0, capability_ = 0;
  std::string model;
  ContextHandle context = nullptr;
  Stream stream_ = nullptr, aside_ = nullptr;
  bool stuck = false;
};

} // namespace tessera::cuda

#endif // TESSERA_BACKENDS_CUDA_DRIVER_DEVICE_H
