"""The GPT-3 block of the benchmarks as a tv program: s 2048, h 96, e 12288, bf16, causal;
sequence parallel or tensor parallel over the axis `tp` of a mesh. A mesh with an axis
`dp` has one batch a part of it; else b is 1.

    gpt3.py sp|tp [MESH [DROPOUT]]      as in `gpt3.py sp dp=2,tp=2 0.1`; tp=2, 0 unless given
"""

S, HEADS, E = 2048, 96, 12288
D, F = E // HEADS, 4 * E
EPSILON = 1e-5
SEED = 7  # of dropout, in streams 1 and 2


def axes(mesh):
    """[(name, size)] of "dp=2,tp=2"."""
    return [(name, int(size)) for name, size in (axis.split("=") for axis in mesh.split(","))]


def program(kind="sp", mesh="tp=2", dropout=0.0, s=S, heads=HEADS, d=D, element="bf16"):
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
func.func @main(%x: !in {{tv.name = "x"}},
    %g1: !vec {{tv.name = "ln0w", tv.role = "weight"}}, %b1: !vec {{tv.name = "ln0b", tv.role = "weight"}},
    %qw: !qkv_w {{tv.name = "wqkv", tv.role = "weight"}}, %qb: !qkv_b {{tv.name = "bqkv", tv.role = "weight"}},
    %ow: !out_w {{tv.name = "wo", tv.role = "weight"}}, %ob: !vec {{tv.name = "bo", tv.role = "weight"}},
    %g2: !vec {{tv.name = "ln1w", tv.role = "weight"}}, %b2: !vec {{tv.name = "ln1b", tv.role = "weight"}},
    %uw: !up_w {{tv.name = "w0", tv.role = "weight"}}, %ub: !up_b {{tv.name = "b0", tv.role = "weight"}},
    %dw: !down_w {{tv.name = "w1", tv.role = "weight"}}, %db: !vec {{tv.name = "b1", tv.role = "weight"}})
    -> (!in {{tv.name = "y"}}) {{
  %n1 = tv.layer_norm %x, %g1, %b1 epsilon({EPSILON:.1e}) : (!in, !vec, !vec) -> !x
  %p = tv.linear %n1, %qw bias %qb : (!x, !qkv_w, !qkv_b) -> !proj
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
  %o = tv.linear %c, %ow bias %ob : (!x, !out_w, !vec) -> !x
{drop_o}  %s = tv.add {o}, %x : (!x, !in) -> !x
  %n2 = tv.layer_norm %s, %g2, %b2 epsilon({EPSILON:.1e}) : (!x, !vec, !vec) -> !x
  %u = tv.linear %n2, %uw bias %ub : (!x, !up_w, !up_b) -> !hidden
  %g = tv.gelu tanh %u : (!hidden) -> !hidden
  %w = tv.linear %g, %dw bias %db : (!hidden, !down_w, !vec) -> !x
{drop_d}  %y = tv.add {down}, %s : (!x, !x) -> !in
  return %y : !in
}}
"""


if __name__ == "__main__":
    import sys
    print(program(*sys.argv[1:3], *map(float, sys.argv[3:])), end="")
