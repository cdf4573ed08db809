#!/usr/bin/env python3
"""Random programs, meshes, views and sizes through the pipeline, in the interpreter.

Each seed makes one straight-line program of tv ops whose values lie by random
views; `tessera-opt` takes it to the local phase, or where --passes say, and
interprets it on every rank against the source program in float64, for several
values of its dynamic sizes. A failing seed prints its program as small as
shrink.py makes it, with the RUN line that shows what is wrong.

    random_programs.py --build build --seeds 0:200
    random_programs.py --build build --seeds 0:200 --without dynamic flat

--without leaves out what programs may have (FEATURES), to look past a defect.
"""
import argparse
import math
import os
import random
import re
import sys
import tempfile

import random_parts
import shrink
from random_sizes import Size, dynamic
from random_stages import Stages
from random_views import Views
from random_windows import Windows

MESHES = [
    "tp = 1", "tp = 2", "tp = 3", "tp = 4", "tp = 6", "x = 2, y = 2", "x = 2, y = 3",
    "x = 3, y = 2", "x = 1, y = 3", "x = 2, y = 2, devices = iota(y, x)",
    "tp = 4, devices = [2, 0, 3, 1]", "x = 2, y = 2, z = 2",
]
EXTENTS = [1, 2, 3, 4, 5, 6, 8, 10, 12]
FEATURES = {
    "dynamic": "extents that are known at run time",
    "empty": "extents of 0",
    "flat": "one product for several dimensions",
    "groups": "bounded groups in a product",
    "alloc": "orders in memory",
    "results": "views on results of ops",
    "open": "dimensions of these that may be split further",
    "types": "elements other than f32",
    "integers": "values of i32, and divisions by 0 of them",
    "load": "captured tensors, at indices that may be outside",
    "dispatch": "split rows of the buffers of experts",
    "moves": "programs that only move",
    "errors": "errors in data of sequences and pages",
    "meshes": "views in the axes of another mesh of the same devices",
    "parts": "every fourth program of parts of axes, partial along some",
    "stages": "values on a part of the mesh, and local regions; mostly in every fourth program",
}
MOVES = ["constrain", "constrain", "transpose", "reshape", "slice", "concat", "pad",
         "broadcast", "reshard", "barrier", "same_view"]


class Value:
    def __init__(self, name, shape, element, type_):
        self.name, self.shape, self.element, self.type = name, tuple(shape), element, type_


