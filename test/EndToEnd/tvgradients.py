"""Gradients of tv programs in NumPy, each op's written by hand.

The part of tvnumpy that evaluates `tv.gradient`: in reverse over the text of the
function, with nothing of what the compiler does. Cotangents are rounded to the types of
their values where the program's values are.
"""
import re

import numpy as np


def gradient(program, text, args):
    """The results of a `tv.gradient`: those of the function, then the gradients."""
    callee = re.match(r"@(\w+)", text)[1]
    of, to = ([int(e) for e in re.findall(r"\d+", re.search(rf"\b{key} \[(.*?)\]", text)[1])]
              for key in ("of", "to"))
    arguments, results = program.signature(callee)
    values, given = args[:len(arguments)], args[len(arguments):]
    cotangents = [None] * len(results)
    for i, number in enumerate(of):
        cotangents[number] = given[i] if given else np.float64(1)
    outputs, gradients = backward(program, callee, values, cotangents)
    return (*outputs, *(np.zeros(values[i].shape) if gradients[i] is None else gradients[i]
                        for i in to))


def backward(program, name, values, cotangents):
    """The function's results, and the gradients by its arguments; None is 0."""
    arguments, _ = program.signature(name)
    env = {a[0]: v for a, v in zip(arguments, values)}
    types = {a[0]: a[1] for a in arguments}
    i, lines = program.functions[name] + 1, []
    while not program.lines[i].startswith("return"):
        lines.append(i)
        i = program.step(env, i)
    returned = re.findall(r"%[\w#]+", program.lines[i].split(":")[0])
    found = {}

    def add(value, cotangent):
        if cotangent is None or env[value].dtype.kind != "f":
            return
        cotangent = program.round(cotangent, types[value])
        found[value] = (program.round(found[value] + cotangent, types[value])
                        if value in found else cotangent)

    for line in lines:
        names, *_, out, _ = program.parse(line)
        types.update(zip(names, out))
    for value, cotangent in zip(returned, cotangents):
        add(value, cotangent)
    for line in reversed(lines):
        names, op, text, regions, out, _ = program.parse(line)
        dys = [found.get(n) for n in names]
        if all(dy is None for dy in dys):
            continue
        operands = re.findall(r"%[\w#]+", text)
        if not operands:
            continue  # a constant
        args = [env[v] for v in operands]
        if op == "call":
            given = backward(program, re.match(r"@(\w+)", text)[1], args, dys)[1]
        elif op == "same_view":
            given = dys
        elif op == "attention":
            given, captured = attention(program, text, args, [env[n] for n in names], dys, out,
                                        regions, env)
            for value, cotangent in captured.items():
                add(value, cotangent)
        else:
            rule = globals()["of_" + op]
            with np.errstate(all="ignore"):
                given = rule(program, text, args, env[names[0]], dys[0], out[0].element)
        for value, cotangent in zip(operands, given):
            add(value, cotangent)
    return [env[n] for n in returned], [found.get(a[0]) for a in arguments]


def attention(program, text, args, results, dys, out, regions, env):
    do, dlse = dys
    do = np.zeros(results[0].shape) if do is None else do
    captured = sorted({name for _, body in [regions.get("score_mod", ((), ()))] for line in body
                       for name in re.findall(r"tv\.load (%\w+)", line)
                       if env[name].dtype.kind == "f"})
    names = " ".join(f"%{i}" for i in range(6 + (dlse is not None)))
    scale, *structure = re.split(r"( (?:block_mask|sequences|tiles)\()",
                                 text[text.index(" scale"):], maxsplit=1)
    text = (names + (" dlse " if dlse is not None else "") + scale
            + " captured " + " ".join(captured) + "".join(structure))
    behind = 4 if " step " in text else 3
    inputs = [do, *args[:3], *results, *([dlse] if dlse is not None else []), *args[3:behind],
              *(env[name] for name in captured), *args[behind:]]
    gradients = program.op_attention_grad(text, inputs, [out[0]] * (3 + len(captured)),
                                          regions, env)
    return gradients[:3], dict(zip(captured, gradients[3:]))


# Each gives the cotangents of the operands: (program, text, operands, result, the
# result's cotangent, its element type).

def pointwise(*slopes):
    """Of the operands' slopes, functions of operands and result."""
    return lambda p, t, x, y, dy, e: [dy * slope(*x, y) for slope in slopes]


