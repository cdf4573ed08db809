//===- Code.cpp - machine code of a module in memory ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bytes go to an anonymous memory file that the dynamic loader opens
// through /proc. The loader knows objects by their path, so the descriptor
// stays open for as long as the object is loaded: no other can get its number,
// and with it the wrong code.
//
//===----------------------------------------------------------------------===//

#include "Backends/CPU/Code.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace tessera;

Result<Code> Code::load(std::string_view elf) {
  Code code;
  auto fail = [](const char *what) {
    return Error{std::string("cannot ") + what + ": " + std::strerror(errno)};
  };
  code.fd = memfd_create("tessera-code", MFD_CLOEXEC);
  if (code.fd < 0)
    return fail("make a memory file for the module's code");
  while (!elf.empty()) {
    ssize_t n = write(code.fd, elf.data(), elf.size());
    if (n < 0 && errno != EINTR)
      return fail("fill the memory file of the module's code");
    elf.remove_prefix(n > 0 ? n : 0);
  }
  std::string path = "/proc/self/fd/" + std::to_string(code.fd);
  code.handle = dlopen(path.c_str(), RTLD_LOCAL | RTLD_NOW);
  if (!code.handle) {
    const char *why = dlerror();
    return Error{std::string("the module's code does not load: ") +
                 (why ? why : "no reason given")};
  }
  return code;
}

Code::Code(Code &&other) { *this = std::move(other); }

Code &Code::operator=(Code &&other) {
  std::swap(fd, other.fd);
  std::swap(handle, other.handle);
  return *this;
}

Code::~Code() {
  if (handle)
    dlclose(handle);
  if (fd >= 0)
    close(fd);
}

Result<Code::Kernel> Code::find(const std::string &symbol) const {
  void *address = handle ? dlsym(handle, symbol.c_str()) : nullptr;
  if (!address)
    return Error{"the module's code has no kernel '" + symbol + "'"};
  return reinterpret_cast<Kernel>(address);
}
