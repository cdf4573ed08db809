#!/usr/bin/env python3
"""Our attention with block masks, of few queries (decoding) and of pieces of prompts, beside
FlashAttention 4 (CuTe) and PyTorch's, on one Hopper GPU; FlashAttention 4's packages in
PYTHONPATH, or it drops out.

    nvcc -std=c++17 -O3 -gencode=arch=compute_90a,code=sm_90a -cudart static -shared \\
      -Xcompiler -fPIC -Ilib/Kernels/cuda \\
      -o attention_sparse.so lib/Kernels/cuda/attention/bench/attention_sparse_kernels.cu
    attention_sparse.py attention_sparse.so [--rows blocks,long] [--flex]

bf16, [batch, position, head, d]; rounds and readings are those of attention.py, printed
are medians and, as the median over rounds, ratios.

blocks: blocks of 128 x 128, in TFLOP/s of the pairs that the mask keeps, 4 d each, 2.5
times that backward. Kinds of blocks, documents and pairs are made once, from the mask as a
tensor, and both sides get them; results are held against FlashAttention 4's, outputs row
by row. varlen: 32 sequences of lognormal lengths, packed, causal; both sides get where they
begin, ours makes its tiles of that once. With --modules DIR, where packed.mlir and
packed_grad.mlir are compiled, they are timed too, by the runtime (as kernels.py has it in
PYTHONPATH and TESSERA_ROOT), and make their tiles in each run.

decode: one query a sequence, in GB/s of the keys and values that it sees and as a share of
a copy on the device, measured in the same rounds. Ours paged has the same keys and values in
shuffled pages of 16, 64 and 128 positions; with --modules DIR lognormal has paged.mlir, too.

prompts: some queries at the end of long keys, causal, in TFLOP/s of the pairs; ours by the
kernel that cuda-schedule takes, and in shuffled pages of 64, by lengths that are data.
Exits with 1 if results differ."""
import argparse
import ctypes
import random
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from attention import (BACKWARD, FORWARD, ORDERED, Ours, Sizes, Tensors, difference, load, ratio,
                       reading, rounds, same)

try:
    import cutlass
    import cutlass.cute as cute
    from flash_attn.cute import flash_attn_func, flash_attn_varlen_func, utils
    from flash_attn.cute.block_sparsity import BlockSparseTensorsTorch, compute_dq_write_order
except ImportError:
    cute = None  # attention.py says so

BLOCK, WINDOW = 128, 2048
BATCH, LENGTH, HEADS, D = 2, 8192, 16, 128  # of block masks
PACKED, SEQUENCES = 32768, 32
PEER, PEER_ORDERED = "FA4", "FA4, ordered"
PAGED = "ours paged by"
# Relative, in the 2-norm: of a whole result, of one row of an output. One key more or less
# of n changes a row by 1 / sqrt(n), windows by 2e-2.
ERROR, ROW_ERROR = 1e-2, 3e-2


def ints(values):
    return torch.tensor(values, device="cuda", dtype=torch.int32)


class Row:
    """What runs, by its name; a peer that cannot is a line."""

    def __init__(self, title, options):
        self.title, self.options, self.failed = title, options, False
        self.began = time.time()
        self.calls, self.results = {}, {}

    def add(self, name, call):
        """call: gives the results."""
        if self.options.compile and not name.startswith(PEER):
            return False
        try:
            self.results[name] = [x.detach().clone() for x in call()]
            torch.cuda.synchronize()
        except Exception as error:
            if name.startswith("ours"):
                raise
            torch.cuda.empty_cache()
            lines = str(error).strip().splitlines() or ["?"]
            print(f"  {name}: {type(error).__name__}: {lines[-1][:150]}", flush=True)
            return False
        self.calls[name] = call
        return True

    def check(self, name, ok, text):
        if ok:
            return text
        self.failed = True
        return f"{text} DIFFERS"

    def times(self):
        return None if self.options.compile else rounds(self.calls, self.options.scratch)

    def print(self, parts):
        print(f"{self.title}: " + "; ".join(parts) + f" [{time.time() - self.began:.0f} s]",
              flush=True)


# ---- block masks

