#!/usr/bin/env python3
"""The GPT-3 block forward (gpt3.py) on N GPUs, beside its parts and PyTorch, in one run.

    mpirun -n N python3 bench/gpu/block.py --module sp.tsr

With --gradient (gpt3.py --gradient) forward and backward, with the gradients of x and of
the twelve parameters. Sequence parallel, or with --tensor-parallel (gpt3.py tp) x and y
whole on each GPU and all-reduces; biases, causal; --mesh and --dropout as gpt3.py has
them. Alternates, ROUNDS times, in another order each: the matmuls alone (four, or twelve),
the module, PyTorch eager, as a CUDA graph and, with --compile, compiled; after them the
other parts, attention and the collectives.
Each reading is STEPS steps between two events, the slowest rank's, queued behind twice as
many that are not timed: large matmuls bring a GPU to its limit of power, and its clock
then depends on what ran in the last tenths of a second. The table has the medians in ms.
Before that the module's results are held against the same block in float64 (torch,
sharded, with all-reduces) and its own second run: within 4 times the error of a float64
program that rounds each value, and each cotangent, to bf16, and twice in the norm. What
is not fails the run, at its end. With --check that is all.

PYTHONPATH has the package (python/ of a clone), TESSERA_ROOT a folder with the library in
its lib. JAX runs apart (it wants a process of its own): block_jax.py.
"""
import argparse
import json
import os
import random
import statistics
import sys

from mpi4py import MPI  # noqa: I001  (before torch: it starts MPI)
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import gpt3
import tessera

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.Get_rank(), WORLD.Get_size()
TP, SHARD, BATCH, GROUP = RANKS, RANK, 0, None  # of the axis tp; places along tp and dp
S, E, HEADS, D = gpt3.S, gpt3.E, gpt3.HEADS, gpt3.D
BF16 = dict(device="cuda", dtype=torch.bfloat16)
TENSOR_PARALLEL = "--tensor-parallel" in sys.argv
GRADIENT = "--gradient" in sys.argv
# Parameters that every rank has whole: of their gradients it has an addend where it has
# rows of its own.
REPLICATED = ("ln0w", "ln0b", "bo", "ln1w", "ln1b", "b1")
DROPOUT = 0.0


def enter(mesh):
    """Finds this rank's place; its first axis has the largest stride."""
    global TP, SHARD, BATCH, GROUP
    sizes = dict(gpt3.axes(mesh))
    TP, parts = sizes["tp"], sizes.get("dp", 1)
    if TP * parts != RANKS or set(sizes) - {"tp", "dp"}:
        sys.exit(f"--mesh {mesh}: wants dp and tp, {RANKS} ranks")
    stride = {"tp": 1, "dp": TP} if list(sizes)[-1] == "tp" else {"tp": parts, "dp": 1}
    SHARD, BATCH = RANK // stride["tp"] % TP, RANK // stride["dp"] % parts
    for batch in range(parts):
        group = dist.new_group([batch * stride["dp"] + shard * stride["tp"]
                                for shard in range(TP)])
        if batch == BATCH:
            GROUP = group


