// Which tiles an attention gets where its own would be few: blocks share the keys of all,
// or a tile has queries of all heads that read a key head. Then the text keeps pieces.
// RUN: split-file %s %t
// RUN: tessera-compile %t/text.mlir --target=cuda:sm_90a --attention=flash --dump-dir=%t -o %t.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: FileCheck %s --check-prefix=TEXT < %t/kernels.cu
// RUN: tessera-opt %t/tiles.mlir --split-input-file --tessera="to=scheduled target=cuda:sm_90a attention=flash" | FileCheck %s --check-prefix=TILES
// RUN: tessera-compile %t/none.mlir --target=cuda:sm_90a --attention=flash --dump-dir=%t/none -o %t.tsr --quiet
// RUN: FileCheck %s --check-prefix=NONE < %t/none/plan.txt
// RUN: tessera-opt %t/mask.mlir --tessera="to=scheduled target=cuda:sm_90a attention=flash" | FileCheck %s --check-prefix=MASK
// RUN: tessera-opt %t/mask.mlir --tessera="to=scheduled target=cuda:sm_90a attention=flash" | sed 's/stages(2)>/stages(2) shared(true)>/' | not tessera-opt --cuda-verify-schedule 2>&1 | FileCheck %s --check-prefix=OFMASKS
// RUN: tessera-opt %t/dropout.mlir --tessera="to=scheduled target=cuda:sm_90a attention=flash" | sed 's/stages(2)>/stages(2) shared(true)>/' | not tessera-opt --cuda-verify-schedule 2>&1 | FileCheck %s --check-prefix=DROPPED

// No spills, no serialised products.
// CLEAN-NOT: {{warning|error}}

// TEXT: _Config = FwdConfig<bf16, 128, attention_0_Mods, 128, 128, 128, 2, 132>;
// TEXT: attention_0_pieces[attention_0_Config::MostBlocks * attention_0_Config::Groups * 2 * attention_0_Config::PieceFloats];
// TEXT: f.arrived = attention_0_arrived;

// 32 tiles of 256 steps.
// TILES: rows(128) keys(128) stages(2) shared(true)>
// As many tiles as blocks.
// TILES: rows(128) keys(128) stages(2)>
// A tile more than that, of long keys; of short ones pieces cost more.
// TILES: rows(128) keys(128) stages(2) shared(true)>
// TILES: rows(128) keys(128) stages(2)>
// Few queries of eight heads: two tiles of eight of each, three of seven.
// TILES: rows(64) keys(64) stages(2)>
// TILES: rows(56) keys(64) stages(2)>
// More of them.
// TILES: rows(128) keys(128) stages(2) shared(true)>
// How many there are is known only where it runs.
// TILES: rows(128) keys(128) stages(2)>
// Without keys results are zeros, which blocks write.
// NONE: as attention_0 {{.*}} persistent, over %{{.*}}.0, %{{.*}}.1, 132 by 1,
// MASK: rows(128) keys(128) stages(2)>
// OFMASKS: error: blocks share no tiles of an attention with a block mask
// DROPPED: error: blocks share no tiles of an attention with dropout

