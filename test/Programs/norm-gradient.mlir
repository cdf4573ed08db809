// Gradients of norms with those of their parameters: sums of columns beside the rows,
// which kernels for GPUs add up in runs of rows (tv-group-ops).
// RUN: tessera-opt %s --split-input-file --tv-inline --tv-differentiate -o %t
// RUN: tessera-opt %t --split-input-file --tessera="mesh=x=1 to=kernels target=cuda:sm_90a" | FileCheck %s

// A warp's rows; the last run is shorter. Three sums are of the norm's kernel if a
// device has 400 rows.
// CHECK-LABEL: func.func @main
// CHECK: plan.launch
// CHECK-NOT: plan.launch
// CHECK: return
// RAN x=1: nothing
// RAN x=2: all-reduce of 3 3168 bytes 0 copies
// RAN x=3: all-reduce of 3 4224 bytes 0 copies
// RAN x=4: all-reduce of 3 4752 bytes 0 copies
#m = #tv.mesh<x = 2>
!x = tensor<800x264xf32, #tv.view<#m, [did(x) * _, _]>>
!v = tensor<264xf32, #tv.view<#m, [_]>>
func.func private @norm(%x: !x, %g: !v, %b: !v) -> !x {
  %y = tv.layer_norm %x, %g, %b epsilon(1.0e-5) : (!x, !v, !v) -> !x
  return %y : !x
}
func.func @main(%x: !x, %g: !v, %b: !v, %dy: !x, %r: !x) -> (!x, !v, !v, !v) {
  %y, %d:3 = tv.gradient @norm(%x, %g, %b) of [0] with (%dy) to [0, 1, 2] : (!x, !v, !v, !x) -> (!x, !x, !v, !v)
  %s = tv.add %d#0, %r : (!x, !x) -> !x
  %0 = tv.reduce sum %s dims [0] : (!x) -> !v
  return %s, %d#1, %d#2, %0 : !x, !v, !v, !v
}

// -----

// A block's rows, of small floats, in two outer dimensions; a maximum.
// CHECK-LABEL: func.func @main
// CHECK: plan.launch
// CHECK-NOT: plan.launch
// CHECK: return
// RAN x=1: nothing
// RAN x=2: all-gather of 2 850368 bytes 1 copies
// RAN x=3: all-gather of 2 1139328 bytes 1 copies
// RAN x=4: all-gather of 2 1287936 bytes 1 copies
#m = #tv.mesh<x = 2>
!x = tensor<2x206x1032xbf16, #tv.view<#m, [_, did(x) * _, _]>>
!v = tensor<1032xbf16, #tv.view<#m, [_]>>
func.func private @norm(%x: !x, %g: !v) -> !x {
  %y = tv.rms_norm %x, %g epsilon(1.0e-5) : (!x, !v) -> !x
  return %y : !x
}
func.func @main(%x: !x, %g: !v, %dy: !x) -> (!x, !v, !v) {
  %y, %d:2 = tv.gradient @norm(%x, %g) of [0] with (%dy) to [0, 1] : (!x, !v, !x) -> (!x, !x, !v)
  %0 = tv.reduce max %dy dims [0, 1] : (!x) -> !v
  return %d#0, %d#1, %0 : !x, !v, !v
}

// -----

// Too few rows for runs: the sums have kernels of their own.
// CHECK-LABEL: func.func @main
// CHECK: plan.launch
// CHECK: plan.launch
// CHECK: return
// RAN x=1: nothing
// RAN x=2: all-reduce of 2 2112 bytes 0 copies
// RAN x=3: all-reduce of 2 2816 bytes 0 copies
// RAN x=4: all-reduce of 2 3168 bytes 0 copies
#m = #tv.mesh<x = 2>
!x = tensor<300x264xf32, #tv.view<#m, [did(x) * _, _]>>
!v = tensor<264xf32, #tv.view<#m, [_]>>
func.func private @norm(%x: !x, %g: !v, %b: !v) -> !x {
  %y = tv.layer_norm %x, %g, %b epsilon(1.0e-5) : (!x, !v, !v) -> !x
  return %y : !x
}
func.func @main(%x: !x, %g: !v, %b: !v, %dy: !x) -> (!x, !v, !v) {
  %y, %d:3 = tv.gradient @norm(%x, %g, %b) of [0] with (%dy) to [0, 1, 2] : (!x, !v, !v, !x) -> (!x, !x, !v, !v)
  return %d#0, %d#1, %d#2 : !x, !v, !v
}
