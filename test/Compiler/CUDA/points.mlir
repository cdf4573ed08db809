// RUN: tessera-compile %s --compile-from=local --target=cuda:sm_90a --dump-dir=%t -o %t.tsr
// RUN: FileCheck %s < %t/7-scheduled.mlir
// RUN: FileCheck %s --check-prefix=TEXT < %t/kernels.cu
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

// CHECK: func.func @map_0(%[[X:.*]]: memref<?x64xf32, {{.*}}>, %[[R:.*]]: memref<?xf32, {{.*}}>, %[[B:.*]]: memref<64xf32, {{.*}}>, %[[Y:.*]]: memref<?x64xf32, {{.*}}>) attributes {plan.kernel} {
// CHECK: scf.parallel (%[[I:.*]], %[[J:.*]]) =
// CHECK-NEXT: memref.load %[[X]][%[[I]], %[[J]]] {schedule.role = #schedule.role<vector along 1>}
// CHECK-NEXT: memref.load %[[R]][%[[I]]] {schedule.role = #schedule.role<read>}
// CHECK-NEXT: memref.load %[[B]][%[[J]]] {schedule.role = #schedule.role<vector along 0>}
// CHECK-NEXT: arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: arith.addf
// CHECK-NEXT: math.tanh
// CHECK-NEXT: memref.store %{{.*}}, %[[Y]][%[[I]], %[[J]]] {schedule.role = #schedule.role<vector along 1>}
// CHECK: #schedule.loop<points threads(256) items(2048) as [<vectors(4) unroll(2) if [<aligned 0, 1>, <aligned 2, 0>, <aligned 3, 1>]>, <vectors(1) unroll(4)>]>

// The text is a transcription of it.
// TEXT: // map_0: tv.map at {{.*}}points.mlir:[[#@LINE+22]]
// TEXT: struct map_0_Parameters {
// TEXT-NEXT: Tensor<const float, 2, 1> x0;
// TEXT-NEXT: Tensor<const float, 1, 0> x1;
// TEXT-NEXT: Tensor<const float, 1, 0> x2;
// TEXT-NEXT: Tensor<float, 2, 1> y0;
// TEXT-NEXT: };
// TEXT: map_0(const __grid_constant__ map_0_Parameters p) {
// TEXT-NEXT: if (p.x0.fits<4>(1) && p.x2.fits<4>(0) && p.y0.fits<4>(1))
// TEXT-NEXT: map_0_points<4, 2>(p);
// TEXT-NEXT: else
// TEXT-NEXT: map_0_points<1, 4>(p);

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
