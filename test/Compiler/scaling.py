#!/usr/bin/env python3
"""Compile time is linear in the length of a program.

A chain of each kind is compiled at n ops and at 2n, to a module and to the plan of its
moves; the ratio of the CPU times must be at most 2.3. While it is beyond the bound, both
are measured again, one after the other, and the ratio is the median of all pairs': how
fast the machine is at the moment, which other work on it decides, is the same in a pair.

    scaling.py --build build                 every chain, moderate n
    scaling.py --build build --ops 5000      up to 10,000 ops, 20,000 of layers

Then a few programs that are no chains are compiled, or refused, in a moment: many axes,
an op of many operands, calls that double; and moves on 24,576 devices are planned. A step of
training of 96 layers has as many kernels as one of 2.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BOUND = 2.3
ATTEMPTS = 25
X = "tensor<64x64xf32>"
XD = "tensor<64x64xf32, #tv.view<#m, [did(tp) * _, _]>>"
XL = "#m = #tv.mesh<tp = 2>\n"


def function(body, last, arguments="", declarations=""):
    """@main of `body`, whose first value is %v0 and whose last is `last`."""
    return (f"{XL}{declarations}func.func @main(%v0: {XD}{arguments}) -> {X} {{\n{body}"
            f"  return {last} : {X}\n}}\n")


def chain(line, first=XD, arguments="", declarations=""):
    """A program of n lines; `line(i, type)` makes %v{i+1} of %v{i} of that type."""
    def program(n):
        body = "".join(line(i, first if i == 0 else X) for i in range(n))
        return function(body, f"%v{n}", arguments, declarations)
    return program


def unary(op):
    return chain(lambda i, t: f"  %v{i + 1} = {op} %v{i} : ({t}) -> {X}\n")


def reduction(i, t):
    return (f"  %r{i} = tv.reduce sum %v{i} dims [{i % 2}] : ({t}) -> tensor<64xf32>\n"
            f"  %v{i + 1} = tv.broadcast %r{i} dims [{i % 2}] : (tensor<64xf32>) -> {X}\n")


def reshape(i, t):
    return (f"  %r{i} = tv.reshape %v{i} : ({t}) -> tensor<8x8x64xf32>\n"
            f"  %v{i + 1} = tv.reshape %r{i} : (tensor<8x8x64xf32>) -> {X}\n")


def concat(i, t):
    half = "tensor<32x64xf32>"
    return (f"  %a{i} = tv.slice %v{i} offsets [0, 0] : ({t}) -> {half}\n"
            f"  %b{i} = tv.slice %v{i} offsets [32, 0] : ({t}) -> {half}\n"
            f"  %v{i + 1} = tv.concat %b{i}, %a{i} dim 0 : ({half}, {half}) -> {X}\n")


def linear(i, t):
    return f"  %v{i + 1} = tv.linear %v{i}, %w : ({t}, {X}) -> {X}\n"


def add(i, t):
    other = f"%v{i - 1}" if i else "%v0"
    before = X if i > 1 else XD
    return f"  %v{i + 1} = tv.add %v{i}, {other} : ({t}, {before}) -> {X}\n"


def call(i, t):
    if i == 0:
        return f"  %v1 = tv.gelu tanh %v0 : ({t}) -> {X}\n"
    return f"  %v{i + 1} = func.call @f(%v{i}) : ({X}) -> {X}\n"


def nested(n):
    """n functions, each of which calls the one before."""
    text = "".join(
        f"func.func private @f{i}(%v0: {X}) -> {X} {{\n"
        f"  %v1 = tv.gelu tanh %v0 : ({X}) -> {X}\n"
        + (f"  %v2 = func.call @f{i - 1}(%v1) : ({X}) -> {X}\n" if i else "")
        + f"  return %v{2 if i else 1} : {X}\n}}\n" for i in range(n))
    body = (f"  %v1 = tv.gelu tanh %v0 : ({XD}) -> {X}\n"
            f"  %v2 = func.call @f{n - 1}(%v1) : ({X}) -> {X}\n")
    return function(body, "%v2", declarations=text)


def of_any_size(i, t):
    return f"  %v{i + 1} = tv.call @f(%v{i}) : ({t}) -> {X}\n"


def moves(i, t):
    """A product that is summed over devices: a collective each."""
    return (f"  %h{i} = tv.linear %v{i}, %u : ({t}, !u) -> {X}\n"
            f"  %v{i + 1} = tv.linear %h{i}, %d : ({X}, !d) -> {X}\n")


def layers(n):
    """Layers with weights of their own."""
    arguments = "".join(f", %u{i}: !u, %d{i}: !d" for i in range(n))
    body = ""
    for i in range(n):
        t = XD if i == 0 else X
        body += (f"  %n{i} = tv.softmax %v{i} dim 1 : ({t}) -> {X}\n"
                 f"  %h{i} = tv.linear %n{i}, %u{i} : ({X}, !u) -> {X}\n"
                 f"  %g{i} = tv.gelu tanh %h{i} : ({X}) -> {X}\n"
                 f"  %d{i}_ = tv.linear %g{i}, %d{i} : ({X}, !d) -> {X}\n"
                 f"  %v{i + 1} = tv.add %d{i}_, %v{i} : ({X}, {t}) -> {X}\n")
    return function(body, f"%v{n}", arguments, SPLIT)


def step(n):
    """A step of as many states: a program of few ops for its arguments and results."""
    arguments = ", ".join(f'%w{i}: !u {{tv.name = "w{i}", tv.role = "state"}}' for i in range(n))
    results = ", ".join(f'!u {{tv.name = "w{i}"}}' for i in range(n))
    body = "".join(f"  %n{i} = tv.add %w{i}, %v0 : (!u, {XD}) -> !u\n" for i in range(n))
    return (f"{XL}{SPLIT}func.func @main(%v0: {XD}, {arguments}) -> ({results}) {{\n{body}"
            f"  return {', '.join(f'%n{i}' for i in range(n))} : {', '.join(['!u'] * n)}\n}}\n")


SPLIT = ("!u = tensor<64x64xf32, #tv.view<#m, [did(tp) * _, _]>>\n"
         "!d = tensor<64x64xf32, #tv.view<#m, [_, did(tp) * _]>>\n")
BODY = (f"func.func private @f(%x: {X}) -> {X} {{\n  %y = tv.gelu tanh %x : ({X}) -> {X}\n"
        f"  return %y : {X}\n}}\n")
OF_ANY_SIZE = BODY.replace("64x64", "?x?")
# Ops a link, and the program of n links.
CHAINS = {
    "gelu": (1, unary("tv.gelu tanh")),
    "silu": (1, unary("tv.silu")),
    "add": (1, chain(add)),
    "linear": (1, chain(linear, arguments=f", %w: {X}")),
    "moves": (2, chain(moves, arguments=", %u: !u, %d: !d", declarations=SPLIT)),
    "transpose": (1, chain(lambda i, t: f"  %v{i + 1} = tv.transpose %v{i} perm [1, 0]"
                                        f" : ({t}) -> {X}\n")),
    "reshape": (2, chain(reshape)),
    "reduce": (2, chain(reduction)),
    "concat": (3, chain(concat)),
    "call": (1, chain(call, declarations=BODY)),
    "nested call": (1, nested),
    "tv.call": (1, chain(of_any_size, declarations=OF_ANY_SIZE)),
    "layer": (5, layers),
    "step": (1, step),
}


class Compiler:
    def __init__(self, build, folder):
        self.tool = str(Path(build, "bin", "tessera-compile").resolve())
        self.path = Path(folder, "program.mlir")

    def run(self, text, *flags):
        """CPU seconds and MiB of compiling a program, and its error if there is one."""
        self.path.write_text(text)
        process = subprocess.Popen([self.tool, self.path.name, "--quiet", *flags, "-o", os.devnull],
                                   stderr=subprocess.PIPE, text=True, cwd=self.path.parent)
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):
            sys.exit(f"tessera-compile ended with {process.returncode}: {said[-1000:]}")
        return used.ru_utime + used.ru_stime, used.ru_maxrss >> 10, said

    def count(self, text, what, *flags):
        """How often the output of a compilation has `what`."""
        self.path.write_text(text)
        return subprocess.run([self.tool, self.path.name, "--quiet", *flags], check=True,
                              stdout=subprocess.PIPE, text=True,
                              cwd=self.path.parent).stdout.count(what)

    def compile(self, text, *flags):
        time, memory, said = self.run(text, *flags)
        if said:
            sys.exit(f"does not compile: {said[:1000]}")
        return time, memory


def check_chain(compiler, name, ops, flags):
    """Whether twice the program takes at most BOUND times the time."""
    per_link, program = CHAINS[name]
    short, long = program(ops // per_link), program(2 * ops // per_link)
    pairs = []
    for _ in range(ATTEMPTS):
        pairs.append([compiler.compile(text, *flags)[0] for text in (short, long)])
        ratio = statistics.median(second / first for first, second in pairs)
        if ratio <= BOUND:
            break
    first, second = map(min, zip(*pairs))
    print(f"{name:12} {ops:6} ops {first:6.2f} s, {2 * ops:6} ops {second:6.2f} s, "
          f"{ratio:.2f} times in {len(pairs)}  {' '.join(flags)}", flush=True)
    return ratio <= BOUND


def doubling(n):
    """n functions, each of which calls the one below twice."""
    text = "".join(
        f"func.func private @f{i}(%v0: {X}) -> {X} {{\n"
        + (f"  %v1 = func.call @f{i - 1}(%v0) : ({X}) -> {X}\n"
           f"  %v2 = func.call @f{i - 1}(%v1) : ({X}) -> {X}\n" if i else
           f"  %v2 = tv.gelu tanh %v0 : ({X}) -> {X}\n")
        + f"  return %v2 : {X}\n}}\n" for i in range(n))
    body = (f"  %v1 = tv.gelu tanh %v0 : ({XD}) -> {X}\n"
            f"  %v2 = func.call @f{n - 1}(%v1) : ({X}) -> {X}\n")
    return function(body, "%v2", declarations=text)


def product(axes):
    """A product whose operands lie over many axes, in other orders."""
    names = [f"a{i}" for i in range(axes)]
    def did(some):
        return " * ".join([f"did({axis})" for axis in some] + ["_"])
    mesh = ", ".join(f"{name} = 2" for name in names)
    x = f"tensor<4096x4096xf32, #tv.view<#m, [{did(names)}, _]>>"
    return (f"#m = #tv.mesh<{mesh}>\n"
            f"func.func @main(%x: {x}, %w: {x}) -> tensor<4096x4096xf32> {{\n"
            f"  %y = tv.linear %x, %w : ({x}, {x}) -> tensor<4096x4096xf32>\n"
            f"  return %y : tensor<4096x4096xf32>\n}}\n")


def wide_concat(n):
    t, y = "tensor<4x8xf32, #tv.view<#m, [_, did(tp) * _]>>", f"tensor<{4 * n}x8xf32>"
    arguments = ", ".join(f"%x{i}: {t}" for i in range(n))
    inputs = ", ".join(f"%x{i}" for i in range(n))
    return (f"{XL}func.func @main({arguments}) -> {y} {{\n"
            f"  %y = tv.concat {inputs} dim 0 : ({', '.join([t] * n)}) -> {y}\n"
            f"  return %y : {y}\n}}\n")


def sequence_parallel(dp, tp):
    """A layer on dp x tp devices."""
    def of(shape, view=None):
        return f"tensor<{shape}xbf16{f', #tv.view<#m, {view}>' if view else ''}>"
    x, y, h = f"{dp}x2048x12288", of(f"{dp}x2048x12288"), of(f"{dp}x2048x49152")
    split, g = of(x, "[did(dp) * _, did(tp) * _, _]"), of("12288")
    up = of("49152x12288", "[did(tp) * _, _]")
    down = of("12288x49152", "[_, did(tp) * _]")
    return (f"#m = #tv.mesh<dp = {dp}, tp = {tp}>\n"
            f"func.func @main(%x: {split}, %u: {up}, %d: {down}, %g: {g}) -> {split} {{\n"
            f"  %n = tv.rms_norm %x, %g epsilon(1.0e-5) : ({split}, {g}) -> {y}\n"
            f"  %h = tv.linear %n, %u : ({y}, {up}) -> {h}\n"
            f"  %a = tv.gelu tanh %h : ({h}) -> {h}\n"
            f"  %l = tv.linear %a, %d : ({h}, {down}) -> {y}\n"
            f"  %y = tv.add %x, %l : ({split}, {y}) -> {split}\n"
            f"  return %y : {split}\n}}\n")


def training(layers):
    """Forward, backward and AdamW of examples/gpt at the size of GPT-3."""
    sys.path.insert(0, str(ROOT / "examples/gpt"))
    from program import GPT, Program
    model = GPT(layers=layers, width=12288, heads=96, length=2048, batch=16, vocabulary=50304,
                dropout=0.1)
    return str(Program(model, 1 << 20, element="f32", compute="bf16"))


def exchange(dp, tp):
    """Rows of dp x tp devices to the same of tp x dp."""
    def of(view):
        return f"tensor<{6 * dp * tp}x{dp * tp}xf32, #tv.view<#m, [{view} * _, _]>>"
    x, y = of("did(dp) * did(tp)"), of("did(tp) * 3 * did(dp)")
    return (f"#m = #tv.mesh<dp = {dp}, tp = {tp}>\nfunc.func @main(%x: {x}) -> {y} {{\n"
            f"  %y = tv.neg %x : ({x}) -> {y}\n  return %y : {y}\n}}\n")


def check_others(compiler):
    """What took minutes or all memory; now a second, so that 5 are generous."""
    good = True
    def check(name, text, says=""):
        nonlocal good
        time, memory, said = compiler.run(text)
        good &= time < 5 and memory < 2048 and (says in said if says else not said)
        print(f"{name}: {time:.2f} s, {memory} MiB {said[:200].strip()}", flush=True)
    check("calls that double", doubling(40),
          f"inlines here to {2 ** 39} ops, and 'main' becomes {2 ** 39 + 1}")
    check("a product over 12 axes", product(12))
    check("a concat of 2000 operands", wide_concat(2000))
    for name, program, most in (("layer", sequence_parallel, 1.1), ("exchange", exchange, 1.3)):
        _, few = compiler.compile(program(8, 8), "--compile-to=planned")
        time, memory = compiler.compile(program(384, 64), "--compile-to=planned")
        good &= time < 1 and memory < most * few
        print(f"one {name} on 24,576 devices: {time:.2f} s, {memory} MiB, on 64 {few} MiB")
    few, many = (compiler.count(training(layers), "attributes {plan.kernel}", "--mesh", "dp=8,tp=8",
                                "--target=cuda:sm_90a", "--compile-to=kernels")
                 for layers in (2, 96))
    good &= 0 < many <= few
    print(f"a step of training of 96 layers: {many} kernels, of 2 layers {few}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--ops", type=int, default=1500,
                        help="of the shorter chain; 5000 for 10,000 of the longer")
    parser.add_argument("--chains", nargs="+", choices=CHAINS, default=list(CHAINS))
    args = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        compiler = Compiler(args.build, folder)
        for name in args.chains:
            # In layers each kind of op meets each other: pairs of them show late.
            ops = args.ops * (2 if name == "layer" else 1)
            for flags in ((), ("--compile-to=planned",)):
                good &= check_chain(compiler, name, ops, flags)
        good &= check_others(compiler)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
