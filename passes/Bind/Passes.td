//===- Passes.td - a user's program in one spelling --------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BIND_PASSES_TD
#define TESSERA_BIND_PASSES_TD

include "TensorView/ContractPass.td"

def ReadShardingsPass : Pass<"tv-read-shardings", "::mlir::ModuleOp"> {
  let summary = "Views of arguments and results by name, from a file";
  let description = [{
    Sets `tv.user_view` where `tv.name` is like a pattern of `file`, whose `*` and `?`
    stand for any text and any character; `tv-bind` makes types of it. With the lines

        # of the weights
        mesh <tp = 2>
        layers.*.wq: [did(tp) * _, _]

    `%w: tensor<8x4xf32> {tv.name = "layers.0.wq"}` becomes `%w: tensor<8x4xf32>
    {tv.name = "layers.0.wq", tv.user_view = #tv.view<#tv.mesh<tp = 2>, [did(tp) * _, _]>}`.
    The next value of a state follows the state. A pattern that no name is like is an
    error, and so is a tensor that has a view already.

    With `file=/nowhere/gpt.shardings`:

    ```mlir
    // rejected: cannot read the shardings '/nowhere/gpt.shardings'
    func.func @f(%x: tensor<8x4xf32> {tv.name = "x"}) {
      return
    }
    ```
  }];
  let options = [
    Option<"file", "file", "std::string", "", "What to read">
  ];
}

def BindPass : Pass<"tv-bind", "::mlir::ModuleOp"> {
  let summary = "Fixes the mesh and gives every view its one spelling";
  let description = [{
    Applies `mesh` to the program's meshes, writes the views of all in the axes of the
    first, as `did(x:(2)4)` of `<x = 8>` for `did(b)` of `<a = 2, b = 4>` (or of one that
    is cut where all are, if they are cut at places that do not divide), gives each
    use of a constant, iota, broadcast or random value a copy of its own, replaces `_`
    and `?`, and writes every view in canonical form, so that from here on equal types
    are equal views. What the user wrote stays as `tv.user_view` on arguments and
    results; there the source may write a view, too, instead of in the type and where it
    is used. Calls and gradients are ops before.

    Of meshes that list devices in orders that are none of axes of each other, values lie
    on those of the mesh with most bytes of arguments and results, and views on others are
    read as if these listed the same. The `tv.user_view` of an argument or result keeps
    its devices, and `tv.user_move` there says that the source has a reshard between them.

    With `mesh=tp=4`:

    ```mlir
    #m = #tv.mesh<tp = 2>
    func.func @f(%x: tensor<8x4xf32, #tv.view<#m, [did(tp) * _, _]>>) {
      return
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 4>
    func.func @f(%x: tensor<8x4xf32, #tv.view<#m, [did(tp) * 2, 4]>>
                     {tv.user_view = #tv.view<#m, [did(tp) * _, _]>}) {
      return
    }
    ```
  }];
  let options = [
    ListOption<"mesh", "mesh", "std::string",
               "Sizes of mesh axes, as tp=4,dp=2; axes not named keep theirs">
  ];
}

def SimplifyIndicesPass
    : ContractPass<"tv-simplify-indices", "Bound"> {
  let summary = "Removes transposes and reshapes that undo each other";
  let description = [{
    So that what a program moves does not depend on how it is written: a transpose of a
    transpose is one or none, a reshape back to where a value came from is that value,
    and the transpose of a product, or of what pointwise ops make of one, is the product
    in the other order. The left factor of a product that is changed is then the one of
    the result's first dimension, and a product that it alone reads comes as in a product
    of matrices. What has a view of its own, or other uses, stays: the user says how it
    lies. But where a value comes back with a view, and nothing else reads it, it has
    that view.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !a = tensor<8x4xf32, #tv.view<#m, [did(tp) * 4, 4]>>
    func.func @f(%a: !a, %b: tensor<4x6xf32>) -> tensor<8x6xf32> {
      %0 = tv.transpose %a perm [1, 0] : (!a) -> tensor<4x8xf32>
      %1 = tv.transpose %b perm [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
      %2 = tv.matmul %1, %0 : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
      %y = tv.transpose %2 perm [1, 0] : (tensor<6x8xf32>) -> tensor<8x6xf32>
      return %y : tensor<8x6xf32>
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !a = tensor<8x4xf32, #tv.view<#m, [did(tp) * 4, 4]>>
    func.func @f(%a: !a, %b: tensor<4x6xf32>) -> tensor<8x6xf32> {
      %y = tv.contract %a [0, 1], %b [1, 2] to [0, 2]
        : (!a, tensor<4x6xf32>) -> tensor<8x6xf32>
      return %y : tensor<8x6xf32>
    }
    ```
  }];
}

#endif // TESSERA_BIND_PASSES_TD