of_add = pointwise(lambda a, b, y: 1, lambda a, b, y: 1)
of_sub = pointwise(lambda a, b, y: 1, lambda a, b, y: -1)
of_mul = pointwise(lambda a, b, y: b, lambda a, b, y: a)
of_div = pointwise(lambda a, b, y: 1 / b, lambda a, b, y: -y / b)
of_max = pointwise(lambda a, b, y: (a > b) + (a == b) / 2, lambda a, b, y: (b > a) + (a == b) / 2)
of_min = pointwise(lambda a, b, y: (a < b) + (a == b) / 2, lambda a, b, y: (b < a) + (a == b) / 2)
of_neg = pointwise(lambda x, y: -1)
of_abs = pointwise(lambda x, y: np.sign(x))
of_exp = pointwise(lambda x, y: y)
of_log = pointwise(lambda x, y: 1 / x)
of_sqrt = pointwise(lambda x, y: 1 / (2 * y))
of_rsqrt = pointwise(lambda x, y: -y / (2 * x))
of_tanh = pointwise(lambda x, y: 1 - y * y)
of_sigmoid = pointwise(lambda x, y: y * (1 - y))
of_silu = pointwise(lambda x, y: (1 + np.exp(-x) * (1 + x)) / (1 + np.exp(-x)) ** 2)
of_cast = of_constrain = of_barrier = of_reshard = pointwise(lambda x, y: 1)


def of_where(p, text, args, y, dy, element):
    return None, np.where(args[0], dy, 0), np.where(args[0], 0, dy)


def of_dropout(p, text, args, y, dy, element):
    return [p.op_dropout(text, [dy, *args[1:]], [], {}, {})]


def of_gelu(p, text, args, y, dy, element):
    class Out:
        pass
    Out.element = element
    return [p.op_gelu_grad(text, [dy, args[0]], [Out], {}, {})]


def of_reduce(p, text, args, y, dy, element):
    x, axes = args[0], tuple(p.list(text, "dims"))
    dy = np.expand_dims(dy, axes)
    if text.split()[0] == "sum":
        return [np.broadcast_to(dy, x.shape)]
    same = x == np.expand_dims(y, axes)
    return [same * dy / same.sum(axis=axes, keepdims=True)]


def of_broadcast(p, text, args, y, dy, element):
    dims = p.list(text, "dims")
    return [p.sum(dy, tuple(d for d in range(dy.ndim) if d not in dims), element)]


def of_linear(p, text, args, y, dy, element):
    x, w = args[:2]
    rows, ups = x.reshape(-1, x.shape[-1]), dy.reshape(-1, w.shape[0])
    return [p.product(ups, w, element).reshape(x.shape), p.product(ups.T, rows, element),
            *([p.sum(ups, (0,), element)] if len(args) > 2 else [])]


def of_matmul(p, text, args, y, dy, element):
    a, b = args
    return (p.product(dy, b.swapaxes(-1, -2), element),
            p.product(a.swapaxes(-1, -2), dy, element))


def of_grouped_matmul(p, text, args, y, dy, element):
    x, w, counts = args
    dy = dy * (np.arange(x.shape[1])[None, :, None] < counts[:, None, None])
    return (p.product(dy, w, element),
            p.product(dy.transpose(0, 2, 1), x, element), None)


def of_dispatch(p, text, args, y, dy, element):
    tokens, experts = args
    given, taken = np.zeros(tokens.shape), np.zeros(dy.shape[0], int)
    for token, expert in zip(np.repeat(np.arange(len(tokens)), experts.shape[1]), experts.flat):
        if 0 <= expert < dy.shape[0] and taken[expert] < dy.shape[1]:
            given[token] += dy[expert, taken[expert]]
            taken[expert] += 1
    return given, None


def of_combine(p, text, args, y, dy, element):
    buffers, experts, slots, weights = args
    by_buffers, by_weights = np.zeros(buffers.shape), np.zeros(weights.shape)
    for at in np.ndindex(weights.shape):
        row = experts[at], slots[at]
        if all(0 <= i < e for i, e in zip(row, buffers.shape)):
            by_buffers[row] += weights[at] * dy[at[0]]
            by_weights[at] = buffers[row] @ dy[at[0]]
    return by_buffers, None, None, by_weights


def of_reshape(p, text, args, y, dy, element):
    return [dy.reshape(args[0].shape)]


def of_transpose(p, text, args, y, dy, element):
    return [dy.transpose(np.argsort(p.list(text, "perm")))]


def of_slice(p, text, args, y, dy, element):
    dx = np.zeros(args[0].shape)
    dx[tuple(slice(o, o + e) for o, e in zip(p.list(text, "offsets"), dy.shape))] = dy
    return [dx]


def of_pad(p, text, args, y, dy, element):
    return [dy[tuple(slice(o, o + e) for o, e in zip(p.list(text, "low"), args[0].shape))]]


