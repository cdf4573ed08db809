// Kernels leave out what a mask does where positions are those of a device's coordinate: a
// window of a part of the queries, and the diagonal of runs of keys, which are heads.
// RUN: split-file %s %t
// RUN: tessera-compile %t/queries.mlir --target=cuda:sm_90a --attention=flash --quiet --dump-dir=%t/queries -o %t.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: FileCheck %s --check-prefix=QUERIES < %t/queries/kernels.cu
// RUN: tessera-compile %t/keys.mlir --target=cuda:sm_90a --attention=flash --quiet --dump-dir=%t/keys -o %t.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: FileCheck %s --check-prefix=KEYS < %t/keys/kernels.cu
// CLEAN-NOT: {{warning|error}}
// QUERIES: struct attention_0_Mods
// QUERIES: static __device__ KeyRange keys(
// QUERIES: const int64 [[BEGIN:.*]] = index_cast0 * 1024;
// QUERIES: begin = max(begin, int64(-99) + 1 * first + 1 * int64([[BEGIN]]));
// KEYS: struct attention_1_Mods
// KEYS: static __device__ KeyRange keys(
// KEYS: const int64 remui0 =
// KEYS-NEXT: const int64 [[BEGIN:.*]] = remui0 * 8192;
// KEYS: end = min(end, int64(32257) + 1 * last + -1 * int64([[BEGIN]]));

//--- queries.mlir
#m = #tv.mesh<cp = 4>
!q = tensor<1x2x4096x128xbf16, #tv.view<#m, [_, _, did(cp) * _, _]>>
func.func @main(%q: !q, %k: !q, %v: !q) -> !q {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!q, !q, !q) -> (!q, tensor<1x2x4096xf32>)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %hundred = arith.constant 100 : index
      %d = arith.subi %qi, %ki : index
      %m = arith.cmpi slt, %d, %hundred : index
      tv.yield %m : i1
    }
  return %o : !q
}

//--- keys.mlir
#m = #tv.mesh<cp = 4>
!q = tensor<1x2x512x128xbf16, #tv.view<#m, [_, _, _, _]>>
!k = tensor<1x2x32768x128xbf16, #tv.view<#m, [_, _, did(cp) * _, _]>>
func.func @main(%q: !q, %k: !k, %v: !k) -> !q {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!q, !k, !k) -> (!q, tensor<1x2x512xf32>)
  return %o : !q
}
