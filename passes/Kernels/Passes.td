//===- Passes.td - from local tensors to kernels -----------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_PASSES_TD
#define TESSERA_KERNELS_PASSES_TD

include "TensorView/ContractPass.td"

def SetTarget : ContractPass<"tv-set-target", "Localized", "::mlir::ModuleOp"> {
  let summary = "Says what the program is compiled for";
  let description = [{
    From here on passes ask the target (Plan/Target.h): which variants of an op there
    are, what a library does together with a product, how many blocks a device runs at
    once. `cuda` alone is the GPU of this machine. Without an attribute it is the cpu.

    With `target=cuda:sm_90a`

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4xf32, #tv.local<#tv.view<#m, [did(tp) * 4], alloc = (0)>, of [8]>>
    func.func @main(%x: !x) -> !x {
      return %x : !x
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4xf32, #tv.local<#tv.view<#m, [did(tp) * 4], alloc = (0)>, of [8]>>
    module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
      func.func @main(%x: !x) -> !x {
        return %x : !x
      }
    }
    ```

    With `target=abacus`

    ```mlir
    // rejected: there is no target 'abacus'; there are cpu
    #m = #tv.mesh<tp = 2>
    !x = tensor<4xf32, #tv.local<#tv.view<#m, [did(tp) * 4], alloc = (0)>, of [8]>>
    func.func @main(%x: !x) -> !x {
      return %x : !x
    }
    ```
  }];
  let dependentDialects = ["::tessera::plan::PlanDialect"];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"cpu\"",
           "What the program is for, as cpu or cuda:sm_90a">];
}

def ExpandComposites : ContractPass<"tv-expand-composites", "Localized"> {
  let summary = "Replaces composites of local tensors by core ops";
  let description = [{
    What no pass had a use for as a whole becomes `map`, `reduce`, `broadcast` and
    matrix products: composites by their own decomposition, the bias of a product
    as an addition. A `scatter` that sums small floats sums in f32, unless it is one
    that GPUs sort, which does so in its kernel.

    Attention becomes a `plan.choose` of its variants. `math` is core ops, with the
    scores in memory. `flash`, a kernel of its own, is the attention as it stands: on
    cuda:sm_90a, in bf16 or f16, for a head dimension of 64, 96, 128, 192 (of values
    192 or 128) or 256, if each device has all keys. Where devices have parts of the
    queries, its functions get the numbers that these have on all, and there are no
    blocks, sequences, tiles or pages; where parts are no blocks of them, `causal` is one
    of the functions, and there is no dropout. `cudnn` is a
    `plan.attend`: of bf16 or f16 likewise, for head dimensions that are multiples of 8
    up to 128, with a positive scale, without a score_mod or a mask_mod, and, if it is
    causal, with all queries and at least as many keys.
    The choice says why they are missing elsewhere. If there is one variant alone, its
    ops are those of the program and the choice has no values. A block mask is asked in
    mask_mod, but by `flash` if no captured tensor has a gradient: that leaves out blocks
    of multiples of 128 queries and keys, or two of a side where these are of odd
    multiples of 64 (a map makes a mask of such) and both can be. So are packed sequences,
    but by `flash` if a device has one batch and no captured tensor has a gradient: it
    takes a list of their tiles (`tv.packed_tiles`), which all such attentions share.

    An `attention_grad` becomes a choice of `flash`, where that could be for the
    attention and its head dimension is 64, 96 or 128, `cudnn`, a `plan.attend_grad` where
    that could be for the attention, the log-sum-exp has no gradient and one query is not
    all there is with one key, and `math`. What is added to a
    captured tensor is summed over the dimensions that the index does not depend on,
    and scattered where it is more than they are. The kernel of `flash` does the first
    of that: it sums by query, by key, by the distance of the two or, where the index
    needs both, not at all, and instead of captured tensors has one for each such sum.
    At most eight are by query or distance; for those by distance the number of keys
    must be static and positions whole. Otherwise devices may have parts of the keys, as
    of the queries above.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x8xf32, #tv.local<#tv.view<#m, [4, 8], alloc = (0, 1)>, of [4, 8]>>
    !w = tensor<3x8xf32, #tv.local<#tv.view<#m, [did(tp) * 3, 8], alloc = (0, 1)>, of [6, 8]>>
    !b = tensor<3xf32, #tv.local<#tv.view<#m, [did(tp) * 3], alloc = (0)>, of [6]>>
    !y = tensor<4x3xf32, #tv.local<#tv.view<#m, [4, did(tp) * 3], alloc = (0, 1)>, of [4, 6]>>
    func.func @main(%x: !x, %w: !w, %b: !b) -> !y {
      %y = tv.linear %x, %w bias %b : (!x, !w, !b) -> !y
      return %y : !y
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x8xf32, #tv.local<#tv.view<#m, [4, 8], alloc = (0, 1)>, of [4, 8]>>
    !w = tensor<3x8xf32, #tv.local<#tv.view<#m, [did(tp) * 3, 8], alloc = (0, 1)>, of [6, 8]>>
    !b = tensor<3xf32, #tv.local<#tv.view<#m, [did(tp) * 3], alloc = (0)>, of [6]>>
    !y = tensor<4x3xf32, #tv.local<#tv.view<#m, [4, did(tp) * 3], alloc = (0, 1)>, of [4, 6]>>
    func.func @main(%x: !x, %w: !w, %b: !b) -> !y {
      %p = tv.contract %x [0, 1], %w [2, 1] to [0, 2] : (!x, !w) -> !y
      %c = tv.broadcast %b dims [1] like %p : (!b, !y) -> !y
      %y = tv.map %p, %c : (!y, !y) -> !y (%u: f32, %v: f32) {
        %s = arith.addf %u, %v : f32
        tv.yield %s : f32
      }
      return %y : !y
    }
    ```

    What the target's matrix library does together with a product stays, as its bias. On
    GPUs a tanh gelu of its result becomes its epilogue: in bf16 and f16 only, for f32
    asks for a closer tanh than cuBLASLt has. A product that may sum no terms on some
    device has no epilogue, a partial one no gelu. A tanh `gelu_grad` stays in the same
    types behind a product without bias that nothing else reads, if what went into the
    gelu lies as the product does, row-major, in rows of a multiple of 16 bytes.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x8xbf16, #tv.local<#tv.view<#m, [4, 8], alloc = (0, 1)>, of [4, 8]>>
    !w = tensor<3x8xbf16, #tv.local<#tv.view<#m, [did(tp) * 3, 8], alloc = (0, 1)>, of [6, 8]>>
    !b = tensor<3xbf16, #tv.local<#tv.view<#m, [did(tp) * 3], alloc = (0)>, of [6]>>
    !y = tensor<4x3xbf16, #tv.local<#tv.view<#m, [4, did(tp) * 3], alloc = (0, 1)>, of [4, 6]>>
    module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
      func.func @main(%x: !x, %w: !w, %b: !b) -> (!y, !y) {
        %h = tv.linear %x, %w bias %b : (!x, !w, !b) -> !y
        %g = tv.gelu tanh %h : (!y) -> !y
        %s = tv.add %h, %g : (!y, !y) -> !y
        return %g, %s : !y, !y
      }
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x8xbf16, #tv.local<#tv.view<#m, [4, 8], alloc = (0, 1)>, of [4, 8]>>
    !w = tensor<3x8xbf16, #tv.local<#tv.view<#m, [did(tp) * 3, 8], alloc = (0, 1)>, of [6, 8]>>
    !b = tensor<3xbf16, #tv.local<#tv.view<#m, [did(tp) * 3], alloc = (0)>, of [6]>>
    !y = tensor<4x3xbf16, #tv.local<#tv.view<#m, [4, did(tp) * 3], alloc = (0, 1)>, of [4, 6]>>
    module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
      func.func @main(%x: !x, %w: !w, %b: !b) -> (!y, !y) {
        %h = tv.linear %x, %w bias %b : (!x, !w, !b) -> !y
        %g = tv.gelu tanh %h : (!y) -> !y
        %s = tv.map %h, %g : (!y, !y) -> !y (%u: bf16, %v: bf16) {
          %t = arith.addf %u, %v : bf16
          tv.yield %t : bf16
        }
        return %g, %s : !y, !y
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::tessera::plan::PlanDialect"];
  let options = [
    ListOption<"attention", "attention", "std::string",
               "Variants of attention to compile in, in order of preference: "
               "flash, cudnn, math (all of them by default)">];
}

def Simplify : ContractPass<"tv-simplify", "Localized"> {
  let summary = "Brings ops on local tensors into canonical form";
  let description = [{
    Folders and canonicalization patterns of `tv`, which are for local types: there
    the type of a value says all of how it lies, and what is folded has the same.

    - A product of a transpose is a `contract` of what is transposed, with its labels
      in another order; a transpose of a transpose is one.
    - A reduction of a transpose that nothing else reads is one of what is transposed,
      where the dimensions that are left keep their order.
    - A transpose, reshape, slice, pad or concat that changes nothing is its operand,
      as is a reshape back to where it came from.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<8x4xf32, #tv.local<#tv.view<#m, [8, 4]>, of [8, 4]>>
    !t = tensor<4x8xf32, #tv.local<#tv.view<#m, [4, 8]>, of [4, 8]>>
    !w = tensor<3x8xf32, #tv.local<#tv.view<#m, [did(tp) * 3, 8]>, of [6, 8]>>
    !y = tensor<4x3xf32, #tv.local<#tv.view<#m, [4, did(tp) * 3]>, of [4, 6]>>
    func.func @main(%x: !x, %w: !w) -> !y {
      %t = tv.transpose %x perm [1, 0] : (!x) -> !t
      %y = tv.linear %t, %w : (!t, !w) -> !y
      return %y : !y
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<8x4xf32, #tv.local<#tv.view<#m, [8, 4]>, of [8, 4]>>
    !w = tensor<3x8xf32, #tv.local<#tv.view<#m, [did(tp) * 3, 8]>, of [6, 8]>>
    !y = tensor<4x3xf32, #tv.local<#tv.view<#m, [4, did(tp) * 3]>, of [4, 6]>>
    func.func @main(%x: !x, %w: !w) -> !y {
      %y = tv.contract %x [1, 0], %w [2, 1] to [0, 2] : (!x, !w) -> !y
      return %y : !y
    }
    ```
  }];
}

def HoistReshapes : ContractPass<"tv-hoist-reshapes", "Localized"> {
  let summary = "Computes in the shape of a reshape what is computed before it";
  let description = [{
    Pointwise ops on both sides of a reshape have loops of different shapes, and would be
    two kernels, as would be those before it and a slice behind it that all who read it
    would copy. Those before it are computed in its shape, if nothing else reads them
    and all that they are made of is in memory in row-major order, or a splat, or a
    broadcast along dimensions that the reshape keeps apart from others. Pointwise ops
    that read one value in several shapes read it in that of its first reshape, likewise,
    and their results are reshaped back, if no other loops could join them.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x6xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 6]>, of [8, 6]>>
    !y = tensor<4x2x3xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 2, 3]>, of [8, 2, 3]>>
    !b = tensor<6xf32, #tv.local<#tv.view<#m, [6]>, of [6]>>
    func.func @main(%x: !x, %b: !b) -> !y {
      %0 = tv.broadcast %b dims [1] : (!b) -> !x
      %1 = tv.map %x, %0 : (!x, !x) -> !x (%u: f32, %v: f32) {
        %s = arith.addf %u, %v : f32
        tv.yield %s : f32
      }
      %2 = tv.reshape %1 : (!x) -> !y
      %3 = tv.map %2 : (!y) -> !y (%u: f32) {
        %s = math.exp %u : f32
        tv.yield %s : f32
      }
      return %3 : !y
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x6xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 6]>, of [8, 6]>>
    !y = tensor<4x2x3xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 2, 3]>, of [8, 2, 3]>>
    !b = tensor<6xf32, #tv.local<#tv.view<#m, [6]>, of [6]>>
    !c = tensor<2x3xf32, #tv.local<#tv.view<#m, [2, 3]>, of [2, 3]>>
    func.func @main(%x: !x, %b: !b) -> !y {
      %0 = tv.broadcast %b dims [1] : (!b) -> !x
      %1 = tv.reshape %x : (!x) -> !y
      %2 = tv.reshape %b : (!b) -> !c
      %3 = tv.broadcast %2 dims [1, 2] : (!c) -> !y
      %4 = tv.map %1, %3 : (!y, !y) -> !y (%u: f32, %v: f32) {
        %s = arith.addf %u, %v : f32
        tv.yield %s : f32
      }
      %5 = tv.map %4 : (!y) -> !y (%u: f32) {
        %s = math.exp %u : f32
        tv.yield %s : f32
      }
      return %5 : !y
    }
    ```
  }];
}

def SplitReductions : ContractPass<"tv-split-reductions", "Localized"> {
  let summary = "Reduces to few elements in two steps, for GPUs";
  let description = [{
    A kernel has a block of threads for each row that it reduces, or for 128 bytes of
    columns. Where these would be less than half of the target's multiprocessors, for at
    least 2^20 elements of static extents, or 2^15 of each block, a reduced dimension is
    split: its parts are reduced first, by about as many blocks as multiprocessors hold
    at a time, then what they gave. Reduced dimensions side by side become one. Small
    floats are added in f32 until the end.

    Reductions stay that are a stage of a kernel over rows, as those of a softmax are, of
    rows of at most 2^16 elements, sums of columns that a kernel of rows will have, sums
    of small floats that may join a matrix product (tv-group-ops both), and those without
    a dimension of a fitting divisor.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4096x512xf32, #tv.local<#tv.view<#m, [did(tp) * 4096, 512], alloc = (0, 1)>, of [8192, 512]>>
    !y = tensor<512xf32, #tv.local<#tv.view<#m, [512], alloc = (0), partial = [tp : sum]>, of [512]>>
    module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
      func.func @main(%x: !x) -> !y {
        %y = tv.reduce sum %x dims [0] : (!x) -> !y
        return %y : !y
      }
    }
    ```

    becomes, for its columns are 16 blocks

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4096x512xf32, #tv.local<#tv.view<#m, [did(tp) * 4096, 512], alloc = (0, 1)>, of [8192, 512]>>
    !r = tensor<32x128x512xf32, #tv.local<#tv.view<#m, [did(tp) * 32, 128, 512]>, of [64, 128, 512]>>
    !s = tensor<32x512xf32, #tv.local<#tv.view<#m, [did(tp) * 32, 512]>, of [64, 512]>>
    !y = tensor<512xf32, #tv.local<#tv.view<#m, [512], alloc = (0), partial = [tp : sum]>, of [512]>>
    module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
      func.func @main(%x: !x) -> !y {
        %r = tv.reshape %x : (!x) -> !r
        %s = tv.reduce sum %r dims [1] : (!r) -> !s
        %y = tv.reduce sum %s dims [0] : (!s) -> !y
        return %y : !y
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def SeparateVariants : ContractPass<"tv-separate-variants", "Localized"> {
  let summary = "Gives variants of different choices ops of their own";
  let description = [{
    An op that only variants of several choices need would run whatever is chosen: it
    becomes an op of each of them, unless one of the choices always needs it.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4xf32, #tv.local<#tv.view<#m, [did(tp) * 4]>, of [8]>>
    func.func @main(%x: !x, %y: !x) -> (!x, !x) {
      %n = tv.sub %x, %y : (!x, !x) -> !x
      %a = tv.exp %n : (!x) -> !x
      %b = tv.abs %x : (!x) -> !x
      %c = tv.abs %y : (!x) -> !x
      %d = tv.tanh %n : (!x) -> !x
      %0 = plan.choose "kind" of "one"(%a), "two"(%b) from "tv.some" : !x
      %1 = plan.choose "kind" of "one"(%c), "two"(%d) from "tv.some" : !x
      return %0, %1 : !x, !x
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4xf32, #tv.local<#tv.view<#m, [did(tp) * 4]>, of [8]>>
    func.func @main(%x: !x, %y: !x) -> (!x, !x) {
      %n = tv.sub %x, %y : (!x, !x) -> !x
      %m = tv.sub %x, %y : (!x, !x) -> !x
      %a = tv.exp %m : (!x) -> !x
      %b = tv.abs %x : (!x) -> !x
      %c = tv.abs %y : (!x) -> !x
      %d = tv.tanh %n : (!x) -> !x
      %0 = plan.choose "kind" of "one"(%a), "two"(%b) from "tv.some" : !x
      %1 = plan.choose "kind" of "one"(%c), "two"(%d) from "tv.some" : !x
      return %0, %1 : !x, !x
    }
    ```
  }];
}

def GroupOps : ContractPass<"tv-group-ops", "Localized"> {
  let summary = "Puts ops that run together into groups";
  let description = [{
    Each set of ops that runs together becomes a `plan.group`; what runs by itself stays
    as it is (collectives, windows on memory, data of the plan). What goes together is
    found before anything is changed:

    - pointwise ops and reductions with the same loops are one kernel, as are pointwise
      ops that only a reduction of outer dimensions reads, in its loops; broadcasts, index
      numbers, random numbers and splats are computed where they are used, so they are
      in each group that uses them, a scatter, cumsum or dispatch too;
    - pointwise ops that nothing but copies read (concats, pads, slices that are no windows
      or that all who read them would copy, as results or for a reshape) are computed by
      those, where no element is computed twice and all that they read is in memory anyway;
      not on random numbers, which come several at a time;
    - maps of sums, products and casts that kernels read elsewhere are computed by those
      from what they are made of, where less goes through memory then: what is widened is
      stored narrow, and x - mean not at all;
    - kernels of at most 32768 elements that have the same loops and could run side by
      side are one; none that others wait for waits for more then;
    - on GPUs sums, maxima and minima of columns go into the kernel of rows, one with
      reductions of rows, that has at hand all that they read: at most three, of static
      extents, of at least three rows for each multiprocessor, of 256 to 16384 columns, a
      multiple of 8, in floats of at most 32 bits and rows of at most 48 KiB. The kernel
      is where the rows' was: not if that waits for the sums, or these for what comes
      after it;
    - pointwise ops that take but a number from a reduction of all elements, which runs in
      one place, are a kernel of their own;
    - matrix products are in groups with what else the target's library does with them,
      where `tv-expand-composites` kept it;
    - on GPUs a sum of columns in bf16 or f16 joins a product: of what `gelu_grad` makes
      of it, or of a factor, over what the product contracts, if the product is a matrix
      of static extents with neither bias nor gelu, what it contracts are the rows in
      memory of both factors, all three have rows of a multiple of 16 bytes, nothing it
      reads waits for the sums, and no variant of it is a kernel;
    - ops of one variant of a `plan.choose` share groups among themselves only.

    Groups come in an order that their data asks for.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x8xf32, #tv.local<#tv.view<#m, [4, 8]>, of [4, 8]>>
    !w = tensor<3x8xf32, #tv.local<#tv.view<#m, [did(tp) * 3, 8]>, of [6, 8]>>
    !b = tensor<3xf32, #tv.local<#tv.view<#m, [did(tp) * 3]>, of [6]>>
    !y = tensor<4x3xf32, #tv.local<#tv.view<#m, [4, did(tp) * 3]>, of [4, 6]>>
    func.func @main(%x: !x, %w: !w, %b: !b) -> !y {
      %p = tv.linear %x, %w : (!x, !w) -> !y
      %c = tv.broadcast %b dims [1] : (!b) -> !y
      %s = tv.map %p, %c : (!y, !y) -> !y (%u: f32, %v: f32) {
        %0 = arith.addf %u, %v : f32
        tv.yield %0 : f32
      }
      %y = tv.map %s : (!y) -> !y (%u: f32) {
        %0 = arith.mulf %u, %u : f32
        tv.yield %0 : f32
      }
      return %y : !y
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x8xf32, #tv.local<#tv.view<#m, [4, 8]>, of [4, 8]>>
    !w = tensor<3x8xf32, #tv.local<#tv.view<#m, [did(tp) * 3, 8]>, of [6, 8]>>
    !b = tensor<3xf32, #tv.local<#tv.view<#m, [did(tp) * 3]>, of [6]>>
    !y = tensor<4x3xf32, #tv.local<#tv.view<#m, [4, did(tp) * 3]>, of [4, 6]>>
    func.func @main(%x: !x, %w: !w, %b: !b) -> !y {
      %p = plan.group {
        %0 = tv.linear %x, %w : (!x, !w) -> !y
        plan.yield %0 : !y
      } : !y
      %y = plan.group {
        %c = tv.broadcast %b dims [1] : (!b) -> !y
        %s = tv.map %p, %c : (!y, !y) -> !y (%u: f32, %v: f32) {
          %0 = arith.addf %u, %v : f32
          tv.yield %0 : f32
        }
        %t = tv.map %s : (!y) -> !y (%u: f32) {
          %0 = arith.mulf %u, %u : f32
          tv.yield %0 : f32
        }
        plan.yield %t : !y
      } : !y
      return %y : !y
    }
    ```

    A matrix product has two variants on cuda:sm_90a: `cublaslt`, a `plan.contract`, and
    `own`, a kernel whose body is a `plan.product`. Those of `matmul` that fit stand on
    its group, with the reasons against others; in a variant of another choice it is the
    first that fits. Without `matmul` it is `cublaslt`, and no choice. `own` fits products
    in bf16 or f16 of matrices, or of a batch of them, whose contracted dimension is
    innermost in memory in both operands, as the columns are in the result, all in rows
    of a multiple of 16 bytes. Bias, gelu and pointwise ops behind an `own` product join
    its group while at most two of their values leave it. Random numbers do not.
  }];
  let dependentDialects = ["::tessera::plan::PlanDialect"];
  let options = [
    ListOption<"matmul", "matmul", "std::string",
               "Variants of matrix products to compile in for cuda, in order of "
               "preference: cublaslt, own (cublaslt alone by default)">];
}

def ChooseVariants : ContractPass<"tv-choose-variants", "Localized"> {
  let summary = "Makes a group of each variant, and the choice between them";
  let description = [{
    The group of a product with several variants becomes one or two groups for each, and a
    `plan.choose` between the values that leave them. `cublaslt` has a group of what
    follows its product, but bias and gelu. A variant that is alone leaves nothing to
    choose, but perhaps a reason.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x16xbf16, #tv.local<#tv.view<#m, [4, 16]>, of [4, 16]>>
    !w = tensor<8x16xbf16, #tv.local<#tv.view<#m, [did(tp) * 8, 16]>, of [16, 16]>>
    !b = tensor<8xbf16, #tv.local<#tv.view<#m, [did(tp) * 8]>, of [16]>>
    !y = tensor<4x8xbf16, #tv.local<#tv.view<#m, [4, did(tp) * 8]>, of [4, 16]>>
    func.func @main(%x: !x, %w: !w, %b: !b, %r: !y) -> !y {
      %y = plan.group of ["own", "cublaslt"] {
        %p = tv.linear %x, %w bias %b : (!x, !w, !b) -> !y
        %s = tv.map %p, %r : (!y, !y) -> !y (%u: bf16, %v: bf16) {
          %0 = arith.addf %u, %v : bf16
          tv.yield %0 : bf16
        }
        plan.yield %s : !y
      } : !y
      return %y : !y
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x16xbf16, #tv.local<#tv.view<#m, [4, 16]>, of [4, 16]>>
    !w = tensor<8x16xbf16, #tv.local<#tv.view<#m, [did(tp) * 8, 16]>, of [16, 16]>>
    !b = tensor<8xbf16, #tv.local<#tv.view<#m, [did(tp) * 8]>, of [16]>>
    !y = tensor<4x8xbf16, #tv.local<#tv.view<#m, [4, did(tp) * 8]>, of [4, 16]>>
    func.func @main(%x: !x, %w: !w, %b: !b, %r: !y) -> !y {
      %own = plan.group of ["own"] {
        %p = tv.linear %x, %w bias %b : (!x, !w, !b) -> !y
        %s = tv.map %p, %r : (!y, !y) -> !y (%u: bf16, %v: bf16) {
          %0 = arith.addf %u, %v : bf16
          tv.yield %0 : bf16
        }
        plan.yield %s : !y
      } : !y
      %p = plan.group of ["cublaslt"] {
        %0 = tv.linear %x, %w bias %b : (!x, !w, !b) -> !y
        plan.yield %0 : !y
      } : !y
      %library = plan.group {
        %0 = tv.map %p, %r : (!y, !y) -> !y (%u: bf16, %v: bf16) {
          %1 = arith.addf %u, %v : bf16
          tv.yield %1 : bf16
        }
        plan.yield %0 : !y
      } : !y
      %y = plan.choose "matmul" of "own"(%own), "cublaslt"(%library) from "tv.linear" : !y
      return %y : !y
    }
    ```
  }];
}

def EmitKernels : ContractPass<"tv-emit-kernels", "Localized", "::mlir::ModuleOp"> {
  let summary = "Makes groups kernels, and says where memory is";
  let description = [{
    Every op of `@main` becomes an op of `plan`, or stays an op of `comm`:

    - a group becomes a kernel, a function on strided memrefs, and its `plan.launch`;
      kernels that are alike are one;
    - a kernel of rows with sums of columns takes runs of neighbouring rows, each of which
      has a part of the sums, and a second loop joins the parts, always in one order;
    - where all that a kernel reduces is the combiner's identity unless a condition holds,
      which is the same in all of a row, the loop over the row is in a branch, as that over
      pairs of a block that `tv.block_mask` has decided;
    - gradients beside a block mask read walks of it, of a kernel before the first of them
      (`plan.block_walks`);
    - the group of a library's product becomes a `plan.contract`;
    - `plan.attend` and `plan.attend_grad` get operands in rows of 16-byte pieces;
    - reshape, transpose, slice and the local slice of a reshard become windows on
      their source where strides allow, else a copy: of `[L, N, K]`, one of the L is a
      run of memory, in any shape, and a part of the K is one in `[L, N, H, D]` or
      `[L * N, K]`, but not with rows of N and K in one;
    - a concat of what launches or attentions write and nothing else reads, or of
      transposes and reshapes of that, in rows of whole 32 bytes, is a `plan.join`: they
      write it there;
    - each value of a `plan.choose` is memory that a step of its variant writes and no
      other variant reads.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x8xf32, #tv.local<#tv.view<#m, [4, 8], alloc = (0, 1)>, of [4, 8]>>
    !w = tensor<3x8xf32, #tv.local<#tv.view<#m, [did(tp) * 3, 8], alloc = (0, 1)>, of [6, 8]>>
    !y = tensor<4x3xf32, #tv.local<#tv.view<#m, [4, did(tp) * 3], alloc = (0, 1)>, of [4, 6]>>
    func.func @main(%x: !x, %w: !w) -> !y {
      %p = plan.group {
        %0 = tv.linear %x, %w : (!x, !w) -> !y
        plan.yield %0 : !y
      } : !y
      %y = plan.group {
        %0 = tv.map %p : (!y) -> !y (%u: f32) {
          %s = arith.mulf %u, %u : f32
          tv.yield %s : f32
        }
        plan.yield %0 : !y
      } : !y
      return %y : !y
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x8xf32, #tv.local<#tv.view<#m, [4, 8], alloc = (0, 1)>, of [4, 8]>>
    !w = tensor<3x8xf32, #tv.local<#tv.view<#m, [did(tp) * 3, 8], alloc = (0, 1)>, of [6, 8]>>
    !y = tensor<4x3xf32, #tv.local<#tv.view<#m, [4, did(tp) * 3], alloc = (0, 1)>, of [4, 6]>>
    !strided = memref<4x3xf32, strided<[?, 1], offset: ?>>
    func.func @map_0(%from: !strided, %to: !strided) attributes {plan.kernel} {
      %c4 = arith.constant 4 : index
      %c3 = arith.constant 3 : index
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      scf.parallel (%i, %j) = (%c0, %c0) to (%c4, %c3) step (%c1, %c1) {
        %u = memref.load %from[%i, %j] : !strided
        %s = arith.mulf %u, %u : f32
        memref.store %s, %to[%i, %j] : !strided
        scf.reduce
      }
      return
    }
    func.func @main(%x: !x, %w: !w) -> !y {
      %p = plan.contract %x [0, 1], %w [2, 1] to [0, 2] from "tv.linear" : (!x, !w) -> !y
      %y = plan.launch @map_0(%p) scalars [] from "tv.map" : (!y) -> !y
      return %y : !y
    }
    ```

    The `own` variant of a product is a `plan.product`, with what follows it as its
    epilogue:

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x16xbf16, #tv.local<#tv.view<#m, [4, 16]>, of [4, 16]>>
    !w = tensor<8x16xbf16, #tv.local<#tv.view<#m, [did(tp) * 8, 16]>, of [16, 16]>>
    !b = tensor<8xbf16, #tv.local<#tv.view<#m, [did(tp) * 8]>, of [16]>>
    !y = tensor<4x8xbf16, #tv.local<#tv.view<#m, [4, did(tp) * 8]>, of [4, 16]>>
    module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
      func.func @main(%x: !x, %w: !w, %b: !b, %r: !y) -> !y {
        %y = plan.group of ["own"] {
          %p = tv.linear %x, %w bias %b : (!x, !w, !b) -> !y
          %s = tv.map %p, %r : (!y, !y) -> !y (%u: bf16, %v: bf16) {
            %0 = arith.addf %u, %v : bf16
            tv.yield %0 : bf16
          }
          plan.yield %s : !y
        } : !y
        return %y : !y
      }
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x16xbf16, #tv.local<#tv.view<#m, [4, 16]>, of [4, 16]>>
    !w = tensor<8x16xbf16, #tv.local<#tv.view<#m, [did(tp) * 8, 16]>, of [16, 16]>>
    !b = tensor<8xbf16, #tv.local<#tv.view<#m, [did(tp) * 8]>, of [16]>>
    !y = tensor<4x8xbf16, #tv.local<#tv.view<#m, [4, did(tp) * 8]>, of [4, 16]>>
    !x_memory = memref<4x16xbf16, strided<[?, 1], offset: ?>>
    !w_memory = memref<8x16xbf16, strided<[?, 1], offset: ?>>
    !b_memory = memref<8xbf16, strided<[1], offset: ?>>
    !y_memory = memref<4x8xbf16, strided<[?, 1], offset: ?>>
    module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
      func.func @linear_0(%x: !x_memory, %w: !w_memory, %b: !b_memory, %r: !y_memory, %y: !y_memory) attributes {plan.kernel} {
        plan.product %x, %w to %y : !x_memory, !w_memory to !y_memory
            epilogue (%sum: f32, %row: index, %column: index) {
          %0 = memref.load %b[%column] : !b_memory
          %1 = arith.extf %0 : bf16 to f32
          %2 = arith.addf %sum, %1 : f32
          %3 = memref.load %r[%row, %column] : !y_memory
          %4 = arith.extf %3 : bf16 to f32
          %5 = arith.addf %2, %4 : f32
          tv.yield %5 : f32
        }
        return
      }
      func.func @main(%x: !x, %w: !w, %b: !b, %r: !y) -> !y {
        %y = plan.launch @linear_0(%x, %w, %b, %r) scalars [] from "tv.linear" : (!x, !w, !b, !y) -> !y
        return %y : !y
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect",
                           "::tessera::plan::PlanDialect"];
}

#endif // TESSERA_KERNELS_PASSES_TD
