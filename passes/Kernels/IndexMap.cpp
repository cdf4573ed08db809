//===- IndexMap.cpp - local and global indices in kernels -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The index maps of Layout/View.h as code: a local index is taken apart into
// stored digits, innermost first, and put together with the coordinates of the
// device, which are arguments of the kernel. What a group holds depends on the
// coordinates alone; it is looked up among its few cases.
//
//===----------------------------------------------------------------------===//

#include "Kernels/KernelEmitter.h"

using namespace mlir;
using namespace tessera;
using Kind = layout::Factor::Kind;

static layout::Extent boundOf(const LocalDim &dim) {
  layout::Extent bound(1);
  for (const layout::Extent &extent : dim.extents)
    bound = bound * extent;
  return bound;
}

static bool holdsStored(const layout::Factor &factor) {
  if (factor.kind == Kind::Group)
    return llvm::any_of(factor.product, holdsStored);
  return factor.kind != Kind::Device;
}

bool tessera::isWhole(const LocalDim &dim) {
  return layout::axesOf(dim.product).empty() &&
         llvm::none_of(dim.product, [](const layout::Factor &factor) {
           return factor.kind == Kind::Group;
         });
}

bool tessera::isBlock(const LocalDim &dim) {
  auto isDevice = [](const layout::Factor &factor) {
    return factor.kind == Kind::Device;
  };
  auto own = llvm::find_if_not(dim.product, isDevice);
  return dim.extents.size() == 1 &&
         std::all_of(own, dim.product.end(), [](const layout::Factor &factor) {
           return factor.kind == Kind::Stored || factor.kind == Kind::Rest;
         });
}

bool tessera::hasRuns(const LocalDim &dim, int64_t count) {
  if (isWhole(dim))
    return true;
  int64_t run = 1;
  for (const layout::Factor &factor : llvm::reverse(dim.product)) {
    if (factor.kind != Kind::Stored)
      break;
    run *= factor.size;
  }
  return dim.extents.size() == 1 && run % count == 0;
}

//===----------------------------------------------------------------------===//
// Digits
//===----------------------------------------------------------------------===//

namespace {
/// The two maps over one product; `coord` gives the digit of a sub-axis.
class Digits {
public:
  Digits(KernelEmitter &emitter, const layout::Mesh &mesh,
         llvm::function_ref<Value(const layout::SubAxis &)> coord)
      : emitter(emitter), math{emitter.builder(), emitter.loc()}, mesh(mesh),
        coord(coord) {}

  Value radix(const layout::Product &product, size_t i, Value bound) {
    const layout::Factor &factor = product[i];
    switch (factor.kind) {
    case Kind::Stored:
      return emitter.index(factor.size);
    case Kind::Device:
      return emitter.index(factor.sub.size);
    case Kind::Group:
      return emitter.index(factor.hi - factor.lo);
    case Kind::Rest:
    case Kind::Open: {
      Value others = emitter.index(1);
      for (size_t j = 0; j < product.size(); ++j)
        if (j != i)
          others = math.mul(others, radix(product, j, bound));
      Value up = math.sub(math.add(bound, others), emitter.index(1));
      return math.div(up, others);
    }
    }
    llvm_unreachable("all kinds are covered");
  }

  Value toGlobal(const layout::Product &product, Value bound, Value local) {
    size_t outermost = product.size();
    for (size_t i = product.size(); i-- > 0;)
      if (holdsStored(product[i]))
        outermost = i;
    Value global = emitter.index(0), weight = emitter.index(1);
    for (size_t i = product.size(); i-- > 0;) {
      const layout::Factor &factor = product[i];
      auto take = [&](Value count) {
        if (i == outermost)
          return local;
        Value digit = math.rem(local, count);
        local = math.div(local, count);
        return digit;
      };
      Value digit;
      if (factor.kind == Kind::Device) {
        digit = coord(factor.sub);
      } else if (factor.kind == Kind::Group) {
        Value inner = holdsStored(factor)
                          ? math.add(take(held(factor, /*before=*/false)),
                                     held(factor, /*before=*/true))
                          : emitter.index(0);
        digit =
            math.sub(toGlobal(factor.product, emitter.index(factor.hi), inner),
                     emitter.index(factor.lo));
      } else {
        digit = take(i == outermost ? Value() : radix(product, i, bound));
      }
      global = math.add(global, math.mul(digit, weight));
      if (i > 0)
        weight = math.mul(weight, radix(product, i, bound));
    }
    return global;
  }

