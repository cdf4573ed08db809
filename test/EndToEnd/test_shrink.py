#!/usr/bin/env python3
"""What shrink.py leaves of a random program: the ops, views, axes and extents that an
all-reduce needs.

    test_shrink.py --build build
"""
import argparse
import os
import re
import tempfile

import shrink

PROGRAM = """
#m = #tv.mesh<x = 2, y = 3>
!w = tensor<12x8xf32, #tv.view<#m, [_, did(y) * _], alloc = (1, 0)>>
func.func @main(%x: tensor<6x8xf32, #tv.view<#m, [did(x) * _, _]>> {tv.name = "x"},
                %w: !w {tv.name = "w"}, %unused: tensor<4xf32>)
    -> (tensor<12x6xf32>, tensor<6x12xf32>) {
  %0 = tv.silu %x : (tensor<6x8xf32, #tv.view<#m, [did(x) * _, _]>>) -> tensor<6x8xf32>
  %1 = tv.linear %0, %w : (tensor<6x8xf32>, !w) -> tensor<6x12xf32>
  %2 = tv.gelu %1 : (tensor<6x12xf32>) -> tensor<6x12xf32>
  %3 = tv.transpose %2 perm [1, 0] : (tensor<6x12xf32>) -> tensor<12x6xf32>
  return %3, %2 : tensor<12x6xf32>, tensor<6x12xf32>
}
"""
# An error where the program communicates; as for any, %s is the program.
COMMAND = ["bash", "-c", "if tessera-opt --tessera=to=local %s | grep -q comm.all_reduce; "
           "then echo 'error: a sum of 6 rows' >&2; exit 1; fi"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.mlir")
        with open(path, "w") as file:
            file.write(PROGRAM)
        try:
            shrink.run(COMMAND, path, os.path.join(args.build, "bin"))
        except shrink.Failure as failure:
            assert failure.what() == "a sum of N rows", failure.what()
            text = shrink.smaller(PROGRAM, failure, seconds=300)
        else:
            raise AssertionError("the program has no sum")
    print(text)
    assert text.startswith("// RUN: bash -c 'if tessera-opt"), "a RUN line"
    assert re.findall(r"tv\.\w+(?= %)", text) == ["tv.linear"], "the op that sums"
    assert re.findall(r"did\(\w+\)", text) in (["did(y)"], ["did(x)"]), "the view that splits"
    assert "alloc" not in text and "unused" not in text, "nothing else"
    assert shrink.devices(text) == 2, "an axis"
    extents = [int(e) for e in re.findall(r"(?<=[<x])\d+(?=x)", text)]
    assert max(extents) <= 2, "small extents"


if __name__ == "__main__":
    main()
