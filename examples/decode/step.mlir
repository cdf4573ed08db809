// A step of decoding with a paged cache: grouped queries of one attention layer, tensor
// parallel. Of `pages` each device has its heads; they are states, set in place. The keys
// of a sequence are in the pages that its row of `table` names, four in each. A sequence
// that is not `active` gets no token.
//
// Nothing is written or seen of a sequence whose cache is full (`errors` has 1), of which a
// page is not there (2), or is named twice, by it or by another one (3), or whose `active` is
// neither 0 nor 1 (4); `refused` counts them.
// RAN tp=1: nothing
// RAN tp=2: all-reduce 320 bytes 0 copies
// RAN tp=3: all-reduce 428 bytes 0 copies
// RAN tp=4: all-reduce 480 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<5x16xf32, #tv.view<#m, [_, _]>>
!wq = tensor<64x16xf32, #tv.view<#m, [(did(tp) * _ | 4) * 16, _]>>
!wkv = tensor<32x16xf32, #tv.view<#m, [(did(tp) * _ | 4) * 8, _]>>
!wo = tensor<16x64xf32, #tv.view<#m, [_, (did(tp) * _ | 4) * 16]>>
!pages = tensor<16x4x4x8xf32, #tv.view<#m, [_, _, did(tp) * _, _]>>

!q = tensor<5x8x1x8xf32>
!new = tensor<5x4x1x8xf32>
!rows = tensor<64x4x8xf32>
!heads = tensor<16x4x4x8xf32>
!table = tensor<5x3xi32>
!each = tensor<5xi32>

