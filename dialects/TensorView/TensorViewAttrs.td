//===- TensorViewAttrs.td - meshes, views, local parts -----*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORVIEW_ATTRS_TD
#define TESSERA_TENSORVIEW_ATTRS_TD

include "TensorView/TensorViewDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/IR/EnumAttr.td"

class TensorView_Attr<string name, string mnemonicName, list<Trait> traits = []>
    : AttrDef<TensorView_Dialect, name, traits> {
  let mnemonic = mnemonicName;
  let hasCustomAssemblyFormat = 1;
}

// Parameters that are not copied on every access.
class Structure<string type>
    : AttrParameter<type, "", "const " # type # " &">;

def TensorView_MeshAttr : TensorView_Attr<"Mesh", "mesh"> {
  let summary = "Named axes of devices";
  let description = [{
    ```mlir
    #m = #tv.mesh<dp = 2, tp = 4>
    #t = #tv.mesh<dp = 2, tp = 4, devices = iota(tp, dp)>       // dp fastest
    #p = #tv.mesh<x = 4, devices = [0, 2, 1, 3]>
    ```
    Names logical positions. Which process, node and device each one is, is given
    when a module is loaded.

    A program may name its devices by several meshes, whose axes then are other digits
    of the same ranks: `did(x)` of `<x = 8>` is `did(a) * did(b)` of `<a = 2, b = 4>`, and
    `did(b)` is `did(x:(2)4)`. `tv-bind` writes all views in the axes of the first. Names
    are those of each mesh: in `<dp = 2, tp = 4>` and `<tp = 4, dp = 2>` they differ.
    `devices` may be another order of axes or of their parts: beside `<y = 4>`, `did(x)` of
    `<x = 4, devices = [0, 2, 1, 3]>` is `did(y:(2)2) * did(y:(1)2)`.

    It may be any other order, too, as a ring's `[0, 1, 3, 2]` or `[3, 2, 1, 0]`. Only of
    arguments and results can anybody see on which device a block is. So all values lie on
    the devices of one mesh, that of most bytes of arguments and results, and `did(x)` of
    another order is the same coordinate there. An argument or result that lies elsewhere
    by its own mesh is moved where the program begins or ends: each device sends its whole
    block to the one that has its coordinates on the other mesh, unless that has the same.
    Inside nothing moves for the devices' sake: a `tv.reshard` between such meshes changes
    the view, and says to strict mode that the move at the end is written, where it is all
    that uses the argument, or gives the result.

    Meshes that are cut at places that do not divide each other have views in the axes
    between the places at which all are cut: of `<a = 2, b = 3>` and `<c = 3, d = 2>` these
    are `<a_b = 6>`, where `did(c)` is `did(a_b:(1)3)`. `--mesh` sets the axes that are
    written, `a` and `b`.
  }];
  let parameters = (ins Structure<"::tessera::layout::Mesh">:$mesh);
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    const ::tessera::layout::Mesh *operator->() const { return &getMesh(); }
  }];
}

def TensorView_ViewAttr
    : TensorView_Attr<"View", "view",
        [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "How one tensor lies over a mesh";
  let description = [{
    ```mlir
    tensor<49152x12288xbf16, #tv.view<#m, [did(tp) * _, _]>>
    tensor<1x2048x12288xbf16, #tv.view<#m, [_, _ * did(tp) * 128, _]>>
    tensor<2048x12288xf32, #tv.view<#m, [_, _], partial = [tp : sum]>>
    ```
    A dimension is a mixed-radix number, its outermost digit first. Digits are
    device coordinates or stored:

    ```
    view    ::= `[` dim, ... `]` (`,` `alloc` `=` `(` int, ... `)`)?
                (`,` `partial` `=` `[` axes `:` combiner, ... `]`)?
                (`,` `priority` `=` `[` int, ... `]`)?
    dim     ::= (`flat` `(` int `)`)? product
    product ::= factor (`*` factor)*
    factor  ::= int | `_` | `?` | `did` `(` sub `)` | `(` product `|` (int `:`)? int `)`
    sub     ::= axis (`:` `(` int `)` int)?
    axes    ::= sub | `(` sub, ... `)`
    ```

    - `did(tp)`: the device's coordinate on the axis `tp`; `did(tp:(2)3)`: the digit
      of size 3 of that coordinate that has 2 outside of it.
    - `4`: a stored digit. `_`: as many as are needed, alone or in a product. `?`:
      the same, and propagation may split it further.
    - `(p | 16)`: the values of `p` below 16. So `(did(tp) * _ | 16) * 9` is 16 heads
      over `tp`, 9 rows each.
    - `(did(pp) * 1 | 1:2)`: a value on a part of the mesh, `axes = {pp = 1}` in other
      systems. It has a dimension of 1 that lies there: of the values of `did(pp) * 1`
      those from 1 to below 2, which are where `pp` is 1; other devices have nothing.
      With `pp = 2, tp = 4` outermost first, `pp = 1` and `tp = 3` are
      `(did(pp) * did(tp) * 1 | 7:8)`.
    - `flat(2) p`: `p` is one number for two dimensions, row-major.
    - `alloc`: the order of the dimensions in memory; `partial`: devices that differ
      on the axes hold addends, or candidates for the maximum or minimum.
    - `priority = [0, 1]`, in source only: one number a dimension of the view. Those
      of 0 propagate to the end before those of 1 take part, and so on.

    Parts are never padded: 10 as `did(tp) * _` over 4 devices is 3, 3, 3 and 1.
    `tv-bind` puts views in canonical form; from there equal types are equal views.
  }];
  let parameters = (ins "MeshAttr":$mesh, Structure<"::tessera::layout::View">:$view);
  let extraClassDeclaration = [{
    const ::tessera::layout::Mesh &getLayoutMesh() const {
      return getMesh().getMesh();
    }
    /// The same mesh, another view.
    ViewAttr with(::tessera::layout::View view) const;
  }];
}

