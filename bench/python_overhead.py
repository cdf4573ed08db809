#!/usr/bin/env python3
"""What a run from Python costs beyond the same run from C.

    PYTHONPATH=python python3 bench/python_overhead.py

A program of one small op is bound once, and run by turns from Python and by a loop in C
(which `cc` compiles here) over the same binding. Prints the median of the rounds, each the
mean of its runs.
"""
import argparse
import ctypes
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np
import tessera

PROGRAM = """#m = #tv.mesh<tp = 1>
!x = tensor<8xf32, #tv.view<#m, [_]>>
func.func @main(%x: !x {tv.name = "x"}) -> (!x {tv.name = "y"}) {
  %y = tv.neg %x : (!x) -> !x
  return %y : !x
}
"""
LOOP = """int loop(void *(*run)(void *), void *binding, int runs) {
  for (int i = 0; i < runs; ++i)
    if (run(binding))
      return 1;
  return 0;
}
"""


def compiled_loop(folder):
    source, library = folder / "loop.c", folder / "loop.so"
    source.write_text(LOOP)
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", source, "-o", library],
                   check=True)
    return ctypes.CDLL(str(library)).loop


def measure(rounds, runs):
    """Medians of seconds a run: from Python, and from C."""
    module = tessera.Context().load(tessera.compile(PROGRAM))
    binding = module.bind({"x": np.ones(8, np.float32)})
    # The C function itself, without what the package has around it.
    function = ctypes.cast(tessera._native.runtime().binding_run, ctypes.c_void_p)
    with tempfile.TemporaryDirectory() as folder:
        loop = compiled_loop(pathlib.Path(folder))
        python, c = [], []
        for _ in range(rounds):
            begin = time.perf_counter()
            for _ in range(runs):
                binding.run()
            middle = time.perf_counter()
            binding.arrays["y"][:] = 0
            if loop(function, binding._handle, runs):
                raise SystemExit("a run from C failed")
            python.append((middle - begin) / runs)
            c.append((time.perf_counter() - middle) / runs)
    assert np.array_equal(binding.arrays["y"], -binding.arrays["x"])
    return statistics.median(python), statistics.median(c)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--runs", type=int, default=1000, help="runs of each in a round")
    args = parser.parse_args()
    python, c = (each * 1e6 for each in measure(args.rounds, args.runs))
    print(f"from Python {python:.2f} us, from C {c:.2f} us, beyond it {python - c:.2f} us")


if __name__ == "__main__":
    main()
