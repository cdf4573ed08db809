// The next value of a state lies where the state does, if its kernel reads the state at the
// element that it writes and nothing reads it later.
// RUN: split-file %s %t
// RUN: tessera-compile %t/here.mlir --compile-to=plan | FileCheck %s --check-prefix=HERE
// RUN: tessera-compile %t/later.mlir --compile-to=plan | FileCheck %s --check-prefix=COPY
// RUN: tessera-compile %t/elsewhere.mlir --compile-to=plan | FileCheck %s --check-prefix=COPY
// RUN: tessera-compile %t/sum.mlir --compile-to=plan | FileCheck %s --check-prefix=COPY
// RUN: tessera-compile %t/twice.mlir --compile-to=plan | FileCheck %s --check-prefix=COPY

// HERE: %[[NEXT:[0-9]+]] = alias {{.*}} is same of %[[W:[0-9]+]]
// HERE: state 'w' %[[W]] becomes %[[NEXT]]
// COPY-NOT: is same of
// COPY: state 'w' %{{[0-9]+}} becomes

//--- here.mlir
#m = #tv.mesh<tp = 2>
!w = tensor<4x8xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%w: !w {tv.name = "w", tv.role = "parameter"}, %d: !w {tv.name = "d"}) -> (!w {tv.name = "w"}) {
  %0 = tv.sub %w, %d : (!w, !w) -> !w
  return %0 : !w
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
