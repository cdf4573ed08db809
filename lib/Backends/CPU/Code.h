//===- Code.h - machine code of a module in memory ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CPU_CODE_H
#define TESSERA_BACKENDS_CPU_CODE_H

#include "Support/Result.h"

#include <string_view>

namespace tessera {

/// An ELF shared object, loaded from bytes without a file.
class Code {
public:
  using Kernel = void (*)(void **arguments);

  static Result<Code> load(std::string_view elf);
  Code() = default;
  Code(Code &&other);
  Code &operator=(Code &&other);
  ~Code();

  Result<Kernel> find(const std::string &symbol) const;

private:
  int fd = -1;
  void *handle = nullptr;
};

} // namespace tessera

#endif // TESSERA_BACKENDS_CPU_CODE_H
