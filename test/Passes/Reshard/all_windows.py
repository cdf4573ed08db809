#!/usr/bin/env python3
"""Slices, pads and concatenations between every two views of a small dimension.

Each program equals its source in the interpreter after localization, and its
moves have the bytes that enumerated index sets ask for: what each device needs of
the operands less what it holds. Where several devices need the same, it may go round
instead of out of one device.

    all_windows.py tessera-opt
"""
import itertools
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from all_moves import products

# Mesh, its size, axes with their sizes.
MESHES = [
    ("tp = 2", 2, {"tp": 2}),
    ("tp = 3", 3, {"tp": 3}),
    ("tp = 4, devices = [2, 0, 3, 1]", 4, {"tp:(1)2": 2, "tp:(2)2": 2, "tp": 4}),
    ("x = 2, y = 2", 4, {"x": 2, "y": 2}),
    ("x = 2, y = 3, devices = iota(y, x)", 6, {"x": 2, "y": 3}),
]
# The op's text, the extents of its operands and its result, and where each operand
# begins in the result (of a slice, where the result begins in the operand).
OPS = [
    ("tv.slice {} offsets [3, 0]", [12], 7, [-3]),
    ("tv.slice {} offsets [1, 0]", [8], 7, [-1]),
    ("tv.slice {} offsets [5, 0]", [12], 2, [-5]),
    ("tv.pad {} low [2, 0] high [1, 0] value 0.5 : f32", [6], 9, [2]),
    ("tv.pad {} low [1, 0] high [0, 0] value 0.5 : f32", [7], 8, [1]),
    ("tv.concat {}, {} dim 0", [5, 4], 9, [0, 5]),
    ("tv.concat {}, {}, {} dim 0", [1, 6, 5], 12, [0, 1, 7]),
]
COLUMNS = 2


def held(product, extent, axes, device):
    """The values of a dimension that a device holds."""
    digits = []
    for factor in product.split(" * "):
        axis = re.fullmatch(r"did\((.*)\)", factor)
        digits.append((axis[1], axes[axis[1]]) if axis else (None, factor))
    known = 1
    for axis, size in digits:
        known *= 1 if size == "_" else int(size)
    values = set()
    for value in range(extent):
        rest, here = value, True
        for axis, size in reversed(digits):
            size = -(-extent // known) if size == "_" else int(size)
            here &= axis is None or rest % size == device[axis]
            rest //= size
        if here:
            values.add(value)
    return values


def bytes_needed(axes, ops, source, target):
    """The least and the most bytes of the busiest device, summed over the operands,
    or None where several devices could send the same."""
    text, extents, result, offsets = ops
    all_devices = list(coordinates(axes))
    least = most = 0
    for extent, offset in zip(extents, offsets):
        has = [held(source, extent, axes, d) for d in all_devices]
        needs = [{v - offset for v in held(target, result, axes, d)
                  if 0 <= v - offset < extent} for d in all_devices]
        if sum(map(len, has)) != extent:
            return None
        received = max(len(n - h) for h, n in zip(has, needs))
        sent = max(sum(len(h & n - other) for other, n in zip(has, needs))
                   for h in has)
        shared = sum(map(len, needs)) > len(set().union(*needs))
        most += max(sent, received) * COLUMNS * 4
        least += (received if shared else max(sent, received)) * COLUMNS * 4
    return least, most


def coordinates(axes):
    """Every device, as its digit on each axis and part of an axis."""
    names = [a for a in axes if ":" in a] or list(axes)
    for coords in itertools.product(*(range(axes[a]) for a in names)):
        device = dict(zip(names, coords))
        if len(names) < len(axes):  # the whole of an axis that is cut in two
            device["tp"] = 2 * coords[0] + coords[1]
        yield device


def program(mesh, op, source, target):
    text, extents, result, _ = op
    names = [f"%a{i}" for i in range(len(extents))]
    types = [f"tensor<{e}x{COLUMNS}xf32, #tv.view<#m, [{source}, _]>>" for e in extents]
    to = f"tensor<{result}x{COLUMNS}xf32, #tv.view<#m, [{target}, _]>>"
    arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, types))
    return (f"#m = #tv.mesh<{mesh}>\nfunc.func @main({arguments}) -> {to} {{\n"
            f"  %r = {text.format(*names)} : ({', '.join(types)}) -> {to}\n"
            f"  return %r : {to}\n}}\n")


def main():
    tool = sys.argv[1]
    checked = 0
    for mesh, size, axes in MESHES:
        views = [p for p, _ in products([a for a in axes])
                 if not ("tp)" in p and "tp:" in p)]
        for op in OPS:
            cases = list(itertools.product(views, repeat=2))
            texts = [program(mesh, op, source, target) for source, target in cases]
            run = subprocess.run(
                [tool, "-", "--split-input-file", "--tv-bind",
                 "--tv-decompose-reshardings", "--tv-verify-decomposed",
                 "--tv-elide-reshards", "--tv-verify-decomposed", "--tv-plan-reshards",
                 "--tv-verify-planned", "--remarks-filter=tv-plan-reshards",
                 "--remark-format=emitRemark", "--tv-reorder-sharded-axis",
                 "--tv-make-resharding-contiguous", "--tv-verify-allocated",
                 "--tv-localize", "--tv-verify-localized", f"--interpret={size}",
                 "--interpret-local-only", "-o", "/dev/null"],
                input="// -----\n".join(texts), capture_output=True, text=True)
            if run.returncode:
                sys.exit(f"{mesh}\n{run.stderr[:3000]}")
            # By the line of the program's op.
            moved = {}
            for line, count in re.findall(
                    r"^[^:\n]*:(\d+):\d+: remark: .*?bytes=(\d+)", run.stderr, re.M):
                moved[int(line)] = moved.get(int(line), 0) + int(count)
            first = 1
            for text, (source, target) in zip(texts, cases):
                needed = bytes_needed(axes, op, source, target)
                if needed is not None:
                    checked += 1
                    least, most = needed
                    if not least <= moved.get(first + 2, 0) <= most:
                        sys.exit(f"{text}moves {moved.get(first + 2, 0)} bytes where "
                                 f"{least} to {most} are needed")
                first += text.count("\n") + 1
    print(f"{checked} programs move what they need")


if __name__ == "__main__":
    main()
