#!/usr/bin/env python3
"""Neighbours share a call of Philox: the machine code of dropout has about 14 wide
products for 8 elements, not for each, whatever a kernel's form.

    dropout.py --build build
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import machine_code

# Name: element, columns, what follows the dropout, most wide products, form.
CASES = {
    # Two vectors of 8 or 4, and four elements where memory is not aligned.
    "points of 16 bits": ("bf16", 4096, "", (2 + 4) * 14 + 20, "_points<8, 2>"),
    "points of 32 bits": ("f32", 4096, "", (2 + 4) * 14 + 20, "_points<4, 2>"),
    # The same in each of three stages.
    "rows": ("bf16", 4096, "norm", 3 * (2 + 4) * 14 + 80, "_rows<BlockRow<256>, 8, 2, Keep::Shared>"),
}
PROGRAM = """
#m = #tv.mesh<x = 1>
!x = tensor<4096xCOLUMNSxELEMENT, #tv.view<#m, [_, _]>>
!w = tensor<COLUMNSxELEMENT>
func.func @main(%x: !x, %y: !x, %w: !w) -> !x {
  %0 = tv.dropout %x rate(0.1) seed(7) stream(1) : (!x) -> !x
  %1 = tv.add %0, %y : (!x, !x) -> !x
  NORM%2 = tv.layer_norm %1, %w, %w epsilon(1.0e-5) : (!x, !w, !w) -> !x
  return %LAST : !x
}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    build = pathlib.Path(parser.parse_args().build).resolve()
    why = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, (element, columns, then, most, form) in CASES.items():
            text = PROGRAM.replace("COLUMNS", str(columns)).replace("ELEMENT", element)
            text = text.replace("NORM", "" if then else "// ")
            text = text.replace("LAST", "2" if then else "1")
            (folder / "p.mlir").write_text(text)
            kernels = folder / name
            subprocess.run([build / "bin/tessera-compile", folder / "p.mlir",
                            "--target=cuda:sm_90a", "--dump-kernels", kernels,
                            "-o", folder / "p.tsr"], check=True,
                           env=dict(os.environ, TESSERA_CACHE=str(build / "cache")))
            (source,) = kernels.glob("*.cu")
            if form not in source.read_text():
                why.append(f"{name}: the kernel is not {form}")
            code = machine_code.disassemble(source.with_suffix(".cubin"))
            wide = len(re.findall(r"\bIMAD\.WIDE\.U32\b", code))
            print(f"{name}: {wide} wide products, at most {most}")
            if not most // 2 < wide <= most:
                why.append(f"{name}: {wide} wide products, not {most}")
    if why:
        sys.exit("failed: " + "; ".join(why))


if __name__ == "__main__":
    main()
