#!/usr/bin/env python3
"""Random programs (random_programs.py) compiled and run over the plug-in `threads`, or
another, against NumPy float64. `--seeds 0:2000` is the long run. A program runs for
several values of its dynamic sizes, from one module.

    run_random.py --build build --program FILE --sizes b=3,s=0

runs one program, as the RUN lines of what is left of failing ones do.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import shrink
from random_attentions import Attentions
from random_fetches import Fetches
from random_graphs import Graph
from random_programs import Program, arguments, run_seeds
from run_programs import Case, Tools, check, with_names


ERRORS = (RuntimeError, ValueError, KeyError, IndexError, subprocess.TimeoutExpired)


def named(sizes):
    return ",".join(f"{name}={size}" for name, size in sizes.items())


def main():
    parser = arguments(__doc__)
    parser.add_argument("--transport", choices=["mpi", "threads"], default="threads")
    parser.add_argument("--emulate", action="store_true",
                        help="kernels for GPUs, on the host")
    parser.add_argument("--graphs", action="store_true",
                        help="programs of random_graphs.py")
    parser.add_argument("--fetches", action="store_true",
                        help="programs of random_fetches.py")
    parser.add_argument("--attentions", action="store_true",
                        help="programs of random_attentions.py")
    parser.add_argument("--program", type=pathlib.Path, help="in place of seeds")
    parser.add_argument("--sizes", action="append", default=[],
                        help="of a run of the program")
    parser.add_argument("--input-seed", type=int, default=0)
    args = parser.parse_args()
    tools = Tools(args.build, args.transport, emulate=args.emulate)

    def run(text, runs, seed, folder):
        text = with_names(text)
        compiled = False
        for sizes in runs:
            case = Case(tools, text, folder, "random", sizes, seed)
            if not compiled:
                tools.compile(case.path, "", case.module)
            compiled = True
            check(tools, case, shrink.devices(text))

    if args.program:
        runs = [{name: int(size) for name, size in re.findall(r"(\w+)=(\d+)", sizes)}
                for sizes in args.sizes or [""]]
        with tempfile.TemporaryDirectory() as folder:
            try:
                run(args.program.read_text(), runs, args.input_seed, folder)
            except ERRORS as error:
                sys.exit(f"error: {type(error).__name__}: {error}")
        return

    def check_seed(program, seed, folder):
        runs = program.runs()
        try:
            run(program.text(), runs, seed, folder)
        except ERRORS:
            # Once more, as a command that shows it alone.
            path = os.path.join(folder, "program.mlir")
            pathlib.Path(path).write_text(program.text())
            script = pathlib.Path(__file__).resolve()
            shrink.run([sys.executable, str(script), "--build", str(args.build),
                        "--transport", args.transport, *["--emulate"] * args.emulate,
                        "--input-seed", str(seed), "--program", "%s",
                        *(f"--sizes={named(sizes)}" for sizes in runs)],
                       path, os.path.join(args.build, "bin"))
            raise RuntimeError(f"seed {seed} failed once, and not again") from None

    # Files hold whole values.
    make = (Graph if args.graphs else Fetches if args.fetches
            else Attentions if args.attentions else Program)
    run_seeds(args, check_seed, partial_inputs=False, make=make)


if __name__ == "__main__":
    main()
