//===- View.h - how a tensor lies over a mesh -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A dimension of a tensor is a mixed-radix number. Its digits, outermost first,
// are stored digits (which element of this device's memory) and device digits
// (which coordinate on a mesh axis):
//
//     [did(tp) * 3]       blocks: device d holds 3d, 3d+1, 3d+2
//     [3 * did(tp)]       cyclic: device d holds d, p+d, 2p+d
//     [4 * did(tp) * 2]   block-cyclic with blocks of 2
//
// A *product* of radices reaches P values; the *bound* n <= P of the dimension
// cuts the values n and above, so shards are exact and may be short or empty at
// the end. A *group* `(product | lo:hi)` is a digit whose values are those of
// its product in [lo, hi), renumbered from 0; a dimension is itself the group
// [0, n).
//
// For fixed device digits the remaining values are one contiguous run in the
// lexicographic order of the stored digits. So the *local extent* of a
// dimension is one number a device, and the map from local index to global
// index is monotone.
// Everything here is arithmetic on that map.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LAYOUT_VIEW_H
#define TESSERA_LAYOUT_VIEW_H

#include "Layout/Mesh.h"
#include "Support/Result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera::layout {

/// An extent that is known only at run time; equals mlir::ShapedType::kDynamic.
constexpr int64_t kDynamic = INT64_MIN;

using Shape = std::vector<int64_t>;
using Coords = std::vector<int64_t>;

struct Factor;
/// Digits, outermost first. An empty product has the one value 0.
using Product = std::vector<Factor>;

struct Factor {
  enum class Kind {
    Stored, ///< an integer: a digit of `size` values in memory
    Rest,   ///< `_`: stored, the ceiling of what its group still needs
    Open,   ///< `?`: as `_`, and propagation may split it further
    Device, ///< `did(axis)`: the coordinate on a (sub-)axis
    Group,  ///< `(product | lo:hi)`
  };
  Kind kind;
  int64_t size = 0; ///< Stored
  SubAxis sub{};    ///< Device
  Product product;  ///< Group
  int64_t lo = 0;   ///< Group
  int64_t hi = 0;   ///< Group

  static Factor stored(int64_t size) { return {Kind::Stored, size, {}, {}}; }
  static Factor rest() { return {Kind::Rest, 0, {}, {}}; }
  static Factor open() { return {Kind::Open, 0, {}, {}}; }
  static Factor device(SubAxis sub) { return {Kind::Device, 0, sub, {}}; }
  static Factor group(Product product, int64_t lo, int64_t hi) {
    return {Kind::Group, 0, {}, std::move(product), lo, hi};
  }

  std::strong_ordering operator<=>(const Factor &other) const;
  bool operator==(const Factor &other) const {
    return (*this <=> other) == std::strong_ordering::equal;
  }
};

/// One product for `span` adjacent tensor dimensions, taken row-major as one
/// number. `span` is 1 except for `flat(k)`. A device stores a flat dimension
/// as one local dimension.
struct Dim {
  Product product;
  int64_t span = 1;
  auto operator<=>(const Dim &) const = default;
};

enum class Combiner { Sum, Max, Min };

/// Along `axes` each device holds an addend (for Sum) of the value.
struct Partial {
  std::vector<SubAxis> axes;
  Combiner combiner = Combiner::Sum;
  auto operator<=>(const Partial &) const = default;
};

struct View {
  std::vector<Dim> dims;
  std::vector<Partial> partial;
  /// The allocation domain: local dimensions, outermost in memory first,
  /// densely packed. Absent means undecided.
  std::optional<std::vector<int64_t>> alloc;
  /// A user's wishes, one for each dim, 0 the strongest; empty when none. Only
  /// in source.
  std::vector<int64_t> priority;
  auto operator<=>(const View &) const = default;

  /// Every dimension whole on every device, as `[_, _, ...]`.
  static View replicated(int64_t rank);
};

