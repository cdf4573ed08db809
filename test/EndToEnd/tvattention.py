"""Attention and its gradient, with their scalar functions: ops of a tvnumpy.Program."""
import re

import numpy as np


class Attention:
    def op_attention(self, text, args, out, regions, env):
        q, k, v = args[:3]
        if " pages(" in text:
            k, v = self.paged(k, args[-1]), self.paged(v, args[-1])
        q, k, v = self.cleared(text, args, q, k, v)
        groups = q.shape[1] // k.shape[1]
        k, v = np.repeat(k, groups, axis=1), np.repeat(v, groups, axis=1)
        wide = "f64" if out[0].element == "f64" else "f32"

        def inner(array):
            return self.inner(array, wide)

        s = inner(self.product(q, k.transpose(0, 1, 3, 2), wide) * self.number(text, "scale"))
        index = np.indices(s.shape)
        if "score_mod" in regions:
            s = self.scalars(regions["score_mod"], [s, *index], env)[0]
        keep = np.ones(s.shape, bool)
        if re.search(r"\bcausal\b", text):
            keep &= index[3] <= index[2] + s.shape[3] - s.shape[2]
        keep &= self.kept(text, regions, list(index), env, args)
        s = np.where(keep, s, -np.inf)
        top = s.max(axis=3, keepdims=True, initial=-np.inf)
        e = np.where(keep, inner(np.exp(s - np.where(np.isfinite(top), top, 0))), 0)
        total = self.sum(e, (3,), wide)
        with np.errstate(divide="ignore"):
            lse = np.where(total > 0, np.log(total) + top[..., 0], -np.inf)
        p = inner(e / np.where(total > 0, total, 1)[..., None])
        p = p * self.weight_factors(text, p.shape, args[3:])
        return self.product(p, v, wide), lse

    def weight_factors(self, text, shape, step):
        """What dropout multiplies each weight by; `step` begins with its own."""
        if " dropout(" not in text:
            return 1
        rate = self.number(text, "dropout")
        return np.where(self.numbers(text, shape, step, 16) >= rate, 1 / (1 - rate), 0)

    @staticmethod
    def paged(pages, table):
        """Of each batch, what lies in its pages, one behind the other."""
        valid = (table >= 0) & (table < len(pages))
        rows = np.zeros((*table.shape, *pages.shape[1:]), pages.dtype)
        rows[valid] = pages[table[valid]]
        b, m, g, r, d = rows.shape
        return rows.transpose(0, 2, 1, 3, 4).reshape(b, g, m * r, d)

    def kept(self, text, regions, index, env, args):
        """Which pairs mask_mod and a block mask or packed sequences, the last of the
        operands, keep."""
        kept = np.ones(index[0].shape, bool)
        if "mask_mod" in regions:
            kept = np.broadcast_to(self.scalars(regions["mask_mod"], index, env)[0], kept.shape)
        if " block_mask(" in text:
            rows, columns = self.list(text, "blocks")
            kinds = np.broadcast_to(args[-1], index[0].shape[:2] + args[-1].shape[2:])
            kinds = kinds[index[0], index[1], index[2] // rows, index[3] // columns]
            kept = (kinds == 2) | (kinds != 0) & kept
        if " sequences(" in text:
            number = self.sequences_of(text, args, index[0].shape[2])
            own = number[index[0], index[2]]
            kept = kept & (own >= 0) & (own == number[index[0], index[3]])
        return kept

    def sequences_of(self, text, args, positions):
        """Of each batch's positions."""
        packed = args[-2:] if " used(" in text else args[-1:]
        return np.stack([self.sequences(positions, *of) for of in zip(*packed)])

    def cleared(self, text, args, *arrays):
        """Those, with a row for each position, with zeros in rows of no sequence where
        used lengths leave such."""
        if " used(" not in text:
            return arrays
        number = self.sequences_of(text, args, arrays[0].shape[2])
        return [np.where(number[:, None, :, None] < 0, 0, x) for x in arrays]

    @staticmethod
    def sequences(positions, begins, used=None):
        """Of each position the number of its sequence, or -1."""
        ends = np.clip(np.maximum.accumulate(begins), 0, positions)
        used = np.diff(ends) if used is None else np.clip(used, 0, np.diff(ends))
        number = np.full(positions, -1)
        for i, (begin, length) in enumerate(zip(ends, used)):
            number[begin:begin + length] = i
        return number

    def op_packed_tiles(self, text, args, out, regions, env):
        return np.stack([self.tiles(text, out[0].shape[1], *of) for of in zip(*args)])

    def tiles(self, text, size, begins, used=None):
        rows = int(self.number(text, "rows"))
        positions = size - 8 * len(begins) + 4
        number = self.sequences(positions, begins, used)
        tiles, words = [], [(0, np.count_nonzero(number >= 0), 0, 0)]
        for sequence in range(len(begins) - 1):
            at = np.count_nonzero(number == sequence)
            begin = np.clip(begins[:sequence + 1].max(), 0, positions)
            own = [(begin, at, m, sequence) for m in range(-(-at // rows))]
            words.append((begin, at, len(own), 0))
            tiles += own

        def place(tile):  # causal: as many keys as tiles before; else all of them
            begin, length, m, sequence = tile
            if re.search(r"\bcausal\b", text):
                return begin // 16384, -m, sequence
            return begin // 16384, -(-(-length // rows)), sequence, -m

        words = np.ravel(words + sorted(tiles, key=place))
        words[0] = len(tiles)
        return np.pad(words, (0, size - len(words))).astype(np.int32)

    def op_sequence_errors(self, text, args, out, regions, env):
        begins, tokens = args[0].astype(np.int64), self.number(text, "tokens")
        errors = np.where((begins < 0) | (begins > tokens), 2, 0)
        if " used(" in text:
            begun, place = errors[:, :-1], np.maximum(np.diff(begins), 0)
            begun[(begun == 0) & ((args[1] < 0) | (args[1] > place))] = 3
        errors[:, 1:][np.diff(begins) < 0] = 1
        return errors

    def op_page_errors(self, text, args, out, regions, env):
        table, lengths = args[0], args[1].astype(np.int64)
        page, pages = self.number(text, "page"), self.number(text, "pages")
        needed = page * np.arange(table.shape[1]) < lengths[:, None]
        missing = needed & ((table < 0) | (table >= pages))
        twice = np.zeros(table.shape, bool)
        for at in np.argwhere(needed):
            twice[tuple(at)] = np.count_nonzero(table[needed] == table[tuple(at)]) > 1
        errors = np.where(missing.any(1), 2, np.where(twice.any(1), 3, 0))
        return np.where((lengths < 0) | (lengths > page * table.shape[1]), 1, errors)

    def op_block_mask(self, text, args, out, regions, env):
        queries, keys = self.list(text, "of")
        rows, columns = self.list(text, "blocks")
        shape = self.extents(out[0], np.zeros(()))
        index = list(np.indices((*shape[:2], queries, keys)))
        kept = np.broadcast_to(self.scalars(regions["mask_mod"], index, env)[0],
                               index[0].shape)
        kinds = np.zeros(shape, np.int8)
        for m, n in np.ndindex(*shape[2:]):
            block = kept[:, :, m * rows:(m + 1) * rows, n * columns:(n + 1) * columns]
            kinds[:, :, m, n] = block.any(axis=(2, 3)) + 1 * block.all(axis=(2, 3))
        return kinds

    def op_attention_grad(self, text, args, out, regions, env):
        """`rounded`, beyond the exact results by what they may be off: half an ulp in
        each step, and of a sum's magnitudes, carried on. Slopes less their mean cancel,
        which one sum in one order need not show."""
        do, q, k, v, o = self.cleared(text, args, *args[:5])
        lse = args[5]
        groups = q.shape[1] // k.shape[1]
        k, v = np.repeat(k, groups, axis=1), np.repeat(v, groups, axis=1)
        scale = self.number(text, "scale")
        wide = np.float64 if out[0].element == "f64" else np.float32
        half = float(np.finfo(wide).eps) / 2 * self.rounded

        def product(a, b, off=0):
            return a @ b, off + half * (np.abs(a) @ np.abs(b))

        def transposed(array):
            return array.swapaxes(-1, -2)

        s, s_off = product(q * scale, transposed(k))
        index = np.indices(s.shape)
        y = s
        if "score_mod" in regions:
            y = type(self)("").scalars(regions["score_mod"], [s, *index], env)[0]
        keep = np.broadcast_to(np.isfinite(lse)[..., None], s.shape)
        if re.search(r"\bcausal\b", text):
            keep = keep & (index[3] <= index[2] + s.shape[3] - s.shape[2])
        keep = keep & self.kept(text, regions, list(index), env, args)
        lse = np.where(np.isfinite(lse), lse, 0)[..., None]
        p = np.exp(np.where(keep, y - lse, -np.inf))
        names = re.split(r" (?:block_mask|sequences|tiles)\(", text.partition(" captured ")[2])[0]
        names = re.findall(r"%[\w#]+", names)
        captured = {name: np.zeros(env[name].shape) for name in names}
        slope, adjoints = self.slopes(s, keep, index, regions, env, names)
        p_off = p * (np.abs(slope) * s_off
                     + half * (2 + np.abs(np.where(keep, y, 0)) + np.abs(lse)))

        means, means_off = product(do[..., None, :], o[..., None])
        means = means[..., 0]
        if " dlse " in text:
            means = means - args[6][..., None]
        dp, dp_off = product(do, transposed(v))
        factors = self.weight_factors(text, s.shape, args[6 + (" dlse " in text):])
        dp, dp_off = dp * factors, dp_off * factors
        dp, dp_off = dp - means, dp_off + means_off[..., 0] + half * np.abs(means)
        dy, dy_off = p * dp, p_off * np.abs(dp) + p * (dp_off + 2 * half * np.abs(dp))

        def along(slope):  # itself made of numbers near 1, which may cancel
            return dy * slope, (dy_off * np.abs(slope)
                                + 4 * half * np.abs(dy) * (1 + np.abs(slope)))

        for name, at, slope_of in adjoints:
            values, off = (np.broadcast_to(x, s.shape)[keep] for x in along(slope_of))
            at = [np.broadcast_to(a, s.shape)[keep] for a in at]
            inside = np.ones(values.shape, bool)
            for a, extent in zip(at, captured[name].shape):
                inside &= (a >= 0) & (a < extent)
            at = [a[inside] for a in at]
            flat = (np.ravel_multi_index(at, captured[name].shape) if at
                    else np.zeros(values.shape, np.int64))
            np.add.at(captured[name].reshape(-1), flat,
                      (values + off + half * np.abs(values))[inside])
        ds, ds_off = along(slope)
        ds, ds_off = ds * scale, ds_off * abs(scale)

        def of_groups(array):
            batch, heads, *rest = array.shape
            return array.reshape(batch, heads // groups, groups, *rest).sum(axis=2)

        dq = product(ds, k, ds_off @ np.abs(k))
        dk = product(transposed(ds), q, transposed(ds_off) @ np.abs(q))
        p, p_off = p * factors, p_off * factors
        dv = product(transposed(p), do, transposed(p_off) @ np.abs(do))
        return (sum(dq), of_groups(sum(dk)), of_groups(sum(dv)), *captured.values())

    def slopes(self, s, keep, index, regions, env, names):
        """The slope of score_mod by s, 0 where not `keep`, and [(name, index, slope)] by
        what it loads from captured tensors."""
        if "score_mod" not in regions:
            return np.where(keep, 1.0, 0.0), []
        exactly, adjoints = type(self)(""), []
        with np.errstate(invalid="ignore"):
            if "score_grad" in regions:
                slope = exactly.scalars(
                    regions["score_grad"], [s, np.ones(s.shape), *index], env,
                    accumulate=lambda n, at, value: adjoints.append((names[n], at, value)))
                return np.where(keep, slope[0], 0), adjoints
            # By differences, of the fourth order; not in rounded numbers.
            places = {}

            def slope(of):
                def at(step):
                    def loaded(value, tensor, where, number):
                        places[number] = tensor, where
                        return value + (step if number == of else 0)
                    shifted = s + (step if of is None else 0)
                    return exactly.scalars(regions["score_mod"], [shifted, *index], env,
                                           loaded)[0]
                h = 1e-3
                return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)

            by_score = np.where(keep, slope(None), 0)
            for number, (tensor, where) in sorted(places.items()):
                if tensor in names:
                    adjoints.append((tensor, where, slope(number)))
            return by_score, adjoints
