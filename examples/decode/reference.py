"""The steps of step.mlir in NumPy float64: of each sequence a list of keys and values, and
no pages but in the table's checks."""

import math

import numpy as np

PAGE, KV_HEADS, HEADS, WIDTH, MOST = 4, 4, 8, 8, 12
FULL, NO_PAGE, TWICE, UNKNOWN = 1, 2, 3, 4


def rope(x, position):
    angles = position * 10000.0 ** (-np.arange(WIDTH // 2) * 2 / WIDTH)
    low, high = x[..., :WIDTH // 2], x[..., WIDTH // 2:]
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([low * cos - high * sin, high * cos + low * sin], axis=-1)


class Reference:
    def __init__(self, weights, sequences, pages):
        self.weights, self.pages = weights, pages
        self.cache = [[] for _ in range(sequences)]
        self.written = {}  # (page, row): (key, value)

    def errors(self, active, table):
        needed = [[int(p) for p in row[:math.ceil((len(own) + (new == 1)) / PAGE)]]
                  for own, new, row in zip(self.cache, active, table)]
        named = [p for pages in needed for p in pages]
        found = []
        for own, new, pages in zip(self.cache, active, needed):
            if new not in (0, 1):
                found.append(UNKNOWN)
            elif len(own) + new > MOST:
                found.append(FULL)
            elif any(not 0 <= p < self.pages for p in pages):
                found.append(NO_PAGE)
            elif any(named.count(p) > 1 for p in pages):
                found.append(TWICE)
            else:
                found.append(0)
        return found

    def step(self, x, active, table):
        """y and the errors."""
        w, y = self.weights, np.zeros_like(x)
        errors = self.errors(active, table)
        for i, (own, new, error) in enumerate(zip(self.cache, active, errors)):
            if error or not new:
                continue
            at = len(own)
            key = rope((w["k_proj"] @ x[i]).reshape(KV_HEADS, WIDTH), at)
            value = (w["v_proj"] @ x[i]).reshape(KV_HEADS, WIDTH)
            own.append((key, value))
            self.written[int(table[i, at // PAGE]), at % PAGE] = key, value
            query = rope((w["q_proj"] @ x[i]).reshape(HEADS, WIDTH), at)
            heads = []
            for h in range(HEADS):
                group = h // (HEADS // KV_HEADS)
                scores = np.array([k[group] @ query[h] * 0.35 for k, _ in own])
                p = np.exp(scores - scores.max())
                heads.append(sum(s * v[group] for s, (_, v) in zip(p / p.sum(), own)))
            y[i] = w["o_proj"] @ np.concatenate(heads)
        return y, errors
