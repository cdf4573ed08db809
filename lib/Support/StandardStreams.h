//===- StandardStreams.h - standard streams that are closed or full -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_STANDARDSTREAMS_H
#define TESSERA_SUPPORT_STANDARDSTREAMS_H

#include <csignal>
#include <fcntl.h>
#include <initializer_list>
#include <unistd.h>

namespace tessera {

/// Before a program opens anything: a standard stream that is closed becomes
/// one that fails, so that no file gets its number and with it what is printed;
/// and writing to a closed pipe, or past a limit, is an error, not the
/// program's end.
inline void holdStandardStreams() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0)
      (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
}

inline bool canWriteStdout() {
  const int flags = fcntl(STDOUT_FILENO, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

} // namespace tessera

#endif // TESSERA_SUPPORT_STANDARDSTREAMS_H
