"""Random programs of many small ops on few shapes: what tv-group-ops joins, orders and
computes again. Values are read again and again, long after they are made; there are
several results, and states that are read before and after their next value is made."""
import math

from random_programs import Program, Value
from random_sizes import Size, dynamic


class Graph(Program):
    def __init__(self, seed, partial_inputs=True, without=()):
        super().__init__(seed, partial_inputs, [*without, "moves"])
        self.extents = [self.random.choice([1, 2, 3, 4, 5, 6, 8, 12]) for _ in range(3)]
        for i, name in enumerate(self.sizes):
            self.extents[i] = Size({(name,): 1})
        a, b, c = self.extents
        self.shapes = [(a,), (b,), (a, b), (a, b), (b, a), (a, b, c), ()]
        # How often a result says how it lies; the rest propagates.
        self.says = self.random.choice([0, 0.03, 0.1])
        self.states, self.next = [], {}  # arguments; what an update makes of them, by name

    def result(self, shape, element=None, split=()):
        view = self.view(shape) if shape and self.chance(self.says) else None
        return self.type(shape, view, element)

    def extent(self):
        return self.random.choice(self.extents)

    def shape(self, rank):
        return list(self.random.choice([s for s in self.shapes if len(s) == rank]
                                       or [[self.extent() for _ in range(rank)]]))

    def pick(self, rank=None, at_least=0, integers=False):
        fits = [v for v in self.values
                if (rank is None or len(v.shape) == rank) and len(v.shape) >= at_least
                and v.element == self.float]
        recent = fits[-3:] if self.chance(0.4) else fits
        if fits and self.chance(0.97):
            return self.random.choice(recent)
        shapes = [s for s in self.shapes if len(s) >= at_least and rank in (None, len(s))]
        return self.input(list(self.random.choice(shapes)))

    def like(self, shape, element=None):
        fits = [v for v in self.values if v.shape == tuple(shape)
                and v.element == (element or self.float)]
        if fits and self.chance(0.95):
            return self.random.choice(fits)
        return self.input(list(shape), element)

    # Ops

    def op_cheap(self):
        """Computed again where they are read."""
        a = self.pick()
        return self.scalars([a], self.random.choice([
            "%r = arith.negf %x : {t}", "%r = arith.addf %x, %x : {t}",
            "%c = arith.constant 0.5 : {t}\n%r = arith.mulf %x, %c : {t}",
            "%c = arith.constant 0.25 : {t}\n%r = arith.subf %c, %x : {t}"]))

    def op_cheap_pair(self):
        a = self.pick()
        return self.scalars([a, self.like(a.shape)], self.random.choice([
            "%r = arith.addf %x, %y : {t}", "%r = arith.subf %x, %y : {t}",
            "%c = arith.constant 0.5 : {t}\n%m = arith.mulf %x, %c : {t}\n"
            "%r = arith.subf %m, %y : {t}"]))

    def op_pair_of_results(self):
        a = self.pick()
        b = self.like(a.shape)
        if b is None:
            return None
        names = [self.name(), self.name()]
        types = [self.result(a.shape), self.result(a.shape)]
        t = self.float
        self.body.append(
            f"  {names[0]}, {names[1]} = tv.map {a.name}, {b.name} : ({a.type}, {b.type}) -> "
            f"({types[0]}, {types[1]}) (%x: {t}, %y: {t}) {{\n"
            f"    %r = arith.addf %x, %y : {t}\n    %s = arith.minimumf %x, %y : {t}\n"
            f"    tv.yield %r, %s : {t}, {t}\n  }}")
        for name, type_ in zip(names, types):
            self.keep(Value(name, a.shape, t, type_))

    def op_spread(self):
        """A value of fewer dimensions along those of another."""
        a = self.pick()
        wide = [s for s in self.shapes if len(s) == len(a.shape) + 1]
        self.random.shuffle(wide)
        for shape in wide:
            for new in range(len(shape)):
                if shape[:new] + shape[new + 1:] == tuple(a.shape):
                    dims = [d for d in range(len(shape)) if d != new]
                    like = self.like(shape) if dynamic(shape) else None
                    like = [like] if like else []
                    return self.emit(f"tv.broadcast {a.name} dims {dims}"
                                     + "".join(f" like {l.name}" for l in like), [a, *like],
                                     shape)
        return None

    def op_turned(self):
        a = self.pick(rank=2)
        return self.emit(f"tv.transpose {a.name} perm [1, 0]", [a], a.shape[::-1])

    def op_flat_again(self):
        """Through another shape and back."""
        a = self.pick(at_least=2)
        if dynamic(a.shape):
            return None
        flat = self.emit(f"tv.reshape {a.name}", [a], self.regrouped(
            math.prod(a.shape)))
        if self.chance(0.5):
            flat = self.unary("tanh", flat)
        return self.emit(f"tv.reshape {flat.name}", [flat], a.shape)

    def op_shifted(self):
        """Each element takes the place of the one before."""
        a = self.pick(at_least=1)
        d = self.random.randrange(len(a.shape))
        if isinstance(a.shape[d], Size) or a.shape[d] < 2:
            return None
        shape, low, offsets = list(a.shape), [0] * len(a.shape), [0] * len(a.shape)
        shape[d] -= 1
        low[d] = 1
        cut = self.emit(f"tv.slice {a.name} offsets {offsets}", [a], shape)
        return self.emit(f"tv.pad {cut.name} low {low} high {[0] * len(shape)} value 0.5 : "
                         f"{self.float}", [cut], a.shape)

    def op_update(self):
        """Rows of a state, perhaps in other dimensions."""
        if not self.states:
            return None
        state = self.random.choice(self.states)
        if not state.shape or dynamic(state.shape):
            return None
        a = state
        if self.chance(0.3):
            a = self.emit(f"tv.reshape {a.name}", [a], self.regrouped(math.prod(a.shape)))
        d = self.random.randrange(len(a.shape))
        i = self.indices([self.random.choice([1, 2, 7])], a.shape[d])
        rows = [*a.shape[:d], *i.shape, *a.shape[d + 1:]] if i else None
        u = i and self.like(rows)
        if u is None:
            return None
        kind = self.random.choice(["sum", "max", "set", "set"])
        new = self.emit(f"tv.scatter {kind} {a.name}, {i.name}, {u.name} dim {d}", [a, i, u],
                        a.shape)
        if a is not state:
            new = self.emit(f"tv.reshape {new.name}", [new], state.shape)
        self.next[state.name] = new
        return new

    OPS = ("cheap cheap cheap cheap_pair cheap_pair cheap_pair pair_of_results pair_of_results "
           "spread spread spread turned turned flat_again shifted add pointwise reduce reduce "
           "reduce softmax cumsum update update gather scatter linear layer_norm map dropout "
           "made where top_k constrain barrier same_view stage region contract load").split()

    # The program

    def text(self):
        if self.made:
            return self.made
        for shape in self.random.sample(self.shapes, 2):
            self.input(list(shape))
        for _ in range(self.random.randint(0, 2)):
            shape = list(self.random.choice(self.shapes))
            view = self.view(shape) if shape and self.chance(0.5) else None
            self.states.append(self.keep(
                self.argument(shape, view, None, ', tv.role = "state"')))
        for _ in range(self.random.randint(5, 25)):
            getattr(self, "op_" + self.random.choice(self.OPS))()
        if "view<" not in "".join(self.arguments + self.body):
            shape = [4, 4]
            self.argument(shape, self.view(shape), None)
        names, types = [], []
        for state in self.states:
            fits = [v for v in self.values if v.shape == state.shape and v.element == state.element
                    and v.name != state.name]
            if state.name in self.next and self.chance(0.7):
                new = self.next[state.name]
            elif not fits:
                new = self.binary("add", state, state)
            else:
                new = self.random.choice(fits)
            if new.type != state.type:
                name = self.name()
                view = state.type.partition(", #tv.view<#m, ")[2][:-2]
                if view:
                    self.body.append(f"  {name} = tv.constrain {new.name} : ({new.type}) -> "
                                     f"{state.type} to #tv.view<#m, {view}>")
                else:
                    self.body.append(
                        f"  {name} = tv.neg {new.name} : ({new.type}) -> {state.type}")
                new = Value(name, state.shape, state.element, state.type)
            names.append(new.name)
            types.append(f'{state.type} {{tv.name = "{state.name[1:]}"}}')
        for value in self.random.sample(
                self.values, min(len(self.values), self.random.randint(1, 5))):
            names.append(value.name)
            types.append(value.type)
        plain = [t.partition(" {")[0] for t in types]
        sizes = ", ".join(f"{name} = [{maximum}, {multiple}]"
                          for name, (maximum, multiple) in self.sizes.items())
        attributes = f" attributes {{tv.sizes = {{{sizes}}}}}" if sizes else ""
        self.made = self.on_other_mesh(
            f"#m = #tv.mesh<{self.mesh}>\nfunc.func @main(" + ",\n    ".join(self.arguments)
            + f") -> ({', '.join(types)}){attributes} {{\n" + "\n".join(self.body)
            + f"\n  return {', '.join(names)} : {', '.join(plain)}\n}}\n")
        return self.made