  std::pair<Value, Value> toLocal(const layout::Product &product, Value bound,
                                  Value global) {
    Value isHeld = emitter.yes();
    Value local = emitter.index(0), weight = emitter.index(1);
    for (size_t i = product.size(); i-- > 0;) {
      const layout::Factor &factor = product[i];
      Value digit = global;
      if (i > 0) {
        // No digit has a value where the dimension is empty.
        Value size = math.max(radix(product, i, bound), emitter.index(1));
        digit = math.rem(global, size);
        global = math.div(global, size);
      }
      if (factor.kind == Kind::Device) {
        isHeld = math.both(isHeld, math.equal(digit, coord(factor.sub)));
        continue;
      }
      Value count;
      if (factor.kind == Kind::Group) {
        auto [innerHeld, inner] =
            toLocal(factor.product, emitter.index(factor.hi),
                    math.add(digit, emitter.index(factor.lo)));
        isHeld = math.both(isHeld, innerHeld);
        digit = math.sub(inner, held(factor, /*before=*/true));
        count = held(factor, /*before=*/false);
      } else if (i > 0) {
        count = radix(product, i, bound);
      }
      local = math.add(local, math.mul(digit, weight));
      if (i > 0)
        weight = math.mul(weight, count);
    }
    return {isHeld, local};
  }

  /// How many of the values lo <= v < hi of `product` this device holds: a
  /// choice among the cases of the coordinates that matter.
  Value held(const layout::Product &product, int64_t lo, int64_t hi) {
    if (lo == hi)
      return emitter.index(0);
    std::vector<layout::SubAxis> axes = layout::axesOf(product);
    Value result;
    layout::Coords coords(mesh.axes.size(), 0);
    std::function<void(size_t, Value)> visit = [&](size_t i, Value condition) {
      if (i == axes.size()) {
        int64_t count = layout::localExtent(product, hi, mesh, coords);
        if (lo > 0)
          count -= layout::localExtent(product, lo, mesh, coords);
        Value value = emitter.index(count);
        result = result ? emitter.builder().createOrFold<arith::SelectOp>(
                              emitter.loc(), condition, value, result)
                        : value;
        return;
      }
      int64_t rest =
          mesh.axes[axes[i].axis].size / (axes[i].pre * axes[i].size);
      for (int64_t digit = 0; digit < axes[i].size; ++digit) {
        coords[axes[i].axis] += digit * rest;
        Value here = math.equal(coord(axes[i]), emitter.index(digit));
        visit(i + 1, condition ? math.both(condition, here) : here);
        coords[axes[i].axis] -= digit * rest;
      }
    };
    visit(0, Value());
    return result;
  }

  /// How many values below `bound` this device holds, the bound being known at
  /// run time.
  Value held(const layout::Product &product, Value bound) {
    return countBelow(product, bound, bound);
  }

private:
  Value countBelow(const layout::Product &product, Value bound, Value below) {
    Value count = emitter.index(0), full = emitter.index(1), stride = full;
    for (size_t i = product.size(); i-- > 0;) {
      const layout::Factor &factor = product[i];
      Value size = radix(product, i, bound);
      // The digits of an empty dimension have no values.
      Value x = math.rem(math.div(below, math.max(stride, emitter.index(1))),
                         math.max(size, emitter.index(1)));
      count = math.add(math.mul(countBelow(factor, x), full),
                       math.select(has(factor, x), count, emitter.index(0)));
      full = math.mul(full, countBelow(factor, size));
      stride = math.mul(stride, size);
    }
    return math.select(math.less(below, stride), count, full);
  }

  Value countBelow(const layout::Factor &factor, Value x) {
    if (factor.kind == Kind::Device)
      return math.select(math.less(coord(factor.sub), x), emitter.index(1),
                         emitter.index(0));
    if (factor.kind == Kind::Group)
      return math.sub(countBelow(factor.product, emitter.index(factor.hi),
                                 math.add(x, emitter.index(factor.lo))),
                      held(factor, /*before=*/true));
    return x;
  }

  Value has(const layout::Factor &factor, Value x) {
    if (factor.kind == Kind::Device)
      return math.equal(x, coord(factor.sub));
    if (factor.kind == Kind::Group)
      return toLocal(factor.product, emitter.index(factor.hi),
                     math.add(x, emitter.index(factor.lo)))
          .first;
    return emitter.yes();
  }

