//===- Chooser.h - which algorithm makes a matrix product -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_BLAS_CHOOSER_H
#define TESSERA_BACKENDS_CUDA_BLAS_CHOOSER_H

#include "Backends/CUDA/Blas/Algorithms.h"
#include "Backends/CUDA/Blas/Blas.h"
#include "Backends/CUDA/Driver/Device.h"
#include "Exec/Backend.h"

#include <set>

namespace tessera::cuda {

/// Of a context: cuBLASLt's heuristic, or a file of what was measured before.
/// All ranks of a program choose the same for the same product, so that values
/// that several ranks compute are equal.
class Chooser {
public:
  Chooser(Peers &peers, Backend &memory, const Device &device)
      : peers(peers), memory(memory), device(device) {}

  /// Takes what the file at `path` says, if it is of this library and GPU; with
  /// `measures`, the rest is measured and kept there, and it need not exist.
  Outcome<Ok> open(const std::string &path, bool measures, const Blas &blas);
  /// What ranks must have in common: library and GPU, and the file's content.
  const std::string &common() const { return shared; }

  /// For calls that are prepared. Measuring needs a Current.
  Result<Choice> choose(const Blas &blas, Blas::Calls &calls);
  /// Collective: what ranks have measured becomes one, is written, and what
  /// they have to say is logged by rank 0.
  Outcome<Ok> agree();
  /// What the ranks have agreed on, after the choice that `choose` gave.
  Choice settle(Blas::Calls &calls, Choice chosen) const;

private:
  /// A warning, once, of all ranks.
  void say(const std::string &line);
  /// Seconds for the file's lock, after which no other rank has given up.
  double patience() const;

  Peers &peers;
  Backend &memory;
  const Device &device;
  std::string path; ///< empty: there is no file
  bool measures = false;
  Algorithms known;
  Algorithms seen; ///< what is in the file, as far as this context knows
  std::set<std::string> measured; ///< keys, by any rank in this context
  /// What the other ranks do not know yet: lines of Algorithms, and what to
  /// say.
  std::string pending, shared;
};

} // namespace tessera::cuda

#endif // TESSERA_BACKENDS_CUDA_BLAS_CHOOSER_H
