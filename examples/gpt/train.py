"""Trains a GPT on Python's language reference: half of the steps on one mesh, then from
the states that were saved on another. Prints the losses beside those of reference.py."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
from program import GPT, Program, start, starts_as_zeros, text
from reference import train
from safetensors.numpy import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
DTYPES = {"f64": np.float64, "f32": np.float32}


class Training:
    """A program with its data, by name, and its start, in files of a folder."""

    def __init__(self, tools, folder, program, data, memory=None):
        self.tools, self.folder = pathlib.Path(tools), pathlib.Path(folder)
        self.flags = [f"--memory={memory}"] if memory else []
        self.source = self.folder / "step.mlir"
        self.source.write_text(str(program))
        save_file(data, self.folder / "data.safetensors")
        states = start(program.model, DTYPES[program.element])
        save_file({name: value for name, value in states.items() if not starts_as_zeros(name)},
                  self.folder / "start.safetensors")
        mpi = (ROOT / "scripts/mpi.env").read_text().splitlines()
        self.environment = dict(os.environ) | dict(
            line.split("=", 1) for line in mpi if not line.startswith("#"))

    def call(self, *command):
        run = subprocess.run([str(each) for each in command], capture_output=True, text=True,
                             env=self.environment)
        if run.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))}\n{run.stderr}")
        self.said = run.stderr
        return run.stdout

    def run(self, mesh, steps, begin="start", end="end", mpi=False):
        """The loss of each step, from the states in one file to those in another, but of
        those that overflowed. Sets `report` and, if it compiles, `remarks`."""
        module = self.folder / f"{mesh}.tsr"
        if not module.exists():
            self.call(self.tools / "tessera-compile", self.source, f"--mesh={mesh}", "--remarks",
                      *self.flags, "-o", module)
            self.remarks = self.said
        ranks = np.prod([int(axis.split("=")[1]) for axis in mesh.split(",")])
        self.report = json.loads(self.call(
            *(["mpirun", "-n", ranks] if mpi else []), self.tools / "tessera-run", module,
            *([] if mpi else ["--ranks", ranks]), "--steps", steps, "--log", "loss", "--log", "step",
            "--inputs", self.folder / "data.safetensors",
            "--inputs", self.folder / f"{begin}.safetensors",
            "--save", self.folder / f"{end}.safetensors", "--report", "json"))
        log, before = self.report["log"], int(self.states(begin).get("step", 0))
        return [loss for loss, last, now in zip(log["loss"], [before, *log["step"]], log["step"])
                if now > last]

    def states(self, name):
        return load_file(self.folder / f"{name}.safetensors")


def main():
    parser = argparse.ArgumentParser(description=__doc__.replace("\n", " "))
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--meshes", nargs=2, default=["dp=2", "tp=2"], metavar="AXIS=N,...")
    parser.add_argument("--element", choices=DTYPES, default="f32", help="of all states")
    parser.add_argument("--compute", help="what is between them and the loss, like bf16")
    parser.add_argument("--sequence", action="store_true", help="sequence parallel over tp")
    parser.add_argument("--zero", action="store_true", help="states are split over dp")
    parser.add_argument("--dropout", type=float, default=0.0, metavar="RATE")
    parser.add_argument("--scale", type=float, default=0.0,
                        help="of the loss in the first step, for --compute f16; halved where "
                             "gradients overflow")
    parser.add_argument("--memory", help="what a device may hold between steps, like 2MiB")
    parser.add_argument("--mpi", action="store_true", help="a process a rank")
    parser.add_argument("--program", action="store_true", help="only print it")
    for name in "layers", "width", "heads", "length", "batch":
        parser.add_argument(f"--{name}", type=int, default=getattr(GPT, name))
    args = parser.parse_args()
    model = GPT(args.layers, args.width, args.heads, args.length, args.batch,
                dropout=args.dropout, scale=args.scale)
    tokens = text()
    options = {name: getattr(args, name) for name in ("element", "compute", "sequence", "zero")}
    if args.program:
        sys.stdout.write(str(Program(model, len(tokens), **options)))
        return

    half = args.steps // 2
    with tempfile.TemporaryDirectory() as folder:
        training = Training(args.build / "bin", folder, Program(model, len(tokens), **options),
                            {"tokens": tokens}, args.memory)
        losses = []
        for mesh, steps, begin, end in ((args.meshes[0], half, "start", "half"),
                                        (args.meshes[1], args.steps - half, "half", "end")):
            begun = time.monotonic()
            losses += training.run(mesh, steps, begin, end, args.mpi)
            print(f"{steps} steps on {mesh}: {time.monotonic() - begun:.1f} s", flush=True)
    steps = len(losses)  # which did not overflow
    begun = time.monotonic()
    expected = train(model, tokens, start(model, np.float64), steps)
    print(f"{steps} steps in NumPy and float64: {time.monotonic() - begun:.1f} s")
    print("step    loss   NumPy  difference")
    for i in range(steps):
        if (i + 1) % max(1, steps // 10) == 0 or i == 0:
            print(f"{i + 1:4}  {losses[i]:6.4f}  {expected[i]:6.4f}  {losses[i] - expected[i]:10.1e}")


if __name__ == "__main__":
    main()
