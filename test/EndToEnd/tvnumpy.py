"""An evaluation of tv programs in NumPy float64, from their text.

The reference of the end-to-end tests: it shares nothing with the compiler but the
text that `tessera-opt` prints of the source. Views are not looked at. Programs of
f64 are evaluated in longdouble, for their own errors are those of float64. With
`rounded` each value is rounded to its type after it was computed in float64, and
each step of a sum to the type of sums, which gives the error that a program of these
types may have (architecture.md, 11).
"""
import re

import numpy as np

import tvgradients
from tvattention import Attention
from tvintegers import INTEGERS, SIGNED, UNSIGNED, cast, divide, integer_op, to_integer, wrapped

FLOAT8 = {"f8E4M3FN": (4, 3, 127), "f8E5M2": (5, 2, 124)}  # bits; those that are finite
EPS = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}


def bits_of_float8(array, element):
    """The nearest one, ties to even, of numbers that have one."""
    numbers, size = float8(element), np.abs(array)
    above = np.clip(np.searchsorted(numbers, size), 1, len(numbers) - 1)
    up = numbers[above] - size
    down = size - numbers[above - 1]
    bits = above - ((down < up) | ((down == up) & (above % 2 == 1)))
    return (bits | np.signbit(array) << 7).astype(np.uint8)


def float8(element):
    """The numbers that are not negative, by their bits."""
    exponent_bits, bits, count = FLOAT8[element]
    exponent, fraction = np.divmod(np.arange(count), 1 << bits)
    least = 2 - (1 << (exponent_bits - 1)) - bits
    return np.where(exponent == 0, fraction * 2.0**least,
                    (fraction + (1 << bits)) * 2.0**(exponent - 1 + least))


def round_to(array, element, random=None):
    """float64 with the values of `element`: to nearest even, or where `random` is
    given up or down by chance."""
    if element in INTEGERS or element == "f64":
        return array
    if random is not None:
        near = round_to(array, element)
        with np.errstate(invalid="ignore"):
            other = round_to(near + 2 * (array - near), element)
        return np.where(random.random(near.shape) < 0.5, near, other)
    if element == "bf16":
        bits = np.asarray(array, np.float32).view(np.uint32).astype(np.uint64)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        return bits.astype(np.uint32).view(np.float32).astype(np.float64)
    if element in FLOAT8:
        bits = bits_of_float8(array, element)
        return np.where(bits >> 7, -1, 1) * float8(element)[bits & 0x7F]
    return np.asarray(array).astype({"f32": np.float32,
                                    "f16": np.float16}[element]).astype(np.float64)


def split(text):
    """Parts between commas outside of all brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "<([{":
            depth += 1
        elif c in ">)]}" and text[i - 1] != "-":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return parts + ([text[start:].strip()] if text[start:].strip() else [])


def closing(text, at):
    """The place after the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        if text[i] in "<([{":
            depth += 1
        elif text[i] in ">)]}" and text[i - 1] != "-":
            depth -= 1
            if depth == 0:
                return i + 1
    raise ValueError("no closing bracket in " + text[at:at + 80])


class Type:
    def __init__(self, text):
        match = re.match(r"tensor<((?:(?:\d+|\?)x)*)(\w+)", text)
        if not match:
            raise ValueError("no tensor type: " + text)
        self.shape = [None if e == "?" else int(e) for e in match[1].split("x")[:-1]]
        if whole := re.search(r"#tv\.local<.*, of \[([^]]*)\]>", text):  # of one device's part
            self.shape = [int(e) if e.isdigit() else None for e in split(whole[1])]
        self.element = match[2]


