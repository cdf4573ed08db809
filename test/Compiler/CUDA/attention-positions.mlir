// Kernels leave out keys behind the diagonal where devices have parts of the positions,
// whose numbers begin at a coordinate's multiple: of the queries, of runs of keys that are
// heads, and of a gradient's keys; and where blocks of them are dealt out in turn.
// RUN: split-file %s %t
// RUN: tessera-compile %t/queries.mlir --target=cuda:sm_90a --attention=flash --quiet --dump-dir=%t/queries -o %t.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: FileCheck %s --check-prefix=QUERIES < %t/queries/kernels.cu
// RUN: tessera-compile %t/keys.mlir --target=cuda:sm_90a --attention=flash --quiet --dump-dir=%t/keys -o %t.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: FileCheck %s --check-prefix=KEYS < %t/keys/kernels.cu
// CLEAN-NOT: {{warning|error}}
// QUERIES: struct attention_0_Mods
// QUERIES: static __device__ int64 last_key(
// QUERIES: const int64 [[BEGIN:.*]] = index_cast0 * 1024;
// QUERIES: return addi0;
// QUERIES: f.causal_shift = int(attention_0_Mods::last_key(f.args, IndexPair{}));
// RUN: sed 's/did(cp) \* _/_ * did(cp) * 128/' %t/queries.mlir | tessera-compile --target=cuda:sm_90a --attention=flash --quiet --dump-dir=%t/turns -o %t.tsr
// RUN: FileCheck %s --check-prefix=TURNS < %t/turns/kernels.cu
// TURNS: struct attention_0_Mods
// TURNS: static __device__ int64 last_key(
// TURNS: const int64 [[BLOCK:.*]] = divui(at.query, int64(128));
// TURNS: static __device__ int64 diagonal(const Args &args, int64 query) {
// TURNS: return last_key(args, IndexPair{0, 0, query, 0});
// TURNS: f.causal_shift = 0;
// RUN: sed 's/did(cp) \* _/_ * did(cp) * 128/' %t/keys.mlir | tessera-compile --target=cuda:sm_90a --attention=flash --quiet --dump-dir=%t/turned -o %t.tsr
// RUN: FileCheck %s --check-prefix=TURNED < %t/turned/kernels.cu
// A device's key k has the number 512 (k / 128) + k % 128, behind that of its first.
// TURNED: struct attention_grad_{{[0-9]+}}_Mods
// TURNED: static __device__ KeyRange keys(
// TURNED: const int64 [[BEGIN:.*]] = index_cast0 * 128;
// TURNED: end = min(end, keys_below<512, 128, 1>(int64(32257) + 1 * last + -1 * int64([[BEGIN]])));
// KEYS: struct attention_1_Mods
// KEYS: static __device__ KeyRange keys(
// KEYS: const int64 remui0 =
// KEYS-NEXT: const int64 [[BEGIN:.*]] = remui0 * 8192;
// KEYS: end = min(end, int64(32257) + 1 * last + -1 * int64([[BEGIN]]));
// KEYS: struct attention_grad_{{[0-9]+}}_Mods
// KEYS: static __device__ int64 last_key(
// KEYS: const int64 {{.*}} = index_cast0 * 8192;
// KEYS: f.causal_shift = int(attention_grad_{{[0-9]+}}_Mods::last_key(f.args, IndexPair{}));

//--- queries.mlir
#m = #tv.mesh<cp = 4>
!q = tensor<1x2x4096x128xbf16, #tv.view<#m, [_, _, did(cp) * _, _]>>
func.func @main(%q: !q, %k: !q, %v: !q) -> !q {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!q, !q, !q) -> (!q, tensor<1x2x4096xf32>)
  return %o : !q
}

//--- keys.mlir
#m = #tv.mesh<cp = 4>
!q = tensor<1x2x512x128xbf16, #tv.view<#m, [_, _, _, _]>>
!k = tensor<1x2x32768x128xbf16, #tv.view<#m, [_, _, did(cp) * _, _]>>
!l = tensor<1x2x512xf32>
func.func @main(%do: !q, %q: !q, %k: !k, %v: !k) -> (!q, !k, !k) {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!q, !k, !k) -> (!q, !l)
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125) causal
      : (!q, !q, !k, !k, !q, !l) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}
