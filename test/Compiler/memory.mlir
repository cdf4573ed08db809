// FSDP: f32 weights are cut over dp, cast, and gathered in bf16 where they are used. That is
// once for each that the backward needs, or, with less memory than keeping them takes,
// once more. (Views keep the rows where they are: so few are cheaper gathered, once.)
// RUN: tessera-compile %s --compile-to=kernels | grep -c 'comm.all_gather' | FileCheck %s --check-prefix=ONCE
// RUN: tessera-compile %s --memory=2MiB --compile-to=kernels | grep -c 'comm.all_gather' | FileCheck %s --check-prefix=ONCE
// RUN: tessera-compile %s --memory=900KiB --compile-to=kernels | grep -c 'comm.all_gather' | FileCheck %s --check-prefix=TWICE
// RUN: tessera-compile %s --memory=900KiB --compile-to=kernels | FileCheck %s
// RUN: tessera-compile %s --memory=900KiB --remarks -o %t.tsr 2>&1 | FileCheck %s --check-prefix=SAYS
// RUN: tessera-opt %s --tv-inline --tv-differentiate -o %t.mlir
// RUN: tessera-opt %t.mlir "--tessera=memory=900KiB" --interpret=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: not tessera-compile %s --memory=1KiB 2>&1 | FileCheck %s --check-prefix=LEAST
// ONCE: {{^}}4{{$}}
// TWICE: {{^}}6{{$}}
// CHECK-COUNT-6: comm.all_gather {{.*}}bf16
// SAYS: comm.all_gather runs again
// SAYS: between its steps a device holds
// EQUAL: interpret: @main equals the source on 2 ranks
// LEAST: memory.mlir:[[#]]:{{.*}}: error: between its steps a device holds {{[0-9]+}} bytes in the least way found, more than the 1024 allowed
// LEAST: note: {{[0-9]+}} of them for this
#m = #tv.mesh<dp = 2>
!x = tensor<16x512xbf16, #tv.view<#m, [did(dp) * _, _]>>
!w = tensor<512x512xf32, #tv.view<#m, [did(dp) * _, _]>>
!c = tensor<512x512xbf16>
!y = tensor<16x512xbf16, #tv.view<#m, [did(dp) * _, _]>>
!loss = tensor<bf16, #tv.view<#m, []>>
func.func private @layer(%x: !y, %w: !w) -> !y {
  %0 = tv.cast %w : (!w) -> !c
  %1 = tv.constrain %0 : (!c) -> !c to #tv.view<#m, [_, _]>
  %2 = tv.linear %x, %1 : (!y, !c) -> !y
  %3 = tv.tanh %2 : (!y) -> !y
  return %3 : !y
}
func.func private @loss(%x: !x, %w0: !w, %w1: !w, %w2: !w, %w3: !w) -> !loss {
  %x0 = tv.neg %x : (!x) -> !y
  %x1 = call @layer(%x0, %w0) : (!y, !w) -> !y
  %x2 = call @layer(%x1, %w1) : (!y, !w) -> !y
  %x3 = call @layer(%x2, %w2) : (!y, !w) -> !y
  %x4 = call @layer(%x3, %w3) : (!y, !w) -> !y
  %loss = tv.reduce sum %x4 dims [0, 1] : (!y) -> !loss
  return %loss : !loss
}
func.func @main(%x: !x, %w0: !w {tv.role = "weight"}, %w1: !w {tv.role = "weight"}, %w2: !w {tv.role = "weight"},
                %w3: !w {tv.role = "weight"}) -> (!loss, !w, !w, !w, !w) {
  %loss, %g:4 = tv.gradient @loss(%x, %w0, %w1, %w2, %w3) of [0] to [1, 2, 3, 4]
      : (!x, !w, !w, !w, !w) -> (!loss, !w, !w, !w, !w)
  return %loss, %g#0, %g#1, %g#2, %g#3 : !loss, !w, !w, !w, !w
}
