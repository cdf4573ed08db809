#!/usr/bin/env python3
"""Our attention kernels beside FlashAttention 4 (CuTe) and cuDNN, forward and backward,
on one Hopper GPU with torch; FlashAttention 4's packages in PYTHONPATH, or it drops out.

    nvcc -std=c++17 -O3 -gencode=arch=compute_90a,code=sm_90a -cudart static -shared \\
      -Xcompiler -fPIC -Ilib/Kernels/cuda \\
      -o attention.so lib/Kernels/cuda/attention/bench/attention_kernels.cu
    attention.py attention.so [--rows d128,s4096]

bf16, [batch, position, head, d]. A round has one reading of each in turn, so that all
see the same clock: the median of READINGS launches, each behind a flush of L2 and a
pause. Printed are medians of ROUNDS rounds in TFLOP/s, 4 s s d heads batch, half of that
if causal, 2.5 times that backward; for the backward also the median of a round's ratios
to the best peer, gradients' errors against cuDNN's, and whether two runs are the same
bits. FlashAttention 2 is torch's, where there is dropout."""
import argparse
import ctypes
import math
import statistics
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

try:
    from flash_attn.cute import flash_attn_func
except ImportError as error:
    flash_attn_func = None
    print(f"no FlashAttention 4: {error}")

TOKENS, ROUNDS, READINGS = 16384, 9, 3
FORWARD, BACKWARD, ORDERED = range(3)
FULL, CAUSAL, SOFT_CAP, ROW_BIAS, RELATIVE, DROPPED, DROPPED_CAUSAL, WINDOW = range(8)
KINDS = ("full", "causal", "causal, soft cap", "causal, bias[h, q]", "causal, rel[h, q - k + s]",
         "full, dropout", "causal, dropout", "causal, window")


class Case(NamedTuple):
    """`depths`: of a head of queries and keys, and of values; `model`: whose shape it is."""
    batch: int
    queries: int
    heads: int
    depths: tuple
    kind: int
    key_heads: int = 0  # 0: as many as `heads`
    keys: int = 0  # 0: as many as `queries`
    window: int = 0
    model: str = ""

    def labels(self):
        return {f"b{self.batch}", f"s{self.queries}", f"h{self.heads}", f"d{self.depths[0]}",
                f"kind{self.kind}", "models" if self.model else "table", self.model or "table"}

    def pairs(self):
        """Of queries and keys, that are seen."""
        if self.kind == WINDOW:
            return sum(min(i + 1, self.window) for i in range(self.queries))
        keys = self.keys or self.queries
        return self.queries * keys // (1 if self.kind in (FULL, DROPPED) else 2)

    def __str__(self):
        (d, dv), heads = self.depths, f"{self.heads}"
        if self.key_heads:
            heads += f"/{self.key_heads}"
        keys = f" k{self.keys}" if self.keys else ""
        window = f" of {self.window}" if self.window else ""
        model = f" ({self.model})" if self.model else ""
        return (f"d{d}{f'/{dv}' if d != dv else ''} h{heads} b{self.batch} s{self.queries}{keys} "
                f"{KINDS[self.kind]}{window}{model}")


class Sizes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("batch", "heads", "key_heads", "queries", "keys",
                                              "sequences", "window")]


class Tensors(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in
                ("q", "k", "v", "o", "dout", "dq", "dk", "dv", "lse", "workspace", "ticket", "table",
                 "sums", "documents", "walks", "shares")]


def load(path):
    library = ctypes.CDLL(path)
    library.attention_workspace.restype = ctypes.c_long
    library.attention_workspace.argtypes = [ctypes.c_int, Sizes]
    library.attention.argtypes = [ctypes.c_int] * 4 + [Sizes, Tensors, ctypes.c_void_p]
    return library


