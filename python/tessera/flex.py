"""Block masks to and from the lists of FlexAttention and FlashAttention 4, as NumPy arrays.

    from tessera import flex

    kinds = flex.to_block_mask(mask.kv_num_blocks, mask.kv_indices,
                               mask.full_kv_num_blocks, mask.full_kv_indices, blocks=64)
    lists = flex.from_block_mask(kinds)

A block mask of `tv.attention` is i8 [B, H, rows, columns] of blocks: 0, nothing is kept;
1, what mask_mod keeps; 2, all. FlexAttention's lists have, for each row, how many blocks
of 1, or of 2, there are, and which, ascending. Lists may be compact: as long as the
longest row needs. An extent 1 of B or H stands for all.

FlashAttention 4's BlockSparseTensors are the same lists by other names, and for its
backward lists of rows for each column, with the order in which columns add to a row's dQ:

    kinds = flex.from_sparse_tensors(t.mask_block_cnt, t.mask_block_idx,
                                     t.full_block_cnt, t.full_block_idx, blocks=64)
    forward = flex.to_sparse_tensors(kinds)
    backward = flex.to_sparse_tensors(kinds, by="key", spt=True)
"""

import numpy as np

# The names of how many, and of which: those that mask_mod decides, those that are whole.
_FLEX = (("kv_num_blocks", "kv_indices"), ("full_kv_num_blocks", "full_kv_indices"))
_SPARSE = (("mask_block_cnt", "mask_block_idx"), ("full_block_cnt", "full_block_idx"))
_ORDERS = ("dq_write_order", "dq_write_order_full")


def to_block_mask(kv_num_blocks, kv_indices, full_kv_num_blocks=None, full_kv_indices=None,
                  *, blocks):
    """The block mask, of `blocks` columns, that FlexAttention's lists describe."""
    return _read(_FLEX, ((kv_num_blocks, kv_indices), (full_kv_num_blocks, full_kv_indices)),
                 blocks)


def from_block_mask(kinds, *, compact=False):
    """FlexAttention's lists by name; not `compact`, behind a row's blocks are all others."""
    return _write(_FLEX, _checked(kinds), compact)


def from_sparse_tensors(mask_block_cnt, mask_block_idx, full_block_cnt=None,
                        full_block_idx=None, *, blocks, by="query", dq_write_order=None,
                        dq_write_order_full=None, spt=False):
    """The block mask that FlashAttention 4's lists describe: of the `blocks` columns for
    each row, or, by="key", of the `blocks` rows for each column, with its write order if
    that is given, which must be the mask's own."""
    lists = ((mask_block_cnt, mask_block_idx), (full_block_cnt, full_block_idx))
    kinds = _read(_SPARSE, lists, blocks)
    if _is_by_key(by):
        kinds = kinds.swapaxes(2, 3)
    orders = dq_write_order, dq_write_order_full
    for name, order, (counts, indices) in zip(_ORDERS, orders, lists):
        if order is not None:
            if not _is_by_key(by):
                raise ValueError(f'{name} goes with lists by="key"')
            _check_order(name, np.asarray(order), kinds, counts, indices, spt)
    return np.ascontiguousarray(kinds)


def to_sparse_tensors(kinds, *, by="query", compact=False, spt=None):
    """FlashAttention 4's lists by name. by="key": of rows for each column, and with `spt`
    False or True the write orders: columns add to a row ascending, or descending (shortest
    processing time first, if causal)."""
    kinds = _checked(kinds)
    if not _is_by_key(by):
        if spt is not None:
            raise ValueError('a write order, and spt, goes with lists by="key"')
        return _write(_SPARSE, kinds, compact)
    lists = _write(_SPARSE, kinds.swapaxes(2, 3), compact)
    if spt is not None:
        for name, (count, indices) in zip(_ORDERS, _SPARSE):
            lists[name] = _order(kinds, lists[count], lists[indices], spt)
        lists["spt"] = bool(spt)
    return lists


def _is_by_key(by):
    if by not in ("query", "key"):
        raise ValueError(f'lists are by="query" or by="key", not {by!r}')
    return by == "key"


def _checked(kinds):
    kinds = np.asarray(kinds)
    if kinds.ndim != 4 or not np.isin(kinds, (0, 1, 2)).all():
        raise ValueError("a block mask has rank 4 and elements 0, 1 and 2")
    return kinds


