// Packed sequences: a kernel takes a list of their tiles, which attentions share; where there
// is none, or a device has two batches, mask_mod asks. Tiles that a program gives.
// RUN: split-file %s %t
// RUN: tessera-opt %t/packed.mlir --tessera="to=kernels target=cuda:sm_90a attention=flash" | FileCheck %s --check-prefix=FLASH
// RUN: sed 's/1x/2x/g' %t/packed.mlir | tessera-opt --tessera="to=kernels target=cuda:sm_90a attention=flash" | FileCheck %s --check-prefix=MASK
// RUN: tessera-opt %t/packed.mlir --tessera=to=kernels | FileCheck %s --check-prefix=MATH
// RUN: sed 's/rows(64)/rows(128)/' %t/tiles.mlir | tessera-opt --tessera="to=kernels target=cuda:sm_90a" | FileCheck %s --check-prefix=GIVEN
// RUN: not tessera-opt %t/tiles.mlir --tessera="to=kernels target=cuda:sm_90a" 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: not bash -c "sed 's/1x/2x/g; s/rows(64)/rows(128)/' %t/tiles.mlir | tessera-opt --tessera='to=kernels target=cuda:sm_90a'" 2>&1 | FileCheck %s --check-prefix=BATCHES
// RUN: not tessera-opt %t/tiles.mlir --tessera=to=kernels 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: not tessera-opt %t/input.mlir --tessera="to=kernels target=cuda:sm_90a" 2>&1 | FileCheck %s --check-prefix=INPUT

// FLASH: plan.attention {{.*}} tiles
// FLASH: %[[TILES:.*]] = plan.launch @packed_tiles_0(%arg1)
// FLASH-NOT: plan.launch @packed_tiles
// FLASH-COUNT-2: plan.launch @attention{{.*}}, %[[TILES]])

// MASK-NOT: packed_tiles
// MASK: plan.attention {{.*}} scale(1.250000e-01) : {{.*}} mask_mod

// MATH-NOT: packed_tiles

// GIVEN: plan.attention {{.*}} tiles

// ROWS: 4:12: error: has no variant that is allowed; flash does not fit: its tiles have 64 rows, not 128;
// BATCHES: flash does not fit: it has tiles, and a device more than one batch; give it the sequences
// CPU: math does not fit: it has tiles, which flash alone takes; give it the sequences
// INPUT: flash does not fit: its tiles must be what tv.packed_tiles gives

//--- packed.mlir
!q = tensor<1x2x200x64xbf16, #tv.view<#tv.mesh<tp = 2>, [_, did(tp) * _, _, _]>>
func.func @main(%q: !q, %b: tensor<1x5xi32>) -> !q {
  %o, %l = tv.attention %q, %q, %q scale(0.125) sequences(%b) : (!q, !q, !q, tensor<1x5xi32>) -> (!q, tensor<1x2x200xf32>)
  %p, %m = tv.attention %o, %q, %q scale(0.125) sequences(%b) : (!q, !q, !q, tensor<1x5xi32>) -> (!q, tensor<1x2x200xf32>)
  return %p : !q
}

//--- tiles.mlir
!q = tensor<1x2x200x64xbf16, #tv.view<#tv.mesh<tp = 2>, [_, did(tp) * _, _, _]>>
func.func @main(%q: !q, %b: tensor<1x5xi32>) -> !q {
  %t = tv.packed_tiles %b rows(64) : (tensor<1x5xi32>) -> tensor<1x236xi32>
  %o, %l = tv.attention %q, %q, %q scale(0.125) tiles(%t) : (!q, !q, !q, tensor<1x236xi32>) -> (!q, tensor<1x2x200xf32>)
  return %o : !q
}

//--- input.mlir
!q = tensor<1x2x200x64xbf16, #tv.view<#tv.mesh<tp = 2>, [_, did(tp) * _, _, _]>>
func.func @main(%q: !q, %t: tensor<1x236xi32>) -> !q {
  %o, %l = tv.attention %q, %q, %q scale(0.125) tiles(%t) : (!q, !q, !q, tensor<1x236xi32>) -> (!q, tensor<1x2x200xf32>)
  return %o : !q
}
