//===- TemporaryFile.h - a file that gets its name when it is whole -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_TEMPORARYFILE_H
#define TESSERA_SUPPORT_TEMPORARYFILE_H

#include "Support/Result.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tessera {

inline std::string systemError() { return std::strerror(errno); }

/// Makes the empty file `name`, which must not be there. Its descriptor, for
/// writing; negative with errno.
inline int createNew(const std::string &name) {
  return open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

/// Makes an empty file beside `path` under a name that nobody has. Its
/// descriptor, for writing; negative with errno.
inline int createTemporary(const std::string &path, std::string &name) {
  for (int attempt = 0;; ++attempt) {
    name = path + ".tmp" + std::to_string(getpid()) + "-" +
           std::to_string(attempt);
    int fd = createNew(name);
    if (fd >= 0 || errno != EEXIST)
      return fd;
  }
}

/// Whether a file can be made beside `path` and renamed to it; meanwhile it has
/// the name `temporary`, or one that nobody has.
inline Status checkWritable(const std::string &path,
                            std::string temporary = {}) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    return Error{path + ": cannot be written: it is " +
                 (S_ISDIR(status.st_mode) ? "a folder" : "no regular file")};
  // The rename needs a writable folder, not a writable file. Root may write
  // where access() says so and the file system refuses, so try.
  int fd = temporary.empty() ? createTemporary(path, temporary)
                             : createNew(temporary);
  if (fd < 0)
    return Error{path + ": cannot be written: " + systemError()};
  close(fd);
  unlink(temporary.c_str());
  return Ok{};
}

} // namespace tessera

#endif // TESSERA_SUPPORT_TEMPORARYFILE_H