size_t hashValue(const Mesh &mesh);
size_t hashValue(const View &view);

//===----------------------------------------------------------------------===//
// From source to canonical form
//===----------------------------------------------------------------------===//

/// Checks that `view` is legal for a tensor of `shape` on `mesh`: spans cover
/// the rank, axes exist, sub-axes divide their axis and are disjoint within the
/// view (partial included), at most one `_` or `?` a group, integers positive,
/// groups not empty and within reach of their product, products reach their
/// bound, `alloc` a permutation of the local dims. Static extents only are
/// checked for reach.
Status verify(const View &view, const Shape &shape, const Mesh &mesh);

/// The one spelling of `view`: `_`, `?` and priorities replaced, axes of size 1
/// and digits that cannot matter removed, neighbours merged (see the
/// implementation for the rules). A dimension without digits is `1`; a flat(k)
/// is split where its digits allow. On a dynamic dimension one `_` stays as the
/// spelling of ceil(n / rest), if there was one.
///
/// Two legal views of a static shape place every dimension alike if and only if
/// their canonical forms are equal; tested on all small cases. Two kinds of
/// dimension may have several canonical forms, so that a move between them
/// looks like one but carries no bytes: a group with a group inside that
/// remains (from a slice through dimensions that a reshape merged unevenly),
/// and a group that shows two values of digits that cut their axis in ways that
/// do not fit (6 as 2 * 3 and as 3 * 2).
View canonicalize(const View &view, const Shape &shape, const Mesh &mesh);

bool isCanonical(const View &view, const Shape &shape, const Mesh &mesh);

//===----------------------------------------------------------------------===//
// Local and global indices. `shape` is static here; views are canonical.
//===----------------------------------------------------------------------===//

/// The bound of a view dimension: the product of the extents it spans.
int64_t boundOf(const View &view, size_t dim, const Shape &shape);

/// How many values a digit or a product reaches, saturating; `_` counts as 1.
int64_t capacity(const Factor &factor);
int64_t capacity(const Product &product);

/// The number of values of `product` in [0, bound) held at `coords`. Here and
/// below a `_` (on a dynamic dimension) is what `bound` needs.
int64_t localExtent(const Product &product, int64_t bound, const Mesh &mesh,
                    const Coords &coords);
/// The `index`-th of them.
int64_t localToGlobal(const Product &product, int64_t bound, const Mesh &mesh,
                      const Coords &coords, int64_t index);

/// One extent for each view dimension.
Shape localShape(const View &view, const Shape &shape, const Mesh &mesh,
                 const Coords &coords);
/// The largest local extents over all devices, kDynamic where `shape` is, and
/// whether all devices have the same extents (a split dynamic dimension is not
/// even).
Shape maxLocalShape(const View &view, const Shape &shape, const Mesh &mesh);
bool isEven(const View &view, const Shape &shape, const Mesh &mesh);

/// Element strides of a local tensor, dense in the order of `alloc`
/// (row-major when absent).
std::vector<int64_t> localStrides(const View &view, const Shape &localShape);

/// A piece of one dimension of a local tensor that is contiguous in the global
/// dimension: local [local, local+length) is global [global, global+length).
struct Run {
  int64_t local;
  int64_t global;
  int64_t length;
  auto operator<=>(const Run &) const = default;
};
/// All of a dimension, in increasing order, maximal pieces.
std::vector<Run> localRuns(const Product &product, int64_t bound,
                           const Mesh &mesh, const Coords &coords);

//===----------------------------------------------------------------------===//
// Views of derived tensors
//===----------------------------------------------------------------------===//

/// Sub-axes that split some dimension, and those of partial states, sorted.
std::vector<SubAxis> axesOf(const Product &product);
std::vector<SubAxis> axesOf(const View &view);
/// Those of partial states, as they are written.
std::vector<SubAxis> partialAxes(const View &view);
/// The number of devices along `axes`.
int64_t sizeOf(const std::vector<SubAxis> &axes);

