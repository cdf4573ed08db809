// Where a fetch takes longer than to gather the table, for its latencies, both prices are
// told.
// RUN: tessera-compile %s --remarks -o %t.tsr 2>&1 | FileCheck %s

// CHECK: :[[#@LINE+11]]:28: [did(ep) * 256, 512] to [1024, 512]: all-gather over [ep], 786432 bytes, 7.6 us; lower bound 786432 bytes; instead of exchange, 786432 bytes, 7.6 us, or fetch over [ep], at most 1048576 bytes, 17.6 us{{$}}
// CHECK: :[[#@LINE+10]]:28: [did(ep) * 256, 2] to [1024, 2]: all-gather over [ep], 6144 bytes, 5.0 us; lower bound 6144 bytes; instead of exchange, 6144 bytes, 5.0 us{{$}}
// CHECK: :[[#@LINE+12]]:8: [did(ep) * 8, 128, 512] to [32, 128, 512]: all-gather over [ep], 3145728 bytes, 15.5 us; lower bound 3145728 bytes; instead of exchange, 3145728 bytes, 15.5 us, or fetch over [ep], at most 524288 bytes, 16.3 us{{$}}
// CHECK-NOT: gather
#m = #tv.mesh<ep = 4>
!x = tensor<1024x512xbf16, #tv.view<#m, [did(ep) * _, _]>>
!choice = tensor<1024x2xi32, #tv.view<#m, [did(ep) * _, _]>>
!weight = tensor<1024x2xbf16, #tv.view<#m, [did(ep) * _, _]>>
!up = tensor<32x512x512xbf16, #tv.view<#m, [did(ep) * _, _, _]>>
!rows = tensor<32x128x512xbf16>
func.func @main(%x: !x, %experts: !choice {tv.range = [0, 32]}, %weights: !weight, %up: !up {tv.role = "weight"}) -> !x {
  %rows, %counts, %slots = tv.dispatch %x, %experts
    : (!x, !choice) -> (!rows, tensor<32xi32>, tensor<1024x2xi32>)
  %h = tv.grouped_matmul %rows, %up counts %counts : (!rows, !up, tensor<32xi32>) -> !rows
  %y = tv.combine %h, %experts, %slots, %weights : (!rows, !choice, tensor<1024x2xi32>, !weight) -> !x
  return %y : !x
}

// GPUs read rows in each other's memory between two meetings.
// RUN: tessera-compile %s --target=cuda:sm_90a --compile-to=kernels --remarks -o %t.mlir 2>&1 | FileCheck %s --check-prefix=GPU
// GPU: :28: [did(ep) * 256, 512] to [1024, 512]: all-gather over [ep], {{.*}}, or fetch over [ep], at most 1048576 bytes, 12.6 us
// GPU: :8: {{.*}}fetch over [ep], at most 524288 bytes, 11.3 us; instead of all-gather over [ep], 3145728 bytes, 15.5 us

// Older ones, too, where a program asks for it.
// RUN: sed 's/tv.combine \(.*\) :/tv.combine \1 {tv.step = "fetch"} :/' %s | tessera-compile - --target=cuda:sm_80 --compile-to=kernels --remarks -o %t.mlir 2>&1 | FileCheck %s --check-prefix=ASKED
// ASKED: :8: {{.*}}fetch over [ep], at most 524288 bytes, 12.0 us; instead of reduce-scatter over [ep], 786432 bytes, 8.9 us
