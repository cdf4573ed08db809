//===- attention_check.cuh - a forward kernel against float64 -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_TEST_ATTENTION_CHECK_CUH
#define TESSERA_KERNELS_TEST_ATTENTION_CHECK_CUH

#include "attention.cuh"

inline Report report;

/// Of a Problem of M: results and log-sum-exps against float64, their bits in a
/// second launch, and that nothing else is written.
template <class M, class P> void checkProblem(Shape const &s) {
  report.begin(title<M>(s));
  P problem(s);
  problem.launch();
  CHECK(cudaDeviceSynchronize());
  const auto o = problem.o.host();
  const auto lse = problem.lse.host();
  const bool settled = problem.settled();

  // The same bits again.
  problem.o.clear(), problem.lse.clear();
  problem.launch();
  CHECK(cudaDeviceSynchronize());
  const auto again = problem.o.host();
  const bool same =
      !memcmp(o.data(), again.data(), o.size() * sizeof(Stored)) &&
      !memcmp(lse.data(), problem.lse.host().data(), lse.size() * 4);

  Array<float> ref_o(problem.rows * DV), ref_lse(problem.rows);
  if (problem.rows)
    reference<Exact<M>><<<dim3((s.queries + 3) / 4, s.heads, s.batch), 128>>>(
        problem.q, problem.k, problem.v, problem.lq, problem.lk, problem.lv,
        ref_o, ref_lse, problem.p);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());

  // Results in the reference's order; what lies between them is untouched.
  std::vector<float> own(problem.rows * DV);
  size_t untouched = 0;
  for (size_t r = 0; r < problem.rows; r++) {
    const int64 i = r % s.queries, h = r / s.queries % s.heads,
                b = r / s.queries / s.heads;
    const int64 at =
        b * problem.lo.batch + h * problem.lo.head + i * problem.lo.position;
    for (int d = 0; d < DV; d++)
      own[r * DV + d] = (float)o[at + d];
    for (int64 d = DV; d < problem.o_row; d++) {
      unsigned short bits;
      memcpy(&bits, &o[at + d], 2);
      untouched += bits == 0xffff;
    }
  }
  const bool gaps = untouched == problem.rows * (problem.o_row - DV);
  const Errors e = errors(own, ref_o.host(), DV);
  const auto expected = ref_lse.host();
  double lse_error = 0;
  size_t empty = 0;
  for (size_t r = 0; r < problem.rows; r++) {
    empty += expected[r] == -INFINITY;
    if (s.lse && lse[r] != expected[r]) {
      const double d = std::fabs((double)lse[r] - expected[r]);
      if (!(d <= lse_error))
        lse_error = d;
    }
  }
  const double unit = Element<T>::kRounding;
  const bool ok = e.norm <= unit && e.worst <= 4 * unit && lse_error <= M::kLse &&
                  same && gaps && settled;
  report.end(ok,
             format("err %.1e worst %.1e lse %.1e empty %zu%s%s%s", e.norm,
                    e.worst, lse_error, empty, same ? "" : " NOT REPRODUCIBLE",
                    gaps ? "" : " WROTE OUTSIDE", settled ? "" : " COUNTERS"));
}

#endif // TESSERA_KERNELS_TEST_ATTENTION_CHECK_CUH
