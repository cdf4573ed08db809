//===- Describe.cpp - how a value lies, in words --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Describe.h"
#include "TensorView/TensorView.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace tessera;
using namespace tessera::layout;

/// Of a table: more devices, or more pieces of a dimension, are counted.
static constexpr int64_t kMaxDevices = 16;
static constexpr size_t kMaxRuns = 4;

static std::string axesText(llvm::ArrayRef<SubAxis> axes, const Mesh &mesh) {
  return llvm::join(llvm::map_range(axes,
                                    [&](const SubAxis &sub) {
                                      return "`" + toString(sub, mesh) + "`";
                                    }),
                    ", ");
}

/// "dimension 1", or "dimensions 1 to 2" of a flat(2).
static std::string dimText(const View &view, size_t dim) {
  int64_t first = 0;
  for (const Dim &before : llvm::ArrayRef(view.dims).take_front(dim))
    first += before.span;
  if (view.dims[dim].span == 1)
    return "dimension " + std::to_string(first);
  return "dimensions " + std::to_string(first) + " to " +
         std::to_string(first + view.dims[dim].span - 1) + " as one";
}

static void printSplits(llvm::raw_ostream &os, const View &view,
                        const Shape &extents, const Mesh &mesh) {
  const Shape local = maxLocalShape(view, extents, mesh);
  const char *most = isEven(view, extents, mesh) ? "" : "at most ";
  std::vector<SubAxis> used;
  for (auto [i, dim] : llvm::enumerate(view.dims)) {
    std::vector<SubAxis> axes = axesOf(dim.product);
    llvm::append_range(used, axes);
    if (axes.empty())
      continue;
    os << "- " << dimText(view, i) << " is split over " << axesText(axes, mesh);
    if (local[i] != kDynamic)
      os << ": " << most << local[i] << " of " << boundOf(view, i, extents)
         << " on a device";
    os << "\n";
  }
  for (const Partial &partial : view.partial) {
    llvm::append_range(used, partial.axes);
    os << "- devices along " << axesText(partial.axes, mesh)
       << " hold parts: the value is their " << toString(partial.combiner)
       << "\n";
  }
  std::vector<SubAxis> left;
  for (auto [i, axis] : llvm::enumerate(mesh.axes))
    if (axis.size > 1 && llvm::none_of(used, [i = int(i)](const SubAxis &sub) {
          return sub.axis == i;
        }))
      left.push_back({int(i), 1, axis.size});
  if (!left.empty())
    os << "- devices along " << axesText(left, mesh) << " have the same\n";
}

static void printDevices(llvm::raw_ostream &os, const View &view,
                         const Shape &extents, const Mesh &mesh) {
  os << "\n| device |";
  for (size_t i = 0; i < view.dims.size(); ++i)
    os << " " << dimText(view, i) << " |";
  os << "\n| --- |";
  for (size_t i = 0; i < view.dims.size(); ++i)
    os << " --- |";
  os << "\n";
  const int64_t devices = mesh.numDevices();
  for (int64_t rank = 0; rank < std::min(devices, kMaxDevices); ++rank) {
    const Coords coords = mesh.coordsOfRank(rank);
    os << "| " << rank << ":";
    for (auto [axis, at] : llvm::zip(mesh.axes, coords))
      os << " " << axis.name << "=" << at;
    os << " |";
    for (auto [i, dim] : llvm::enumerate(view.dims)) {
      std::vector<Run> runs =
          localRuns(dim.product, boundOf(view, i, extents), mesh, coords);
      os << (runs.empty() ? " none" : " ");
      llvm::interleaveComma(llvm::ArrayRef(runs).take_front(kMaxRuns), os,
                            [&](const Run &run) {
                              os << run.global;
                              if (run.length > 1)
                                os << ".." << run.global + run.length - 1;
                            });
      if (runs.size() > kMaxRuns)
        os << " and " << runs.size() - kMaxRuns << " more";
      os << " |";
    }
    os << "\n";
  }
  if (devices > kMaxDevices)
    os << "\nand " << devices - kMaxDevices << " devices more\n";
}

std::string lsp::describe(mlir::RankedTensorType type, const Shape &extents) {
  const View &view = tv::getView(type).getView();
  const Mesh &mesh = tv::getView(type).getLayoutMesh();
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "`" << toString(view, mesh) << "` on `" << toString(mesh) << "`\n\n";
  printSplits(os, view, extents, mesh);
  const bool isKnown = !llvm::is_contained(extents, kDynamic);
  if (isKnown) {
    auto bytesOf = [&](const Shape &shape) {
      int64_t bytes = (type.getElementTypeBitWidth() + 7) / 8;
      for (int64_t extent : shape)
        bytes *= extent;
      return bytes;
    };
    const bool isMost = !type.hasStaticShape() || !isEven(view, extents, mesh);
    os << "- " << (isMost ? "at most " : "")
       << bytesOf(maxLocalShape(view, extents, mesh)) << " bytes on a device, "
       << bytesOf(extents) << " in all\n";
    if (!view.dims.empty())
      printDevices(os, view, extents, mesh);
  }
  return text;
}
