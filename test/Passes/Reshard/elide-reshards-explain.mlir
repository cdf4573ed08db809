// Remarks of elision tell what remains: not that a move of the product's result was one,
// before the product was placed anew; and nothing of that where it is placed together.
// RUN: tessera-opt %s --tessera="to=local explain op-by-op" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=ALONE --implicit-check-not="is one move"
// RUN: tessera-opt %s --tessera="to=local explain" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --implicit-check-not="is one move" --implicit-check-not="operands that lie"

// ALONE: remark: 'tv.matmul' has operands that lie as [4, did(x) * 2], [did(x) * 2, did(y) * 4]: 96 bytes, 10 us; otherwise 128 bytes, 10 us
// ALONE: remark: [did(y) * 2, 4] to [4, did(x) * 2]: exchange, 32 bytes
// CHECK: remark: places ops together, 1 of them otherwise than alone: 320 bytes, 5.001 us; otherwise 96 bytes, 10 us
// CHECK: remark: [did(y) * 2, 4] to [4, did(x) * 2], partial = [y : sum]: split to partial over [y], 0 bytes
#m = #tv.mesh<x = 2, y = 3>
!a = tensor<4x4xf32, #tv.view<#m, [did(y) * _, _]>>
!b = tensor<4x12xf32, #tv.view<#m, [did(x) * _, _]>>
!c = tensor<4x12xf32, #tv.view<#m, [_, did(y) * _]>>
func.func @main(%a: !a, %b: !b, %c: !c) -> !c {
  %1 = tv.matmul %a, %b : (!a, !b) -> tensor<4x12xf32>
  %2 = tv.add %1, %c : (tensor<4x12xf32>, !c) -> !c
  return %2 : !c
}
