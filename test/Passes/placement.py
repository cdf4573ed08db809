#!/usr/bin/env python3
"""Ops placed together beside the best of all placements (test/lib/PlacementTest.cpp).

Random programs of up to six ops over small meshes. What the ops and moves of each take,
by the model that places them, must be what they take at best in 19 of 20 programs, and
at most 1.1 times that in all. (It may be less: a product such as 3 * did(x) * 4, which a
reshape makes, is none that the search deals, and it moves what is small one by one.) `--op-by-op` shows what they take without
tv-place-together, and fails.

    placement.py --build build --programs 100 --seed 1
"""
import argparse
import random
import re
import subprocess
import sys
from pathlib import Path

MESHES = ({"x": 2, "y": 2}, {"x": 2, "y": 3}, {"x": 4, "y": 2})
EXTENTS = ((8, 12, 24), (2048, 3072, 6144))


class Program:
    """A tree of ops, in which one value, an argument or not, may have a second use."""

    def __init__(self, name, rng, mesh, shapes):
        self.name, self.rng, self.mesh = name, rng, mesh
        self.extents = rng.choice(shapes)
        self.arguments, self.lines, self.values = [], [], []
        self.may_share = rng.random() < 0.3
        result, type_ = self.tree(self.shape(2), rng.randint(1, 6))
        if not self.lines:
            result, type_ = self.op("tv.exp", [(result, type_)], self.shape_of(type_))
        if rng.random() < 0.7:
            viewed = self.view(self.shape_of(type_))
            self.lines[-1] = self.lines[-1].rpartition(" -> ")[0] + f" -> {viewed}"
            type_ = viewed
        self.text = (f"func.func @{name}({', '.join(self.arguments)}) -> {type_} {{\n"
                     + "\n".join(self.lines) + f"\n  return {result} : {type_}\n}}\n")

    @staticmethod
    def shape_of(type_):
        return [int(n) for n in re.findall(r"(\d+)x", type_.partition(",")[0])]

    def shape(self, rank):
        return [self.rng.choice(self.extents) for _ in range(rank)]

    def tensor(self, shape, view=""):
        return f"tensor<{'x'.join(map(str, shape))}xf32{view}>"

    def view(self, shape):
        dims = [[] for _ in shape]
        for axis in self.rng.sample(sorted(self.mesh), 2):
            where = self.rng.randrange(len(shape) + 1)
            if where < len(shape):
                dims[where].append(f"did({axis}) * ")
        axes = ", ".join(f"{axis} = {size}" for axis, size in self.mesh.items())
        text = ", ".join("".join(dim) + "_" for dim in dims)
        return self.tensor(shape, f", #tv.view<#tv.mesh<{axes}>, [{text}]>")

    def op(self, name, operands, shape, attributes=""):
        value, to = f"%{len(self.lines)}", self.tensor(shape)
        values, types = (", ".join(each) for each in zip(*operands))
        self.lines.append(f"  {value} = {name} {values} {attributes}: ({types}) -> {to}")
        self.values.append((value, to))
        return value, to

    def tree(self, shape, ops):
        """A value of `shape`, made by `ops` ops."""
        rng = self.rng
        if self.may_share and rng.random() < 0.5:
            again = [v for v in self.values if self.shape_of(v[1]) == shape]
            if again:
                self.may_share = False
                return rng.choice(again)
        if ops == 0:
            value = f"%a{len(self.arguments)}", self.view(shape)
            self.arguments.append(f"{value[0]}: {value[1]}")
            self.values.append(value)
            return value
        left = rng.randint(0, ops - 1)
        kind = rng.choice(("matmul", "matmul", "add", "mul", "exp", "transpose", "reduce",
                           "reshape"))
        if len(shape) == 1 and kind not in ("add", "mul", "exp"):
            kind = "reduce"
        if kind == "matmul":
            k = rng.choice(self.extents)
            return self.op("tv.matmul", [self.tree([shape[0], k], left),
                                         self.tree([k, shape[1]], ops - 1 - left)], shape)
        if kind in ("add", "mul"):
            return self.op(f"tv.{kind}", [self.tree(shape, left),
                                          self.tree(shape, ops - 1 - left)], shape)
        if kind == "transpose":
            return self.op("tv.transpose", [self.tree(shape[::-1], ops - 1)], shape,
                           "perm [1, 0] ")
        if kind == "reduce" and len(shape) == 1:
            more = shape + [rng.choice(self.extents)]
            return self.op("tv.reduce sum", [self.tree(more, ops - 1)], shape, "dims [1] ")
        if kind == "reshape" and shape[0] % 2 == 0:
            return self.op("tv.reshape", [self.tree([shape[0] // 2, 2 * shape[1]], ops - 1)], shape)
        if kind == "reduce" and ops > 1:
            return self.op("tv.broadcast", [self.tree(shape[:1], ops - 1)], shape, "dims [0] ")
        return self.op("tv.exp", [self.tree(shape, ops - 1)], shape)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--programs", type=int, default=30,
                        help="over each mesh; a tenth over the one with an axis of 4")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--op-by-op", action="store_true")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    programs = []
    for number, mesh in enumerate(MESHES):
        programs += [Program(f"f{number}_{i}", rng, mesh, EXTENTS)
                     for i in range(args.programs // (10 if 4 in mesh.values() else 1))]
    text = "".join(p.text for p in programs)
    how = "" if args.op_by_op else ",tv-place-together"
    pipeline = ("builtin.module(tv-bind,test-placement{best=true},func.func("
                "tv-simplify-indices,tv-propagate-shardings,tv-decompose-reshardings,"
                f"tv-elide-reshards{how}),test-placement)")
    run = subprocess.run([Path(args.build) / "bin/tessera-opt", "-",
                          f"--pass-pipeline={pipeline}", "-o", "/dev/null"],
                         input=text, capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr[-3000:])
    by_line, line = {}, 1
    for program in programs:
        by_line[line] = program
        line += program.text.count("\n")
    best, takes = {}, {}
    for at, what, us in re.findall(r"<stdin>:(\d+):\d+: remark: (at best|takes) ([\d.]+) us",
                                   run.stderr):
        (best if what == "at best" else takes)[by_line[int(at)]] = float(us)
    if len(takes) != len(programs) or len(best) != len(programs):
        sys.exit(f"{len(takes)} of {len(programs)} programs were placed:\n{run.stderr[-3000:]}")
    # Less than five nanoseconds is no gain.
    worse = [p for p in programs if takes[p] > 1.0001 * best[p] + 0.005]
    far = [p for p in worse if takes[p] > 1.1 * best[p] + 0.005]
    for program in worse:
        print(f"{takes[program]:.4f} us, at best {best[program]:.4f} us:\n{program.text}")
    print(f"{len(programs)} programs, {len(worse)} not the best, "
          f"{len(far)} more than 1.1 of it")
    sys.exit(bool(far) or len(worse) * 20 > len(programs))


if __name__ == "__main__":
    main()
