//===- Machine.cpp - the target for this machine --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Asks the driver, which is opened for that: the compiler runs without one.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/Target.h"

#include <dlfcn.h>

using namespace tessera;
using namespace tessera::cuda;

// Of the driver's interface; a result is 0 or an error.
static constexpr char kDriver[] = "libcuda.so.1";
static constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;

Result<std::string> cuda::findOnMachine() {
  auto fail = [](const std::string &why) {
    return Error{"'cuda' alone means the GPU of this machine, but " + why +
                 "; name a target, as cuda:sm_90a or cuda:sm_80"};
  };
  void *library = dlopen(kDriver, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    return fail("it has no driver: " + std::string(why ? why : kDriver));
  }
  int (*init)(unsigned), (*getCount)(int *), (*get)(int *, int),
      (*getAttribute)(int *, int, int);
  bool lacks = false;
  auto find = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(
        dlsym(library, name));
    lacks |= !function;
  };
  find(init, "cuInit");
  find(getCount, "cuDeviceGetCount");
  find(get, "cuDeviceGet");
  find(getAttribute, "cuDeviceGetAttribute");
  int count = 0;
  if (lacks || init(0) || getCount(&count) || count < 1)
    return fail("its driver sees none");
  // What runs on the oldest runs on all.
  int oldest = 0;
  bool alike = true;
  for (int i = 0; i < count; ++i) {
    int device, major, minor;
    if (get(&device, i) || getAttribute(&major, kCapabilityMajor, device) ||
        getAttribute(&minor, kCapabilityMinor, device))
      return fail("its driver does not say what it is");
    const int capability = major * 10 + minor;
    alike &= i == 0 || capability == oldest;
    oldest = i == 0 ? capability : std::min(oldest, capability);
  }
  const std::string name = "cuda:sm_" + std::to_string(oldest);
  if (alike && makeHopper(name + "a"))
    return name + "a";
  if (!makePortable(name))
    return fail("that has compute capability " + std::to_string(oldest / 10) +
                "." + std::to_string(oldest % 10) +
                ", for which there is no target");
  return name;
}
