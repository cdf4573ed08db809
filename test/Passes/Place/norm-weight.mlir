// Where its weight alone is split, a norm has that gathered, and no row of x moves: each
// device takes some of what it has.
// RUN: tessera-opt %s --tessera=to=planned --mlir-print-local-scope | FileCheck %s
// RUN: sed 's/4096/6/g; s/8192/10/g' %s | tessera-opt --tessera=to=local --interpret=4 -o /dev/null

// CHECK-LABEL: @main
// CHECK: %[[X:.*]] = tv.reshard %arg0 plan <slice
// CHECK: %[[W:.*]] = tv.reshard %arg1 plan <all_gather
// CHECK: tv.rms_norm %[[X]], %[[W]]
// CHECK-SAME: -> tensor<4096x8192xf32, #tv.view<#tv.mesh<x = 4>, [did(x) * 1024, 8192]
// CHECK-NOT: tv.reshard
// CHECK: return
#m = #tv.mesh<x = 4>
!w = tensor<8192xf32, #tv.view<#m, [did(x) * _]>>
func.func @main(%x: tensor<4096x8192xf32>, %w: !w) -> tensor<4096x8192xf32> {
  %p = tv.rms_norm %x, %w epsilon(1.0e-5) : (tensor<4096x8192xf32>, !w) -> tensor<4096x8192xf32>
  return %p : tensor<4096x8192xf32>
}
