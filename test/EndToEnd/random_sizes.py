"""Extents of random programs that are known at run time."""


class Size:
    """An extent that is known at run time: a polynomial of the program's sizes, from
    the names in each term to its coefficient. No choice may depend on its value."""

    def __init__(self, terms):
        self.terms = {names: c for names, c in terms.items() if c}

    @staticmethod
    def of(extent):
        return extent if isinstance(extent, Size) else Size({(): extent})

    def __add__(self, other):
        terms = dict(self.terms)
        for names, c in Size.of(other).terms.items():
            terms[names] = terms.get(names, 0) + c
        return Size(terms)

    def __mul__(self, other):
        terms = {}
        for a, c in self.terms.items():
            for b, d in Size.of(other).terms.items():
                names = tuple(sorted(a + b))
                terms[names] = terms.get(names, 0) + c * d
        return Size(terms)

    __radd__, __rmul__ = __add__, __mul__

    def divided(self, by):
        """What is left of it after a division that leaves no rest, or None."""
        if any(c % by for c in self.terms.values()):
            return None
        return Size({names: c // by for names, c in self.terms.items()})

    @property
    def name(self):
        """The size that it is, if it is one."""
        (names, c), *more = self.terms.items() or [((), 0)]
        return names[0] if len(names) == 1 and c == 1 and not more else None

    def __eq__(self, other):
        return isinstance(other, Size) and self.terms == other.terms

    def __hash__(self):
        return hash(tuple(sorted(self.terms.items())))

    def __str__(self):
        return "?"


def dynamic(extents):
    return [e for e in extents if isinstance(e, Size)]
