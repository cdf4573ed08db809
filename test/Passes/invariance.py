#!/usr/bin/env python3
"""What a program moves does not depend on how it is written.

Random products, with pointwise ops before and after them, over two mesh axes. Each is
written in seven ways: as it is; operands of additions swapped; the product as the
transpose of the product of transposes, and the pointwise ops around it transposed, too;
mesh axes by other names, and in another order; with transposes and reshapes between that
undo each other. The modelled time of all moves, from the planner's remarks, must be that
of the first.

The trees of placement.py, many of equal extents, over two axes of equal sizes or not:
with axes by other names, and in another order, operands swapped, products transposed, and
transposes and reshapes behind each op that undo each other. What their ops and moves take
must be the same.

    invariance.py --build build --programs 200 --trees 40 --seed 0
"""
import argparse
import collections
import random
import re
import subprocess
import sys
from pathlib import Path

import placement

EXTENTS = (4, 8, 12, 24)
WAYS = ("as it is", "swapped", "transposed", "renamed", "reordered", "with what changes nothing",
        "transposed outside")


class Program:
    """A product of a [m, k] and b [k, n], each after pointwise ops; to its result are
    added c and an epilogue. A view is two lists of axes, one a dimension; None is none."""

    def __init__(self, rng):
        self.m, self.k, self.n = (rng.choice(EXTENTS) for _ in range(3))
        self.views = {name: self.view(rng) for name in "abc"}
        self.views["y"] = self.view(rng) if rng.random() < 0.7 else None
        self.before, self.after = rng.randrange(3), rng.randrange(4)

    @staticmethod
    def view(rng):
        dims = [[], []]
        for axis in rng.sample(("x", "y"), 2):
            where = rng.randrange(3)
            if where < 2:
                dims[where].append(axis)
        return dims

    def write(self, name, way):
        names = {"x": "p", "y": "f"} if way == "renamed" else {"x": "x", "y": "y"}
        sizes = [("x", 2), ("y", 3)]
        if way == "reordered":
            sizes.reverse()
        mesh = ", ".join(f"{names[axis]} = {size}" for axis, size in sizes)
        shapes = {"a": (self.m, self.k), "b": (self.k, self.n), "c": (self.m, self.n),
                  "y": (self.m, self.n)}

        def open_(shape):
            return f"tensor<{shape[0]}x{shape[1]}xf32>"

        def of(tensor):
            view = self.views[tensor]
            if view is None:
                return open_(shapes[tensor])
            dims = ", ".join(" * ".join([*(f"did({names[axis]})" for axis in dim), "_"])
                             for dim in view)
            rows, columns = shapes[tensor]
            return f"tensor<{rows}x{columns}xf32, #tv.view<#tv.mesh<{mesh}>, [{dims}]>>"

        lines, count = [], 0

        def op(text, to):
            nonlocal count
            count += 1
            lines.append(f"  %{count} = {text} -> {to}")
            return f"%{count}", to

        def transpose(value, shape):
            return op(f"tv.transpose {value[0]} perm [1, 0] : ({value[1]})",
                      open_(shape[::-1]))

        def nothing(value, shape):
            if way != WAYS[5]:
                return value
            value = transpose(transpose(value, shape), shape[::-1])
            flat = op(f"tv.reshape {value[0]} : ({value[1]})",
                      f"tensor<{shape[0] * shape[1]}xf32>")
            return op(f"tv.reshape {flat[0]} : ({flat[1]})", open_(shape))

        def pointwise(value, shape, ops):
            for _ in range(ops):
                value = op(f"tv.exp {value[0]} : ({value[1]})", open_(shape))
                value = nothing(value, shape)
            return value

        a, b = ("%a", of("a")), ("%b", of("b"))
        if way == "transposed outside":
            a, b = transpose(b, shapes["b"]), transpose(a, shapes["a"])
            a = pointwise(a, shapes["b"][::-1], self.before)
            b = pointwise(b, shapes["a"][::-1], self.before)
        else:
            a = pointwise(a, shapes["a"], self.before)
            b = pointwise(b, shapes["b"], self.before)
        if way == "transposed":
            a, b = transpose(b, shapes["b"]), transpose(a, shapes["a"])
        shape = shapes["y"][::-1] if way.startswith("transposed") else shapes["y"]
        p = op(f"tv.matmul {a[0]}, {b[0]} : ({a[1]}, {b[1]})", open_(shape))
        if way == "transposed":
            p = transpose(p, shape)
        p = pointwise(nothing(p, shapes["y"]), shape if way == "transposed outside" else shapes["y"],
                      self.after)
        if way == "transposed outside":
            p = transpose(p, shape)
        terms = [p, ("%c", of("c"))]
        if way == "swapped":
            terms.reverse()
        y = op("tv.add {}, {} : ({}, {})".format(*(t[0] for t in terms), *(t[1] for t in terms)),
               of("y"))
        return (f"func.func @{name}(%a: {of('a')}, %b: {of('b')}, %c: {of('c')}) -> {y[1]} {{\n"
                + "\n".join(lines) + f"\n  return {y[0]} : {y[1]}\n}}\n")


