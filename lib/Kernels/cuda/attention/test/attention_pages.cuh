//===- attention_pages.cuh - keys and values of a test in pages -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_TEST_ATTENTION_PAGES_CUH
#define TESSERA_KERNELS_TEST_ATTENTION_PAGES_CUH

#include "attention.cuh"

#include <climits>
#include <random>

/// The last keys of each sequence.
struct LastKeys : Lengths {
  static constexpr char const *kName = "last keys of lengths";
  static constexpr int kSeen = 150;
  template <class At> TSR_DEVICE bool mask(Args const &, At const &at) {
    return at.key < at.row.length && at.key >= at.row.length - kSeen;
  }
  TSR_DEVICE KeyRange keys(Args const &a, int64 b, int64, int64, int64, int) {
    return {a.lengths[b] - kSeen, a.lengths[b]};
  }
};
/// Lengths, whose keys and values lie in pages of R positions.
template <class M, int R> struct Pages : M {
  static constexpr int PageRows = R;
  using Args = typename M::Args;
  TSR_DEVICE int page(Args const &a, int batch, int index) {
    return a.table[(int64)batch * (a.keys / R) + index];
  }
};
template <class M, int R> struct ExactOf<Pages<M, R>> { using Type = M; };

/// Rows [begin, end) of sequence `batch` to their pages, or from them; a page
/// that is none has zeros.
template <bool Back>
__global__ void move_rows(Stored *rows, Layout of_rows, Stored *pages,
                          Layout of_pages, int const *table, int count,
                          int page_rows, int batch, int begin, int end,
                          int columns) {
  const int head = blockIdx.y;
  for (int row = begin + blockIdx.x; row < end; row += gridDim.x) {
    const int page = table[row / page_rows];
    Stored *const own = rows + batch * of_rows.batch + head * of_rows.head +
                        row * of_rows.position;
    Stored *const other = pages + page * of_pages.batch + head * of_pages.head +
                          row % page_rows * of_pages.position;
    const bool there = page >= 0 && page < count;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
      if (Back)
        own[i] = there ? other[i] : Stored(0);
      else if (there)
        other[i] = own[i];
  }
}

/// The rows of a problem that its lengths have, in shuffled pages. The rest of
/// all pages is NaN, the rest of the table is none of them. `mixed`: sequences
/// share pages, and the table has some of them wrong.
template <class M, class P> struct PagedCache {
  static constexpr int R = M::PageRows;
  int count = 0; // of pages
  Layout lk, lv;
  std::unique_ptr<Array<Stored>> k, v;
  std::unique_ptr<Array<int>> table;

  PagedCache(P &problem, std::vector<int> const &lengths, bool mixed) {
    const Shape &s = problem.s;
    const int each = s.keys / R;
    auto first = [&](int b) { return std::max(0, lengths[b] - M::kSeen); };
    auto seen = [&](int b, int i) {
      return i * R < lengths[b] && (i + 1) * R > first(b);
    };
    auto whole = [&](int b, int i) {
      return i * R >= first(b) && (i + 1) * R <= lengths[b];
    };
    std::vector<int> entries((size_t)s.batch * each);
    for (int b = 0; b < s.batch; b++)
      for (int i = 0; i < each; i++) {
        int &entry = entries[(size_t)b * each + i];
        if (!seen(b, i) || (mixed && b % 2 && i % 7 == 3))
          entry = -1;
        else if (mixed && b % 3 == 1 && whole(b, i) && whole(b - 1, i))
          entry = (&entry)[-each];
        else
          entry = count++;
      }
    std::vector<int> order(count);
    for (int i = 0; i < count; i++)
      order[i] = i;
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    const int none[] = {-1, INT_MAX, INT_MIN, count};
    for (size_t i = 0; i < entries.size(); i++)
      entries[i] = entries[i] < 0 ? none[i % 4] : order[entries[i]];
    table = std::make_unique<Array<int>>(entries.size());
    CHECK(cudaMemcpy(*table, entries.data(), entries.size() * sizeof(int),
                     cudaMemcpyHostToDevice));

    lk = layout(s.order, s.key_heads, R, problem.kv_row);
    lv = layout(s.order, s.key_heads, R, problem.packed ? problem.kv_row : DV);
    k = std::make_unique<Array<Stored>>(count * lk.batch);
    v = std::make_unique<Array<Stored>>(problem.packed ? 0 : count * lv.batch);
    // A page that two share is the earlier one's.
    for (int b = s.batch; b--;)
      move<false>(problem, b, first(b), lengths[b]);
    for (int b = 0; b < s.batch; b++)
      move<true>(problem, b, first(b), lengths[b]);
  }
  Stored *values() const { return v->n ? v->data : k->data + D; }
  template <bool Back> void move(P &problem, int b, int begin, int end) {
    int const *own = *table + (size_t)b * (problem.s.keys / R);
    const dim3 blocks(256, problem.s.key_heads);
    move_rows<Back><<<blocks, 128>>>(problem.k, problem.lk, *k, lk, own, count,
                                     R, b, begin, end, D);
    move_rows<Back><<<blocks, 128>>>(problem.v, problem.lv, values(), lv, own,
                                     count, R, b, begin, end, DV);
    CHECK(cudaGetLastError());
  }
  TensorMap map(Stored const *base, Layout l, int heads, unsigned box,
                int depth) const {
    return rows_map<T>(base, l, count, heads, R, depth, box);
  }
};

#endif // TESSERA_KERNELS_TEST_ATTENTION_PAGES_CUH