class Program(Views, Windows, random_parts.Parts, Stages):
    def __init__(self, seed, partial_inputs=True, without=()):
        self.partial_inputs = partial_inputs
        self.seed, self.random = seed, random.Random(seed)
        self.has = {name for name in FEATURES if name not in without}
        self.parts = "parts" in self.has and seed % 4 == 3
        self.usual = []  # sub-axes of programs of parts
        self.mesh = self.random.choice(random_parts.MESHES if self.parts else MESHES)
        self.axes = [(name, int(size)) for name, size in
                     re.findall(r"(\w+) = (\d+)", self.mesh)]
        self.sizes = {}  # name: (maximum, multiple)
        if "dynamic" in self.has and self.chance(0.4):
            for name in "bs"[:self.random.randint(1, 2)]:
                multiple = self.random.choice([1, 1, 1, 2, 3])
                self.sizes[name] = (multiple * self.random.randint(1, 12 // multiple), multiple)
        self.float = "f32"
        if "types" in self.has:
            self.float = self.random.choice(["f32", "f32", "f32", "f64", "bf16"])
        self.arguments, self.body, self.values = [], [], []
        self.count = 0
        self.made = None

    def chance(self, probability):
        return self.random.random() < probability

    # Values

    def argument(self, shape, view, element, attributes=""):
        """None where the shape is not that of an argument."""
        names = [e.name for e in dynamic(shape)]
        if None in names:
            return None
        name = f"a{len(self.arguments)}"
        type_ = self.type(shape, view, element)
        if names:
            attributes += ", tv.dims = [" + ", ".join(f'"{n}"' for n in names) + "]"
        self.arguments.append(f'%{name}: {type_} {{tv.name = "{name}"{attributes}}}')
        return Value(f"%{name}", shape, element or self.float, type_)

    def input(self, shape, element=None):
        view = None
        if self.chance(0.7):
            view = self.view(shape, partial=self.partial_inputs and element != "i32")
        role = ', tv.role = "weight"' if self.chance(0.4) else ""
        if element == "i32":
            role = ", tv.range = [-3, 3]"
        return self.keep(self.argument(shape, view, element, role))

    def indices(self, shape, end, outside=1):
        """An argument of integers in [0, end), or a few outside."""
        view = self.view(shape) if self.chance(0.5) else None
        end = 5 if isinstance(end, Size) else end
        return self.argument(shape, view, "i32",
                             f", tv.range = [{-outside}, {end + outside}]")

    def keep(self, value):
        if value:
            self.values.append(value)
        return value

    def name(self):
        self.count += 1
        return f"%v{self.count - 1}"

    def result(self, shape, element=None, split=()):
        """The type of an op's result; a few of them say how it lies."""
        view = None
        if "results" in self.has and self.chance(0.15):
            view = self.opened(self.view(shape, inside=True))
        return self.type(shape, view, element)

    def emit(self, text, operands, shape, element=None, after="", type_=None):
        if None in operands:
            return None
        element = element or operands[0].element
        name, type_ = self.name(), type_ or self.result(shape, element)
        types = ", ".join(o.type for o in operands)
        self.body.append(f"  {name} = {text} : ({types}) -> {type_}{after}")
        return self.keep(Value(name, shape, element, type_))

    def extent(self):
        if self.sizes and self.chance(0.35):
            return Size({(self.random.choice(list(self.sizes)),): 1})
        if "empty" in self.has and self.chance(0.02):
            return 0
        return self.random.choice(EXTENTS)

    def shape(self, rank):
        return [self.extent() for _ in range(rank)]

    def pick(self, rank=None, at_least=0, integers=False):
        fits = [v for v in self.values
                if (rank is None or len(v.shape) == rank) and len(v.shape) >= at_least
                and (integers or v.element == self.float)]
        if fits and self.chance(0.85):
            return self.random.choice(fits[-6:])
        shape = self.shape(rank or max(at_least, self.random.randint(1, 3)))
        element = "i32" if integers and "integers" in self.has and self.chance(0.2) else None
        return self.input(shape, element)

    def like(self, shape, element=None):
        """A value of that shape, or None where there can be none."""
        fits = [v for v in self.values if v.shape == tuple(shape)
                and v.element == (element or self.float)]
        if fits and (self.chance(0.5) or None in [e.name for e in dynamic(shape)]):
            return self.random.choice(fits)
        return self.input(shape, element)

    # Ops

    def unary(self, op, a):
        return a and self.emit(f"tv.{op} {a.name}", [a], a.shape)

    def binary(self, op, a, b):
        return a and b and self.emit(f"tv.{op} {a.name}, {b.name}", [a, b], a.shape)

    def op_add(self):
        a = self.pick(integers=True)
        return self.binary(self.random.choice(["add", "mul", "sub", "max", "min"]), a,
                           self.like(a.shape, a.element))

    def op_pointwise(self):
        a = self.pick(integers=True)
        op = self.random.choice(["neg", "abs"])
        if a.element == self.float and self.chance(0.8):
            op = self.random.choice(["gelu tanh", "gelu", "silu", "tanh", "sigmoid", "neg",
                                     "abs"])
        return self.unary(op, a)

    def op_positive(self):
        """Functions that are not defined, or grow fast, in other places than these."""
        a = self.pick()
        b = self.unary("exp", self.unary("tanh", a))
        op = self.random.choice(["log", "sqrt", "rsqrt", "pow", "div"])
        if op == "div":
            return self.binary(op, a, b)
        return self.binary(op, b, self.unary("tanh", a)) if op == "pow" else self.unary(op, b)

    def op_where(self):
        """What a choice by floats leaves must not jump where they are equal."""
        a = self.pick(integers=True)
        b = self.like(a.shape, a.element)
        predicates = ["lt", "le", "gt", "ge"] + ["eq", "ne"] * (a.element == "i32")
        if b is None:
            return None
        c = self.emit(f"tv.compare {self.random.choice(predicates)} {a.name}, {b.name}",
                      [a, b], a.shape, "i1")
        self.values.remove(c)
        x, y = (a, b) if self.chance(0.5) else (b, a)
        return self.emit(f"tv.where {c.name}, {x.name}, {y.name}", [c, x, y], a.shape,
                         a.element)

    def op_gelu_grad(self):
        a = self.pick()
        x = self.like(a.shape)
        form = self.random.choice(["", "tanh "])
        return x and self.emit(f"tv.gelu_grad {form}{a.name}, {x.name}", [a, x], a.shape)

    def op_linear(self):
        x = self.pick(at_least=1)
        n, k = self.extent(), x.shape[-1]
        operands = [x, self.like([n, k])]
        bias = self.chance(0.5)
        if bias:
            operands.append(self.like([n]))
        if None in operands:
            return None
        names = ", ".join(o.name for o in operands[:2])
        return self.emit(f"tv.linear {names}" + (f" bias {operands[2].name}" if bias else ""),
                         operands, [*x.shape[:-1], n])

    def op_matmul(self):
        a = self.pick(at_least=2)
        b = self.like([*a.shape[:-2], a.shape[-1], self.extent()])
        return b and self.emit(f"tv.matmul {a.name}, {b.name}", [a, b],
                               [*a.shape[:-1], b.shape[-1]])

    def op_contract(self):
        a = self.pick(at_least=1)
        column = len(a.shape)
        if column > 3:
            return None
        extents = [*a.shape, self.extent()]
        kinds = [self.random.choice("batch row sum".split()) for _ in a.shape] + ["column"]
        of_b = [d for d, kind in enumerate(kinds) if kind != "row"]
        to = [d for d, kind in enumerate(kinds) if kind != "sum"]
        self.random.shuffle(of_b)
        self.random.shuffle(to)
        operands = [a, self.like([extents[d] for d in of_b])]
        bias = to[-1] == column and self.chance(0.5)
        if bias:
            operands.append(self.like([extents[column]]))
        shape = [extents[d] for d in to]
        element = "f32" if a.element in ("bf16", "f16") and not bias and self.chance(0.5) else None
        addend = self.chance(0.3)
        if addend:
            operands.append(self.like(shape, element or a.element))
        if None in operands:
            return None
        return self.emit(f"tv.contract {a.name} {list(range(column))}, {operands[1].name} {of_b}"
                         + (f" bias {operands[2].name}" if bias else "")
                         + (f" add {operands[-1].name}" if addend else "") + f" to {to}",
                         operands, shape, element)

    def op_reduce(self):
        a = self.pick(at_least=1, integers=True)
        dims = sorted(self.random.sample(range(len(a.shape)),
                                         self.random.randint(1, len(a.shape))))
        kind = self.random.choice(["sum", "sum", "max", "min"])
        rest = [e for d, e in enumerate(a.shape) if d not in dims]
        return self.emit(f"tv.reduce {kind} {a.name} dims {dims}", [a], rest)

    def op_broadcast(self):
        a = self.pick(integers=True)
        if len(a.shape) > 3:
            return None
        rank = len(a.shape) + 1
        new = self.random.randrange(rank)
        dims = [d for d in range(rank) if d != new]
        shape = list(a.shape)
        shape.insert(new, self.random.choice(EXTENTS))
        return self.emit(f"tv.broadcast {a.name} dims {dims}", [a], shape)

    def op_broadcast_like(self):
        like = self.pick(at_least=1)
        dims = sorted(self.random.sample(range(len(like.shape)),
                                         self.random.randint(0, len(like.shape) - 1)))
        a = self.like([like.shape[d] for d in dims])
        return a and self.emit(f"tv.broadcast {a.name} dims {dims} like {like.name}",
                               [a, like], like.shape)

    def op_made(self):
        """What has no operand, or one that only gives its extents."""
        like = self.pick(at_least=1)
        text = self.random.choice([
            f"tv.constant dense<0.5> : tensor<{self.float}>",
            f"tv.iota {self.random.randrange(len(like.shape))}",
            f"tv.random seed(7) stream({self.count})"])
        if (self.float == "bf16" and "constant" not in text) or (
                self.float == "f64" and "random" in text):
            return None
        if dynamic(like.shape) or self.chance(0.5):
            return self.emit(f"{text} like {like.name}", [like], like.shape)
        return self.emit(text, [], like.shape, self.float)

    def op_size(self):
        a = self.pick(at_least=1)
        if self.float == "bf16":
            return None
        d = self.random.randrange(len(a.shape))
        return self.emit(f"tv.size {a.name} dim {d}", [a], [])

    def op_transpose(self):
        a = self.pick(at_least=2, integers=True)
        perm = list(range(len(a.shape)))
        self.random.shuffle(perm)
        return self.emit(f"tv.transpose {a.name} perm {perm}", [a],
                         [a.shape[p] for p in perm])

    def regrouped(self, count):
        """Extents of that product."""
        shape = []
        while count > 1 and len(shape) < 3:
            factor = self.random.choice([f for f in range(2, count + 1) if count % f == 0])
            shape.append(factor)
            count //= factor
        if count > 1:
            shape[-1] *= count
        return shape or [1]

    def op_reshape(self):
        a = self.pick(integers=True)
        at = [d for d, e in enumerate(a.shape) if isinstance(e, Size)]
        if 0 in a.shape:
            return None
        if len(at) == 1 and self.chance(0.5):
            # The one dynamic extent takes some of the others, or gives some away.
            low, high = (self.random.randint(0, at[0]),
                         self.random.randint(at[0], len(a.shape) - 1))
            whole = math.prod(a.shape[low:high + 1], start=1)
            parts = [p for p in (1, 2, 3, 4) if whole.divided(p)]
            part = self.random.choice(parts)
            middle = [whole.divided(part)] + [part] * (part > 1 or self.chance(0.2))
            self.random.shuffle(middle)
            shape = [*a.shape[:low], *middle, *a.shape[high + 1:]]
        else:
            shape, run = [], 1
            for e in [*a.shape, None]:
                if isinstance(e, int):
                    run *= e
                    continue
                if run > 1 or self.chance(0.2):
                    shape += self.regrouped(run)
                shape += [e] * (e is not None)
                run = 1
        if len(shape) > 5:
            return None
        return self.emit(f"tv.reshape {a.name}", [a], shape)

    def op_slice(self):
        a = self.pick(at_least=1, integers=True)
        sizes, offsets = [], []
        for e in a.shape:
            least = 0 if "empty" in self.has and self.chance(0.03) else 1
            sizes.append(e if isinstance(e, Size) or not e else self.random.randint(least, e))
            offsets.append(0 if isinstance(e, Size) else self.random.randint(0, e - sizes[-1]))
        return self.emit(f"tv.slice {a.name} offsets {offsets}", [a], sizes)

    def op_concat(self):
        a = self.pick(at_least=1, integers=True)
        d = self.random.randrange(len(a.shape))
        parts, shape = [a], list(a.shape)
        for _ in range(self.random.randint(1, 2)):
            part = list(a.shape)
            part[d] = self.random.choice([part[d], self.extent()])
            shape[d] += part[d]
            parts.append(self.like(part, a.element))
        if None in parts:
            return None
        return self.emit(f"tv.concat {', '.join(p.name for p in parts)} dim {d}", parts,
                         shape)

    def op_constrain(self):
        a = self.pick(at_least=1, integers=True)
        return self.constrained(a, self.view(a.shape, inside=True))

    def constrained(self, a, view):
        return self.emit(f"tv.constrain {a.name}", [a], a.shape, after=f" to #tv.view<#m, {view}>",
                         type_=self.type(a.shape, view, a.element))

    def op_barrier(self):
        a = self.pick(integers=True)
        passage = self.random.choice(["none", "forward", "backward"])
        return self.emit(f"tv.barrier {passage} {a.name}", [a], a.shape)

    def op_same_view(self):
        a = self.pick(integers=True)
        operands = [a] + [self.like(a.shape) for _ in range(self.random.randint(0, 2))]
        if None in operands:
            return None
        view = self.view(a.shape) if self.chance(0.2) else None
        results = [Value(self.name(), v.shape, v.element, self.type(v.shape, view, v.element))
                   for v in operands]
        self.body.append(f"  {', '.join(v.name for v in results)} = tv.same_view "
                         f"{', '.join(v.name for v in operands)} : "
                         f"({', '.join(v.type for v in operands)}) -> "
                         f"({', '.join(v.type for v in results)})")
        for value in results:
            self.keep(value)
        return results[0]

    def op_reshard(self):
        a = self.pick(at_least=1, integers=True)
        if "tv.view" not in a.type or "partial" in a.type and not self.parts:
            return None
        type_ = self.type(a.shape, self.view(a.shape, inside=True), a.element)
        name = self.name()
        self.body.append(f"  {name} = tv.reshard {a.name} : ({a.type}) -> {type_}")
        return self.keep(Value(name, a.shape, a.element, type_))

    def op_softmax(self):
        a = self.pick(at_least=1)
        d = self.random.randrange(len(a.shape))
        return self.emit(f"tv.softmax {a.name} dim {d}", [a], a.shape)

    def op_cross_entropy(self):
        a = self.pick(at_least=2)
        count = a.shape[-1]
        if isinstance(count, Size) or count < 2:
            return None
        labels = self.indices(a.shape[:-1], count - 1)
        return labels and self.emit(f"tv.cross_entropy {a.name}, {labels.name}",
                                    [a, labels], a.shape[:-1])

    def op_dropout(self):
        a = self.pick()
        return self.emit(f"tv.dropout {a.name} rate(0.25) seed(3) stream({self.count})",
                         [a], a.shape)

    def op_layer_norm(self):
        a = self.pick(at_least=1)
        w, b = self.like([a.shape[-1]]), self.like([a.shape[-1]])
        if None in (w, b):
            return None
        if self.chance(0.5):
            return self.emit(f"tv.rms_norm {a.name}, {w.name} epsilon(0.01)", [a, w], a.shape)
        return self.emit(f"tv.layer_norm {a.name}, {w.name}, {b.name} epsilon(0.01)",
                         [a, w, b], a.shape)

    def op_rope(self):
        a = self.pick(at_least=2)
        if isinstance(a.shape[-1], Size) or a.shape[-1] % 2:
            return None
        if self.chance(0.5):
            return self.emit(f"tv.rope {a.name} base(100.0)", [a], a.shape)
        of = [*a.shape[:self.random.randint(0, len(a.shape) - 2)], a.shape[-2]]
        at = self.indices(of, 50, outside=0)
        return at and self.emit(f"tv.rope {a.name} at {at.name} base(100.0)", [a, at], a.shape)

    def op_pad(self):
        a = self.pick(at_least=1, integers=True)
        low = [self.random.choice([0, 0, 1, 2]) for _ in a.shape]
        high = [self.random.choice([0, 0, 1, 3]) for _ in a.shape]
        value = self.random.choice(["0", "2"] if a.element == "i32" else ["0.0", "0.5"])
        return self.emit(f"tv.pad {a.name} low {low} high {high} value {value} : {a.element}",
                         [a], [e + l + h for e, l, h in zip(a.shape, low, high)])

    def scalars(self, operands, body, element=None):
        """A tv.map; in `body` {t} is the element type, and %x, %y are the operands'."""
        if None in operands:
            return None
        names = ", ".join(f"%{n}: {o.element}" for n, o in zip("xyz", operands))
        element = element or operands[0].element
        body = body.replace("{t}", element).replace("\n", "\n    ")
        return self.emit(f"tv.map {', '.join(o.name for o in operands)}", operands,
                         operands[0].shape, element,
                         f" ({names}) {{\n    {body}\n    tv.yield %r : {element}\n  }}")

    def op_map(self):
        a = self.pick()
        return self.scalars([a, self.like(a.shape)], self.random.choice([
            "%r = arith.addf %x, %y : {t}", "%r = arith.subf %x, %y : {t}",
            "%r = arith.maximumf %x, %y : {t}", "%r = arith.mulf %x, %y : {t}",
            "%n = arith.negf %x : {t}\n%r = arith.minimumf %n, %y : {t}",
            "%c = arith.constant 0.5 : {t}\n%p = arith.mulf %x, %c : {t}\n"
            "%r = arith.addf %p, %y : {t}",
            "%c = arith.cmpf olt, %x, %y : {t}\n%r = arith.select %c, %x, %y : {t}",
        ]))

    def op_integers(self):
        """Divisions: some of the divisors are 0."""
        if "integers" not in self.has:
            return None
        shape = self.pick(at_least=1).shape
        op = self.random.choice(["divsi", "remsi", "floordivsi", "addi", "maxsi", "div"])
        x, y = self.like(shape, "i32"), self.like(shape, "i32")
        if op == "div":
            return self.binary(op, x, y)
        return self.scalars([x, y], f"%r = arith.{op} %x, %y : i32")

    def op_from_integers(self):
        if "integers" not in self.has:
            return None
        a = self.pick(integers=True)
        if a.element != "i32":
            a = self.like(a.shape, "i32")
        if self.chance(0.5):
            return a and self.emit(f"tv.cast {a.name}", [a], a.shape, self.float)
        return self.scalars([a], f"%r = arith.sitofp %x : i32 to {self.float}", self.float)

    def op_load(self):
        """Elements of a whole tensor, at indices from data: some are outside."""
        if "load" not in self.has:
            return None
        table = self.pick(at_least=1)
        shape = self.pick(at_least=1).shape
        i = self.indices(shape, table.shape[0], outside=2)
        if len(table.shape) > 2 or i is None:
            return None
        index, more = "%k", ""
        if len(table.shape) == 2:
            index = self.random.choice(["%k, %k", "%k, %o"])
            more = "%c = arith.constant 2 : index\n%o = arith.subi %k, %c : index\n"
        return self.scalars(
            [i, self.like(shape)], "%k = arith.index_cast %x : i32 to index\n" + more
            + f"%l = tv.load {table.name}[{index}] : {table.type} -> {{t}}\n"
            "%r = arith.addf %l, %y : {t}", self.float)

    def op_attention(self):
        batch, groups, share = (self.random.choice([1, 2, 3]) for _ in range(3))
        rows, columns, depth, width = (self.random.choice([2, 3, 4, 5]) for _ in range(4))
        if self.sizes and self.chance(0.5):
            batch = self.extent()
        if self.sizes and self.chance(0.5):
            rows, columns = self.extent(), self.extent()
        packed = self.chance(0.2) and not dynamic([batch, rows])
        columns = rows if packed else columns
        q = self.like([batch, groups * share, rows, depth])
        k = self.like([batch, groups, columns, depth])
        v = self.like([batch, groups, columns, width])
        flags, more = "", ""
        causal = self.chance(0.5)
        if causal:
            flags += " causal"
        if self.chance(0.3):
            flags += f" dropout(0.25) seed(3) stream({self.count})"
        if packed:
            begins = self.indices([batch, self.random.randint(1, 4)], rows + 1)
            flags += f" sequences({begins.name})"
            more = f", {begins.type}"
            if begins.shape[1] > 1 and self.chance(0.4):
                used = self.indices([batch, begins.shape[1] - 1], rows + 1)
                flags += f" used({used.name})"
                more += f", {used.type}"
        shape = [batch, groups * share, rows, width]
        wide = "f64" if self.float == "f64" else "f32"
        after = ""
        table = self.pick(at_least=1)
        if "load" in self.has and len(table.shape) == 1 and self.chance(0.7):
            index = self.random.choice(["%h", "%qi", "%ki", "%d"])
            cast = f"    %w = arith.extf %l : {self.float} to {wide}\n" \
                if wide != self.float else ""
            after = (f"\n    score_mod (%s: {wide}, %b: index, %h: index, %qi: index, "
                     "%ki: index) {\n    %d = arith.subi %ki, %qi : index\n"
                     f"    %l = tv.load {table.name}[{index}] : {table.type} -> {self.float}\n"
                     f"{cast}    %m = arith.addf %s, {'%w' if cast else '%l'} : {wide}\n"
                     f"    tv.yield %m : {wide}\n  }}")
        name = self.name()
        types = self.result(shape), self.type(shape[:-1], None, wide)
        self.body.append(
            f"  {name}, {name}l = tv.attention {q.name}, {k.name}, {v.name} scale(0.5)"
            f"{flags} : ({q.type}, {k.type}, {v.type}{more}) -> "
            f"({types[0]}, {types[1]}){after}")
        if not causal and not packed and not dynamic([columns]):  # else a row without keys has -inf
            self.keep(Value(f"{name}l", shape[:-1], wide, types[1]))
        return self.keep(Value(name, shape, self.float, types[0]))

    def op_gather(self):
        a = self.pick(at_least=1, integers=True)
        d = self.random.randrange(len(a.shape))
        i = self.indices(self.shape(self.random.randint(1, 2)), a.shape[d])
        return self.emit(f"tv.gather {a.name}, {i.name} dim {d}", [a, i],
                         [*a.shape[:d], *i.shape, *a.shape[d + 1:]])

    def op_scatter(self):
        a = self.pick(at_least=1, integers=True)
        d = self.random.randrange(len(a.shape))
        i = self.indices(self.shape(1), a.shape[d])
        u = self.like([*a.shape[:d], *i.shape, *a.shape[d + 1:]], a.element)
        kind = self.random.choice(["sum", "sum", "max", "min", "set", "set"])
        return u and self.emit(f"tv.scatter {kind} {a.name}, {i.name}, {u.name} dim {d}",
                               [a, i, u], a.shape)

    def op_cumsum(self):
        a = self.pick(at_least=1, integers=True)
        turn = self.random.choice(["", "reverse "])
        return self.emit(f"tv.cumsum {turn}{a.name} dim {self.random.randrange(len(a.shape))}",
                         [a], a.shape)

    def op_top_k(self):
        """Only the values: which of nearly equal ones is first, rounding decides."""
        a = self.pick(at_least=1)
        d = self.random.randrange(len(a.shape))
        if isinstance(a.shape[d], Size) or not a.shape[d]:
            return None
        shape = list(a.shape)
        shape[d] = self.random.randint(1, min(3, shape[d]))
        name = self.name()
        types = self.result(shape, a.element), self.result(shape, "i32")
        self.body.append(f"  {name}, {name}i = tv.top_k {a.name} dim {d} : ({a.type}) -> "
                         f"({types[0]}, {types[1]})")
        return self.keep(Value(name, shape, a.element, types[0]))

    def op_sequence_errors(self):
        batch, bounds = self.extent(), self.random.randint(1, 5)
        given = [self.indices([batch, bounds], 7)]
        used = ""
        if bounds > 1 and self.chance(0.5):
            given.append(self.indices([batch, bounds - 1], 4))
            used = given[1] and f" used({given[1].name})"
        return None not in given and self.emit(
            f"tv.sequence_errors {given[0].name}{used} tokens(6)", given, given[0].shape)

    def op_page_errors(self):
        batch, columns = self.extent(), self.random.randint(1, 4)
        table, lengths = self.indices([batch, columns], 20), self.indices([batch], 3 * columns)
        return table and lengths and self.emit(
            f"tv.page_errors {table.name} lengths({lengths.name}) page(3) pages(20)",
            [table, lengths], lengths.shape)

    def op_experts(self):
        tokens = self.pick(rank=2)
        count, width = tokens.shape
        experts, capacity = self.random.randint(1, 6), self.random.randint(1, 4)
        choices = self.random.choice([1, 2, 3])
        chosen = self.indices([count, choices], experts, outside=0)
        weights, w = self.like([count, choices]), self.like([experts, width, width])
        if None in (chosen, weights, w):
            return None
        name = self.name()
        shape = [experts, capacity, width]
        view = self.view(shape) if "dispatch" in self.has and self.chance(0.5) else None
        buffer, grouped = self.type(shape, view), self.result(shape)
        counts, slots = self.type([experts], None, "i32"), self.type([count, choices], None, "i32")
        type_ = self.result(tokens.shape)
        self.body.append(
            f"  {name}b, {name}c, {name}s = tv.dispatch {tokens.name}, {chosen.name} : "
            f"({tokens.type}, {chosen.type}) -> ({buffer}, {counts}, {slots})\n"
            f"  {name}g = tv.grouped_matmul {name}b, {w.name} counts {name}c : "
            f"({buffer}, {w.type}, {counts}) -> {grouped}\n"
            f"  {name} = tv.combine {name}g, {chosen.name}, {name}s, {weights.name} : "
            f"({grouped}, {chosen.type}, {slots}, {weights.type}) -> {type_}")
        self.keep(Value(f"{name}b", shape, self.float, buffer))
        return self.keep(Value(name, tokens.shape, self.float, type_))

    # The program

    def text(self):
        if self.made:
            return self.made
        ops = [name for name in dir(self) if name.startswith("op_")
               and ("errors" in self.has or not name.endswith("_errors"))
               and ("stages" in self.has or name not in ("op_stage", "op_region"))]
        if "moves" in self.has and self.chance(0.2):
            ops = ["op_" + name for name in MOVES]
        elif self.parts:
            ops += random_parts.OPS * 2
        elif self.seed % 4 == 1 and "stages" in self.has:
            ops += ["op_stage", "op_region"] * (len(ops) // 2)
        while not self.values:
            self.input(self.shape(self.random.randint(2, 3)))
        for _ in range(self.random.randint(2, 8)):
            getattr(self, self.random.choice(ops))()
        if "view<" not in "".join(self.arguments + self.body):
            shape = [self.random.choice(EXTENTS) for _ in range(2)]
            self.argument(shape, self.view(shape), None)
        body, names, types = list(self.body), [], []
        for i, value in enumerate(self.values[-2:]):
            name, type_ = value.name, value.type
            # (Files hold whole values.)
            if self.chance(0.4) or "partial" in type_ and not self.partial_inputs:
                view = self.view(value.shape)
                type_ = self.type(value.shape, view, value.element)
                body.append(f"  %r{i} = tv.constrain {name} : ({value.type}) -> {type_} "
                            f"to #tv.view<#m, {view}>")
                name = f"%r{i}"
            names.append(name)
            types.append(type_)
        sizes = ", ".join(f"{name} = [{maximum}, {multiple}]"
                          for name, (maximum, multiple) in self.sizes.items())
        attributes = f" attributes {{tv.sizes = {{{sizes}}}}}" if sizes else ""
        self.made = self.on_other_mesh(
            f"#m = #tv.mesh<{self.mesh}>\nfunc.func @main(" + ",\n    ".join(self.arguments)
            + f") -> ({', '.join(types)}){attributes} {{\n" + "\n".join(body)
            + f"\n  return {', '.join(names)} : {', '.join(types)}\n}}\n")
        return self.made

    def ranks(self):
        return math.prod(size for _, size in self.axes)

    def runs(self):
        """What its sizes are in each run, by name."""
        if not self.sizes:
            return [{}]
        return [{name: multiple * self.random.choice([0, 1, most // multiple])
                 for name, (most, multiple) in self.sizes.items()},
                {name: multiple * self.random.randint(0, most // multiple)
                 for name, (most, multiple) in self.sizes.items()}]


def arguments(description):
    """The command line that random programs share."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", type=os.path.abspath)
    parser.add_argument("--seeds", default="0:60", help="FIRST:LAST, FIRST:LAST:STEP, or one")
    parser.add_argument("--without", nargs="+", default=[], choices=FEATURES, metavar="FEATURE",
                        help="; ".join(f"{k}: {v}" for k, v in FEATURES.items()))
    parser.add_argument("--print", action="store_true", help="the programs alone")
    parser.add_argument("--shrink", type=int, default=60,
                        help="seconds to make a failing program smaller")
    return parser


def run_seeds(args, check, partial_inputs=True, make=Program):
    """Checks each program that `make` makes; `check(program, seed, folder)` raises where it
    fails."""
    first, *rest = map(int, args.seeds.split(":"))
    seeds = range(first, *(rest or [first + 1]))
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            program = make(seed, partial_inputs, args.without)
            if args.print:
                print(f"// seed {seed}, sizes {program.runs()}\n{program.text()}")
                continue
            try:
                check(program, seed, folder)
            except shrink.Failure as failure:
                failed += 1
                print(f"seed {seed} failed: {failure}\n"
                      f"{shrink.smaller(program.text(), failure, args.shrink)}", flush=True)
    print(f"{len(seeds) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


def main():
    parser = arguments(__doc__)
    parser.add_argument("--passes", nargs="+", default=["--tessera=to=local"])
    args = parser.parse_args()
    bin = os.path.join(args.build, "bin")

    def check(program, seed, folder):
        path = os.path.join(folder, "program.mlir")
        text = program.text()
        with open(path, "w") as f:
            f.write(text)
        for sizes in program.runs():
            flags = [*args.passes, f"--interpret={program.ranks()}"]
            if sizes:
                flags.append("--interpret-sizes=" + ",".join(f"{n}={s}" for n, s in sizes.items()))
            shrink.run(["tessera-opt", "%s", *flags, "-o", os.devnull], path, bin)

    run_seeds(args, check)


if __name__ == "__main__":
    main()
