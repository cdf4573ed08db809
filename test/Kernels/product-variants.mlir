// Both variants of a matrix product under one choice: what leaves the larger kernel is
// what is chosen, and the library's side has a kernel of what follows of its own.

// RUN: split-file %s %t
// DEFINE: %{own} = --tessera="from=local to=kernels target=cuda:sm_90a matmul=own,cublaslt"
// DEFINE: %{library} = --tessera="from=local to=kernels target=cuda:sm_90a matmul=cublaslt,own"
// RUN: tessera-opt %t/block.mlir %{own} | FileCheck %s --check-prefix=BLOCK
// RUN: tessera-opt %t/pair.mlir %{own} | FileCheck %s --check-prefix=PAIR
// RUN: tessera-opt %t/uses.mlir %{own} | FileCheck %s --check-prefix=USES
// RUN: tessera-opt %t/nested.mlir %{own} | FileCheck %s --check-prefix=NESTED

// The order is that of the list; the interpreter takes the first.
// RUN: tessera-opt %t/pair.mlir %{library} | FileCheck %s --check-prefix=LIBRARY-FIRST
// RUN: tessera-opt %t/block.mlir %{own} --interpret=2 --interpret-sizes=b=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/block.mlir %{library} --interpret=2 --interpret-sizes=b=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/pair.mlir %{own} --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/pair.mlir %{library} --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/uses.mlir %{own} --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/uses.mlir %{library} --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// EQUAL: interpret: @main equals the source on

// What does not fit has its reason, and one variant alone no values.
// RUN: sed 's/16]/12]/g; s/x16x/x12x/g; s/<16x/<12x/g' %t/block.mlir | tessera-opt %{own} | FileCheck %s --check-prefix=UNFIT
// RUN: tessera-opt %t/pair.mlir --tessera="from=local to=kernels target=cuda:sm_90a matmul=own" | FileCheck %s --check-prefix=ALONE
// RUN: tessera-opt %t/pair.mlir --tessera="from=local to=kernels target=cuda:sm_90a matmul=cublaslt" | FileCheck %s --check-prefix=ALONE-TOO
// RUN: tessera-opt %t/pair.mlir --tessera="from=local to=kernels target=cuda:sm_90a" | FileCheck %s --check-prefix=DEFAULT
// UNFIT-NOT: plan.product
// UNFIT: plan.contract {{.*}} then gelu_tanh
// UNFIT: plan.choose "matmul" of "cublaslt"() without {own = "what it contracts must be innermost in memory, in rows of a multiple of 16 bytes"} from "tv.linear"{{$}}
// ALONE-NOT: plan.contract
// ALONE: plan.choose "matmul" of "own"() without {cublaslt = "it is not compiled in"} from "tv.linear"{{$}}
// ALONE-TOO-NOT: plan.product
// ALONE-TOO: plan.choose "matmul" of "cublaslt"() without {own = "it is not compiled in"} from "tv.linear"{{$}}
// DEFAULT-NOT: plan.choose

//--- block.mlir
// Gelu, a gate, a residual; random numbers follow neither variant.
#m = #tv.mesh<tp = 2>
!x = tensor<?x3x16xbf16, #tv.local<#tv.view<#m, [_, 3, 16]>, of [b, 3, 16]>>
!w = tensor<24x16xbf16, #tv.local<#tv.view<#m, [did(tp) * 24, 16], alloc = (0, 1)>, of [48, 16]>>
!b = tensor<24xbf16, #tv.local<#tv.view<#m, [did(tp) * 24]>, of [48]>>
!h = tensor<?x3x24xbf16, #tv.local<#tv.view<#m, [_, 3, did(tp) * 24]>, of [b, 3, 48]>>
func.func @main(%x: !x {tv.name = "x", tv.dims = ["b"]}, %w: !w {tv.name = "w"},
                %b: !b {tv.name = "b"}, %r: !h {tv.name = "r", tv.dims = ["b"]})
    -> (!h {tv.name = "y"}) attributes {tv.sizes = {b = 64}} {
  %0 = tv.linear %x, %w bias %b : (!x, !w, !b) -> !h
  %1 = tv.gelu tanh %0 : (!h) -> !h
  %2 = tv.mul %1, %r : (!h, !h) -> !h
  %3 = tv.add %2, %r : (!h, !h) -> !h
  %4 = tv.dropout %3 rate(2.5e-01) seed(1) stream(2) : (!h) -> !h
  return %4 : !h
}
// BLOCK: func.func @main(%[[X:.*]]: tensor<{{.*}}, %[[W:.*]]: tensor<{{.*}}, %[[B:.*]]: tensor<{{.*}}, %[[R:.*]]: tensor
// BLOCK-NEXT: %[[OWN:.*]] = plan.launch @linear_0(%[[X]], %[[W]], %[[B]], %[[R]])
// BLOCK-NEXT: %[[GELU:.*]] = plan.contract %[[X]] [0, 1, 2], %[[W]] [3, 2] bias %[[B]] to [0, 1, 3] then gelu_tanh from "tv.linear"
// BLOCK-NEXT: %[[LIB:.*]] = plan.launch @map_1(%[[GELU]], %[[R]])
// BLOCK-NEXT: %[[SUM:.*]] = plan.choose "matmul" of "own"(%[[OWN]]), "cublaslt"(%[[LIB]]) from "tv.linear"
// BLOCK-NEXT: %[[Y:.*]] = plan.launch @map_2(%[[SUM]])
// BLOCK-NEXT: return %[[Y]]

