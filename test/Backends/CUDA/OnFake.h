//===- OnFake.h - tests of a library that is not there --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_RUNTIME_CUDA_ONFAKE_H
#define TESSERA_TEST_RUNTIME_CUDA_ONFAKE_H

#include "../../Runtime/Ranks.h"

#include <chrono>
#include <dlfcn.h>

namespace tessera::test {

/// What the library `name` in the environment's folder says of itself, as the
/// runtime will open it.
template <typename Fake>
const Fake &openFake(std::string name, const char *of) {
  name = std::getenv("TESSERA_CUDA_LIBRARY_PATH") + ("/" + name);
  void *library = dlopen(name.c_str(), RTLD_NOW);
  if (!library)
    abort();
  return *static_cast<const Fake *>(dlsym(library, of));
}

/// Each test finds it as new, does not misuse it, and leaves nothing in it.
template <auto fake> class OnFake : public testing::Test {
protected:
  void SetUp() override { fake().reset(); }
  void TearDown() override {
    EXPECT_STREQ(fake().misuse(), "");
    // What is aborted ends in a thread of its own.
    for (int i = 0; i < 3000 && fake().live(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(fake().live(), 0);
  }
};

} // namespace tessera::test

#endif // TESSERA_TEST_RUNTIME_CUDA_ONFAKE_H