/// Whether blocks of a dimension lie along `axes`, outermost first, and nothing
/// else splits it.
bool liesInBlocks(const Dim &dim, const std::vector<SubAxis> &axes);

/// The view of a row-major reshape from `from` to `to` under which no byte
/// moves and every local buffer keeps its order. It always exists: where digits
/// straddle a result dimension's border, those dimensions become one flat(k).
/// Dynamic extents are matched from the left, `?` to `?`; when that is
/// ambiguous an error names the dimension.
Result<View> reshapeView(const View &view, const Shape &from, const Shape &to,
                         const Mesh &mesh);
/// The view of the box at `offsets` of `sizes` where it already lies; its order
/// in memory is undecided, as the box need not be dense. A split dynamic
/// dimension is sliced whole.
Result<View> sliceView(const View &view, const Shape &shape,
                       const Shape &offsets, const Shape &sizes,
                       const Mesh &mesh);

/// The view in the axes of another mesh of the same ranks; an error names the
/// sub-axis that is none there (see sameDigit).
Result<View> onMesh(View view, const Mesh &from, const Mesh &to);

/// Whether `fine` places every value where `coarse` does and splits further:
/// each device's set under `fine` is a subset of its set under `coarse`. Both
/// are canonical. On a dynamic dimension: at every extent; with groups the
/// answer may be no where it is yes.
bool refines(const Product &fine, const Product &coarse, int64_t bound,
             const Mesh &mesh);

//===----------------------------------------------------------------------===//
// Text: the one grammar, for the runtime, tests, and (through a token source
// over MLIR's parser) the dialect's attributes
//===----------------------------------------------------------------------===//
//
//   mesh    ::= `<` axis `=` int (`,` axis `=` int)*
//               (`,` `devices` `=` (`[` int, ... `]` | `iota` `(` axis, ...
//               `)`))? `>`
//   view    ::= `[` dim, ... `]` (`,` `alloc` `=` `(` int, ... `)`)?
//               (`,` `partial` `=` `[` axes `:` combiner, ... `]`)?
//               (`,` `priority` `=` `[` int, ... `]`)?
//   dim     ::= (`flat` `(` int `)`)? product
//   product ::= factor (`*` factor)*
//   factor  ::= int | `_` | `?` | `did` `(` sub `)`
//             | `(` product `|` (int `:`)? int `)`
//   sub     ::= axis (`:` `(` int `)` int)?
//   axes    ::= sub | `(` sub, ... `)`
//
// `iota(tp, dp)` numbers ranks with the last named axis fastest.

/// What the grammar reads from.
class TokenSource {
public:
  virtual ~TokenSource() = default;
  /// Consumes `text` (a keyword or one punctuation character) if it is next.
  virtual bool accept(std::string_view text) = 0;
  virtual std::optional<int64_t> integer() = 0;
  /// An identifier that may also be a keyword; `_` is one.
  virtual std::optional<std::string> identifier() = 0;
  /// The error that follows is of the identifier or integer that was read last,
  /// not of what comes next.
  virtual void blameLast() = 0;
};

Result<Mesh> parseMesh(TokenSource &tokens);
Result<View> parseView(TokenSource &tokens, const Mesh &mesh);
/// `[` sub, ... `]`
Result<std::vector<SubAxis>> parseAxes(TokenSource &tokens, const Mesh &mesh);
Result<Mesh> parseMesh(std::string_view text);
Result<View> parseView(std::string_view text, const Mesh &mesh);

std::string toString(const Mesh &mesh);
std::string toString(const SubAxis &sub, const Mesh &mesh);
std::string toString(const Product &product, const Mesh &mesh);
std::string toString(const View &view, const Mesh &mesh);
const char *toString(Combiner combiner);

} // namespace tessera::layout

#endif // TESSERA_LAYOUT_VIEW_H
