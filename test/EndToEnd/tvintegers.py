"""Integers: what arith leaves open is as tv.map states it, and what tv.div and tv.cast do."""
import numpy as np

INTEGERS = {"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
            "ui8": np.uint8, "ui32": np.uint32, "index": np.int64}


def exactly(x):
    """An array of Python's integers."""
    return np.asarray(x).astype(object) + 0


def pick(condition, x, y):
    return np.where(condition, x, y)


def floor_div(x, y):
    """Of integers; by 0 it is 0, and the remainder is what was divided."""
    zero = y == 0
    return pick(zero, 0, x // pick(zero, 1, y))


def trunc_div(x, y):
    q = floor_div(x, y)
    return pick((q < 0) & (x - q * y != 0), q + 1, q)


def shift(x, y, width, op):
    far = y >= width
    return pick(far, pick(x < 0, -1, 0) if op is np.right_shift else 0,
                op(x, pick(far, 0, y)))


# Of Python's integers, or of int64 where these suffice, so nothing overflows; the result
# wraps to the width.
SIGNED = {
    "addi": lambda x, y, w: x + y, "subi": lambda x, y, w: x - y,
    "muli": lambda x, y, w: x * y, "andi": lambda x, y, w: x & y,
    "ori": lambda x, y, w: x | y, "xori": lambda x, y, w: x ^ y,
    "divsi": lambda x, y, w: trunc_div(x, y),
    "remsi": lambda x, y, w: x - trunc_div(x, y) * y,
    "floordivsi": lambda x, y, w: floor_div(x, y),
    "ceildivsi": lambda x, y, w: -floor_div(-x, y),
    "maxsi": lambda x, y, w: np.maximum(x, y), "minsi": lambda x, y, w: np.minimum(x, y),
}
UNSIGNED = {
    "divui": lambda x, y, w: floor_div(x, y),
    "remui": lambda x, y, w: x - floor_div(x, y) * y,
    "ceildivui": lambda x, y, w: -floor_div(-x, y),
    "maxui": lambda x, y, w: np.maximum(x, y), "minui": lambda x, y, w: np.minimum(x, y),
    "shli": lambda x, y, w: shift(x, y, w, np.left_shift),
    "shrui": lambda x, y, w: shift(x, y, w, np.right_shift),
}


def wrapped(x, width, signed):
    """The integer with these `width` last bits."""
    number = np.asarray(x).dtype
    whole = exactly if width > 32 or number == object else np.int64
    x = whole(x) & ((1 << width) - 1)
    return whole(x - (x >> (width - 1)) * (1 << width) if signed else x)


def integer_op(name, element, *args):
    """An op of arith on integers; `i1` is a bool."""
    width = 64 if element == "index" else int(element[1:])
    # (Products of 32 bits have 64; what a shift of 32 drops, the result drops, too.)
    args = [np.asarray(a, np.int64) for a in args]
    if name in SIGNED and all((abs(a.clip(-2**32, 2**32)) < 2**31).all() for a in args):
        value = SIGNED[name](*(wrapped(a, width, True) for a in args) if width <= 32 else args,
                             width)
        return np.asarray(wrapped(value, width, width > 1)).astype(INTEGERS[element])
    signed = [wrapped(a, width, True) for a in args]
    unsigned = [wrapped(a, width, False) for a in args]
    if name == "shrsi":
        value = shift(signed[0], unsigned[1], width, np.right_shift)
    elif name in SIGNED:
        value = SIGNED[name](*signed, width)
    else:
        value = UNSIGNED[name](*unsigned, width)
    return np.asarray(wrapped(value, width, width > 1)).astype(INTEGERS[element])


def to_integer(x, element, signed):
    """Towards 0, saturating; a NaN is 0."""
    width = int(element[1:])
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    value = np.vectorize(lambda v: 0 if np.isnan(v) else low if v < low else
                         high if v > high else int(v), otypes=[object])(x)
    return np.asarray(wrapped(value, width, width > 1)).astype(INTEGERS[element])


def divide(x, y):
    """tv.div of floats, or of integers of one type."""
    if x.dtype.kind == "f":
        return x / y
    quotient = trunc_div(exactly(x), exactly(y))
    return wrapped(quotient, 8 * x.dtype.itemsize, x.dtype.kind == "i").astype(x.dtype)


def cast(x, element):
    """tv.cast of anything to an integer or i1."""
    if element == "i1":
        return x != 0
    if x.dtype.kind == "f":
        x = to_integer(x, element.removeprefix("u"), not element.startswith("u"))
    return x.astype(INTEGERS[element])
