// What a target for GPUs from sm_80 on has, and which target `cuda` alone is.
// RUN: tessera-compile %s --target=cuda:sm_80 --dump-dir=%t --dump-kernels=%t/programs -o %t.tsr
// RUN: FileCheck %s --check-prefix=PLAN < %t/plan.txt
// RUN: FileCheck %s --check-prefix=PTX < %t/programs/map_0.ptx
// RUN: head -1 %t/programs/map_0.cu | FileCheck %s --check-prefix=NVCC
// PLAN: for cuda:sm_80
// PLAN: alternative 0: attention cudnn, math, flash (not there: it is for cuda:sm_90a)
// PLAN: contract {{.*}} bias
// PTX: .target sm_80
// NVCC: // nvcc -std=c++17 -gencode=arch=compute_80,code=sm_80 map_0.cu

// A later dump removes it, PTX and all.
// RUN: tessera-compile %s --target=cuda:sm_90a --attention=math --dump-kernels=%t/programs -o %t.90a.tsr
// RUN: not test -e %t/programs/map_0.ptx

// What it has no code for says where there is some.
// RUN: not tessera-compile %s --target=cuda:sm_86 --attention=flash 2>&1 | FileCheck %s --check-prefix=FLASH
// FLASH: targets.mlir:[[# @LINE + 28]]:14: error: has no variant that is allowed; flash does not fit: it is for cuda:sm_90a; what would fit: cudnn, math
// RUN: not tessera-compile %s --target=cuda:sm_86 --attention=math --matmul=own 2>&1 | FileCheck %s --check-prefix=OWN
// OWN: error: has no variant that is allowed; own does not fit: it is for cuda:sm_90a; what would fit: cublaslt

// `cuda` alone, by the driver, here one of a GPU of compute capability 9.0.
// RUN: env LD_LIBRARY_PATH=%fakes tessera-compile %s --target=cuda --compile-to=kernels | FileCheck %s --check-prefix=MACHINE
// MACHINE: module attributes {plan.target = #plan.target<"cuda:sm_90a">}
// Of several, what runs on the oldest; of one that there is no target for, none.
// RUN: env LD_LIBRARY_PATH=%fakes TESSERA_FAKE_CUDA_CAPABILITY="9.0 8.6 8.9" tessera-compile %s --target=cuda --compile-to=kernels | FileCheck %s --check-prefix=OLDEST
// OLDEST: plan.target = #plan.target<"cuda:sm_86">
// RUN: not env LD_LIBRARY_PATH=%fakes TESSERA_FAKE_CUDA_CAPABILITY="9.0 7.5" tessera-compile %s --target=cuda 2>&1 | FileCheck %s --check-prefix=OLD
// OLD: error: 'cuda' alone means the GPU of this machine, but that has compute capability 7.5, for which there is no target; name a target, as cuda:sm_90a or cuda:sm_80
// RUN: mkdir -p %t/none && touch %t/none/libcuda.so.1
// RUN: not env LD_LIBRARY_PATH=%t/none tessera-compile %s --target=cuda 2>&1 | FileCheck %s --check-prefix=NO-DRIVER
// NO-DRIVER: error: 'cuda' alone means the GPU of this machine, but it has no driver: {{.*}}none/libcuda.so.1: file too short; name a target, as cuda:sm_90a or cuda:sm_80

// Programs say what they are for by name.
// RUN: tessera-compile %s --target=cuda:sm_89 --compile-to=kernels -o %t.mlir
// RUN: not tessera-compile %t.mlir --compile-from=kernels --target=cuda:sm_80 2>&1 | FileCheck %s --check-prefix=PLANNED
// PLANNED: error: the program is planned for 'cuda:sm_89', not for 'cuda:sm_80'

#m = #tv.mesh<tp = 1>
!x = tensor<2x4x16x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!h = tensor<2x4x16x64xbf16>
!w = tensor<64x64xbf16>
!b = tensor<64xbf16>
func.func @main(%q: !x {tv.name = "q"}, %k: !h {tv.name = "k"}, %v: !h {tv.name = "v"},
                %w: !w {tv.name = "w"}, %b: !b {tv.name = "b"}) -> (!h {tv.name = "y"}) {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) : (!x, !h, !h) -> (!h, tensor<2x4x16xf32>)
  %s = tv.silu %o : (!h) -> !h
  %y = tv.linear %s, %w bias %b : (!h, !w, !b) -> !h
  return %y : !h
}
