#!/usr/bin/env python3
"""Time from bind to plan of a generated GPT-3 program.

Prints the pipeline's time for 48 and 96 layers on dp 8 x tp 8, and their ratio:

    bench/compile_time.py --build build --layers 48 96

The program is a chain of GPT-3-style blocks (e 12288, h 96, s 2048, bf16) that
share no code: every layer is propagated and planned on its own.
"""
import argparse
import os
import re
import subprocess
import tempfile

E, HEADS, S, B = 12288, 96, 2048, 8
D, F = E // HEADS, 4 * E


def types():
    t = "bf16"
    return f"""#m = #tv.mesh<dp = 8, tp = 8>
!in = tensor<{B}x{S}x{E}x{t}, #tv.view<#m, [did(dp) * _, _, _]>>
!x = tensor<{B}x{S}x{E}x{t}>
!vec = tensor<{E}x{t}, #tv.view<#m, [_]>>
!qkv_w = tensor<{3 * E}x{E}x{t}, #tv.view<#m, [did(tp) * _, _]>>
!qkv_b = tensor<{3 * E}x{t}, #tv.view<#m, [did(tp) * _]>>
!out_w = tensor<{E}x{E}x{t}, #tv.view<#m, [_, did(tp) * _]>>
!up_w = tensor<{F}x{E}x{t}, #tv.view<#m, [did(tp) * _, _]>>
!up_b = tensor<{F}x{t}, #tv.view<#m, [did(tp) * _]>>
!down_w = tensor<{E}x{F}x{t}, #tv.view<#m, [_, did(tp) * _]>>
!proj = tensor<{B}x{S}x{3 * E}x{t}>
!qkv = tensor<{B}x{S}x{HEADS}x{3 * D}x{t}>
!part = tensor<{B}x{S}x{HEADS}x{D}x{t}>
!head = tensor<{B}x{HEADS}x{S}x{D}x{t}>
!lse = tensor<{B}x{HEADS}x{S}xf32>
!hidden = tensor<{B}x{S}x{F}x{t}>
"""


WEIGHTS = [("g1", "vec"), ("b1", "vec"), ("qw", "qkv_w"), ("qb", "qkv_b"),
           ("ow", "out_w"), ("ob", "vec"), ("g2", "vec"), ("b2", "vec"),
           ("uw", "up_w"), ("ub", "up_b"), ("dw", "down_w"), ("db", "vec")]


def layer(n, x, xt):
    def v(name):
        return f"%{name}_{n}"

    return f"""
  {v('n1')} = tv.layer_norm {x}, {v('g1')}, {v('b1')} epsilon(1.0e-5) : ({xt}, !vec, !vec) -> !x
  {v('p')} = tv.linear {v('n1')}, {v('qw')} bias {v('qb')} : (!x, !qkv_w, !qkv_b) -> !proj
  {v('r')} = tv.reshape {v('p')} : (!proj) -> !qkv
  {v('q0')} = tv.slice {v('r')} offsets [0, 0, 0, 0] : (!qkv) -> !part
  {v('k0')} = tv.slice {v('r')} offsets [0, 0, 0, {D}] : (!qkv) -> !part
  {v('v0')} = tv.slice {v('r')} offsets [0, 0, 0, {2 * D}] : (!qkv) -> !part
  {v('q')} = tv.transpose {v('q0')} perm [0, 2, 1, 3] : (!part) -> !head
  {v('k')} = tv.transpose {v('k0')} perm [0, 2, 1, 3] : (!part) -> !head
  {v('v')} = tv.transpose {v('v0')} perm [0, 2, 1, 3] : (!part) -> !head
  {v('a')}, {v('l')} = tv.attention {v('q')}, {v('k')}, {v('v')} scale({D ** -0.5}) causal : (!head, !head, !head) -> (!head, !lse)
  {v('t')} = tv.transpose {v('a')} perm [0, 2, 1, 3] : (!head) -> !part
  {v('c')} = tv.reshape {v('t')} : (!part) -> !x
  {v('o')} = tv.linear {v('c')}, {v('ow')} bias {v('ob')} : (!x, !out_w, !vec) -> !x
  {v('s')} = tv.add {v('o')}, {x} : (!x, {xt}) -> !x
  {v('n2')} = tv.layer_norm {v('s')}, {v('g2')}, {v('b2')} epsilon(1.0e-5) : (!x, !vec, !vec) -> !x
  {v('u')} = tv.linear {v('n2')}, {v('uw')} bias {v('ub')} : (!x, !up_w, !up_b) -> !hidden
  {v('g')} = tv.gelu tanh {v('u')} : (!hidden) -> !hidden
  {v('d')} = tv.linear {v('g')}, {v('dw')} bias {v('db')} : (!hidden, !down_w, !vec) -> !x
  {v('y')} = tv.add {v('d')}, {v('s')} : (!x, !x) -> !x"""


def program(layers):
    args = ["%x: !in {tv.name = \"x\"}"]
    for n in range(layers):
        args += [f'%{w}_{n}: !{t} {{tv.name = "layer{n}.{w}", tv.role = "weight"}}'
                 for w, t in WEIGHTS]
    body, x, xt = "", "%x", "!in"
    for n in range(layers):
        body += layer(n, x, xt)
        x, xt = f"%y_{n}", "!x"
    return (types() + "func.func @main(" + ",\n    ".join(args) + ") -> !x {"
            + body + f"\n  return {x} : !x\n}}\n")


def seconds(build, layers, passes, folder):
    path = os.path.join(folder, f"gpt{layers}.mlir")
    with open(path, "w") as f:
        f.write(program(layers))
    run = subprocess.run(
        [os.path.join(build, "bin", "tessera-opt"), path, *passes, "--mlir-timing",
         "--mlir-timing-display=list", "--mlir-disable-threading", "-o", os.devnull],
        capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(run.stderr[-2000:])
    times = {}
    for line in run.stderr.splitlines():
        match = re.match(r"\s*([0-9.]+) \(\s*[0-9.]+%\)\s+(.*)", line)
        if match:
            times[match[2]] = times.get(match[2], 0) + float(match[1])
    total = times["Total"] - times.get("Parser", 0) - times.get("Output", 0)
    return total, [(name, t) for name, t in times.items() if name.endswith("Pass")]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--layers", type=int, nargs="+", default=[48, 96])
    parser.add_argument("--passes", nargs="+",
                        default=["--tessera=to=planned"])
    parser.add_argument("--repeat", type=int, default=7, help="the fastest counts")
    args = parser.parse_args()
    previous = None
    with tempfile.TemporaryDirectory() as folder:
        for layers in args.layers:
            total, times = min(seconds(args.build, layers, args.passes, folder)
                               for _ in range(args.repeat))
            ratio = f"  {total / previous:.2f} of the line before" if previous else ""
            print(f"{layers} layers: bind to plan {total:.3f} s{ratio}")
            for name, t in sorted(times, key=lambda e: -e[1])[:8]:
                print(f"    {t:8.4f} s  {name}")
            previous = total


if __name__ == "__main__":
    main()
