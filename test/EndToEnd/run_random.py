#!/usr/bin/env python3
"""Random programs (random_programs.py) compiled and run over the plug-in `threads`,
against NumPy float64. `--seeds 0:2000` is the long run.
"""
import argparse
import subprocess
import sys
import tempfile

from random_programs import REFUSALS, Program
from run_programs import Tools, check, with_names


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--seeds", default="0:100")
    args = parser.parse_args()
    first, last = map(int, args.seeds.split(":"))
    tools = Tools(args.build, "threads")
    failed = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, last):
            # Files hold whole values.
            program = Program(seed, partial_inputs=False)
            text = with_names(program.text())
            try:
                check(tools, text, "", program.ranks(), folder, "random", {}, seed)
            except (RuntimeError, ValueError, KeyError, IndexError,
                    subprocess.TimeoutExpired) as error:
                if any(refusal in str(error) for refusal in REFUSALS):
                    refused += 1
                    continue
                failed += 1
                print(f"seed {seed} failed: {type(error).__name__}: {error}\n{text}")
    print(f"{last - first - failed - refused} passed, {refused} refused, "
          f"{failed} failed")
    sys.exit(1 if failed or refused > 1 + (last - first) // 20 else 0)


if __name__ == "__main__":
    main()
