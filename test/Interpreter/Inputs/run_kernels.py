"""Runs programs in the phase kernels against what they were before:
run_kernels.py PHASE PATH... [--skip NAME...]

PHASE is the phase that the files are in. A source program runs with its first
mesh axis of size 1 to 4, a later one on the mesh that it was made for. A path may
be a folder. Ends with an error at the first program that differs.
"""

import math
import pathlib
import re
import subprocess
import sys


def run(program, pipeline, ranks, *options):
    command = ["tessera-opt", "-o", "/dev/null", f"--interpret={ranks}", *options]
    command.append(f"--tessera={pipeline} to=kernels")
    print(" ".join(command), flush=True)
    subprocess.run(command, input=program, text=True, check=True)


phase, *paths = sys.argv[1:]
skipped = []
if "--skip" in paths:
    at = paths.index("--skip")
    paths, skipped = paths[:at], paths[at + 1:]
for path in map(pathlib.Path, paths):
    files = sorted(path.glob("*.mlir")) if path.is_dir() else [path]
    assert files, f"no programs in {path}"
    for file in files:
        if file.stem in skipped:
            continue
        for program in re.split("^// -----$", file.read_text(), flags=re.M):
            mesh = re.search(r"#tv\.mesh<([^>]*)>", program)
            if not mesh:  # a test of programs that are elsewhere
                continue
            print(file)
            if "tv.gradient" in program:  # by differences it is slow, and not rounded
                program = subprocess.run(
                    ["tessera-opt", "--tv-inline", "--tv-inline-regions", "--tv-differentiate"],
                    input=program, capture_output=True, text=True, check=True).stdout
            axes = dict(re.findall(r"(\w+) = (\d+)", mesh[1]))
            first, *others = axes
            rest = math.prod(int(axes[axis]) for axis in others)
            if phase != "source":
                run(program, f"from={phase}", int(axes[first]) * rest)
                continue
            for size in range(1, 5):
                run(program, f"mesh={first}={size}", size * rest)
            run(program, f"mesh={first}=3", 3 * rest, "--interpret-precision=program")