def functors():
    """In FlashAttention 4's language."""
    if cute is None:
        return {}

    @cute.jit
    def causal(batch, head, q, kv, seqlen, aux):
        return kv <= q

    @cute.jit
    def window(batch, head, q, kv, seqlen, aux):
        return (kv <= q) & (q - kv < utils.scalar_to_ssa(2048, cutlass.Int32))

    @cute.jit
    def documents(batch, head, q, kv, seqlen, aux):
        doc = aux[0]
        return utils.scalar_to_ssa(doc[q[0]], cutlass.Int32) == utils.scalar_to_ssa(
            doc[kv[0]], cutlass.Int32)

    return dict(causal=causal, window=window, documents=documents)


def lengths_of(weights, length):
    """As the weights, `length` in all."""
    lengths = [int(length * w / sum(weights)) for w in weights]
    lengths[lengths.index(max(lengths))] += length - sum(lengths)
    return lengths


def documents_of(lengths):
    """Of each position."""
    return ints([i for i, n in enumerate(lengths) for _ in range(n)])


def masks():
    """Whether a pair is kept, by names; and the document of each position."""
    rng = random.Random(0)
    documents = documents_of(lengths_of([rng.random() for _ in range(8)], LENGTH))
    n = LENGTH // BLOCK
    board = torch.tensor([[i == j or rng.random() < 0.5 for j in range(n)] for i in range(n)],
                         device="cuda")
    return {
        "causal": lambda b, h, i, j: i >= j,
        "window": lambda b, h, i, j: (i >= j) & (i - j < WINDOW),
        "documents": lambda b, h, i, j: documents[i] == documents[j],
        "checkerboard": lambda b, h, i, j: board[i // BLOCK, j // BLOCK],
    }, documents


def kinds_of(mask, length=LENGTH):
    """Of blocks: 0 where no pair is kept, 2 where all are, else 1; and the pairs kept."""
    n = length // BLOCK
    i = torch.arange(length, device="cuda")
    kept = mask(0, 0, i[:, None], i[None, :]).view(n, BLOCK, n, BLOCK).sum((1, 3))
    kinds = (kept > 0).to(torch.int8) + (kept == BLOCK * BLOCK).to(torch.int8)
    return kinds.contiguous(), int(kept.sum())


def sparse_tensors(kinds):
    """Rows of blocks: how many are partial and which, how many are full and which."""
    def lists(of):
        return (of.sum(1, dtype=torch.int32)[None, None].contiguous(),
                of.int().argsort(dim=1, descending=True, stable=True).to(torch.int32)[None, None]
                .contiguous())
    return BlockSparseTensorsTorch(*lists(kinds == 1), *lists(kinds == 2),
                                   block_size=(BLOCK, BLOCK))


def in_order(peer):
    """With what a deterministic backward needs."""
    rows, columns = peer["block_sparse_tensors"], peer["block_sparse_tensors_bwd"]
    partial, full = compute_dq_write_order(*rows[:4], *columns[:4])
    return {**peer, "block_sparse_tensors_bwd": columns._replace(
        dq_write_order=partial, dq_write_order_full=full, spt=False)}


def flex_attention_of(mask, length=LENGTH):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    import torch._functorch.config
    torch._functorch.config.donated_buffer = False
    torch._dynamo.reset()
    compiled = torch.compile(flex_attention, dynamic=False)
    block_mask = create_block_mask(mask, None, None, length, length, device="cuda",
                                   BLOCK_SIZE=BLOCK)
    return lambda *leaves: compiled(*(x.transpose(1, 2) for x in leaves),
                                    block_mask=block_mask).transpose(1, 2)


def worst_row(x, reference):
    x, reference = x.float(), reference.float()
    return ((x - reference).norm(dim=-1) / reference.norm(dim=-1)).max().item()


def blocks(library, name, number, options):
    all_masks, documents = masks()
    mask = all_masks[name]
    kinds, pairs = kinds_of(mask)
    peers = {}
    if cute:
        peer = dict(mask_mod=functors().get(name),
                    aux_tensors=[documents] if name == "documents" else None,
                    block_sparse_tensors=sparse_tensors(kinds),
                    block_sparse_tensors_bwd=sparse_tensors(kinds.T.contiguous()))
        peers[PEER] = lambda *leaves: flash_attn_func(*leaves, **peer)[0]
        # Refused on Hopper: the line that says so.
        peers[PEER_ORDERED] = lambda *leaves: flash_attn_func(*leaves, deterministic=True,
                                                              **in_order(peer))[0]
        if name in ("causal", "window") and options.native:
            native = dict(causal=True) if name == "causal" else dict(window_size=(WINDOW - 1, 0))
            peers[f"FA4, its own {name}"] = lambda *leaves: flash_attn_func(*leaves, **native)[0]
    if options.flex:
        peers["Flex"] = flex_attention_of(mask)
    return compare(library, f"{name}, {pairs / LENGTH ** 2:.3f} of the pairs", number,
                   (BATCH, LENGTH), pairs, peers, options, table=kinds, documents=documents,
                   walks=torch.empty(library.walks_bytes(Sizes(1, 1, 1, LENGTH, LENGTH, 0)),
                                     dtype=torch.uint8, device="cuda"))


def varlen(library, number, sequences, positions, options):
    rng = random.Random(0)
    lengths = lengths_of([rng.lognormvariate(0, 0.8) for _ in range(sequences)], positions)
    begins = torch.cat([ints([0]), ints(lengths).cumsum(0).to(torch.int32)])
    pairs = sum(n * (n + 1) // 2 for n in lengths)
    tiles = torch.empty(positions // BLOCK + 2 * sequences + 1, 4, device="cuda",
                        dtype=torch.int32)
    library.packed(begins.data_ptr(), Sizes(1, HEADS, HEADS, positions, positions, sequences),
                   tiles.data_ptr(), torch.cuda.current_stream().cuda_stream)
    peers = {}
    if cute:
        def peer(*leaves, **more):
            out = flash_attn_varlen_func(
                *(x.view(positions, HEADS, D) for x in leaves), causal=True, cu_seqlens_q=begins,
                cu_seqlens_k=begins, max_seqlen_q=max(lengths), max_seqlen_k=max(lengths),
                **more)[0]
            return out.view(1, positions, HEADS, D)
        peers[PEER] = peer
        peers[PEER_ORDERED] = lambda *leaves: peer(*leaves, deterministic=True)
    if options.flex:
        owner = documents_of(lengths)
        peers["Flex"] = flex_attention_of(
            lambda b, h, i, j: (owner[i] == owner[j]) & (i >= j), positions)
    return compare(library, f"varlen, {sequences} of mean {positions / sequences:.0f}", number,
                   (1, positions), pairs, peers, options, begins, sequences=sequences, table=tiles)


def cuda_context():
    import tessera
    return tessera.Context(backend="cuda", device=0)


class Program:
    """packed.mlir and packed_grad.mlir on the tensors of Ours."""

    def __init__(self, folder, tensors, begins):
        self.context = cuda_context()
        heads = {name: tensors[name].transpose(1, 2) for name in ("q", "k", "v", "dout")}
        heads |= {name: torch.empty_like(heads["q"]) for name in ("o", "dq", "dk", "dv")}
        lse, of = torch.empty_like(tensors["lse"]), {}
        for kind, module, ports in ((FORWARD, "forward", "q k v o"),
                                    (ORDERED, "backward", "dout q k v o dq dk dv")):
            given = {name: heads[name] for name in ports.split()}
            of[kind] = self.context.load(f"{folder}/{module}.tsr").bind(
                {**given, "lse": lse, "begins": begins[None]})
        self.bindings, self.heads = of, heads

    def __call__(self, kind):
        self.bindings[kind].enqueue(torch.cuda.current_stream())
        results = ("o",) if kind == FORWARD else ("dq", "dk", "dv")
        return [self.heads[name].transpose(1, 2) for name in results]


def make_walks(library, ours, scratch):
    """How the ordered backward goes through the mask, made once; how long that takes."""
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    return 1e3 * reading(lambda: library.walks(ours.sizes, ours.tensors, stream), scratch)


def compare(library, title, number, sizes, pairs, peers, options, begins=None, **ours):
    """peers: give the output for q, k and v. begins: of packed sequences. ours: of Ours."""
    batch, length = sizes
    leaves = [torch.randn(batch, length, HEADS, D, device="cuda", dtype=torch.bfloat16,
                          requires_grad=True) for _ in range(3)]
    dout = torch.randn_like(leaves[0])
    ours = Ours(library, *(x.detach() for x in leaves), dout, number, **ours)
    if "walks" in ours.of:
        title += f", walks in {make_walks(library, ours, options.scratch):.1f} us"
    forward, backward = Row(f"{title}, forward", options), Row(f"{title}, backward", options)
    forward.add("ours", lambda: ours(FORWARD))
    backward.add("ours", lambda: ours(BACKWARD))
    backward.add("ours, ordered", lambda: ours(ORDERED))
    if options.modules and begins is not None:
        program = Program(options.modules, ours.of, begins)
        forward.add("ours, by a program", lambda: program(FORWARD))
        backward.add("ours, by a program", lambda: program(ORDERED))

    def add(peer, call):
        outs = []

        def run():
            outs[:] = [call(*leaves)]
            return outs

        def grad():
            return torch.autograd.grad(outs[0], leaves, dout, retain_graph=True)
        if peer == PEER_ORDERED:  # its forward is the same
            if backward.add(peer, lambda: run() and grad()):
                backward.calls[peer] = grad
        # Timed with what a backward needs, as ours are.
        elif forward.add(peer, run):
            kept = outs[0]
            backward.add(peer, lambda: torch.autograd.grad(kept, leaves, dout, retain_graph=True))
    for peer, call in peers.items():
        add(peer, call)

    work = 4e-9 * batch * HEADS * D * pairs
    for row, factor in (forward, 1), (backward, 2.5):
        times = row.times()
        parts = []
        for call in row.calls:
            text = call
            if times:
                text += f" {factor * work / statistics.median(times[call]):.0f} TFLOP/s"
                if call.startswith("ours") and PEER in times:
                    text += f" ({ratio(times, call, PEER):.3f} of {PEER})"
            if call == "ours, ordered":
                if times:
                    text += f" ({ratio(times, call, 'ours'):.3f} of free)"
                if times and PEER_ORDERED in times:
                    text += f" ({ratio(times, call, PEER_ORDERED):.3f} of {PEER_ORDERED})"
                bits = same(row.calls[call])
                text += row.check(call, bits, " same bits" if bits else " other bits")
            if call.startswith("ours") and PEER not in row.results:
                text += " unchecked"
            elif call.startswith("ours"):
                error = difference(row.results[call], row.results[PEER])
                text += row.check(call, error <= ERROR, f" error {error:.1e}")
                if row is forward:
                    error = worst_row(row.results[call][0], row.results[PEER][0])
                    text += row.check(call, error <= ROW_ERROR, f", of a row {error:.1e}")
            parts.append(text)
        row.print(parts)
    return forward.failed or backward.failed


# ---- few queries

def lognormal():
    rng = random.Random(0)
    draws = [rng.lognormvariate(0, 0.8) for _ in range(64)]
    return [max(1, min(32768, int(8192 * 64 * x / sum(draws)))) for x in draws]


class OursFew:
    """The kernel of few queries on a padded cache, or on pages that a table has."""

    def __init__(self, library, q, k, v, lengths, pages=None):
        b, queries, heads, self.d = q.shape
        self.library = library
        self.page_rows, self.pages, keys = 0, 0, k.shape[1]
        if pages is not None:
            self.page_rows, self.pages = k.shape[1], k.shape[0]
            keys = pages.shape[1] * self.page_rows
        self.sizes = Sizes(b, heads, k.shape[2], queries, keys)
        pieces, arrived = ctypes.c_long(), ctypes.c_long()
        library.decode_workspace(ctypes.byref(pieces), ctypes.byref(arrived))
        self.of = dict(
            q=q, k=k, v=v, o=torch.empty_like(q), table=lengths,
            workspace=torch.empty(pieces.value, dtype=torch.uint8, device="cuda"),
            ticket=torch.zeros(arrived.value, dtype=torch.uint8, device="cuda"))
        if pages is not None:
            self.of["documents"] = pages
        self.tensors = Tensors(**{name: t.data_ptr() for name, t in self.of.items()})

    def __call__(self):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        if self.sizes.queries > 1:
            self.library.prompt(self.page_rows, self.pages, self.sizes, self.tensors, stream)
        elif not self.library.decode(self.d, self.page_rows, self.pages, self.sizes,
                                     self.tensors, stream):
            raise RuntimeError("there is no kernel of these heads")
        return [self.of["o"]]


class PagedProgram:
    """paged.mlir on the tensors of OursFew."""

    def __init__(self, folder, few):
        self.context = cuda_context()
        heads = few["q"].transpose(1, 2)
        self.o = torch.empty_like(heads)
        self.binding = self.context.load(f"{folder}/paged.tsr").bind(
            {"q": heads, "keys": few["k"], "values": few["v"], "table": few["documents"],
             "lengths": few["table"], "o": self.o})

    def __call__(self):
        self.binding.enqueue(torch.cuda.current_stream())
        return [self.o.transpose(1, 2)]


def shuffled(x, rows, lengths):
    """Of a padded cache its pages, in any order, those that sequences have; and where they
    are: -1 for one that they have not."""
    each = x.shape[1] // rows
    used = torch.tensor([i * each + j for i, n in enumerate(lengths) for j in range(-(-n // rows))],
                        device="cuda")
    used = used[torch.randperm(len(used), generator=torch.Generator().manual_seed(0)).cuda()]
    table = torch.full((len(lengths) * each,), -1, device="cuda", dtype=torch.int32)
    table[used] = torch.arange(len(used), device="cuda", dtype=torch.int32)
    return x.view(-1, rows, *x.shape[2:])[used], table.view(len(lengths), each)


def decode(library, title, lengths, heads, key_heads, d, copy, options):
    b, longest = len(lengths), -(-max(lengths) // BLOCK) * BLOCK
    q, k, v = (torch.randn(b, n, h, d, device="cuda", dtype=torch.bfloat16)
               for n, h in ((1, heads), (longest, key_heads), (longest, key_heads)))
    used = ints(lengths)
    row = Row(f"{title}: {b} of mean {sum(lengths) / b:.0f}, {heads}/{key_heads} heads, d{d}",
              options)
    ours = OursFew(library, q, k, v, used)
    row.add("ours", ours)
    for rows in (16, 64, 128):
        if heads // key_heads == 8:
            keys, pages = shuffled(k, rows, lengths)
            paged = OursFew(library, q, keys, shuffled(v, rows, lengths)[0], used, pages)
            row.add(f"{PAGED} {rows}", paged)
            if options.modules and title == "lognormal" and rows == 64:
                row.add(f"{PAGED} {rows}, a program", PagedProgram(options.modules, paged.of))
    if cute:
        padded = dict(seqused_k=used)
        row.add(PEER, lambda: [flash_attn_varlen_func(q, k, v, **padded)[0]])
        pages = [x.view(-1, BLOCK, key_heads, d) for x in (k, v)]
        page_table = torch.arange(b * longest // BLOCK, device="cuda",
                                  dtype=torch.int32).view(b, -1)
        row.add("FA4 paged by 128", lambda: [flash_attn_varlen_func(
            q, *pages, page_table=page_table, **padded)[0]])

    def sdpa(backend, of_keys, **more):
        def call():
            with sdpa_kernel(backend):
                return [F.scaled_dot_product_attention(
                    *(x.transpose(1, 2) for x in (q, *of_keys)), enable_gqa=True, **more)
                    .transpose(1, 2)]
        return call
    if len(set(lengths)) == 1:
        cut = [x[:, :lengths[0]] for x in (k, v)]
        row.add("flash SDPA", sdpa(SDPBackend.FLASH_ATTENTION, cut))
        row.add("cuDNN SDPA", sdpa(SDPBackend.CUDNN_ATTENTION, cut))
    else:
        seen = (torch.arange(longest, device="cuda") < used[:, None]).view(b, 1, 1, longest)
        row.add("cuDNN SDPA, boolean mask", sdpa(SDPBackend.CUDNN_ATTENTION, (k, v),
                                                 attn_mask=seen))
        try:
            from torch.nn.attention.varlen import varlen_attn
            packed = [torch.cat([x[i, :n] for i, n in enumerate(lengths)]) for x in (k, v)]
            ones = ints(range(b + 1))
            ends = torch.cat([ints([0]), used.cumsum(0).to(torch.int32)])
            row.add("flash varlen_attn", lambda: [varlen_attn(
                q.view(b, heads, d), *packed, ones, ends, 1, max(lengths)).view(b, 1, heads, d)])
        except ImportError as error:
            print(f"  varlen_attn: {error}")
    row.add("copy", copy)

    size = 2 * 2 * sum(lengths) * key_heads * d
    times = row.times()
    peers = [call for call in row.calls if call not in ("ours", "copy") and PAGED not in call]
    best = times and min(peers, key=lambda call: statistics.median(times[call]), default=None)
    parts = []
    for call in row.calls:
        text = call
        if times:
            moved = 2 * copy.to.numel() if call == "copy" else size
            text += f" {1e-6 * moved / statistics.median(times[call]):.0f} GB/s"
            if call != "copy":
                of_copy = ratio(times, call, "copy") * size / (2 * copy.to.numel())
                text += f" ({of_copy:.3f} of copy"
                if PAGED in call:
                    text += f", {ratio(times, call, 'ours'):.3f} of ours"
                if call == "ours" and best:
                    text += f", {ratio(times, call, best):.3f} of {best}"
                text += ")"
        if call in peers and "ours" in row.results:
            error = difference(row.results["ours"], row.results[call])
            text += row.check(call, error <= ERROR, f" error {error:.1e}")
        if PAGED in call:
            bits = torch.equal(row.results["ours"][0], row.results[call][0])
            text += row.check(call, bits, " same bits" if bits else " other bits")
        parts.append(text)
    if ours.of["ticket"].any():
        parts.append(row.check("ours", False, "counts of pieces"))
    row.print(parts)
    return row.failed


def prompts(library, title, batch, queries, keys, heads, key_heads, options):
    from torch.nn.attention.bias import causal_lower_right
    q, k, v = (torch.randn(batch, n, h, D, device="cuda", dtype=torch.bfloat16)
               for n, h in ((queries, heads), (keys, key_heads), (keys, key_heads)))
    used = ints([keys] * batch)
    row = Row(f"{title}: {batch} of {queries} queries, {keys} keys, {heads}/{key_heads} heads",
              options)
    ours = OursFew(library, q, k, v, used)
    row.add("ours", ours)
    own_keys, pages = shuffled(k, 64, [keys] * batch)
    paged = OursFew(library, q, own_keys, shuffled(v, 64, [keys] * batch)[0], used, pages)
    row.add(f"{PAGED} 64", paged)
    if cute:
        row.add(PEER, lambda: [flash_attn_func(q, k, v, causal=True)[0]])
        blocks_of = [x.view(-1, BLOCK, key_heads, D) for x in (k, v)]
        table = torch.arange(batch * keys // BLOCK, device="cuda", dtype=torch.int32)
        row.add("FA4 paged by 128", lambda: [flash_attn_varlen_func(
            q, *blocks_of, page_table=table.view(batch, -1), seqused_k=used, causal=True)[0]])
    mask = causal_lower_right(queries, keys)
    for name, backend in (("flash SDPA", SDPBackend.FLASH_ATTENTION),
                          ("cuDNN SDPA", SDPBackend.CUDNN_ATTENTION)):
        def sdpa(backend=backend):
            with sdpa_kernel(backend):
                return [F.scaled_dot_product_attention(
                    *(x.transpose(1, 2) for x in (q, k, v)), attn_mask=mask, enable_gqa=True)
                    .transpose(1, 2)]
        row.add(name, sdpa)

    work = 4e-9 * D * batch * heads * queries * (keys - (queries - 1) / 2)
    times = row.times()
    peers = [call for call in row.calls if call != "ours" and PAGED not in call]
    best = times and min(peers, key=lambda call: statistics.median(times[call]), default=None)
    parts = []
    for call in row.calls:
        text = call
        if times:
            text += f" {work / statistics.median(times[call]):.0f}"
            if call == "ours" and best:
                text += f" ({ratio(times, call, best):.3f} of {best})"
            if PAGED in call:
                text += f" ({ratio(times, call, 'ours'):.3f} of ours)"
        if call != "ours" and "ours" in row.results:
            error = difference(row.results["ours"], row.results[call])
            text += row.check(call, error <= ERROR, f" error {error:.1e}")
        parts.append(text)
    for own in (ours, paged):
        if own.of["ticket"].any():
            parts.append(row.check("ours", False, "counts of pieces"))
    row.print(parts)
    return row.failed


class Copy:
    """On the device: reads and writes a GB each."""

    def __init__(self):
        self.source = torch.randint(0, 256, (1 << 30,), dtype=torch.uint8, device="cuda")
        self.to = torch.empty_like(self.source)

    def __call__(self):
        self.to.copy_(self.source)
        return [self.to[:1]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--rows", default="blocks,decode", help="names of rows, or of their kinds")
    parser.add_argument("--modules", metavar="DIR", help="of programs")
    parser.add_argument("--flex", action="store_true", help="FlexAttention of masks, too")
    parser.add_argument("--native", action="store_true",
                        help="FlashAttention 4 without a block mask, too, where it can")
    parser.add_argument("--compile", action="store_true",
                        help="only FlashAttention 4's kernels, into its cache (with "
                        "FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED=1 in the environment)")
    options = parser.parse_args()
    wanted = set(options.rows.split(","))
    library = load(options.library)
    library.packed.argtypes = [ctypes.c_void_p, Sizes, ctypes.c_void_p, ctypes.c_void_p]
    library.walks.argtypes = [Sizes, Tensors, ctypes.c_void_p]
    library.walks_bytes.argtypes, library.walks_bytes.restype = [Sizes], ctypes.c_long
    library.prompt.argtypes = [ctypes.c_int] * 2 + [Sizes, Tensors, ctypes.c_void_p]
    library.decode.argtypes = [ctypes.c_int] * 3 + [Sizes, Tensors, ctypes.c_void_p]
    torch.manual_seed(0)
    options.scratch = torch.empty(1 << 28, dtype=torch.int8, device="cuda")
    print(torch.cuda.get_device_name(), flush=True)

    failed = False
    for number, name in enumerate(("causal", "window", "documents", "checkerboard")):
        if wanted & {"blocks", name}:
            failed |= blocks(library, name, number, options)
    if wanted & {"blocks", "varlen"}:
        failed |= varlen(library, 4, SEQUENCES, PACKED, options)
    pieces = {  # batch, queries, keys, heads, heads of keys
        "prompt": (1, 512, 32768, 64, 8),
        "prompt of a rank": (1, 512, 32768, 8, 1),
        "long prompt of a rank": (1, 2048, 131072, 4, 1),
        "prompts": (8, 512, 4096, 32, 8),
        "draft": (1, 16, 32768, 64, 8),
        "draft of a rank": (1, 16, 32768, 8, 1),
        "one head": (1, 4096, 4096, 1, 1),
    }
    with torch.no_grad():
        for name, sizes in pieces.items():
            if wanted & {"prompts", name}:
                failed |= prompts(library, name, *sizes, options)
    rows = {  # lengths, heads, heads of keys, d
        "lognormal": (lognormal(), 64, 8, 128),
        "long": ([131072], 64, 8, 128),
        "eight": ([4096] * 8, 64, 8, 128),
        "many": ([1000] * 256, 64, 8, 128),
        "d64": (lognormal(), 64, 8, 64),
        "group16": (lognormal(), 128, 8, 128),
    }
    if wanted & {"decode", *rows}:
        copy = Copy()
        with torch.no_grad():
            for name, sizes in rows.items():
                if wanted & {"decode", name}:
                    failed |= decode(library, name, *sizes, copy, options)
    sys.exit(failed)


if __name__ == "__main__":
    main()