class Ours:
    """The kernels on a case's tensors; `mods`: which functors, `has_sums`: with sums for
    the captured table; `sequences`: how many are packed."""

    def __init__(self, library, q, k, v, dout, mods, has_sums=False, sequences=0, window=0,
                 **captured):
        (b, s, h, d), (_, keys, key_heads, _) = q.shape, k.shape
        self.library, self.d, self.dv = library, d, v.shape[3]
        self.mods, self.has_sums = mods, has_sums
        self.sizes = Sizes(b, h, key_heads, s, keys, sequences, window)
        like = torch.empty_like
        size = library.attention_workspace(d, self.sizes)
        self.of = dict(
            q=q, k=k, v=v, o=like(dout), dout=dout, dq=like(q), dk=like(k), dv=like(v),
            lse=torch.empty(b, h, s, device="cuda"),
            workspace=torch.empty(size, dtype=torch.uint8, device="cuda"),
            ticket=torch.zeros(1, dtype=torch.int32, device="cuda"),
            sums=torch.zeros(b, h, 2 * s, device="cuda"), **captured)
        if h != key_heads:
            self.of["shares"] = torch.empty(b, h, keys, d + self.dv, device="cuda",
                                            dtype=q.dtype)
        self.tensors = Tensors(**{name: t.data_ptr() for name, t in self.of.items()})

    def __call__(self, kind):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.library.attention(self.d, self.dv, kind, self.mods, self.sizes, self.tensors, stream)
        results = [self.of[n] for n in (("o",) if kind == FORWARD else ("dq", "dk", "dv"))]
        if kind != FORWARD and self.has_sums:
            results.append(self.of["sums"].sum(0))
        return results


