#!/usr/bin/env python3
"""Random programs (random_programs.py) compiled and run over the plug-in `threads`,
against NumPy float64. `--seeds 0:2000` is the long run.
"""
import argparse
import subprocess
import sys
import tempfile

from random_programs import Program
from run_programs import Tools, check, with_names


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--seeds", default="0:100")
    parser.add_argument("--emulate", action="store_true",
                        help="kernels for GPUs, on the host")
    args = parser.parse_args()
    first, last = map(int, args.seeds.split(":"))
    tools = Tools(args.build, "threads", emulate=args.emulate)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, last):
            # Files hold whole values.
            program = Program(seed, partial_inputs=False)
            text = with_names(program.text())
            try:
                check(tools, text, "", program.ranks(), folder, "random", {}, seed)
            except (RuntimeError, ValueError, KeyError, IndexError,
                    subprocess.TimeoutExpired) as error:
                failed += 1
                print(f"seed {seed} failed: {type(error).__name__}: {error}\n{text}")
    print(f"{last - first - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
