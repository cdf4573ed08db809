"""Random views, over the axes of a program's mesh and in those of another mesh of the same
devices."""
import math
import re

from random_sizes import Size


class Views:
    """Those of a Program, and the types that they are in."""

    def cut(self, name, size, before=1):
        """An axis, or parts that it is the product of."""
        splits = [p for p in range(2, size) if size % p == 0]
        if splits and self.chance(0.85 if self.parts else 0.3):
            outer = self.random.choice(splits)
            return [f"did({name}:({before}){outer})",
                    *self.cut(name, size // outer, before * outer)]
        return [f"did({name}:({before}){size})" if before > 1 else f"did({name})"]

    def sub_axes(self):
        """Disjoint sub-axes of the mesh, in random order; in a program of parts mostly the
        same."""
        subs = self.usual
        if not subs or self.chance(0.3):
            subs = [sub for name, size in self.axes for sub in self.cut(name, size)]
        if self.parts and not self.usual:
            self.usual = subs
        subs = list(subs)
        self.random.shuffle(subs)
        return subs

    def factors(self, subs):
        """`_` and some of the sub-axes."""
        factors = ["_"]
        while subs and self.chance(0.6 if self.parts else 0.4):
            sub = subs.pop()
            kind = self.random.random()
            if kind < 0.6:
                factors.insert(0, sub)  # blocks
            elif kind < 0.8:
                factors.append(sub)  # cyclic
            else:
                factors += [sub, "2"]  # block-cyclic
        return factors

    def product(self, subs, bound):
        """The digits of one dimension of `bound` values."""
        if "groups" not in self.has or not self.chance(0.15):
            return " * ".join(self.factors(subs))
        inner = " * ".join(self.factors(subs))
        low = self.random.choice([0, 0, 1, 2])
        if isinstance(bound, Size) or self.chance(0.3):  # a group within
            radix = self.random.randint(2, 4)
            return f"_ * ({inner} | {low}:{low + radix})"
        inside = self.random.choice([1, 2, 3])
        reach = max(1, -(-bound // inside)) + self.random.choice([0, 0, 1])
        bounds = f"{low}:{low + reach}" if low else f"{reach}"
        return f"({inner} | {bounds})" + (f" * {inside}" if inside > 1 else "")

    def view(self, shape, partial=False, inside=False):
        """It may be partial, or may in programs of parts, for it is `inside` one."""
        subs = self.sub_axes()
        dims, at = [], 0
        while at < len(shape):
            span = 1
            if "flat" in self.has and at + 1 < len(shape) and self.chance(0.12):
                span = self.random.randint(2, len(shape) - at)
            product = self.product(subs, math.prod(shape[at:at + span], start=1))
            dims.append((f"flat({span}) " if span > 1 else "") + product)
            at += span
        text = "[" + ", ".join(dims) + "]"
        if "alloc" in self.has and dims and self.chance(0.15):
            order = list(range(len(dims)))
            self.random.shuffle(order)
            text += f", alloc = ({', '.join(map(str, order))})"
        partial = partial or self.parts and inside
        if partial and subs and self.chance(0.3 if self.parts else 0.1):
            axes = [sub[4:-1] for sub in subs]
            axes = axes[:self.random.randint(1, len(axes))] if self.parts else axes
            axes = "(" + ", ".join(axes) + ")" if len(axes) > 1 else axes[0]
            kind = self.random.choice(["sum", "sum", "max", "min"])
            text += f", partial = [{axes} : {kind}]"
        return text

    def opened(self, view):
        """The same, which may be split further in some dimensions."""
        if "open" not in self.has or self.chance(0.5):
            return view
        return re.sub("_", lambda _: "?" if self.chance(0.5) else "_", view)

    def type(self, shape, view=None, element=None):
        text = "x".join(map(str, shape)) + ("x" if shape else "")
        encoding = f", #tv.view<#m, {view}>" if view else ""
        return f"tensor<{text}{element or self.float}{encoding}>"

    def on_other_mesh(self, text):
        """Some of the views of `text`, in the one axis of another mesh, or, of two axes of
        other sizes, in those of a mesh that is cut elsewhere: 6 as 3 * 2 for 2 * 3; or on
        devices in any order. Local regions keep theirs."""
        if "meshes" not in self.has or self.chance(0.8):
            return text
        viewed = re.compile(r"(?<!#tv\.local<)#tv\.view<#m, (.*?)>")

        def rewritten(view, other):
            return viewed.sub(lambda v: f"#tv.view<{other}>" if v[1] == view else v[0], text)

        if "[" in self.mesh or self.chance(0.4):
            devices = list(range(math.prod(size for _, size in self.axes)))
            self.random.shuffle(devices)
            order = "" if devices == sorted(devices) else f", devices = {devices}"
            for view in sorted(set(viewed.findall(text))):
                if self.chance(0.5):
                    text = rewritten(view, f"#n, {view}")
            axes = ", ".join(f"{axis} = {size}" for axis, size in self.axes)
            return f"#n = #tv.mesh<{axes}{order}>\n{text}"
        if sorted(sizes := [size for _, size in self.axes]) == [2, 3] and self.chance(0.5):
            for view in sorted(set(viewed.findall(text))):
                if self.chance(0.5):
                    other = re.sub(r"\b[xy]\b", lambda axis: {"x": "u", "y": "v"}[axis[0]], view)
                    text = rewritten(view, f"#n, {other}")
            return f"#n = #tv.mesh<u = {sizes[1]}, v = {sizes[0]}>\n{text}"
        order = re.search(r"iota\((.*)\)", self.mesh)
        sizes, places, outer = dict(self.axes), {}, 1
        for axis in order[1].split(", ") if order else sizes:
            places[axis] = outer
            outer *= sizes[axis]

        def digit(sub):
            axis, before, size = sub.groups()
            return f"all:({places[axis] * int(before or 1)}){size or sizes[axis]}"

        for view in sorted(set(viewed.findall(text))):
            if self.chance(0.5):
                other = re.sub(rf"\b({'|'.join(sizes)})\b(?::\((\d+)\)(\d+))?", digit, view)
                text = rewritten(view, f"#all, {other}")
        return f"#all = #tv.mesh<all = {outer}>\n{text}"
