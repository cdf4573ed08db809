//===- attention_caps.cuh - soft caps that kernels know -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_TEST_ATTENTION_CAPS_CUH
#define TESSERA_KERNELS_TEST_ATTENTION_CAPS_CUH

#include "attention.cuh"

/// As programs have it: factors are the kernel's, which knows that there is
/// nothing but tanh. Scores are as far apart as Sharpness says.
template <class M, int Size, int Sharpness = 1> struct TanhOf : M {
  static constexpr char const *kName = "known cap";
  static constexpr double kLse = Sharpness > 1 ? 1e-3 : 1e-4; // tanh's, too
  static constexpr bool HasScore = true;
  static constexpr bool BoundedTanh =
      std::is_same_v<T, bf16> && isBounded(D, Size);
  static constexpr float Scale = M::Scale * Sharpness;
  static constexpr float InnerScale = 1.0f / Size, OuterScale = Size;
  using Args = typename M::Args;
  template <class At>
  TSR_DEVICE float score(Args const &, float s, At const &) {
    return tanhFast(s);
  }
};
/// As any functor is done.
template <class M> struct Unknown : M {
  static constexpr bool BoundedTanh = false;
  using Args = typename M::Args;
};
template <class M, int Size, int Sharpness> struct ExactTanhOf : M {
  static constexpr bool HasScore = true;
  static constexpr float Scale = M::Scale * Sharpness;
  using Args = typename M::Args;
  template <class At>
  TSR_DEVICE float score(Args const &, float s, At const &) {
    return Size * tanh32(s / Size);
  }
};
template <class M, int Size, int Sharpness>
struct ExactOf<TanhOf<M, Size, Sharpness>> {
  using Type = ExactTanhOf<M, Size, Sharpness>;
};

#endif // TESSERA_KERNELS_TEST_ATTENTION_CAPS_CUH
