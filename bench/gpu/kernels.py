#!/usr/bin/env python3
"""Compiled pointwise, norm and transposition kernels, and those of training, on one GPU,
beside torch.compile's for the same ops and the copy bandwidth, in one run.

    kernels.py compile BUILD OUT                      here: a module for each case
    kernels.py run OUT      on a machine with a GPU and torch; PYTHONPATH has the package,
                            TESSERA_ROOT a folder with the library in its lib

Random data; every result is held against torch in float32 first. A reading is STEPS
runs queued back to back (as CUDA graphs, both) over data that no cache holds, between
two events; the table has medians of ROUNDS readings, taken in turns. Bandwidth counts
the bytes that a kernel must move: each input read once, each result written once. Of the
gradient of an embedding torch's is the kernel that it has for it, by calls; a second run of
ours must give the same bits.
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
W, RATE, STEP = tensor(12288, 12288, element="f32"), tensor(element="f32"), tensor(element="i64")


def norm_grad(op, parameters):
    """The backward of a norm, with its parameters' gradients: arguments, body, results and
    the function that it is of."""
    n = 1 + parameters
    each = [X] + [VEC] * parameters
    types, names = ", ".join(each), ", ".join(f"%{i}" for i in range(n))
    given = ", ".join(f"%{i}: {t}" for i, t in enumerate(each))
    function = (f"func.func private @norm({given}) -> {X} {{\n"
                f"  %y = tv.{op} {names} epsilon(1.0e-5) : ({types}) -> {X}\n  return %y : {X}\n}}\n")
    body = (f"%g:{n + 1} = tv.gradient @norm({names}) of [0] with (%{n}) to {list(range(n))} "
            f": ({types}, {X}) -> ({X}, {types})")
    results = {f"%g#{i + 1}": X if i == 0 else VEC for i in range(n)}
    return [*each, X], body, results, function


def table_grad(element):
    table, ids, dy = (tensor(50304, 1024, element=element), tensor(65536, element="i32"),
                      tensor(65536, 1024, element=element))
    return [dy, ids], f"""%z = tv.constant dense<0.0> : tensor<{element}> : () -> {table}
  %y = tv.scatter sum %z, %1, %0 dim 0 : ({table}, {ids}, {dy}) -> {table}""", table


# name: (arguments, body that ends in %y, result); or, of several results, their values and
# types, and a function before. A state has the name of its argument.
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
    "layer norm, backward": norm_grad("layer_norm", 2),
    "rms norm, backward": norm_grad("rms_norm", 1),
    "AdamW": ([W, W, W, W, RATE, STEP], f"""%one = tv.constant dense<1.0> : tensor<f32> : () -> {RATE}
  %n:3 = tv.adamw %0, %1, %2, %3 scale %one rate %4 step %5 betas(0.9, 0.95) epsilon(1.0e-8) decay(0.1)
    : ({W}, {W}, {W}, {W}, {RATE}, {RATE}, {STEP}) -> ({W}, {W}, {W})
  %y = tv.cast %n#0 : ({W}) -> {tensor(12288, 12288)}""",
              {"%n#0": W, "%n#1": W, "%n#2": W, "%y": tensor(12288, 12288)}, ""),
    "embedding, backward": table_grad(T),
    "embedding, backward, f32": table_grad("f32"),
}
STATES = {"AdamW": 3}  # how many of the first arguments and results


def parts_of(name):
    """A case's arguments and body; its results by name, as values and types; its function."""
    arguments, body, results, *functions = CASES[name]
    if isinstance(results, str):
        results = {"%y": results}
    states = STATES.get(name, 0)
    named = {f"x{i}" if i < states else "y" + str(i - states or ""): (value, type_)
             for i, (value, type_) in enumerate(results.items())}
    return arguments, body, named, "".join(functions)


