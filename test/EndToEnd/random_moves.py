#!/usr/bin/env python3
"""Random programs that only move data, compiled, run and interpreted, against NumPy.

Each seed makes a few chains of tv.reshard, tv.constrain, tv.transpose and tv.reshape,
with a tv.add for a kernel in between, from an argument to a result, under views with
flat dimensions, bounded groups, sub-axes, orders in memory and partial states, of
static and of dynamic shapes. One module runs at sizes from 0 to the declared maximum;
every element must be the one that NumPy has there, in the runs and in the interpreter.
Only a reshape may be refused, by an error at its place.

    random_moves.py --build build --seeds 0:200
"""
import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import numpy as np
from safetensors.numpy import load_file, save_file

from random_programs import MESHES
from run_programs import Tools

ELEMENTS = {"f32": np.float32, "f64": np.float64, "i32": np.int32}


class Program:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.mesh = self.random.choice(MESHES)
        self.axes = [(name, int(size)) for name, size in
                     re.findall(r"(\w+) = (\d+)", self.mesh)]
        self.element = self.random.choice(list(ELEMENTS))
        self.maxima = {}
        if self.random.random() < 0.6:
            for name in self.random.choice([["b"], ["s"], ["b", "s"]]):
                self.maxima[name] = self.random.choice([1, 2, 3, 4, 5, 7])
        self.arguments, self.body, self.results = [], [], []
        self.shapes, self.steps = [], []  # of each chain, for the reference
        self.count = 0
        for number in range(self.random.randint(2, 4)):
            self.chain(number)

    def ranks(self):
        count = 1
        for _, size in self.axes:
            count *= size
        return count

    def sizes(self):
        """Sizes to run at: the maxima, 0, 1, and some in between."""
        if not self.maxima:
            return [{}]
        found = [dict(self.maxima)]
        for low in (0, 1):
            found.append({name: low for name in self.maxima})
        found.append({name: self.random.randint(0, most)
                      for name, most in self.maxima.items()})
        return [size for i, size in enumerate(found) if size not in found[:i]]

    # Views. An extent is a number, or a number and the names of sizes that it is the
    # product of.

    def sub_axes(self):
        subs = []
        for name, size in self.axes:
            splits = [(p, size // p) for p in range(2, size) if size % p == 0]
            if splits and self.random.random() < 0.4:
                outer, inner = self.random.choice(splits)
                subs += [f"{name}:(1){outer}", f"{name}:({outer}){inner}"]
            else:
                subs.append(name)
        self.random.shuffle(subs)
        return subs

    def digits(self, subs, rest):
        factors = [rest]
        while subs and self.random.random() < 0.6:
            factors.insert(self.random.randint(0, len(factors)), f"did({subs.pop()})")
            if self.random.random() < 0.2:
                factors.insert(self.random.randint(0, len(factors)),
                               str(self.random.choice([2, 3])))
        return " * ".join(factors)

    def product(self, subs, extents):
        kind = self.random.random()
        if kind < 0.4:  # blocks, whose borders a flat dimension's seldom meet
            outer = [f"did({subs.pop()})" for _ in subs[:self.random.randint(1, 2)]]
            return " * ".join([*outer, "_"])
        if kind < 0.6:  # a group: blocks of so many, or the values of a longer one
            bound = self.random.randint(1, 4)
            low = self.random.choice([0, 0, 0, 1, 2])
            inside = f"({self.digits(subs, '_')} | {f'{low}:' if low else ''}{low + bound})"
            count = int(np.prod([e for e, names in extents]))
            if not any(names for _, names in extents) and bound >= count:
                return inside
            return (f"_ * {inside}" if self.random.random() < 0.5
                    else f"{self.digits(subs, '_')} * {inside}")
        return self.digits(subs, "_")

    def view(self, shape, partial=0.15):
        subs, dims, first = self.sub_axes(), [], 0
        while first < len(shape):
            span = 1
            while first + span < len(shape) and self.random.random() < 0.35:
                span += 1
            text = self.product(subs, shape[first:first + span])
            dims.append(f"flat({span}) {text}" if span > 1 else text)
            first += span
        text = f"[{', '.join(dims)}]"
        if self.random.random() < 0.4:
            order = list(range(len(dims)))
            self.random.shuffle(order)
            text += f", alloc = ({', '.join(map(str, order))})"
        if subs and self.random.random() < partial:
            kind = self.random.choice(["sum", "sum", "max", "min"])
            text += f", partial = [{subs[0]} : {kind}]"
        return text

    # Values

    def type(self, shape, view=None):
        text = "x".join([*("?" if names else str(e) for e, names in shape), self.element])
        return f"tensor<{text}{f', #tv.view<#m, {view}>' if view else ''}>"

    def shape(self):
        shape = [(self.random.choice([1, 2, 3, 4, 5, 6, 7]), ())
                 for _ in range(self.random.randint(1, 4))]
        for name in self.maxima:
            if self.random.random() < 0.8:
                shape[self.random.randrange(len(shape))] = (1, (name,))
        return shape

    def emit(self, text, value, shape, view=None, after="", more=""):
        name = f"%v{self.count}"
        self.count += 1
        type_ = self.type(shape, view)
        types = value[1] + (f", {more}" if more else "")
        self.body.append(f"  {name} = {text} {value[0]}{after} : ({types}) -> {type_}")
        return name, type_

    def reshaped(self, shape):
        """Neighbours merged, or an extent split."""
        shape = list(shape)
        for _ in range(self.random.randint(1, 2)):
            d = self.random.randrange(len(shape))
            e, names = shape[d]
            splits = [f for f in range(2, e) if e % f == 0]
            if splits and self.random.random() < 0.5:
                f = self.random.choice(splits)
                shape[d:d + 1] = [(e // f, names), (f, ())]
            elif d + 1 < len(shape):
                f, more = shape.pop(d + 1)
                shape[d] = (e * f, names + more)
        return shape

    def chain(self, number):
        shape, steps = self.shape(), []
        self.shapes.append(shape)
        dims = "".join(f'"{names[0]}", ' for _, names in shape if names)[:-2]
        view = self.view(shape, partial=0)
        value = (f"%a{number}", self.type(shape, view))
        self.arguments.append(f'{value[0]}: {value[1]} {{tv.name = "a{number}"'
                              + (f", tv.dims = [{dims}]" if dims else "") + "}")
        for _ in range(self.random.randint(1, 4)):
            kind = self.random.random()
            if kind < 0.15:
                steps.append(("add", None))
                value = self.emit(f"tv.add {value[0]},", value, shape, more=value[1])
            elif kind < 0.3:
                perm = list(range(len(shape)))
                self.random.shuffle(perm)
                shape = [shape[p] for p in perm]
                steps.append(("transpose", perm))
                value = self.emit("tv.transpose", value, shape, after=f" perm {perm}")
            elif kind < 0.5:
                shape = self.reshaped(shape)
                steps.append(("reshape", shape))
                value = self.emit("tv.reshape", value, shape)
            elif kind < 0.75:
                view = self.view(shape)
                value = self.emit("tv.constrain", value, shape, view)
                self.body[-1] += f" to #tv.view<#m, {view}>"
            elif "#tv.view" in value[1]:
                value = self.emit("tv.reshard", value, shape, self.view(shape))
        view = self.view(shape, partial=0)
        value = self.emit("tv.constrain", value, shape, view)
        self.body[-1] += f" to #tv.view<#m, {view}>"
        self.steps.append(steps)
        self.results.append(value)

    def text(self):
        types = [type_ for _, type_ in self.results]
        sizes = ", ".join(f"{n} = {most} : i64" for n, most in sorted(self.maxima.items()))
        results = ", ".join(f'{type_} {{tv.name = "r{i}"}}' for i, type_ in enumerate(types))
        return (f"#m = #tv.mesh<{self.mesh}>\nfunc.func @main("
                + ",\n    ".join(self.arguments) + f")\n    -> ({results})"
                + (f" attributes {{tv.sizes = {{{sizes}}}}}" if sizes else "") + " {\n"
                + "\n".join(self.body) + "\n  return "
                + ", ".join(name for name, _ in self.results) + " : "
                + ", ".join(types) + "\n}\n")

    # The reference

    @staticmethod
    def extents(shape, sizes):
        return [e * int(np.prod([sizes[name] for name in names], dtype=int))
                for e, names in shape]

    def inputs(self, sizes):
        """Every element of an argument is another number."""
        arrays = {}
        for number, shape in enumerate(self.shapes):
            extents = self.extents(shape, sizes)
            count = int(np.prod(extents))
            arrays[f"a{number}"] = (1 + np.arange(count)).reshape(extents).astype(
                ELEMENTS[self.element])
        return arrays

    def reference(self, inputs, sizes):
        results = {}
        for number, steps in enumerate(self.steps):
            array = inputs[f"a{number}"]
            for kind, what in steps:
                array = (array + array if kind == "add"
                         else array.transpose(what) if kind == "transpose"
                         else array.reshape(self.extents(what, sizes)))
            results[f"r{number}"] = array
        return results


def check(tools, seed, folder):
    """None, or the error with which the compiler refuses the program; raises on a wrong
    result."""
    program = Program(seed)
    path, module, given, output = (os.path.join(folder, f"moves.{end}") for end in (
        "mlir", "tsr", "in.safetensors", "out.safetensors"))
    pathlib.Path(path).write_text(program.text())
    try:
        tools.compile(path, "", module)
    except RuntimeError as error:
        # Where digits end up in a merged dimension depends on its extents.
        place = re.search(r"^\S+\.mlir:(\d+):\d+: error: ", str(error), re.M)
        if place and "tv.reshape" in program.text().splitlines()[int(place[1]) - 1]:
            return str(error)
        raise
    for sizes in program.sizes():
        inputs = program.inputs(sizes)
        save_file(inputs, given)
        try:
            tools.run(module, program.ranks(), given, output, sizes)
            results = load_file(output)
            for port, exact in program.reference(inputs, sizes).items():
                if not np.array_equal(results[port], exact):
                    raise RuntimeError(f"{port} is\n{results[port]}\nnot\n{exact}")
            tools.interpret(path, "", program.ranks(), sizes)
        except RuntimeError as error:
            raise RuntimeError(f"at {sizes}: {error}") from None
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--transport", choices=["mpi", "threads"], default="threads")
    parser.add_argument("--seeds", default="0:60")
    args = parser.parse_args()
    first, last = map(int, args.seeds.split(":"))
    tools = Tools(args.build, args.transport)
    refused = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, last):
            try:
                refused += check(tools, seed, folder) is not None
            except (RuntimeError, ValueError, KeyError, IndexError,
                    subprocess.TimeoutExpired) as error:
                failed += 1
                print(f"seed {seed} failed: {type(error).__name__}: {error}\n"
                      f"{Program(seed).text()}", flush=True)
    print(f"{last - first - failed} passed, {refused} of them refused, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
