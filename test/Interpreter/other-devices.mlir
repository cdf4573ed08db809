// Addends on devices that another mesh lists: each is moved to the device that has its
// coordinates, to and from one that has the sum of half of them.
// RUN: tessera-opt %s --tessera=to=local --interpret=4 --interpret-sizes=s=12 | FileCheck %s
// RUN: tessera-opt %s --tessera=to=local --interpret=4 --interpret-sizes=s=7 -o /dev/null
// RUN: tessera-opt %s --tessera=to=kernels --interpret=4 --interpret-sizes=s=5 -o /dev/null

// CHECK: func.func @main
// CHECK: comm.exchange %arg1, %arg2, %arg0
// CHECK: comm.permute
// CHECK-NOT: comm.
// CHECK: return %{{.*}}, %arg3
#m = #tv.mesh<x = 4>
#n = #tv.mesh<y = 2, z = 2, devices = [1, 3, 2, 0]>
!x = tensor<?x3xf32, #tv.view<#m, [did(x) * _, _]>>
!u = tensor<?x3xf32, #tv.view<#m, [_, _], partial = [x : max]>>
!v = tensor<?x3xf32, #tv.view<#n, [_, _], partial = [(y, z) : max]>>
!p = tensor<?x3xf32, #tv.view<#n, [did(y) * _, _], partial = [z : sum]>>
func.func @main(%x: !x {tv.dims = ["s"]}, %p: !p {tv.dims = ["s"]}, %v: !v {tv.dims = ["s"]}, %u: !u {tv.dims = ["s"]})
    -> (!p, !p, !x, !u) attributes {tv.sizes = {s = 12 : i64}} {
  %q = tv.reshard %x : (!x) -> !p
  %r = tv.add %p, %p : (!p, !p) -> !p
  %s = tv.reshard %v : (!v) -> !x
  return %q, %r, %s, %u : !p, !p, !x, !u
}