def parameters():
    """This rank's shards, at random; replicated ones are equal on all ranks."""
    own = torch.Generator("cuda").manual_seed(100 + SHARD)
    same = torch.Generator("cuda").manual_seed(1)
    batch = torch.Generator("cuda").manual_seed(
        1000 + (BATCH if TENSOR_PARALLEL else BATCH * TP + SHARD))

    def normal(*shape, scale=1.0, generator=own):
        return torch.randn(*shape, generator=generator, **BF16) * scale

    n = TP
    rows = 1, S if TENSOR_PARALLEL else S // n, E
    p = {
        "x": normal(*rows, generator=batch),
        "ln0w": 1 + normal(E, scale=.1, generator=same), "ln0b": normal(E, scale=.1, generator=same),
        "wqkv": normal(3 * E // n, E, scale=.01), "bqkv": normal(3 * E // n, scale=.1),
        "wo": normal(E, E // n, scale=.01), "bo": normal(E, scale=.1, generator=same),
        "ln1w": 1 + normal(E, scale=.1, generator=same), "ln1b": normal(E, scale=.1, generator=same),
        "w0": normal(4 * E // n, E, scale=.01), "b0": normal(4 * E // n, scale=.1),
        "w1": normal(E, 4 * E // n, scale=.01), "b1": normal(E, scale=.1, generator=same),
    }
    return {**p, "dy": normal(*rows, generator=batch)} if GRADIENT else p


def gather(x):
    if TENSOR_PARALLEL:
        return x
    out = torch.empty(1, x.shape[1] * TP, x.shape[2], device="cuda", dtype=x.dtype)
    dist.all_gather_into_tensor(out, x.contiguous(), group=GROUP)
    return out


def scatter(x):
    """Sums over ranks."""
    x = x.contiguous()
    if TENSOR_PARALLEL:
        dist.all_reduce(x, group=GROUP)
        return x
    out = torch.empty(1, x.shape[1] // TP, x.shape[2], device="cuda", dtype=x.dtype)
    dist.reduce_scatter_tensor(out, x, group=GROUP)
    return out


class Gather(torch.autograd.Function):
    @staticmethod
    def forward(_, x):
        return gather(x)

    @staticmethod
    def backward(_, dy):
        return scatter(dy)


class Scatter(torch.autograd.Function):
    @staticmethod
    def forward(_, x):
        return scatter(x)

    @staticmethod
    def backward(_, dy):
        return gather(dy)


class Rounded(torch.autograd.Function):
    """To bf16, and so is the cotangent."""

    @staticmethod
    def forward(_, x):
        return x.to(torch.bfloat16).double()

    @staticmethod
    def backward(_, dy):
        return dy.to(torch.bfloat16).double()


# What a product reads of activations, and what becomes of its partial sums.
all_gather, reduce_scatter = Gather.apply, Scatter.apply


def philox(first, shape, stream):
    """tv.random of gpt3.SEED and 16 bits, numbers `first` on, in int64: Philox 4x32-7
    (Salmon et al., SC 2011)."""
    low = 0xffffffff
    block = torch.arange(first // 8, (first + shape.numel()) // 8, device="cuda")
    words = [block & low, block >> 32, torch.full_like(block, stream), torch.zeros_like(block)]
    key = [gpt3.SEED, 0]
    for _ in range(7):
        one, two = words[0] * 0xD2511F53, words[2] * 0xCD9E8D57
        words = [two >> 32 & low ^ words[1] ^ key[0], two & low,
                 one >> 32 & low ^ words[3] ^ key[1], one & low]
        key = [key[0] + 0x9E3779B9 & low, key[1] + 0xBB67AE85 & low]
    halves = torch.stack([x >> s & 0xffff for x in words for s in (0, 16)], -1)
    return halves.double().view(shape) * 2.0 ** -16


def drop(x, stream):
    """Of what `reduce_scatter` gives, by its place in the whole."""
    if not DROPOUT:
        return x
    row = BATCH * S + (0 if TENSOR_PARALLEL else SHARD * x.shape[1])
    kept = philox(row * E, x.shape, stream) >= DROPOUT
    return torch.where(kept, x / (1 - DROPOUT), 0)


def heads(qkv):
    q, k, v = qkv.view(1, S, HEADS // TP, 3 * D).split(D, -1)
    return [t.transpose(1, 2) for t in (q, k, v)]


def sdpa(q, k, v):
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def torch_drop(x, _):
    return F.dropout(x, DROPOUT) if DROPOUT else x


def torch_block(p, drop=torch_drop, seen=None):
    """`seen`, a list, gets what each of the four matmuls reads, and what it gives."""
    def linear(x, *weights):
        y = F.linear(x, *weights)
        if seen is not None:
            seen.append((x, y))
        return y

    x = p["x"]
    qkv = linear(all_gather(F.layer_norm(x, (E,), p["ln0w"], p["ln0b"])), p["wqkv"], p["bqkv"])
    a = sdpa(*heads(qkv)).transpose(1, 2).reshape(1, S, E // TP)
    s = x + drop(reduce_scatter(linear(a, p["wo"])) + p["bo"], 1)
    h = linear(all_gather(F.layer_norm(s, (E,), p["ln1w"], p["ln1b"])), p["w0"], p["b0"])
    return s + drop(reduce_scatter(linear(F.gelu(h, approximate="tanh"), p["w1"])) + p["b1"], 2)


def compiled_block():
    """torch_block for torch.compile, which wants functional collectives. Sequence parallel."""
    import torch.distributed._functional_collectives as functional
    group = GROUP or dist.group.WORLD
    if torch.is_grad_enabled():
        gathered, scattered = (functional.all_gather_tensor_autograd,
                               functional.reduce_scatter_tensor_autograd)
    else:
        gathered, scattered = functional.all_gather_tensor, functional.reduce_scatter_tensor

    def block(p):
        # Without the axis of 1: with it, gathers along an axis that is not the first copy.
        x = p["x"][0]
        n = gathered(F.layer_norm(x, (E,), p["ln0w"], p["ln0b"]), 0, group)
        qkv = F.linear(n, p["wqkv"], p["bqkv"])
        a = sdpa(*heads(qkv)).transpose(1, 2).reshape(S, E // TP)
        s = x + torch_drop(scattered(F.linear(a, p["wo"]), "sum", 0, group) + p["bo"], 1)
        n = gathered(F.layer_norm(s, (E,), p["ln1w"], p["ln1b"]), 0, group)
        g = F.gelu(F.linear(n, p["w0"], p["b0"]), approximate="tanh")
        d = torch_drop(scattered(F.linear(g, p["w1"]), "sum", 0, group) + p["b1"], 2)
        return (s + d)[None]

    return torch.compile(block)


def exact_block(p, rounding):
    """In float64; with `rounding` every value of the program is rounded to bf16."""
    r = Rounded.apply if rounding else lambda t: t
    p = {name: r(t) for name, t in p.items()}
    x = p["x"]
    n = all_gather(r(F.layer_norm(x, (E,), p["ln0w"], p["ln0b"], gpt3.EPSILON)))
    q, k, v = heads(r(F.linear(n, p["wqkv"], p["bqkv"])))
    causal = torch.ones(S, S, device="cuda", dtype=torch.bool).tril()
    each = []
    for h in range(q.shape[1]):
        scores = (q[0, h] @ k[0, h].T * D ** -0.5).masked_fill(~causal, -torch.inf)
        each.append(scores.softmax(-1) @ v[0, h])
    a = r(torch.stack(each)[None]).transpose(1, 2).reshape(1, S, E // TP)
    s = r(r(drop(r(reduce_scatter(F.linear(a, p["wo"])) + p["bo"]), 1)) + x)
    n = all_gather(r(F.layer_norm(s, (E,), p["ln1w"], p["ln1b"], gpt3.EPSILON)))
    g = r(F.gelu(r(F.linear(n, p["w0"], p["b0"])), approximate="tanh"))
    return r(r(drop(r(reduce_scatter(F.linear(g, p["w1"])) + p["b1"]), 2)) + s)


def whole(gradients):
    """Addends of the small ones become sums, all by one all-reduce."""
    if TENSOR_PARALLEL:
        return gradients
    small = [gradients[name] for name in REPLICATED]
    sums = torch.cat(small)
    dist.all_reduce(sums, group=GROUP)
    return {**gradients, **dict(zip(REPLICATED, sums.split(E)))}


def step(block, p):
    """Of `block`, the results that the module has, by name."""
    if not GRADIENT:
        return {"y": block(p)}
    leaves = {name: t.detach().requires_grad_() for name, t in p.items() if name != "dy"}
    y = block(leaves)
    gradients = torch.autograd.grad(y, list(leaves.values()), p["dy"])
    gradients = whole(dict(zip(leaves, gradients)))
    return {"y": y.detach(), **{"d" + name: t for name, t in gradients.items()}}


def check(candidates, p):
    """Of each, which has results by name: for every result the largest share of the
    tolerance that an element is off, and the error's norm by that of the result, over all
    ranks. Partial sums are rounded, too."""
    p = {name: t.double() for name, t in p.items()}
    exact = step(lambda p: exact_block(p, False), p)
    rounded = step(lambda p: exact_block(p, True), p)
    errors = [{} for _ in candidates]
    for name, value in exact.items():
        rounding = (rounded.pop(name) - value).abs()
        largest = value.abs().max()
        dist.all_reduce(largest, op=dist.ReduceOp.MAX)
        allowed = 4 * rounding.amax(-1, keepdim=True) + (TP - 1) * 2.0 ** -8 * largest
        for result, found in zip(candidates, errors):
            off = result[name].double() - value
            relative = off.norm() / value.norm()
            share = torch.maximum((off.abs() / allowed).max(), off.norm() / (2 * rounding.norm()))
            share, relative = share.nan_to_num(torch.inf), relative.nan_to_num(torch.inf)
            for each in (share, relative):
                dist.all_reduce(each, op=dist.ReduceOp.MAX)
            found[name] = share.item(), relative.item()
    return errors


def graphed(call):
    """The same call as a CUDA graph, which reads what the call holds."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        call()

    def replay(_=call):
        graph.replay()
    return replay


def reading(call, steps):
    WORLD.Barrier()
    for _ in range(2 * steps):
        call()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(steps):
        call()
    end.record()
    torch.cuda.synchronize()
    return max(WORLD.allgather(begin.elapsed_time(end) / steps))


def leave(status):
    """Graphs of torch hold its communicator: destroyed, it would wait for them for ever."""
    MPI.Finalize()
    os._exit(status)


def parts(p):
    """Calls of what the block is made of. They read what they read in the block, again and
    again: what they write is apart, and an average stays what it is. (Of zeros and
    infinities a matmul takes less power, and is faster.)"""
    seen = []
    y = torch_block({name: t.detach().requires_grad_(GRADIENT) for name, t in p.items()}, seen=seen)
    given = torch.autograd.grad(y, [made for _, made in seen], p["dy"]) if GRADIENT else ()
    read = [x.detach().clone() for x, _ in seen]
    weights = [p[name] for name in ("wqkv", "wo", "w0", "w1")]
    qkv = [t.requires_grad_(GRADIENT) for t in heads(seen[0][1].detach())]
    dout = (given[1] @ p["wo"]).view(1, S, HEADS // TP, D).transpose(1, 2) if GRADIENT else None
    shard, full = p["x"], torch.randn(1, S, E, **BF16)
    gathered, scattered = torch.empty_like(full), torch.empty(1, S // TP, E, **BF16)
    small = torch.randn(len(REPLICATED) * E, **BF16)

    def matmuls():
        for x, weight in zip(read, weights):
            F.linear(x, weight)
        for x, weight, dy in zip(read, weights, given):
            dy @ weight
            dy[0].T @ x[0]

    def attention():
        out = sdpa(*qkv)
        if GRADIENT:
            torch.autograd.grad(out, qkv, dout)

    def collectives():
        for _ in range(4 if GRADIENT else 2):
            if TENSOR_PARALLEL:
                dist.all_reduce(full, op=dist.ReduceOp.AVG, group=GROUP)
                continue
            dist.all_gather_into_tensor(gathered, shard, group=GROUP)
            dist.reduce_scatter_tensor(scattered, full, group=GROUP)
        if GRADIENT and not TENSOR_PARALLEL:
            dist.all_reduce(small, op=dist.ReduceOp.AVG, group=GROUP)

    return {"twelve matmuls" if GRADIENT else "four matmuls": graphed(matmuls),
            "attention (cuDNN)": graphed(attention), "collectives": graphed(collectives)}


def load(args, flags=tessera.Flags(0), module=None):
    """The module on this rank's GPU; algorithms that the file lacks are measured."""
    if args.algorithms:
        flags |= tessera.Flags.AUTOTUNE
    context = tessera.Context(comm=WORLD if RANKS > 1 else None, backend="cuda", device=RANK,
                              flags=flags, algorithms=args.algorithms)
    return context.load(module or args.module)


def table(args, arrays):
    """Medians of the times of the module's steps, run with events between them."""
    binding = load(args, tessera.Flags.TIME_STEPS).bind(arrays)
    runs = []
    for _ in range(20):
        binding.run()
        runs.append(binding.steps)
    if RANK == 0:
        for i, step in enumerate(runs[0]):
            took = statistics.median(run[i].end - run[i].begin for run in runs)
            print(f"  {1e6 * took:8.1f} us  {step.op} {step.text}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--module", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--json")
    parser.add_argument("--tensor-parallel", action="store_true")
    parser.add_argument("--gradient", action="store_true")
    parser.add_argument("--compile", action="store_true", help="torch.compile, too")
    parser.add_argument("--mesh", default=f"tp={RANKS}")
    parser.add_argument("--algorithms", help="a file: measure cuBLASLt's algorithms first")
    parser.add_argument("--dropout", type=float, default=0.0, metavar="RATE")
    parser.add_argument("--beside", metavar="MODULE",
                        help="another module of the same program, timed as well")
    parser.add_argument("--check", action="store_true", help="times nothing")
    parser.add_argument("--table", action="store_true", help="times of the module's steps")
    args = parser.parse_args()
    if args.gradient and dict(gpt3.axes(args.mesh)).get("dp", 1) > 1:
        parser.error("--gradient: gradients of one batch alone")
    if args.compile and args.tensor_parallel:
        parser.error("--compile: sequence parallel alone")
    global DROPOUT
    DROPOUT = args.dropout
    torch.cuda.set_device(RANK)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29531")
    dist.init_process_group("nccl", rank=RANK, world_size=RANKS,
                            device_id=torch.device("cuda", RANK))
    enter(args.mesh)
    p = parameters()
    results = {"y": torch.full_like(p["x"], torch.nan)}
    if GRADIENT:
        results |= {"d" + name: torch.full_like(t, torch.nan)
                    for name, t in p.items() if name != "dy"}
    arrays = {**p, **results}
    binding = load(args).bind(arrays)
    stream = torch.cuda.current_stream()

    def ours():
        binding.enqueue(stream)

    torch.set_grad_enabled(GRADIENT)
    ours()
    torch.cuda.synchronize()
    first = {name: t.clone() for name, t in results.items()}
    ours()
    torch.cuda.synchronize()
    same = WORLD.allreduce(int(all(torch.equal(first[name], t) for name, t in results.items())),
                           op=MPI.MIN)
    del first
    mine, theirs = check([results, step(lambda p: torch_block(p, drop), p)], p)
    share = max(share for share, _ in mine.values())
    if RANK == 0:
        for name, (part, relative) in mine.items():
            print(f"{RANKS} GPUs: error of {name:5} {relative:.2e} (torch {theirs[name][1]:.2e}), "
                  f"{100 * part:.0f} % of what is allowed (torch {100 * theirs[name][0]:.0f} %)")
        print(f"{RANKS} GPUs: second run {'bit-identical' if same else 'DIFFERS'}", flush=True)
    wrong = not (share <= 1 and same)
    if args.check:
        leave(wrong)
    torch.cuda.empty_cache()  # of the float64 program

    calls = {**parts(p), "ours": ours, "torch eager": lambda: step(torch_block, p),
             "torch graph": graphed(lambda: step(torch_block, p))}
    if args.beside:
        beside = load(args, module=args.beside).bind(arrays)
        calls["ours, beside"] = lambda: beside.enqueue(stream)
    if args.compile:
        block = compiled_block()
        compiled = step(block, p)
        off = (compiled["y"] - results["y"]).float().norm() / results["y"].float().norm()
        if RANK == 0:
            print(f"{RANKS} GPUs: torch compiled, difference of y {off.item():.2e}", flush=True)
        del compiled
        calls["torch compiled"] = lambda: step(block, p)
    times = {name: [] for name in calls}
    # Behind a part that takes little power the next reading is up to 3 % slower.
    light = ["attention (cuDNN)", "collectives"]
    heavy = [name for name in calls if name not in light]
    order = random.Random(0)
    for names in heavy, light:
        for _ in range(args.rounds):
            for name in order.sample(names, len(names)):
                times[name].append(reading(calls[name], args.steps))
    hosts = []  # of queued steps: after a wait a step takes as long as the host has slept deep
    for _ in range(25):
        for _ in range(3):
            ours()
        hosts.append(binding.host_seconds)
        torch.cuda.synchronize()
    medians = {name: statistics.median(t) for name, t in times.items()}
    alone = sum(list(medians.values())[:3])
    if RANK == 0:
        for name, t in medians.items():
            print(f"{RANKS} GPUs: {name:20} {t:7.3f} ms  ({min(times[name]):.3f} to {max(times[name]):.3f})")
        ratios = {"parts": alone, **{name: t for name, t in medians.items() if "torch" in name}}
        print(f"{RANKS} GPUs: ours / " + ", ".join(
            f"{name} {medians['ours'] / t:.3f}" for name, t in ratios.items()), flush=True)
        if args.json:
            json.dump(times, open(args.json, "w"))
        print(f"{RANKS} GPUs: host time of a step {1e6 * statistics.median(hosts):.1f} us, "
              f"{1e6 * min(hosts):.1f} to {1e6 * max(hosts):.1f}", flush=True)
    if args.table:
        table(args, arrays)
    leave(wrong)


if __name__ == "__main__":
    main()