def renamed(text):
    """Axes by names of which the other one comes first."""
    for axis, other in (("x", "q"), ("y", "b")):
        text = re.sub(rf"\b{axis}( =|\))", rf"{other}\1", text)
    return text


def reordered(text):
    return re.sub(r"<(\w = \d), (\w = \d)>", r"<\2, \1>", text)


VIEWED = r"tensor<[^#>]*(?:#tv.view<#tv.mesh<[^>]*>[^>]*>)?>"


def swapped(text):
    return re.sub(rf"(tv\.(?:add|mul)) (%\w+), (%\w+) : \(({VIEWED}), ({VIEWED})\)",
                  r"\1 \3, \2 : (\5, \4)", text)


def shape_of(type_):
    return re.findall(r"(\d+)x", type_.partition(",")[0])


def open_type(shape):
    return f"tensor<{'x'.join(shape)}xf32>"


def products_transposed(text):
    """A product as the transpose of that of transposes."""
    def write(found):
        name, a, b, *types = found.groups()
        at, bt, ct = (open_type(shape_of(type_)[::-1]) for type_ in types)
        at_type, bt_type, c_type = types
        return (f"  %ta{name} = tv.transpose {a} perm [1, 0] : ({at_type}) -> {at}\n"
                f"  %tb{name} = tv.transpose {b} perm [1, 0] : ({bt_type}) -> {bt}\n"
                f"  %tc{name} = tv.matmul %tb{name}, %ta{name} : ({bt}, {at}) -> {ct}\n"
                f"  %{name} = tv.transpose %tc{name} perm [1, 0] : ({ct}) -> {c_type}\n")
    return re.sub(rf"  %(\w+) = tv\.matmul (%\w+), (%\w+) : \(({VIEWED}), ({VIEWED})\)"
                  rf" -> ({VIEWED})\n", write, text)


def with_nothing(text):
    """Behind each op a transpose and a reshape, and back."""
    def write(found):
        name, op, type_ = found.groups()
        shape = shape_of(type_)
        if len(shape) != 2:
            return found[0]
        plain, turned = open_type(shape), open_type(shape[::-1])
        flat = f"tensor<{int(shape[0]) * int(shape[1])}xf32>"
        return (f"  %p{name} = {op} -> {plain}\n"
                f"  %q{name} = tv.transpose %p{name} perm [1, 0] : ({plain}) -> {turned}\n"
                f"  %r{name} = tv.reshape %q{name} : ({turned}) -> {flat}\n"
                f"  %s{name} = tv.reshape %r{name} : ({flat}) -> {turned}\n"
                f"  %{name} = tv.transpose %s{name} perm [1, 0] : ({turned}) -> {type_}\n")
    return re.sub(rf"  %(\w+) = (.*) -> ({VIEWED})\n", write, text)


