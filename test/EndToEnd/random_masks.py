#!/usr/bin/env python3
"""Random masks: block masks that ask every pair, beside those that intervals decide.

Each program has many masks, of sizes that blocks do not divide, each of a random function
of indices and of what it loads, or one of those below. The interpreter asks every pair of
the source; what the program becomes has verdicts from intervals, and must equal it.

    random_masks.py --build build --seeds 0:10
"""
import os
import random

import shrink
from random_programs import arguments, run_seeds

WIDTHS = {"i8": 8, "i32": 32, "i64": 64, "index": 64}
PREDICATES = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]
# What a program has as data: a type, and the numbers that there are.
CAPTURED = {
    "ids": ("tensor<2x200xi32>", (0, 5)), "signs": ("tensor<200xi32>", (-3, 4)),
    "far": ("tensor<200xi64>", (-9, 9)), "bytes": ("tensor<200xi8>", (-128, 128)),
    "ends": ("tensor<2xi32>", (0, 190)), "ofhead": ("tensor<2x200xi32>", (0, 60)),
    "sorted": ("tensor<2x200xi32>", None), "reals": ("tensor<200xf32>", None),
}
KNOWN = [
    "k <= q", "q - k <u 40", "k <= q && q - k < 40", "k < 50 || k <= q",
    "q / 37 == k / 37", "q % 50 == k % 50", "(q - k) % 3 == 0", "sorted[b, q] == sorted[b, k]",
    "sorted[b, q] == sorted[b, k] && k <= q", "sorted[b, q] / 20 == sorted[b, k] / 20",
    "k <= q && sorted[b, k] / 16 == sorted[b, q] / 16 && q - k < 90", "k < ends[b]",
    "!(k <= q) && q < ends[b]", "ids[b, q] == ids[b, k] && q - k <u ends[b]",
    "reals[q] < reals[k]", "signs[q] + signs[k] < 6", "signs[q] * signs[k] > -10",
    "q - k <u 40 && ofhead[h, k] >= 0", "k + 64 <= q", "sorted[b, q + 1] == sorted[b, k - 1]",
]


