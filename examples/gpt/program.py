"""A step of training of a GPT as a tv program: its text, its data and how it starts.

The program draws a batch, goes forward and backward, clips the gradients and updates the
parameters by AdamW. Views stand on states and on the batch alone: over tp a block is that
of block_tp.mlir, over dp the batch is split.
"""

import dataclasses
import math
import pydoc_data.topics
import re

import numpy as np

# Sequence k, counted from the first of the first step, begins at (k HASH mod 2^32) / 2^32
# of the text.
HASH = 2654435761


@dataclasses.dataclass(frozen=True)
class GPT:
    layers: int = 2
    width: int = 64
    heads: int = 4
    length: int = 64  #: of a sequence
    batch: int = 8
    vocabulary: int = 256  #: tokens are bytes
    rate: float = 3e-3
    warmup: int = 20  #: steps until the rate is that
    clip: float = 1.0  #: the largest norm of all gradients
    betas: tuple = (0.9, 0.95)
    epsilon: float = 1e-8
    decay: float = 0.1  #: of matrices
    dropout: float = 0.0  #: of the embedding, of attention's weights and of what blocks add
    scale: float = 0.0  #: of the loss in the first step, for f16; 0: it is not scaled
    patience: int = 2000  #: steps without overflow after which that doubles

    def block(self):
        """A block's parameters: their shapes, and how they lie over tp."""
        e, h = self.width, self.heads
        split = "did(tp) * _"
        heads = lambda rows: f"(did(tp) * _ | {h}) * {rows}"  # whole ones
        return {
            "norm1.weight": ((e,), ("_",)), "norm1.bias": ((e,), ("_",)),
            "qkv.weight": ((3 * e, e), (heads(3 * e // h), "_")),
            "qkv.bias": ((3 * e,), (heads(3 * e // h),)),
            "out.weight": ((e, e), ("_", heads(e // h))), "out.bias": ((e,), ("_",)),
            "norm2.weight": ((e,), ("_",)), "norm2.bias": ((e,), ("_",)),
            "up.weight": ((4 * e, e), (split, "_")), "up.bias": ((4 * e,), (split,)),
            "down.weight": ((e, 4 * e), ("_", split)), "down.bias": ((e,), ("_",)),
        }

    def parameters(self):
        e = self.width
        found = {"embedding": ((self.vocabulary, e), ("did(tp) * _", "_")),
                 "positions": ((self.length, e), ("_", "_")),
                 "norm.weight": ((e,), ("_",)), "norm.bias": ((e,), ("_",))}
        for layer in range(self.layers):
            found |= {f"h{layer}.{name}": each for name, each in self.block().items()}
        return found


def text():
    """Python's language reference, which comes with Python, in bytes."""
    topics = pydoc_data.topics.topics
    reference = "\n".join(topics[name] for name in sorted(topics))
    return np.frombuffer(reference.encode(), np.uint8).astype(np.int32)


def start(model, dtype):
    """The states before the first step."""
    random = np.random.default_rng(0)
    states = {"step": np.zeros((), np.int64)}
    if model.scale:
        states |= {"loss_scale": np.array(model.scale, dtype), "good": np.zeros((), np.int64)}
    for name, (shape, _) in model.parameters().items():
        value = np.full(shape, float(name.endswith("weight")))
        if len(shape) > 1:
            value = 0.02 * random.standard_normal(shape)
        if name.endswith(("out.weight", "down.weight")):
            value /= math.sqrt(2 * model.layers)
        states |= {name: value.astype(dtype), "m." + name: np.zeros(shape, dtype),
                   "v." + name: np.zeros(shape, dtype)}
    return states


def starts_as_zeros(name):
    """Whether a state is zeros until a step was made: no file needs it."""
    return name in ("step", "good") or name.startswith(("m.", "v."))


def number(value):
    """As MLIR writes floats, with a point."""
    text = repr(float(value))
    return text if "." in text else text.replace("e", ".0e")


class Program:
    """element: of the states. compute: of all between them and the loss, if not the same.
    sequence: over tp the sequence is split where the block is not (sequence parallel).
    zero: over dp the states are split as well, and a weight is gathered to be used (ZeRO)."""

    #: What the loss is given besides parameters, and of that what each block is.
    given = {"%ids": "!batch", "%labels": "!batch", "%step": "!step"}
    shared = {"%step": "!step"}
    #: Results that are 0 where the data is right: their types, and what they mean.
    checks = {}
    structure = "", ""  #: which pairs attention has: an attribute, and a type behind others

    def __init__(self, model, tokens, *, element="f32", compute=None, sequence=False,
                 zero=False):
        self.model, self.tokens, self.zero = model, tokens, zero
        self.element, self.compute = element, compute or element
        self.parameters = model.parameters()
        self.lines = []
        self.types(sequence)
        # Layers whose dropouts are streams of their own are functions of their own.
        self.blocks = [f"@block{i}" if model.dropout else "@block"
                       for i in range(model.layers)]
        for layer, name in enumerate(dict.fromkeys(self.blocks)):
            self.block(name, layer)
        self.loss()
        self.main()

    def __str__(self):
        return "\n".join(self.lines) + "\n"

    def add(self, text):
        self.lines.extend(text.splitlines())

    def tensor(self, *shape, of=None, view=None):
        extents = "".join(f"{n}x" for n in shape)
        encoding = "" if view is None else f", #tv.view<#m, [{', '.join(view)}]>"
        return f"tensor<{extents}{of or self.compute}{encoding}>"

    @staticmethod
    def type_of(name):
        return "!" + re.sub(r"^h\d+\.", "", name).replace(".", "_")

    @staticmethod
    def value(name):
        return "%" + name.replace(".", "_")

    def types(self, sequence):
        m, tensor = self.model, self.tensor
        b, s, e, h = m.batch, m.length, m.width, m.heads
        batch = ("did(dp) * _", "did(tp) * _" if sequence else "_")
        self.add("#m = #tv.mesh<dp = 1, tp = 1>")
        for name, type in {
            **self.data(),
            "batch": tensor(b, s, of="i32", view=batch),
            "places": tensor(b, s, of="i32"),
            "x": tensor(b, s, e), "qkv": tensor(b, s, 3 * e),
            "heads": tensor(b, s, h, 3 * e // h), "part": tensor(b, s, h, e // h),
            "head": tensor(b, h, s, e // h),
            "lse": tensor(b, h, s, of="f64" if self.compute == "f64" else "f32"),
            "up": tensor(b, s, 4 * e), "logits": tensor(b, s, m.vocabulary),
            "wide": tensor(b, s, m.vocabulary, of=self.element),
            "rows": tensor(b, s, of=self.element), "scalar": tensor(of=self.element),
            "loss": tensor(of=self.element, view=[]), "step": tensor(of="i64", view=[]),
        }.items():
            self.add(f"!{name} = {type}")
        for name, (shape, view) in self.parameters.items():
            if self.zero and "_" in view:
                dim = view.index("_")
                view = (*view[:dim], "did(dp) * _", *view[dim + 1:])
            line = f"{self.type_of(name)} = {tensor(*shape, of=self.element, view=view)}"
            if line not in self.lines:
                self.add(line)

    def arguments(self, given, names):
        own = {self.value(name): self.type_of(name) for name in names}
        return ", ".join(f"{value}: {type}" for value, type in (given | own).items())

    def computed(self, names):
        """The parameters as they are computed with, their types and values: cast, and
        then whole over dp."""
        found = {}
        for name in names:
            type, value = self.type_of(name), self.value(name)
            shape, view = {**self.parameters, **self.model.block()}[name]
            if self.compute != self.element:
                self.add(f"  {value}_c = tv.cast {value} : ({type}) -> {self.tensor(*shape)}")
                type, value = self.tensor(*shape), value + "_c"
            if self.zero:
                self.add(f"  {value}_g = tv.constrain {value} : ({type}) -> {self.tensor(*shape)}\n"
                         f"    to #tv.view<#m, [{', '.join(view)}]>")
                type, value = self.tensor(*shape), value + "_g"
            found[name] = type, value
        return found

    @staticmethod
    def op(name, *operands, attributes="", to):
        """operands: (type, value)."""
        return (f"{name} {', '.join(value for _, value in operands)}{attributes} : "
                f"({', '.join(type for type, _ in operands)}) -> {to}")

    def dropped(self, value, stream):
        """The value after a dropout, if there is any."""
        if not self.model.dropout:
            return value
        self.add(f"  {value}_kept = tv.dropout {value} rate({self.model.dropout}) seed(0) "
                 f"stream({stream}) step %step : (!x, !step) -> !x")
        return value + "_kept"

    def attend(self, stream):
        pairs, type = self.structure
        drops = ""
        if self.model.dropout:
            drops = f" dropout({self.model.dropout}) seed(0) stream({stream}) step %step"
            type = ", !step" + type
        self.add(f"""\
  %a, %lse = tv.attention %q, %k, %v scale({self.scale()}) causal{drops}{pairs}
    : (!head, !head, !head{type}) -> (!head, !lse)""")

    def scale(self):
        return number((self.model.width // self.model.heads) ** -0.5)

    def block(self, function, layer):
        names = self.model.block()
        self.add(f"\nfunc.func private {function}("
                 f"{self.arguments({'%x': '!x'} | self.shared, names)}) -> !x {{")
        c = self.computed(names)
        d = self.model.width // self.model.heads

        def norm(of, name):
            return self.op("tv.layer_norm", of, c[name + ".weight"], c[name + ".bias"],
                           attributes=" epsilon(1.0e-5)", to="!x")

        def linear(of, name, to):
            (weight, w), (bias, b) = c[name + ".weight"], c[name + ".bias"]
            return f"tv.linear {of[1]}, {w} bias {b} : ({of[0]}, {weight}, {bias}) -> {to}"

        self.add(f"""\
  %n1 = {norm(("!x", "%x"), "norm1")}
  %p = {linear(("!x", "%n1"), "qkv", "!qkv")}
  %heads = tv.reshape %p : (!qkv) -> !heads""")
        for i, name in enumerate("qkv"):
            self.add(f"""\
  %{name}0 = tv.slice %heads offsets [0, 0, 0, {i * d}] : (!heads) -> !part
  %{name} = tv.transpose %{name}0 perm [0, 2, 1, 3] : (!part) -> !head""")
        self.attend(3 * layer + 1)
        self.add(f"""\
  %t = tv.transpose %a perm [0, 2, 1, 3] : (!head) -> !part
  %r = tv.reshape %t : (!part) -> !x
  %o = {linear(("!x", "%r"), "out", "!x")}""")
        self.add(f"""\
  %s = tv.add {self.dropped("%o", 3 * layer + 2)}, %x : (!x, !x) -> !x
  %n2 = {norm(("!x", "%s"), "norm2")}
  %u = {linear(("!x", "%n2"), "up", "!up")}
  %g = tv.gelu tanh %u : (!up) -> !up
  %d = {linear(("!up", "%g"), "down", "!x")}""")
        self.add(f"""\
  %y = tv.add {self.dropped("%d", 3 * layer + 3)}, %s : (!x, !x) -> !x
  return %y : !x
}}""")

    def place(self, positions, type):
        """The positions' embedding."""
        self.add(f"  %p = tv.broadcast {positions} dims [1, 2] : ({type}) -> !x")

    def loss(self):
        self.add(f"\nfunc.func private @loss({self.arguments(self.given, self.parameters)})"
                 " -> !loss {")
        c = self.computed([name for name in self.parameters if not re.match(r"h\d", name)])
        of = self.element
        (embedding, e), (positions, p) = c["embedding"], c["positions"]
        self.add(f"  %e = tv.gather {e}, %ids dim 0 : ({embedding}, !batch) -> !x")
        self.place(p, positions)
        self.add("  %sum0 = tv.add %e, %p : (!x, !x) -> !x")
        x = self.dropped("%sum0", 0)
        for i, block in enumerate(self.blocks):
            own = {x: "!x"} | self.shared | {
                self.value(name): self.type_of(name) for name in self.parameters
                if name.startswith(f"h{i}.")}
            self.add(f"  %x{i + 1} = call {block}({', '.join(own)}) : "
                     f"({', '.join(own.values())}) -> !x")
            x = f"%x{i + 1}"
        n = self.op("tv.layer_norm", ("!x", x), c["norm.weight"], c["norm.bias"],
                    attributes=" epsilon(1.0e-5)", to="!x")
        self.add(f"""\
  %n = {n}
  %logits = tv.linear %n, {e} : (!x, {embedding}) -> !logits
  %wide = tv.cast %logits : (!logits) -> !wide
  %rows = tv.cross_entropy %wide, %labels : (!wide, !batch) -> !rows
  %sum = tv.reduce sum %rows dims [0, 1] : (!rows) -> !scalar
  %mean = tv.map %sum : (!scalar) -> !loss (%s: {of}) {{
    %tokens = arith.constant {number(self.model.batch * self.model.length)} : {of}
    %r = arith.divf %s, %tokens : {of}
    tv.yield %r : {of}
  }}
  return %mean : !loss
}}""")

    def data(self):
        """Types of what the batch is made of."""
        return {"tokens": self.tensor(self.tokens, of="i32", view=["_"])}

    def inputs(self):
        return [f'%tokens: !tokens {{tv.name = "tokens", tv.range = [0, {self.model.vocabulary}]}}']

    def draw(self):
        """The batch of the step."""
        m = self.model
        self.add(f"""\
  %row = tv.iota 0 : () -> !places
  %column = tv.iota 1 : () -> !places""")
        for name, shift in ("ids", 0), ("labels", 1):
            self.add(f"""\
  %{name}_at = tv.map %row, %column : (!places, !places) -> !places (%b: i32, %s: i32) {{
    %n = tv.load %step[] : !step -> i64
    %batch = arith.constant {m.batch} : i64
    %first = arith.muli %n, %batch : i64
    %number = arith.extsi %b : i32 to i64
    %k = arith.addi %first, %number : i64
    %factor = arith.constant {HASH} : i64
    %hash = arith.muli %k, %factor : i64
    %low = arith.constant {2**32 - 1} : i64
    %share = arith.andi %hash, %low : i64
    %places = arith.constant {self.tokens - m.length} : i64
    %scaled = arith.muli %share, %places : i64
    %bits = arith.constant 32 : i64
    %start = arith.shrui %scaled, %bits : i64
    %start32 = arith.trunci %start : i64 to i32
    %token = arith.addi %start32, %s : i32
    %shift = arith.constant {shift} : i32
    %at = arith.addi %token, %shift : i32
    tv.yield %at : i32
  }}
  %{name} = tv.gather %tokens, %{name}_at dim 0 : (!tokens, !places) -> !batch""")

    def main(self):
        m, names, of = self.model, list(self.parameters), self.element
        states = [("%step", "!step", "step", "state")]
        for name in names:
            type, value = self.type_of(name), self.value(name)[1:]
            states += [("%" + value, type, name, "parameter"),
                       ("%m_" + value, type, "m." + name, "state"),
                       ("%v_" + value, type, "v." + name, "state")]
        scaling = [("%loss_scale", "!loss", "loss_scale", "state"),
                   ("%good", "!step", "good", "state")] if m.scale else []
        self.add("\nfunc.func @main(" + ",\n    ".join(self.inputs()) + ",")
        self.add(",\n".join(
            f'    {value}: {type} {{tv.name = "{name}", tv.role = "{role}"'
            + (', tv.init = "zero"' if starts_as_zeros(name) else "") + "}"
            for value, type, name, role in scaling + states)
            + ')\n  -> (!loss {tv.name = "loss"},')
        for name, (type, meaning) in self.checks.items():
            self.add(f'    {type} {{tv.name = "{name}", tv.check = "{meaning}"}},')
        self.add(",\n".join(f'    {type} {{tv.name = "{name}"}}'
                            for _, type, name, *_ in scaling + states) + ") {")

        self.draw()
        types = [self.type_of(name) for name in names]
        grads = ["%d_" + self.value(name)[1:] for name in names]
        cotangents = {"%loss_scale": "!loss"} if m.scale else {}
        with_ = f" with ({', '.join(cotangents)})" if cotangents else ""
        self.add(f"""\
  %loss, {', '.join(grads)}
    = tv.gradient @loss({', '.join([*self.given, *map(self.value, names)])})
      of [0]{with_} to {[i + len(self.given) for i in range(len(names))]}
    : ({', '.join([*self.given.values(), *types, *cotangents.values()])})
      -> (!loss, {', '.join(types)})""")
        # Squares of up to 4 gradients of one type are added before they are summed: in one
        # kernel, however many layers there are.
        of_type, total = {}, []
        for name, type, grad in zip(names, types, grads):
            of_type.setdefault(type, []).append((name, grad))
        for type, group in [(type, all[i:i + 4]) for type, all in of_type.items()
                            for i in range(0, len(all), 4)]:
            shape = self.parameters[group[0][0]][0]
            square = self.tensor(*self.parameters[group[0][0]][0], of=self.element)
            added = None
            for name, grad in group:
                value = self.value(name)
                self.add(f"  {value}_square = tv.mul {grad}, {grad} : ({type}, {type}) -> {square}")
                if added:
                    self.add(f"  {value}_squares = tv.add {added}, {value}_square : "
                             f"({square}, {square}) -> {square}")
                added = value + ("_squares" if added else "_square")
            self.add(f"  {value}_sum = tv.reduce sum {added} dims {list(range(len(shape)))} : "
                     f"({square}) -> !scalar")
            total.append(value + "_sum")
            if len(total) > 1:
                self.add(f"  {value}_total = tv.add {total[-2]}, {total[-1]} : (!scalar, !scalar) -> !scalar")
                total.append(value + "_total")
        self.add(f"""\
  %next = tv.map %step : (!step) -> !step (%t: i64) {{
    %one = arith.constant 1 : i64
    %r = arith.addi %t, %one : i64
    tv.yield %r : i64
  }}
  %rate = tv.map %next : (!step) -> !scalar (%t: i64) {{
    %steps = arith.sitofp %t : i64 to {of}
    %warmup = arith.constant {number(m.warmup)} : {of}
    %share = arith.divf %steps, %warmup : {of}
    %one = arith.constant 1.0 : {of}
    %least = arith.minimumf %share, %one : {of}
    %full = arith.constant {number(m.rate)} : {of}
    %r = arith.mulf %least, %full : {of}
    tv.yield %r : {of}
  }}
  %scale = tv.map {total[-1]} : (!scalar) -> !scalar (%s: {of}) {{
    %norm = math.sqrt %s : {of}
    %clip = arith.constant {number(m.clip)} : {of}""")
        limit = "%clip"
        if m.scale:  # The norm has the scale in it, and what is clipped loses it.
            limit = "%scaled"
            self.add(f"""\
    %by = tv.load %loss_scale[] : !loss -> {of}
    {limit} = arith.mulf %clip, %by : {of}""")
        self.add(f"""\
    %largest = arith.maximumf %norm, {limit} : {of}
    %r = arith.divf %clip, %largest : {of}
    tv.yield %r : {of}
  }}""")
        results = ["%next"]
        for name, type, grad in zip(names, types, grads):
            value = self.value(name)[1:]
            decay = m.decay if len(self.parameters[name][0]) > 1 else 0
            self.add(f"""\
  %new_{value}:3 = tv.adamw %{value}, %m_{value}, %v_{value}, {grad}
      scale %scale rate %rate step %next
      betas({number(m.betas[0])}, {number(m.betas[1])}) epsilon({number(m.epsilon)}) decay({number(decay)})
    : ({type}, {type}, {type}, {type}, !scalar, !scalar, !step) -> ({type}, {type}, {type})""")
            results += [f"%new_{value}#{i}" for i in range(3)]
        if m.scale:
            results = self.kept(total[-1], results, states)
        self.add(f"""\
  return {', '.join(["%loss", *("%" + name for name in self.checks), *results])}
    : {', '.join(["!loss", *(type for type, _ in self.checks.values()), *(type for _, type, *_ in scaling + states)])}
}}""")

    def kept(self, total, results, states):
        """The next states, where the sum of the gradients' squares is finite; else those
        that there are, but half the scale."""
        of, shapes = self.element, {"step": ()}
        self.add(f"""\
  %finite = tv.map {total} : (!scalar) -> tensor<i1> (%s: {of}) {{
    %none = arith.subf %s, %s : {of}
    %zero = arith.constant 0.0 : {of}
    %r = arith.cmpf oeq, %none, %zero : {of}
    tv.yield %r : i1
  }}
  %next_scale = tv.map %loss_scale : (!loss) -> !loss (%s: {of}) {{
    %f = tv.load %finite[] : tensor<i1> -> i1
    %g = tv.load %good[] : !step -> i64
    %last = arith.constant {self.model.patience - 1} : i64
    %grows = arith.cmpi sge, %g, %last : i64
    %half = arith.constant 0.5 : {of}
    %less = arith.mulf %s, %half : {of}
    %more = arith.addf %s, %s : {of}
    %grown = arith.select %grows, %more, %s : {of}
    %r = arith.select %f, %grown, %less : {of}
    tv.yield %r : {of}
  }}
  %next_good = tv.map %good : (!step) -> !step (%g: i64) {{
    %f = tv.load %finite[] : tensor<i1> -> i1
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %last = arith.constant {self.model.patience - 1} : i64
    %more = arith.addi %g, %one : i64
    %stays = arith.cmpi slt, %g, %last : i64
    %counted = arith.select %stays, %more, %zero : i64
    %r = arith.select %f, %counted, %zero : i64
    tv.yield %r : i64
  }}""")
        for name, (shape, _) in self.parameters.items():
            shapes |= dict.fromkeys((name, "m." + name, "v." + name), shape)
        found, conditions = ["%next_scale", "%next_good"], {(): "%finite"}
        for result, (value, type, name, *_) in zip(results, states, strict=True):
            shape = shapes[name]
            condition = self.tensor(*shape, of="i1")
            if shape not in conditions:
                conditions[shape] = f"%finite{len(conditions)}"
                self.add(f"  {conditions[shape]} = tv.broadcast %finite "
                         f"dims [] : (tensor<i1>) -> {condition}")
            self.add(f"  {value}_kept = tv.where {conditions[shape]}, {result}, {value} : "
                     f"({condition}, {type}, {type}) -> {type}")
            found.append(f"{value}_kept")
        return found
