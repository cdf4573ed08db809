"""The GPT-3 block of the benchmarks as a tv program: s 2048, h 96, e 12288, bf16, causal;
sequence parallel or tensor parallel over the axis `tp` of a mesh. A mesh with an axis
`dp` has one batch a part of it; else b is 1.

    gpt3.py sp|tp [MESH [DROPOUT]] [--gradient]

as in `gpt3.py sp dp=2,tp=2 0.1`; tp=2 and 0 unless given. With --gradient the program takes
a cotangent `dy` of the result and gives, beside it, a gradient `d` + NAME of every input.
"""

S, HEADS, E = 2048, 96, 12288
D, F = E // HEADS, 4 * E
EPSILON = 1e-5
SEED = 7  # of dropout, in streams 1 and 2


def axes(mesh):
    """[(name, size)] of "dp=2,tp=2"."""
    return [(name, int(size)) for name, size in (axis.split("=") for axis in mesh.split(","))]


# Inputs by name, and their types in the program.
INPUTS = {"x": "!in", "ln0w": "!vec", "ln0b": "!vec", "wqkv": "!qkv_w", "bqkv": "!qkv_b",
          "wo": "!out_w", "bo": "!vec", "ln1w": "!vec", "ln1b": "!vec", "w0": "!up_w",
          "b0": "!up_b", "w1": "!down_w", "b1": "!vec"}


def arguments(named):
    def attributes(name):
        role = "" if name in ("x", "dy") else ', tv.role = "weight"'
        return f' {{tv.name = "{name}"{role}}}' if named else ""
    return ",\n    ".join(f"%{name}: {type_}{attributes(name)}" for name, type_ in INPUTS.items())


def gradient():
    """The function that is called from outside, of a private @block."""
    types, names = list(INPUTS.values()), list(INPUTS)
    results = ["%y", *(f"%d{name}" for name in names)]
    named = ", ".join(f'{type_} {{tv.name = "{name[1:]}"}}'
                      for name, type_ in zip(results, ["!in", *types]))
    return f"""func.func @main({arguments(True)},
    %dy: !in {{tv.name = "dy"}})
    -> ({named}) {{
  {", ".join(results)}
      = tv.gradient @block({", ".join("%" + name for name in names)}) of [0] with (%dy)
          to {list(range(len(names)))}
      : ({", ".join([*types, "!in"])})
      -> ({", ".join(["!in", *types])})
  return {", ".join(results)} : {", ".join(["!in", *types])}
}}
"""


def program(kind="sp", mesh="tp=2", dropout=0.0, s=S, heads=HEADS, d=D, element="bf16",
            backward=False):
    e, f = heads * d, 4 * heads * d
    t = element
    b = dict(axes(mesh)).get("dp", 1)
    x_view = (f"[{'did(dp) * _' if b > 1 else '_'}, "
              f"{'did(tp) * _' if kind == 'sp' else '_'}, _]")

    def drop(value, stream):
        if not dropout:
            return "", value
        return (f"  {value}d = tv.dropout {value} rate({dropout}) seed({SEED}) "
                f"stream({stream}) : (!x) -> !x\n"), value + "d"

    drop_o, o = drop("%o", 1)
    drop_d, down = drop("%w", 2)
    head = (f"func.func private @block({arguments(False)}) -> !in" if backward else
            f"func.func @main({arguments(True)})\n    -> (!in {{tv.name = \"y\"}})")
    return f"""#m = #tv.mesh<{mesh.replace("=", " = ").replace(",", ", ")}>
!in = tensor<{b}x{s}x{e}x{t}, #tv.view<#m, {x_view}>>
!vec = tensor<{e}x{t}, #tv.view<#m, [_]>>
!qkv_w = tensor<{3 * e}x{e}x{t}, #tv.view<#m, [(did(tp) * _ | {heads}) * {3 * d}, _]>>
!qkv_b = tensor<{3 * e}x{t}, #tv.view<#m, [(did(tp) * _ | {heads}) * {3 * d}]>>
!out_w = tensor<{e}x{e}x{t}, #tv.view<#m, [_, (did(tp) * _ | {heads}) * {d}]>>
!up_w = tensor<{f}x{e}x{t}, #tv.view<#m, [did(tp) * _, _]>>
!up_b = tensor<{f}x{t}, #tv.view<#m, [did(tp) * _]>>
!down_w = tensor<{e}x{f}x{t}, #tv.view<#m, [_, did(tp) * _]>>
!x = tensor<{b}x{s}x{e}x{t}>
!proj = tensor<{b}x{s}x{3 * e}x{t}>
!qkv = tensor<{b}x{s}x{heads}x{3 * d}x{t}>
!part = tensor<{b}x{s}x{heads}x{d}x{t}>
!head = tensor<{b}x{heads}x{s}x{d}x{t}>
!hidden = tensor<{b}x{s}x{f}x{t}>
{head} {{
  %n1 = tv.layer_norm %x, %ln0w, %ln0b epsilon({EPSILON:.1e}) : (!in, !vec, !vec) -> !x
  %p = tv.linear %n1, %wqkv bias %bqkv : (!x, !qkv_w, !qkv_b) -> !proj
  %r = tv.reshape %p : (!proj) -> !qkv
  %q0 = tv.slice %r offsets [0, 0, 0, 0] : (!qkv) -> !part
  %k0 = tv.slice %r offsets [0, 0, 0, {d}] : (!qkv) -> !part
  %v0 = tv.slice %r offsets [0, 0, 0, {2 * d}] : (!qkv) -> !part
  %q = tv.transpose %q0 perm [0, 2, 1, 3] : (!part) -> !head
  %k = tv.transpose %k0 perm [0, 2, 1, 3] : (!part) -> !head
  %v = tv.transpose %v0 perm [0, 2, 1, 3] : (!part) -> !head
  %a, %l = tv.attention %q, %k, %v scale({d ** -0.5!r}) causal : (!head, !head, !head) -> (!head, tensor<{b}x{heads}x{s}xf32>)
  %t = tv.transpose %a perm [0, 2, 1, 3] : (!head) -> !part
  %c = tv.reshape %t : (!part) -> !x
  %o = tv.linear %c, %wo bias %bo : (!x, !out_w, !vec) -> !x
{drop_o}  %s = tv.add {o}, %x : (!x, !in) -> !x
  %n2 = tv.layer_norm %s, %ln1w, %ln1b epsilon({EPSILON:.1e}) : (!x, !vec, !vec) -> !x
  %u = tv.linear %n2, %w0 bias %b0 : (!x, !up_w, !up_b) -> !hidden
  %g = tv.gelu tanh %u : (!hidden) -> !hidden
  %w = tv.linear %g, %w1 bias %b1 : (!hidden, !down_w, !vec) -> !x
{drop_d}  %y = tv.add {down}, %s : (!x, !x) -> !in
  return %y : !in
}}
{gradient() if backward else ""}"""


if __name__ == "__main__":
    import sys
    given = [arg for arg in sys.argv[1:] if arg != "--gradient"]
    print(program(*given[:2], *map(float, given[2:]), backward="--gradient" in sys.argv), end="")
