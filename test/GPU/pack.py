#!/usr/bin/env python3
"""Packs a folder of tests that run on a machine with GPUs, CUDA and MPI.

Each program of test/Programs and examples/, for meshes of 1 to 4 devices, becomes

    tests/NAME/module.tsr             compiled for the GPU
    tests/NAME/inputs.safetensors     random inputs
    tests/NAME/expected/              NumPy float64's results, and how far each element
                                      may be from them (architecture.md, 11)
    tests/NAME/expected.json          the report of the same program on CPUs
    tests/NAME/test.env               RANKS, FLAGS of tessera-run, STEPS

and so does examples/minilm, with its weights in weights/; its tables are cut to the
tokens and positions of its sentences. Some, among them GPT-3 blocks of a size with
several tiles, have both variants of matrix products, and are there once more to run our
own (NAME-own). The step of decoding is there in bf16 with wide heads, too, and a GPT on
packed documents forward and backward. large/ has the block at GPT-3's size, without
inputs and results: there bench/gpu/block.py makes both on the GPUs.

data.tar.xz has all this, beside the programs that run it: `run` (test/GPU/run) is the
launcher, `failures` (test/GPU/failures) runs what must fail, with what is in broken/:
modules and, where lib/Kernels/cuda/test/run has built them, programs of kernels.

With --attentions FIRST:END it is random attentions and their gradients of these seeds
instead (WideAttentions of test/EndToEnd/random_attentions.py), a test for each of a
program's runs.

With --target cuda:sm_80 modules run on any GPU from there on, on a newer one from their
PTX: attention by cuDNN or math, products by cuBLASLt alone.

    pack.py --build build [--target cuda:sm_80] OUT
"""
import argparse
import math
import pathlib
import re
import shutil
import struct
import subprocess
import sys

import numpy as np
from safetensors.numpy import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MINILM = ROOT / "examples/minilm"
GPT, DECODE = ROOT / "examples/gpt", ROOT / "examples/decode/step.mlir"
sys.path[:0] = [str(ROOT / "test/EndToEnd"), str(ROOT / "bench/gpu"), str(MINILM)]
sys.path.append(str(GPT))  # behind MiniLM, whose reference.py is meant
import gpt3  # noqa: E402
from packed import PackedGPT, PackedProgram  # noqa: E402
from prepare import read_sentences, tokenize  # noqa: E402
from random_attentions import WideAttentions  # noqa: E402
from reference import embed  # noqa: E402
from run_programs import (Case, Tools, meshes_of, programs_in,  # noqa: E402
                          sizes_of, with_element, with_names)

# Flags of tessera-compile, and of tessera-run for each test of the module, by what is
# behind its name: both variants of matrix products, where they fit.
PLAIN = (), {"": ()}
BOTH = ("--matmul=cublaslt,own",), {"": (), "-own": ("--matmul=own,cublaslt",)}
LIMIT, LIMIT_WITHOUT_DATA = 60, 10  # MiB
HOPPER = "cuda:sm_90a"  # which has products of our own
# Flags for a module for CPUs that moves what one for the target does: what the target
# prices moves with (Targets/CUDA/Portable.cpp), where CPUs do not.
PRICES = {"cuda:sm_80": ["--machine=<latency=5e-6,bandwidth=2e11,copy=8e11,loops=9.5e13>"]}

FILES = sorted([*ROOT.glob("test/Programs/*.mlir"), *ROOT.glob("examples/*.mlir"),
                *ROOT.glob("examples/gpt/*.mlir"), DECODE])


