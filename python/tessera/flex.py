"""Block masks to and from the lists of FlexAttention and FlashAttention 4, as NumPy arrays.

    from tessera import flex

    kinds = flex.to_block_mask(mask.kv_num_blocks, mask.kv_indices,
                               mask.full_kv_num_blocks, mask.full_kv_indices,
                               seq_lengths=(8192, 8192), BLOCK_SIZE=mask.BLOCK_SIZE)
    lists = flex.from_block_mask(kinds)

A block mask of `tv.attention` is i8 [B, H, rows, columns] of blocks: 0, nothing is kept;
1, what mask_mod keeps; 2, all. FlexAttention's lists have, for each row, how many blocks
of 1, or of 2, there are, and which, ascending. Lists may be compact: as long as the
longest row needs. An extent 1 of B or H stands for all. How many columns there are, lists
do not say: `blocks` does, or block sizes and the program's numbers of queries and keys,
which rows are then held against too. Of lists of rows for each column, `q_num_blocks` and
so on, the mask must be the same.

FlashAttention 4's BlockSparseTensors are the same lists by other names, and for its
backward lists of rows for each column, with the order in which columns add to a row's dQ:

    kinds = flex.from_sparse_tensors(**t._asdict(), seq_lengths=(8192, 8192))
    forward = flex.to_sparse_tensors(kinds, block_size=(128, 128))
    backward = flex.to_sparse_tensors(kinds, by="key", spt=True)

An order is checked, and not kept: kernels of `tv.attention_grad` make one of the mask.
"""

import numpy as np

# The names of how many, and of which: those that mask_mod decides, those that are whole.
_FLEX = (("kv_num_blocks", "kv_indices"), ("full_kv_num_blocks", "full_kv_indices"))
_FLEX_BY_KEY = (("q_num_blocks", "q_indices"), ("full_q_num_blocks", "full_q_indices"))
_SPARSE = (("mask_block_cnt", "mask_block_idx"), ("full_block_cnt", "full_block_idx"))
_ORDERS = ("dq_write_order", "dq_write_order_full")


def to_block_mask(kv_num_blocks, kv_indices, full_kv_num_blocks=None, full_kv_indices=None,
                  q_num_blocks=None, q_indices=None, full_q_num_blocks=None,
                  full_q_indices=None, *, blocks=None, seq_lengths=None, BLOCK_SIZE=None,
                  dq_write_order=None, dq_write_order_full=None, dq_kv_order=None,
                  dq_kv_order_spt=None):
    """The block mask, of `blocks` columns, that FlexAttention's lists describe."""
    lists = ((kv_num_blocks, kv_indices), (full_kv_num_blocks, full_kv_indices))
    rows, columns = _extents(seq_lengths, "BLOCK_SIZE", BLOCK_SIZE)
    kinds = _read(_FLEX, lists, _count(blocks, columns, "BLOCK_SIZE"), rows)
    if dq_kv_order is not None:
        raise ValueError("dq_kv_order is an order of columns, which kernels here make "
                         "themselves; leave it out")
    by_key = ((q_num_blocks, q_indices), (full_q_num_blocks, full_q_indices))
    orders = (dq_write_order, dq_write_order_full)
    if q_num_blocks is not None or q_indices is not None:
        transposed = _read(_FLEX_BY_KEY, by_key, kinds.shape[2],
                           (kinds.shape[3], "columns of blocks"))
        _check_same(kinds, transposed.swapaxes(2, 3))
    elif any(each is not None for each in (*by_key[1], *orders)):
        raise ValueError("full_q_num_blocks, full_q_indices, dq_write_order and "
                         "dq_write_order_full go with q_num_blocks and q_indices")
    _check_orders(orders, kinds, by_key, dq_kv_order_spt)
    return kinds


def from_block_mask(kinds, *, compact=False, transposed=False, spt=None):
    """FlexAttention's lists by name; not `compact`, behind a row's blocks are all others.
    `transposed`: those of rows for each column too, and with `spt`, as that of
    `to_sparse_tensors`, their write orders."""
    kinds = _checked(kinds)
    lists = _write(_FLEX, kinds, compact)
    if transposed:
        lists |= _write_by_key(_FLEX_BY_KEY, kinds, compact, spt, "dq_kv_order_spt")
    elif spt is not None:
        raise ValueError("a write order, and spt, goes with transposed lists")
    return lists


