//===- Backend.cpp - what a context runs on -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exec/Backend.h"

using namespace tessera;

std::string DeviceNote::text() const {
  std::string text = model;
  if (ordinal >= 0)
    text = "GPU " + std::to_string(ordinal) + ", " + text;
  if (!driver.empty())
    text += ", driver " + driver;
  return text + (libraries.empty() ? "" : ", ") + libraries;
}

std::string tessera::describeStep(size_t index, const StepNames &names,
                                  const Work &work) {
  std::string text = "step " + std::to_string(index);
  if (std::string op = names.op(index); !op.empty())
    text += ", '" + op + "' at " + names.location(index);
  else
    text += ", copy to a port";
  std::string what = work.text();
  return what.empty() ? text : text + ", " + what;
}
