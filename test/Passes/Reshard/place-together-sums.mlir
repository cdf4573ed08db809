// Sums of what is split are kept until the end, and scattered there where that cuts best.
// RUN: tessera-opt %s --split-input-file --tv-bind --tv-propagate-shardings \
// RUN:   --tv-decompose-reshardings --tv-elide-reshards --tv-place-together=explain=1 \
// RUN:   --tv-verify-decomposed 2> %t \
// RUN:   | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

#m = #tv.mesh<x = 2, y = 3>
!columns = tensor<3072x3072xf32, #tv.view<#m, [_, did(x) * _]>>
!blocks = tensor<3072x3072xf32, #tv.view<#m, [did(x) * _, did(y) * _]>>
!t = tensor<3072x3072xf32>

// Nothing says how the result lies: the addend is a sum for nothing, too.
// CHECK-LABEL: @added_before
// CHECK: tv.matmul
// CHECK-SAME: partial = [x : sum]
// CHECK: tv.add {{.*}} partial = [x : sum]>>) -> {{.*}} partial = [x : sum]>>
// CHECK-NEXT: tv.reshard
// CHECK-SAME: -> tensor<3072x3072xf32, #tv.view<#{{.*}}, [did(x) * 1536, did(y) * 1024]>>
// CHECK-NEXT: return
func.func @added_before(%a: !columns, %b: !blocks, %c: !columns) -> !t {
  %0 = tv.matmul %a, %b : (!columns, !blocks) -> !t
  %1 = tv.add %0, %c : (!t, !columns) -> !t
  return %1 : !t
}

// -----

#m = #tv.mesh<x = 2, y = 3>
!a = tensor<4x16xf32, #tv.view<#m, [did(x) * did(y) * _, _]>>
!b = tensor<4x16xf32, #tv.view<#m, [did(y) * did(x) * _, _]>>
!c = tensor<4x16xf32, #tv.view<#m, [_, did(y) * _]>>
!r = tensor<8x8xf32, #tv.view<#m, [did(x) * _, did(y) * _]>>
!t = tensor<4x16xf32>

// Four rows on six devices are no stage of a pipeline.
// REMARK: remark: places ops together: {{.*}}, 5.00{{.*}} us; otherwise
// CHECK-LABEL: @fewer_rows_than_devices
// CHECK: tv.add {{.*}} -> tensor<4x16xf32, {{.*}} partial = [y : sum]>>
// CHECK: tv.add {{.*}} -> tensor<4x16xf32, {{.*}} partial = [(x, y) : sum]>>
// CHECK-NEXT: tv.reshape
// CHECK-NEXT: tv.reshard
// CHECK-NEXT: return
func.func @fewer_rows_than_devices(%a: !a, %b: !b, %c: !c) -> !r {
  %0 = tv.mul %a, %a : (!a, !a) -> !t
  %1 = tv.add %b, %c : (!b, !c) -> !t
  %2 = tv.add %0, %1 : (!t, !t) -> !t
  %3 = tv.reshape %2 : (!t) -> !r
  return %3 : !r
}

// -----

// A view of which all is open says nothing: what is returned and used is scattered for
// its use.
// CHECK-LABEL: @open
// CHECK: tv.linear
// CHECK: tv.reshard {{.*}} -> tensor<1024x512xf32, #tv.view<#{{.*}}, [did(tp) * 256, 512]>>
// CHECK: tv.linear {{.*}} -> tensor<1024x512xf32, #tv.view<#{{.*}}, [did(tp) * 256, 512]>>
// CHECK: return
#m = #tv.mesh<tp = 4>
!x = tensor<1024x1024xf32, #tv.view<#m, [_, did(tp) * _]>>
!w = tensor<512x1024xf32>
!t = tensor<512x512xf32>
!y = tensor<1024x512xf32, #tv.view<#m, [?, ?]>>
func.func @open(%x: !x, %w: !w, %t: !t) -> (!y, !y, tensor<f32>) {
  %a = tv.linear %x, %w : (!x, !w) -> !y
  %b = tv.linear %a, %t : (!y, !t) -> !y
  %e = tv.reduce max %a dims [0, 1] : (!y) -> tensor<f32>
  return %a, %b, %e : !y, !y, tensor<f32>
}

// -----

// Small moves of one kind that one op waits for have one latency, whichever operand comes
// first.
// REMARK: [[#@LINE+8]]:1: remark: places ops together: 720 bytes, 10 us
#m = #tv.mesh<x = 2, y = 2>
!x = tensor<12x12xf32, #tv.view<#m, [_, did(x) * _]>>
!rows = tensor<12x12xf32, #tv.view<#m, [did(x) * _, _]>>
!blocks = tensor<12x12xf32, #tv.view<#m, [did(x) * _, did(y) * _]>>
!y = tensor<12x12xf32, #tv.view<#m, [_, did(y) * _]>>
!t = tensor<12x12xf32>
// CHECK-LABEL: @one_latency
func.func @one_latency(%a: !x, %b: !rows, %c: !blocks, %d: !x, %e: !blocks, %f: !y) -> !y {
  %0 = tv.matmul %a, %b : (!x, !rows) -> !t
  %1 = tv.matmul %0, %c : (!t, !blocks) -> !t
  %2 = tv.exp %e : (!blocks) -> !t
  %3 = tv.add %f, %2 : (!y, !t) -> !t
  %4 = tv.add %3, %d : (!t, !x) -> !t
  // CHECK: %[[A:.*]] = tv.reshard {{.*}}partial = [x : sum]>>) -> {{.*}}[12, did(y) * 6]>>
  // CHECK-NEXT: %[[B:.*]] = tv.reshard {{.*}}partial = [x : sum]>>) -> {{.*}}[12, did(y) * 6]>>
  // CHECK-NEXT: tv.mul %[[A]], %[[B]]
  %5 = tv.mul %4, %1 : (!t, !t) -> !y
  return %5 : !y
}
