// The gradient of packed.mlir, which becomes DIR/backward.tsr likewise.
#m = #tv.mesh<tp = 1>
!x = tensor<1x16x32768x128xbf16, #tv.view<#m, [_, did(tp) * _, _, _], alloc = (0, 2, 1, 3)>>
!lse = tensor<1x16x32768xf32>
!begins = tensor<1x33xi32>
func.func @main(%do: !x {tv.name = "dout"}, %q: !x {tv.name = "q"}, %k: !x {tv.name = "k"},
                %v: !x {tv.name = "v"}, %o: !x {tv.name = "o"}, %lse: !lse {tv.name = "lse"},
                %begins: !begins {tv.name = "begins"})
    -> (!x {tv.name = "dq"}, !x {tv.name = "dk"}, !x {tv.name = "dv"}) {
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.08838834764831845) causal
    sequences(%begins) : (!x, !x, !x, !x, !x, !lse, !begins) -> (!x, !x, !x)
  return %dq, %dk, %dv : !x, !x, !x
}
