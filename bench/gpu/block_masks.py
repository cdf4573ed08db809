#!/usr/bin/env python3
"""What a block mask costs that a program makes from its mask_mod, on one GPU, beside the
attention that has it.

    block_masks.py compile BUILD OUT       here: modules of each mask
    block_masks.py run OUT                 on a machine with a GPU and torch; PYTHONPATH has
                            the package, TESSERA_ROOT a folder with the library in its lib

bf16, batch 2 (1 of the longer ones), 16 heads of 128, blocks of 128 x 128; documents are data.
Programs of a mask: the mask alone; a layer, forward, that is given it: norms, the attention, four
products (2048, 6144 and 8192 wide); the same layer with the mask that it makes, and its gradient,
which needs walks, made beside it; and that with the walks in line. The last three run ROUNDS times
in turns under torch's profiler, which sees the kernels of a graph, each behind the first. Metadata
are what the layer takes until its attention has ended beyond what it takes in line behind the
walks; printed are medians. Masks are held against torch's, pair by pair. Exits with 1 if one
differs."""
import argparse
import pathlib
import re
import statistics
import subprocess
import sys

LENGTHS = 8192, 32768
HEADS, DOCUMENTS, WINDOW, WARM, ROUNDS = 16, 8, 2048, 20, 30
MASKS = {
    "causal": """      %0 = arith.cmpi sle, %ki, %qi : index
""",
    "window": f"""      %width = arith.constant {WINDOW} : index
      %d = arith.subi %qi, %ki : index
      %0 = arith.cmpi ult, %d, %width : index
""",
    "documents": """      %i = tv.load %ids[%qi] : !ids -> i32
      %j = tv.load %ids[%ki] : !ids -> i32
      %0 = arith.cmpi eq, %i, %j : i32
""",
}


def program(mask, length, what):
    batch, blocks = 2 if length == LENGTHS[0] else 1, length // 128
    keep = f"""mask_mod (%b: index, %h: index, %qi: index, %ki: index) {{
{MASKS[mask]}      tv.yield %0 : i1
    }}
"""
    width, inner = HEADS * 128, 4 * HEADS * 128
    types = {"ids": f"tensor<{length}xi32, #tv.view<#m, [_]>>",
             "x": f"tensor<{batch}x{length}x{width}xbf16>",
             "gain": f"tensor<{width}xbf16>", "bias": f"tensor<{width}xbf16>",
             "qkv": f"tensor<{3 * width}x{width}xbf16>", "out": f"tensor<{width}x{width}xbf16>",
             "up": f"tensor<{inner}x{width}xbf16>", "down": f"tensor<{width}x{inner}xbf16>",
             "bm": f"tensor<1x1x{blocks}x{blocks}xi8>"}

    def given(names, named=True):
        return ", ".join(f"%{name}: !{name}" + (f' {{tv.name = "{name}"}}' if named else "")
                         for name in names)
    make = (f"  %bm = tv.block_mask of [{length}, {length}] blocks [128, 128] : () -> !bm\n"
            f"    {keep}")
    heads = "\n".join(f"""  %{name}0 = tv.slice %all offsets [0, 0, 0, {128 * i}] : (!all) -> !part
  %{name} = tv.transpose %{name}0 perm [0, 2, 1, 3] : (!part) -> !head"""
                      for i, name in enumerate("qkv"))
    names = [name for name in types if name != "bm"]
    layer = f"""!all = tensor<{batch}x{length}x{HEADS}x384xbf16>
!wide = tensor<{batch}x{length}x{3 * width}xbf16>
!inner = tensor<{batch}x{length}x{inner}xbf16>
!part = tensor<{batch}x{length}x{HEADS}x128xbf16>
!head = tensor<{batch}x{HEADS}x{length}x128xbf16>
!lse = tensor<{batch}x{HEADS}x{length}xf32>
func.func private @layer({given(names, False)}, %bm: !bm) -> !x {{
  %n1 = tv.layer_norm %x, %gain, %bias epsilon(1.0e-5) : (!x, !gain, !bias) -> !x
  %p = tv.linear %n1, %qkv : (!x, !qkv) -> !wide
  %all = tv.reshape %p : (!wide) -> !all
{heads}
  %a, %lse = tv.attention %q, %k, %v scale({128 ** -0.5}) block_mask(%bm) blocks [128, 128]
    : (!head, !head, !head, !bm) -> (!head, !lse)
    {keep}  %t = tv.transpose %a perm [0, 2, 1, 3] : (!head) -> !part
  %r = tv.reshape %t : (!part) -> !x
  %o = tv.linear %r, %out : (!x, !out) -> !x
  %s1 = tv.add %o, %x : (!x, !x) -> !x
  %n2 = tv.layer_norm %s1, %gain, %bias epsilon(1.0e-5) : (!x, !gain, !bias) -> !x
  %u = tv.linear %n2, %up : (!x, !up) -> !inner
  %h = tv.gelu tanh %u : (!inner) -> !inner
  %d = tv.linear %h, %down : (!inner, !down) -> !x
  %y = tv.add %d, %s1 : (!x, !x) -> !x
  return %y : !x
}}
"""
    head = "#m = #tv.mesh<tp = 1>\n" + "".join(
        f"!{name} = {type_}\n" for name, type_ in types.items())
    passed = ", ".join(f"%{name}" for name in [*names, "bm"])
    of = ", ".join(f"!{name}" for name in [*names, "bm"])
    if what == "mask":
        return (f"{head}func.func @main({given(['ids'])}) -> (!bm {{tv.name = \"bm\"}}) {{\n{make}"
                "  return %bm : !bm\n}\n")
    if what == "forward":
        return (f"{head}{layer}func.func @main({given([*names, 'bm'])}) -> "
                f"(!x {{tv.name = \"y\"}}) {{\n  %y = func.call @layer({passed}) : ({of}) -> !x\n"
                "  return %y : !x\n}\n")
    return (f"{head}{layer}func.func @main({given(names)}, %dy: !x {{tv.name = \"dy\"}}) -> "
            f"(!x {{tv.name = \"y\"}}, !x {{tv.name = \"dx\"}}) {{\n{make}"
            f"  %y, %dx = tv.gradient @layer({passed}) of [0] with (%dy) to [{names.index('x')}]\n"
            f"    : ({of}, !x) -> (!x, !x)\n  return %y, %dx : !x, !x\n}}\n")


