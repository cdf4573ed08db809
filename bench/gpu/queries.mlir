// Attention and its gradients of a sequence that two GPUs share (docs/performance.md).
#m = #tv.mesh<cp = 2>
!q = tensor<1x16x16384x128xbf16, #tv.view<#m, [_, _, did(cp) * _, _]>>
!lse = tensor<1x16x16384xf32>
func.func @main(%q: !q {tv.name = "q"}, %k: !q {tv.name = "k"}, %v: !q {tv.name = "v"},
                %do: !q {tv.name = "do"})
    -> (!q {tv.name = "o"}, !q {tv.name = "dq"}, !q {tv.name = "dk"}, !q {tv.name = "dv"}) {
  %o, %lse = tv.attention %q, %k, %v scale(0.08838834764) causal : (!q, !q, !q) -> (!q, !lse)
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.08838834764) causal
      : (!q, !q, !q, !q, !q, !lse) -> (!q, !q, !q)
  return %o, %dq, %dk, %dv : !q, !q, !q, !q
}