//--- pair.mlir
// What goes into the gelu is chosen with what comes out.
#m = #tv.mesh<tp = 1>
!x = tensor<4x16xbf16, #tv.local<#tv.view<#m, [4, 16]>, of [4, 16]>>
!w = tensor<24x16xbf16, #tv.local<#tv.view<#m, [24, 16]>, of [24, 16]>>
!b = tensor<24xbf16, #tv.local<#tv.view<#m, [24]>, of [24]>>
!h = tensor<4x24xbf16, #tv.local<#tv.view<#m, [4, 24]>, of [4, 24]>>
func.func @main(%x: !x, %w: !w, %b: !b) -> (!h, !h) {
  %h = tv.linear %x, %w bias %b : (!x, !w, !b) -> !h
  %g = tv.gelu tanh %h : (!h) -> !h
  return %h, %g : !h, !h
}
// PAIR: func.func @linear_0(
// PAIR: plan.product {{.*}} to %{{.*}}, %{{.*}} :
// PAIR: func.func @main
// PAIR-NEXT: %[[OWN:.*]]:2 = plan.launch @linear_0(
// PAIR-NEXT: %[[G:.*]], %[[H:.*]] = plan.contract {{.*}} then gelu_tanh
// PAIR-NEXT: %[[C:.*]]:2 = plan.choose "matmul" of "own"(%[[OWN]]#0, %[[OWN]]#1), "cublaslt"(%[[H]], %[[G]]) from "tv.linear"
// PAIR-NEXT: return %[[C]]#0, %[[C]]#1
// LIBRARY-FIRST: plan.choose "matmul" of "cublaslt"({{.*}}), "own"({{.*}}) from "tv.linear"

//--- uses.mlir
// One kernel on the library's side, which reads a value that is chosen without a copy of
// it. A gelu that is a third value is in neither side. The second product reads what is
// chosen of the first; a window of its result is of what is chosen, too.
#m = #tv.mesh<tp = 1>
!x = tensor<4x8xf16, #tv.local<#tv.view<#m, [4, 8]>, of [4, 8]>>
!w = tensor<8x8xf16, #tv.local<#tv.view<#m, [8, 8]>, of [8, 8]>>
!r = tensor<4xf16, #tv.local<#tv.view<#m, [4]>, of [4]>>
!t = tensor<8x4xf16, #tv.local<#tv.view<#m, [8, 4], alloc = (1, 0)>, of [8, 4]>>
func.func @main(%x: !x, %w: !w, %v: !w) -> (!x, !x, !x, !r, !t, !x) {
  %0 = tv.linear %x, %w : (!x, !w) -> !x
  %1 = tv.silu %0 : (!x) -> !x
  %2 = tv.gelu tanh %0 : (!x) -> !x
  %3 = tv.linear %1, %v : (!x, !w) -> !x
  %4 = tv.mul %0, %3 : (!x, !x) -> !x
  %5 = tv.reduce sum %4 dims [1] : (!x) -> !r
  %6 = tv.transpose %4 perm [1, 0] : (!x) -> !t
  return %1, %2, %4, %5, %6, %0 : !x, !x, !x, !r, !t, !x
}
// USES: func.func @main(%[[X:.*]]: tensor<{{.*}}, %[[W:.*]]: tensor<{{.*}}, %[[V:.*]]: tensor
// USES: %[[OWN:.*]]:2 = plan.launch @linear_0(%[[X]], %[[W]])
// USES-NEXT: %[[SUM:.*]] = plan.contract %[[X]] [0, 1], %[[W]] [2, 1] to [0, 2] from
// USES-NEXT: %[[SILU:.*]] = plan.launch @map_1(%[[SUM]])
// USES-NEXT: %[[C:.*]]:2 = plan.choose "matmul" of "own"(%[[OWN]]#0, %[[OWN]]#1), "cublaslt"(%[[SUM]], %[[SILU]]) from
// USES-NOT: plan.copy
// USES: plan.launch @{{.*}}(%[[C]]#0)
// USES: plan.contract %[[C]]#1
// USES: %[[D:.*]] = plan.choose "matmul"
// USES-NOT: plan.product

//--- nested.mlir
// In a variant of another choice there is nothing to choose: the first that fits runs.
#m = #tv.mesh<tp = 1>
!x = tensor<4x8xf16, #tv.local<#tv.view<#m, [4, 8]>, of [4, 8]>>
!w = tensor<8x8xf16, #tv.local<#tv.view<#m, [8, 8]>, of [8, 8]>>
func.func @main(%x: !x, %w: !w) -> !x {
  %a = tv.linear %x, %w : (!x, !w) -> !x
  %b = tv.map %x : (!x) -> !x (%u: f16) {
    tv.yield %u : f16
  }
  %c = plan.choose "kind" of "a"(%a), "b"(%b) from "tv.some" : !x
  return %c : !x
}
// NESTED: func.func @main
// NESTED-NOT: {{plan.contract|"matmul"}}
// NESTED: %[[A:.*]] = plan.launch @linear_0
// NESTED-NOT: {{plan.contract|"matmul"}}
// NESTED: plan.choose "kind" of "a"(%[[A]]), "b"
