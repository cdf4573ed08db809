//===- Library.cpp - vendor libraries opened at run time ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Driver/Library.h"

#include <cstdlib>
#include <dlfcn.h>
#include <link.h>
#include <vector>

using namespace tessera;
using namespace tessera::cuda;

static constexpr const char *kToolkit = "/usr/local/cuda/lib64";

Library::Library(void *handle, std::string soname)
    : handle(handle), file(std::move(soname)) {
  link_map *map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0])
    file = map->l_name;
}

Result<Library> Library::open(const std::string &soname) {
  if (void *handle = dlopen(soname.c_str(), RTLD_NOW | RTLD_NOLOAD))
    return Library(handle, soname);
  std::vector<std::string> candidates;
  if (const char *folders = getenv("TESSERA_CUDA_LIBRARY_PATH"))
    for (std::string rest = folders; !rest.empty();) {
      size_t end = rest.find(':');
      if (end != 0)
        candidates.push_back(rest.substr(0, end) + "/" + soname);
      rest = end == std::string::npos ? "" : rest.substr(end + 1);
    }
  candidates.push_back(soname);
  candidates.push_back(std::string(kToolkit) + "/" + soname);
  std::string why;
  for (const std::string &candidate : candidates) {
    if (void *handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL))
      return Library(handle, soname);
    const char *error = dlerror();
    why += (why.empty() ? "" : "; ") +
           std::string(error ? error : "no reason given");
  }
  return Error{"cannot open " + soname +
               " (TESSERA_CUDA_LIBRARY_PATH names folders to look in): " + why};
}

Result<void *> Library::lookup(const char *name) const {
  if (void *symbol = dlsym(handle, name))
    return symbol;
  return Error{file + " has no function '" + name +
               "': it is of another version than expected"};
}
