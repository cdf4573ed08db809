//===- Alike.h - our declarations beside a library's own ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For files that compile where there is a header, and that do if the numbers,
// the layouts and the functions' parameters agree, as far as the compiler can
// compare them.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_RUNTIME_CUDA_ALIKE_H
#define TESSERA_TEST_RUNTIME_CUDA_ALIKE_H

#include <cstddef>
#include <type_traits>

namespace tessera::test {

template <typename A, typename B>
constexpr bool kAlike =
    sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;

/// As many parameters, each of the same size, and such a result: types have
/// other names.
template <typename... A, typename... B, typename R, typename S>
constexpr bool alike(R (*)(A...), S (*)(B...)) {
  if constexpr (sizeof...(A) != sizeof...(B))
    return false;
  else
    return kAlike<R, S> && (kAlike<A, B> && ...);
}

} // namespace tessera::test

/// For lists of functions: of the struct Api that is in scope.
#define TESSERA_ALIKE(member, name, parameters)                                \
  static_assert(tessera::test::alike(decltype(Api::member)(nullptr), &name),   \
                #name);

#endif // TESSERA_TEST_RUNTIME_CUDA_ALIKE_H
