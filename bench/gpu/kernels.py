#!/usr/bin/env python3
"""Compiled pointwise, norm and transposition kernels on one GPU, beside torch.compile's
for the same ops and the copy bandwidth, in one run.

    kernels.py compile BUILD OUT                      here: a module for each case
    kernels.py run OUT      on a machine with a GPU and torch; PYTHONPATH has the package,
                            TESSERA_ROOT a folder with the library in its lib

Random data; every result is held against torch in float32 first. A reading is STEPS
runs queued back to back (as CUDA graphs, both) over data that no cache holds, between
two events; the table has medians of ROUNDS readings, taken in turns. Bandwidth counts
the bytes that a kernel must move: each input read once, each result written once.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys

ROWS, E = 8192, 12288
T = "bf16"


def tensor(*shape, element=T):
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


X, VEC = tensor(ROWS, E), tensor(E)
Q, QT = tensor(4, 2048, 96, 128), tensor(4, 96, 2048, 128)
M, MT = tensor(8192, 12288), tensor(12288, 8192)
LOGITS, NARROW = tensor(4096, 50304), tensor(98304, 1024)

# name: (arguments, body that ends in %y, result)
CASES = {
    "add": ([X, X], f"%y = tv.add %0, %1 : ({X}, {X}) -> {X}", X),
    "gelu": ([X], f"%y = tv.gelu tanh %0 : ({X}) -> {X}", X),
    "bias, gelu": ([X, VEC], f"""%b = tv.broadcast %1 dims [1] : ({VEC}) -> {X}
  %s = tv.add %0, %b : ({X}, {X}) -> {X}
  %y = tv.gelu tanh %s : ({X}) -> {X}""", X),
    "silu, mul": ([X, X], f"""%s = tv.silu %0 : ({X}) -> {X}
  %y = tv.mul %s, %1 : ({X}, {X}) -> {X}""", X),
    "dropout, add": ([X, X], f"""%d = tv.dropout %0 rate(0.1) seed(7) stream(1) : ({X}) -> {X}
  %y = tv.add %d, %1 : ({X}, {X}) -> {X}""", X),
    "layer norm": ([X, VEC, VEC],
                   f"%y = tv.layer_norm %0, %1, %2 epsilon(1.0e-5) : ({X}, {VEC}, {VEC}) -> {X}", X),
    "add, layer norm": ([X, X, VEC, VEC], f"""%s = tv.add %0, %1 : ({X}, {X}) -> {X}
  %y = tv.layer_norm %s, %2, %3 epsilon(1.0e-5) : ({X}, {VEC}, {VEC}) -> {X}""", X),
    "rms norm": ([X, VEC], f"%y = tv.rms_norm %0, %1 epsilon(1.0e-5) : ({X}, {VEC}) -> {X}", X),
    "softmax": ([X], f"%y = tv.softmax %0 dim 1 : ({X}) -> {X}", X),
    "row sum": ([X], f"%y = tv.reduce sum %0 dims [1] : ({X}) -> {tensor(ROWS)}", tensor(ROWS)),
    "column sum": ([X], f"%y = tv.reduce sum %0 dims [0] : ({X}) -> {VEC}", VEC),
    "whole sum": ([X], f"%y = tv.reduce sum %0 dims [0, 1] : ({X}) -> {tensor()}", tensor()),
    "narrow column sum": ([NARROW], f"%y = tv.reduce sum %0 dims [0] : ({NARROW}) -> {tensor(1024)}",
                          tensor(1024)),
    "heads to front": ([Q], f"""%t = tv.transpose %0 perm [0, 2, 1, 3] : ({Q}) -> {QT}
  %y = tv.gelu tanh %t : ({QT}) -> {QT}""", QT),
    "matrix transposed": ([M], f"""%t = tv.transpose %0 perm [1, 0] : ({M}) -> {MT}
  %y = tv.gelu tanh %t : ({MT}) -> {MT}""", MT),
    "cross entropy": ([LOGITS, tensor(4096, element="i32")],
                      f"%y = tv.cross_entropy %0, %1 : ({LOGITS}, {tensor(4096, element='i32')}) -> {tensor(4096)}",
                      tensor(4096)),
}


def program(name):
    arguments, body, result = CASES[name]
    view = "#tv.view<#tv.mesh<tp = 1>, [{}]>"

    def whole(type_):
        rank = type_.count("x")
        return type_[:-1] + ", " + view.format(", ".join("_" * rank)) + ">"

    given = ", ".join(f'%{i}: {whole(t)} {{tv.name = "x{i}"}}' for i, t in enumerate(arguments))
    return (f"func.func @main({given.replace('%', '%a')}) -> ({result} {{tv.name = \"y\"}}) {{\n"
            + "".join(f"  %{i} = tv.constrain %a{i} : ({whole(t)}) -> {t} to {view.format(', '.join('_' * t.count('x')))}\n"
                      for i, t in enumerate(arguments))
            + f"  {body}\n  return %y : {result}\n}}\n")


def compile_all(build, out):
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    for i, name in enumerate(CASES):
        source = out / f"{i}.mlir"
        source.write_text(program(name))
        subprocess.run([f"{build}/bin/tessera-compile", source, "--target=cuda:sm_90a",
                        "-o", out / f"{i}.tsr"], check=True)


def references(torch):
    F = torch.nn.functional
    gelu = lambda x: F.gelu(x, approximate="tanh")  # noqa: E731
    norm = lambda x, w, b=None: F.layer_norm(x, (E,), w, b)  # noqa: E731
    return {
        "add": lambda x, y: x + y, "gelu": gelu, "bias, gelu": lambda x, b: gelu(x + b),
        "silu, mul": lambda x, y: F.silu(x) * y,
        "dropout, add": lambda x, y: F.dropout(x, 0.1) + y,
        "layer norm": norm, "add, layer norm": lambda x, y, w, b: norm(x + y, w, b),
        "rms norm": lambda x, w: F.rms_norm(x, (E,), w, 1e-5),
        "softmax": lambda x: x.softmax(-1), "row sum": lambda x: x.sum(1),
        "column sum": lambda x: x.sum(0), "whole sum": lambda x: x.sum(),
        "narrow column sum": lambda x: x.sum(0),
        "heads to front": lambda x: gelu(x.transpose(1, 2).contiguous()),
        "matrix transposed": lambda x: gelu(x.T.contiguous()),
        "cross entropy": lambda x, t: F.cross_entropy(x.float(), t.long(), reduction="none").to(x.dtype),
    }


def run_all(out, rounds, steps, only, alone):
    import torch

    import tessera
    torch.manual_seed(0)
    dtypes = {"bf16": torch.bfloat16, "f32": torch.float32, "i32": torch.int32}

    def make(type_, empty=False):
        *shape, element = type_[len("tensor<"):-1].split("x")
        shape = list(map(int, shape))
        if element == "i32":
            return torch.randint(0, 50304, shape, device="cuda", dtype=torch.int32)
        if empty:
            return torch.full(shape, math.nan, device="cuda", dtype=dtypes[element])
        return torch.randn(shape, device="cuda").to(dtypes[element])

    def reading(call, count):
        for _ in range(2):
            call()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        for _ in range(count):
            call()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / count

    big = torch.randn(2**27, device="cuda")
    target = torch.empty_like(big)
    copy = 2 * big.nbytes / 1e9 / statistics.median(
        reading(lambda: target.copy_(big), 10) for _ in range(5))
    del big, target
    print(f"copy {copy:.2f} TB/s", flush=True)
    torch_of, ratios, shares = references(torch), [], []
    for i, name in enumerate(CASES):
        if only and only not in name:
            continue
        arguments, _, result = CASES[name]
        xs, y = [make(t) for t in arguments], make(result, empty=True)
        context = tessera.Context(backend="cuda", device=0)
        binding = context.load(f"{out}/{i}.tsr").bind(
            {**{f"x{j}": x for j, x in enumerate(xs)}, "y": y})
        binding.enqueue(torch.cuda.current_stream())
        torch.cuda.synchronize()
        wide = [x.float() if x.is_floating_point() else x for x in xs]
        if name != "dropout, add":  # its numbers are checked elsewhere
            want = torch_of[name](*wide)
            error = ((y.float() - want).norm() / want.norm()).item()
            if not error < 1e-2:
                sys.exit(f"{name}: error {error}")
            del want
        del wide
        # Our run launches a graph of one kernel; inside a capture of many it costs what theirs does.
        capture = torch.cuda.CUDAGraph()
        with torch.cuda.graph(capture, capture_error_mode="thread_local"):
            for _ in range(steps):
                binding.enqueue(torch.cuda.current_stream())
        if alone:
            times = [reading(capture.replay, 2) / steps for _ in range(rounds)]
            print(f"{name:18} ours {1e3 * statistics.median(times):7.1f} us", flush=True)
            context.close()
            del capture, xs, y
            continue
        compiled = torch.compile(torch_of[name])
        compiled(*xs)
        theirs = torch.cuda.CUDAGraph()
        with torch.cuda.graph(theirs, capture_error_mode="thread_local"):
            for _ in range(steps):
                compiled(*xs)
        times = {"ours": [], "torch": []}
        for _ in range(rounds):
            times["ours"].append(reading(capture.replay, 2) / steps)
            times["torch"].append(reading(theirs.replay, 2) / steps)
        ours, torch_time = (statistics.median(times[k]) for k in ("ours", "torch"))
        moved = sum(x.nbytes for x in xs) + y.nbytes
        bandwidth = moved / 1e9 / ours  # TB/s of ms
        ratios.append(torch_time / ours)
        shares.append(bandwidth / copy)
        print(f"{name:18} ours {1e3 * ours:7.1f} us, {bandwidth:.2f} TB/s, {100 * bandwidth / copy:3.0f} % of copy; "
              f"torch.compile {1e3 * torch_time:7.1f} us, {torch_time / ours:.2f} of ours", flush=True)
        context.close()
        del capture, theirs, xs, y
        torch._dynamo.reset()
    if alone:
        return
    print(f"geometric mean of torch.compile / ours {math.exp(statistics.fmean(map(math.log, ratios))):.3f}, "
          f"least {min(ratios):.2f}; least share of copy {100 * min(shares):.0f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    compiling = commands.add_parser("compile")
    compiling.add_argument("build")
    compiling.add_argument("out")
    running = commands.add_parser("run")
    running.add_argument("out")
    running.add_argument("--rounds", type=int, default=5)
    running.add_argument("--steps", type=int, default=20)
    running.add_argument("--only", default="")
    running.add_argument("--alone", action="store_true", help="without torch.compile")
    args = parser.parse_args()
    if args.command == "compile":
        compile_all(args.build, args.out)
    else:
        run_all(args.out, args.rounds, args.steps, args.only, args.alone)


if __name__ == "__main__":
    main()
