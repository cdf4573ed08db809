#!/usr/bin/env python3
"""What a block mask costs that a program makes from its mask_mod, on one GPU, beside the
attention that has it.

    block_masks.py compile BUILD OUT       here: modules of each mask
    block_masks.py run OUT                 on a machine with a GPU and torch; PYTHONPATH has
                            the package, TESSERA_ROOT a folder with the library in its lib

bf16, batch 2 (1 of the longer ones), 16 heads of 128, blocks of 128 x 128; documents are data.
Three programs of a mask: the mask alone, an attention that is given it, and its gradient, which
makes its walks in each run. A reading is a program queued STEPS times over, between two events;
printed are medians of ROUNDS readings, in turns. Masks are held against torch's, pair by
pair. Exits with 1 if one differs."""
import argparse
import pathlib
import statistics
import subprocess
import sys

LENGTHS = 8192, 32768
HEADS, DOCUMENTS, WINDOW, STEPS, ROUNDS = 16, 8, 2048, 20, 9
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

    if what == "mask":
        return function({}, {"bm": "!bm"}, f"  %bm = tv.block_mask of [{length}, {length}] "
                        f"blocks [128, 128] : () -> !bm\n    {keep}")
    scale = f"scale({128 ** -0.5}) block_mask(%bm) blocks [128, 128]\n"
    leaves = {"bm": "!bm", "q": "!x", "k": "!x", "v": "!x"}
    if what == "forward":
        return function(leaves, {"o": "!x", "lse": "!lse"},
                        f"  %o, %lse = tv.attention %q, %k, %v {scale}"
                        f"    : (!x, !x, !x, !bm) -> (!x, !lse)\n    {keep}")
    results = {"dq": "!x", "dk": "!x", "dv": "!x"}
    body = (f"  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse {scale}"
            f"    : (!x, !x, !x, !x, !x, !lse, !bm) -> (!x, !x, !x)\n    {keep}")
    return function({**leaves, "do": "!x", "o": "!x", "lse": "!lse"}, results, body)


PROGRAMS = "mask", "forward", "gradient"


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

    def heads():
        return torch.randn(batch, length, HEADS, 128, device="cuda",
                           dtype=torch.bfloat16).transpose(1, 2)
    made = {name: heads() for name in "q k v o do dq dk dv".split()}
    made |= {"ids": ids, "bm": torch.full_like(kinds, -1),
             "lse": torch.empty(batch, HEADS, length, device="cuda")}
    ports = {"mask": "ids bm", "forward": "ids bm q k v o lse",
             "gradient": "ids bm q k v do o lse dq dk dv"}
    context = tessera.Context(backend="cuda", device=0)
    bindings = {what: context.load(f"{out}/{mask}-{length}-{what}.tsr").bind(
        {name: made[name] for name in ports[what].split()}) for what in PROGRAMS}

    def reading(binding):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        binding.enqueue(torch.cuda.current_stream())
        torch.cuda._sleep(2_000_000)
        begin.record()
        for _ in range(STEPS):
            binding.enqueue(torch.cuda.current_stream())
        end.record()
        torch.cuda.synchronize()
        return 1e3 * begin.elapsed_time(end) / STEPS
    times = {what: [] for what in PROGRAMS}
    for _ in range(ROUNDS):
        for what, binding in bindings.items():
            times[what].append(reading(binding))
    time = {what: statistics.median(of) for what, of in times.items()}
    right = torch.equal(made["bm"], kinds)
    share = (kept.sum() / length ** 2).item()
    print(f"{mask}, {length}, {share:.3f} of the pairs: mask {time['mask']:.1f} us, "
          f"{100 * time['mask'] / time['forward']:.2f} % of the forward, {time['forward']:.0f} us; "
          f"gradient {time['gradient']:.0f} us"
          f"{'' if right else '; THE MASK DIFFERS'}", flush=True)
    context.close()
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
