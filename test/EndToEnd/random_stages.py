"""What a random program has on a part of the mesh, as stages of pipelines, and what it says
for each device, in local regions."""
import math
import re

from random_sizes import dynamic


class Stages:
    """Those of a Program."""

    def on_part(self, shape, subs):
        """A view on a part of the mesh, of which a dimension of 1 says which; what is left of
        `subs` may split the others."""
        taken = [subs.pop() for _ in range(self.random.randint(1, min(2, len(subs))))]
        count = math.prod(self.size_of(sub) for sub in taken)
        at = self.random.randrange(count)
        of = self.random.choice([d for d, e in enumerate(shape) if e == 1])
        part = f"({' * '.join(taken)} * 1 | {at}:{at + 1})"
        return "[" + ", ".join(part if d == of else " * ".join(self.factors(subs))
                               for d in range(len(shape))) + "]"

    def size_of(self, sub):
        """How many devices did(sub) tells apart."""
        name, _, size = re.match(r"did\((\w+)(:\(\d+\)(\d+))?\)", sub).groups()
        return int(size) if size else dict(self.axes)[name]

    def op_stage(self):
        """A value goes to a part of the mesh, where what is computed of it may need weights
        that lie there, and perhaps to another part."""
        a = self.pick(at_least=1)
        if 0 in a.shape:
            return None
        if len(a.shape) < 4 and (1 not in a.shape or self.chance(0.5)):
            if dynamic(a.shape) and self.chance(0.5):
                return None
            a = self.emit(f"tv.reshape {a.name}", [a], [1, *a.shape])
        if 1 not in a.shape or not any(self.size_of(s) > 1 for s in self.sub_axes()):
            return None
        for _ in range(self.random.randint(1, 2)):
            if 1 not in a.shape:
                break
            a = self.constrained(a, self.on_part(a.shape, self.sub_axes()))
            for _ in range(self.random.randint(0, 2)):
                kind = self.random.choice(["tanh", "product", "add", "softmax"])
                if kind == "product" and len(a.shape) > 1 and a.shape[-2] != 1:
                    kind = "tanh"
                if kind == "tanh":
                    a = self.unary("tanh", a)
                elif kind == "softmax":
                    d = self.random.randrange(len(a.shape))
                    a = self.emit(f"tv.softmax {a.name} dim {d}", [a], a.shape)
                else:
                    shape = list(a.shape)
                    if kind == "product":
                        shape = [self.random.choice([1, 2, 4]), a.shape[-1]]
                    view = self.view(shape)
                    if 1 in shape and self.chance(0.8):
                        view = self.on_part(shape, self.sub_axes())
                    b = self.argument(shape, view, None)
                    if b is None:
                        continue
                    if kind == "add":
                        a = self.binary("add", a, b)
                    else:
                        a = self.emit(f"tv.linear {a.name}, {b.name}", [a, b],
                                      [*a.shape[:-1], shape[0]])
        return a

    # Regions

    def simple_view(self, shape, subs):
        """For each dimension what splits it, in blocks or in turn, or that it lies on a part:
        a list of (sub-axis, kind)."""
        dims = []
        for extent in shape:
            kind = self.random.choice(["whole", "blocks", "blocks", "turn"])
            if not subs or kind == "whole":
                dims.append(None)
            elif extent == 1 and self.chance(0.5):
                sub = subs.pop()
                dims.append((sub, self.random.randrange(self.size_of(sub))))
            else:
                dims.append((subs.pop(), kind))
        return dims

    def lies(self, dims, partial=""):
        """The view of a part."""
        products = ["_" if not dim else f"({dim[0]} * 1 | {dim[1]}:{dim[1] + 1})"
                    if isinstance(dim[1], int) else
                    f"{dim[0]} * _" if dim[1] == "blocks" else f"_ * {dim[0]}" for dim in dims]
        return f"[{', '.join(products)}]" + (f", partial = [{partial} : sum]" if partial else "")

    def local(self, shape, element, dims, partial=""):
        """The type of a part: extents that differ between devices are `?`."""
        extents = []
        for extent, dim in zip(shape, dims):
            count = self.size_of(dim[0]) if dim else 1
            alike = count == 1 or isinstance(extent, int) and (
                extent % count == 0 and not isinstance(dim[1], int))
            extents.append(f"{extent // count if alike and isinstance(extent, int) else '?'}x")
        of = ", ".join(str(getattr(e, "name", e)) for e in shape)
        return (f"tensor<{''.join(extents)}{element}, "
                f"#tv.local<#tv.view<#m, {self.lies(dims, partial)}>, of [{of}]>>")

    def op_region(self):
        """One or two values, in parts: pointwise ops, and a gather, sum, exchange or slice."""
        a = self.pick(at_least=1)
        if None in [e.name for e in dynamic(a.shape)] or 0 in a.shape:
            return None
        given = [a] + ([self.like(a.shape)] if self.chance(0.4) else [])
        if None in given:
            return None
        element, shape = a.element, list(a.shape)
        dims = self.simple_view(shape, self.sub_axes())
        part = type_ = self.local(shape, element, dims)
        lines = []

        def op(text, types, to):
            lines.append(f"    %{len(lines)} = {text} : ({', '.join(types)}) -> {to}")
            return f"%{len(lines) - 1}"

        def comm(kind, value, axes, from_, to):
            axes = ", ".join(sub[4:-1] for sub in axes)
            return op(f"comm.{kind} {value} over #m [{axes}] id 0", [from_], to)

        value = op(f"tv.{self.random.choice(['tanh', 'neg'])} %p0", [type_], type_)
        if len(given) > 1:
            value = op(f"tv.add {value}, %p1", [type_, type_], type_)
        most = [e if isinstance(e, int) else self.sizes[e.name][0] for e in shape]
        split = [d for d, dim in enumerate(dims)
                 if dim and not isinstance(dim[1], int) and most[d] > 1]
        kind = self.random.choice(["gather", "sum", "exchange", "slice", "none"])
        if kind in ("gather", "sum") and not split:
            kind = "none"
        if kind == "gather":
            d = self.random.choice(split)
            sub, dims = dims[d][0], [*dims[:d], None, *dims[d + 1:]]
            to = self.local(shape, element, dims)
            value, type_ = comm("all_gather", value, [sub], type_, to), to
        elif kind == "sum":
            d = self.random.choice(split)
            sub = dims[d][0]
            shape, dims = shape[:d] + shape[d + 1:], dims[:d] + dims[d + 1:]
            to = self.local(shape, element, dims, sub[4:-1])
            value = op(f"tv.reduce sum {value} dims [{d}]", [type_], to)
            type_ = self.local(shape, element, dims)
            value = comm("all_reduce", value, [sub], to, type_)
        elif kind == "exchange":
            subs = [f"did({name})" for name, _ in self.axes]
            dims = self.simple_view(shape, self.sub_axes())
            to = self.local(shape, element, dims)
            value, type_ = comm("exchange", value, subs, type_, to), to
        elif kind == "slice" and None in dims:
            used = "".join(dim[0] for dim in dims if dim)
            free = [f"did({name})" for name, _ in self.axes if not re.search(rf"\b{name}\b", used)]
            if free:
                d = dims.index(None)
                dims = [*dims[:d], (free[0], "blocks"), *dims[d + 1:]]
                to = self.local(shape, element, dims)
                value, type_ = comm("slice", value, free[:1], type_, to), to
        if self.chance(0.5):
            value = op(f"tv.tanh {value}", [type_], type_)
        arguments = ", ".join(f"%p{i}: {part}" for i in range(len(given)))
        result = self.type(shape, None, element)
        return self.emit(f"tv.local_region {', '.join(v.name for v in given)}", given, shape,
                         type_=result, after="\n".join([" {", f"  ^bb0({arguments}):", *lines,
                                          f"    tv.yield {value} : {type_}", "  }"]))