def _read(names, lists, blocks):
    """i8 [B, H, lists, blocks]."""
    given, first = [], None
    for (count_name, name), (counts, indices) in zip(names, lists):
        if (counts is None) != (indices is None):
            raise ValueError(f"{count_name} and {name} must both be given, or neither")
        if counts is None and first is not None:
            continue
        counts, indices = np.asarray(counts), np.asarray(indices)
        for each, array in ((count_name, counts), (name, indices)):
            if array.dtype.kind not in "iu":
                raise ValueError(f"{each} has elements of {array.dtype}; they must be integers")
        if first is None and counts.ndim != 3:
            raise ValueError(f"{count_name} has the shape {list(counts.shape)}; it must be "
                             "[batch, heads, rows of blocks]")
        first = counts.shape if first is None else first
        if not _fits(counts.shape, first):
            raise ValueError(f"{count_name} has the shape {list(counts.shape)}; it must be "
                             f"{list(first)}, as {names[0][0]}")
        if indices.ndim != 4 or not _fits(indices.shape[:3], first):
            raise ValueError(f"{name} has the shape {list(indices.shape)}; it must be "
                             f"{list(first)} and a list's length")
        given.append((count_name, counts, name, indices))
    shapes = [array.shape[:3] for _, counts, _, indices in given for array in (counts, indices)]
    kinds = np.zeros((*np.broadcast_shapes(*shapes), blocks), np.int8)
    for kind, (count_name, counts, name, indices) in enumerate(given, 1):
        counts = np.broadcast_to(counts, kinds.shape[:3])
        indices = np.broadcast_to(indices, (*kinds.shape[:3], indices.shape[3]))
        _set(kinds, kind, count_name, counts, name, indices)
    return kinds


def _fits(shape, first):
    """Where one of them has 1 in B or H it stands for all."""
    return len(shape) == 3 and shape[2] == first[2] and all(
        a == b or 1 in (a, b) for a, b in zip(shape[:2], first))


def _set(kinds, kind, count_name, counts, name, indices):
    blocks, places = kinds.shape[3], indices.shape[3]
    for row in np.ndindex(*counts.shape):
        count, place = int(counts[row]), list(row)
        if not 0 <= count <= min(places, blocks):
            raise ValueError(f"{count_name}{place} is {count}; the list has "
                             f"{places} places, a row {blocks} blocks")
        own = indices[row][:count].astype(np.int64)
        if count and not (0 <= own.min() and own.max() < blocks):
            wrong = own[(own < 0) | (own >= blocks)][0]
            raise ValueError(f"{name}{place} has block {wrong}; there are {blocks}")
        if (np.diff(own) <= 0).any():
            raise ValueError(f"{name}{place} must ascend, not be {own.tolist()}")
        if kinds[row][own].any():
            both = own[kinds[row][own] != 0][0]
            raise ValueError(f"block {both} of row {place} is in both lists")
        kinds[row][own] = kind


def _write(names, kinds, compact):
    lists = {}
    for kind, (count_name, name) in enumerate(names, 1):
        is_kind = kinds == kind
        counts = is_kind.sum(axis=3, dtype=np.int32)
        places = counts.max(initial=0) if compact else kinds.shape[3]
        indices = np.argsort(~is_kind, axis=3, kind="stable").astype(np.int32)
        lists |= {count_name: counts, name: indices[..., :places]}
    return lists


def _order(kinds, counts, indices, spt):
    """Of each row in a column's list: how many columns add to it before. 0 behind them."""
    touched = kinds.swapaxes(2, 3) != 0  # [B, H, column, row]
    rank = touched.cumsum(axis=2) - 1
    if spt:
        rank = touched.sum(axis=2, keepdims=True) - 1 - rank
    own = np.arange(indices.shape[3]) < counts[..., None]
    return np.where(own, np.take_along_axis(rank, np.where(own, indices, 0), axis=3), 0
                    ).astype(np.int32)


def _check_order(name, order, kinds, counts, indices, spt):
    if indices is None:
        raise ValueError(f"{name} goes with lists of its blocks, of which there are none")
    counts = np.broadcast_to(counts, (*kinds.shape[:2], kinds.shape[3]))
    indices = np.asarray(indices)
    if order.shape != indices.shape:
        raise ValueError(f"{name} has the shape {list(order.shape)}; it must be "
                         f"{list(indices.shape)}, as the list that it goes with")
    places = (*counts.shape, indices.shape[3])
    order, indices = np.broadcast_to(order, places), np.broadcast_to(indices, places)
    right = _order(kinds, counts, indices, spt)
    for column in np.ndindex(*counts.shape):
        count = counts[column]
        if not np.array_equal(order[column][:count], right[column][:count]):
            raise ValueError(
                f"{name}{list(column)} is {order[column][:count].tolist()}; of this mask, "
                f"{'with' if spt else 'without'} spt, it is {right[column][:count].tolist()}")
