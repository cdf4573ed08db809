// A second mesh that lists its devices by the parts of its axis, the outer one inside: what
// rank 1 has in one mesh, rank 2 has in the other.
// RUN: tessera-opt %s --tessera=to=local --interpret=4 | FileCheck %s

// CHECK-COUNT-2: comm.permute {{.*}} over #mesh [x]
// CHECK-NOT: comm.
// RAN here: permute 128 bytes 0 copies, permute 128 bytes 0 copies
#m = #tv.mesh<x = 4>
#n = #tv.mesh<y = 4, devices = [0, 2, 1, 3]>
!x = tensor<8x16xf32, #tv.view<#m, [did(x) * _, _]>>
!y = tensor<8x16xf32, #tv.view<#n, [did(y) * _, _]>>
func.func @main(%x: !x, %y: !y) -> (!y, !x) {
  %r = tv.reshard %x : (!x) -> !y
  %s = tv.add %r, %y : (!y, !y) -> !y
  %t = tv.reshard %y : (!y) -> !x
  return %s, %t : !y, !x
}