def reading(call, scratch):
    times = []
    for _ in range(READINGS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        scratch.zero_()
        torch.cuda._sleep(2_000_000)
        start.record()
        call()
        end.record()
        times.append((start, end))
    torch.cuda.synchronize()
    return statistics.median(s.elapsed_time(e) for s, e in times)


def rounds(calls, scratch):
    """Of each call by its name, a reading a round."""
    times = {name: [] for name in calls}
    for call in calls.values():
        reading(call, scratch)
    for i in range(ROUNDS):
        order = list(calls)
        for name in order[i % len(order):] + order[:i % len(order)]:
            times[name].append(reading(calls[name], scratch))
    return times


def ratio(times, of, to):
    """Of two calls' speeds."""
    return statistics.median(x / y for x, y in zip(times[to], times[of]))


def difference(xs, references):
    return max(((x.float() - r.float()).norm() / r.float().norm()).item()
               for x, r in zip(xs, references))


def same(call):
    first = [x.clone() for x in call()]
    return all(torch.equal(x, y) for x, y in zip(first, call()))


def cases():
    for d, heads in (128, 16), (64, 32):
        for b, s in (16, 1024), (4, 4096), (1, TOKENS):
            for causal in False, True:
                yield Case(b, s, heads, (d, d), int(causal))
    for kind in SOFT_CAP, ROW_BIAS, RELATIVE:
        yield Case(4, 4096, 16, (128, 128), kind)
    for depth in 128, 64:
        for b, s, kind in ((4, 4096, DROPPED), (4, 4096, DROPPED_CAUSAL),
                           (16, 1024, DROPPED_CAUSAL)):
            yield Case(b, s, 2048 // depth, (depth, depth), kind)
    for heads in 48, 24:
        yield Case(1, 2048, heads, (128, 128), 1)
    for depths, heads in ((96, 96), 16), ((192, 128), 16), ((192, 192), 10), ((256, 256), 8):
        for b, s in (4, 4096), (1, TOKENS):
            for causal in False, True:
                yield Case(b, s, heads, depths, int(causal))
    yield from models()


def models():
    """Shapes of known models, or of a device's share of them."""
    def case(model, b, s, heads, d, kind, key_heads=0, keys=0, window=0):
        return Case(b, s, heads, (d, d), kind, key_heads, keys, window, model)
    yield case("llama-8b", 1, 8192, 32, 128, CAUSAL, 8)
    yield case("llama-8b", 4, 2048, 32, 128, CAUSAL, 8)
    yield case("llama-70b/8", 1, 8192, 8, 128, CAUSAL, 1)
    yield case("llama-70b/8", 1, 4096, 8, 128, CAUSAL, 1)
    yield case("llama-1b", 2, 8192, 32, 64, CAUSAL, 8)
    yield case("gemma-2b", 4, 4096, 8, 256, CAUSAL, 1)
    yield case("mistral", 1, 16384, 32, 128, WINDOW, 8, window=4096)
    yield case("gpt-oss", 1, 8192, 64, 64, WINDOW, 8, window=128)
    yield case("bert", 64, 512, 12, 64, FULL)
    yield case("minilm-like", 128, 128, 12, 64, FULL)
    yield case("vit-l", 64, 577, 16, 64, FULL)
    yield case("whisper", 16, 1500, 20, 64, FULL)
    yield case("sdxl", 8, 4096, 10, 64, FULL)
    yield case("sdxl", 8, 4096, 10, 64, FULL, keys=77)
    yield case("flux", 1, 4608, 24, 128, FULL)
    yield case("wan/8", 1, 32760, 5, 128, FULL)
    yield case("gpt-2", 16, 1024, 12, 64, CAUSAL)
    yield case("short", 64, 256, 16, 128, CAUSAL)
    yield case("odd", 4, 2000, 16, 128, CAUSAL)
    yield case("odd", 1, 4095, 16, 128, CAUSAL)
    yield case("ring", 1, 2048, 16, 128, FULL, keys=16384)


def flex_attention_of(kind, leaves, s):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    import torch._functorch.config
    torch._functorch.config.donated_buffer = False
    torch._dynamo.reset()
    compiled = torch.compile(flex_attention, dynamic=False)
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, s, s, device="cuda")
    *qkv, table = leaves if kind != SOFT_CAP else [*leaves, None]
    mods = {SOFT_CAP: lambda x, b, h, i, j: 50 * torch.tanh(x / 50),
            ROW_BIAS: lambda x, b, h, i, j: x + table[h, i],
            RELATIVE: lambda x, b, h, i, j: x + table[h, i - j + s]}
    return lambda: compiled(*(x.transpose(1, 2) for x in qkv), score_mod=mods[kind],
                            block_mask=mask).transpose(1, 2)


def run(library, case, scratch, deterministic, flex):
    b, s, h, (d, dv), kind = case[:5]
    keys, key_heads = case.keys or s, case.key_heads or h
    sides = (s, h, d), (keys, key_heads, d), (keys, key_heads, dv)
    q, k, v = leaves = [torch.randn(b, *side, device="cuda", dtype=torch.bfloat16,
                                    requires_grad=True) for side in sides]
    dout = torch.randn(b, s, h, dv, device="cuda", dtype=torch.bfloat16)
    table = torch.randn(h, 2 * s, device="cuda")
    has_table = kind in (ROW_BIAS, RELATIVE)
    ours = Ours(library, *(x.detach() for x in leaves), dout, kind, has_table,
                window=case.window, table=table)
    forward = {"ours": lambda: ours(FORWARD)}
    backward = {"ours": lambda: ours(BACKWARD), "ours, ordered": lambda: ours(ORDERED)}
    ours(FORWARD)
    if has_table:
        table.requires_grad_()
        leaves.append(table)

    def add(name, call):
        def grad():
            return torch.autograd.grad(out, leaves, dout, retain_graph=True)
        try:
            out = call()
            if "ordered" not in name:
                forward[name] = lambda: [call().detach()]
            grad()
            backward[name] = grad
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {str(error).strip()[:200]}")

    is_causal, drops = kind not in (FULL, DROPPED), kind in (DROPPED, DROPPED_CAUSAL)

    def torchs(backend):
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(
                *(x.transpose(1, 2) for x in leaves[:3]), is_causal=is_causal,
                dropout_p=0.3 if drops else 0, enable_gqa=key_heads != h).transpose(1, 2)
    if kind in (FULL, CAUSAL) or drops:
        add("cuDNN", lambda: torchs(SDPBackend.CUDNN_ATTENTION))
        if drops:
            add("FA2", lambda: torchs(SDPBackend.FLASH_ATTENTION))
    elif flex and kind != WINDOW:
        add("Flex", flex_attention_of(kind, leaves, s))
    if flash_attn_func and kind in (FULL, CAUSAL, SOFT_CAP, WINDOW):
        options = dict(causal=kind != FULL, softcap=50.0 if kind == SOFT_CAP else 0.0)
        if kind == WINDOW:
            options.update(causal=False, window_size=(case.window - 1, 0))
        add("FA4", lambda: flash_attn_func(*leaves[:3], **options)[0])
        if deterministic:
            add("FA4, ordered",
                lambda: flash_attn_func(*leaves[:3], deterministic=True, **options)[0])
    work = 2e-9 * b * h * case.pairs() * (d + dv)
    print(case)
    rates = {}
    for what, calls, factor in ("forward", forward, 1), ("backward", backward, 2.5):
        with torch.no_grad() if what == "forward" else torch.enable_grad():
            results = {name: [x.clone() for x in call()] for name, call in calls.items()}
            times = rounds(calls, scratch)
        peers = [name for name in calls if name in ("cuDNN", "FA2", "FA4", "Flex")]
        best = min(peers, key=lambda name: statistics.median(times[name]), default=None)
        text = []
        for name, call in calls.items():
            rate = factor * work / statistics.median(times[name])
            rates[what, name] = rate
            part = f"{name} {rate:.0f}"
            if name.startswith("ours") and best:
                of_best = ratio(times, name, best)
                # The gradient of a row's bias is 0 but for rounding.
                same_count = 3 if kind == ROW_BIAS else 4
                error = difference(results[name][:same_count], results[peers[0]])
                # Each drops other weights; attention_dropped_* has the errors.
                differs = "" if drops else f", differs {error:.1e}"
                part += f" ({of_best:.3f} of {best}{differs})"
                rates[what, name, "ratio"] = of_best
            if "ordered" in name:
                part += " same bits" if same(call) else " OTHER BITS"
            text.append(part)
        print(f"  {what}: " + "; ".join(text), flush=True)
    if ("backward", "ours, ordered") in rates:
        of_free = rates["backward", "ours, ordered"] / rates["backward", "ours"]
        print(f"  ordered / free {of_free:.3f}")
    return {what: rates[what, "ours", "ratio"] for what in ("forward", "backward")
            if (what, "ours", "ratio") in rates}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ours", action="store_true", help="without FlashAttention 4")
    parser.add_argument("library")
    parser.add_argument("--rows", default="", help="only rows that have all of these, as "
                        "d64,s4096; models: shapes of known models")
    parser.add_argument("--flex", action="store_true", help="FlexAttention where there is a functor")
    parser.add_argument("--deterministic", action="store_true", help="FlashAttention 4's, too")
    args = parser.parse_args()
    if args.ours:
        global flash_attn_func
        flash_attn_func = None
    library = load(args.library)
    torch.manual_seed(0)
    scratch = torch.empty(1 << 28, dtype=torch.int8, device="cuda")
    ratios = {"forward": [], "backward": []}
    wanted = {part for part in args.rows.split(",") if part}
    if not any(wanted & {"models", case.model} for case in cases()):
        wanted.add("table")
    for case in cases():
        if not wanted <= case.labels():
            continue
        for what, ratio in run(library, case, scratch, args.deterministic, args.flex).items():
            ratios[what].append(ratio)
    for what, all_ in ratios.items():
        if all_:
            mean = math.exp(sum(map(math.log, all_)) / len(all_))
            print(f"{what}: geometric mean {mean:.3f}, least {min(all_):.3f} of the best peer")


if __name__ == "__main__":
    main()
