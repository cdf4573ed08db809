// What a memory budget does not hold until it is read is made again.

// RUN: split-file %s %t
// DEFINE: %{remarks} = --remarks-filter=tv-recompute --remark-format=emitRemark -o /dev/null 2>&1
// RUN: tessera-opt %t/chain.mlir --tv-recompute %{remarks} | FileCheck %s --check-prefix=ALL
// RUN: tessera-opt %t/chain.mlir --tv-recompute=memory=3072 | FileCheck %s --check-prefix=CHAIN
// RUN: tessera-opt %t/chain.mlir --tv-recompute=memory=3072 %{remarks} | FileCheck %s --check-prefix=CHAIN-SAYS
// RUN: not tessera-opt %t/chain.mlir --tv-recompute=memory=3071 2>&1 | FileCheck %s --check-prefix=LEAST
// RUN: tessera-opt %t/later.mlir --tv-recompute=memory=2048 | FileCheck %s --check-prefix=LATER
// RUN: tessera-opt %t/later.mlir --tv-recompute=memory=2048 %{remarks} | FileCheck %s --check-prefix=LATER-SAYS
// RUN: tessera-opt %t/source.mlir --tv-recompute=memory=2112 | FileCheck %s --check-prefix=SOURCE
// RUN: not tessera-opt %t/state.mlir --tv-recompute=memory=2048 2>&1 | FileCheck %s --check-prefix=STATE
// RUN: not tessera-opt %t/local.mlir --tv-recompute 2>&1 | FileCheck %s --check-prefix=LOCAL
// RUN: not tessera-opt %t/size.mlir --tv-recompute 2>&1 | FileCheck %s --check-prefix=SIZE

// Of two values that wait for the end, one made of the other: first the one that costs less,
// with all windows on it; then the other, which that keeps no longer.
//--- chain.mlir
#m = #tv.mesh<tp = 1>
!x = tensor<16x16xf32, #tv.local<#tv.view<#m, [16, 16], alloc = (0, 1)>, of [16, 16]>>
!t = tensor<16x16xf32, #tv.local<#tv.view<#m, [16, 16], alloc = (1, 0)>, of [16, 16]>>
func.func @main(%x: !x, %w: !x) -> !x {
  %h = plan.contract %x [0, 1], %w [1, 2] to [0, 2] from "tv.linear" : (!x, !x) -> !x
  %g = plan.copy %h from "tv.exp" : (!x) -> !x
  %t = plan.alias transpose %g at [1, 0] : (!x) -> !t
  %a = plan.contract %g [0, 1], %w [1, 2] to [0, 2] from "tv.linear" : (!x, !x) -> !x
  %b = plan.contract %a [0, 1], %w [1, 2] to [0, 2] from "tv.linear" : (!x, !x) -> !x
  %c = plan.contract %b [0, 1], %t [1, 2] to [0, 2] from "tv.linear" : (!x, !t) -> !x
  %d = plan.contract %c [0, 1], %h [1, 2] to [0, 2] from "tv.linear" : (!x, !x) -> !x
  return %d : !x
}
// ALL-NOT: again
// ALL: remark: [Passed] peak | Category:tv-recompute | Function=main | bytes=4096
// CHAIN: %[[H:.*]] = plan.contract %arg0
// CHAIN: %[[G:.*]] = plan.copy %[[H]]
// CHAIN-NOT: plan.alias
// CHAIN: %[[A:.*]] = plan.contract %[[G]]
// CHAIN: %[[B:.*]] = plan.contract %[[A]]
// CHAIN: %[[G2:.*]] = plan.copy %[[H]]
// CHAIN: %[[T:.*]] = plan.alias transpose %[[G2]]
// CHAIN: %[[C:.*]] = plan.contract %[[B]] {{.*}}, %[[T]]
// CHAIN: %[[H2:.*]] = plan.contract %arg0
// CHAIN: plan.contract %[[C]] {{.*}}, %[[H2]]
// CHAIN-SAYS: chain.mlir:6:{{.*}} remark: [Passed] again | Category:tv-recompute | Function=main | bytes=1024, step=tv.exp, steps=1, us=1.024000e-03
// CHAIN-SAYS: remark: [Passed] peak | Category:tv-recompute | Function=main | bytes=3072
// LEAST: chain.mlir:4:{{.*}} error: between its steps a device holds 3072 bytes in the least way found, more than the 3071 allowed
// LEAST-COUNT-3: note: 1024 of them for this

