// Variants keep to themselves: a kernel is in one variant with all its ops, or in
// none, and each value of a choice is memory that a step of its variant writes.

// RUN: split-file %s %t
// DEFINE: %{kernels} = --tv-separate-variants --tv-group-ops --tv-emit-kernels
// RUN: tessera-opt %t/fusion.mlir %{kernels} --mlir-print-local-scope | FileCheck %s --check-prefix=FUSION
// RUN: tessera-opt %t/windows.mlir %{kernels} | FileCheck %s --check-prefix=WINDOWS
// RUN: tessera-opt %t/shared.mlir %{kernels} | FileCheck %s --check-prefix=SHARED
// RUN: tessera-opt %t/choices.mlir %{kernels} | FileCheck %s --check-prefix=CHOICES
// RUN: tessera-opt %t/choices.mlir %{kernels} --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/fusion.mlir %{kernels} --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/windows.mlir %{kernels} --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// EQUAL: interpret: @main equals the source on

//--- fusion.mlir
// Four maps in a row: one before, two of variant "a", one after. The choice's other
// variant is a single map, the one with a single variant is no border.
#m = #tv.mesh<tp = 1>
!x = tensor<4x8xf32, #tv.local<#tv.view<#m, [4, 8], alloc = (0, 1)>, of [4, 8]>>
func.func @main(%x: !x) -> !x {
  %before = tv.map %x : (!x) -> !x (%u: f32) {
    %r = arith.addf %u, %u : f32
    tv.yield %r : f32
  }
  %a0 = tv.map %before : (!x) -> !x (%u: f32) {
    %r = arith.addf %u, %u : f32
    tv.yield %r : f32
  }
  %a1 = tv.map %a0 : (!x) -> !x (%u: f32) {
    %r = arith.addf %u, %u : f32
    tv.yield %r : f32
  }
  %b = tv.map %before : (!x) -> !x (%u: f32) {
    %four = arith.constant 4.0 : f32
    %r = arith.mulf %u, %four : f32
    tv.yield %r : f32
  }
  %c = plan.choose "kind" of "a"(%a1), "b"(%b) from "tv.some" : !x
  %after = tv.map %c : (!x) -> !x (%u: f32) {
    %r = arith.negf %u : f32
    tv.yield %r : f32
  }
  plan.choose "kind" of "a"() without {b = "it does not fit"} from "tv.other"
  %end = tv.map %after : (!x) -> !x (%u: f32) {
    %r = arith.negf %u : f32
    tv.yield %r : f32
  }
  return %end : !x
}
// FUSION: %[[BEFORE:.*]] = plan.launch @map_[[N:[0-9]+]](%arg0)
// FUSION: %[[A:.*]] = plan.launch @map_{{[0-9]+}}(%[[BEFORE]])
// FUSION: %[[B:.*]] = plan.launch @map_{{[0-9]+}}(%[[BEFORE]])
// FUSION: %[[C:.*]] = plan.choose "kind" of "a"(%[[A]]), "b"(%[[B]]) from "tv.some"
// FUSION: plan.choose "kind" of "a"() without
// FUSION: %[[END:.*]] = plan.launch @map_{{[0-9]+}}(%[[C]])
// FUSION-NEXT: return %[[END]]

