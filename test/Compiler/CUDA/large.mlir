// Tensors of more than 2^31 elements: what counts them is wide enough, in each form
// of a kernel, and CUDA's compiler has nothing to say.
// RUN: tessera-compile %s --compile-from=local --target=cuda:sm_90a --dump-dir=%t -o %t.tsr 2>&1 | count 0
// RUN: FileCheck %s < %t/kernels.cu
#m = #tv.mesh<tp = 1>
#x = #tv.view<#m, [43008, 50257]>
#f = #tv.view<#m, [50257, 43008]>
#r = #tv.view<#m, [43008]>
#c = #tv.view<#m, [50257]>
#p = #tv.view<#m, [65537, 65537]>
#s = #tv.view<#m, []>
!x = tensor<43008x50257xbf16, #tv.local<#x, of [43008, 50257]>>
!f = tensor<50257x43008xbf16, #tv.local<#f, of [50257, 43008]>>
!r = tensor<43008xbf16, #tv.local<#r, of [43008]>>
!c = tensor<50257xbf16, #tv.local<#c, of [50257]>>
!p = tensor<65537x65537xbf16, #tv.local<#p, of [65537, 65537]>>
!s = tensor<bf16, #tv.local<#s, of []>>

// CHECK: map_0_points(
// CHECK-NEXT: using Point = uint64;
// CHECK-NEXT: const Point points = Point(43008) * Point(50257 / V);
// CHECK: map_1_tiles(
// CHECK: const uint64 squares = uint64((50257 + 63) / 64) * uint64((43008 + 63) / 64);
// CHECK: reduce_2_rows(
// CHECK-NEXT: using Row = uint32;
// CHECK-NEXT: using Point = uint64;
// CHECK: const Point chunks0 = Point(65537) * Point(65537 / V);
// CHECK: reduce_3_rows(
// CHECK: const Row rows = Row(50257 / V);
func.func @main(%x: !x {tv.name = "x"}, %p: !p {tv.name = "p"})
    -> (!x {tv.name = "a"}, !f {tv.name = "b"}, !s {tv.name = "c"}, !c {tv.name = "d"}) {
  %0 = tv.dropout %x rate(0.1) seed(7) stream(1) : (!x) -> !x
  %1 = tv.transpose %0 perm [1, 0] : (!x) -> !f
  %2 = tv.silu %1 : (!f) -> !f
  %3 = tv.reduce sum %p dims [0, 1] : (!p) -> !s
  %4 = tv.reduce max %x dims [0] : (!x) -> !c
  return %0, %2, %3, %4 : !x, !f, !s, !c
}
