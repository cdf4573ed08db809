// What is normalized along a split dimension stays split: its composites become
// reductions along it and pointwise ops. Sums of rows go to all, no row does.
// RUN: tessera-opt %s --split-input-file --tessera=to=planned --mlir-print-local-scope | FileCheck %s
// RUN: sed 's/4096/6/g; s/8192/10/g' %s | tessera-opt --split-input-file --tessera=to=local --interpret=4 -o /dev/null

// CHECK-LABEL: @main
// CHECK-NOT: tv.reshard {{.*}} -> tensor<4096x8192xf32
// CHECK: tv.log {{.*}} -> tensor<4096x8192xf32, #tv.view<#tv.mesh<x = 4>, [4096, did(x) * 2048]
// CHECK-NOT: tv.reshard {{.*}} -> tensor<4096x8192xf32
// CHECK: return
#m = #tv.mesh<x = 4>
!x = tensor<4096x8192xf32, #tv.view<#m, [_, did(x) * _]>>
!t = tensor<4096x8192xf32>
func.func @main(%x: !x) -> tensor<4096xf32> {
  %p = tv.softmax %x dim 1 : (!x) -> !t
  %q = tv.log %p : (!t) -> !t
  %r = tv.mul %q, %p : (!t, !t) -> !t
  %s = tv.reduce sum %r dims [1] : (!t) -> tensor<4096xf32>
  return %s : tensor<4096xf32>
}

// -----

// Returned, too, and read by what cuts it likewise.
// CHECK-LABEL: @main
// CHECK-SAME: -> (tensor<4096x8192xf32, #tv.view<#tv.mesh<x = 4>, [4096, did(x) * 2048]
// CHECK-NOT: tv.reshard {{.*}} -> tensor<4096x8192xf32
// CHECK: return
#m = #tv.mesh<x = 4>
!x = tensor<4096x8192xf32, #tv.view<#m, [_, did(x) * _]>>
!t = tensor<4096x8192xf32>
func.func @main(%x: !x, %w: tensor<8192xf32>, %l: tensor<4096xi32> {tv.range = [0, 8]}) -> (!t, tensor<4096xf32>) {
  %p = tv.rms_norm %x, %w epsilon(1.0e-5) : (!x, tensor<8192xf32>) -> !t
  %v = tv.cross_entropy %p, %l : (!t, tensor<4096xi32>) -> tensor<4096xf32>
  return %p, %v : !t, tensor<4096xf32>
}

// -----

// Where a split weight alone cuts it, the weight is gathered, and no row of x is.
// CHECK-LABEL: @main
// CHECK: %[[W:.*]] = tv.reshard %arg1 plan <all_gather
// CHECK: tv.rms_norm %arg0, %[[W]]
// CHECK-SAME: -> tensor<4096x8192xf32, #tv.view<#tv.mesh<x = 4>, [4096, 8192]
// CHECK-NOT: tv.reshard
// CHECK: return
#m = #tv.mesh<x = 4>
!w = tensor<8192xf32, #tv.view<#m, [did(x) * _]>>
func.func @main(%x: tensor<4096x8192xf32>, %w: !w) -> tensor<4096x8192xf32> {
  %p = tv.rms_norm %x, %w epsilon(1.0e-5) : (tensor<4096x8192xf32>, !w) -> tensor<4096x8192xf32>
  return %p : tensor<4096x8192xf32>
}
