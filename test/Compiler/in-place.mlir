// The next value of a state lies where the state does, if its kernel reads the state at the
// element that it writes, or before it writes any, and nothing reads it later.
// RUN: split-file %s %t
// RUN: tessera-compile %t/here.mlir --compile-to=plan | FileCheck %s --check-prefix=HERE
// RUN: tessera-compile %t/adamw.mlir --compile-to=plan | FileCheck %s --check-prefix=STEP
// RUN: tessera-compile %t/later.mlir --compile-to=plan | FileCheck %s --check-prefix=COPY
// RUN: tessera-compile %t/elsewhere.mlir --compile-to=plan | FileCheck %s --check-prefix=COPY
// RUN: tessera-compile %t/sum.mlir --compile-to=plan | FileCheck %s --check-prefix=COPY
// RUN: tessera-compile %t/twice.mlir --compile-to=plan | FileCheck %s --check-prefix=COPY
// RUN: tessera-compile %t/rows.mlir --compile-to=plan | FileCheck %s --check-prefix=HERE
// RUN: tessera-compile %t/pages.mlir --compile-to=plan | FileCheck %s --check-prefix=PAGES
// RUN: tessera-compile %t/own-rows.mlir --compile-to=plan | FileCheck %s --check-prefix=COPY
// RUN: tessera-compile %t/old-rows.mlir --compile-to=plan | FileCheck %s --check-prefix=COPY
// RUN: tessera-compile %t/both.mlir --compile-to=plan | FileCheck %s --check-prefix=BOTH

// On GPUs, too, the updates are all that is written.
// RUN: tessera-compile %t/rows.mlir --target=cuda:sm_90a --dump-dir=%t/rows -o %t/rows.tsr
// RUN: FileCheck %s --check-prefix=UPDATES < %t/rows/kernels.cu
// UPDATES: struct scatter_0_Parameters
// UPDATES: __global__
// UPDATES-NOT: __global__

// HERE: %[[NEXT:[0-9]+]] = alias {{.*}} is same of %[[W:[0-9]+]]
// HERE: state 'w' %[[W]] becomes %[[NEXT]]
// STEP-COUNT-3: is same of
// STEP-DAG: state 'w'
// STEP-DAG: state 'm'
// STEP-DAG: state 'v'
// COPY-NOT: is same of
// COPY: state 'w' %{{[0-9]+}} becomes

// Through other dimensions, and back.
// PAGES: %[[ROWS:[0-9]+]] = alias f32 of [8, 3] {{.*}} is reshape of %[[W:[0-9]+]]
// PAGES: alias f32 of [8, 3] {{.*}} is same of %[[ROWS]]
// PAGES: %[[NEXT:[0-9]+]] = alias f32 of [4, 2, 3] {{.*}} is same of %[[W]]
// PAGES: state 'w' %[[W]] becomes %[[NEXT]]
// PAGES-NOT: copy

// What is the next value of two states is computed in one.
// BOTH-COUNT-1: is same of
// BOTH-NOT: is same of
// BOTH: state 'w'
// BOTH: state 'v'

//--- here.mlir
#m = #tv.mesh<tp = 2>
!w = tensor<4x8xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%w: !w {tv.name = "w", tv.role = "parameter"}, %d: !w {tv.name = "d"}) -> (!w {tv.name = "w"}) {
  %0 = tv.sub %w, %d : (!w, !w) -> !w
  return %0 : !w
}

// A weight and its moments, whose scale and rate are computed.
//--- adamw.mlir
#m = #tv.mesh<tp = 2>
!w = tensor<4x8xf32, #tv.view<#m, [did(tp) * _, _]>>
!c = tensor<f32, #tv.view<#m, []>>
!t = tensor<i64, #tv.view<#m, []>>
func.func @main(%w: !w {tv.name = "w", tv.role = "parameter"}, %m: !w {tv.name = "m", tv.role = "state"},
                %v: !w {tv.name = "v", tv.role = "state"}, %g: !w {tv.name = "g"}, %c: !c {tv.name = "c"}, %t: !t {tv.name = "t"})
    -> (!w {tv.name = "w"}, !w {tv.name = "m"}, !w {tv.name = "v"}) {
  %scale = tv.exp %c : (!c) -> !c
  %new:3 = tv.adamw %w, %m, %v, %g scale %scale rate %c step %t betas(0.9, 0.95) epsilon(1.0e-8) decay(0.1)
    : (!w, !w, !w, !w, !c, !c, !t) -> (!w, !w, !w)
  return %new#0, %new#1, %new#2 : !w, !w, !w
}

// A result that reads the state after it is replaced.
//--- later.mlir
#m = #tv.mesh<tp = 2>
!w = tensor<4x8xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%w: !w {tv.name = "w", tv.role = "parameter"}, %d: !w {tv.name = "d"}) -> (!w {tv.name = "w"}, !w {tv.name = "before"}) {
  %0 = tv.sub %w, %d : (!w, !w) -> !w
  return %0, %w : !w, !w
}

