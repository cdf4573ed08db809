//===- FileLock.h - one process at a time changes a file ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_FILELOCK_H
#define TESSERA_SUPPORT_FILELOCK_H

#include "Support/TemporaryFile.h"

#include <chrono>
#include <sys/file.h>
#include <thread>

namespace tessera {

/// Of a file that others take the lock of, too, before they replace it. It is
/// a file beside it, since what is renamed takes its locks along; removed by
/// its holder, and without effect after a process that died.
class FileLock {
public:
  /// Waits for `seconds` at most.
  static Result<FileLock> take(const std::string &path, double seconds) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    const std::string name = path + ".lock";
    auto fail = [&](const std::string &why) {
      return Error{path + ": cannot be locked: " + why};
    };
    while (true) {
      FileLock lock(name,
                    open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
      if (lock.fd < 0)
        return fail(systemError());
      if (flock(lock.fd, LOCK_EX | LOCK_NB) == 0) {
        // Else its last holder has removed it since it was opened.
        lock.holds = lock.isThere();
        if (lock.holds)
          return lock;
        continue;
      }
      if (errno != EWOULDBLOCK && errno != EINTR)
        return fail(systemError());
      if (Clock::now() > end)
        return fail("another process holds " + name);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  FileLock(FileLock &&other)
      : name(std::move(other.name)), fd(std::exchange(other.fd, -1)),
        holds(std::exchange(other.holds, false)) {}
  ~FileLock() {
    if (holds)
      unlink(name.c_str());
    if (fd >= 0)
      close(fd);
  }

private:
  FileLock(std::string name, int fd) : name(std::move(name)), fd(fd) {}
  bool isThere() const {
    struct stat mine, there;
    return fstat(fd, &mine) == 0 && stat(name.c_str(), &there) == 0 &&
           mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
  }

  std::string name;
  int fd;
  bool holds = false;
};

} // namespace tessera

#endif // TESSERA_SUPPORT_FILELOCK_H
