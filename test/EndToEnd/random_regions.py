#!/usr/bin/env python3
"""Random programs, written for each device, interpreted against themselves.

What `tv-localize` makes of a random program is the body of a `tv.local_region` over its
arguments: the program with all views, moves and orders in memory written by hand. Compiled
again it must equal what it says, and each move must be a step of the kind that is written.

    random_regions.py --build build --seeds 0:100
"""
import os
import re
import tempfile

import shrink
from random_programs import Program, arguments, run_seeds
from tvnumpy import closing, split

MOVE = re.compile(r"\bcomm\.(\w+)")


def whole(local):
    """The type of the tensor that a local type is a part of, and the names of its dynamic
    sizes; nothing for an extent that is no size."""
    element = re.match(r"tensor<(?:(?:\d+|\?)x)*(\w+)", local)[1]
    extents = split(local[local.rindex(" of [") + 5:local.rindex("]>")])
    shape = "".join(f"{e if e.isdigit() else '?'}x" for e in extents)
    return f"tensor<{shape}{element}>", [e for e in extents if not e.isdigit()]


def live(body, yielded):
    """The ops that something yielded needs: moves of others are not made."""
    ops = []  # each with the lines of its regions
    for line in body:
        if re.match(r"    %\w+(?:, %\w+|:\d+)* = ", line):
            ops.append([line])
        else:
            ops[-1].append(line)
    kept, needed = [], set(re.findall(r"%\w+", yielded))
    for op in reversed(ops):
        results, _, rest = "\n".join(op).partition(" = ")
        if needed.intersection(re.findall(r"%\w+", results)):
            needed.update(re.findall(r"%\w+", rest))
            kept[:0] = op
    return kept


def in_region(text):
    """A program that is a local function."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if "func.func @main(" in line)
    last = next(i for i, line in enumerate(lines) if re.match(r"\s+return", line))
    line = lines[first]
    begin = line.index("(")
    end = closing(line, begin)
    names, locals_, declared = [], [], []
    for part in split(line[begin + 1:end - 1]):
        name, _, rest = part.partition(": ")
        type_end = closing(rest, rest.index("<"))
        type_, dims = whole(rest[:type_end])
        range_ = re.search(r"tv\.range = \[[^]]*\]", rest)
        attributes = [range_[0]] if range_ else []
        if dims:
            attributes.append("tv.dims = [" + ", ".join(f'"{d}"' for d in dims) + "]")
        names.append(name)
        locals_.append(f"{name}: {rest[:type_end]}")
        declared.append((type_, f" {{{', '.join(attributes)}}}" if attributes else ""))
    yielded, _, types = lines[last].strip().removeprefix("return ").partition(" : ")
    results = [whole(type_)[0] for type_ in split(types)]
    sizes = re.search(r"tv\.sizes = \{[^}]*\}", line)
    body = live(lines[first + 1:last], yielded)
    listed = ", ".join(results)
    given = ", ".join(f"%x{i}: {type_}{more}" for i, (type_, more) in enumerate(declared))
    return "\n".join([
        f"func.func @main({given}) -> ({listed})"
        + (f" attributes {{{sizes[0]}}}" if sizes else "") + " {",
        f"  %r:{len(results)} = tv.local_region {', '.join(f'%x{i}' for i in range(len(names)))}"
        f" : ({', '.join(type_ for type_, _ in declared)}) -> ({listed}) {{",
        f"  ^bb0({', '.join(locals_)}):", *body, f"    tv.yield {yielded} : {types}", "  }",
        f"  return {', '.join(f'%r#{i}' for i in range(len(results)))} : {listed}", "}", ""])


def main():
    args = arguments(__doc__).parse_args()
    bin = os.path.join(args.build, "bin")
    to_local = ["tessera-opt", "%s", "--tessera=to=local", "--mlir-print-local-scope", "-o"]

    def localize(text, folder, *flags):
        """Its local phase."""
        paths = [os.path.join(folder, name) for name in ("program.mlir", "local.mlir")]
        with open(paths[0], "w") as f:
            f.write(text)
        shrink.run([*to_local, paths[1], *flags], paths[0], bin)
        with open(paths[1]) as f:
            return f.read()

    class ByHand(Program):
        """A random program's local phase, in a region."""
        def on_other_mesh(self, text):
            """A region lies on the devices of one mesh."""
            other = super().on_other_mesh(text)
            return text if "[" in self.mesh + other.partition("\n")[0] else other

        def text(self):
            with tempfile.TemporaryDirectory() as folder:
                return in_region(localize(super().text(), folder))

    def check(program, seed, folder):
        text = program.text()
        for sizes in program.runs():
            flags = [f"--interpret={program.ranks()}"]
            if sizes:
                flags.append("--interpret-sizes=" + ",".join(f"{n}={s}" for n, s in sizes.items()))
            local = localize(text, folder, *flags)
        missing = [move for move in MOVE.findall(text) if move not in MOVE.findall(local)]
        if missing:
            raise shrink.Failure([*to_local, os.devnull], bin, 1,
                                 f"error: {', '.join(missing)} are written, but not made")

    run_seeds(args, check, make=ByHand)


if __name__ == "__main__":
    main()