def philox(index, seed, stream, bits=24):
    """Uniform numbers as tv.random defines them (Philox 4x32-10, 4x32-7 of 16 bits)."""
    index = np.asarray(index, np.uint64)
    mask = np.uint64(0xFFFFFFFF)
    each, rounds = (8, 7) if bits == 16 else (4, 10)
    group = index // np.uint64(each)
    c = [group & mask, group >> np.uint64(32),
         np.full_like(group, stream & 0xFFFFFFFF), np.full_like(group, stream >> 32)]
    k = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(rounds):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]), p1 & mask,
             (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1]), p0 & mask]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    word = np.choose((index % np.uint64(each)).astype(np.int64) * 4 // each, c)
    if bits == 16:
        half = word >> index % np.uint64(2) * np.uint64(16) & np.uint64(0xFFFF)
        return half.astype(np.float64) * 2.0**-16
    return (word >> np.uint64(8)).astype(np.float64) * 2.0**-24


def erf(x):
    if x.dtype != np.longdouble:
        from math import erf as scalar
        return np.vectorize(scalar, otypes=[np.float64])(x)
    # exp(-x^2) sum of 2^n x^(2n+1) / (2n+1)!!, of which no term has another sign.
    inside = np.clip(x, -7, 7)
    term = total = inside
    for n in range(1, 200):
        term = term * (2 * inside**2) / (2 * n + 1)
        total = total + term
    pi = 4 * np.arctan(np.longdouble(1))
    return 2 / np.sqrt(pi) * np.exp(-inside**2) * total


def softmax(x, axis):
    with np.errstate(invalid="ignore"):
        e = np.exp(x - x.max(axis=axis, keepdims=True, initial=-np.inf))
        return e / e.sum(axis=axis, keepdims=True)


SCALAR = {
    "arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply,
    "arith.divf": np.divide, "arith.negf": np.negative, "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum, "math.exp": np.exp,
    "math.log": np.log, "math.sqrt": np.sqrt, "math.tanh": np.tanh, "math.erf": erf,
    "math.rsqrt": lambda x: 1 / np.sqrt(x), "math.absf": np.abs, "math.sin": np.sin,
    "math.cos": np.cos, "math.powf": np.power,
    "arith.select": lambda c, a, b: np.where(c, a, b),
}
# Named pointwise ops.
POINTWISE = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": divide,
    "max": np.maximum, "min": np.minimum, "neg": np.negative, "abs": np.abs,
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "pow": np.power,
    "silu": lambda x: x / (1 + np.exp(-x)), "where": np.where,
}
PREDICATES = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
              "gt": np.greater, "ge": np.greater_equal}
COMPARE = {"oeq": np.equal, "ogt": np.greater, "oge": np.greater_equal,
           "olt": np.less, "ole": np.less_equal, "one": np.not_equal, "eq": np.equal,
           "ne": np.not_equal, "slt": np.less, "sle": np.less_equal,
           "sgt": np.greater, "sge": np.greater_equal, "une": np.not_equal}
for name in ("lt", "le", "gt", "ge"):  # an integer below 0 is a large one without a sign
    COMPARE["u" + name] = lambda a, b, compare=COMPARE["s" + name]: compare(
        np.asarray(a, np.int64).astype(np.uint64), np.asarray(b, np.int64).astype(np.uint64))


def results_of(name):
    """`%0:2` is `%0#0` and `%0#1`."""
    name, several, count = name.partition(":")
    return [f"{name}#{i}" for i in range(int(count))] if several else [name]


def inline_regions(lines):
    """The ops of local regions in the regions' places: each means what it does to whole
    tensors, and a move nothing."""
    out, given = [], {}  # for what a region gives

    def renamed(line, name_of):
        return re.sub(r"%\w+(?:#\d+)?", lambda name: name_of(name[0]), line)

    rest = iter(lines)
    for number, line in enumerate(rest):
        if line.startswith("func.func "):
            given = {}
        line = renamed(line, lambda name: given.get(name, name))
        left, region, right = line.partition(" = tv.local_region ")
        if not region:
            out.append(line)
            continue
        body, depth = [], 1
        while depth:
            body.append(next(rest))
            depth += body[-1].endswith("{") - body[-1].startswith("}")
        arguments = {}
        if body[0].startswith("^bb0("):
            names = [part.partition(":")[0] for part in split(body.pop(0)[5:-2])]
            arguments = dict(zip(names, split(right[:right.index(" : (")])))

        def inside(name):
            return arguments.get(name, f"%in{number}_{name[1:]}")

        for op in body[:-2]:
            out.append(re.sub(r"= comm\.\w+ ", "= tv.reshard ", renamed(op, inside)))
        names = [name for part in split(left) for name in results_of(part)]
        yielded = body[-2].removeprefix("tv.yield ").partition(" : ")[0]
        given.update(zip(names, (renamed(value, inside) for value in split(yielded))))
    return out


def load(table, index):
    """The elements at these indices, 0 outside."""
    index = np.broadcast_arrays(*index)
    inside = np.logical_and.reduce([(0 <= i) & (i < e) for i, e in zip(index, table.shape)])
    if table.size == 0:
        return np.zeros(inside.shape, table.dtype)
    return np.where(inside, table[tuple(np.where(inside, i, 0) for i in index)],
                    table.dtype.type(0))