//--- windows.mlir
// An argument, a window and a value that others read too are no memory of a
// variant's own.
#m = #tv.mesh<tp = 1>
!x = tensor<4x8xf32, #tv.local<#tv.view<#m, [4, 8], alloc = (0, 1)>, of [4, 8]>>
!t = tensor<8x4xf32, #tv.local<#tv.view<#m, [8, 4], alloc = (0, 1)>, of [8, 4]>>
func.func @main(%x: !x, %y: !t) -> (!x, !x, !x) {
  %z = tv.map %x : (!x) -> !x (%u: f32) {
    tv.yield %u : f32
  }
  %a = tv.transpose %y perm [1, 0] : (!t) -> !x
  %b = tv.map %a : (!x) -> !x (%u: f32) {
    tv.yield %u : f32
  }
  %c = plan.choose "kind" of "a"(%x), "b"(%z) from "tv.some" : !x
  %d = plan.choose "kind" of "a"(%a), "b"(%b) from "tv.some" : !x
  return %c, %d, %z : !x, !x, !x
}
// WINDOWS-DAG: %[[T:.*]] = plan.alias transpose %arg1
// WINDOWS-DAG: %[[Z:.*]] = plan.launch @{{.*}}(%arg0)
// WINDOWS-DAG: %[[B:.*]] = plan.launch @{{.*}}(%[[T]])
// WINDOWS: %[[CX:.*]] = plan.copy %arg0 from "tv.some"
// WINDOWS-NEXT: %[[CZ:.*]] = plan.copy %[[Z]] from "tv.some"
// WINDOWS-NEXT: plan.choose "kind" of "a"(%[[CX]]), "b"(%[[CZ]])
// WINDOWS: %[[CT:.*]] = plan.copy %[[T]] from "tv.some"
// WINDOWS-NEXT: plan.choose "kind" of "a"(%[[CT]]), "b"(%[[B]])

//--- shared.mlir
// What two variants need belongs to neither, so it is no part of their kernels.
#m = #tv.mesh<tp = 1>
!x = tensor<4x8xf32, #tv.local<#tv.view<#m, [4, 8], alloc = (0, 1)>, of [4, 8]>>
func.func @main(%x: !x) -> !x {
  %s = tv.map %x : (!x) -> !x (%u: f32) {
    %r = arith.negf %u : f32
    tv.yield %r : f32
  }
  %a = tv.map %s, %s : (!x, !x) -> !x (%u: f32, %v: f32) {
    %r = arith.addf %u, %v : f32
    tv.yield %r : f32
  }
  %b = tv.map %s : (!x) -> !x (%u: f32) {
    %two = arith.constant 2.0 : f32
    %r = arith.mulf %u, %two : f32
    tv.yield %r : f32
  }
  %c = plan.choose "kind" of "a"(%a), "b"(%b) from "tv.some" : !x
  return %c : !x
}
// SHARED: %[[S:.*]] = plan.launch @{{.*}}(%arg0)
// SHARED: %[[A:.*]] = plan.launch @{{.*}}(%[[S]])
// SHARED: %[[B:.*]] = plan.launch @{{.*}}(%[[S]])
// SHARED: plan.choose "kind" of "a"(%[[A]]), "b"(%[[B]])

//--- choices.mlir
// What variants of two choices need is in each of them, or it would always run.
#m = #tv.mesh<tp = 1>
!x = tensor<4x8xf32, #tv.local<#tv.view<#m, [4, 8], alloc = (0, 1)>, of [4, 8]>>
func.func @main(%x: !x) -> (!x, !x) {
  %n = tv.map %x : (!x) -> !x (%u: f32) {
    %r = arith.negf %u : f32
    tv.yield %r : f32
  }
  %m = tv.map %n : (!x) -> !x (%u: f32) {
    %r = math.exp %u : f32
    tv.yield %r : f32
  }
  %a = tv.map %x : (!x) -> !x (%u: f32) {
    %r = arith.negf %u : f32
    %s = math.exp %r : f32
    tv.yield %s : f32
  }
  %b = tv.map %m : (!x) -> !x (%u: f32) {
    %two = arith.constant 2.0 : f32
    %r = arith.mulf %u, %two : f32
    tv.yield %r : f32
  }
  %d = tv.map %x : (!x) -> !x (%u: f32) {
    %r = arith.negf %u : f32
    %s = math.exp %r : f32
    %t = arith.addf %s, %s : f32
    tv.yield %t : f32
  }
  %e = tv.map %m, %b : (!x, !x) -> !x (%u: f32, %v: f32) {
    tv.yield %u : f32
  }
  %c0 = plan.choose "kind" of "a"(%d), "b"(%b) from "tv.some" : !x
  %c1 = plan.choose "kind" of "a"(%a), "b"(%e) from "tv.some" : !x
  return %c0, %c1 : !x, !x
}
// CHOICES: func.func @main
// CHOICES-COUNT-4: plan.launch @map_{{[0-9]+}}(%arg0)
// CHOICES-NOT: {{plan.launch|plan.copy}}
// CHOICES: plan.choose
