#!/usr/bin/env python3
"""Every pair of views of a small tensor through planning and localization, in the
interpreter. One program has one source view and a result for each destination.

    all_moves.py tessera-opt
"""
import itertools
import subprocess
import sys

# Mesh, its size, axes, and the tensor's shape: even and uneven.
MESHES = [
    ("tp = 2", 2, ["tp"], (4, 6)),
    ("tp = 3", 3, ["tp"], (5, 7)),
    ("x = 2, y = 2", 4, ["x", "y"], (4, 6)),
    ("x = 2, y = 3, devices = iota(y, x)", 6, ["x", "y"], (5, 8)),
    ("tp = 4, devices = [2, 0, 3, 1]", 4, ["tp:(1)2", "tp:(2)2"], (4, 3)),
    # On parts of the mesh.
    ("x = 2, y = 2", 4, ["x", "y"], (1, 6)),
    ("x = 2, y = 3", 6, ["x", "y"], (1, 5)),
]


def products(axes):
    """Each way to split one dimension over some of `axes`, with the axes used."""
    yield "_", ()
    for axis in axes:
        yield f"did({axis}) * _", (axis,)
        yield f"_ * did({axis})", (axis,)
        yield f"_ * did({axis}) * 2", (axis,)
    for a, b in itertools.permutations(axes, 2):
        yield f"did({a}) * did({b}) * _", (a, b)


def parts(axes):
    """A dimension of one element on all devices, or where some of `axes` are last."""
    yield "_", ()
    for axis in axes:
        yield f"(did({axis}) * 1 | 1:2)", (axis,)
    if len(axes) > 1:
        yield f"({' * '.join(f'did({a})' for a in axes)} * 1 | 3:4)", tuple(axes)


def places(axes, shape):
    """Views without partial states, as (dims, axes used)."""
    first = parts if shape[0] == 1 else products
    for (p, a), (q, b) in itertools.product(first(axes), products(axes)):
        if not set(a) & set(b):
            yield f"[{p}, {q}]", set(a) | set(b)


def program(mesh, shape, source, used, partial, targets):
    rows, columns = shape
    tensor = f"tensor<{rows}x{columns}xf32"
    views = [f"#tv.view<#m, {t}>" for t in targets]
    types = [f"{tensor}, {v}>" for v in views]
    lines = [f"#m = #tv.mesh<{mesh}>"]
    if partial:
        # An addend on each device of `partial`: a sum over a split dimension.
        argument = f"tensor<7x{rows}x{columns}xf32, #tv.view<#m, [did({partial}) * _, {source[1:]}>>"
        value = f"{tensor}, #tv.view<#m, {source}, partial = [{partial} : sum]>>"
    else:
        argument = value = f"{tensor}, #tv.view<#m, {source}>>"
    lines.append(f"func.func @main(%a: {argument}) -> ({', '.join(types)}) {{")
    if partial:
        lines.append(f"  %v = tv.reduce sum %a dims [0] : ({argument}) -> {value}")
    name = "%v" if partial else "%a"
    for i, t in enumerate(types):
        lines.append(f"  %r{i} = tv.reshard {name} : ({value}) -> {t}")
    results = ", ".join(f"%r{i}" for i in range(len(types)))
    lines.append(f"  return {results} : {', '.join(types)}\n}}\n")
    return "\n".join(lines)


def main():
    tool = sys.argv[1]
    moves = 0
    for mesh, size, axes, shape in MESHES:
        targets = [dims for dims, _ in places(axes, shape)]
        sources = []
        for dims, used in places(axes, shape):
            sources.append((dims, used, None))
            sources += [(dims, used, axis) for axis in axes if axis not in used]
        for source, used, partial in sources:
            text = program(mesh, shape, source, used, partial, targets)
            run = subprocess.run(
                [tool, "-", "--tv-bind", "--tv-verify-decomposed", "--tv-plan-reshards",
                 "--tv-verify-planned", "--tv-reorder-sharded-axis",
                 "--tv-make-resharding-contiguous", "--tv-verify-allocated",
                 "--tv-localize", "--tv-verify-localized", f"--interpret={size}",
                 "--interpret-local-only", "-o", "/dev/null"],
                input=text, capture_output=True, text=True)
            if run.returncode:
                sys.exit(f"{text}\n{run.stderr[:3000]}")
            moves += len(targets)
    print(f"{moves} moves")


if __name__ == "__main__":
    main()
