"""Random attentions and their gradients by tv.gradient, on random meshes: groups of heads,
extents that are dynamic, also 0, score_mod and mask_mod with captured tensors at indices
that are positions, computed or loaded, dropout, block masks, packed sequences, and
log-sum-exps with gradients of their own. (Numbers of score_mod are not rounded in the
reference: they stay small. It differentiates by differences: they have no kinks.)"""
import math
import random



class Region:
    """The lines of a scalar function."""

    def __init__(self, attention):
        self.of, self.random = attention, attention.random
        self.lines = []

    def op(self, text):
        self.of.count += 1
        self.lines.append(f"      %v{self.of.count} = {text}")
        return f"%v{self.of.count}"

    def number(self, value):
        return self.op(f"arith.constant {value} : index")

    def position(self):
        return "%" + self.random.choice("bhqk")

    def load(self, tensor, indices):
        self.of.used.add(tensor[0])
        name, _, element, type_ = tensor
        return self.op(f"tv.load %{name}[{', '.join(indices)}] : {type_} -> {element}")

    def index(self):
        kind = self.random.choice(["position", "distance", "distance", "computed", "loaded"])
        if kind == "loaded" and self.of.ids:
            at = [self.position() for _ in self.of.ids[1]]
            return self.op(f"arith.index_cast {self.load(self.of.ids, at)} : i32 to index")
        if kind == "distance":
            x, y = self.random.sample(["%q", "%k"], 2)
            distance = self.op(f"arith.subi {x}, {y} : index")
            return self.op(f"arith.addi {distance}, {self.number(self.random.randint(0, 8))} "
                           ": index")
        if kind == "computed":
            op = self.random.choice(["remui", "divui", "addi", "muli"])
            by = self.number(self.random.randint(1, 4))
            return self.op(f"arith.{op} {self.position()}, {by} : index")
        return self.position()

    def score(self, depth):
        wide = self.of.wide
        if depth == 0 and self.of.captured and self.random.random() < 0.7:
            tensor = self.random.choice(self.of.captured)
            natural = {extent: f"%{at}" for extent, at in zip(self.of.extents, "bhqk")}
            value = self.load(tensor, [
                natural[extent] if extent in natural and self.random.random() < 0.5
                else self.index() for extent in tensor[1]])
            return value if tensor[2] == wide else \
                self.op(f"arith.extf {value} : {tensor[2]} to {wide}")
        if depth == 0:
            return "%score"
        x = self.score(depth - 1)
        if self.random.random() < 0.3:
            return self.op(f"math.tanh {x} : {wide}")
        op = self.random.choice(["addf", "addf", "subf", "mulf"])
        return self.op(f"arith.{op} {x}, {self.score(depth - 1)} : {wide}")

    def condition(self, depth):
        if depth and self.random.random() < 0.4:
            op = self.random.choice(["andi", "ori"])
            return self.op(f"arith.{op} {self.condition(depth - 1)}, "
                           f"{self.condition(depth - 1)} : i1")
        predicate = self.random.choice(["slt", "sle", "sle", "ne", "ult", "sge"])
        return self.op(f"arith.cmpi {predicate}, {self.index()}, {self.index()} : index")

    def text(self, name, score, result, type_):
        arguments = [f"%score: {type_}"] * score + [f"%{at}: index" for at in "bhqk"]
        return [f"    {name} ({', '.join(arguments)}) {{", *self.lines,
                f"      tv.yield {result} : {type_}", "    }"]


