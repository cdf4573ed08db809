#!/usr/bin/env python3
"""Which keys the kernels of attention look at, by random masks of random parts of the
positions: `keys` of the functors, compiled for the host, beside their `mask`. No pair that
the mask keeps may be outside of it, neither end may fall as queries rise (bwd_tiles of
attention_bwd_order.cuh asks for that), and what one comparison says is said exactly. Where
a mask keeps ranges (KeepsRange), it keeps all of them.

    keys.py --build build --compiler clang++ [--seeds 0:120]
"""
import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
CHECK = """
#include "Emulation.h"
#include "OnHost.h"
#include "attention/attention_mods.cuh"
#include <cstdio>
using namespace tessera;
static const int64 kWindows[] = {17, -1};
template <class T> void set(T &) {}
template <int Unit> void set(Tensor<const int64, 1, Unit> &windows) {
  windows = {kWindows, {2}, {1}};
}
template <class Mods, class P>
void check(const char *name, const P &p, int queries, int keys, bool isExact) {
  const typename Mods::Args args = {&p};
  auto range = [&](int first, int last, int head) {
    return Mods::keys(args, 0, head, first, last, keys);
  };
  auto fail = [&](const char *what, int q, KeyRange r) {
    printf("%s: %s of query %d, [%d, %d)\\n", name, what, q, r.begin, r.end);
    exit(1);
  };
  long long skipped = 0;
  for (int head = 0; head < 2; ++head) {
    KeyRange before = {0, 0};
    for (int q = 0; q < queries; ++q) {
      const typename Mods::Row row = Mods::row(args, 0, head, q);
      const KeyRange own = range(q, q, head);
      int begin = keys, end = 0;
      for (int k = 0; k < keys; ++k) {
        const typename Mods::Column column = Mods::column(args, 0, k);
        const bool kept =
            Mods::mask(args, AttentionPair<Mods>{row, column, 0, head, q, k});
        if (Mods::KeepsRange && kept != (k >= own.begin && k < own.end))
          fail("another range is kept than that", q, own);
        if (!kept)
          continue;
        begin = min(begin, k), end = k + 1;
      }
      if (begin < end && (begin < own.begin || end > own.end))
        fail("a seen key is left out", q, own);
      if (isExact && begin < end && (begin != own.begin || end != own.end))
        fail("not all keys that are not seen are left out", q, own);
      if (q && (own.begin < before.begin || own.end < before.end))
        fail("an end falls at that", q, own);
      before = own;
      skipped += keys - max(0, min(own.end, keys) - own.begin);
      const int last = min(q + 63, queries - 1);
      const KeyRange tile = range(q, last, head), ofLast = range(last, last, head);
      if (tile.begin != own.begin || tile.end != ofLast.end)
        fail("a tile has other ends than its queries", q, tile);
    }
  }
  printf("%lld\\n", skipped * 50 / max(queries, 1) / max(keys, 1));
}
"""


class Mask:
    """A mask_mod: its text, and whether keys() should say all of it."""

    def __init__(self, rng):
        self.rng, self.lines, self.count = rng, [], 0

    def op(self, text, type="index"):
        self.count += 1
        self.lines.append(f"      %t{self.count} = {text} : {type}")
        return f"%t{self.count}"

    def constant(self, value):
        return self.op(f"arith.constant {value}")

    def rising(self, position):
        """What never falls as the position rises, of its quotients."""
        rng, kind = self.rng, self.rng.randrange(6)
        size = self.constant(rng.choice([1, 2, 3, 16, 40, 64]))
        if kind < 2:
            return position
        if kind == 2:
            return self.op(f"arith.divui {position}, {size}")
        if kind == 3:
            return self.op(f"arith.muli {self.rising(position)}, {size}")
        if kind == 4:  # rounded down
            rest = self.op(f"arith.remui {position}, {size}")
            return self.op(f"arith.subi {position}, {rest}")
        shift = self.op(f"arith.addi {position}, {size}")
        return self.op(f"arith.divui {shift}, {self.constant(rng.choice([2, 5, 32]))}")

    def side(self, position):
        rng = self.rng
        value = self.rising(position) if rng.randrange(8) else self.op(
            f"arith.remui {position}, {self.constant(7)}")
        shift = rng.randrange(4)
        if shift == 1:
            value = self.op(f"arith.addi {value}, {self.constant(rng.randrange(-300, 300))}")
        elif shift == 2 and position == "%qi":
            load = self.op("tv.load %w[%h]", "tensor<2xi64> -> i64")
            value = self.op(f"arith.addi {value}, "
                            + self.op(f"arith.index_cast {load}", "i64 to index"))
        return value

    def compare(self):
        a, b = self.side("%ki"), self.side("%qi")
        if self.rng.randrange(2):
            a, b = b, a
        predicate = self.rng.choice(["slt", "sle", "sgt", "sge", "eq"])
        return self.op(f"arith.cmpi {predicate}, {a}, {b}")

    def text(self):
        kept = self.compare()
        while self.rng.randrange(3) == 0:
            kept = self.op(f"arith.andi {kept}, {self.compare()}", "i1")
        return "\n".join(self.lines) + f"\n      tv.yield {kept} : i1"


