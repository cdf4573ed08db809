//===- Blas.h - cuBLASLt --------------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_BLAS_BLAS_H
#define TESSERA_BACKENDS_CUDA_BLAS_BLAS_H

#include "Backends/CUDA/Blas/BlasApi.h"
#include "Backends/CUDA/Blas/Products.h"

#include <memory>
#include <string>
#include <vector>

namespace tessera::cuda {

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
    std::byte *bias = nullptr, *aux = nullptr, *sums = nullptr;
    std::byte *addend = nullptr; ///< may be c
    std::byte *workspace;
  };

  /// The calls of a product of tensors.
  class Calls {
  public:
    ~Calls();

    /// What the choice of an algorithm depends on beside library and GPU: one
    /// word of text.
    const std::string &key() const { return text; }
    const Products &products() const { return products_; }
    /// What all addresses of an operand are multiples of, up to kAlignment.
    int64_t alignment(int operand) const { return alignments[operand]; }

    /// Algorithms for these calls, at most `count`: first what the heuristic
    /// chooses, then what it ranks below. Of these, the ones that sum parts in
    /// a type less precise than f32 are left out.
    Result<std::vector<blas::Algorithm>> candidates(int count) const;
    /// Whether an algorithm, of any origin, can make these calls.
    Status accepts(const blas::Algorithm &algorithm) const;
    /// From here on; there is none before.
    void use(const blas::Algorithm &algorithm);
    uint64_t algorithmHash() const;

    /// Enqueues all of them; `stream` is a CUstream.
    Status run(void *stream) const;

  private:
    friend class Blas;
    Calls(const Blas &blas, const Products &products, const Addresses &at);
    Status prepare();
    Status search(int count, uint32_t reductions,
                  std::vector<blas::Algorithm> &found) const;

    struct Objects;
    const Blas &library;
    const Products &products_;
    Addresses at;
    int64_t alignments[Products::Count];
    std::string text;
    std::unique_ptr<Objects> objects;
  };
  /// `products` outlives the result; it has at least one call.
  Result<std::unique_ptr<Calls>> prepare(const Products &products,
                                         const Addresses &addresses) const;

private:
  Blas() = default;
  std::unique_ptr<blas::Api> api;
  blas::Handle handle = nullptr;
};

} // namespace tessera::cuda

#endif // TESSERA_BACKENDS_CUDA_BLAS_BLAS_H
