// RUN: tessera-compile %s --compile-from=local --target=cuda:sm_90a --dump-dir=%t -o %t.tsr
// RUN: FileCheck %s < %t/kernels.cu
// RUN: tessera-compile %s --compile-from=local --target=cuda:sm_90a --compile-to=plan | FileCheck %s --check-prefix=PLAN

// Neighbouring elements are one access of 16 bytes; what a whole chunk shares,
// here the row's factor, is loaded once.
#m = #tv.mesh<tp = 1>
#x = #tv.view<#m, [_, 64]>
#r = #tv.view<#m, [_]>
#b = #tv.view<#m, [64]>
!x = tensor<?x64xf32, #tv.local<#x, of [n, 64]>>
!r = tensor<?xf32, #tv.local<#r, of [n]>>
!b = tensor<64xf32, #tv.local<#b, of [64]>>

// CHECK: // map_0: tv.map at {{.*}}points.mlir:[[#@LINE+34]]
// CHECK: struct map_0_Parameters {
// CHECK-NEXT: Tensor<const float, 2, 1> x0;
// CHECK-NEXT: Tensor<const float, 1, 0> x1;
// CHECK-NEXT: Tensor<const float, 1, 0> x2;
// CHECK-NEXT: Tensor<float, 2, 1> y0;
// CHECK-NEXT: };
// CHECK: template <int V, int U>
// CHECK-NEXT: static __device__ void map_0_points(
// CHECK: for (Point at = Point(blockIdx.x) * 256 * U + threadIdx.x;
// CHECK: float once0[U];
// CHECK: load(x0_0[u], p.x0.at(i0, i1));
// CHECK: load(x2_0[u], p.x2.at(i1));
// CHECK: for (int v = 0; v < V; ++v) {
// CHECK: = x0_0[u].get(v) * once0[u];
// CHECK: = tanh32(
// CHECK: y0_.lane[v] =
// CHECK: store(p.y0.at(i2, i3), y0_);
// CHECK: extern "C" __global__ void __launch_bounds__(256)
// CHECK-NEXT: map_0(const __grid_constant__ map_0_Parameters p) {
// CHECK-NEXT: if (p.x0.fits<4>(1) && p.x2.fits<4>(0) && p.y0.fits<4>(1))
// CHECK-NEXT: map_0_points<4, 2>(p);
// CHECK-NEXT: else
// CHECK-NEXT: map_0_points<1, 4>(p);

// Each block takes as many points as its threads load at a time.
// PLAN: for cuda:sm_90a
// PLAN: launch map_0 %0, %1, %2, %3 //
// PLAN-NEXT: as map_0 of 256 threads over %3.0, 64 by 2048
func.func @main(%x: !x {tv.name = "x", tv.dims = ["n"]},
                %r: !r {tv.name = "r", tv.dims = ["n"]}, %b: !b {tv.name = "b"})
    -> (!x {tv.name = "y"}) attributes {tv.sizes = {n = 64 : i64}} {
  %0 = tv.broadcast %r dims [0] like %x : (!r, !x) -> !x
  %1 = tv.broadcast %b dims [1] like %x : (!b, !x) -> !x
  %2 = tv.map %x, %0, %1 : (!x, !x, !x) -> !x (%a: f32, %s: f32, %c: f32) {
    %p = arith.mulf %a, %s : f32
    %q = arith.addf %p, %c : f32
    %t = math.tanh %q : f32
    tv.yield %t : f32
  }
  return %2 : !x
}