def draw(seed):
    """A program, and what is to be checked of it."""
    rng = random.Random(seed)
    mask = Mask(rng)

    def view(axes):
        a, b = axes
        size, inner = rng.choice([1, 2, 5, 16, 64, 128]), rng.choice([1, 2, 3, 8])
        return rng.choice(["_", f"did({a}) * _", f"_ * did({a}) * {size}",
                           f"_ * did({a}) * {size} * did({b}) * {inner}"])

    queries, keys, size = rng.randrange(1, 900), rng.randrange(1, 900), rng.choice([2, 3])
    of_queries, is_grad = view("xz"), rng.randrange(3)
    of_keys = view("yu") if is_grad else "_"
    causal = " causal" if rng.randrange(3) == 0 else ""
    region = ("\n    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {\n"
              + mask.text() + "\n    }") if not causal or rng.randrange(2) else ""
    arguments = "%q: !q, %k: !k, %v: !k, %w: tensor<2xi64>"
    if is_grad:
        results, arguments = "!q, !k, !k", "%do: !q, %o: !q, %lse: !l, " + arguments
        text = ("%dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125)"
                f"{causal} : (!q, !q, !k, !k, !q, !l) -> (!q, !k, !k){region}\n"
                "  return %dq, %dk, %dv")
    else:
        results = "!q"
        text = (f"%o, %lse = tv.attention %q, %k, %v scale(0.125){causal} : (!q, !k, !k) -> "
                f"(!q, !l){region}\n  return %o")
    program = f"""#m = #tv.mesh<x = {size}, y = {size}, z = {size}, u = {size}>
!q = tensor<1x2x{queries}x64xbf16, #tv.view<#m, [_, _, {of_queries}, _]>>
!k = tensor<1x2x{keys}x64xbf16, #tv.view<#m, [_, _, {of_keys}, _]>>
!l = tensor<1x2x{queries}xf32, #tv.view<#m, [_, _, {of_queries}]>>
func.func @main({arguments}) -> ({results}) {{
  {text} : {results}
}}
"""
    parts = [size ** view.count("did") for view in (of_queries, of_keys)]
    turns = causal and not region and (of_queries + of_keys).count("_ * did")
    return program, queries // parts[0], keys // parts[1], bool(region), bool(turns), [
        rng.randrange(size) for _ in range(4)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--compiler", default="clang++")
    parser.add_argument("--seeds", default="0:120")
    args = parser.parse_args()
    first, end = map(int, args.seeds.split(":"))
    text, calls, bounded, ranges = CHECK, "", 0, 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for seed in range(first, end):
            program, queries, keys, has_region, turns, coordinates = draw(seed)
            (folder / "p.mlir").write_text(program)
            # The text is there before NVRTC is looked for, which takes long.
            run = subprocess.run(
                [pathlib.Path(args.build) / "bin/tessera-compile", folder / "p.mlir",
                 "--target=cuda:sm_90a", "--attention=flash", "--quiet", "--dump-dir", folder,
                 "-o", folder / "p.tsr"], capture_output=True, text=True,
                env=dict(os.environ, TESSERA_NVRTC="/nowhere"), timeout=60)
            if "need NVRTC" not in run.stderr:
                sys.exit(f"failed: seed {seed}: {run.stderr}\n{program}")
            kernels = (folder / "kernels.cu").read_text()
            name = re.search(r"struct (attention\w*)_Mods", kernels)[1]
            structs = [re.search(rf"^struct {name}_{what}\b.*?^}};$", kernels, re.M | re.S)[0]
                       for what in ("Parameters", "Mods")]
            if "bool mask(" not in structs[1]:
                continue
            has_keys = "KeyRange keys(" in structs[1]
            if turns and not has_keys:
                sys.exit(f"failed: seed {seed}: no bounds\n{program}")
            bounded += has_keys
            ranges += "KeepsRange = true" in structs[1]
            comparisons = structs[1].split("bool mask(")[1].count("const bool cmpi")
            text += f"namespace mask_{seed} {{\n" + "\n".join(structs) + "\n}\n"
            calls += f"{{\n  mask_{seed}::{name}_Parameters p = {{}};\n"
            for field in re.findall(r" (\w+);$", structs[0], re.M):
                calls += (f"  p.{field} = {coordinates[int(field[1:]) % 4]};\n"
                          if field[0] == "n" else f"  set(p.{field});\n")
            calls += (f'  check<mask_{seed}::{name}_Mods>("seed {seed}", p, {queries}, {keys}, '
                      f"{int(has_keys and comparisons == 1)});\n}}\n")
        (folder / "check.cpp").write_text(f"{text}int main() {{\n{calls}}}\n")
        subprocess.run([args.compiler, "-std=c++20", "-O1", "-w", "-march=x86-64-v3",
                        f"-I{ROOT}/lib/Kernels/cuda", f"-I{ROOT}/test/Compiler/CUDA",
                        folder / "check.cpp", "-o", folder / "check"], check=True)
        run = subprocess.run([folder / "check"], capture_output=True, text=True)
        if run.returncode:
            sys.exit("failed: " + run.stdout.splitlines()[-1])
        left_out = [int(line) for line in run.stdout.split()]
        print(f"{bounded} masks of {len(left_out)} have bounds, which leave out "
              f"{sum(left_out) // len(left_out)} % of all pairs; {ranges} keep ranges")
        if not ranges:
            sys.exit("failed: none keeps ranges")


if __name__ == "__main__":
    main()