class Attentions:
    MESHES = [{"x": 2}, {"x": 3}, {"x": 4}, {"x": 2, "y": 2}, {"x": 3, "y": 2}]
    MOST = {"b": 3, "s": 12, "t": 9, "n": 6}  # of dynamic extents
    ELEMENTS = ["f32"] * 6 + ["bf16", "f16", "f64"]
    HEADS = [(4, 3), (4, 4)]  # of queries and keys, of values
    SCALES = [0.5, 0.25, -0.5]
    BATCHES, QUERIES, KEYS = [1, 2, 3], [1, 5, 12], [3, 7, 9]
    TOKENS, MASKED = 24, (70, 100)  # packed; beside a block mask

    def __init__(self, seed, partial_inputs=True, without=()):
        self.random = random.Random(seed)
        self.mesh = self.random.choice(self.MESHES)
        self.count, self.used = 0, set()
        self.made = self.program()

    def ranks(self):
        return math.prod(self.mesh.values())

    def runs(self):
        if not self.sizes:
            return [{}]
        return [{name: self.random.choice([0, 1, self.MOST[name]]) for name in self.sizes},
                {name: self.random.randint(1, self.MOST[name]) for name in self.sizes}]

    def text(self):
        return self.made

    def view(self, extents, likely=0.5):
        """Of a tensor whose dimensions but the head's own may be split."""
        dims = ["_"] * len(extents)
        for axis in self.random.sample(sorted(self.mesh), len(self.mesh)):
            if extents and self.random.random() < likely:
                dim = self.random.randrange(min(len(extents), 3))
                dims[dim] = f"did({axis}) * {dims[dim]}"
        return f"[{', '.join(dims)}]"

    def type(self, extents, element, view=None):
        shape = "".join(f"{e if isinstance(e, int) else '?'}x" for e in extents)
        return f"tensor<{shape}{element}" + (f", #tv.view<#m, {view}>>" if view else ">")

    def tensor(self, name, extents, element, likely=0.5):
        return name, extents, element, self.type(extents, element, self.view(extents, likely))

    def argument(self, tensor, limits):
        dims = [f'"{e}"' for e in tensor[1] if not isinstance(e, int)]
        attributes = [f'tv.name = "{tensor[0]}"']
        attributes += [f"tv.dims = [{', '.join(dims)}]"] * bool(dims)
        attributes += [f"tv.range = {limits}"] * bool(limits)
        return f"%{tensor[0]}: {tensor[3]} {{{', '.join(attributes)}}}"

    def program(self):
        rng = self.random
        element = rng.choice(self.ELEMENTS)
        self.wide = "f64" if element == "f64" else "f32"
        packed, blocks = (rng.random() < 0.15 for _ in range(2))
        blocks = blocks and not packed
        dynamic = rng.random() < 0.4 and not packed and not blocks
        groups = rng.choice([1, 2, 3])
        heads = groups * rng.choice([1, 2, 3])
        b = 1 if packed else rng.choice([*self.BATCHES, *["b"] * dynamic])
        s = (self.TOKENS if packed else self.MASKED[0] if blocks
             else rng.choice([*self.QUERIES, *["s"] * 4 * dynamic]))
        t = (self.TOKENS if packed else self.MASKED[1] if blocks
             else rng.choice([*self.KEYS, *["t", "s"] * 2 * dynamic]))
        self.extents = b, heads, s, t
        width, depth = rng.choice(self.HEADS)
        q = self.tensor("query", [b, heads, s, width], element, 0.7)
        inputs = [q, self.tensor("key", [b, groups, t, width], element),
                  self.tensor("value", [b, groups, t, depth], element)]
        result, cotangent = (self.tensor("do", [b, heads, s, depth], element, likely)
                             for likely in (0.2, 0.5))
        lse = self.tensor("dlse", [b, heads, s], self.wide, 0.2)

        self.captured, self.ids = [], None
        # (The reference's slopes are worth less than f64.)
        has_score = rng.random() < 0.8 and element != "f64"
        for number in range(rng.randint(0, 3) * has_score):
            extents = [rng.choice([b, heads, heads, s, s, t, 4, 6, *["n", "s"] * dynamic])
                       for _ in range(rng.choice([0, 1, 1, 2, 2, 3]))]
            self.captured.append(self.tensor(f"c{number}", extents,
                                             rng.choice(["f32", "f32", "bf16"]), 0.4))
        if rng.random() < 0.5:
            self.ids = self.tensor("ids", [rng.choice([b, s, t])], "i32", 0.2)
        mods, mask, before = [], [], []
        if has_score:
            region = Region(self)
            score = region.op(f"arith.addf %score, {region.score(rng.randint(0, 2))} : f32")
            mods = region.text("score_mod", True, score, "f32")
        if blocks or rng.random() < 0.4:
            region = Region(self)
            mask = region.text("mask_mod", False, region.condition(2), "i1")

        flags = f"scale({rng.choice(self.SCALES)})" + " causal" * (rng.random() < 0.3)
        more, limits = [], {"ids": [-1, 8], "begins": [-2, self.TOKENS + 3],
                            "used": [-2, self.TOKENS // 2]}
        if rng.random() < 0.2:
            flags += f" dropout(0.25) seed({rng.randint(0, 9)}) stream({rng.randint(0, 9)})"
            if rng.random() < 0.5:
                more.append(("step", [], "i64", "tensor<i64>"))
                flags += " step %step"
        if packed:
            more.append(("begins", [1, 4], "i32", "tensor<1x4xi32>"))
            flags += " sequences(%begins)"
            if rng.random() < 0.5:
                more.append(("used", [1, 3], "i32", "tensor<1x3xi32>"))
                flags += " used(%used)"
        operands = [tensor[3] for tensor in more]
        if blocks:
            type_ = f"tensor<{b}x{heads}x{-(-s // 64)}x{-(-t // 128)}xi8>"
            before = [f"  %mask = tv.block_mask of [{s}, {t}] blocks [64, 128] : () -> {type_}",
                      *mask]
            flags += " block_mask(%mask) blocks [64, 128]"
            operands.append(type_)
        floats = inputs + [each for each in self.captured if each[0] in self.used]
        inputs = floats + more + [self.ids] * ("ids" in self.used)

        given = [cotangent] + [lse] * (rng.random() < 0.35)
        to = sorted(rng.sample(range(len(floats)), rng.randint(1, len(floats))))
        results = [result[3], lse[3]][:len(given)] + [floats[i][3] for i in to]
        self.sizes = sorted({e for each in inputs for e in each[1] if not isinstance(e, int)})
        sizes = ", ".join(f"{name} = {self.MOST[name]}" for name in self.sizes)
        names = ", ".join(f"%{each[0]}" for each in inputs)
        of, gradients = ", ".join(["%o", "%lse"][:len(given)]), f"%g:{len(results)}"
        listed = ", ".join(each[3] for each in inputs + given)
        mesh = ", ".join(f"{axis} = {size}" for axis, size in self.mesh.items())
        return "\n".join([
            f"#m = #tv.mesh<{mesh}>",
            f"func.func private @f({', '.join(f'%{each[0]}: {each[3]}' for each in inputs)})"
            f" -> ({', '.join(results[:len(given)])}) {{", *before,
            f"  %o, %lse = tv.attention %query, %key, %value {flags} : "
            f"({', '.join([each[3] for each in inputs[:3]] + operands)})"
            f" -> ({result[3]}, {lse[3]})", *mods, *mask,
            f"  return {of} : {', '.join(results[:len(given)])}", "}",
            "func.func @main("
            + ", ".join(self.argument(each, limits.get(each[0])) for each in inputs + given)
            + f") -> ({', '.join(results)}) attributes {{tv.sizes = {{{sizes}}}}} {{",
            f"  {gradients} = tv.gradient @f({names}) of {list(range(len(given)))}"
            f" with ({', '.join(f'%{each[0]}' for each in given)}) to {to}"
            f" : ({listed}) -> ({', '.join(results)})",
            f"  return {', '.join(f'%g#{i}' for i in range(len(results)))} : "
            f"{', '.join(results)}", "}", ""])


class WideAttentions(Attentions):
    """Those that tensor cores have kernels for, of several tiles."""
    MESHES = [{"x": 1}, {"x": 2}, {"x": 3}, {"x": 4}, {"x": 2, "y": 2}]
    MOST = {"b": 3, "s": 300, "t": 270, "n": 200}
    ELEMENTS = ["bf16", "bf16", "f16"]
    HEADS = [(64, 64), (64, 64), (96, 96), (128, 128), (128, 128), (192, 128), (192, 192),
             (256, 256)]
    SCALES = [0.125, 0.0625, -0.125]
    QUERIES, KEYS = [1, 64, 100, 128, 200, 320], [1, 77, 128, 200, 256, 300]
    TOKENS, MASKED = 450, (330, 400)
