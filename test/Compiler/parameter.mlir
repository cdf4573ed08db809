// A parameter lies as a weight does, and its result is its next value.
// RUN: tessera-compile %s --compile-to=plan | FileCheck %s
// RUN: sed 's/"parameter"/"state", tv.init = "zero"/' %s | tessera-compile --compile-to=plan | FileCheck %s --check-prefix=ZERO

// CHECK: state 'w' %[[W:[0-9]+]] becomes %[[NEXT:[0-9]+]]
// CHECK-NOT: zeros
// ZERO: state 'w' %{{[0-9]+}} becomes %{{[0-9]+}} from zeros
// CHECK: launch {{.*}} %[[W]], %{{.*}}, %[[NEXT]]
#m = #tv.mesh<tp = 2>
!w = tensor<4x8xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%w: !w {tv.name = "w", tv.role = "parameter"}, %d: !w {tv.name = "d"}) -> (!w {tv.name = "w"}) {
  %0 = tv.add %w, %d : (!w, !w) -> !w
  return %0 : !w
}
