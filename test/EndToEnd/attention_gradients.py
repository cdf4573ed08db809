#!/usr/bin/env python3
"""The reference of tv.attention_grad (tvnumpy) against differences of tv.attention:
`attention_gradients.py TESSERA-OPT`.

Each function takes a loss, the sum of do * o and dlse * lse, of the same attention; its
gradients by central differences of the fourth order in float64 must be those that the
reference computes, with score_grad written or not.
"""
import subprocess
import sys

import numpy as np

import tvnumpy

TOOL = sys.argv[1]
ALIASES = """
!q = tensor<2x4x5x3xf64>
!k = tensor<2x2x6x3xf64>
!v = tensor<2x2x6x2xf64>
!o = tensor<2x4x5x2xf64>
!l = tensor<2x4x5xf64>
"""
HEAD = """
func.func @{name}(%do: !o {{tv.name = "do"}}, %dlse: !l {{tv.name = "dlse"}},
    %q: !q {{tv.name = "q"}}, %k: !k {{tv.name = "k"}}, %v: !v {{tv.name = "v"}},
    %bias: tensor<4x5xf64> {{tv.name = "bias"}}, %rel: tensor<12xf64> {{tv.name = "rel"}})
    -> ({results}) {{
"""
MODS = """
    score_mod (%s: f64, %b: index, %h: index, %qi: index, %ki: index) {
      %six = arith.constant 6 : index
      %d = arith.subi %qi, %ki : index
      %at = arith.addi %d, %six : index
      %c = tv.load %bias[%h, %qi] : tensor<4x5xf64> -> f64
      %r = tv.load %rel[%at] : tensor<12xf64> -> f64
      %t = arith.mulf %s, %r : f64
      %u = arith.addf %t, %c : f64
      %y = math.tanh %u : f64
      tv.yield %y : f64
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %two = arith.constant 2 : index
      %d = arith.subi %qi, %ki : index
      %m = arith.cmpi slt, %d, %two : index
      tv.yield %m : i1
    }
"""
WRITTEN = """
    score_grad (%s: f64, %dy: f64, %b: index, %h: index, %qi: index, %ki: index) {
      %six = arith.constant 6 : index
      %d = arith.subi %qi, %ki : index
      %at = arith.addi %d, %six : index
      %c = tv.load %bias[%h, %qi] : tensor<4x5xf64> -> f64
      %r = tv.load %rel[%at] : tensor<12xf64> -> f64
      %t = arith.mulf %s, %r : f64
      %u = arith.addf %t, %c : f64
      %y = math.tanh %u : f64
      %one = arith.constant 1.0 : f64
      %yy = arith.mulf %y, %y : f64
      %slope = arith.subf %one, %yy : f64
      %du = arith.mulf %dy, %slope : f64
      tv.accumulate 0[%h, %qi], %du : f64
      %dr = arith.mulf %du, %s : f64
      tv.accumulate 1[%at], %dr : f64
      %ds = arith.mulf %du, %r : f64
      tv.yield %ds : f64
    }
"""


def program(causal, mods, written, drops):
    flags = ("scale(0.7)" + (" causal" if causal else "")
             + (" dropout(0.3) seed(1) stream(2)" if drops else ""))
    forward = HEAD.format(name="forward", results="!o, !l") + (
        f"  %o, %lse = tv.attention %q, %k, %v {flags} : (!q, !k, !v) -> (!o, !l)\n"
        + (MODS if mods else "") + "  return %o, %lse : !o, !l\n}\n")
    more = ", tensor<4x5xf64>, tensor<12xf64>" if mods else ""
    names = ", ".join(f"%g{i}" for i in range(5 if mods else 3))
    backward = HEAD.format(name="backward", results=f"!q, !k, !v{more}") + (
        f"  %o, %lse = tv.attention %q, %k, %v {flags} : (!q, !k, !v) -> (!o, !l)\n"
        + (MODS if mods else "")
        + f"  {names} = tv.attention_grad %do, %q, %k, %v, %o, %lse dlse %dlse {flags}"
        + (" captured %bias, %rel" if mods else "")
        + f" : (!o, !q, !k, !v, !o, !l, !l{more}) -> (!q, !k, !v{more})\n"
        + (MODS if mods else "") + (WRITTEN if written else "")
        + f"  return {names} : !q, !k, !v{more}\n}}\n")
    run = subprocess.run([TOOL, "--mlir-print-local-scope"], text=True, check=True,
                         input=ALIASES + forward + backward, capture_output=True)
    return tvnumpy.Program(run.stdout)


def differences(loss, array):
    gradient = np.zeros(array.shape)
    step = 1e-3
    for at in np.ndindex(array.shape):
        value = array[at]
        for factor, by in ((8, 1), (-8, -1), (-1, 2), (1, -2)):
            array[at] = value + by * step
            gradient[at] += factor * loss() / (12 * step)
        array[at] = value
    return gradient


def main():
    random = np.random.default_rng(0)
    shapes = {"do": (2, 4, 5, 2), "dlse": (2, 4, 5), "q": (2, 4, 5, 3), "k": (2, 2, 6, 3),
              "v": (2, 2, 6, 2), "bias": (4, 5), "rel": (12,)}
    inputs = {name: random.standard_normal(shape) for name, shape in shapes.items()}
    for causal, mods, written, drops in (
            (False, False, False, False), (True, False, False, True), (True, True, False, False),
            (False, True, True, True)):
        text = program(causal, mods, written, drops)

        def loss():
            o, lse = text.run(inputs, "forward").values()
            return ((inputs["do"] * o).sum()
                    + (inputs["dlse"] * np.where(np.isfinite(lse), lse, 0)).sum())

        gradients = text.run(inputs, "backward").values()
        for name, gradient in zip(("q", "k", "v", "bias", "rel"), gradients):
            exact = differences(loss, inputs[name])
            error = np.abs(gradient - exact).max() / np.abs(exact).max()
            print(f"causal {causal} mods {mods} written {written} drops {drops} d{name}: "
                  f"{error:.1e}")
            if not error < 1e-8:
                sys.exit(f"d{name} is not the gradient")


if __name__ == "__main__":
    main()
