// Pages in the text of attention: the table is the functors', boxes of keys are of rows that
// a page and a block both have whole, and the launch is for all keys that the table has.
// RUN: tessera-compile %s --target=cuda:sm_90a --attention=flash --dump-dir=%t --dump-kernels=%t/programs -o %t.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: FileCheck %s < %t/kernels.cu
// RUN: FileCheck %s --check-prefix=PLAN < %t/plan.txt
// RUN: tessera-opt %s --tessera="to=scheduled target=cuda:sm_90a attention=flash" | sed 's/rows(4) keys/rows(192) keys/' > %t/tiles.mlir
// RUN: not tessera-opt %t/tiles.mlir --cuda-verify-schedule 2>&1 | FileCheck %s --check-prefix=TILES

// No spills, no serialised products.
// CLEAN-NOT: {{warning|error}}

// CHECK: struct attention_0_Mods : AttentionMods {
// CHECK: static constexpr int PageRows = 24;
// CHECK: static __device__ int page(const Args &args, int batch, int index) {
// CHECK-NEXT: return args.p->x3.data[batch * args.p->x3.stride[0] + index * args.p->x3.stride[1]];
// CHECK: static __device__ KeyRange keys(
// CHECK: f.batch = int(p.x0.size[0]);
// CHECK: f.key_heads = int(p.x1.size[1]);
// CHECK: f.keys = 216;
// PLAN: operand 1 in boxes of 1x1x8x64
// TILES: error: a block takes 128 queries, not 192
#m = #tv.mesh<tp = 2>
!q = tensor<5x16x1x64xbf16, #tv.view<#m, [_, (did(tp) * _ | 4) * 4, _, _]>>
!pages = tensor<40x4x24x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!table = tensor<5x9xi32>
!a = tensor<5x16x1x64xbf16>
func.func @main(%q: !q, %k: !pages, %v: !pages, %table: !table, %length: tensor<5xi32>) -> !a {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) pages(%table) : (!q, !pages, !pages, !table) -> (!a, tensor<5x16x1xf32>)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %n = tv.load %length[%b] : tensor<5xi32> -> i32
      %end = arith.index_cast %n : i32 to index
      %in = arith.cmpi slt, %ki, %end : index
      tv.yield %in : i1
    }
  return %a : !a
}
