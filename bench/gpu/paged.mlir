// The program of attention_sparse.py's lognormal lengths, with keys and values in 8059 pages
// of 64:
//
//     tessera-compile bench/gpu/paged.mlir --target=cuda:sm_90a --attention=flash \
//       -o DIR/paged.tsr
#m = #tv.mesh<tp = 1>
!q = tensor<64x64x1x128xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!pages = tensor<8059x64x8x128xbf16, #tv.view<#m, [_, _, did(tp) * _, _]>>
!heads = tensor<8059x8x64x128xbf16>
!table = tensor<64x512xi32>
!each = tensor<64xi32>
func.func @main(%q: !q {tv.name = "q"}, %keys: !pages {tv.name = "keys"},
                %values: !pages {tv.name = "values"}, %table: !table {tv.name = "table"},
                %lengths: !each {tv.name = "lengths"}) -> (!q {tv.name = "o"}) {
  %k = tv.transpose %keys perm [0, 2, 1, 3] : (!pages) -> !heads
  %v = tv.transpose %values perm [0, 2, 1, 3] : (!pages) -> !heads
  %o, %lse = tv.attention %q, %k, %v scale(0.08838834764831845) pages(%table)
    : (!q, !heads, !heads, !table) -> (!q, tensor<64x64x1xf32>)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %length = tv.load %lengths[%b] : !each -> i32
      %end = arith.index_cast %length : i32 to index
      %r = arith.cmpi slt, %ki, %end : index
      tv.yield %r : i1
    }
  return %o : !q
}
