#!/usr/bin/env python3
"""Tokens to their experts and back on N GPUs: rows that are fetched, beside all rows
gathered and sums scattered, and torch's all-to-alls, in one run.

    python3 bench/gpu/experts.py compile FOLDER --gpus N [--tools build/bin]
    mpirun -n N python3 bench/gpu/experts.py run FOLDER

Each of TOKENS tokens of WIDTH numbers in bf16 goes to two of 32 experts, chosen at
random, which square it; the weighted sum of both comes back. All are split over the GPUs.
Torch's sorts tokens by expert, sends the counts (for which the host waits), the rows, and
the results back by `all_to_all_single`. The modules know how many rows there are on the
GPUs alone. Each result is held against the sum in float64. Readings alternate, ROUNDS
times, the slowest rank's: STEPS steps between two events.

PYTHONPATH has the package (python/ of a clone), TESSERA_ROOT a folder with the library in
its lib.
"""
import argparse
import os
import pathlib
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPERTS, TOP = 32, 2


def program(args, fetches):
    step = ' {tv.step = "fetch"}' if fetches else ""
    t, h, e, k = args.tokens, args.width, EXPERTS, TOP
    capacity = t * k // e * 5 // 4
    return f"""#m = #tv.mesh<ep = {args.gpus}>
!x = tensor<{t}x{h}xbf16, #tv.view<#m, [did(ep) * _, _]>>
!choice = tensor<{t}x{k}xi32, #tv.view<#m, [did(ep) * _, _]>>
!weight = tensor<{t}x{k}xbf16, #tv.view<#m, [did(ep) * _, _]>>
!b = tensor<{e}x{capacity}x{h}xbf16, #tv.view<#m, [did(ep) * _, _, _]>>
!count = tensor<{e}xi32>
!slot = tensor<{t}x{k}xi32>
func.func @main(%x: !x {{tv.name = "x"}}, %experts: !choice {{tv.name = "experts"}},
                %weights: !weight {{tv.name = "weights"}}) -> (!x {{tv.name = "y"}}) {{
  %b, %counts, %slots = tv.dispatch %x, %experts{step} : (!x, !choice) -> (!b, !count, !slot)
  %o = tv.mul %b, %b : (!b, !b) -> !b
  %y = tv.combine %o, %experts, %slots, %weights{step} : (!b, !choice, !slot, !weight) -> !x
  return %y : !x
}}
"""


def compile_both(args):
    args.folder.mkdir(parents=True, exist_ok=True)
    for name, fetches in ("fetched", True), ("gathered", False):
        path = args.folder / f"{name}-{args.gpus}.mlir"
        path.write_text(program(args, fetches))
        subprocess.run([args.tools / "tessera-compile", path, "--target=cuda:sm_90a", "--quiet",
                        "-o", path.with_suffix(".tsr")], check=True)


def run(args):
    from mpi4py import MPI  # before torch: it starts MPI
    import torch
    import torch.distributed as dist

    import tessera

    world = MPI.COMM_WORLD
    rank, ranks = world.Get_rank(), world.Get_size()
    torch.cuda.set_device(rank)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29532")
    dist.init_process_group("nccl", rank=rank, world_size=ranks,
                            device_id=torch.device("cuda", rank))
    torch.manual_seed(rank)
    here = args.tokens // ranks
    x = torch.randn(here, args.width, device="cuda", dtype=torch.bfloat16)
    # Two that differ.
    experts = torch.rand(here, EXPERTS, device="cuda").topk(TOP).indices.int().contiguous()
    weights = torch.rand(here, TOP, device="cuda", dtype=torch.bfloat16)
    exact = x.double().square() * weights.double().sum(1, keepdim=True)

    def by_torch():
        order = experts.flatten().sort(stable=True).indices
        rows = x[order // TOP]
        mine = torch.bincount(experts.flatten() // (EXPERTS // ranks), minlength=ranks)
        theirs = torch.empty_like(mine)
        dist.all_to_all_single(theirs, mine)
        mine, theirs = torch.stack([mine, theirs]).tolist()
        got = torch.empty(sum(theirs), args.width, device="cuda", dtype=x.dtype)
        dist.all_to_all_single(got, rows, theirs, mine)
        back = torch.empty_like(rows)
        dist.all_to_all_single(back, got * got, mine, theirs)
        out = torch.empty_like(back)
        out[order] = back
        return (out.view(here, TOP, args.width) * weights.unsqueeze(2)).sum(1)

    calls, results = {}, {}
    stream = torch.cuda.current_stream()
    for name in "fetched", "gathered":
        y = torch.full_like(x, torch.nan)
        context = tessera.Context(comm=world, backend="cuda", device=rank)
        binding = context.load(args.folder / f"{name}-{ranks}.tsr").bind(
            {"x": x, "experts": experts, "weights": weights, "y": y})
        calls[name] = lambda binding=binding: binding.enqueue(stream)
        results[name] = y
    calls["torch"] = by_torch

    wrong = False
    for name, call in calls.items():
        made = call()
        torch.cuda.synchronize()
        y = results.get(name, made)
        error = ((y.double() - exact).norm() / exact.norm()).item()
        first = y.clone()
        made = call()
        torch.cuda.synchronize()
        same = torch.equal(first, results.get(name, made))
        error, same = world.allreduce(error, MPI.MAX), world.allreduce(int(same), MPI.MIN)
        wrong |= not (error < 1e-2 and same)
        if rank == 0:
            print(f"{ranks} GPUs: {name:9} error {error:.2e}, second run "
                  f"{'the same' if same else 'DIFFERS'}", flush=True)

    def reading(call):
        world.Barrier()
        for _ in range(args.steps):
            call()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(args.steps):
            call()
        end.record()
        torch.cuda.synchronize()
        return max(world.allgather(1e3 * begin.elapsed_time(end) / args.steps))

    times = {name: [] for name in calls}
    for number in range(args.rounds):
        for name in list(calls)[:: 1 if number % 2 else -1]:
            times[name].append(reading(calls[name]))
    if rank == 0:
        for name, taken in times.items():
            ratio = statistics.median(b / a for a, b in zip(times["fetched"], taken))
            print(f"{ranks} GPUs: {name:9} {statistics.median(taken):8.1f} us "
                  f"({min(taken):.1f} to {max(taken):.1f}), {ratio:.3f} of fetched", flush=True)
    MPI.Finalize()
    os._exit(wrong)  # torch's communicator may wait for ever


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["compile", "run"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--gpus", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=16384)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/bin")
    args = parser.parse_args()
    compile_both(args) if args.what == "compile" else run(args)


if __name__ == "__main__":
    main()
