// What a gradient reads behind its captured tensors is made before it: a block mask of larger
// blocks, which a map makes.
// RUN: tessera-opt %s --tessera="to=kernels target=cuda:sm_90a" --interpret=2 -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera="to=kernels target=cuda:sm_90a attention=math,flash" --interpret=2 -o /dev/null | FileCheck %s
// CHECK: interpret: @main equals the source on 2 ranks
#m = #tv.mesh<tp = 2>
!h = tensor<1x2x70x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!k = tensor<1x2x5x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!l = tensor<1x2x70xf32>
!c = tensor<70x5xf32>
!bm = tensor<1x2x2x1xi8>
func.func @main(%do: !h, %q: !h, %k: !k, %v: !k, %c: !c) -> (!k, !c) {
  %bm = tv.block_mask of [70, 5] blocks [64, 128] : () -> !bm
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %m = arith.cmpi sle, %ki, %qi : index
      tv.yield %m : i1
    }
  %o, %lse = tv.attention %q, %k, %v scale(0.125) block_mask(%bm) blocks [64, 128]
      : (!h, !k, !k, !bm) -> (!h, !l)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %c[%qi, %ki] : !c -> f32
      %y = arith.addf %s, %x : f32
      tv.yield %y : f32
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %m = arith.cmpi sle, %ki, %qi : index
      tv.yield %m : i1
    }
  %dq, %dk, %dv, %dc = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125) captured %c
      block_mask(%bm) blocks [64, 128] : (!h, !h, !k, !k, !h, !l, !c, !bm) -> (!h, !k, !k, !c)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %c[%qi, %ki] : !c -> f32
      %y = arith.addf %s, %x : f32
      tv.yield %y : f32
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %m = arith.cmpi sle, %ki, %qi : index
      tv.yield %m : i1
    }
  return %dk, %dc : !k, !c
}
