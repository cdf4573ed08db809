#!/usr/bin/env python3
"""Inputs for examples/mlp.mlir, and its result in NumPy.

examples/mlp.py inputs IN.safetensors                    write random inputs
examples/mlp.py check IN.safetensors OUT.safetensors     compare with float64
"""

import sys

import numpy as np
from safetensors.numpy import load_file, save_file


def inputs(path):
    random = np.random.default_rng(0)
    shapes = {"x": (8, 16), "w0": (64, 16), "w1": (16, 64)}
    save_file({name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}, path)


def mlp(x, w0, w1):
    h = x @ w0.T
    g = 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
    return g @ w1.T


def check(in_path, out_path):
    expected = mlp(**{name: array.astype(np.float64) for name, array in load_file(in_path).items()})
    error = np.abs(load_file(out_path)["y"] - expected).max() / np.abs(expected).max()
    if not error < 1e-6:
        sys.exit(f"y differs from float64 by {error:.1e} of its largest element")
    print("y equals float64 within 1e-6 of its largest element")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["inputs", path]:
            inputs(path)
        case ["check", in_path, out_path]:
            check(in_path, out_path)
        case _:
            sys.exit(__doc__)