TREE_WAYS = {
    "as it is": lambda text: text,
    "renamed": renamed,
    "reordered": reordered,
    "renamed and reordered": lambda text: renamed(reordered(text)),
    "swapped": swapped,
    "transposed": products_transposed,
    "with what changes nothing": with_nothing,
}
TREE_EXTENTS = (*placement.EXTENTS, (12,), (6144,))


def compare_trees(build, count, rng):
    """The number of trees that take another time in another way."""
    programs = [placement.Program(f"f{number}_{i}", rng, mesh, TREE_EXTENTS)
                for number, mesh in enumerate(placement.MESHES[:2]) for i in range(count)]
    text, starts = "", {}
    for way, write in TREE_WAYS.items():
        for program in programs:
            starts[text.count("\n") + 1] = program, way
            text += write(program.text.replace("@f", f"@f{len(starts)}_"))
    run = subprocess.run([Path(build) / "bin/tessera-opt", "-", "-o", "/dev/null",
                          "--pass-pipeline=builtin.module(tv-bind,func.func("
                          "tv-simplify-indices,tv-propagate-shardings,"
                          "tv-decompose-reshardings,tv-elide-reshards,"
                          "tv-place-together),test-placement)"],
                         input=text, capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr[-3000:])
    takes = collections.defaultdict(dict)
    for line, us in re.findall(r"<stdin>:(\d+):\d+: remark: takes ([\d.]+) us", run.stderr):
        program, way = starts[int(line)]
        takes[program][way] = float(us)
    wrong = 0
    for program in programs:
        times = takes[program]
        if len(times) < len(TREE_WAYS):
            sys.exit(f"no time of a tree: {times}\n{program.text}")
        if max(times.values()) > 1.0001 * min(times.values()) + 0.005:
            wrong += 1
            print(f"{times}\n{program.text}")
    print(f"{len(programs)} trees, {wrong} with another time")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--trees", type=int, default=40, help="over each mesh")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    programs = [Program(rng) for _ in range(args.programs)]
    text, ends = "", []  # by way and program, the line where it ends
    for way in WAYS:
        for number, program in enumerate(programs):
            text += program.write(f"f{len(ends)}", way)
            ends.append(text.count("\n"))
    run = subprocess.run([Path(args.build) / "bin/tessera-opt", "-",
                          "--tessera=to=local explain=1"],
                         input=text, capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr[-3000:])
    times, exchanges = collections.Counter(), collections.Counter()
    moves = collections.defaultdict(list)
    for line in run.stderr.splitlines():
        found = re.match(r"<stdin>:(\d+):\d+: remark: .*?: (.*), (\d+) bytes, ([\d.]+) us; lower",
                         line)
        if found:
            index = next(i for i, end in enumerate(ends) if int(found[1]) <= end)
            times[index] += float(found[4])
            exchanges[index] += float(found[4]) * found[2].endswith("exchange")
            moves[index].append(f"{found[2]} {found[3]}")
    # Exchanges that go together take the time of one.
    for function in run.stdout.split("func.func @f")[1:]:
        index = int(re.match(r"\d+", function)[0])
        count = sum(move.split()[0] == "exchange" for move in moves[index])
        for operands in re.findall(r"comm\.exchange (.*?) over", function):
            times[index] -= exchanges[index] / max(count, 1) * operands.count(",")
    wrong = collections.Counter()
    for index in range(args.programs, len(ends)):
        way, number = divmod(index, args.programs)
        if abs(times[index] - times[number]) > 0.01 * times[number]:
            wrong[WAYS[way]] += 1
            print(f"{WAYS[way]}: {times[index]:.1f} us, {moves[index]}\n"
                  f"as it is: {times[number]:.1f} us, {moves[number]}\n"
                  f"{programs[number].write('main', WAYS[0])}")
    moving = sum(times[i] > 0 for i in range(args.programs))
    print(f"{args.programs} programs, {moving} of which move; with another time: {dict(wrong)}")
    wrong_trees = compare_trees(args.build, args.trees, rng)
    # Programs that move nothing say nothing.
    sys.exit(bool(wrong or wrong_trees) or moving < args.programs // 2)


if __name__ == "__main__":
    main()
