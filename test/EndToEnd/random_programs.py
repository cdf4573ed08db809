#!/usr/bin/env python3
"""Random programs, meshes and views through the pipeline, in the interpreter.

Each seed makes one straight-line program of tv ops whose inputs lie by random
views; `tessera-opt` takes it to the local phase, or where --passes say, and
interprets it on every rank against the source program in float64. A failing seed
prints its program and the command that runs it alone.

    random_programs.py --build build --seeds 0:200
"""
import argparse
import os
import random
import subprocess
import sys
import tempfile

MESHES = [
    "tp = 2", "tp = 3", "tp = 4", "tp = 6", "x = 2, y = 2", "x = 2, y = 3",
    "x = 3, y = 2", "x = 2, y = 2, devices = iota(y, x)",
    "tp = 4, devices = [2, 0, 3, 1]", "x = 2, y = 2, z = 2",
]
EXTENTS = [1, 2, 3, 4, 5, 6, 8, 10, 12]


class Program:
    def __init__(self, seed, partial_inputs=True):
        self.partial_inputs = partial_inputs
        self.random = random.Random(seed)
        self.mesh = self.random.choice(MESHES)
        self.axes = []
        for part in self.mesh.split(", "):
            name, _, size = part.partition(" = ")
            if size.isdigit():
                self.axes.append((name, int(size)))
        self.arguments, self.body, self.values = [], [], []
        self.count = 0

    # Views

    def sub_axes(self):
        """Disjoint sub-axes of the mesh, in random order."""
        subs = []
        for name, size in self.axes:
            splits = [(p, size // p) for p in range(2, size) if size % p == 0]
            if splits and self.random.random() < 0.3:
                outer, inner = self.random.choice(splits)
                subs += [f"did({name}:(1){outer})", f"did({name}:({outer}){inner})"]
            else:
                subs.append(f"did({name})")
        self.random.shuffle(subs)
        return subs

    def view(self, rank, partial=False):
        subs = self.sub_axes()
        dims = []
        for _ in range(rank):
            factors = ["_"]
            while subs and self.random.random() < 0.4:
                sub = subs.pop()
                kind = self.random.random()
                if kind < 0.6:
                    factors.insert(0, sub)  # blocks
                elif kind < 0.8:
                    factors.append(sub)  # cyclic
                else:
                    factors += [sub, "2"]  # block-cyclic
            dims.append(" * ".join(factors))
        text = "[" + ", ".join(dims) + "]"
        if partial and subs and self.random.random() < 0.1:
            axes = [sub[4:-1] for sub in subs]
            axes = "(" + ", ".join(axes) + ")" if len(axes) > 1 else axes[0]
            kind = self.random.choice(["sum", "sum", "max", "min"])
            text += f", partial = [{axes} : {kind}]"
        return text

    def type(self, shape, view=None, element="f32"):
        text = "x".join(map(str, shape)) + ("x" if shape else "")
        encoding = f", #tv.view<#m, {view}>" if view else ""
        return f"tensor<{text}{element}{encoding}>"

    # Values

    def input(self, shape):
        view = self.view(len(shape), partial=self.partial_inputs) if self.random.random() < 0.7 else None
        name = f"%a{len(self.arguments)}"
        type_ = self.type(shape, view)
        role = ', tv.role = "weight"' if self.random.random() < 0.4 else ""
        self.arguments.append(
            f'{name}: {type_} {{tv.name = "a{len(self.arguments)}"{role}}}')
        return self.keep(name, shape, type_)

    def indices(self, shape, end, outside=1):
        """An argument of integers in [0, end), or a few outside."""
        view = self.view(len(shape)) if self.random.random() < 0.5 else None
        name = f"%a{len(self.arguments)}"
        type_ = self.type(shape, view, "i32")
        self.arguments.append(f'{name}: {type_} {{tv.name = "a{len(self.arguments)}", '
                              f"tv.range = [{-outside}, {end + outside}]}}")
        return name, tuple(shape), type_

    def keep(self, name, shape, type_=None):
        value = (name, tuple(shape), type_ or self.type(shape))
        self.values.append(value)
        return value

    def emit(self, text, operands, shape):
        name = f"%v{self.count}"
        self.count += 1
        types = ", ".join(o[2] for o in operands)
        self.body.append(f"  {name} = {text} : ({types}) -> {self.type(shape)}")
        return self.keep(name, shape)

    def shape(self, rank):
        return [self.random.choice(EXTENTS) for _ in range(rank)]

    def pick(self, rank=None, at_least=0):
        fits = [v for v in self.values
                if (rank is None or len(v[1]) == rank) and len(v[1]) >= at_least]
        if fits and self.random.random() < 0.85:
            return self.random.choice(fits[-6:])
        return self.input(self.shape(rank or max(at_least, self.random.randint(1, 3))))

    def like(self, shape):
        fits = [v for v in self.values if v[1] == tuple(shape)]
        if fits and self.random.random() < 0.5:
            return self.random.choice(fits)
        return self.input(shape)

    # Ops

    def op_add(self):
        a = self.pick()
        b = self.like(a[1])
        op = self.random.choice(["add", "mul"])
        return self.emit(f"tv.{op} {a[0]}, {b[0]}", [a, b], a[1])

    def op_gelu(self):
        a = self.pick()
        return self.emit(f"tv.gelu tanh {a[0]}", [a], a[1])

    def op_gelu_grad(self):
        a = self.pick()
        x = self.like(a[1])
        form = self.random.choice(["", "tanh "])
        return self.emit(f"tv.gelu_grad {form}{a[0]}, {x[0]}", [a, x], a[1])

    def op_linear(self):
        x = self.pick(at_least=1)
        n, k = self.random.choice(EXTENTS), x[1][-1]
        w = self.like([n, k])
        if self.random.random() < 0.5:
            b = self.like([n])
            return self.emit(f"tv.linear {x[0]}, {w[0]} bias {b[0]}", [x, w, b],
                             [*x[1][:-1], n])
        return self.emit(f"tv.linear {x[0]}, {w[0]}", [x, w], [*x[1][:-1], n])

    def op_matmul(self):
        a = self.pick(at_least=2)
        b = self.like([*a[1][:-2], a[1][-1], self.random.choice(EXTENTS)])
        return self.emit(f"tv.matmul {a[0]}, {b[0]}", [a, b],
                         [*a[1][:-1], b[1][-1]])

    def op_reduce(self):
        a = self.pick(at_least=1)
        dims = sorted(self.random.sample(range(len(a[1])),
                                         self.random.randint(1, len(a[1]))))
        kind = self.random.choice(["sum", "sum", "max", "min"])
        rest = [e for d, e in enumerate(a[1]) if d not in dims]
        return self.emit(f"tv.reduce {kind} {a[0]} dims {dims}", [a], rest)

    def op_broadcast(self):
        a = self.pick()
        if len(a[1]) > 3:
            return None
        rank = len(a[1]) + 1
        new = self.random.randrange(rank)
        dims = [d for d in range(rank) if d != new]
        shape = list(a[1])
        shape.insert(new, self.random.choice(EXTENTS))
        return self.emit(f"tv.broadcast {a[0]} dims {dims}", [a], shape)

    def op_transpose(self):
        a = self.pick(at_least=2)
        perm = list(range(len(a[1])))
        self.random.shuffle(perm)
        return self.emit(f"tv.transpose {a[0]} perm {perm}", [a],
                         [a[1][p] for p in perm])

    def op_reshape(self):
        a = self.pick()
        shape, left = [], 1
        for e in a[1]:
            left *= e
        while left > 1 and len(shape) < 4:
            factor = self.random.choice([f for f in range(2, left + 1) if left % f == 0])
            shape.append(factor)
            left //= factor
        if left > 1:
            shape[-1] *= left
        return self.emit(f"tv.reshape {a[0]}", [a], shape or [1])

    def op_slice(self):
        a = self.pick(at_least=1)
        sizes = [self.random.randint(1, e) for e in a[1]]
        offsets = [self.random.randint(0, e - s) for e, s in zip(a[1], sizes)]
        return self.emit(f"tv.slice {a[0]} offsets {offsets}", [a], sizes)

    def op_concat(self):
        a = self.pick(at_least=1)
        d = self.random.randrange(len(a[1]))
        parts, shape = [a], list(a[1])
        for _ in range(self.random.randint(1, 2)):
            part = list(a[1])
            part[d] = self.random.choice([part[d], self.random.choice(EXTENTS)])
            shape[d] += part[d]
            parts.append(self.like(part))
        return self.emit(f"tv.concat {', '.join(p[0] for p in parts)} dim {d}", parts,
                         shape)

    def op_constrain(self):
        a = self.pick(at_least=1)
        view = self.view(len(a[1]))
        type_ = self.type(a[1], view)
        name = f"%v{self.count}"
        self.count += 1
        self.body.append(f"  {name} = tv.constrain {a[0]} : ({a[2]}) -> {type_} "
                         f"to #tv.view<#m, {view}>")
        return self.keep(name, a[1], type_)

    def op_softmax(self):
        a = self.pick(at_least=1)
        d = self.random.randrange(len(a[1]))
        return self.emit(f"tv.softmax {a[0]} dim {d}", [a], a[1])

    def op_dropout(self):
        a = self.pick()
        return self.emit(f"tv.dropout {a[0]} rate(0.25) seed(3) stream({self.count})",
                         [a], a[1])

    def op_layer_norm(self):
        a = self.pick(at_least=1)
        w, b = self.like([a[1][-1]]), self.like([a[1][-1]])
        if self.random.random() < 0.5:
            return self.emit(f"tv.rms_norm {a[0]}, {w[0]} epsilon(0.01)", [a, w], a[1])
        return self.emit(f"tv.layer_norm {a[0]}, {w[0]}, {b[0]} epsilon(0.01)",
                         [a, w, b], a[1])

    def op_rope(self):
        a = self.pick(at_least=2)
        if a[1][-1] % 2:
            return None
        return self.emit(f"tv.rope {a[0]} base(100.0)", [a], a[1])

    def op_pad(self):
        a = self.pick(at_least=1)
        low = [self.random.choice([0, 0, 1, 2]) for _ in a[1]]
        high = [self.random.choice([0, 0, 1, 3]) for _ in a[1]]
        value = self.random.choice(["0.0", "0.5"])
        return self.emit(f"tv.pad {a[0]} low {low} high {high} value {value} : f32", [a],
                         [e + l + h for e, l, h in zip(a[1], low, high)])

    def op_map(self):
        a = self.pick()
        b = self.like(a[1])
        body = self.random.choice([
            "%r = arith.addf %x, %y : f32", "%r = arith.subf %x, %y : f32",
            "%r = arith.maximumf %x, %y : f32", "%r = arith.mulf %x, %y : f32",
            "%n = arith.negf %x : f32\n    %r = arith.minimumf %n, %y : f32",
            "%c = arith.constant 0.5 : f32\n    %p = arith.mulf %x, %c : f32\n"
            "    %r = arith.addf %p, %y : f32",
        ])
        value = self.emit(f"tv.map {a[0]}, {b[0]}", [a, b], a[1])
        self.body[-1] += f" (%x: f32, %y: f32) {{\n    {body}\n    tv.yield %r : f32\n  }}"
        return value

    def op_attention(self):
        batch, groups, share = (self.random.choice([1, 2, 3]) for _ in range(3))
        rows, columns, depth, width = (self.random.choice([2, 3, 4, 5]) for _ in range(4))
        q = self.like([batch, groups * share, rows, depth])
        k = self.like([batch, groups, columns, depth])
        v = self.like([batch, groups, columns, width])
        causal = " causal" if self.random.random() < 0.5 else ""
        shape = [batch, groups * share, rows, width]
        name = f"%v{self.count}"
        self.count += 1
        self.body.append(
            f"  {name}, {name}l = tv.attention {q[0]}, {k[0]}, {v[0]} scale(0.5){causal} : "
            f"({q[2]}, {k[2]}, {v[2]}) -> ({self.type(shape)}, {self.type(shape[:-1])})")
        if not causal:  # else a row without keys has -inf
            self.keep(f"{name}l", shape[:-1])
        return self.keep(name, shape)

    def op_gather(self):
        a = self.pick(at_least=1)
        d = self.random.randrange(len(a[1]))
        i = self.indices(self.shape(self.random.randint(1, 2)), a[1][d])
        return self.emit(f"tv.gather {a[0]}, {i[0]} dim {d}", [a, i],
                         [*a[1][:d], *i[1], *a[1][d + 1:]])

    def op_scatter(self):
        a = self.pick(at_least=1)
        d = self.random.randrange(len(a[1]))
        i = self.indices(self.shape(1), a[1][d])
        u = self.like([*a[1][:d], *i[1], *a[1][d + 1:]])
        kind = self.random.choice(["sum", "sum", "max", "min"])
        return self.emit(f"tv.scatter {kind} {a[0]}, {i[0]}, {u[0]} dim {d}", [a, i, u],
                         a[1])

    def op_experts(self):
        tokens = self.pick(rank=2)
        count, width = tokens[1]
        experts, capacity = self.random.randint(1, 6), self.random.randint(1, 4)
        choices = self.random.choice([1, 2, 3])
        chosen = self.indices([count, choices], experts, outside=0)
        weights = self.like([count, choices])
        w = self.like([experts, width, width])
        name = f"%v{self.count}"
        self.count += 1
        buffer = self.type([experts, capacity, width])
        counts, slots = self.type([experts], None, "i32"), self.type([count, choices], None, "i32")
        self.body.append(
            f"  {name}b, {name}c, {name}s = tv.dispatch {tokens[0]}, {chosen[0]} : "
            f"({tokens[2]}, {chosen[2]}) -> ({buffer}, {counts}, {slots})\n"
            f"  {name}g = tv.grouped_matmul {name}b, {w[0]} counts {name}c : "
            f"({buffer}, {w[2]}, {counts}) -> {buffer}\n"
            f"  {name} = tv.combine {name}g, {chosen[0]}, {name}s, {weights[0]} : "
            f"({buffer}, {chosen[2]}, {slots}, {weights[2]}) -> {self.type(tokens[1])}")
        return self.keep(name, tokens[1])

    def text(self):
        ops = [getattr(self, name) for name in dir(self) if name.startswith("op_")]
        self.input(self.shape(self.random.randint(2, 3)))
        for _ in range(self.random.randint(2, 8)):
            self.random.choice(ops)()
        if "view<" not in "".join(self.arguments):
            shape = self.shape(2)
            type_ = self.type(shape, self.view(2))
            self.arguments.append(f'%last: {type_} {{tv.name = "last"}}')
        results = self.values[-2:]
        result_types = []
        for value in results:
            view = self.view(len(value[1])) if self.random.random() < 0.4 else None
            result_types.append((value, view))
        body = list(self.body)
        names, types = [], []
        for i, (value, view) in enumerate(result_types):
            name, type_ = value[0], value[2]
            if view:
                type_ = self.type(value[1], view)
                body.append(f"  %r{i} = tv.constrain {name} : ({value[2]}) -> {type_} "
                            f"to #tv.view<#m, {view}>")
                name = f"%r{i}"
            names.append(name)
            types.append(type_)
        return (f"#m = #tv.mesh<{self.mesh}>\nfunc.func @main("
                + ",\n    ".join(self.arguments) + f") -> ({', '.join(types)}) {{\n"
                + "\n".join(body)
                + f"\n  return {', '.join(names)} : {', '.join(types)}\n}}\n")

    def ranks(self):
        count = 1
        for _, size in self.axes:
            count *= size
        return count


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--seeds", default="0:60")
    parser.add_argument("--passes", nargs="+", default=["--tessera=to=local"])
    args = parser.parse_args()
    first, last = map(int, args.seeds.split(":"))
    tool = os.path.join(args.build, "bin", "tessera-opt")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, last):
            program = Program(seed)
            path = os.path.join(folder, f"random{seed}.mlir")
            with open(path, "w") as f:
                f.write(program.text())
            command = [tool, path, *args.passes, f"--interpret={program.ranks()}",
                       "-o", os.devnull]
            run = subprocess.run(command, capture_output=True, text=True)
            if run.returncode:
                failed += 1
                print(f"seed {seed} failed: {' '.join(command)}\n"
                      f"{open(path).read()}\n{run.stdout[-1000:]}{run.stderr[-2000:]}")
    print(f"{last - first - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