def save_expected(folder, exact, allowed):
    """The results as f64, and their tolerance. Both are cut to a few digits, the results
    where that is a thousandth of the tolerance: never wider."""
    folder.mkdir()
    results, bounds = {}, {}
    for name, value in exact.items():
        value = np.array(value, np.float64, order="C")
        bound = np.array(allowed[name], np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            short = value.astype(np.float32).astype(np.float64)
            off = np.abs(short - value)
            fits = off <= bound / 1000
        # NumPy makes numbers of arrays without dimensions.
        results[name] = np.array(np.where(fits, short, value))
        bounds[f"{name}:allowed"] = np.array(
            ((bound - np.where(fits, off, 0)).astype(np.float32, order="C")
             .view(np.uint32) & 0xFFFF0000).view(np.float32))
    save_file(results, folder / "exact.safetensors")
    save_file(bounds, folder / "allowed.safetensors")


def link_copies(top):
    """One file for all with the same bytes: meshes of a program share inputs."""
    first = {}
    for file in sorted(top.rglob("*")):
        if file.is_file():
            original = first.setdefault(file.read_bytes(), file)
            if original is not file:
                file.unlink()
                file.hardlink_to(original)


def pack_program(tools, text, mesh, ranks, folder, target, flags, runs, sizes=None):
    """One module, and a test for each run of it; gives how many."""
    folder.mkdir(parents=True)
    sizes = sizes_of(text) if sizes is None else sizes
    case = Case(tools, text, folder, "program", sizes)
    tools.compile(case.path, mesh, case.module, *PRICES.get(target, []))
    report = tools.call(tools.bin / "tessera-run", case.module, "--inputs", case.inputs,
                        "--report", "json", "--transport", "threads", "--ranks", ranks,
                        *(f for n, v in sizes.items() for f in ("--size", f"{n}={v}")))
    (folder / "expected.json").write_text(report)
    tools.compile(case.path, mesh, folder / "module.tsr", f"--target={target}", *flags)
    pathlib.Path(case.inputs).rename(folder / "inputs.safetensors")
    pathlib.Path(case.module).unlink()
    save_expected(folder / "expected", case.exact, case.allowed(ranks))
    for suffix, run_flags in runs.items():
        test = folder.with_name(folder.name + suffix)
        if suffix:
            shutil.copytree(folder, test)
        run_flags = [*(f"--size {n}={v}" for n, v in sizes.items()), *run_flags]
        # What a state is after one step is what is expected.
        steps = 1 if re.search(r'tv\.role = "(state|parameter)"', text) else 3
        (test / "test.env").write_text(
            f"RANKS={ranks}\nFLAGS='{' '.join(run_flags)}'\nSTEPS={steps}\n")
    return len(runs)


def pack_minilm(tools, model, out, target):
    """The encoder on 1, 2 and 4 devices; gives how many tests."""
    inputs = tokenize(model, read_sentences(MINILM / "sentences.txt"))
    weights = {name: value
               for name, value in load_file(model / "model.safetensors").items()
               if value.dtype == np.float32}
    tokens, ids = np.unique(inputs["ids"], return_inverse=True)
    sentences, length = inputs["ids"].shape
    inputs["ids"] = ids.reshape(sentences, length).astype(np.int32)
    text = (MINILM / "encoder.mlir").read_text()
    for name, old, rows in [("word", 30522, tokens), ("position", 512, np.arange(length))]:
        name = f"embeddings.{name}_embeddings.weight"
        weights[name] = weights[name][rows]
        assert f"tensor<{old}x384xf32" in text
        text = text.replace(f"tensor<{old}x384xf32", f"tensor<{len(rows)}x384xf32")
    (out / "weights").mkdir()
    save_file(weights, out / "weights/minilm.safetensors")
    exact = embed(weights, inputs["ids"], inputs["mask"])
    allowed = np.full(exact.shape, 1e-5)  # of test_encoder.py
    for ranks in (1, 2, 4):
        folder = out / f"tests/minilm-tp{ranks}"
        folder.mkdir(parents=True)
        program = folder / "program.mlir"
        program.write_text(text)
        save_file(inputs, folder / "inputs.safetensors")
        save_expected(folder / "expected", {"embeddings": exact},
                      {"embeddings": allowed})
        weights_flag = ("--inputs", out / "weights/minilm.safetensors")
        tools.compile(program, f"tp={ranks}", folder / "cpu.tsr")
        report = tools.call(tools.bin / "tessera-run", folder / "cpu.tsr", "--inputs",
                            folder / "inputs.safetensors", *weights_flag, "--report",
                            "json", "--transport", "threads", "--ranks", ranks)
        (folder / "expected.json").write_text(report)
        (folder / "cpu.tsr").unlink()
        tools.compile(program, f"tp={ranks}", folder / "module.tsr",
                      f"--target={target}")
        (folder / "test.env").write_text(
            f"RANKS={ranks}\nFLAGS='--inputs weights/minilm.safetensors'\n")
    return 3


def gpt3_name(kind, mesh, dropout, backward=False):
    return "-".join(["gpt3", kind, *(["dropout"] if dropout else []),
                     *(["gradient"] if backward else []), mesh.replace("=", "").replace(",", "")])


def wide_decode():
    """The step of decoding in bf16 with heads of 128, which kernels of pages have."""
    text = DECODE.read_text()
    for old, new in (("<64x16x", "<1024x16x"), ("<32x16x", "<512x16x"), ("<16x64x", "<16x1024x"),
                     ("x8xf32", "x128xf32"), ("<5x64x", "<5x1024x"), ("<5x32x", "<5x512x"),
                     ("| 4) * 16", "| 4) * 256"), ("| 4) * 8", "| 4) * 128"),
                     ("scale(0.35)", "scale(0.088)")):
        assert old in text
        text = text.replace(old, new)
    return with_element(with_names(text), "bf16")


class PackedGradients(PackedProgram):
    """The loss of a GPT on packed documents and its gradients, without what a step of
    training makes of them: AdamW's first one is of their signs."""

    def main(self):
        types = {name: self.type_of(name) for name in self.parameters}
        arguments = self.inputs() + [f'{self.value(name)}: {type} {{tv.name = "{name}"}}'
                                     for name, type in types.items()]
        results = [f'{type} {{tv.name = "d.{name}"}}' for name, type in types.items()]
        count, of = len(types), ", ".join(types.values())
        self.add(f"""
func.func @main({", ".join(arguments)})
    -> (!loss {{tv.name = "loss"}}, {", ".join(results)}) {{
  %step = tv.constant dense<0> : tensor<i64> : () -> !step""")
        self.draw()
        self.add(f"""\
  %loss, %d:{count} = tv.gradient @loss({", ".join([*self.given, *map(self.value, types)])})
      of [0] to {[len(self.given) + i for i in range(count)]}
    : ({", ".join([*self.given.values(), of])}) -> (!loss, {of})
  return %loss, {", ".join(f"%d#{i}" for i in range(count))} : !loss, {of}
}}""")


def packed_gpt(tools, mesh):
    """For a mesh on which a device has one row, whose tiles are a list."""
    model = PackedGPT(layers=1, width=128, heads=2, batch=2, documents=4, vocabulary=64)
    text = str(PackedGradients(model, element="f32", compute="bf16"))
    text = text.replace("#tv.mesh<dp = 1, tp = 1>", f"#tv.mesh<{mesh}>")
    return subprocess.run([tools.bin / "tessera-opt", "--tv-inline", "--tv-differentiate"],
                          input=text, capture_output=True, text=True, check=True).stdout


def list_programs(tools, only, elements, target):
    """[(name, text, mesh, ranks, PLAIN or BOTH)] of all programs."""
    for file in FILES:
        if only not in file.stem:
            continue
        stem = "-".join(file.relative_to(ROOT).with_suffix("").parts[-2:])
        for element in elements:
            for number, _, text in programs_in(file, element):
                for mesh, ranks in meshes_of(text):
                    if element and ranks not in (1, 4):
                        continue  # types and meshes are checked apart
                    name = "-".join(filter(None, [
                        stem, str(number), element, mesh.replace("=", "") or f"{ranks}"]))
                    own = file.stem == "own-products" and not element
                    yield (name, text, mesh, ranks,
                           BOTH if own and target == HOPPER else PLAIN)
    if only in "decode-step-wide":
        for mesh, ranks in meshes_of(text := wide_decode()):
            yield f"decode-step-wide-{mesh.replace('=', '')}", text, mesh, ranks, PLAIN
    for mesh, ranks in (("dp = 2, tp = 1", 2), ("dp = 2, tp = 2", 4)):
        name = f"gpt-packed-{mesh.replace(' = ', '').replace(', ', '')}"
        if only in name:
            yield name, packed_gpt(tools, mesh), "", ranks, PLAIN
    if target != "cpu":
        # 300 rows of 256 columns, in 4 heads of 64.
        for kind in ("sp", "tp"):
            name = gpt3_name(kind, "tp=2", 0, backward=True)
            if only in name:
                text = gpt3.program(kind, "tp=2", s=300, heads=4, d=64, backward=True)
                yield name, text, "", 2, PLAIN
            for dropout in (0, 0.1):
                meshes = ["tp=2", "dp=2,tp=2", "tp=2,dp=2"]
                if (kind, dropout) == ("sp", 0):
                    meshes += ["tp=1", "tp=4"]
                for mesh in meshes:
                    text = gpt3.program(kind, mesh, dropout, s=300, heads=4, d=64)
                    ranks = math.prod(size for _, size in gpt3.axes(mesh))
                    name = gpt3_name(kind, mesh, dropout)
                    if only in name:
                        yield name, text, "", ranks, BOTH if target == HOPPER else PLAIN


def list_attentions(seeds):
    """[(name, text, ranks, sizes)] of random attentions."""
    for seed in seeds:
        program = WideAttentions(seed)
        text = with_names(program.text())
        for number, sizes in enumerate(program.runs()):
            yield f"attention-{seed}-{number}", text, program.ranks(), sizes


def pack_large(tools, only, out, target):
    """The GPT-3 block, and the program that holds it against float64; gives how many
    tests."""
    cases = [(kind, mesh, dropout, False) for kind in ("sp", "tp") for dropout in (0, 0.1)
             for mesh in ("tp=2", "tp=4")]
    cases += [("sp", mesh, 0, False) for mesh in ("dp=2,tp=2", "tp=2,dp=2")]
    cases += [("sp", mesh, 0, True) for mesh in ("tp=2", "tp=4")]
    cases = [case for case in cases if only in gpt3_name(*case)]
    for kind, mesh, dropout, backward in cases:
        folder = out / "large/tests" / gpt3_name(kind, mesh, dropout, backward)
        folder.mkdir(parents=True)
        program = folder / "program.mlir"
        program.write_text(gpt3.program(kind, mesh, dropout, backward=backward))
        tools.compile(program, "", folder / "module.tsr", f"--target={target}")
        flags = f"--mesh {mesh}"
        flags += " --tensor-parallel" if kind == "tp" else ""
        flags += f" --dropout {dropout}" if dropout else ""
        flags += " --gradient" if backward else ""
        ranks = math.prod(size for _, size in gpt3.axes(mesh))
        (folder / "test.env").write_text(f"RANKS={ranks}\nFLAGS='{flags}'\n")
    if cases:
        for name in ("block.py", "gpt3.py"):
            shutil.copy2(ROOT / "bench/gpu" / name, out / "large" / name)
        shutil.copytree(ROOT / "python/tessera", out / "large/tessera",
                        ignore=shutil.ignore_patterns("__pycache__"))
    return len(cases)


# The product is a temporary of 256 GiB.
HUGE = """
#m = #tv.mesh<tp = 1>
!x = tensor<262144x1xf32, #tv.view<#m, [did(tp) * _, _]>>
!w = tensor<262144x1xf32>
!a = tensor<262144x262144xf32>
!y = tensor<262144xf32>
func.func @main(%x: !x {tv.name = "x"}, %w: !w {tv.name = "w"}) -> (!y {tv.name = "y"}) {
  %a = tv.linear %x, %w : (!x, !w) -> !a
  %y = tv.reduce sum %a dims [1] : (!a) -> !y
  return %y : !y
}
"""


def hash_bytes(data, seed=0):
    """hashBytes of lib/Module/Builder.cpp."""
    mask, k0, k1 = 2**64 - 1, 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
    state = seed ^ (len(data) * k1 & mask)
    padded = data + bytes(8 - len(data) % 8)
    for (word,) in struct.iter_unpack("<Q", padded):
        product = (state ^ word) * k0 & mask
        state = ((product << 29 | product >> 35) + k1) & mask
    state ^= state >> 32
    state = state * k1 & mask
    return state ^ state >> 29


def with_hashes(module):
    """The bytes of a module that was changed, with hashes that fit (Format.h)."""
    module = bytearray(module)
    for i in range(struct.unpack_from("<I", module, 28)[0]):
        entry = 112 + 32 * i
        offset, size = struct.unpack_from("<QQ", module, entry + 8)
        digest = hash_bytes(bytes(module[offset:offset + size]))
        struct.pack_into("<Q", module, entry + 24, digest)
    struct.pack_into("<Q", module, 40, 0)
    page = bytes(module[:4096])
    struct.pack_into("<Q", module, 40, hash_bytes(page[112:], hash_bytes(page[:112])))
    return bytes(module)


def check_symmetric(plan):
    """With --symmetric and --copy-engines NCCL does other things than without only
    between symmetric temporaries."""
    for kind in ("allgather", "reducescatter"):
        ports = re.findall(rf"^{kind} over .*? (%\d+) to (%\d+)", plan, re.M)
        if not ports or any(f"\n{name} = symmetric " not in plan
                            for name in sum(ports, ())):
            sys.exit(f"pack.py: error: no {kind} between symmetric temporaries in the "
                     f"program of failures")


def pack_failures(tools, out, target):
    folder = out / "broken"
    folder.mkdir(parents=True)
    shutil.copy2(ROOT / "test/GPU/failures", out / "failures")
    if target != "cpu":
        for program in tools.bin.parent.glob("gpu/attention_bwd_traps_*_bf16"):
            shutil.copy2(program, folder)
    [(_, _, text)] = programs_in(ROOT / "examples/gpt/block_sp.mlir")
    case = Case(tools, text, folder, "program", {})
    pathlib.Path(case.inputs).rename(folder / "inputs.safetensors")
    # (Together, ops of so few positions gather x, a port, not a temporary.)
    flags = [f"--target={target}", "--op-by-op"]
    tools.compile(case.path, "tp=2", folder / "module.tsr", *flags)
    tools.compile(case.path, "tp=4", folder / "module4.tsr", *flags)
    check_symmetric(tools.call(tools.bin / "tessera-compile", case.path, "--mesh=tp=2",
                               *flags, "--compile-to=plan"))
    pathlib.Path(case.path).write_text(text.replace("gelu tanh", "silu"))
    tools.compile(case.path, "tp=2", folder / "other.tsr", f"--target={target}")
    if target != "cpu":
        tools.compile(case.path, "tp=2", folder / "cpu.tsr")
        # What no GPU but its own runs, for others.
        tools.compile(case.path, "tp=2", folder / "cubin.tsr", f"--target={HOPPER}")
        module = (folder / "cubin.tsr").read_bytes()
        name = HOPPER.encode()
        assert module.count(name) == 1
        (folder / "target.tsr").write_bytes(
            with_hashes(module.replace(name, b"cuda:sm_80a")))
        # The architecture that a cubin says it is for is in its ELF flags.
        cubin = bytearray(module)
        at = module.find(b"\x7fELF")
        while at >= 0:
            assert cubin[at + 49] == 90
            cubin[at + 49] = 80
            at = module.find(b"\x7fELF", at + 4)
        (folder / "cubin.tsr").write_bytes(with_hashes(cubin))
        pathlib.Path(case.path).write_text(HUGE)
        tools.compile(case.path, "", folder / "huge.tsr", f"--target={target}")
        column = np.zeros((262144, 1), np.float32)
        save_file({"x": column, "w": column}, folder / "huge.safetensors")
    pathlib.Path(case.path).unlink()
    (folder / "test.env").write_text(f"TARGET={target}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--element", nargs="+", default=["", "bf16"],
                        help="what f32 becomes, one variant each; '' leaves it")
    parser.add_argument("--attentions", metavar="FIRST:END", help="random ones, of these seeds")
    parser.add_argument("--target", default=HOPPER)
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / ".cache/minilm",
                        help="MiniLM, from examples/minilm/fetch")
    parser.add_argument("out", type=pathlib.Path)
    args = parser.parse_args()
    if args.out.exists():
        shutil.rmtree(args.out)
    tools = Tools(args.build, "threads")
    build = pathlib.Path(args.build).resolve()
    for file in ("bin/tessera-run", "bin/check-run", "lib/libtessera.so.0",
                 "lib/libtessera-mpi.so"):
        target = args.out / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2((build / file).resolve(), target)
        subprocess.run(["llvm-strip-22", target], check=True)
    # It holds a BLAS for every CPU there is.
    subprocess.run(["gzip", "-9", args.out / "lib/libtessera.so.0"], check=True)
    shutil.copy2(ROOT / "test/GPU/run", args.out / "run")
    shutil.copy2(ROOT / "scripts/mpi.env", args.out / "mpi.env")

    packed = failed = 0
    if args.attentions:
        programs = [(name, text, "", ranks, PLAIN, sizes) for name, text, ranks, sizes in
                    list_attentions(range(*map(int, args.attentions.split(":"))))]
    else:
        pack_failures(tools, args.out, args.target)
        if args.only in "minilm":
            packed += pack_minilm(tools, args.model, args.out, args.target)
        if args.target != "cpu":
            packed += pack_large(tools, args.only, args.out, args.target)
        programs = ((*program, None) for program in list_programs(
            tools, args.only, args.element, args.target))
    for name, text, mesh, ranks, (flags, runs), sizes in programs:
        try:
            packed += pack_program(tools, text, mesh, ranks, args.out / "tests" / name,
                                   args.target, flags, runs, sizes)
        except RuntimeError as error:
            failed += 1
            shutil.rmtree(args.out / "tests" / name)
            print(f"{name}: {error}")
    # (xz finds the kernels that modules have in common, far apart as they are.)
    data = args.out / "data.tar.xz"
    parts = [p for p in ("tests", "large", "broken", "weights") if (args.out / p).exists()]
    for part in parts:
        link_copies(args.out / part)
    subprocess.run(["tar", "-cJf", data, "-C", args.out, *parts], check=True)
    for part in parts:
        shutil.rmtree(args.out / part)
    size = sum(f.stat().st_size for f in args.out.rglob("*") if f.is_file()) / 2**20
    without_data = size - data.stat().st_size / 2**20
    print(f"{packed} tests packed, {failed} failed, {size:.1f} MiB, "
          f"{without_data:.1f} of it programs")
    for what, of, limit in (("the bundle", size, LIMIT),
                            ("the bundle without data", without_data,
                             LIMIT_WITHOUT_DATA)):
        if of >= limit:
            sys.exit(f"pack.py: error: {what} is {of:.1f} MiB, and must be smaller "
                     f"than {limit} MiB")
    sys.exit(1 if failed or not packed else 0)


if __name__ == "__main__":
    main()