def program(name):
    arguments, body, results, function = parts_of(name)
    view = "#tv.view<#tv.mesh<tp = 1>, [{}]>"

    def whole(type_):
        return type_[:-1] + ", " + view.format(", ".join("_" * type_.count("x"))) + ">"

    def attributes(i):
        state = ', tv.role = "parameter"' if i < STATES.get(name, 0) else ""
        range_ = ", tv.range = [1, 9]" if arguments[i] == STEP else ""
        return f'{{tv.name = "x{i}"{state}{range_}}}'

    given = ", ".join(f"%a{i}: {whole(t)} {attributes(i)}" for i, t in enumerate(arguments))
    made = ", ".join(f'{type_} {{tv.name = "{port}"}}' for port, (_, type_) in results.items())
    return (function + f"func.func @main({given}) -> ({made}) {{\n"
            + "".join(f"  %{i} = tv.constrain %a{i} : ({whole(t)}) -> {t} to {view.format(', '.join('_' * t.count('x')))}\n"
                      for i, t in enumerate(arguments))
            + f"  {body}\n  return {', '.join(value for value, _ in results.values())} : "
            + ", ".join(type_ for _, type_ in results.values()) + "\n}\n")


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
    rms = lambda x, w: F.rms_norm(x, (E,), w, 1e-5)  # noqa: E731

    def backward(forward):
        def gradients(*given):
            leaves = [x.detach().requires_grad_() for x in given[:-1]]
            return torch.autograd.grad(forward(*leaves), leaves, given[-1])
        gradients.forward = forward
        return gradients

    def adamw(w, m, v, g, rate, step):
        m.mul_(0.9).add_(g, alpha=0.1)
        v.mul_(0.95).addcmul_(g, g, value=0.05)
        mean, square = m / (1 - 0.9 ** step), v / (1 - 0.95 ** step)
        w.sub_(rate * (mean / (square.sqrt() + 1e-8) + 0.1 * w))
        return w, m, v, w.bfloat16()

    def table(dy, ids):
        return torch.ops.aten.embedding_dense_backward(dy, ids, 50304, -1, False)

    return {
        "add": lambda x, y: x + y, "gelu": gelu, "bias, gelu": lambda x, b: gelu(x + b),
        "silu, mul": lambda x, y: F.silu(x) * y,
        "dropout, add": lambda x, y: F.dropout(x, 0.1) + y,
        "layer norm": norm, "add, layer norm": lambda x, y, w, b: norm(x + y, w, b),
        "rms norm": rms, "layer norm, backward": backward(norm), "rms norm, backward": backward(rms),
        "AdamW": adamw, "embedding, backward": table, "embedding, backward, f32": table,
        "softmax": lambda x: x.softmax(-1), "row sum": lambda x: x.sum(1),
        "column sum": lambda x: x.sum(0), "whole sum": lambda x: x.sum(),
        "narrow column sum": lambda x: x.sum(0),
        "heads to front": lambda x: gelu(x.transpose(1, 2).contiguous()),
        "matrix transposed": lambda x: gelu(x.T.contiguous()),
        "cross entropy": lambda x, t: F.cross_entropy(x.float(), t.long(), reduction="none").to(x.dtype),
    }