class Mask:
    """The lines of a region; values are (name, type)."""

    def __init__(self, rng):
        self.rng = rng
        self.lines = []
        self.used = set()
        self.count = 0

    def op(self, text, result):
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"      {name} = {text}")
        return name, result

    def constant(self, value, type_):
        return self.op(f"arith.constant {value} : {type_}", type_)

    def binary(self, op, x, y):
        return self.op(f"arith.{op} {x[0]}, {y[0]} : {x[1]}", x[1])

    def cast(self, x, type_):
        if x[1] == type_:
            return x
        if "index" in (x[1], type_):
            op = "index_cast"
            if self.rng.random() < 0.2:
                op = "index_castui"
        elif WIDTHS[x[1]] > WIDTHS[type_]:
            op = "trunci"
        else:
            op = self.rng.choice(["extsi", "extsi", "extui"])
        return self.op(f"arith.{op} {x[0]} : {x[1]} to {type_}", type_)

    def load(self, name, indices):
        self.used.add(name)
        tensor = CAPTURED[name][0]
        element = tensor[tensor.rindex("x") + 1:-1]
        at = ", ".join(index[0] for index in indices)
        return self.op(f"tv.load %{name}[{at}] : {tensor} -> {element}", element)

    # ---- written masks

    def parse(self, text):
        """C, with <u for unsigned, of index and i64."""
        for op in ("||", "&&"):
            left, _, right = text.rpartition(op)
            if left:
                return self.binary("ori" if op == "||" else "andi", self.parse(left),
                                   self.parse(right))
        text = text.strip()
        if text.startswith("!("):
            return self.binary("xori", self.parse(text[2:-1]),
                               self.op("arith.constant true", "i1"))
        for op, predicate in (("<=", "sle"), (">=", "sge"), ("==", "eq"), ("<u", "ult"),
                              ("<", "slt"), (">", "sgt")):
            left, _, right = text.partition(f" {op} ")
            if right:
                x, y = self.integer(left), self.integer(right)
                if x[1] == "f32":
                    return self.op(f"arith.cmpf olt, {x[0]}, {y[0]} : f32", "i1")
                return self.op(f"arith.cmpi {predicate}, {x[0]}, {y[0]} : {x[1]}", "i1")
        raise ValueError(text)

    def integer(self, text):
        text = text.strip()
        if text.startswith("(") and text.partition(")")[0].count("(") == 1:
            inside, _, rest = text[1:].partition(")")
            if not rest:
                return self.integer(inside)
        for op, name in ((" + ", "addi"), (" - ", "subi"), (" * ", "muli"), (" / ", "divsi"),
                         (" % ", "remsi")):
            left, _, right = text.rpartition(op)
            if left and left.count("[") == left.count("]") and \
                    left.count("(") == left.count(")"):
                return self.binary(name, self.integer(left), self.integer(right))
        if text in "bhqk":
            return f"%{text}", "index"
        if "[" in text:
            name, _, indices = text[:-1].partition("[")
            x = self.load(name, [self.integer(index) for index in indices.split(",")])
            return x if x[1] == "f32" else self.cast(x, "index")
        return self.constant(int(text), "index")

    # ---- random ones

    def index(self):
        rng = self.rng
        x = (f"%{rng.choice('qqqqkkkkbh')}", "index")
        if rng.random() < 0.2:
            x = self.binary("addi", x, self.constant(rng.randint(-9, 9), "index"))
        return x

    def leaf(self, type_):
        rng = self.rng
        kind = rng.random()
        if kind < 0.15:
            value = rng.choice([0, 1, 2, 7, 40, 100, -3, 1 << 6])
            if WIDTHS[type_] >= 32 and rng.random() < 0.2:
                value = rng.choice([2**31 - 1, -2**31, 2**24, 65537])
            return self.constant(value, type_)
        if kind < 0.55:
            return self.cast(self.index(), type_)
        name = rng.choice([name for name in CAPTURED if name != "reals"])
        rank = CAPTURED[name][0].count("x")
        indices = [(f"%{'h' if name == 'ofhead' else 'b'}", "index")] * (rank - 1)
        indices.append(("%b", "index") if name == "ends" else self.index())
        return self.cast(self.load(name, indices[-rank:]), type_)

    def number(self, depth, type_):
        rng = self.rng
        if depth == 0 or rng.random() < 0.25:
            return self.leaf(type_)
        kind = rng.random()
        if kind < 0.45:
            op = rng.choice(["addi", "subi", "subi", "muli", "minsi", "maxsi", "xori", "andi",
                             "minui"])
            return self.binary(op, self.number(depth - 1, type_), self.number(depth - 1, type_))
        if kind < 0.7:
            op = rng.choice(["divsi", "divui", "floordivsi", "ceildivsi", "remsi", "remui",
                             "shrsi", "shli", "shrui"])
            by = rng.randint(0, 6) if op.startswith("sh") else rng.choice([1, 3, 16, 37, 100])
            return self.binary(op, self.number(depth - 1, type_), self.constant(by, type_))
        if kind < 0.85:
            choice = self.condition(depth - 1)
            x, y = self.number(depth - 1, type_), self.number(depth - 1, type_)
            return self.op(f"arith.select {choice[0]}, {x[0]}, {y[0]} : {type_}", type_)
        if kind < 0.9:
            return self.op(f"arith.extui {self.condition(depth - 1)[0]} : i1 to {type_}", type_) \
                if type_ != "index" else self.leaf(type_)
        return self.cast(self.number(depth - 1, rng.choice(list(WIDTHS))), type_)

    def condition(self, depth):
        rng = self.rng
        kind = rng.random()
        if depth <= 0 or kind < 0.45:
            type_ = rng.choice(["index", "index", "i32", "i32", "i64", "i8"])
            x, y = self.number(max(depth - 1, 0), type_), self.number(max(depth - 1, 0), type_)
            return self.op(f"arith.cmpi {rng.choice(PREDICATES)}, {x[0]}, {y[0]} : {type_}", "i1")
        if kind < 0.8:
            return self.binary(rng.choice(["andi", "andi", "ori", "ori", "xori"]),
                               self.condition(depth - 1), self.condition(depth - 1))
        if kind < 0.9:
            x, y = self.condition(depth - 1), self.condition(depth - 1)
            return self.op(f"arith.cmpi {rng.choice(['eq', 'ne', 'ult'])}, {x[0]}, {y[0]} : i1",
                           "i1")
        choice, x, y = (self.condition(depth - 1) for _ in range(3))
        return self.op(f"arith.select {choice[0]}, {x[0]}, {y[0]} : i1", "i1")


