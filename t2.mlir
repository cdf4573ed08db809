#m = #tv.mesh<tp = 2>
!q = tensor<1x4x250x64xf32, #tv.view<#m, [_, did(tp) * _, _, _]>>
!l = tensor<1x4x250xf32>
!bm = tensor<1x1x2x2xi8>
func.func @main(%q: !q {tv.name="q"}) -> (!q {tv.name="y"}) {
  %bm = tv.block_mask of [250, 250] blocks [128, 128] : () -> !bm
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %n = arith.constant 150 : index
      %c = arith.cmpi slt, %ki, %n : index
      tv.yield %c : i1
    }
  %o, %l = tv.attention %q, %q, %q scale(0.125) block_mask(%bm) blocks [192, 192] : (!q, !q, !q, !bm) -> (!q, !l)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %n = arith.constant 150 : index
      %c = arith.cmpi slt, %ki, %n : index
      tv.yield %c : i1
    }
  return %o : !q
}