def of_concat(p, text, args, y, dy, element):
    d = p.dim(text)
    return np.split(dy, np.cumsum([x.shape[d] for x in args])[:-1], axis=d)


def of_scatter(p, text, args, y, dy, element):
    """Of set, the last update of a row alone has a part; of sum, all have."""
    init, ids, updates = args
    d, kind = p.dim(text), text.split()[0]
    if kind not in ("set", "sum"):
        raise KeyError(f"the gradient of scatter {kind}")
    rows = np.moveaxis(dy, d, 0)
    by_init = np.array(rows)
    by_updates = np.zeros((ids.size, *rows.shape[1:]))
    last = {row: i for i, row in enumerate(ids.reshape(-1)) if 0 <= row < len(rows)}
    for i, row in enumerate(ids.reshape(-1)):
        if row in last and (kind == "sum" or last[row] == i):
            by_updates[i] = rows[row]
    if kind == "set":
        by_init[list(last)] = 0
    return (np.moveaxis(by_init, 0, d), None,
            np.moveaxis(by_updates, 0, d).reshape(updates.shape))


def of_gather(p, text, args, y, dy, element):
    table, ids = args
    return [p.op_scatter("sum " + text, [np.zeros(table.shape), ids, dy], [], {}, {}), None]


def of_cumsum(p, text, args, y, dy, element):
    class Out:
        pass
    Out.element = element
    other = text.removeprefix("reverse ") if text.startswith("reverse") else "reverse " + text
    return [p.op_cumsum(other, [dy], [Out], {}, {})]


def of_conv(p, text, args, y, dy, element):
    class Out:
        pass
    Out.element = element
    x, w, *bias = args
    dx, dw = np.zeros(x.shape), np.zeros(w.shape)
    # One weight at a time: where it is, and what it makes of the input there.
    for at in np.ndindex(w.shape):
        one = np.zeros(w.shape)
        one[at] = 1
        dw[at] = (p.op_conv(text, [x, one], [Out], {}, {}) * dy).sum()
    for at in np.ndindex(x.shape):
        one = np.zeros(x.shape)
        one[at] = 1
        dx[at] = (p.op_conv(text, [one, w], [Out], {}, {}) * dy).sum()
    return [dx, dw, *([dy.sum(axis=(0, *range(2, dy.ndim)))] if bias else [])]


def of_pool(p, text, args, y, dy, element):
    if text.startswith("max"):
        raise NotImplementedError("which elements are the largest")

    class Out:
        pass
    Out.element = element
    dx = np.zeros(args[0].shape)
    for at in np.ndindex(dx.shape):
        one = np.zeros(dx.shape)
        one[at] = 1
        dx[at] = (p.op_pool(text, [one], [Out], {}, {}) * dy).sum()
    return [dx]


def of_softmax(p, text, args, y, dy, element):
    d = p.dim(text)
    return [y * (dy - np.expand_dims(p.sum(y * dy, (d,), element), d))]


def of_layer_norm(p, text, args, y, dy, element):
    x, w, _ = args
    centered = x - p.mean(x, element)
    scale = 1 / np.sqrt(p.mean(centered**2, element) + p.number(text, "epsilon"))
    unit, up = centered * scale, dy * w
    rows = tuple(range(x.ndim - 1))
    return [scale * (up - p.mean(up, element) - unit * p.mean(up * unit, element)),
            p.sum(dy * unit, rows, element), p.sum(dy, rows, element)]


def of_rms_norm(p, text, args, y, dy, element):
    x, w = args
    scale = 1 / np.sqrt(p.mean(x * x, element) + p.number(text, "epsilon"))
    unit, up = x * scale, dy * w
    return [scale * (up - unit * p.mean(up * unit, element)),
            p.sum(dy * unit, tuple(range(x.ndim - 1)), element)]


def of_rope(p, text, args, y, dy, element):
    half = dy.shape[-1] // 2  # turned back: by the same angle, mirrored
    mirror = np.concatenate([dy[..., :half], -dy[..., half:]], axis=-1)

    class Out:
        pass
    Out.element = element
    dx = p.op_rope(text, [mirror], [Out], {}, {})
    return [np.concatenate([dx[..., :half], -dx[..., half:]], axis=-1)]


def of_cross_entropy(p, text, args, y, dy, element):
    x, labels = args
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    share = e / p.sum(e, (x.ndim - 1,), element)[..., None]
    one = labels[..., None] == np.arange(x.shape[-1])
    known = (labels >= 0) & (labels < x.shape[-1])
    return [(share - one) * np.where(known, dy, 0)[..., None], None]
