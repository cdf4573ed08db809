//===- RecordingDriver.h - what tests tell the driver that has no GPU -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A libcuda.so.1 for tests: memory of the host, work done at once unless it is
// captured, kernels that tests register. It checks what the real one would:
// calls need a current context, handles must be alive, a kernel gets as many
// bytes as it takes. A "cubin" for it is text: a line "fake cubin ARCH", then
// for each function its name and the bytes of its parameter.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_RUNTIME_CUDA_RECORDINGDRIVER_H
#define TESSERA_TEST_RUNTIME_CUDA_RECORDINGDRIVER_H

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tessera::test {

struct FakeLaunch {
  std::string name;
  unsigned blocks, threads, shared;
  std::vector<uint64_t> words; ///< of its parameter
  bool early = false; ///< may start before the one before has ended
};

/// A call of cuBLASLt.
struct FakeProduct {
  int algorithm;
  const void *x, *y, *d, *workspace;
};

struct RecordingDriver {
  // What there is.
  int version = 13000;
  int devices = 2;
  std::string name; ///< of each; empty: "Fake 0", "Fake 1"
  int capability = 90;
  int multiprocessors = 4;
  int resident = 2; ///< blocks a multiprocessor holds
  size_t freeBytes = size_t(1) << 30;
  int initCode = 0;
  /// A stream that waits for another does its work when one waits for it.
  bool late = false;
  /// Runs a launch, after the context of the caller's launch.
  std::map<std::string, std::function<void(const FakeLaunch &)>> kernels;

  // What goes wrong.
  /// By exported name: the result of the next call, once.
  std::map<std::string, int> failNext;
  /// A kernel that breaks the device: every later call fails so.
  std::string breaks;
  int brokenCode = 0;
  /// Kernel after which the stream never comes to its end.
  std::string hangs;
  bool hanging = false;

  // cuBLASLt (FakeBlas.cpp): algorithms are numbered in the heuristic's order.
  size_t blasVersion = 130100;
  std::vector<double> algorithms = {1}; ///< milliseconds that a call takes
  /// By device, where they take another time.
  std::map<int, std::vector<double>> algorithmsOn;
  size_t sets = 0;         ///< bytes of its workspace before it runs
  std::set<int> refused;   ///< by the check
  std::set<int> unable;    ///< proposed, but not run
  std::set<int> imprecise; ///< summing parts in the result's type
  std::function<void(const FakeProduct &)> watch; ///< called before it is done

  // What happened.
  std::vector<std::string> calls; ///< those that enqueue or capture
  std::vector<FakeLaunch> launches;
  std::vector<FakeProduct> products;
  std::map<int, int> retained; ///< by device
  std::map<uint64_t, size_t> allocations;
  size_t host = 0, modules = 0, streams = 0, events = 0, graphs = 0, execs = 0;
  size_t waits = 0; ///< of streams for events, so far
  size_t blas = 0; ///< objects of cuBLASLt
};

using RecordingDriverAccess = RecordingDriver *();
/// The exported name of what gives the one in the library.
constexpr const char *kRecordingDriverAccess = "tessera_recording_driver";

/// For other libraries' fakes: does what they enqueue, or keeps it for a graph.
/// A task gets the device and returns the milliseconds that it took.
using FakeTask = std::function<double(int device)>;
extern "C" int tessera_recording_perform(const char *what, void *stream,
                                         const FakeTask *task);

} // namespace tessera::test

#endif // TESSERA_TEST_RUNTIME_CUDA_RECORDINGDRIVER_H
