"""The training of program.py in NumPy float64, forward and backward by hand."""

import math

import numpy as np
from program import HASH


def batch(model, tokens, step):
    """The inputs and labels of a step."""
    k = step * model.batch + np.arange(model.batch)
    first = (k * HASH % 2**32) * (len(tokens) - model.length) >> 32
    at = first[:, None] + np.arange(model.length)
    return tokens[at], tokens[at + 1]


def philox(count, stream):
    """Numbers of 16 bits, Philox 4x32-7 with the key 0, as tv.random describes them."""
    eight = np.arange((count + 7) // 8, dtype=np.uint64)
    low, half = np.uint64(2**32 - 1), np.uint64(32)
    c = [eight, 0 * eight, 0 * eight + np.uint64(stream % 2**32),
         0 * eight + np.uint64(stream >> 32)]
    for i in range(7):
        k0, k1 = (np.uint64(i * each % 2**32) for each in (0x9E3779B9, 0xBB67AE85))
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [b >> half ^ c[1] ^ k0, b & low, a >> half ^ c[3] ^ k1, a & low]
    halves = np.stack([x >> np.uint64(s) & np.uint64(0xFFFF) for x in c for s in (0, 16)], axis=1)
    return halves.reshape(-1)[:count] * 2.0**-16


def dropout(model, step):
    """Of a stream: what the step multiplies each element with, of the width if not of another
    shape."""
    def scale(stream, *shape):
        if not model.dropout:
            return 1
        shape = shape or (model.batch, model.length, model.width)
        numbers = philox(math.prod(shape), stream + (step << 32)).reshape(shape)
        return (numbers >= model.dropout) / (1 - model.dropout)
    return scale


def norm(x, weight, bias):
    centered = x - x.mean(axis=-1, keepdims=True)
    scale = 1 / np.sqrt((centered**2).mean(axis=-1, keepdims=True) + 1e-5)
    unit = centered * scale
    return unit * weight + bias, (unit, scale)


def norm_grad(dy, kept, weight):
    unit, scale = kept
    up = dy * weight
    dx = scale * (up - up.mean(axis=-1, keepdims=True)
                  - unit * (up * unit).mean(axis=-1, keepdims=True))
    return dx, (dy * unit).sum(axis=(0, 1)), dy.sum(axis=(0, 1))


def linear_grad(dy, x, weight):
    rows, ups = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
    return dy @ weight, ups.T @ rows, ups.sum(axis=0)


SLOPE = math.sqrt(2 / math.pi)


def gelu(x):
    t = np.tanh(SLOPE * (x + 0.044715 * x**3))
    return 0.5 * x * (1 + t), t


def gelu_grad(dy, x, t):
    return dy * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * SLOPE * (1 + 3 * 0.044715 * x * x))


