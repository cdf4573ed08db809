// A pad in one loop with what reads it: the loop branches, and divides by the local size
// of a dimension, which is known at run time.
// RUN: tessera-opt %s --tessera=to=kernels --interpret=2 --interpret-sizes=b=7,s=3 -o /dev/null
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!x = tensor<?x?x24xf64, #tv.view<#m, [did(x) * _, _, _]>>
!y = tensor<?x?x27xf64, #tv.view<#m, [did(x) * _, _, _]>>
func.func @main(%x: !x {tv.name = "x", tv.dims = ["b", "s"]}, %y: !y {tv.name = "y", tv.dims = ["b", "s"]}) -> tensor<?x?x27xf64> attributes {tv.sizes = {b = 8 : i64, s = 600 : i64}} {
  %0 = tv.pad %x low [0, 0, 1] high [0, 0, 2] value 0.5 : f64 : (!x) -> tensor<?x?x27xf64>
  %1 = tv.add %0, %y : (tensor<?x?x27xf64>, !y) -> tensor<?x?x27xf64>
  return %1 : tensor<?x?x27xf64>
}
