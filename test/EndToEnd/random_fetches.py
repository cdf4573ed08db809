"""Random programs whose devices fetch rows that data name: of a table whose rows lie in
blocks over some axes, at indices that lie over the same ones or not; and mixtures of
experts, tokens and experts over the same axes."""
import random

MESHES = [{"a": 2}, {"a": 3}, {"a": 4}, {"a": 2, "b": 2}, {"a": 2, "b": 3}]


class Fetches:
    def __init__(self, seed, partial_inputs=True, without=()):
        self.random = random.Random(seed)
        self.mesh = self.random.choice(MESHES)
        axes = self.random.sample(sorted(self.mesh), len(self.mesh))
        count = self.random.randint(1, len(axes))
        self.rows = " * ".join([f"did({axis})" for axis in axes[:count]] + ["_"])
        self.free = axes[count:]
        make = self.random.choice([self.gather, self.gather, self.experts])
        self.made = make()

    def runs(self):
        return [{}]

    def ranks(self):
        ranks = 1
        for size in self.mesh.values():
            ranks *= size
        return ranks

    def text(self):
        return self.made

    def type(self, shape, element, dims):
        sizes = "".join(f"{extent}x" for extent in shape)
        return f"tensor<{sizes}{element}, #tv.view<#m, [{', '.join(dims)}]>>"

    def split(self):
        """Of a dimension that is as wide as the rows are long, or has an index."""
        if self.free and self.random.random() < 0.5:
            return f"did({self.free.pop()}) * _"
        return "_"

    def program(self, arguments, results, body):
        mesh = ", ".join(f"{axis} = {size}" for axis, size in self.mesh.items())
        return (f"#m = #tv.mesh<{mesh}>\n"
                f"func.func @main({', '.join(arguments)}) -> ({', '.join(results)}) {{\n"
                + "".join(f"  {line}\n" for line in body) + "}\n")

    def gather(self):
        element = self.random.choice(["f32", "f64", "i32"])
        index = self.random.choice(["i32", "i64"])
        table = [self.random.randint(2, 9)] + [
            self.random.randint(1, 6) for _ in range(self.random.randint(0, 2))]
        rest = [self.split() for _ in table[1:]]
        at = [self.random.randint(0, 7) for _ in range(self.random.randint(1, 2))]
        places = [self.split() for _ in at]
        if self.random.random() < 0.7:
            places[self.random.randrange(len(at))] = self.rows
        t = self.type(table, element, [self.rows, *rest])
        i = self.type(at, index, places)
        y = self.type(at + table[1:], element, places + rest)
        return self.program(
            [f"%t: {t}", f"%i: {i} {{tv.range = [-1, {table[0] + 2}]}}"], [y],
            [f'%y = tv.gather %t, %i dim 0 {{tv.step = "fetch"}} : ({t}, {i}) -> {y}',
             f"return %y : {y}"])

    def experts(self):
        # (What one device holds all of is broadcast.)
        tokens, choices = self.random.randint(2, 9), self.random.randint(1, 3)
        experts, capacity = self.random.randint(2, 7), self.random.randint(1, 4)
        width, index = self.random.randint(1, 5), self.random.choice(["i32", "i64"])
        wide = self.split()
        own = self.random.choice([self.rows, self.rows, "_"])
        x = self.type([tokens, width], "f32", [own, wide])
        e = self.type([tokens, choices], index, [own, "_"])
        w = self.type([tokens, choices], "f32", [own, "_"])
        b = self.type([experts, capacity, width], "f32", [self.rows, "_", wide])
        n, s = f"tensor<{experts}x{index}>", f"tensor<{tokens}x{choices}x{index}>"
        fetch = '{tv.step = "fetch"}'
        return self.program(
            [f"%x: {x}", f"%e: {e} {{tv.range = [-1, {experts + 2}]}}", f"%w: {w}"], [x],
            [f"%b, %n, %s = tv.dispatch %x, %e {fetch} : ({x}, {e}) -> ({b}, {n}, {s})",
             f"%h = tv.mul %b, %b : ({b}, {b}) -> {b}",
             f"%y = tv.combine %h, %e, %s, %w {fetch} : ({b}, {e}, {s}, {w}) -> {x}",
             f"return %y : {x}"])
