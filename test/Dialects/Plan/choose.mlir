// RUN: tessera-opt %s | tessera-opt | FileCheck %s
// RUN: tessera-opt %s --mlir-print-op-generic | tessera-opt | FileCheck %s

#m = #tv.mesh<tp = 2>
!x = tensor<4x8xf32, #tv.local<#tv.view<#m, [4, 8]>, of [4, 8]>>
!l = tensor<4xf32, #tv.local<#tv.view<#m, [4]>, of [4]>>
// CHECK-LABEL: @choose
// CHECK: %[[A:.*]]:2 = plan.choose "attention" of "flash"(%arg0, %arg1), "math"(%arg0, %arg1) without {cudnn = "it is not compiled in"} from "tv.attention" : tensor<
// CHECK: plan.choose "attention" of "math"() without {flash = "it is for cuda:sm_90a"} from "tv.attention" on "that of 4 heads" {note = 1 : i64}{{$}}
// CHECK: %[[B:.*]] = plan.choose "attention" of "math"(%[[A]]#0) from "tv.attention" : tensor<
// CHECK: return %[[B]], %[[A]]#1
func.func @choose(%x: !x, %l: !l) -> (!x, !l) {
  %a:2 = plan.choose "attention" of "flash"(%x, %l), "math"(%x, %l)
    without {cudnn = "it is not compiled in"} from "tv.attention" : !x, !l
  plan.choose "attention" of "math"() without {flash = "it is for cuda:sm_90a"} from "tv.attention" on "that of 4 heads" {note = 1}
  %b = plan.choose "attention" of "math"(%a#0) from "tv.attention" : !x
  return %b, %a#1 : !x, !l
}

// What has no values is not dead.
// RUN: tessera-opt %s --cse --canonicalize | FileCheck %s --check-prefix=KEPT
// KEPT: of "math"() without
