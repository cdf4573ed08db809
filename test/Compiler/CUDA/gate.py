#!/usr/bin/env python3
"""What every kernel for GPUs must be: no spills, no stack, no remark of ptxas.

Compiles each program of examples/, test/Programs and test/Compiler/programs for
cuda:sm_90a, in its own precision and with f32 as bf16. The compiler warns of what is
not so; here a warning is a failure, as is a machine without NVRTC.

    gate.py --build build FILE...
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def compile(compiler, text, phase, folder, env):
    """What the compiler says that it should not."""
    path = os.path.join(folder, "program.mlir")
    pathlib.Path(path).write_text(text)
    run = subprocess.run([compiler, path, f"--compile-from={phase}",
                          "--target=cuda:sm_90a", "--dump-kernels",
                          os.path.join(folder, "kernels"), "-o",
                          os.path.join(folder, "module.tsr")],
                         capture_output=True, text=True, env=env, timeout=300)
    if run.returncode or "warning:" in run.stderr:
        return run.stderr or f"exit status {run.returncode}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    build = pathlib.Path(args.build).resolve()
    env = dict(os.environ, TESSERA_CACHE=str(build / "cache"))
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for file in args.files:
            phase = "local" if "/Compiler/" in file else "source"
            text = pathlib.Path(file).read_text()
            parts = [p for p in re.split(r"^// -----$", text, flags=re.M)
                     if "func.func @main" in p and "expected-error" not in p]
            for number, part in enumerate(parts):
                variants = {"as it is": part}
                if phase == "source" and "f32" in part and "/minilm/" not in file:
                    variants["in bf16"] = "\n".join(
                        line if "lse" in line else line.replace("f32", "bf16")
                        for line in part.split("\n"))
                for name, variant in variants.items():
                    why = compile(build / "bin/tessera-compile", variant, phase,
                                  folder, env)
                    if why:
                        failed += 1
                        print(f"{file}#{number} {name}: {why}")
                    else:
                        passed += 1
        kernels = len(list(pathlib.Path(folder, "kernels").glob("*.cu")))
    print(f"{passed} programs passed, {failed} failed; up to {kernels} kernels each")
    sys.exit(1 if failed or not passed or not kernels else 0)


if __name__ == "__main__":
    main()