def run_all(out, rounds, steps, only, alone):
    import torch
    import torch._functorch.config

    import tessera
    torch.manual_seed(0)
    torch._functorch.config.donated_buffer = False  # a backward runs again and again
    dtypes = {"bf16": torch.bfloat16, "f32": torch.float32, "i32": torch.int32}

    def inputs(name):
        made = [make(t) for t in parts_of(name)[0]]
        for moment in made[1:STATES.get(name, 0)]:
            moment.zero_()
        return made

    def make(type_, empty=False):
        *shape, element = type_[len("tensor<"):-1].split("x")
        shape = list(map(int, shape))
        if type_ == STEP:
            return torch.ones((), device="cuda", dtype=torch.int64)
        if type_ == RATE:
            return torch.full((), 1e-3, device="cuda")
        if element == "i32":
            return torch.randint(0, 50304, shape, device="cuda", dtype=torch.int32)
        if empty:
            return torch.full(shape, math.nan, device="cuda", dtype=dtypes[element])
        return torch.randn(shape, device="cuda").to(dtypes[element])

    def compiled(function, xs):
        """A call of torch.compile's; of a backward alone, behind one forward. None where
        torch has a kernel of its own."""
        if function is torch_of["embedding, backward"]:
            return None
        if not hasattr(function, "forward"):
            call = torch.compile(function)
            return lambda: call(*xs)
        leaves = [x.detach().requires_grad_() for x in xs[:-1]]
        # A backward runs on its forward's stream, and no capture on the default one.
        with torch.cuda.stream(side):
            y = torch.compile(function.forward)(*leaves)
        return lambda: torch.autograd.grad(y, leaves, xs[-1], retain_graph=True)

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

    side = torch.cuda.Stream()
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
        results, states = parts_of(name)[2], STATES.get(name, 0)
        xs = inputs(name)
        given = {f"x{j}": x for j, x in enumerate(xs)}
        ys = {port: make(type_, empty=True) for port, (_, type_) in results.items() if port not in given}
        context = tessera.Context(backend="cuda", device=0)
        binding = context.load(f"{out}/{i}.tsr").bind({**given, **ys})
        wide = [(x.float() if x.is_floating_point() else x).clone() for x in xs]
        binding.enqueue(torch.cuda.current_stream())
        torch.cuda.synchronize()
        if name != "dropout, add":  # its numbers are checked elsewhere
            want = torch_of[name](*wide)
            for port, exact in zip(results, want if isinstance(want, tuple) else [want]):
                got = {**given, **ys}[port]
                error = ((got.float() - exact.float()).norm() / exact.float().norm()).item()
                if not error < 1e-2:
                    sys.exit(f"{name}: error of {port} {error}")
            del want, exact, got
        del wide
        if not states:
            first = {port: y.clone() for port, y in ys.items()}
            binding.enqueue(torch.cuda.current_stream())
            torch.cuda.synchronize()
            if not all(torch.equal(first[port], y) for port, y in ys.items()):
                sys.exit(f"{name}: a second run gives other bits")
            del first
        # Our run launches a graph of one kernel; inside a capture of many it costs what theirs does.
        capture = torch.cuda.CUDAGraph()
        with torch.cuda.graph(capture, capture_error_mode="thread_local"):
            for _ in range(steps):
                binding.enqueue(torch.cuda.current_stream())
        if alone:
            times = [reading(capture.replay, 2) / steps for _ in range(rounds)]
            print(f"{name:18} ours {1e3 * statistics.median(times):7.1f} us", flush=True)
            context.close()
            del capture, xs, ys, given
            continue
        theirs = compiled(torch_of[name], xs)
        if theirs is None:
            def replay():
                for _ in range(steps):
                    torch_of[name](*xs)
        else:
            torch.cuda.synchronize()
            with torch.cuda.stream(side):
                theirs()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=side, capture_error_mode="thread_local"):
                for _ in range(steps):
                    theirs()
            replay = graph.replay
        times = {"ours": [], "torch": []}
        for _ in range(rounds):
            times["ours"].append(reading(capture.replay, 2) / steps)
            times["torch"].append(reading(replay, 2) / steps)
        ours, torch_time = (statistics.median(times[k]) for k in ("ours", "torch"))
        moved = sum(x.nbytes for x in xs) + sum({**given, **ys}[port].nbytes for port in results)
        bandwidth = moved / 1e9 / ours  # TB/s of ms
        ratios.append(torch_time / ours)
        shares.append(bandwidth / copy)
        print(f"{name:18} ours {1e3 * ours:7.1f} us, {bandwidth:.2f} TB/s, {100 * bandwidth / copy:3.0f} % of copy; "
              f"torch.compile {1e3 * torch_time:7.1f} us, {torch_time / ours:.2f} of ours", flush=True)
        context.close()
        del capture, theirs, replay, xs, ys, given
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
