"""What is more likely in random programs of parts of axes: data parallel over one part of an
axis and tensor parallel over the other, sums that are partial along one beside another."""

MESHES = ["x = 4", "x = 4", "x = 6", "x = 8", "x = 4, y = 2", "y = 2, x = 4",
          "x = 4, y = 1", "x = 4, devices = [2, 0, 3, 1]"]
OPS = (["sum_over_parts"] * 8
       + ["op_" + name for name in (
           "linear matmul contract reduce add add constrain constrain constrain reshard "
           "pointwise layer_norm transpose reshape broadcast slice cumsum").split()])


class Parts:
    """Those of a Program."""

    def sum_over_parts(self):
        """A product or a sum over what a part splits, of rows that another may split; its
        result is smaller than what it reads. Perhaps a sum over the rows, too."""
        subs = [f"{sub} * _" for sub in self.sub_axes()]
        subs += ["_"] * 3
        inner, *outer = subs[:1] + self.random.sample(subs[1:], 2)
        rows, columns = self.random.choice([4, 6, 8]), self.random.choice([1, 2, 4])
        depth = self.random.choice([8, 12, 16, 24])
        if self.sizes and self.chance(0.2):
            rows = self.extent()
        x = self.argument([rows, depth], f"[{outer[0]}, {inner}]", None)
        kind = self.random.choice(["linear", "linear", "sum", "max"])
        if x is None:
            return None
        if kind == "linear":
            w = self.argument([columns, depth], f"[{outer[1]}, {inner}]", None)
            y = self.emit(f"tv.linear {x.name}, {w.name}", [x, w], [rows, columns])
        else:
            y = self.emit(f"tv.reduce {kind} {x.name} dims [1]", [x], [rows])
        if self.chance(0.4):
            y = self.emit(f"tv.reduce {'sum' if kind == 'linear' else kind} {y.name} dims [0]",
                          [y], y.shape[1:])
        return y
