// What a broadcast makes is made again where it is needed otherwise: a conflict with a
// large value costs what the small one that it is made of costs.
// RUN: tessera-opt %s --split-input-file --tessera=to=planned --mlir-print-local-scope | FileCheck %s

// Columns of x stay where they are; s goes to all.
// CHECK-LABEL: @rows
// CHECK: %[[S:.*]] = tv.reshard %arg1 plan <all_gather over #tv.mesh<x = 4> [x]{{.*}} -> tensor<4096xf32,
// CHECK: tv.broadcast %[[S]]
// CHECK: tv.mul
// CHECK-SAME: -> tensor<4096x8192xf32, #tv.view<#tv.mesh<x = 4>, [4096, did(x) * 2048]
// CHECK-NOT: tv.reshard
// CHECK: return
#m = #tv.mesh<x = 4>
!x = tensor<4096x8192xf32, #tv.view<#m, [_, did(x) * _]>>
!s = tensor<4096xf32, #tv.view<#m, [did(x) * _]>>
!t = tensor<4096x8192xf32>
func.func @rows(%x: !x, %s: !s) -> !t {
  %b = tv.broadcast %s dims [0] : (!s) -> !t
  %y = tv.mul %x, %b : (!x, !t) -> !t
  return %y : !t
}

// -----

// Logits over the vocabulary, labels over tokens: the labels are gathered, and no logits.
// CHECK-LABEL: @loss
// CHECK-NOT: tv.reshard {{.*}}x50304xf32
// CHECK: return
#m = #tv.mesh<x = 4>
!x = tensor<4096x50304xf32, #tv.view<#m, [_, did(x) * _]>>
!l = tensor<4096xi32, #tv.view<#m, [did(x) * _]>>
func.func @loss(%x: !x, %l: !l) -> tensor<4096xf32> {
  %v = tv.cross_entropy %x, %l : (!x, !l) -> tensor<4096xf32>
  return %v : tensor<4096xf32>
}