def from_sparse_tensors(mask_block_cnt, mask_block_idx, full_block_cnt=None,
                        full_block_idx=None, cu_total_m_blocks=None,
                        cu_block_idx_offsets=None, block_size=None, dq_write_order=None,
                        dq_write_order_full=None, spt=None, *, blocks=None,
                        seq_lengths=None, by="query"):
    """The block mask that FlashAttention 4's lists describe: of the `blocks` columns for
    each row, or, by="key", of the `blocks` rows for each column. Then a write order must
    be one of the mask, and that of `spt` if that is given."""
    for name, value in (("cu_total_m_blocks", cu_total_m_blocks),
                        ("cu_block_idx_offsets", cu_block_idx_offsets)):
        if value is not None:
            raise ValueError(f"{name} is of packed sequences, which have no block mask; "
                             "give tv.attention where they begin")
    lists = ((mask_block_cnt, mask_block_idx), (full_block_cnt, full_block_idx))
    extents = _extents(seq_lengths, "block_size", block_size)
    by_key = _is_by_key(by)
    rows, columns = reversed(extents) if by_key else extents
    kinds = _read(_SPARSE, lists, _count(blocks, columns, "block_size"), rows)
    if by_key:
        kinds = kinds.swapaxes(2, 3)
    orders = (dq_write_order, dq_write_order_full)
    for name, order in zip(_ORDERS, orders):
        if order is not None and not by_key:
            raise ValueError(f'{name} goes with lists by="key"')
    _check_orders(orders, kinds, lists, spt)
    return np.ascontiguousarray(kinds)


def to_sparse_tensors(kinds, *, by="query", compact=False, spt=None, block_size=None):
    """FlashAttention 4's lists by name, with `block_size` if that is given. by="key": of
    rows for each column, and with `spt` False or True the write orders: columns add to a
    row ascending, or descending (shortest processing time first, if causal)."""
    kinds = _checked(kinds)
    if _is_by_key(by):
        lists = _write_by_key(_SPARSE, kinds, compact, spt, "spt")
    elif spt is not None:
        raise ValueError('a write order, and spt, goes with lists by="key"')
    else:
        lists = _write(_SPARSE, kinds, compact)
    if block_size is not None:
        lists["block_size"] = _sizes("block_size", block_size)
    return lists


def _is_by_key(by):
    if by not in ("query", "key"):
        raise ValueError(f'lists are by="query" or by="key", not {by!r}')
    return by == "key"


def _sizes(name, sizes):
    """Of a block, of queries and of keys; one number is both."""
    pair = np.asarray(sizes)
    if pair.dtype.kind not in "iu" or pair.shape not in ((), (2,)):
        raise ValueError(f"{name} is {sizes!r}; it must be two integers, of queries and keys")
    pair = tuple(int(size) for size in np.broadcast_to(pair, 2))
    if any(size <= 0 or size % 64 for size in pair):
        raise ValueError(f"{name} is {pair}; tv.attention has blocks of multiples of 64")
    return pair


