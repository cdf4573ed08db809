//===- Blas.h - cuBLASLt --------------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_BLAS_H
#define TESSERA_BACKENDS_CUDA_BLAS_H

#include "Backends/CUDA/Products.h"

#include <cstddef>
#include <memory>

namespace tessera::cuda {

struct BlasApi;

/// One handle of cuBLASLt. All calls are made with the handle's CUDA context
/// current.
class Blas {
public:
  static Result<std::unique_ptr<Blas>> open();
  ~Blas();

  /// "13.1.0"
  std::string version() const;

  /// Scratch that an algorithm may use, and what its address is a multiple of.
  static constexpr int64_t kWorkspace = 32 << 20;
  static constexpr int64_t kAlignment = 256;

  /// Where one matrix product's operands are. x, y and d as in MatrixProduct.
  struct Addresses {
    std::byte *a, *b, *c;
    std::byte *bias = nullptr, *aux = nullptr;
    std::byte *workspace;
  };

  /// The calls of a product of tensors with an algorithm that suits their
  /// addresses.
  class Calls {
  public:
    ~Calls();
    /// Enqueues all of them; `stream` is a CUstream.
    Status run(void *stream) const;

  private:
    friend class Blas;
    Calls(const Blas &blas, const Products &products, const Addresses &at);
    Status prepare();

    struct Objects;
    const Blas &blas;
    const Products &products;
    Addresses at;
    std::unique_ptr<Objects> objects;
  };
  /// `products` outlives the result; it has at least one call.
  Result<std::unique_ptr<Calls>> prepare(const Products &products,
                                         const Addresses &addresses) const;

private:
  Blas() = default;
  std::unique_ptr<BlasApi> api;
  void *handle = nullptr;
};

} // namespace tessera::cuda

#endif // TESSERA_BACKENDS_CUDA_BLAS_H