func.func @main(%x: !x {tv.name = "x"},
                %wq: !wq {tv.name = "q_proj", tv.role = "weight"}, %wk: !wkv {tv.name = "k_proj", tv.role = "weight"},
                %wv: !wkv {tv.name = "v_proj", tv.role = "weight"}, %wo: !wo {tv.name = "o_proj", tv.role = "weight"},
                %table: !table {tv.name = "table", tv.range = [-1, 16]}, %active: !each {tv.name = "active", tv.range = [0, 1]},
                %lengths: !each {tv.name = "lengths", tv.role = "state", tv.range = [0, 12]},
                %kpages: !pages {tv.name = "keys", tv.role = "state"}, %vpages: !pages {tv.name = "values", tv.role = "state"})
    -> (!x {tv.name = "y"},
        !each {tv.name = "errors", tv.check = "a sequence has a full cache (1), a page that is not there (2) or named twice (3), or is active by another number (4)"},
        tensor<i32> {tv.name = "refused"},
        !each {tv.name = "lengths"}, !pages {tv.name = "keys"}, !pages {tv.name = "values"}) {
  // What is wrong of each sequence with its token.
  %held = tv.map %lengths, %active : (!each, !each) -> !each (%length: i32, %is: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %isone = arith.cmpi eq, %is, %one : i32
    %islength = arith.cmpi sge, %length, %zero : i32
    %grows = arith.andi %isone, %islength : i1
    %more = arith.addi %length, %one : i32
    %r = arith.select %grows, %more, %length : i32
    tv.yield %r : i32
  }
  %found = tv.page_errors %table lengths(%held) page(4) pages(16) : (!table, !each) -> !each
  %errors = tv.map %found, %active : (!each, !each) -> !each (%error: i32, %is: i32) {
    %one = arith.constant 1 : i32
    %unknown = arith.constant 4 : i32
    %isunknown = arith.cmpi ugt, %is, %one : i32
    %r = arith.select %isunknown, %unknown, %error : i32
    tv.yield %r : i32
  }
  %isrefused = tv.map %errors : (!each) -> !each (%error: i32) {
    %zero = arith.constant 0 : i32
    %is = arith.cmpi ne, %error, %zero : i32
    %r = arith.extui %is : i1 to i32
    tv.yield %r : i32
  }
  %refused = tv.reduce sum %isrefused dims [0] : (!each) -> tensor<i32>

  // A sequence's new length, what it sees and in which pages, which is nothing without a
  // token, and the token's row of all pages.
  %grows = tv.map %active, %errors : (!each, !each) -> !each (%new: i32, %error: i32) {
    %zero = arith.constant 0 : i32
    %isright = arith.cmpi eq, %error, %zero : i32
    %r = arith.select %isright, %new, %zero : i32
    tv.yield %r : i32
  }
  %next = tv.add %lengths, %grows : (!each, !each) -> !each
  %sees = tv.mul %next, %grows : (!each, !each) -> !each
  %end = tv.broadcast %sees dims [0] : (!each) -> !table
  %number = tv.iota 1 : () -> !table
  %needed = tv.map %table, %end, %number : (!table, !table, !table) -> !table (%page: i32, %length: i32, %n: i32) {
    %rows = arith.constant 4 : i32
    %none = arith.constant -1 : i32
    %first = arith.muli %n, %rows : i32
    %is = arith.cmpi slt, %first, %length : i32
    %r = arith.select %is, %page, %none : i32
    tv.yield %r : i32
  }
  %sequence = tv.iota 0 : () -> !each
  %row = tv.map %sequence, %lengths, %grows : (!each, !each, !each) -> !each (%b: i32, %length: i32, %new: i32) {
    %page = arith.constant 4 : i32
    %n = arith.divui %length, %page : i32
    %i = arith.index_cast %b : i32 to index
    %j = arith.index_cast %n : i32 to index
    %at = tv.load %table[%i, %j] : !table -> i32
    %first = arith.muli %at, %page : i32
    %in = arith.remui %length, %page : i32
    %own = arith.addi %first, %in : i32
    %zero = arith.constant 0 : i32
    %outside = arith.constant -1 : i32
    %is = arith.cmpi ne, %new, %zero : i32
    %r = arith.select %is, %own, %outside : i32
    tv.yield %r : i32
  }

  %at = tv.reshape %lengths : (!each) -> tensor<5x1xi32>
  %q0 = tv.linear %x, %wq : (!x, !wq) -> tensor<5x64xf32>
  %k0 = tv.linear %x, %wk : (!x, !wkv) -> tensor<5x32xf32>
  %v0 = tv.linear %x, %wv : (!x, !wkv) -> tensor<5x32xf32>
  %q1 = tv.reshape %q0 : (tensor<5x64xf32>) -> !q
  %k1 = tv.reshape %k0 : (tensor<5x32xf32>) -> !new
  %q = tv.rope %q1 at %at base(10000.0) : (!q, tensor<5x1xi32>) -> !q
  %k2 = tv.rope %k1 at %at base(10000.0) : (!new, tensor<5x1xi32>) -> !new
  %k = tv.reshape %k2 : (!new) -> tensor<5x4x8xf32>
  %v = tv.reshape %v0 : (tensor<5x32xf32>) -> tensor<5x4x8xf32>

  %krows = tv.reshape %kpages : (!pages) -> !rows
  %vrows = tv.reshape %vpages : (!pages) -> !rows
  %knew = tv.scatter set %krows, %row, %k dim 0 : (!rows, !each, tensor<5x4x8xf32>) -> !rows
  %vnew = tv.scatter set %vrows, %row, %v dim 0 : (!rows, !each, tensor<5x4x8xf32>) -> !rows
  %knext = tv.reshape %knew : (!rows) -> !pages
  %vnext = tv.reshape %vnew : (!rows) -> !pages

  %keys = tv.transpose %knext perm [0, 2, 1, 3] : (!pages) -> !heads
  %values = tv.transpose %vnext perm [0, 2, 1, 3] : (!pages) -> !heads
  %a, %lse = tv.attention %q, %keys, %values scale(0.35) pages(%needed) : (!q, !heads, !heads, !table) -> (!q, tensor<5x8x1xf32>)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %length = tv.load %sees[%b] : !each -> i32
      %i = arith.index_cast %ki : index to i32
      %r = arith.cmpi slt, %i, %length : i32
      tv.yield %r : i1
    }
  %joined = tv.reshape %a : (!q) -> tensor<5x64xf32>
  %y = tv.linear %joined, %wo : (tensor<5x64xf32>, !wo) -> !x
  return %y, %errors, %refused, %next, %knext, %vnext : !x, !each, tensor<i32>, !each, !pages, !pages
}