// What nothing reads before is not made again, but later.
//--- later.mlir
#m = #tv.mesh<tp = 1>
!x = tensor<16x16xf32, #tv.local<#tv.view<#m, [16, 16], alloc = (0, 1)>, of [16, 16]>>
func.func @main(%x: !x, %w: !x) -> !x {
  %h = plan.copy %x from "tv.exp" : (!x) -> !x
  %a = plan.contract %x [0, 1], %w [1, 2] to [0, 2] from "tv.linear" : (!x, !x) -> !x
  %b = plan.contract %a [0, 1], %w [1, 2] to [0, 2] from "tv.linear" : (!x, !x) -> !x
  %d = plan.contract %b [0, 1], %h [1, 2] to [0, 2] from "tv.linear" : (!x, !x) -> !x
  return %d : !x
}
// LATER: plan.contract
// LATER-NEXT: %[[B:.*]] = plan.contract
// LATER-NEXT: %[[H:.*]] = plan.copy
// LATER-NEXT: plan.contract %[[B]] {{.*}}, %[[H]]
// LATER-NEXT: return
// LATER-SAYS: again {{.*}} us=0.0

// What a value is made of is small: it is kept.
//--- source.mlir
#m = #tv.mesh<tp = 1>
!x = tensor<16x16xf32, #tv.local<#tv.view<#m, [16, 16], alloc = (0, 1)>, of [16, 16]>>
!r = tensor<16xf32, #tv.local<#tv.view<#m, [16], alloc = (0)>, of [16]>>
func.func @main(%x: !x, %w: !x) -> !x {
  %r = plan.contract %x [0, 1], %w [0, 1] to [0] from "tv.contract" : (!x, !x) -> !r
  %h = plan.contract %r [0], %r [1] to [0, 1] from "tv.contract" : (!r, !r) -> !x
  %a = plan.contract %h [0, 1], %w [1, 2] to [0, 2] from "tv.linear" : (!x, !x) -> !x
  %b = plan.contract %a [0, 1], %w [1, 2] to [0, 2] from "tv.linear" : (!x, !x) -> !x
  %c = plan.contract %b [0, 1], %w [1, 2] to [0, 2] from "tv.linear" : (!x, !x) -> !x
  %d = plan.contract %c [0, 1], %h [1, 2] to [0, 2] from "tv.linear" : (!x, !x) -> !x
  return %d : !x
}
// SOURCE: %[[R:.*]] = plan.contract %arg0
// SOURCE: plan.contract %[[R]] {{.*}}, %[[R]]
// SOURCE-COUNT-3: plan.contract
// SOURCE: plan.contract %[[R]] {{.*}}, %[[R]]
// SOURCE: plan.contract

// A state that is replaced by then is not what it was.
//--- state.mlir
#m = #tv.mesh<tp = 1>
!x = tensor<16x16xf32, #tv.local<#tv.view<#m, [16, 16], alloc = (0, 1)>, of [16, 16]>>
!s = memref<16x16xf32, strided<[?, 1], offset: ?>>
func.func @twice(%w: !s, %out: !s) attributes {plan.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%c16, %c16) step (%c1, %c1) {
    %0 = memref.load %w[%i, %j] : !s
    %1 = arith.addf %0, %0 : f32
    memref.store %1, %out[%i, %j] : !s
    scf.reduce
  }
  return
}
func.func @main(%x: !x, %w: !x {tv.name = "w", tv.role = "state"}) -> (!x, !x {tv.name = "w"}) {
  %h = plan.copy %w from "tv.exp" : (!x) -> !x
  %k = plan.contract %x [0, 1], %h [1, 2] to [0, 2] from "tv.linear" : (!x, !x) -> !x
  %next = plan.launch @twice(%w) scalars [] from "tv.map" : (!x) -> !x
  %a = plan.contract %k [0, 1], %next [1, 2] to [0, 2] from "tv.linear" : (!x, !x) -> !x
  %b = plan.contract %a [0, 1], %next [1, 2] to [0, 2] from "tv.linear" : (!x, !x) -> !x
  %d = plan.contract %b [0, 1], %h [1, 2] to [0, 2] from "tv.linear" : (!x, !x) -> !x
  return %d, %next : !x, !x
}
// STATE: error: between its steps a device holds 3072 bytes in the least way found, more than the 2048 allowed

//--- local.mlir
#m = #tv.mesh<tp = 1>
!x = tensor<16x16xf32, #tv.local<#tv.view<#m, [16, 16], alloc = (0, 1)>, of [16, 16]>>
func.func @main(%x: !x) -> !x {
  // LOCAL: local.mlir:5:8: error: 'tv.gelu' is no op of a plan; run tv-emit-kernels
  %y = tv.gelu %x : (!x) -> !x
  return %y : !x
}

//--- size.mlir
#m = #tv.mesh<tp = 1>
!x = tensor<?x16xf32, #tv.local<#tv.view<#m, [_, 16], alloc = (0, 1)>, of [b, 16]>>
// SIZE: size.mlir:4:{{.*}} error: a dynamic size has no maximum; declare it in 'tv.sizes' of '@main'
func.func @main(%x: !x) -> !x {
  %y = plan.copy %x from "tv.exp" : (!x) -> !x
  return %y : !x
}
