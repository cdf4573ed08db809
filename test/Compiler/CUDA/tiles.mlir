// RUN: tessera-compile %s --compile-from=local --target=cuda:sm_90a --dump-dir=%t -o %t.tsr
// RUN: FileCheck %s < %t/7-scheduled.mlir
// RUN: FileCheck %s --check-prefix=TEXT < %t/kernels.cu

// A transposed operand is read along its own memory, a square at a time.
// CHECK: memref.load %arg0[%{{.*}}, %{{.*}}] {schedule.role = #schedule.role<tile along 1 as 0>}
// CHECK: memref.load %arg1[%{{.*}}, %{{.*}}] {schedule.role = #schedule.role<vector along 1>}
// CHECK: memref.store %{{.*}}, %arg2[%{{.*}}, %{{.*}}] {schedule.role = #schedule.role<vector along 1>}
// CHECK: #schedule.loop<squares threads(128) items(4096) resident(8) side(64) across(0) as [<vectors(8) unroll(4) if [<aligned 0, 0>, <aligned 1, 1>, <aligned 2, 1>]>, <vectors(1) unroll(4)>]>
// TEXT: static __shared__ Tile<bf16, 64> map_0_tile0;
// TEXT: map_0_tile0.template read<V>(
// TEXT: map_0_tile0.template across<V>(row, column);
// TEXT: if (p.x0.fits<8>(0) && p.x1.fits<8>(1) && p.y0.fits<8>(1))
// TEXT-NEXT: map_0_tiles<8>(p);
// TEXT: map_0_tiles<1>(p);
#m = #tv.mesh<tp = 1>
#t = #tv.view<#m, [96, 160], alloc = (0, 1)>
#u = #tv.view<#m, [160, 96], alloc = (1, 0)>
#x = #tv.view<#m, [160, 96], alloc = (0, 1)>
!t = tensor<96x160xbf16, #tv.local<#t, of [96, 160]>>
!u = tensor<160x96xbf16, #tv.local<#u, of [160, 96]>>
!x = tensor<160x96xbf16, #tv.local<#x, of [160, 96]>>
func.func @main(%t: !t {tv.name = "t"}, %x: !x {tv.name = "x"})
    -> (!x {tv.name = "y"}) {
  %0 = tv.transpose %t perm [1, 0] : (!t) -> !u
  %1 = tv.map %0, %x : (!u, !x) -> !x (%a: bf16, %b: bf16) {
    %c = arith.addf %a, %b : bf16
    tv.yield %c : bf16
  }
  return %1 : !x
}
