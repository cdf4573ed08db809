//===- Driver.cpp - the CUDA driver, opened at run time -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Driver/Driver.h"
#include "Backends/CUDA/Driver/Library.h"

#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>

using namespace tessera;
using namespace tessera::cuda;

/// Of the toolkit that makes modules' code, and the first driver that runs it.
static constexpr int kNeededVersion = 13000;
static constexpr const char *kNeededDriver = "580";

std::string tessera::cuda::cudaVersion(int number) {
  return std::to_string(number / 1000) + "." +
         std::to_string(number % 1000 / 10);
}

/// The version of the kernel module, like "580.95.05"; empty when unknown.
static std::string kernelModuleVersion() {
  FILE *file = std::fopen("/proc/driver/nvidia/version", "re");
  if (!file)
    return {};
  char line[256] = {}, version[64] = {};
  const char *text = std::fgets(line, sizeof line, file);
  std::fclose(file);
  const char *at = text ? std::strstr(line, "Kernel Module") : nullptr;
  // "... Kernel Module  580.95.05  date", "... for x86_64  580.95.05  ..."
  for (; at && *at; ++at)
    if (at[-1] == ' ' && *at >= '0' && *at <= '9')
      break;
  if (at && *at && std::sscanf(at, "%63[0-9.]", version) == 1)
    return version;
  return {};
}

Status Driver::check(Code code, const std::string &what) const {
  if (code == 0)
    return Ok{};
  const char *name = nullptr, *text = nullptr;
  std::string message = "cannot " + what + ": ";
  if (getErrorName(code, &name) == 0 && name)
    message += name;
  else
    message += "error " + std::to_string(code);
  if (getErrorString(code, &text) == 0 && text)
    message += std::string(" (") + text + ")";
  return Error{message};
}

Outcome<Driver *> Driver::open() {
  auto fail = [](const std::string &message) {
    return Failure{TESSERA_UNSUPPORTED, message};
  };
  Result<Library> library = Library::open("libcuda.so.1");
  if (!library)
    return fail("no CUDA driver: " + library.message());
  const std::string stub = "no CUDA driver: " + library->path() +
                           " is a toolkit's stub, made to link against";
  if (library->path().find("/stubs/") != std::string::npos)
    return fail(stub);
  // What an old driver may lack comes after its version.
  auto driver = std::make_unique<Driver>();
  if (Status status = library->find(driver->init, "cuInit"); !status)
    return fail("no CUDA driver: " + status.message());
  if (Status status =
          library->find(driver->driverGetVersion, "cuDriverGetVersion");
      !status)
    return fail("no CUDA driver: " + status.message());
  const Code code = driver->init(0);
  if (code == kStubLibrary)
    return fail(stub);
  int version = 0;
  if (driver->driverGetVersion(&version))
    version = 0;
  std::string kernel = kernelModuleVersion();
  driver->versionText = kernel + (kernel.empty() ? "" : " ") + "(CUDA " +
                        cudaVersion(version) + ")";
  if (code == kSystemDriverMismatch)
    return fail("the CUDA driver library " + library->path() +
                " does not fit the kernel's driver " + kernel +
                ": restart after an update");
  if (version < kNeededVersion)
    return fail("the CUDA driver is too old: it is " + driver->versionText +
                ", and modules need CUDA " + cudaVersion(kNeededVersion) +
                ", which is driver " + kNeededDriver + " or later");
  if (code == kNoDevice)
    return fail("no GPU: the CUDA driver " + driver->versionText +
                " sees none");
#define TESSERA_CUDA_FIND(member, name, parameters)                            \
  if (Status status = library->find(driver->member, #name); !status)           \
    return fail("the CUDA driver does not fit: " + status.message());
  TESSERA_CUDA_DRIVER(TESSERA_CUDA_FIND)
#undef TESSERA_CUDA_FIND
  if (Status status = driver->check(code, "start the CUDA driver"); !status)
    return fail(status.message());
  if (Status status =
          driver->check(driver->deviceGetCount(&driver->count), "count GPUs");
      !status)
    return fail(status.message());
  if (driver->count < 1)
    return fail("no GPU: the CUDA driver " + driver->versionText +
                " sees none");
  return driver.release();
}

Outcome<const Driver *> Driver::get() {
  // For the whole process, as the driver is; never closed.
  static std::mutex mutex;
  static const Driver *opened = nullptr;
  std::lock_guard lock(mutex);
  if (!opened) {
    Outcome<Driver *> driver = open();
    if (!driver)
      return driver.error();
    opened = *driver;
  }
  return opened;
}