  Value held(const layout::Factor &group, bool before) {
    return before ? held(group.product, 0, group.lo)
                  : held(group.product, group.lo, group.hi);
  }

  KernelEmitter &emitter;
  Arith math;
  const layout::Mesh &mesh;
  llvm::function_ref<Value(const layout::SubAxis &)> coord;
};
} // namespace

//===----------------------------------------------------------------------===//
// KernelEmitter
//===----------------------------------------------------------------------===//

Value KernelEmitter::coordDigit(const layout::Mesh &mesh,
                                const layout::SubAxis &sub) {
  Value coord = scalarArgument(
      plan::CoordAttr::get(b.getContext(), mesh.axes[sub.axis].name));
  if (sub.isWhole(mesh))
    return coord;
  Arith math{b, location};
  int64_t rest = mesh.axes[sub.axis].size / (sub.pre * sub.size);
  return math.rem(math.div(coord, index(rest)), index(sub.size));
}

Value KernelEmitter::globalIndex(const layout::Mesh &mesh, const LocalDim &dim,
                                 Value local) {
  if (isWhole(dim))
    return local;
  auto coord = [&](const layout::SubAxis &sub) {
    return coordDigit(mesh, sub);
  };
  return Digits(*this, mesh, coord)
      .toGlobal(dim.product, extent(boundOf(dim)), local);
}

Value KernelEmitter::globalIndex(Value tensor, int64_t dim, Value local) {
  return globalIndex(getLocal(tensor).getLayoutMesh(),
                     getSpace(tensor.getType())[dim], local);
}

std::pair<Value, Value> KernelEmitter::localIndex(const layout::Mesh &mesh,
                                                  const LocalDim &dim,
                                                  Value global) {
  if (isWhole(dim))
    return {yes(), global};
  auto coord = [&](const layout::SubAxis &sub) {
    return coordDigit(mesh, sub);
  };
  return Digits(*this, mesh, coord)
      .toLocal(dim.product, extent(boundOf(dim)), global);
}

std::pair<Value, Value> KernelEmitter::localIndex(Value tensor, int64_t dim,
                                                  Value global) {
  return localIndex(getLocal(tensor).getLayoutMesh(),
                    getSpace(tensor.getType())[dim], global);
}

Value KernelEmitter::localExtent(const layout::Mesh &mesh,
                                 const LocalDim &dim) {
  const layout::Extent bound = boundOf(dim);
  if (isWhole(dim))
    return extent(bound);
  auto coord = [&](const layout::SubAxis &sub) {
    return coordDigit(mesh, sub);
  };
  Digits digits(*this, mesh, coord);
  std::optional<int64_t> size = bound.getStatic();
  return size ? digits.held(dim.product, 0, *size)
              : digits.held(dim.product, extent(bound));
}

SmallVector<Value> KernelEmitter::globalIndices(Type type,
                                                ArrayRef<Value> local) {
  const tv::LocalAttr encoding = getLocal(type);
  SmallVector<Value> result;
  Arith math{b, location};
  for (auto [dim, index] : llvm::zip_equal(getSpace(type), local)) {
    Value global = globalIndex(encoding.getLayoutMesh(), dim, index);
    SmallVector<Value> parts;
    auto add = [&](Value part, const layout::Extent &size) {
      noteIndex(part, size);
      parts.push_back(part);
    };
    for (size_t i = dim.extents.size(); i-- > 1;) {
      Value size = extent(dim.extents[i]);
      add(math.rem(global, size), dim.extents[i]);
      global = math.div(global, size);
    }
    if (!dim.extents.empty())
      add(global, dim.extents[0]);
    result.append(parts.rbegin(), parts.rend());
  }
  return result;
}

std::pair<Value, SmallVector<Value>>
KernelEmitter::localIndices(Type type, ArrayRef<Value> global) {
  const tv::LocalAttr encoding = getLocal(type);
  SmallVector<Value> result;
  Arith math{b, location};
  Value isHeld = yes();
  size_t next = 0;
  for (const LocalDim &dim : getSpace(type)) {
    Value number = index(0);
    for (const layout::Extent &size : dim.extents)
      number = math.add(math.mul(number, extent(size)), global[next++]);
    auto [here, local] = localIndex(encoding.getLayoutMesh(), dim, number);
    isHeld = math.both(isHeld, here);
    result.push_back(local);
  }
  return {isHeld, result};
}
