// Views by name, from a file: the program that views beside the types give.
// RUN: split-file %s %t
// RUN: tessera-compile %t/gpt.mlir --shardings=%t/good --compile-to=local -o %t/file.mlir
// RUN: tessera-compile %t/beside.mlir --compile-to=local -o %t/beside.mlir.local
// RUN: diff %t/file.mlir %t/beside.mlir.local
// RUN: FileCheck %s < %t/file.mlir
// CHECK: tv.name = "layers.0.wq", tv.user_view = #tv.view<#tv.mesh<tp = 2>, [did(tp) * _, _]>
// CHECK: tv.name = "layers.1.wq", tv.user_view = #tv.view<#tv.mesh<tp = 2>, [did(tp) * _, _]>

// RUN: tessera-opt %t/gpt.mlir "--tessera=to=local shardings=%t/good mesh=tp=3" --interpret=3 -o /dev/null 2>&1 | FileCheck %s --check-prefix=EQUAL
// EQUAL: @main equals the source on 3 ranks

// RUN: not tessera-compile %t/gpt.mlir --shardings=%t/none 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: none:2:1: error: no argument or result has a name like 'layers.*.wk'; there are x, layers.0.wq, layers.1.wq, y

// RUN: not tessera-compile %t/gpt.mlir --shardings=%t/twice 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: twice:3:1: error: 'layers.1.wq' has a view already; one place may say it

// RUN: not tessera-compile %t/gpt.mlir --shardings=%t/mesh 2>&1 | FileCheck %s --check-prefix=MESH
// MESH: mesh:1:1: error: the first line must be a mesh, as 'mesh <tp = 2>'

// RUN: not tessera-compile %t/gpt.mlir --shardings=%t/axis 2>&1 | FileCheck %s --check-prefix=AXIS
// AXIS: axis:2:1: error: unknown mesh axis 'dp'; the mesh has tp (at column 6 of `[did(dp) * _, _]`)

// RUN: not tessera-compile %t/gpt.mlir --shardings=%t/rank 2>&1 | FileCheck %s --check-prefix=RANK
// RANK: rank:3:1: error: does not fit 'layers.1.wq': the view describes 1 dimensions

// RUN: not tessera-compile %t/gpt.mlir --shardings=%t/overlap 2>&1 | FileCheck %s --check-prefix=OVERLAP
// OVERLAP: overlap:2:1: error: does not fit 'y': axis tp is used twice

// RUN: not tessera-compile %t/gpt.mlir --shardings=%t/no-view 2>&1 | FileCheck %s --check-prefix=NOVIEW
// NOVIEW: no-view:2:1: error: must be names with their view, as 'layers.*.wq: [did(tp) * _, _]'

// RUN: not tessera-compile %t/gpt.mlir --shardings=%t/two-meshes 2>&1 | FileCheck %s --check-prefix=MESHES
// MESHES: two-meshes:2:1: error: a second mesh; views are on that of the first line, <tp = 2>

// RUN: not tessera-compile %t/gpt.mlir --shardings=%t/missing 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: {{^}}error: cannot read the shardings '{{.*}}missing': No such file

// RUN: not tessera-compile %t/gpt.mlir --compile-from=bind --shardings=%t/good 2>&1 | FileCheck %s --check-prefix=LATE
// LATE: error: --shardings changes nothing of a program that has been through 'bind'

//--- good
# Of all layers.
mesh <tp = 2>

  # Indented, too.
layers.*.wq: [did(tp) * _, _]

//--- none
mesh <tp = 2>
layers.*.wk: [did(tp) * _, _]

//--- twice
mesh <tp = 2>
layers.1.wq: [did(tp) * _, _]
layers.?.wq: [did(tp) * _, _]

//--- mesh
layers.*.wq: [did(tp) * _, _]

//--- axis
mesh <tp = 2>
layers.*.wq: [did(dp) * _, _]

//--- rank
mesh <tp = 2>
layers.0.wq: [did(tp) * _, _]
layers.1.wq: [did(tp) * _]

//--- overlap
mesh <tp = 2>
y: [did(tp) * _, _], partial = [tp : sum]

//--- no-view
mesh <tp = 2>
x:

//--- two-meshes
mesh <tp = 2>
mesh <dp = 2>

//--- gpt.mlir
!x = tensor<8x8xf32>
func.func @main(%x: !x {tv.name = "x"}, %w0: !x {tv.name = "layers.0.wq"}, %w1: !x {tv.name = "layers.1.wq"}) -> (!x {tv.name = "y"}) {
  %0 = tv.linear %x, %w0 : (!x, !x) -> !x
  %1 = tv.linear %0, %w1 : (!x, !x) -> !x
  return %1 : !x
}

//--- beside.mlir
#m = #tv.mesh<tp = 2>
!x = tensor<8x8xf32>
func.func @main(%x: !x {tv.name = "x"}, %w0: !x {tv.name = "layers.0.wq", tv.user_view = #tv.view<#m, [did(tp) * _, _]>}, %w1: !x {tv.name = "layers.1.wq", tv.user_view = #tv.view<#m, [did(tp) * _, _]>}) -> (!x {tv.name = "y"}) {
  %0 = tv.linear %x, %w0 : (!x, !x) -> !x
  %1 = tv.linear %0, %w1 : (!x, !x) -> !x
  return %1 : !x
}
