// Each type with a view once; a type of the same shape gets a number; what is
// printed is read back.
// RUN: tessera-opt --type-aliases %s | FileCheck %s
// RUN: tessera-opt --type-aliases %s | tessera-opt | FileCheck %s --check-prefix=PLAIN

// CHECK-DAG: !t8xnxf32 = tensor<8x?xf32, #tv.view<#mesh, [did(tp) * 4, _]>>
// CHECK-DAG: !t8x4xf32 = tensor<8x4xf32, #tv.view<#mesh, [{{.*}}]>>
// CHECK-DAG: !t8x4xf32_1 = tensor<8x4xf32, #tv.view<#mesh, [{{.*}}]>>
// CHECK: func.func @main(%arg0: !t8xnxf32 {{.*}}, %arg1: !t8x4xf32{{(_1)?}}, %arg2: !t8x4xf32{{(_1)?}}, %arg3: tensor<4xf32>)
// PLAIN: func.func @main(%arg0: tensor<8x?xf32, #tv.view<#mesh, [did(tp) * 4, _]>>
#m = #tv.mesh<tp = 2>
func.func @main(%a: tensor<8x?xf32, #tv.view<#m, [did(tp) * 4, _]>> {tv.dims = ["s"]},
                %b: tensor<8x4xf32, #tv.view<#m, [did(tp) * 4, 4]>>,
                %c: tensor<8x4xf32, #tv.view<#m, [8, did(tp) * 2]>>,
                %d: tensor<4xf32>) attributes {tv.sizes = {s = 8}} {
  return
}
