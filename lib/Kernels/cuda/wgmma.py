#!/usr/bin/env python3
"""Writes wgmma.cuh: the products m64nNk16 that our kernels use, f32 accumulation.

    python3 wgmma.py > wgmma.cuh
    python3 wgmma.py --check wgmma.cuh      fails if that is not what it writes

Wgmma<T, N>::ss(d, a, b, accumulate)  d (+)= a b; a and b in shared memory, K-major, or
                                      MN-major as ss<true, true> says of them.
Wgmma<T, N>::ss_set(d, a, b)          d = a b.
Wgmma<T, N>::rs(d, a, b, accumulate)  a in registers, b in shared memory, MN-major.

T is bf16 or f16. d holds the N/2 elements of a thread, a fragment's order is in
ptx.cuh. Without `accumulate` d is overwritten, but its registers stay alive before;
where something else needs them, ss_set has d as an output alone.
"""

import sys

SHAPES = [("rs", 64), ("rs", 96), ("rs", 128), ("rs", 192), ("rs", 256),
          *(("ss", n) for n in (32, 64, 80, 96, 112, 128, 192, 256)),
          ("ss_set", 32), ("ss_set", 64), ("ss_set", 128)]
TYPES = ["bf16", "f16"]

HEADER = """\
//===- wgmma.cuh - products of a warp group, made by wgmma.py -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Wgmma<T, N>::ss(d, a, b, accumulate)  a and b in shared memory, K-major.
// Wgmma<T, N>::ss_set(d, a, b)          what d held is not read.
// Wgmma<T, N>::rs(d, a, b, accumulate)  a in registers, b MN-major.
//
// ss<true, false>: a is MN-major; ss<false, true>: b is.
//
//===----------------------------------------------------------------------===//

// clang-format off
#ifndef TESSERA_KERNELS_WGMMA_CUH
#define TESSERA_KERNELS_WGMMA_CUH

#include "ptx.cuh"

namespace tessera {

template <class T, int N> struct Wgmma;
"""


def rows(items, per_row, separator):
    return [separator.join(items[i:i + per_row]) for i in range(0, len(items), per_row)]


def method(form, n, element):
    """One static member function: the instruction with its operands."""
    acc = n // 2
    in_registers, fresh = form == "rs", form == "ss_set"
    operands = []

    def use(constraint):
        operands.append(constraint)
        return f"%{acc + len(operands) - 1}"

    a = ("{" + ",".join(use(f'"r"(a.r[{i}])') for i in range(4)) + "}" if in_registers
         else use('"l"(a)'))
    b = use('"l"(b)')
    p = "0" if fresh else use('"r"((int)accumulate)')
    transposed = "1" if in_registers else ", ".join(use(f'"n"((int){x})') for x in ("TA", "TB"))
    d_rows = rows([f"%{i}" for i in range(acc)], 16, ",")
    d_text = "\n".join(f'        "{row}{"," if i + 1 < len(d_rows) else ""}"' for i, row in enumerate(d_rows))
    kind = "=" if fresh else "+"
    out_rows = rows([f'"{kind}f"(d[{i}])' for i in range(acc)], 8, ",")
    outs = ",\n          ".join(out_rows)
    a_type = "Fragment16 const &" if in_registers else "uint64 "
    template = "" if in_registers else "template <bool TA = false, bool TB = false>\n  "
    flag = "" if fresh else ", bool accumulate"
    return f"""\
  {template}TSR_DEVICE void {form}(float (&d)[{acc}], {a_type}a, uint64 b{flag}) {{
    asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, {p}, 0;\\n"
        "wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{element}.{element} {{"
{d_text}
        "}}, {a}, {b}, p, 1, 1, {transposed};\\n}}"
        : {outs}
        : {",".join(operands)});
  }}
"""


def text():
    parts = [HEADER]
    for n in sorted({n for _, n in SHAPES}):
        for element in TYPES:
            methods = "".join(method(form, n, element) for form, m in SHAPES if m == n)
            parts.append(f"template <> struct Wgmma<{element}, {n}> {{\n{methods}}};\n")
    parts.append("\n} // namespace tessera\n\n#endif // TESSERA_KERNELS_WGMMA_CUH\n")
    return "".join(parts)


if sys.argv[1:2] == ["--check"]:
    with open(sys.argv[2]) as lines:
        if lines.read() != text():
            sys.exit(f"{sys.argv[2]} is not what wgmma.py writes: run it again")
else:
    print(text(), end="")
