// A block mask that tells heads apart, and devices that have parts of a group's heads.
// RUN: tessera-opt %s --tessera="to=scheduled target=cuda:sm_90a attention=flash" | FileCheck %s
// RUN: tessera-opt %s --tessera="to=scheduled target=cuda:sm_90a attention=flash" --interpret=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// CHECK: plan.block_walks {{.*}} to memref<1x4x2x11xi32
// CHECK: plan.attention_grad {{.*}}memref<1x2x70x64xbf16{{.*}}memref<1x1x100x64xbf16
// EQUAL: interpret: @main equals the source on 2 ranks
#m = #tv.mesh<tp = 2>
!h = tensor<1x4x70x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!k = tensor<1x1x100x64xbf16>
!l = tensor<1x4x70xf32>
!bm = tensor<1x4x2x1xi8>
func.func @main(%do: !h, %q: !h, %k: !k, %v: !k) -> (!h, !k, !k) {
  %bm = tv.block_mask of [70, 100] blocks [64, 128] : () -> !bm
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %last = arith.muli %h, %qi : index
      %m = arith.cmpi sle, %ki, %last : index
      tv.yield %m : i1
    }
  %o, %lse = tv.attention %q, %k, %v scale(0.125) block_mask(%bm) blocks [64, 128]
      : (!h, !k, !k, !bm) -> (!h, !l)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %last = arith.muli %h, %qi : index
      %m = arith.cmpi sle, %ki, %last : index
      tv.yield %m : i1
    }
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125)
      block_mask(%bm) blocks [64, 128] : (!h, !h, !k, !k, !h, !l, !bm) -> (!h, !k, !k)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %last = arith.muli %h, %qi : index
      %m = arith.cmpi sle, %ki, %last : index
      tv.yield %m : i1
    }
  return %dq, %dk, %dv : !h, !k, !k
}
