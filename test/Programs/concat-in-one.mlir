// The operands of a concat go in one exchange, along whatever axes each of them moves.
// RUN: tessera-opt %s --split-input-file --tessera="to=local" --interpret=4 | FileCheck %s %no_other_collective

// CHECK: :2 = comm.exchange %arg0, %arg1 over {{.*}} [a, b]
// CHECK: tv.concat
// CHECK-NEXT: return
// RAN here: exchange of 2 96 bytes 1 copies
#m = #tv.mesh<a = 2, b = 2>
!x = tensor<8x8xf32, #tv.view<#m, [did(a) * did(b) * _, _]>>
!z = tensor<8x8xf32, #tv.view<#m, [did(a) * _, did(b) * _]>>
!y = tensor<16x8xf32, #tv.view<#m, [did(a) * _, did(b) * _]>>
func.func @main(%x: !x, %z: !z) -> !y {
  %y = tv.concat %x, %z dim 0 : (!x, !z) -> !y
  return %y : !y
}

// -----

// Large ones too; what moves alone is what it was.
// CHECK: :2 = comm.exchange %arg0, %arg1 over {{.*}} [a, b]
// CHECK: tv.concat
// CHECK: comm.all_to_all
// CHECK-NEXT: return
// RAN here: exchange of 2 2097152 bytes 0 copies, all-to-all 1048576 bytes 1 copies
#m = #tv.mesh<a = 2, b = 2>
!x = tensor<2048x512xf32, #tv.view<#m, [did(a) * _, _]>>
!z = tensor<2048x512xf32, #tv.view<#m, [did(b) * did(a) * _, _]>>
!y = tensor<4096x512xf32, #tv.view<#m, [did(a) * did(b) * _, _]>>
!t = tensor<4096x512xf32, #tv.view<#m, [did(a) * _, did(b) * _]>>
func.func @main(%x: !x, %z: !z) -> (!y, !t) {
  %y = tv.concat %x, %z dim 0 : (!x, !z) -> !y
  %t = tv.reshard %y : (!y) -> !t
  return %y, %t : !y, !t
}
