// A pass alone, on what it does not expect: it names the pass that goes before it.
//
// RUN: split-file %s %t
// RUN: not tessera-opt --tv-make-resharding-contiguous %t/body.mlir 2>&1 | FileCheck %s --check-prefix=BODY
// BODY: body.mlir:1:1: error: tv-make-resharding-contiguous runs after tv-plan-reshards: 'f' has no body; a program is compiled as a whole
// RUN: not tessera-opt --tv-forbid-implicit-moves %t/views.mlir 2>&1 | FileCheck %s --check-prefix=VIEWS
// VIEWS: views.mlir:1:1: error: tv-forbid-implicit-moves runs after tv-propagate-shardings: a value of type 'tensor<8xf32>' has no view
// RUN: not tessera-opt --tv-reorder-sharded-axis %t/plan.mlir 2>&1 | FileCheck %s --check-prefix=PLAN
// PLAN: plan.mlir:4:8: error: tv-reorder-sharded-axis runs after tv-plan-reshards: 'tv.reshard' has no plan
// RUN: not tessera-opt --tv-elide-reshards %t/spelling.mlir 2>&1 | FileCheck %s --check-prefix=SPELLING
// SPELLING: spelling.mlir:2:1: error: tv-elide-reshards runs after tv-propagate-shardings: a value of type {{.*}} has another view than its canonical one, [did(tp) * 4]
// RUN: not tessera-opt --tv-emit-kernels %t/plan.mlir 2>&1 | FileCheck %s --check-prefix=LOCAL
// LOCAL: plan.mlir:3:1: error: tv-emit-kernels runs after tv-localize: a value of type {{.*}} is not one device's part
// RUN: not tessera-opt --tv-group-ops %t/views.mlir 2>&1 | FileCheck %s --check-prefix=GROUP
// GROUP: views.mlir:1:1: error: tv-group-ops runs after tv-localize:
// RUN: not tessera-opt --tv-split-reductions %t/views.mlir 2>&1 | FileCheck %s --check-prefix=SPLIT
// SPLIT: views.mlir:1:1: error: tv-split-reductions runs after tv-localize:
// RUN: not tessera-opt --tv-simplify %t/views.mlir 2>&1 | FileCheck %s --check-prefix=SIMPLIFY
// SIMPLIFY: views.mlir:1:1: error: tv-simplify runs after tv-localize:
// RUN: not tessera-opt --tv-propagate-shardings %t/foreign.mlir 2>&1 | FileCheck %s --check-prefix=FOREIGN
// FOREIGN: foreign.mlir:3:8: error: tv-propagate-shardings runs after tv-bind: 'arith.addf' may not touch the tensors of a sharded program
// RUN: not tessera-opt --allow-unregistered-dialect --tv-propagate-shardings %t/blocks.mlir 2>&1 | FileCheck %s --check-prefix=BLOCKS
// BLOCKS: blocks.mlir:2:1: error: tv-propagate-shardings runs after tv-bind: 'f' is not one block that ends in 'func.return'
// RUN: not tessera-opt --test-sharding-rules %t/body.mlir 2>&1 | FileCheck %s --check-prefix=RULES
// RULES: body.mlir:1:1: error: has no body to test
// The same from a phase that the program has not been through.
// RUN: not tessera-compile --compile-from=propagated %t/views.mlir 2>&1 | FileCheck %s --check-prefix=FROM
// FROM: views.mlir:1:1: error: tv-decompose-reshardings runs after tv-propagate-shardings: a value of type 'tensor<8xf32>' has no view

//--- body.mlir
func.func private @f(tensor<8xf32>)
//--- views.mlir
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = tv.reshard %x : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
//--- plan.mlir
#v = #tv.view<#tv.mesh<tp = 2>, [did(tp) * 4]>
#w = #tv.view<#tv.mesh<tp = 2>, [8]>
func.func @main(%x: tensor<8xf32, #v>) -> tensor<8xf32, #w> {
  %y = tv.reshard %x : (tensor<8xf32, #v>) -> tensor<8xf32, #w>
  return %y : tensor<8xf32, #w>
}
//--- spelling.mlir
#v = #tv.view<#tv.mesh<tp = 2>, [did(tp) * _]>
func.func @f(%x: tensor<8xf32, #v>) -> tensor<8xf32, #v> {
  return %x : tensor<8xf32, #v>
}
//--- foreign.mlir
!x = tensor<8xf32, #tv.view<#tv.mesh<tp = 2>, [did(tp) * 4]>>
func.func @f(%x: !x) -> !x {
  %y = arith.addf %x, %x : !x
  return %y : !x
}
//--- blocks.mlir
!x = tensor<8xf32, #tv.view<#tv.mesh<tp = 2>, [did(tp) * 4]>>
func.func @f(%x: !x) -> !x {
  "else.branch"()[^end] : () -> ()
^end:
  return %x : !x
}