// Another element of the state.
//--- elsewhere.mlir
#m = #tv.mesh<tp = 2>
!w = tensor<4x4xf32, #tv.view<#m, [_, _]>>
func.func @main(%w: !w {tv.name = "w", tv.role = "parameter"}, %d: !w {tv.name = "d"}) -> (!w {tv.name = "w"}) {
  %t = tv.transpose %w perm [1, 0] : (!w) -> !w
  %0 = tv.sub %t, %d : (!w, !w) -> !w
  return %0 : !w
}

// All elements of a row.
//--- sum.mlir
#m = #tv.mesh<tp = 2>
!w = tensor<4x8xf32, #tv.view<#m, [_, _]>>
func.func @main(%w: !w {tv.name = "w", tv.role = "parameter"}) -> (!w {tv.name = "w"}) {
  %0 = tv.softmax %w dim 1 : (!w) -> !w
  return %0 : !w
}

// One kernel for what is a state here and no state there.
//--- twice.mlir
#m = #tv.mesh<tp = 2>
!w = tensor<4x8xf32, #tv.view<#m, [_, _]>>
!p = tensor<4x4xf32, #tv.view<#m, [_, _]>>
func.func @main(%w: !w {tv.name = "w", tv.role = "parameter"}, %d: !w {tv.name = "d"}) -> (!w {tv.name = "w"}, !w {tv.name = "y"}) {
  %0 = tv.sub %w, %d : (!w, !w) -> !w
  %1 = tv.linear %0, %d : (!w, !w) -> !p
  %2 = tv.matmul %1, %d : (!p, !w) -> !w
  %3 = tv.sub %2, %d : (!w, !w) -> !w
  return %0, %3 : !w, !w
}

// A scatter writes its updates alone.
//--- rows.mlir
#m = #tv.mesh<tp = 2>
!w = tensor<4x8xf32, #tv.view<#m, [_, did(tp) * _]>>
!i = tensor<2xi32>
!u = tensor<2x8xf32>
func.func @main(%w: !w {tv.name = "w", tv.role = "state"}, %at: !i {tv.name = "at"}, %u: !u {tv.name = "u"}) -> (!w {tv.name = "w"}) {
  %0 = tv.scatter set %w, %at, %u dim 0 : (!w, !i, !u) -> !w
  return %0 : !w
}

// Rows of pages; the new ones are read again.
//--- pages.mlir
#m = #tv.mesh<tp = 1>
!w = tensor<4x2x3xf32, #tv.view<#m, [_, _, _]>>
!rows = tensor<8x3xf32>
!i = tensor<2xi32>
!u = tensor<2x3xf32>
func.func @main(%w: !w {tv.name = "w", tv.role = "state"}, %at: !i {tv.name = "at"}, %u: !u {tv.name = "u"})
    -> (!w {tv.name = "w"}, tensor<2x2x3xf32> {tv.name = "y"}) {
  %rows = tv.reshape %w : (!w) -> !rows
  %0 = tv.scatter sum %rows, %at, %u dim 0 : (!rows, !i, !u) -> !rows
  %1 = tv.reshape %0 : (!rows) -> !w
  %y = tv.gather %1, %at dim 0 : (!w, !i) -> tensor<2x2x3xf32>
  return %1, %y : !w, tensor<2x2x3xf32>
}

// Updates that are rows of the state as it was.
//--- own-rows.mlir
#m = #tv.mesh<tp = 1>
!w = tensor<4x8xf32, #tv.view<#m, [_, _]>>
!i = tensor<2xi32>
!u = tensor<2x8xf32>
func.func @main(%w: !w {tv.name = "w", tv.role = "state"}, %at: !i {tv.name = "at"}) -> (!w {tv.name = "w"}) {
  %u = tv.slice %w offsets [1, 0] : (!w) -> !u
  %0 = tv.scatter set %w, %at, %u dim 0 : (!w, !i, !u) -> !w
  return %0 : !w
}

// A row of the state as it was, later.
//--- old-rows.mlir
#m = #tv.mesh<tp = 1>
!w = tensor<4x8xf32, #tv.view<#m, [_, _]>>
!i = tensor<2xi32>
!u = tensor<2x8xf32>
func.func @main(%w: !w {tv.name = "w", tv.role = "state"}, %at: !i {tv.name = "at"}, %u: !u {tv.name = "u"}) -> (!w {tv.name = "w"}, !u {tv.name = "y"}) {
  %0 = tv.scatter set %w, %at, %u dim 0 : (!w, !i, !u) -> !w
  %new = tv.gather %0, %at dim 0 : (!w, !i) -> !u
  %old = tv.gather %w, %at dim 0 : (!w, !i) -> !u
  %y = tv.sub %new, %old : (!u, !u) -> !u
  return %0, %y : !w, !u
}

//--- both.mlir
#m = #tv.mesh<tp = 1>
!w = tensor<4x8xf32, #tv.view<#m, [_, _]>>
!i = tensor<2xi32>
!u = tensor<2x8xf32>
func.func @main(%w: !w {tv.name = "w", tv.role = "state"}, %v: !w {tv.name = "v", tv.role = "state"}, %at: !i {tv.name = "at"}, %u: !u {tv.name = "u"})
    -> (!w {tv.name = "w"}, !w {tv.name = "v"}) {
  %0 = tv.sub %w, %v : (!w, !w) -> !w
  return %0, %0 : !w, !w
}
