// An argument and a result on the devices of another mesh: the module lists them with the
// tensors, from which the runtime finds each rank's part, and what moves is told. (A softmax
// is not pointwise: it runs on the program's devices.)
// RUN: tessera-compile %s --compile-to=plan -o - 2> %t.moves | FileCheck %s
// RUN: FileCheck %s --check-prefix=MOVES < %t.moves
// RUN: not tessera-compile %s --strict -o /dev/null 2>&1 | FileCheck %s --check-prefix=STRICT

// CHECK: mesh <x = 4>
// CHECK-NEXT: %0 = external f32 of [10, 16] as [did(x) * 3, 16], alloc = (0, 1) // x
// CHECK-NEXT: %1 = external f32 of [10, 16] as [did(x) * 3, 16], alloc = (0, 1) on [0, 1, 3, 2] // y
// CHECK: output 'r' %[[R:.*]]
// CHECK: permute over [x] %1 to %[[Y:[0-9]+]]
// CHECK: launch {{.*}} %0, %[[Y]], %[[S:[0-9]+]]
// CHECK: permute over [x] %[[S]] to %[[R]]
// MOVES: devices.mlir:[[#@LINE+8]]:{{.*}}: permute over [x] of 192 bytes on a device
// MOVES: devices.mlir:{{.*}}: permute over [x] of 192 bytes on a device
// STRICT: error: strict mode: the program does not write this move, permute over [x] of 192 bytes on a device, from [did(x) * 3, 16] on <x = 4, devices = [0, 1, 3, 2]> to [did(x) * 3, 16] on <x = 4>
#m = #tv.mesh<x = 4>
#n = #tv.mesh<y = 4, devices = [0, 1, 3, 2]>
!x = tensor<10x16xf32, #tv.view<#m, [did(x) * _, _]>>
!y = tensor<10x16xf32, #tv.view<#n, [did(y) * _, _]>>
func.func @main(%x: !x {tv.name = "x"},
                %y: !y {tv.name = "y"}, %z: !x {tv.name = "z"})
    -> (!y {tv.name = "r"}, !x {tv.name = "s"}) {
  %t = tv.add %x, %y : (!x, !y) -> tensor<10x16xf32>
  %s = tv.softmax %t dim 1 : (tensor<10x16xf32>) -> !y
  return %s, %z : !y, !x
}