class Program(Attention):
    def __init__(self, text, rounded=False, random=None):
        self.rounded, self.random = rounded, random
        self.float = np.longdouble if "f64" in text and not rounded else np.float64
        self.lines = inline_regions([line.strip() for line in text.splitlines()])
        self.functions = {}
        for i, line in enumerate(self.lines):
            if match := re.match(r"func\.func (?:private )?@(\w+)\(", line):
                self.functions[match[1]] = i

    # Functions

    def signature(self, name):
        """[(value, type, port name)] of arguments, [(type, port name)] of results."""
        line = self.lines[self.functions[name]]
        begin = line.index("(", line.index("@"))
        end = closing(line, begin)

        def port(text):
            match = re.search(r'tv\.name = "([^"]*)"', text)
            return match[1] if match else None

        arguments = []
        for part in split(line[begin + 1:end - 1]):
            value, _, rest = part.partition(": ")
            arguments.append((value, Type(rest), port(rest)))
        results = []
        rest = line[end:]
        if rest.startswith(" -> "):
            rest = rest[4:]
            if rest.startswith("("):
                rest = rest[1:closing(rest, 0) - 1]
                results = [(Type(p), port(p)) for p in split(rest)]
            else:
                results = [(Type(rest), None)]
        return arguments, results

    def call(self, name, values):
        arguments, _ = self.signature(name)
        env = {a[0]: v for a, v in zip(arguments, values)}
        i = self.functions[name] + 1
        while True:
            line = self.lines[i]
            if line.startswith("return"):
                names = re.match(r"return ?([^:]*)", line)[1]
                return [env[n] for n in split(names)]
            i = self.step(env, i)

    def run(self, inputs, name="main"):
        arguments, results = self.signature(name)
        values = [self.round(np.asarray(inputs[port]), type_)
                  for _, type_, port in arguments]
        outputs = self.call(name, values)
        return {port or f"result{i}": value
                for i, ((_, port), value) in enumerate(zip(results, outputs))}

    def round(self, array, type_):
        if type_.element in INTEGERS:
            return np.asarray(array).astype(INTEGERS[type_.element])
        array = np.asarray(array, self.float)
        return round_to(array, type_.element, self.random) if self.rounded else array

    def inner(self, array, element):
        """What an op of `element` computes on its way, in the type it does."""
        wide = "f64" if element == "f64" else "f32"
        return round_to(array, wide, self.random) if self.rounded else array

    def order(self, count):
        """Of the addends of a sum: as they are, in which order runs of one sign may
        make what is summed large on the way, or by chance."""
        if self.random is None or self.random.random() < 0.5:
            return np.arange(count)
        return self.random.permutation(count)

    def sum(self, array, axes, element):
        """The sum; `rounded` after each addend, to the type that reductions sum in."""
        if not self.rounded or element in INTEGERS:
            return array.sum(axis=axes)
        rest = [d for d in range(array.ndim) if d not in axes]
        addends = array.transpose([*axes, *rest]).reshape(
            int(np.prod([array.shape[d] for d in axes])), *(array.shape[d] for d in rest))
        wide = np.float64 if element == "f64" else np.float32
        first = np.zeros((1, *addends.shape[1:]), wide)  # the sum of none
        return np.add.accumulate(np.concatenate([first, addends[self.order(len(addends))]]),
                                 axis=0, dtype=wide)[-1]

    def product(self, a, b, element):
        """a @ b, summed as `sum` does."""
        if not self.rounded:
            return a @ b
        wide = np.float64 if element == "f64" else np.float32
        shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        total = np.zeros([*shape, a.shape[-2], b.shape[-1]], wide)
        # (Factors of f32 and less are exact in f32, and so is a rounding of a product.)
        columns = np.moveaxis(a, -1, 0).astype(wide, order="C")
        rows = np.moveaxis(b, -2, 0).astype(wide, order="C")
        product = np.empty_like(total)
        for k in self.order(a.shape[-1]):
            np.multiply(columns[k, ..., None], rows[k, ..., None, :], out=product)
            total += product
        return total

    def mean(self, array, element):
        """The means of rows."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return (self.sum(array, (array.ndim - 1,), element) / np.float64(array.shape[-1]))[..., None]

    # Ops

    def parse(self, i):
        """The op in line i: (names of results, op, what is before its types, regions,
        types of results), and the line after it. Sets `operand_types`."""
        line = self.lines[i]
        left, _, right = line.partition(" = ")
        names = [name for part in split(left) for name in results_of(part)]
        op, _, rest = right.partition(" ")
        regions = {}
        end = i + 1
        head = rest
        for key in ("score_mod", "mask_mod", "score_grad"):
            if f" {key} (" in head:
                head = head[:head.index(f" {key} (")]
        # Regions: `(%a: f32, ...) {` ends the line; `} mask_mod (...) {` may follow.
        opening = r"(score_mod |mask_mod |score_grad )?\((%[^()]*)\) \{$"
        open_ = re.search(opening, line)
        while open_:
            key = (open_[1] or "body ").strip()
            params = [p.split(":")[0].strip() for p in open_[2].split(",")]
            body = []
            while not self.lines[end].startswith("}"):
                body.append(self.lines[end])
                end += 1
            regions[key] = (params, body)
            open_ = re.search(opening, self.lines[end])
            end += 1
        at = head.index(" : (") if " : (" in head else head.index(": (") - 1
        before, types = head[:at], head[at + 3:]
        end_ = closing(types, 0)
        self.operand_types = [Type(p) for p in split(types[1:end_ - 1])]
        after = types[end_:].removeprefix(" -> ")
        if after.startswith("("):
            after = after[1:closing(after, 0) - 1]
            out = [Type(p) for p in split(after)]
        else:
            out = [Type(split(after)[0])]
        return names, op.removeprefix("tv."), before, regions, out, end

    def step(self, env, i):
        """Runs the op in line i; gives the line after it."""
        names, op, before, regions, out, end = self.parse(i)
        args = [env[v] for v in re.findall(r"%[\w#]+", before)]
        if op == "call":
            values = tuple(self.call(re.match(r"@(\w+)", before)[1], args))
        elif op == "gradient":
            values = tvgradients.gradient(self, before, args)
        elif op in POINTWISE:
            with np.errstate(all="ignore"):
                values = POINTWISE[op](*args)
        else:
            values = getattr(self, "op_" + op)(before, args, out, regions, env)
        if not isinstance(values, tuple):
            values = (values,)
        for name, value, type_ in zip(names, values, out):
            env[name] = self.round(value, type_)
        return end

    def scalars(self, region, values, env, loaded=None, accumulate=None):
        """What the region yields. `loaded(value, tensor, index, number)` gives what the
        load of this number gives; `accumulate(number, index, value)` takes adjoints."""
        params, body = region
        local = dict(zip(params, values))
        loads = 0
        for line in body:
            if match := re.match(r"tv\.accumulate (\d+)\[(.*?)\], (%\w+)", line):
                accumulate(int(match[1]), [local[n] for n in split(match[2])],
                           local[match[3]])
                continue
            if line.startswith("tv.yield"):
                names = split(line[len("tv.yield"):].split(":")[0])
                return [local[n] for n in names]
            name, _, right = line.partition(" = ")
            op, _, rest = right.partition(" ")
            if op == "arith.constant":
                text, _, element = rest.partition(" : ")
                value = {"true": True, "false": False}.get(text)
                if value is None:
                    value = (int(text) if re.fullmatch(r"-?\d+", text)
                             else np.inf if text == "0x7F800000"
                             else -np.inf if text == "0xFF800000"
                             else round_to(float(text), element))
                local[name] = np.asarray(value)
                continue
            if op == "tv.load":
                match = re.match(r"(%[\w#]+)\[(.*?)\]", rest)
                index = [np.asarray(local[n]).astype(np.int64) for n in split(match[2])]
                local[name] = load(env[match[1]], index) if index else env[match[1]]
                if loaded:
                    local[name] = loaded(local[name], match[1], index, loads)
                loads += 1
                continue
            args = [local[n] for n in re.findall(r"%[\w-]+", rest)]
            if op in ("arith.cmpf", "arith.cmpi"):
                local[name] = COMPARE[rest.split(",")[0].split()[0]](*args)
            elif op in ("arith.extf", "arith.truncf", "arith.sitofp", "arith.index_cast",
                        "arith.extsi", "arith.extui", "arith.uitofp", "arith.trunci",
                        "arith.index_castui", "arith.fptosi", "arith.fptoui"):
                source, target = rest.split(" : ", 1)[1].split(" to ")
                value = np.asarray(args[0])
                if op in ("arith.fptosi", "arith.fptoui"):
                    value = to_integer(value, target, op == "arith.fptosi")
                elif source in INTEGERS:
                    width = 64 if source == "index" else int(source[1:])
                    signed = op not in ("arith.extui", "arith.uitofp", "arith.index_castui")
                    value = wrapped(value, width, signed)
                if target in INTEGERS:
                    width = 64 if target == "index" else int(target[1:])
                    value = np.asarray(wrapped(value, width, width > 1))
                    value = value.astype(INTEGERS[target])
                else:
                    value = np.asarray(value).astype(np.float64)
                    if self.rounded:
                        value = round_to(value, target)
                local[name] = value
            elif op.removeprefix("arith.") in ("shrsi", *SIGNED, *UNSIGNED):
                local[name] = integer_op(op.removeprefix("arith."), rest.rsplit(" : ", 1)[1],
                                         *args)
            else:
                local[name] = SCALAR[op](*args)
        raise ValueError("a region without tv.yield")

    @staticmethod
    def number(text, key):
        return float(re.search(key + r"\(([^)]*)\)", text)[1])

    @staticmethod
    def list(text, key):
        return [int(e) for e in split(re.search(key + r" \[(.*?)\]", text)[1])]

    @staticmethod
    def dim(text):
        return int(re.search(r" dim (\d+)", text)[1])

    @staticmethod
    def extents(type_, like):
        """The result's shape, `?` from `like`."""
        return [like.shape[d] if e is None else e for d, e in enumerate(type_.shape)]

    def op_map(self, text, args, out, regions, env):
        values = self.scalars(regions["body"], args, env)
        return tuple(np.broadcast_to(v, args[0].shape) for v in values)

    def op_reduce(self, text, args, out, regions, env):
        axes = tuple(self.list(text, "dims"))
        kind = text.split()[0]
        if kind == "sum":
            return self.sum(args[0], axes, out[0].element)
        initial = -np.inf if kind == "max" else np.inf
        if args[0].dtype.kind != "f":
            limits = np.iinfo(args[0].dtype)
            initial = limits.min if kind == "max" else limits.max
        return getattr(args[0], kind)(axis=axes, initial=initial)

    def op_broadcast(self, text, args, out, regions, env):
        dims = self.list(text, "dims")
        view = [1] * len(out[0].shape)
        for i, d in enumerate(dims):
            view[d] = args[0].shape[i]
        shape = self.extents(out[0], args[1] if len(args) > 1 else np.zeros(view))
        return np.broadcast_to(args[0].reshape(view), shape)

    def op_linear(self, text, args, out, regions, env):
        x, w = args[:2]
        rows = x.reshape(int(np.prod(x.shape[:-1])), x.shape[-1])
        y = self.product(rows, w.T, out[0].element).reshape(*x.shape[:-1], w.shape[0])
        return y + args[2] if len(args) > 2 else y

    def op_matmul(self, text, args, out, regions, env):
        return self.product(*args, out[0].element)

    def op_contract(self, text, args, out, regions, env):
        a, b, c = ([int(label) for label in re.findall(r"\d+", labels)]
                   for labels in re.findall(r"\[(.*?)\]", text)[:3])
        extents = dict(zip(a + b, args[0].shape + args[1].shape))
        batch = [label for label in c if label in a and label in b]
        rows = [label for label in c if label not in b]
        columns = [label for label in c if label not in a]
        sums = [label for label in a if label not in c]

        def matrices(array, of, first, second):
            return (array.transpose([of.index(label) for label in batch + first + second])
                    .reshape(*(extents[label] for label in batch),
                             *(int(np.prod([extents[label] for label in side]))
                               for side in (first, second))))

        y = self.product(matrices(args[0], a, rows, sums), matrices(args[1], b, sums, columns),
                         out[0].element)
        made = batch + rows + columns
        y = y.reshape([extents[label] for label in made])
        y = y.transpose([made.index(label) for label in c])
        for added in args[2:]:  # a bias, an addend
            y = y + added
        return y

    def op_grouped_matmul(self, text, args, out, regions, env):
        x, w, counts = args
        y = self.product(x, w.transpose(0, 2, 1), out[0].element)
        return y * (np.arange(x.shape[1])[None, :, None] < counts[:, None, None])

    def op_reshape(self, text, args, out, regions, env):
        x, shape = args[0], out[0].shape
        dynamic = [x.shape[d] for d, e in enumerate(self.operand_types[0].shape) if e is None]
        if shape.count(None) == 1:  # what the others leave
            others = int(np.prod([e for e in shape if e is not None]))
            dynamic = [x.size // max(others, 1)]
        dynamic = iter(dynamic)
        return x.reshape([next(dynamic) if e is None else e for e in shape])

    def op_transpose(self, text, args, out, regions, env):
        return args[0].transpose(self.list(text, "perm"))

    def op_slice(self, text, args, out, regions, env):
        box = tuple(slice(o, args[0].shape[d] if e is None else o + e)
                    for d, (o, e) in enumerate(zip(self.list(text, "offsets"),
                                                   out[0].shape)))
        return args[0][box]

    def op_concat(self, text, args, out, regions, env):
        return np.concatenate(args, axis=self.dim(text))

    def op_pad(self, text, args, out, regions, env):
        value = float(re.search(r"value (\S+)", text)[1])
        return np.pad(args[0], list(zip(self.list(text, "low"), self.list(text, "high"))),
                      constant_values=value)

    def op_gather(self, text, args, out, regions, env):
        table, ids = args
        d = self.dim(text)
        inside = (ids >= 0) & (ids < table.shape[d])
        if table.shape[d] == 0:
            table = np.zeros(table.shape[:d] + (1,) + table.shape[d + 1:], table.dtype)
        rows = np.take(table, np.where(inside, ids, 0), axis=d)
        mask = inside.reshape([1] * d + list(ids.shape) + [1] * (table.ndim - d - 1))
        return np.where(mask, rows, 0)

    def op_scatter(self, text, args, out, regions, env):
        init, ids, updates = args
        d = self.dim(text)
        kind = text.split()[0]
        result = np.moveaxis(np.array(init), d, 0)
        flat = updates.reshape(updates.shape[:d] + (ids.size,)
                               + updates.shape[d + ids.ndim:])
        flat = np.moveaxis(flat, d, 0)
        combine = {"sum": np.add, "max": np.maximum, "min": np.minimum,
                   "set": lambda old, new: new}[kind]
        for i, row in enumerate(ids.reshape(-1)):
            if 0 <= row < result.shape[0]:
                result[row] = combine(result[row], flat[i])
        return np.moveaxis(result, 0, d)

    def op_cumsum(self, text, args, out, regions, env):
        x, d = args[0], self.dim(text)
        turn = (lambda a: np.flip(a, d)) if text.startswith("reverse") else (lambda a: a)
        element = out[0].element
        narrow = self.rounded and element not in INTEGERS and element != "f64"
        return turn(np.add.accumulate(turn(x), axis=d, dtype=np.float32 if narrow else x.dtype))

    def op_top_k(self, text, args, out, regions, env):
        x, d = args[0], self.dim(text)
        k = out[0].shape[d]
        # Stable, from the end: a NaN is last in NumPy's order.
        order = x.shape[d] - 1 - np.flip(np.argsort(np.flip(x, d), axis=d, kind="stable"), d)
        order = np.take(order, range(k), axis=d)
        return np.take_along_axis(x, order, d), order

    def op_dispatch(self, text, args, out, regions, env):
        tokens, experts = args
        buffers = np.zeros(self.extents(out[0], np.zeros((0, 0, tokens.shape[1]))),
                           tokens.dtype)
        counts = np.zeros(out[1].shape, np.int64)
        slots = np.full(experts.shape, -1)
        for t in range(experts.shape[0]):
            for c in range(experts.shape[1]):
                e = experts[t, c]
                if 0 <= e < buffers.shape[0] and counts[e] < buffers.shape[1]:
                    slots[t, c] = counts[e]
                    buffers[e, counts[e]] = tokens[t]
                    counts[e] += 1
        return buffers, counts, slots

    def op_combine(self, text, args, out, regions, env):
        buffers, experts, slots, weights = args
        result = np.zeros((experts.shape[0], buffers.shape[2]), buffers.dtype)
        for t in range(experts.shape[0]):
            for c in range(experts.shape[1]):
                at = experts[t, c], slots[t, c]
                if all(0 <= i < e for i, e in zip(at, buffers.shape)):
                    result[t] += weights[t, c] * buffers[at]
        return result

    def op_constant(self, text, args, out, regions, env):
        value = re.match(r"dense<(.*)> : tensor", text)[1]
        value = value.replace("true", "1").replace("false", "0")
        array = np.array(eval(value, {"__builtins__": {}}), np.float64)
        return np.broadcast_to(array, self.extents(out[0], args[0] if args else array))

    def op_iota(self, text, args, out, regions, env):
        shape = self.extents(out[0], args[0] if args else np.zeros(()))
        return np.indices(shape)[int(text.split()[0])]

    def op_random(self, text, args, out, regions, env):
        like = args[-1] if " like " in text else np.zeros(())
        bits = int(self.number(text, "bits")) if " bits(" in text else 24
        return self.numbers(text, self.extents(out[0], like), args, bits)

    def numbers(self, text, shape, args, bits):
        """Random ones of an op with a seed and a stream, whose step is the first of args."""
        step = int(args[0]) if " step " in text else 0
        index = np.arange(int(np.prod(shape))).reshape(shape)
        return philox(index, int(self.number(text, "seed")) % 2**64,
                      (int(self.number(text, "stream")) + (step << 32)) % 2**64, bits)

    def op_size(self, text, args, out, regions, env):
        return np.asarray(args[0].shape[self.dim(text)])

    def op_reshard(self, text, args, out, regions, env):
        return tuple(args)

    op_same_view = op_reshard

    def op_constrain(self, text, args, out, regions, env):
        return args[0]

    op_barrier = op_constrain

    def op_compare(self, text, args, out, regions, env):
        return PREDICATES[text.split()[0]](*args)

    def op_cast(self, text, args, out, regions, env):
        x, element = args[0], out[0].element
        return cast(x, element) if element in INTEGERS else self.inner(
            np.asarray(x, self.float), element)

    def op_gelu(self, text, args, out, regions, env):
        x, element = args[0], out[0].element
        if text.startswith("tanh"):
            inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
            return 0.5 * x * (1 + self.inner(np.tanh(inner), element))
        return 0.5 * x * (1 + self.inner(erf(x / np.sqrt(2)), element))

    def op_gelu_grad(self, text, args, out, regions, env):
        dy, x = args
        if text.startswith("tanh"):
            inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
            rise = np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * x**2)
            small = np.exp(-2 * np.abs(inner))  # as 1 - tanh^2 cancels
            square = 4 * small / (1 + small)**2
            terms = np.tanh(inner), x * square * rise
            return dy * 0.5 * (1 + sum(self.inner(t, out[0].element) for t in terms))
        density = np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)
        terms = 0.5 * erf(x / np.sqrt(2)), x * density
        return dy * (0.5 + sum(self.inner(t, out[0].element) for t in terms))

    def op_softmax(self, text, args, out, regions, env):
        return softmax(args[0], self.dim(text))

    def op_layer_norm(self, text, args, out, regions, env):
        x, w, b = args
        mean = self.mean(x, out[0].element)
        variance = self.mean((x - mean) ** 2, out[0].element)
        return (x - mean) / np.sqrt(variance + self.number(text, "epsilon")) * w + b

    def op_rms_norm(self, text, args, out, regions, env):
        x, w = args
        square = self.mean(x * x, out[0].element)
        return x / np.sqrt(square + self.number(text, "epsilon")) * w

    def op_rope(self, text, args, out, regions, env):
        x = args[0]
        half = x.shape[-1] // 2
        place = np.arange(x.shape[-2])[:, None]
        if len(args) > 1:
            *first, rows = args[1].shape
            place = args[1].reshape(*first, *[1] * (x.ndim - 1 - args[1].ndim), rows, 1)
        base = x.dtype.type(self.number(text, "base"))
        element = out[0].element
        turn = self.inner(base ** (-np.arange(half, dtype=x.dtype) / half), element)
        angle = self.inner(place * turn, element)
        cos, sin = (self.inner(f(angle), element) for f in (np.cos, np.sin))
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)

    def op_cross_entropy(self, text, args, out, regions, env):
        x, labels = args
        top = x.max(axis=-1, keepdims=True, initial=-np.inf)
        lse = np.log(np.exp(x - top).sum(axis=-1)) + top[..., 0]
        inside = (labels >= 0) & (labels < x.shape[-1])
        at = np.where(inside, labels, 0)[..., None].astype(np.int64)
        loss = np.where(inside, lse - np.take_along_axis(x, at, -1)[..., 0], 0)
        return (loss, lse) if len(out) > 1 else loss

    def windows(self, text, x, sizes, outside=0):
        """The elements of windows over the last dimensions of x: [F..., O..., K...]."""
        strides, low, high, dilations = (
            self.list(text, key) if f" {key} [" in text else [otherwise] * len(sizes)
            for key, otherwise in (("strides", 1), ("low", 0), ("high", 0), ("dilations", 1)))
        x = np.pad(x, [(0, 0)] * (x.ndim - len(sizes)) + list(zip(low, high)),
                   constant_values=outside)
        spans = [(k - 1) * d + 1 for k, d in zip(sizes, dilations)]
        all = np.lib.stride_tricks.sliding_window_view(x, spans, tuple(range(-len(sizes), 0)))
        return all[(..., *(slice(None, None, s) for s in (*strides, *dilations)))]

    def op_conv(self, text, args, out, regions, env):
        x, w, *bias = args
        rank = w.ndim - 2
        groups = int(self.number(text, "groups")) if " groups(" in text else 1
        columns = self.windows(text, x, w.shape[2:])  # [B, C, O..., K...]
        places = columns.shape[2:2 + rank]
        columns = columns.reshape(len(x), groups, w.shape[1], *columns.shape[2:])
        columns = np.moveaxis(columns, 2, 2 + rank).reshape(
            len(x), groups, int(np.prod(places)), int(np.prod(w.shape[1:])))
        matrix = w.reshape(1, groups, len(w) // groups, columns.shape[3]).swapaxes(2, 3)
        y = self.product(columns, matrix, out[0].element).swapaxes(2, 3)
        y = y.reshape(len(x), len(w), *places)
        return y + bias[0].reshape(-1, *[1] * rank) if bias else y

    def op_pool(self, text, args, out, regions, env):
        sizes = self.list(text, "sizes")
        axes = tuple(range(args[0].ndim, args[0].ndim + len(sizes)))
        if text.startswith("max"):
            return self.windows(text, args[0], sizes, -np.inf).max(axis=axes)
        return self.sum(self.windows(text, args[0], sizes), axes, out[0].element) / np.prod(sizes)

    def op_adamw(self, text, args, out, regions, env):
        w, m, v, g, scale, rate, step = args
        a, b = (float(beta) for beta in re.search(r"betas\((.*?)\)", text)[1].split(","))
        m = a * m + (1 - a) * scale * g
        v = b * v + (1 - b) * (scale * g) ** 2
        move = m / (1 - a**step) / (np.sqrt(v / (1 - b**step)) + self.number(text, "epsilon"))
        return w - rate * (move + self.number(text, "decay") * w), m, v

    def op_dropout(self, text, args, out, regions, env):
        x, rate = args[0], self.number(text, "rate")
        numbers = self.numbers(text, x.shape, args[1:], 16)
        return np.where(numbers >= rate, x / (1 - rate), 0)


def allowed(exact, rounded, element, devices, addend):
    """How far each element may be from `exact`: the tolerance of architecture.md, 11;
    `rounded` are the results of programs that round, `addend` is the largest of any
    reduction over devices."""
    if element in INTEGERS or exact.size == 0:
        return np.zeros(exact.shape)
    rows = (-1, exact.shape[-1] if exact.ndim else 1)
    b, *all = (np.asarray(x, np.longdouble).reshape(rows) for x in (exact, *rounded))
    with np.errstate(invalid="ignore"):
        own = np.max([np.where(b == r, 0, np.abs(b - r)) for r in all], axis=0)
    own[~np.isfinite(own)] = 0
    norm = np.sqrt((np.where(np.isfinite(b), b, 0) ** 2).sum(axis=1, keepdims=True))
    bound = (4 * own.max(axis=1, keepdims=True) + EPS[element] * norm
             + (devices - 1) * EPS[element] * addend)
    return np.broadcast_to(bound, b.shape).reshape(exact.shape)


def compare(name, result, exact, bound):
    """None, or why `result` is further from `exact` than `bound`."""
    if result.shape != exact.shape:
        return f"{name} has shape {result.shape}, not {exact.shape}"
    a, b = (np.asarray(x, np.longdouble) for x in (result, exact))
    with np.errstate(invalid="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        error = np.where(same, 0, np.abs(a - b))
    error = np.where(np.isnan(error), np.inf, error)
    if (error > bound).any():
        at = tuple(np.argwhere(error > bound)[0])
        return (f"{name} differs at {[int(i) for i in at]}: {a[at]} for {b[at]}, "
                f"{error[at]:.2e} away where {bound[at]:.2e} is allowed")
    return None
