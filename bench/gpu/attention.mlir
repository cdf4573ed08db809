// One attention, causal, 4096 positions, 16 heads of 128, to time its variants:
//
//     tessera-compile bench/gpu/attention.mlir --target=cuda:sm_90a -o attention.tsr
//     tessera-run attention.tsr --attention=cudnn --steps 50 --trace cudnn.json
//
// The trace has the attention as a step of its own: 69 GFLOP.
#m = #tv.mesh<tp = 1>
!n = tensor<1x16x4096x128xi64, #tv.view<#m, [_, _, _, _]>>
!x = tensor<1x16x4096x128xbf16, #tv.view<#m, [_, _, _, _]>>
!l = tensor<1x16x4096xf32>
func.func @main() -> (!x {tv.name = "o"}) {
  %h = tv.iota 1 : () -> !n
  %s = tv.iota 2 : () -> !n
  %d = tv.iota 3 : () -> !n
  %q = tv.map %h, %s, %d : (!n, !n, !n) -> !x (%i: i64, %j: i64, %k: i64) {
    %c31 = arith.constant 31 : i64
    %c15 = arith.constant 15 : i64
    %a = arith.muli %j, %k : i64
    %b = arith.addi %a, %i : i64
    %r = arith.remsi %b, %c31 : i64
    %e = arith.subi %r, %c15 : i64
    %f = arith.sitofp %e : i64 to bf16
    %eighth = arith.constant 1.250000e-01 : bf16
    %g = arith.mulf %f, %eighth : bf16
    tv.yield %g : bf16
  }
  %v = tv.map %q : (!x) -> !x (%a: bf16) {
    %b = arith.negf %a : bf16
    tv.yield %b : bf16
  }
  %o, %lse = tv.attention %q, %q, %v scale(8.838835e-02) causal : (!x, !x, !x) -> (!x, !l)
  return %o : !x
}
