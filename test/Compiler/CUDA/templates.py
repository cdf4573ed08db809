#!/usr/bin/env python3
"""The kernels for tensor cores, lib/Kernels/cuda/{attention/attention_{fwd,few,bwd},gemm/gemm}.cuh,
as machine code: products of warp groups and bulk copies, no spills, no stack, no products that
ptxas serialises.

    templates.py
"""
import re
import sys
import tempfile

import machine_code

TEXT = """
#include "attention/attention_bwd.cuh"
#include "attention/attention_few.cuh"
#include "attention/attention_fwd.cuh"
#include "gemm/gemm.cuh"
using namespace tessera;
struct CausalMods : AttentionMods { static constexpr bool Causal = true; };
struct GeluMods : GemmMods {
  struct Args { const float *bias; };
  TSR_DEVICE void epilogue(Args const &a, float (&x)[1], GemmElement const &at) {
    x[0] = gelu_tanh(x[0] + a.bias[at.column]);
  }
};
#define ATTENTION(NAME, T, D, MODS, ROWS, KEYS, STAGES)                        \\
  using NAME##_C = FwdConfig<T, D, MODS, D, ROWS, KEYS, STAGES>;               \\
  extern "C" __global__ void __launch_bounds__(NAME##_C::Threads, 1)           \\
  NAME(const __grid_constant__ FwdMaps maps,                                   \\
       const __grid_constant__ FwdParams<MODS::Args> p) {                      \\
    attention_fwd<NAME##_C>(maps, p);                                          \\
  }
#define FEW(NAME, T, D, MODS, ROWS, KEYS, STAGES)                              \\
  using NAME##_C = FewConfig<T, D, MODS, D, ROWS, KEYS, STAGES, 132>;          \\
  extern "C" __global__ void __launch_bounds__(NAME##_C::Threads, 1)           \\
  NAME(const __grid_constant__ FewMaps maps,                                   \\
       const __grid_constant__ FewParams<MODS::Args> p) {                      \\
    attention_few<NAME##_C>(maps, p);                                          \\
  }
#define BACKWARD(NAME, T, D, MODS, ORDERED, ROWS, STAGES)                      \\
  using NAME##_C = BwdConfig<T, D, MODS, ORDERED, ROWS, 128, STAGES>;          \\
  extern "C" __global__ void __launch_bounds__(NAME##_C::Threads, 1)           \\
  NAME(const __grid_constant__ BwdMaps maps,                                   \\
       const __grid_constant__ BwdParams<MODS::Args> p) {                      \\
    attention_bwd<NAME##_C>(maps, p);                                          \\
  }
#define GEMM(NAME, T, COLUMNS, STAGES, MODS)                                   \\
  extern "C" __global__ void __cluster_dims__(2)                               \\
  __launch_bounds__(GemmConfig<T, COLUMNS, STAGES, 2, MODS>::Threads, 1)       \\
  NAME(const __grid_constant__ GemmMaps<> maps,                                  \\
       const __grid_constant__ GemmParams<MODS::Args> p) {                     \\
    gemm<GemmConfig<T, COLUMNS, STAGES, 2, MODS>>(maps, p);                    \\
  }
"""
KERNELS = {
    "attention_128": "ATTENTION(attention_128, bf16, 128, AttentionMods, 128, 128, 2)",
    "attention_128_causal":
        "ATTENTION(attention_128_causal, bf16, 128, CausalMods, 128, 128, 2)",
    "attention_64_causal":
        "ATTENTION(attention_64_causal, f16, 64, CausalMods, 192, 128, 4)",
    "attention_256": "ATTENTION(attention_256, bf16, 256, AttentionMods, 128, 80, 2)",
    "few_128": "FEW(few_128, bf16, 128, CausalMods, 8, 64, 3)",
    "few_256": "FEW(few_256, f16, 256, AttentionMods, 64, 32, 1)",
    "backward_128": "BACKWARD(backward_128, bf16, 128, AttentionMods, false, 64, 3)",
    "backward_128_causal":
        "BACKWARD(backward_128_causal, f16, 128, CausalMods, false, 64, 3)",
    "backward_64_causal":
        "BACKWARD(backward_64_causal, bf16, 64, CausalMods, true, 128, 2)",
    "backward_128_ordered":
        "BACKWARD(backward_128_ordered, bf16, 128, CausalMods, true, 64, 3)",
    "gemm_256": "GEMM(gemm_256, bf16, 256, 4, GemmMods)",
    "gemm_192_gelu": "GEMM(gemm_192_gelu, bf16, 192, 5, GeluMods)",
}


def main():
    cubin, log = machine_code.compile("\n".join([TEXT, *KERNELS.values()]))
    why = re.findall(r".*(?:C75\d\d|warning).*", log)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        parts = re.split(r"Function : (\w+)", machine_code.disassemble(file.name))
    code = dict(zip(parts[1::2], parts[2::2]))
    if code.keys() != KERNELS.keys():
        sys.exit(f"failed: kernels are {', '.join(sorted(code))}")
    for name, text in code.items():
        counts = {op: len(re.findall(rf"\b{op}\b", text))
                  for op in ("HGMMA", "UTMALDG", "UTMASTG", "LDL", "STL")}
        print(name, *(f"{op} {count}" for op, count in counts.items()))
        for op, count in counts.items():
            # Few results leave from registers.
            none = ("LDL", "STL") + ("UTMASTG",) * name.startswith("few")
            if (count == 0) != (op in none):
                why.append(f"{name}: {count} of {op}")
    if why:
        sys.exit("failed: " + "; ".join(why))


if __name__ == "__main__":
    main()
