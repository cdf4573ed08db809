#!/usr/bin/env python3
"""A step of training of the GPT of examples/gpt, with 4 layers of width 512 and sequences
of 1024, on one GPU or on N, beside PyTorch's, in one run.

    python3 bench/gpu/gpt.py compile FOLDER [--gpus N] [--tools build/bin]
    [mpirun -n N] python3 bench/gpu/gpt.py run FOLDER

Forward, backward, clipping of the norm and AdamW, in bf16 with parameters, gradients and
moments in f32. Of PyTorch's, forward and backward are compiled, with autocast and the
attention that it chooses, also with CUDA graphs (mode "reduce-overhead"); its AdamW is the
fused one, and its norm that of clip_grad_norm_, neither compiled. On several GPUs each has
a part of the batch: PyTorch's is DistributedDataParallel, compiled; with CUDA graphs, all
gradients are averaged in one call between them. Both begin
with the same parameters and see the same batches, of which their losses must agree. The
readings alternate, ROUNDS times: STEPS steps between two events, behind as many that are
not timed, of the slowest rank. --table prints the times of the module's steps.

PYTHONPATH has the package (python/ of a clone), TESSERA_ROOT a folder with the library in
its lib.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples/gpt"))

import numpy as np  # noqa: E402
from program import GPT, HASH, Program, start, text  # noqa: E402

MODEL = GPT(layers=4, width=512, heads=8, length=1024, batch=16, rate=3e-4)


def compile_module(args):
    folder = pathlib.Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "gpt.mlir"
    tokens = text()  # of this Python: another one's may be longer
    np.save(folder / "tokens.npy", tokens)
    source.write_text(str(Program(MODEL, len(tokens), element="f32", compute="bf16")))
    subprocess.run([f"{args.tools}/tessera-compile", source, f"--mesh=dp={args.gpus}",
                    "--target=cuda:sm_90a", "-o", folder / "gpt.tsr"], check=True)


def torch_step(states, tokens, mode, rank, ranks):
    """The same training in PyTorch: `step(k)` gives the loss of step k, of this rank's part
    of the batch. `mode`: of torch.compile."""
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    m, batch = MODEL, MODEL.batch // ranks
    p = {name: torch.nn.Parameter(states[name].clone()) for name in m.parameters()}
    matrices = [t for t in p.values() if t.dim() > 1]
    vectors = [t for t in p.values() if t.dim() == 1]
    # A rate in a tensor is read on the GPU: no new graph for each.
    rate = torch.tensor(0.0, device="cuda")
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": m.decay}, {"params": vectors, "weight_decay": 0.0}],
        lr=rate, betas=m.betas, eps=m.epsilon, fused=True)
    tokens = tokens.long()
    place = torch.arange(m.length, device="cuda")
    h, d = m.heads, m.width // m.heads

    def loss_of(ids, labels):
        with torch.autocast("cuda", torch.bfloat16):
            x = F.embedding(ids, p["embedding"]).bfloat16() + p["positions"].bfloat16()
            for i in range(m.layers):
                def linear(name, x):
                    return F.linear(x, p[f"h{i}.{name}.weight"], p[f"h{i}.{name}.bias"])

                def norm(name, x):
                    return F.layer_norm(x, (m.width,), p[f"h{i}.{name}.weight"],
                                        p[f"h{i}.{name}.bias"]).bfloat16()

                q, k, v = (t.transpose(1, 2) for t in linear("qkv", norm("norm1", x)).view(
                    batch, m.length, h, 3 * d).split(d, -1))
                a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                x = x + linear("out", a.transpose(1, 2).reshape(batch, m.length, m.width))
                up = F.gelu(linear("up", norm("norm2", x)), approximate="tanh")
                x = x + linear("down", up)
            x = F.layer_norm(x, (m.width,), p["norm.weight"], p["norm.bias"]).bfloat16()
            logits = F.linear(x, p["embedding"])
        return F.cross_entropy(logits.float().view(-1, m.vocabulary), labels.view(-1))

    class Loss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, value in p.items():
                self.register_parameter(name.replace(".", "_"), value)

        def forward(self, ids, labels):
            return loss_of(ids, labels)

    overlaps = ranks > 1 and mode == "default"
    compiled = (torch.compile(torch.nn.parallel.DistributedDataParallel(
        Loss(), gradient_as_bucket_view=True)) if overlaps else torch.compile(loss_of, mode=mode))

    def step(k):
        number = k * m.batch + rank * batch + torch.arange(batch, device="cuda")
        first = (number * HASH % 2**32) * (len(tokens) - m.length) >> 32
        at = first[:, None] + place
        loss = compiled(tokens[at], tokens[at + 1])
        loss.backward()
        if ranks > 1 and not overlaps:
            with dist._coalescing_manager():
                for each in p.values():
                    dist.all_reduce(each.grad, op=dist.ReduceOp.AVG)
        torch.nn.utils.clip_grad_norm_(p.values(), m.clip, foreach=True)
        rate.fill_(m.rate * min((k + 1) / m.warmup, 1))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


def run(args):
    import os

    import tessera
    import torch
    import torch.distributed as dist
    rank, ranks, world = 0, 1, None
    if int(os.environ.get("OMPI_COMM_WORLD_SIZE", "1")) > 1:
        from mpi4py import MPI
        world = MPI.COMM_WORLD
        rank, ranks = world.Get_rank(), world.Get_size()
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29532")
    torch.cuda.set_device(rank)
    if world:
        dist.init_process_group("nccl", rank=rank, world_size=ranks,
                                device_id=torch.device("cuda", rank))

    def say(text):
        if rank == 0:
            print(text, flush=True)

    def agreed(value, op):
        """Of all ranks' values."""
        return getattr(np, op)(world.allgather(value)) if world else value

    tokens = torch.from_numpy(np.load(f"{args.folder}/tokens.npy")).cuda()

    def states():
        return {name: torch.from_numpy(np.asarray(value)).cuda()
                for name, value in start(MODEL, np.float32).items()}

    arrays = {"tokens": tokens, "loss": torch.zeros((), device="cuda"), **states()}
    flags = tessera.Flags.AUTOTUNE if args.algorithms else tessera.Flags(0)
    context = tessera.Context(comm=world, backend="cuda", device=rank, flags=flags,
                              algorithms=args.algorithms)
    binding = context.load(f"{args.folder}/gpt.tsr").bind(arrays)
    stream = torch.cuda.current_stream()
    losses = []

    def ours(_):
        binding.enqueue(stream)
        return arrays["loss"]

    calls = {"ours": ours}
    for name, mode in (("torch.compile", "default"), ("with graphs", "reduce-overhead")):
        calls[name] = torch_step(states(), tokens, mode, rank, ranks)
    taken = dict.fromkeys(calls, 0)

    def go(name, steps):
        for _ in range(steps):
            loss = calls[name](taken[name])
            taken[name] += 1
        return loss

    for name in calls:
        own = [float(agreed(float(go(name, 1)), "mean")) for _ in range(args.check)]
        torch.cuda.synchronize()
        losses.append(own)
        say(f"{name:14} losses {own[0]:.4f} to {own[-1]:.4f}")
    off = max(abs(a - b) for other in losses[1:] for a, b in zip(losses[0], other))
    say(f"largest difference of a loss over {args.check} steps: {off:.4f}")
    if not off < 0.02:
        sys.exit("failed: the losses differ")

    times = {name: [] for name in calls}
    for _ in range(args.rounds):
        for name in calls:
            go(name, args.steps)
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            go(name, args.steps)
            end.record()
            torch.cuda.synchronize()
            times[name].append(agreed(begin.elapsed_time(end), "max") / args.steps)
    medians = {name: statistics.median(t) for name, t in times.items()}
    for name, t in medians.items():
        say(f"{name:14} {t:7.3f} ms a step ({min(times[name]):.3f} to {max(times[name]):.3f}), "
            f"{medians['ours'] / t:.3f}")
    hosts = []
    for _ in range(20):
        go("ours", 3)
        hosts.append(binding.host_seconds)
        torch.cuda.synchronize()
    say(f"host time of a step {1e6 * statistics.median(hosts):.1f} us")
    if args.table:
        timed = tessera.Context(comm=world, backend="cuda", device=rank,
                                flags=tessera.Flags.TIME_STEPS)
        binding = timed.load(f"{args.folder}/gpt.tsr").bind(arrays)
        runs = []
        for _ in range(10):
            binding.run()
            runs.append(binding.steps)
        for i, each in enumerate(runs[0]):
            took = statistics.median(one[i].end - one[i].begin for one in runs)
            say(f"  {1e6 * took:8.1f} us  {each.op} {each.text}")
    if world:
        MPI.Finalize()
        os._exit(0)  # graphs of torch hold its communicator


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("compile", "run"))
    parser.add_argument("folder")
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--tools", default=ROOT / "build/bin")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--check", type=int, default=20, metavar="STEPS")
    parser.add_argument("--algorithms", help="a file: measure cuBLASLt's algorithms first")
    parser.add_argument("--table", action="store_true", help="times of the module's steps")
    args = parser.parse_args()
    (compile_module if args.what == "compile" else run)(args)


if __name__ == "__main__":
    main()
