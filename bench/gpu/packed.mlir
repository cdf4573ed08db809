// The program of attention_sparse.py's packed sequences, 32 of them in 32768 positions:
//
//     tessera-compile bench/gpu/packed.mlir --target=cuda:sm_90a --attention=flash \
//       -o DIR/forward.tsr
#m = #tv.mesh<tp = 1>
!x = tensor<1x16x32768x128xbf16, #tv.view<#m, [_, did(tp) * _, _, _], alloc = (0, 2, 1, 3)>>
!lse = tensor<1x16x32768xf32>
!begins = tensor<1x33xi32>
func.func @main(%q: !x {tv.name = "q"}, %k: !x {tv.name = "k"}, %v: !x {tv.name = "v"},
                %begins: !begins {tv.name = "begins"})
    -> (!x {tv.name = "o"}, !lse {tv.name = "lse"}) {
  %o, %lse = tv.attention %q, %k, %v scale(0.08838834764831845) causal sequences(%begins)
    : (!x, !x, !x, !begins) -> (!x, !lse)
  return %o, %lse : !x, !lse
}