//--- text.mlir
!q = tensor<1x8x512x128xbf16, #tv.view<#tv.mesh<tp = 1>, [_, did(tp) * _, _, _]>>
!k = tensor<1x1x32768x128xbf16>
func.func @main(%q: !q, %k: !k, %v: !k) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.0883883) causal : (!q, !k, !k) -> (!q, tensor<1x8x512xf32>)
  return %a : !q
}
//--- tiles.mlir
!q = tensor<1x8x512x128xbf16, #tv.view<#tv.mesh<tp = 1>, [_, did(tp) * _, _, _]>>
!k = tensor<1x1x32768x128xbf16>
func.func @main(%q: !q, %k: !k, %v: !k) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.0883883) : (!q, !k, !k) -> (!q, tensor<1x8x512xf32>)
  return %a : !q
}
// -----
!q = tensor<1x33x512x128xbf16, #tv.view<#tv.mesh<tp = 1>, [_, did(tp) * _, _, _]>>
!k = tensor<1x1x32768x128xbf16>
func.func @main(%q: !q, %k: !k, %v: !k) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.0883883) : (!q, !k, !k) -> (!q, tensor<1x33x512xf32>)
  return %a : !q
}
// -----
!q = tensor<1x133x128x128xbf16, #tv.view<#tv.mesh<tp = 1>, [_, did(tp) * _, _, _]>>
!k = tensor<1x1x32768x128xbf16>
func.func @main(%q: !q, %k: !k, %v: !k) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.0883883) : (!q, !k, !k) -> (!q, tensor<1x133x128xf32>)
  return %a : !q
}
// -----
!q = tensor<1x133x128x128xbf16, #tv.view<#tv.mesh<tp = 1>, [_, did(tp) * _, _, _]>>
!k = tensor<1x1x512x128xbf16>
func.func @main(%q: !q, %k: !k, %v: !k) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.0883883) : (!q, !k, !k) -> (!q, tensor<1x133x128xf32>)
  return %a : !q
}
// -----
!q = tensor<1x8x16x128xbf16, #tv.view<#tv.mesh<tp = 1>, [_, did(tp) * _, _, _]>>
!k = tensor<1x1x32768x128xbf16>
func.func @main(%q: !q, %k: !k, %v: !k) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.0883883) : (!q, !k, !k) -> (!q, tensor<1x8x16xf32>)
  return %a : !q
}
// -----
!q = tensor<1x8x21x128xbf16, #tv.view<#tv.mesh<tp = 1>, [_, did(tp) * _, _, _]>>
!k = tensor<1x1x32768x128xbf16>
func.func @main(%q: !q, %k: !k, %v: !k) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.0883883) : (!q, !k, !k) -> (!q, tensor<1x8x21xf32>)
  return %a : !q
}
// -----
!q = tensor<1x8x40x128xbf16, #tv.view<#tv.mesh<tp = 1>, [_, did(tp) * _, _, _]>>
!k = tensor<1x1x32768x128xbf16>
func.func @main(%q: !q, %k: !k, %v: !k) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.0883883) : (!q, !k, !k) -> (!q, tensor<1x8x40xf32>)
  return %a : !q
}
// -----
!q = tensor<1x8x?x128xbf16, #tv.view<#tv.mesh<tp = 1>, [_, did(tp) * _, _, _]>>
!k = tensor<1x1x32768x128xbf16>
func.func @main(%q: !q {tv.dims = ["s"]}, %k: !k, %v: !k) -> !q attributes {tv.sizes = {s = 512}} {
  %a, %lse = tv.attention %q, %k, %v scale(0.0883883) : (!q, !k, !k) -> (!q, tensor<1x8x?xf32>)
  return %a : !q
}
//--- none.mlir
!q = tensor<5x16x1x64xbf16, #tv.view<#tv.mesh<tp = 1>, [_, did(tp) * _, _, _]>>
!k = tensor<5x4x0x64xbf16>
func.func @main(%q: !q, %k: !k, %v: !k) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) : (!q, !k, !k) -> (!q, tensor<5x16x1xf32>)
  return %a : !q
}
//--- mask.mlir
!q = tensor<1x1x512x128xbf16, #tv.view<#tv.mesh<tp = 1>, [_, did(tp) * _, _, _]>>
!k = tensor<1x1x4096x128xbf16>
func.func @main(%q: !q, %k: !k, %v: !k, %kinds: tensor<1x1x4x32xi8>) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.0883883) block_mask(%kinds) blocks [128, 128] : (!q, !k, !k, tensor<1x1x4x32xi8>) -> (!q, tensor<1x1x512xf32>)
  return %a : !q
}
//--- dropout.mlir
!q = tensor<1x1x512x128xbf16, #tv.view<#tv.mesh<tp = 1>, [_, did(tp) * _, _, _]>>
!k = tensor<1x1x4096x128xbf16>
func.func @main(%q: !q, %k: !k, %v: !k, %step: tensor<i64>) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.0883883) dropout(0.1) seed(1) stream(2) step %step : (!q, !k, !k, tensor<i64>) -> (!q, tensor<1x1x512xf32>)
  return %a : !q
}
