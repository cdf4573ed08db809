"""Convolutions and pools in random programs."""
from random_sizes import dynamic


class Windows:
    """Those ops of a Program."""

    def windows(self, extents, sizes):
        """Text of windows over dimensions, how many there are, None if they do not fit, and
        their borders."""
        lists = {key: [self.random.choice(choices) for _ in extents] for key, choices in (
            ("strides", [1, 1, 2, 3]), ("low", [0, 0, 1, 2]), ("high", [0, 0, 1, 3]),
            ("dilations", [1, 1, 1, 2]))}
        counts = []
        for e, k, s, l, h, d in zip(extents, sizes, *lists.values()):
            last = e + l + h - (k - 1) * d - 1
            if last < 0:
                return None, None, None
            counts.append(last // s + 1)
        return ("".join(f" {key} {numbers}" for key, numbers in lists.items()), counts,
                lists["low"] + lists["high"])

    def op_conv(self):
        x = self.pick(at_least=3)
        if dynamic(x.shape[1:]) or 0 in x.shape or len(x.shape) > 5:
            return None
        groups = self.random.choice([g for g in (1, 1, 2, 3) if x.shape[1] % g == 0])
        sizes = [self.random.randint(1, 3) for _ in x.shape[2:]]
        text, counts, _ = self.windows(x.shape[2:], sizes)
        if counts is None:
            return None
        results = groups * self.random.randint(1, 3)
        operands = [x, self.like([results, x.shape[1] // groups, *sizes])]
        bias = self.chance(0.5)
        if bias:
            operands.append(self.like([results]))
        if None in operands:
            return None
        return self.emit(f"tv.conv {x.name}, {operands[1].name}"
                         + (f" bias {operands[2].name}" if bias else "")
                         + (f" groups({groups})" if groups > 1 or self.chance(0.2) else "")
                         + text, operands, [x.shape[0], results, *counts])

    def op_pool(self):
        x = self.pick(at_least=1)
        count = self.random.randint(1, min(2, len(x.shape)))
        over = x.shape[-count:]
        if dynamic(over) or 0 in over:
            return None
        sizes = [self.random.randint(1, 3) for _ in over]
        text, counts, borders = self.windows(over, sizes)
        if counts is None:
            return None
        # Of a window that is all border the maximum is -inf.
        kind = self.random.choice(["max", "mean"]) if max(borders) < min(sizes) else "mean"
        return self.emit(f"tv.pool {kind} {x.name} sizes {sizes}{text}", [x],
                         [*x.shape[:-count], *counts])