ATTENTION, WALKS = r"attention_\d+", r"block_walks_\d+"
PROGRAMS = "mask", "forward", "training", "inline"


def cases():
    for length in LENGTHS:
        for mask in MASKS:
            yield mask, length


def compile_all(build, out):
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)

    def compile_one(source, module, *flags):
        subprocess.run([f"{build}/bin/tessera-compile", source, "--target=cuda:sm_90a", "--quiet",
                        "-o", module, *flags], check=True)
    variants = "--attention=flash", "--matmul=cublaslt"
    for mask, length in cases():
        for what in PROGRAMS:
            source = out / f"{mask}-{length}-{what}.mlir"
            if what == "inline":
                compile_one(source.with_name(f"{mask}-{length}-training.mlir"), source,
                            "--compile-to=kernels", *variants)
                source.write_text(source.read_text().replace(" aside from", " from"))
                compile_one(source, source.with_suffix(".tsr"), "--compile-from=kernels")
                continue
            source.write_text(program(mask, length, what))
            compile_one(source, source.with_suffix(".tsr"), *variants)


def run(out, mask, length):
    """Whether the mask is right."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    import tessera
    torch.manual_seed(0)
    n, batch = length // 128, 2 if length == LENGTHS[0] else 1
    ids = (torch.randperm(length, device="cuda") < DOCUMENTS - 1).cumsum(0).to(torch.int32)
    i = torch.arange(length, device="cuda")
    of = {"causal": lambda q, k: k <= q, "window": lambda q, k: (k <= q) & (q - k < WINDOW),
          "documents": lambda q, k: ids[q] == ids[k]}[mask]
    rows = [of(i[m * 128:m * 128 + 128, None], i[None]).view(128, n, 128).sum((0, 2))
            for m in range(n)]
    kept = torch.stack(rows)
    kinds = ((kept > 0).to(torch.int8) + (kept == 128 * 128).to(torch.int8))[None, None]

    context = tessera.Context(backend="cuda", device=0)
    modules = {what: context.load(f"{out}/{mask}-{length}-{what}.tsr") for what in PROGRAMS}
    made = {"ids": ids, "bm": torch.full_like(kinds, -1)}
    for name in modules["training"].ports:
        if name != "ids":
            shape = modules["training"].layout(name).shape
            made[name] = torch.randn(shape, device="cuda", dtype=torch.bfloat16) / shape[-1] ** 0.5
    bindings = {what: module.bind({name: made[name] for name in module.ports})
                for what, module in modules.items()}
    stream = torch.cuda.current_stream()
    for binding in [*bindings.values()] * WARM:
        binding.enqueue(stream)
    torch.cuda.synchronize()
    right = torch.equal(made["bm"], kinds)
    mark = torch.zeros(1, device="cuda")
    order = "forward", "forward", "forward", "training", "forward", "inline"
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(ROUNDS):
            for what in order:
                bindings[what].enqueue(stream)
                mark += 1
        torch.cuda.synchronize()
    context.close()

    runs, own = [], []  # of kernels: when each begins and ends, and its name
    for each in sorted(profiler.events(), key=lambda each: each.time_range.start):
        if "at::native" in each.name:  # the mark
            runs, own = runs + [own], []
        elif not each.name.startswith(("cuda", "Activity")):
            own.append((each.time_range.start, each.time_range.end, each.name))
    assert len(runs) == len(order) * ROUNDS and not own, "not all kernels were seen"

    def medians(of, reading):
        return statistics.median(reading(run) for run in runs[order.index(of)::len(order)])

    def time_of(pattern, of="forward"):
        return medians(of, lambda run: sum(end - start for start, end, name in run
                                           if re.fullmatch(pattern, name)))

    def until_attention(run, behind=r""):
        """From the end of what is named `behind`, or the begin, until the attention has ended."""
        begin = max((end for _, end, name in run if re.fullmatch(behind, name)), default=run[0][0])
        return next(end for _, end, name in run if re.fullmatch(ATTENTION, name)) - begin
    layer = medians("forward", lambda run: run[-1][1] - run[0][0])
    attention, walks = time_of(ATTENTION), time_of(WALKS, "inline")
    metadata = (medians("training", until_attention) -
                medians("inline", lambda run: until_attention(run, WALKS)))
    share = (kept.sum() / length ** 2).item()
    print(f"{mask}, {length}, {share:.3f} of the pairs: layer {layer:.0f} us, its attention "
          f"{attention:.0f}; walks in line {walks:.1f} us; metadata {metadata:.1f} us, "
          f"{100 * metadata / layer:.2f} % of the layer, {100 * metadata / attention:.2f} % of the "
          f"attention{'' if right else '; THE MASK DIFFERS'}", flush=True)
    return right


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    compiling = commands.add_parser("compile")
    compiling.add_argument("build")
    compiling.add_argument("out")
    running = commands.add_parser("run")
    running.add_argument("out")
    args = parser.parse_args()
    if args.command == "compile":
        return compile_all(args.build, args.out)
    sys.exit(not all([run(args.out, *case) for case in cases()]))


if __name__ == "__main__":
    main()