class Block:
    def __init__(self, model, weights, layer, dropped):
        self.model = model
        self.kept_weights = dropped(3 * layer + 1, model.batch, model.heads, model.length,
                                    model.length)
        self.kept_out, self.kept_down = dropped(3 * layer + 2), dropped(3 * layer + 3)
        self.name = f"h{layer}."
        self.w = {name[len(self.name):]: value for name, value in weights.items()
                  if name.startswith(self.name)}

    def linear(self, name, x):
        return x @ self.w[name + ".weight"].T + self.w[name + ".bias"]

    def forward(self, x):
        w, h = self.w, self.model.heads
        b, s, e = x.shape
        self.n1, self.kept1 = norm(x, w["norm1.weight"], w["norm1.bias"])
        heads = self.linear("qkv", self.n1).reshape(b, s, h, 3, e // h).transpose(3, 0, 2, 1, 4)
        self.q, self.k, self.v = heads
        scores = self.q @ self.k.swapaxes(-1, -2) * (e // h) ** -0.5
        scores = np.where(np.tri(s, dtype=bool), scores, -np.inf)
        p = np.exp(scores - scores.max(axis=-1, keepdims=True))
        self.p = p / p.sum(axis=-1, keepdims=True)
        self.kept = self.kept_weights * self.p
        self.a = (self.kept @ self.v).transpose(0, 2, 1, 3).reshape(b, s, e)
        middle = x + self.kept_out * self.linear("out", self.a)
        self.n2, self.kept2 = norm(middle, w["norm2.weight"], w["norm2.bias"])
        self.u = self.linear("up", self.n2)
        self.g, self.t = gelu(self.u)
        return middle + self.kept_down * self.linear("down", self.g)

    def backward(self, dy, found):
        def linear(name, dy, x):
            dx, *found_here = linear_grad(dy, x, self.w[name + ".weight"])
            keep(name, found_here)
            return dx

        def keep(name, gradients):
            found[self.name + name + ".weight"], found[self.name + name + ".bias"] = gradients

        w, (b, s, e), d = self.w, dy.shape, self.q.shape[-1]
        du = gelu_grad(linear("down", self.kept_down * dy, self.g), self.u, self.t)
        dx, *gradients = norm_grad(linear("up", du, self.n2), self.kept2, w["norm2.weight"])
        keep("norm2", gradients)
        dy = dy + dx
        da = linear("out", self.kept_out * dy, self.a).reshape(b, s, -1, d).transpose(0, 2, 1, 3)
        dp = self.kept_weights * (da @ self.v.swapaxes(-1, -2))
        ds = self.p * (dp - (dp * self.p).sum(axis=-1, keepdims=True)) * d**-0.5
        dheads = np.stack([ds @ self.k, ds.swapaxes(-1, -2) @ self.q,
                           self.kept.swapaxes(-1, -2) @ da])
        dqkv = dheads.transpose(1, 3, 2, 0, 4).reshape(b, s, 3 * e)
        dx, *gradients = norm_grad(linear("qkv", dqkv, self.n1), self.kept1, w["norm1.weight"])
        keep("norm1", gradients)
        return dy + dx


def loss_and_gradients(model, weights, ids, labels, step, scale=1):
    """The gradients are of the loss times the scale."""
    dropped, table = dropout(model, step), weights["embedding"]
    kept = dropped(0)
    x = kept * (table[ids] + weights["positions"])
    blocks = [Block(model, weights, layer, dropped) for layer in range(model.layers)]
    for block in blocks:
        x = block.forward(x)
    n, kept_norm = norm(x, weights["norm.weight"], weights["norm.bias"])
    logits = n @ table.T
    logits -= logits.max(axis=-1, keepdims=True)
    exp = np.exp(logits)
    sums = exp.sum(axis=-1, keepdims=True)
    one = labels[..., None] == np.arange(model.vocabulary)
    loss = (np.log(sums[..., 0]) - (logits * one).sum(axis=-1)).mean()

    found = {}
    dlogits = (exp / sums - one) / labels.size * scale
    dn, dtable, _ = linear_grad(dlogits, n, table)
    dx, found["norm.weight"], found["norm.bias"] = norm_grad(dn, kept_norm, weights["norm.weight"])
    for block in reversed(blocks):
        dx = block.backward(dx, found)
    dx = kept * dx
    np.add.at(dtable, ids, dx)
    found["embedding"], found["positions"] = dtable, dx.sum(axis=0)
    return loss, found


def of_text(model, weights, tokens, step, scale):
    return loss_and_gradients(model, weights, *batch(model, tokens, step), step, scale)


def train(model, data, states, steps, cast=lambda value: value, compute=of_text):
    """Goes on from `states` (program.start), which it changes; the loss of each step, but of
    those whose gradients overflow: these change nothing but the scale of the loss. In the
    type of the states, parameters as `cast` gives them. `compute` gives the loss and the
    gradients of a step on the data."""
    names = list(model.parameters())
    losses = []
    for _ in range(steps):
        weights = {name: cast(states[name]) for name in names}
        step = int(states["step"])
        of_loss = states.get("loss_scale", 1)
        loss, gradients = compute(model, weights, data, step, of_loss)
        gradients = {name: np.asarray(each, states[name].dtype) for name, each in gradients.items()}
        norm_of_all = np.sqrt(sum((gradients[name] ** 2).sum() for name in names))
        if model.scale:
            finite = np.isfinite(norm_of_all)
            good = (states["good"] + 1) % model.patience if finite else 0
            states["good"] = np.int64(good)
            states["loss_scale"] = of_loss * (0.5 if not finite else 1 if good else 2)
            if not finite:
                continue
        losses.append(loss)
        states["step"] = states["step"] + 1
        t = int(states["step"])
        scale = model.clip / max(model.clip * of_loss, norm_of_all)
        rate = model.rate * min(1, t / model.warmup)
        beta1, beta2 = model.betas
        for name in names:
            g = gradients[name] * scale
            states["m." + name] = m = beta1 * states["m." + name] + (1 - beta1) * g
            states["v." + name] = v = beta2 * states["v." + name] + (1 - beta2) * g * g
            move = m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + model.epsilon)
            decay = model.decay if states[name].ndim > 1 else 0
            states[name] = states[name] - rate * (move + decay * states[name])
    return losses
