#!/usr/bin/env python3
"""What every kernel for GPUs must be: no spills, no stack, no remark of ptxas, no more
static shared memory than a launch allows, and 16 bytes an access where its text means
that.

Compiles each program of examples/, test/Programs and test/Compiler/programs for
a target, with f32 as bf16, examples in their own precision too, and the block of the
benchmarks (bench/gpu/gpt3.py) with dropout, and its gradients; some with products as
kernels of our own where they fit, of which there must be some. The compiler warns of
spills, stack and remarks; here a warning is a failure, as is a machine without NVRTC.
Then the machine code of each kernel is looked at, that of some through cuobjdump too.
Only a program that says "may spill" may, up to 64 bytes, or as many as it says: loads
that are looked at, beside accumulators that leave them some twenty registers.

For another target than cuda:sm_90a nothing may be of one architecture alone, and there
are no products of our own.

    gate.py --build build [--target cuda:sm_80] FILE...
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import machine_code

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "bench/gpu"), str(ROOT / "test/EndToEnd")]
import gpt3  # noqa: E402
from run_programs import with_element  # noqa: E402

BYTES = {"bf16": 2, "f16": 2, "f8E4M3": 1, "f8E5M2": 1, "float": 4, "double": 8, "int8": 1,
         "uint8": 1, "bool": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8,
         "uint64": 8}


MOST_SPILLED = 64
HOPPER = "cuda:sm_90a"
# Tensor cores' and copy engines' instructions of sm_90a, and what goes with them.
HOPPERS = re.compile(r"wgmma|cp\.async\.bulk|tensormap|mbarrier|setmaxnreg|cluster|\.sm_90")


def spills_little(line, most):
    spilled = re.search(r"warning: .* has (\d+) bytes of spills", line)
    return spilled and int(spilled[1]) <= most


def inspect(text, accesses, may_spill):
    """What the machine code of a kernel lacks of what its text means."""
    local = sum(count for (operation, _), count in accesses.items() if operation[2:] == "L")
    # CUDA's own sine, cosine and tangent of large numbers have an array.
    if local and not may_spill and not re.search(r"\b(sin|cos|tan)f?\(", text):
        yield f"{local} accesses of local memory"
    for shared in re.findall(r"^// \w+: \d+ registers, (\d+) bytes of shared", text, re.M):
        if int(shared) > 48 << 10:
            yield f"{shared} bytes of static shared memory"
    if re.search(r"points = .*Point\(0\b", text):
        return  # of no element it loads none
    types = {name: type for type, name in
             re.findall(r"Tensor<(?:const )?(\w+),[^>]*> (\w+);", text)}
    # The text asks whether neighbours are one access before it uses such accesses. (Of
    # integers of 64 bits that are made narrower only halves may be loaded.)
    wide = {"x": [], "y": []}
    for name, count in re.findall(r"p\.(\w+)\.fits<(\d+)>", text):
        if int(count) * BYTES[types[name]] >= 16 and (name[0] == "y"
                                                      or "int64" not in types[name]):
            wide[name[0]].append(name)
    for kind, operations in ("x", ("LDG", "LDGSTS")), ("y", ("STG",)):
        if wide[kind] and not any(accesses[operation, 128] for operation in operations):
            yield f"no access of 16 bytes ({operations[0]}) for {', '.join(wide[kind])}"


class Gate:
    def __init__(self, build, folder, target):
        self.target = target
        self.compiler = build / "bin/tessera-compile"
        self.env = dict(os.environ, TESSERA_CACHE=str(build / "cache"))
        self.folder, self.kernels, self.products = pathlib.Path(folder), 0, 0

    def compile(self, text, phase, *flags):
        """What is not as it must be."""
        path, kernels = self.folder / "program.mlir", self.folder / "kernels"
        shutil.rmtree(kernels, ignore_errors=True)
        path.write_text(text)
        run = subprocess.run([self.compiler, path, f"--compile-from={phase}",
                              f"--target={self.target}", *flags, "--dump-kernels", kernels,
                              "-o", self.folder / "module.tsr"],
                             capture_output=True, text=True, env=self.env, timeout=300)
        may_spill = re.search(r"may spill(?: (\d+) bytes)?", text)
        most = may_spill and int(may_spill[1] or MOST_SPILLED)
        warnings = [line for line in run.stderr.splitlines() if "warning:" in line
                    and "of the work " not in line
                    and not (may_spill and spills_little(line, most))]
        if run.returncode or warnings:
            return run.stderr or f"exit status {run.returncode}"
        why = []
        for file in sorted(kernels.glob("*.cu")):
            cubin = file.with_suffix(".cubin")
            accesses = machine_code.accesses(cubin)
            if self.kernels % 50 == 0 and accesses != machine_code.accesses_by_cuobjdump(cubin):
                why.append(f"{file.stem}: cuobjdump finds other accesses")
            self.kernels += 1
            self.products += "gemm<" in file.read_text()
            why += [f"{file.stem}: {what}"
                    for what in inspect(file.read_text(), accesses, may_spill)]
            if self.target != HOPPER:
                ptx = file.with_suffix(".ptx").read_text()
                why += [f"{file.stem}: {found[0]} in its PTX"
                        for found in [HOPPERS.search(ptx)] if found]
                if f".target {self.target.removeprefix('cuda:')}" not in ptx:
                    why.append(f"{file.stem}: its PTX is for another target")
        return "; ".join(why)


OWN = "with own products"


def variants_of(file, text, phase):
    """{name: text} of what a program of a file is compiled as."""
    variants = {"as it is": text}
    if phase == "source" and "f32" in text and "/minilm/" not in file:
        variants["in bf16"] = with_element(text, "bf16")
        if "/examples/" not in file:
            del variants["as it is"]
    if pathlib.Path(file).stem in ("own-products", "block_sp"):
        variants[OWN] = variants.get("in bf16", text)
    return variants


def programs(files):
    """(name, variant, phase, text) of each."""
    for file in files:
        phase = "local" if "/Compiler/" in file else "source"
        parts = [p for p in re.split(r"^// -----$", pathlib.Path(file).read_text(), flags=re.M)
                 if "func.func @main" in p and "expected-error" not in p]
        for number, part in enumerate(parts):
            for variant, text in variants_of(file, part, phase).items():
                yield f"{file}#{number}", variant, phase, text
    for mesh in "tp=2", "tp=4":
        for variant in "as it is", OWN:
            yield f"gpt3.py {mesh}", variant, "source", gpt3.program("sp", mesh, 0.1)
        yield (f"gpt3.py {mesh} --gradient", "as it is", "source",
               gpt3.program("sp", mesh, backward=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--target", default=HOPPER)
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    build = pathlib.Path(args.build).resolve()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        gate = Gate(build, folder, args.target)
        hopper = args.target == HOPPER
        for name, variant, phase, text in programs(args.files):
            if not hopper and (variant == OWN or name.startswith("gpt3.py")):
                continue
            why = gate.compile(text, phase,
                               *(["--matmul=own,cublaslt"] if variant == OWN else []))
            if why:
                failed += 1
                print(f"{name} {variant}: {why}")
            else:
                passed += 1
    print(f"{passed} programs passed, {failed} failed; {gate.kernels} kernels, "
          f"{gate.products} products")
    sys.exit(1 if failed or not passed or hopper != bool(gate.products) else 0)


if __name__ == "__main__":
    main()
