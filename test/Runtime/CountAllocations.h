//===- CountAllocations.h - does a run allocate ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces malloc in the test that includes it, in one of its files. Not under
// a sanitizer, which has its own: then TESSERA_COUNT_MALLOC is not defined.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_RUNTIME_COUNTALLOCATIONS_H
#define TESSERA_TEST_RUNTIME_COUNTALLOCATIONS_H

#include "gtest/gtest.h"

#include <atomic>
#include <cstdlib>

#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
#define TESSERA_COUNT_MALLOC 1
static std::atomic<bool> counting;
static std::atomic<int> allocations;

extern "C" void *__libc_malloc(size_t);
extern "C" void *__libc_calloc(size_t, size_t);
extern "C" void *__libc_realloc(void *, size_t);
extern "C" void *__libc_memalign(size_t, size_t);
// Visible, so that libstdc++ and libraries opened later call it too.
#define TESSERA_VISIBLE extern "C" __attribute__((visibility("default")))
TESSERA_VISIBLE void *malloc(size_t bytes) {
  allocations += counting;
  return __libc_malloc(bytes);
}
TESSERA_VISIBLE void *calloc(size_t count, size_t bytes) {
  allocations += counting;
  return __libc_calloc(count, bytes);
}
TESSERA_VISIBLE void *realloc(void *pointer, size_t bytes) {
  allocations += counting;
  return __libc_realloc(pointer, bytes);
}
TESSERA_VISIBLE void *aligned_alloc(size_t alignment, size_t bytes) {
  allocations += counting;
  return __libc_memalign(alignment, bytes);
}

TEST(Allocations, TheCounterCounts) {
  int before = allocations;
  counting = true;
  void *volatile pointer = malloc(16);
  char *volatile made = new char[16];
  counting = false;
  free(pointer);
  delete[] made;
  EXPECT_EQ(allocations, before + 2);
  allocations = before;
}
#endif

#endif // TESSERA_TEST_RUNTIME_COUNTALLOCATIONS_H