class Masks:
    """A program; masks written above are in all of them, at other sizes."""

    def __init__(self, seed, *_):
        self.rng = random.Random(seed)
        self.devices = self.rng.choice([1, 1, 2, 3])
        self.results, self.body = [], []
        for number in range(44):
            mask = Mask(self.rng)
            if number < len(KNOWN):
                value = mask.parse(KNOWN[number])
            else:
                value = mask.condition(self.rng.randint(1, 4))
            self.add(number, mask, value)

    def add(self, number, mask, value):
        rng = self.rng
        of = [rng.choice([1, 63, 64, 65, 100, 127, 130, 150, 192]) for _ in range(2)]
        blocks = [rng.choice([64, 64, 128]) for _ in range(2)]
        shape = [rng.choice([1, 2]), rng.choice([1, 2])]
        shape += [-(-n // size) for n, size in zip(of, blocks)]
        view = ["_"] * 4
        if rng.random() < 0.5:
            view[rng.randrange(4)] = "did(x) * _"
        type_ = f"tensor<{'x'.join(map(str, shape))}xi8, #tv.view<#m, [{', '.join(view)}]>>"
        self.results.append((f"%r{number}", type_))
        self.body += [
            f"  %r{number} = tv.block_mask of {of} blocks {blocks} : () -> {type_}",
            "    mask_mod (%b: index, %h: index, %q: index, %k: index) {",
            *mask.lines, f"      tv.yield {value[0]} : i1", "    }"]

    def ranks(self):
        return self.devices

    def runs(self):
        return [{}]

    def text(self):
        inputs, ready = [], []
        for name, (type_, limits) in CAPTURED.items():
            if name == "sorted":
                inputs.append(f"%steps: {type_} {{tv.range = [0, 2]}}")
                ready = [f"  %sorted = tv.cumsum %steps dim 1 : ({type_}) -> {type_}"]
                continue
            ranged = f" {{tv.range = [{limits[0]}, {limits[1]}]}}" if limits else ""
            inputs.append(f"%{name}: {type_}{ranged}")
        types = ", ".join(type_ for _, type_ in self.results)
        names = ", ".join(name for name, _ in self.results)
        return "\n".join([f"#m = #tv.mesh<x = {self.devices}>",
                          f"func.func @main({', '.join(inputs)}) -> ({types}) {{",
                          *ready, *self.body, f"  return {names} : {types}", "}", ""])


def main():
    parser = arguments(__doc__)
    parser.add_argument("--passes", nargs="+", default=["--tessera=to=kernels"])
    args = parser.parse_args()
    bin = os.path.join(args.build, "bin")

    def check(program, seed, folder):
        path = os.path.join(folder, "program.mlir")
        with open(path, "w") as f:
            f.write(program.text())
        flags = [*args.passes, f"--interpret={program.ranks()}"]
        shrink.run(["tessera-opt", "%s", *flags, "-o", os.devnull], path, bin)

    run_seeds(args, check, make=Masks)


if __name__ == "__main__":
    main()