def TensorView_LocalAttr
    : TensorView_Attr<"Local", "local",
        [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "A tensor that is one device's part of a global one";
  let description = [{
    ```mlir
    // 16 heads over 3 devices: 6, 6 and 4 of them.
    tensor<?x64xf32, #tv.local<#v, of [16, 64]>>
    // a dynamic batch b, 384 columns over 2 devices
    tensor<?x192xf32, #tv.local<#w, of [b, 384]>>
    ```
    The part that `view` gives a device of a tensor with the extents `of`, which
    may name dynamic sizes. A local extent that differs between devices or depends
    on a dynamic size is `?` in the type; it follows from view, extents and
    coordinates, so no value carries it.
  }];
  let parameters = (ins "ViewAttr":$view,
                        Structure<"::std::vector<::tessera::layout::Extent>">:$extents);
  let extraClassDeclaration = [{
    const ::tessera::layout::Mesh &getLayoutMesh() const {
      return getView().getLayoutMesh();
    }
    const ::tessera::layout::View &getLayoutView() const {
      return getView().getView();
    }
    /// The extents, kDynamic where not static.
    ::tessera::layout::Shape getGlobalShape() const;
  }];
}

def TensorView_MachineAttr : TensorView_Attr<"Machine", "machine"> {
  let summary = "What moves and loops are priced with";
  let description = [{
    ```mlir
    // ranks of a CPU, in shared memory
    #tv.machine<latency = 1.0e-5, bandwidth = 5.0e9, copy = 5.0e9, loops = 3.0e10>
    ```
    Of one device: seconds of latency of a step that communicates; bytes a second of its
    link, each way; bytes a second of a local copy; iterations a second of the loops of a
    product (a multiplication and an addition each). Every choice between ways to move
    and to compute is the one that takes less time by these: propagation's conflicts,
    placement, plans of moves, what is made again. Numbers do not depend on them.
  }];
  let parameters = (ins Structure<"::tessera::layout::Machine">:$machine);
  let genVerifyDecl = 1;
}

def TensorView_Combiner : I32EnumAttr<"Combiner", "How values are combined", [
    I32EnumAttrCase<"Sum", 0, "sum">,
    I32EnumAttrCase<"Max", 1, "max">,
    I32EnumAttrCase<"Min", 2, "min">]> {
  let cppNamespace = "::tessera::tv";
}

// Those of Combiner, in its order, and one that is none.
def TensorView_Update : I32EnumAttr<"Update", "What an update does to an element", [
    I32EnumAttrCase<"Sum", 0, "sum">,
    I32EnumAttrCase<"Max", 1, "max">,
    I32EnumAttrCase<"Min", 2, "min">,
    I32EnumAttrCase<"Set", 3, "set">]> {
  let cppNamespace = "::tessera::tv";
}

def TensorView_Passage : I32EnumAttr<"Passage", "Where views pass to", [
    I32EnumAttrCase<"None", 0, "none">,
    I32EnumAttrCase<"Forward", 1, "forward">,
    I32EnumAttrCase<"Backward", 2, "backward">]> {
  let cppNamespace = "::tessera::tv";
}

def TensorView_Pooling : I32EnumAttr<"Pooling", "What a window becomes", [
    I32EnumAttrCase<"Max", 0, "max">,
    I32EnumAttrCase<"Mean", 1, "mean">]> {
  let cppNamespace = "::tessera::tv";
}

def TensorView_Predicate : I32EnumAttr<"Predicate", "How numbers are compared", [
    I32EnumAttrCase<"EQ", 0, "eq">,
    I32EnumAttrCase<"NE", 1, "ne">,
    I32EnumAttrCase<"LT", 2, "lt">,
    I32EnumAttrCase<"LE", 3, "le">,
    I32EnumAttrCase<"GT", 4, "gt">,
    I32EnumAttrCase<"GE", 5, "ge">]> {
  let cppNamespace = "::tessera::tv";
}

// The steps of Layout/Planner.h, in its order.
def TensorView_StepKind : I32EnumAttr<"StepKind", "How a reshard moves data", [
    I32EnumAttrCase<"Slice", 0, "slice">,
    I32EnumAttrCase<"AllGather", 1, "all_gather">,
    I32EnumAttrCase<"AllReduce", 2, "all_reduce">,
    I32EnumAttrCase<"ReduceScatter", 3, "reduce_scatter">,
    I32EnumAttrCase<"AllToAll", 4, "all_to_all">,
    I32EnumAttrCase<"Permute", 5, "permute">,
    I32EnumAttrCase<"Broadcast", 6, "broadcast">,
    I32EnumAttrCase<"Exchange", 7, "exchange">,
    I32EnumAttrCase<"Fetch", 8, "fetch">]> {
  let cppNamespace = "::tessera::tv";
}

def TensorView_StepAttr : TensorView_Attr<"Step", "step"> {
  let summary = "The plan of a reshard";
  let description = [{
    ```mlir
    #tv.step<all_reduce over #m [tp], loser = "reduce-scatter, then all-gather ...">
    ```
    How the one step from the operand's view to the result's is done, and the
    alternative that lost. The combiner is that of the operand's partial state.
  }];
  let parameters = (ins
    "StepKind":$kind,
    "MeshAttr":$mesh,
    Structure<"::std::vector<::tessera::layout::SubAxis>">:$axes,
    "::mlir::StringAttr":$loser);
}

#endif // TESSERA_TENSORVIEW_ATTRS_TD