def _extents(seq_lengths, name, sizes):
    """How many blocks of queries, and of keys, there are, and of what: None, if unknown."""
    sizes = None if sizes is None else _sizes(name, sizes)
    if seq_lengths is None:
        return None, None
    lengths = np.asarray(seq_lengths)
    if lengths.dtype.kind not in "iu" or lengths.shape != (2,) or (lengths < 0).any():
        raise ValueError(f"seq_lengths is {seq_lengths!r}; it must be two numbers, of queries "
                         "and of keys")
    if sizes is None:
        raise ValueError(f"seq_lengths goes with {name}")
    return tuple((-(-int(length) // size), f"blocks of {size} of the {length} {of}")
                 for length, size, of in zip(lengths, sizes, ("queries", "keys")))


def _count(blocks, extent, name):
    """How many blocks a list may have, as is said, and as follows from sizes."""
    if blocks is None:
        if extent is None:
            raise ValueError(f"blocks is missing; without it, give seq_lengths and {name}")
        return extent[0]
    if not isinstance(blocks, (int, np.integer)) or blocks < 0:
        raise ValueError(f"blocks is {blocks!r}; it must be a number, and not below 0")
    if extent is not None and blocks != extent[0]:
        raise ValueError(f"blocks is {blocks}; there are {extent[0]} {extent[1]}")
    return int(blocks)


def _check_same(kinds, transposed):
    kinds, transposed = np.broadcast_arrays(kinds, transposed)
    if (kinds != transposed).any():
        place = tuple(int(i) for i in np.argwhere(kinds != transposed)[0])
        raise ValueError(f"q_indices are of another mask than kv_indices: block {list(place)} "
                         f"is {transposed[place]} there, and {kinds[place]} here")


def _checked(kinds):
    kinds = np.asarray(kinds)
    if kinds.ndim != 4 or not np.isin(kinds, (0, 1, 2)).all():
        raise ValueError("a block mask has rank 4 and elements 0, 1 and 2")
    return kinds


def _read(names, lists, blocks, rows=None):
    """i8 [B, H, lists, blocks], of as many lists as rows[0], whatever it is, or any."""
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
        if first is None and rows is not None and counts.shape[2] != rows[0]:
            raise ValueError(f"{count_name} has {counts.shape[2]} counts; there are {rows[0]} "
                             f"{rows[1]}")
        first = counts.shape if first is None else first
        if not _fits(counts.shape, first):
            raise ValueError(f"{count_name} has the shape {list(counts.shape)}; it must be "
                             f"{list(first)}, as {names[0][0]}")
        if indices.ndim != 4 or not _fits(indices.shape[:3], first):
            raise ValueError(f"{name} has the shape {list(indices.shape)}; it must be "
                             f"{list(first)} and a list's length")
        if indices.shape[3] > blocks:
            raise ValueError(f"{name} has lists of {indices.shape[3]} places; there are "
                             f"{blocks} blocks")
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


def _write_by_key(names, kinds, compact, spt, spt_name):
    lists = _write(names, kinds.swapaxes(2, 3), compact)
    if spt is not None:
        ranks = _ranks(kinds, spt)
        for name, (count_name, index_name) in zip(_ORDERS, names):
            lists[name] = _along(ranks, lists[count_name], lists[index_name])
        lists[spt_name] = bool(spt)
    return lists


def _ranks(kinds, spt):
    """[B, H, column, row]: how many columns add to the row before this one."""
    touched = kinds.swapaxes(2, 3) != 0
    ranks = touched.cumsum(axis=2) - 1
    return touched.sum(axis=2, keepdims=True) - 1 - ranks if spt else ranks


def _along(ranks, counts, indices):
    """The ranks of the rows in each column's list; 0 behind them."""
    own = np.arange(indices.shape[3]) < counts[..., None]
    return np.where(own, np.take_along_axis(ranks, np.where(own, indices, 0), axis=3), 0
                    ).astype(np.int32)


def _check_orders(orders, kinds, lists, spt):
    """With `spt` they are what that gives; else a row's columns have each its own rank."""
    if spt and all(order is None for order in orders):
        raise ValueError("spt is of a write order, and there is none")
    batch, heads, _, columns = kinds.shape
    found = np.full(kinds.shape, -1)
    for name, order, (counts, indices) in zip(_ORDERS, orders, lists):
        if order is None:
            continue
        if indices is None:
            raise ValueError(f"{name} goes with lists of its blocks, of which there are none")
        order, indices = np.asarray(order), np.asarray(indices)
        if order.shape != indices.shape:
            raise ValueError(f"{name} has the shape {list(order.shape)}; it must be "
                             f"{list(indices.shape)}, as the list that it goes with")
        if order.dtype.kind not in "iu":
            raise ValueError(f"{name} has elements of {order.dtype}; they must be integers")
        counts = np.broadcast_to(counts, (batch, heads, columns))
        places = (*counts.shape, indices.shape[3])
        order, indices = np.broadcast_to(order, places), np.broadcast_to(indices, places)
        right = None if spt is None else _along(_ranks(kinds, spt), counts, indices)
        for b, h, column in np.ndindex(*counts.shape):
            place, count = (b, h, column), counts[b, h, column]
            own = order[place][:count]
            if right is not None and not np.array_equal(own, right[place][:count]):
                raise ValueError(
                    f"{name}{list(place)} is {own.tolist()}; of this mask, "
                    f"{'with' if spt else 'without'} spt, it is "
                    f"{right[place][:count].tolist()}")
            rows = indices[place][:count]
            most = (kinds[b, h][rows] != 0).sum(axis=1)
            taken = (found[b, h][rows] == own[:, None]).any(axis=1)
            for row, rank in zip(rows[wrong := taken | (own < 0) | (own >= most)], own[wrong]):
                raise ValueError(
                    f"{name}{list(place)} has {rank} for row {row}; of this mask, the "
                    f"{(kinds[b, h, row] != 0).sum()} columns of that row have each one of the "
                    "numbers from 0 on")
            found[b, h, rows, column] = own
    for name, order, (counts, indices) in zip(_ORDERS, orders, lists):
        if order is None and any(other is not None for other in orders) and (
                indices is not None and np.any(counts)):
            raise ValueError(f"there is no {name}, and its list has blocks")
