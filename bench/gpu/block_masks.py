#!/usr/bin/env python3
"""What a block mask costs that a program makes from its mask_mod, on one GPU, beside the
attention that has it.

    block_masks.py compile BUILD OUT       here: modules of each mask
    block_masks.py run OUT                 on a machine with a GPU and torch; PYTHONPATH has
                            the package, TESSERA_ROOT a folder with the library in its lib

bf16, batch 2 (1 of the longer ones), 16 heads of 128, blocks of 128 x 128; documents are data.
Programs of a mask: the mask alone; an attention that is given it; and a layer, which makes the
mask, an attention and the gradient of one head, with the walks beside the attention. The latter two
run ROUNDS times in turns under torch's profiler, which sees the kernels of a graph, both behind an
attention. The metadata of a layer are the time until its attention begins, and what that takes
longer than alone; printed are medians. Masks are held against torch's, pair by pair. Exits with 1
if one differs."""
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
    head = f"""#m = #tv.mesh<tp = 1>
#rows = #tv.view<#m, [_, did(tp) * _, _, _], alloc = (0, 2, 1, 3)>
!x = tensor<{batch}x{HEADS}x{length}x128xbf16, #rows>
!lse = tensor<{batch}x{HEADS}x{length}xf32>
!x1 = tensor<1x1x{length}x128xbf16, #rows>
!lse1 = tensor<1x1x{length}xf32>
!ids = tensor<{length}xi32, #tv.view<#m, [_]>>
!bm = tensor<1x1x{blocks}x{blocks}xi8>
"""

    def function(arguments, results, body):
        given = ", ".join(f'%{name}: {type_} {{tv.name = "{name}"}}'
                          for name, type_ in {"ids": "!ids", **arguments}.items())
        made = ", ".join(f'{type_} {{tv.name = "{name}"}}' for name, type_ in results.items())
        returned = ", ".join(f"%{name}" for name in results)
        return (f"{head}func.func @main({given}) -> ({made}) {{\n{body}"
                f"  return {returned} : {', '.join(results.values())}\n}}\n")

    make = (f"  %bm = tv.block_mask of [{length}, {length}] blocks [128, 128] : () -> !bm\n"
            f"    {keep}")
    if what == "mask":
        return function({}, {"bm": "!bm"}, make)
    scale = f"scale({128 ** -0.5}) block_mask(%bm) blocks [128, 128]\n"
    forward = (f"  %o, %lse = tv.attention %q, %k, %v {scale}"
               f"    : (!x, !x, !x, !bm) -> (!x, !lse)\n    {keep}")
    gradient = (f"  %dq, %dk, %dv = tv.attention_grad %do, %q1, %k1, %v1, %o1, %lse1 {scale}"
                f"    : (!x1, !x1, !x1, !x1, !x1, !lse1, !bm) -> (!x1, !x1, !x1)\n    {keep}")
    whole, results = dict.fromkeys("q k v".split(), "!x"), {"o": "!x", "lse": "!lse"}
    if what == "forward":
        return function({"bm": "!bm", **whole}, results, forward)
    one = {**dict.fromkeys("q1 k1 v1 do o1".split(), "!x1"), "lse1": "!lse1"}
    return function({**whole, **one}, {**results, **dict.fromkeys("dq dk dv".split(), "!x1")},
                    make + forward + gradient)


PROGRAMS = "mask", "forward", "layer"


def cases():
    for length in LENGTHS:
        for mask in MASKS:
            yield mask, length


def compile_all(build, out):
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    for mask, length in cases():
        for what in PROGRAMS:
            source = out / f"{mask}-{length}-{what}.mlir"
            source.write_text(program(mask, length, what))
            subprocess.run([f"{build}/bin/tessera-compile", source, "--target=cuda:sm_90a",
                            "--attention=flash", "-o", source.with_suffix(".tsr")], check=True)


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

    def heads(batch, count):
        return torch.randn(batch, length, count, 128, device="cuda",
                           dtype=torch.bfloat16).transpose(1, 2)
    made = {name: heads(batch, HEADS) for name in "q k v o".split()}
    made |= {name: heads(1, 1) for name in "q1 k1 v1 do o1 dq dk dv".split()}
    made |= {"ids": ids, "bm": torch.full_like(kinds, -1),
             "lse": torch.empty(batch, HEADS, length, device="cuda"),
             "lse1": torch.full((1, 1, length), 10.0, device="cuda")}
    ports = {"mask": "ids bm", "forward": "ids bm q k v o lse",
             "layer": "ids q k v o lse q1 k1 v1 do o1 lse1 dq dk dv"}
    context = tessera.Context(backend="cuda", device=0)
    bindings = {what: context.load(f"{out}/{mask}-{length}-{what}.tsr").bind(
        {name: made[name] for name in ports[what].split()}) for what in PROGRAMS}
    stream = torch.cuda.current_stream()
    for binding in [*bindings.values()] * WARM:
        binding.enqueue(stream)
    torch.cuda.synchronize()
    right = torch.equal(made["bm"], kinds)
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(ROUNDS):
            for what in "forward", "forward", "layer":
                bindings[what].enqueue(stream)
        torch.cuda.synchronize()
    context.close()

    alone, before, beside, walks = [], [], [], []
    begin = None  # of a layer's mask
    for start, end, name in sorted((each.time_range.start, each.time_range.end, each.name)
                                   for each in profiler.events()):
        if name.startswith(("map", "reduce")):
            begin = start if begin is None else begin
        elif name.startswith("block_walks"):
            walks.append(end - start)
            made_at = end
        elif re.fullmatch(r"attention_\d+", name):
            if begin is None:
                alone.append(end - start)
                continue
            before.append(start - begin)
            beside.append(max(end, made_at if walks else end) - start)
        elif name.endswith("finish"):
            begin = None
    forward, mask_time = statistics.median(alone[1::2]), statistics.median(before)
    longer = statistics.median(beside) - forward
    share = (kept.sum() / length ** 2).item()

    def part(name, of):
        return f"{name} {of:.1f} us, {100 * of / forward:.2f} %"
    print(f"{mask}, {length}, {share:.3f} of the pairs: forward {forward:.0f} us; of it "
          f"{part('mask', mask_time)}; {part('walks', statistics.median(walks))}, beside which it "
          f"takes {longer:.1f} us longer; {part('metadata', mask_time + longer)}"
          f"{'' if right else '; THE MASK DIFFERS'}", flush=True)
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
