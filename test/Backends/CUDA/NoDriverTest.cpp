//===- NoDriverTest.cpp - drivers that do not do --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A process keeps the driver that it has opened: here none ever opens.
//
//===----------------------------------------------------------------------===//

#include "OnRecordingDriver.h"

using namespace tessera::test;

namespace {

std::string createError() {
  tessera_context_options options = cudaOptions();
  tessera_context *context;
  tessera_status *status = tessera_context_create(&options, &context);
  EXPECT_EQ(tessera_status_code(status), TESSERA_UNSUPPORTED);
  return take(status);
}

TEST(NoDriver, NoLibrary) {
  if (dlopen("libcuda.so.1", RTLD_NOW)) // this machine has one: see scripts
    GTEST_SKIP() << "this machine has a CUDA driver";
  EXPECT_ERROR(createError(), "no CUDA driver: cannot open libcuda.so.1");
}

TEST(NoDriver, OthersThatDoNotDo) {
  driver().initCode = 34;
  EXPECT_ERROR(createError(), "is a toolkit's stub");
  driver().initCode = 100;
  EXPECT_ERROR(createError(), "no GPU: the CUDA driver");
  driver().version = 12040;
  std::string old = createError();
  EXPECT_ERROR(old, "the CUDA driver is too old: it is");
  EXPECT_ERROR(old, "(CUDA 12.4), and modules need CUDA 13.0, which is driver "
                    "580 or later");
  driver().version = 13000;
  driver().initCode = 803;
  EXPECT_ERROR(createError(), "does not fit the kernel's driver");
  driver().initCode = 999;
  EXPECT_ERROR(createError(), "cannot start the CUDA driver: error 999");
  driver().initCode = 0;
  driver().devices = 0;
  EXPECT_ERROR(createError(), "no GPU: the CUDA driver");
}

} // namespace
