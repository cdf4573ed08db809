"""Block masks to and from FlexAttention's, as NumPy arrays.

    from tessera import flex

    kinds = flex.to_block_mask(mask.kv_num_blocks, mask.kv_indices,
                               mask.full_kv_num_blocks, mask.full_kv_indices, blocks=64)
    lists = flex.from_block_mask(kinds)

A block mask of `tv.attention` is i8 [B, H, rows, columns] of blocks: 0, nothing is kept;
1, what mask_mod keeps; 2, all. FlexAttention's lists have, for each row, how many blocks
of 1, or of 2, there are, and which, ascending. Lists may be compact: as long as the
longest row needs.
"""

import numpy as np


def to_block_mask(kv_num_blocks, kv_indices, full_kv_num_blocks=None, full_kv_indices=None,
                  *, blocks):
    """The block mask, of `blocks` columns, that the lists describe."""
    counts = np.asarray(kv_num_blocks)
    if counts.ndim != 3:
        raise ValueError(f"kv_num_blocks has the shape {list(counts.shape)}; it must be "
                         "[batch, heads, rows of blocks]")
    kinds = np.zeros((*counts.shape, blocks), np.int8)
    if (full_kv_num_blocks is None) != (full_kv_indices is None):
        raise ValueError("full_kv_num_blocks and full_kv_indices must both be given, or neither")
    _set(kinds, "kv", kv_num_blocks, kv_indices, 1)
    if full_kv_indices is not None:
        _set(kinds, "full_kv", full_kv_num_blocks, full_kv_indices, 2)
    return kinds


def _set(kinds, name, counts, indices, kind):
    counts, indices = np.asarray(counts), np.asarray(indices)
    for array, what in ((counts, "num_blocks"), (indices, "indices")):
        if array.dtype.kind not in "iu":
            raise ValueError(f"{name}_{what} has elements of {array.dtype}; they must be integers")
    *rows, blocks = kinds.shape
    if counts.shape != tuple(rows):
        raise ValueError(f"{name}_num_blocks has the shape {list(counts.shape)}; "
                         f"it must be {rows}, as kv_num_blocks")
    if indices.ndim != 4 or indices.shape[:3] != counts.shape:
        raise ValueError(f"{name}_indices has the shape {list(indices.shape)}; it must be "
                         f"{rows} and a list's length")
    for row in np.ndindex(*rows):
        count, place = int(counts[row]), list(row)
        if not 0 <= count <= min(indices.shape[3], blocks):
            raise ValueError(f"{name}_num_blocks{place} is {count}; the list has "
                             f"{indices.shape[3]} places, a row {blocks} blocks")
        own = indices[row][:count].astype(np.int64)
        if count and not (0 <= own.min() and own.max() < blocks):
            wrong = own[(own < 0) | (own >= blocks)][0]
            raise ValueError(f"{name}_indices{place} has block {wrong}; there are {blocks}")
        if (np.diff(own) <= 0).any():
            raise ValueError(f"{name}_indices{place} must ascend, not be {own.tolist()}")
        if kinds[row][own].any():
            both = own[kinds[row][own] != 0][0]
            raise ValueError(f"block {both} of row {place} is in both lists")
        kinds[row][own] = kind


def from_block_mask(kinds):
    """FlexAttention's lists, full ones, by name: behind a row's blocks are all others."""
    kinds = np.asarray(kinds)
    if kinds.ndim != 4 or not np.isin(kinds, (0, 1, 2)).all():
        raise ValueError("a block mask has rank 4 and elements 0, 1 and 2")
    lists = {}
    for name, kind in (("kv", 1), ("full_kv", 2)):
        is_kind = kinds == kind
        lists[f"{name}_num_blocks"] = is_kind.sum(axis=3, dtype=np.int32)
        lists[f"{name}_indices"] = np.argsort(~is_kind, axis=3, kind="stable").astype(np.int32)
    return lists
