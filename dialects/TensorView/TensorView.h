//===- TensorView.h - the tv dialect -------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORVIEW_TENSORVIEW_H
#define TESSERA_TENSORVIEW_TENSORVIEW_H

#include "Layout/Extent.h"
#include "Layout/Machine.h"
#include "Layout/Rule.h"
#include "Layout/View.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

// Hashes of attribute parameters, found by argument-dependent lookup.
namespace tessera::layout {
inline llvm::hash_code hash_value(const Mesh &mesh) { return hashValue(mesh); }
inline llvm::hash_code hash_value(const View &view) { return hashValue(view); }
inline llvm::hash_code hash_value(const std::vector<Extent> &extents) {
  llvm::hash_code hash(extents.size());
  for (const Extent &extent : extents)
    hash = llvm::hash_combine(hash, hashValue(extent));
  return hash;
}
inline llvm::hash_code hash_value(const std::vector<SubAxis> &axes) {
  llvm::hash_code hash(axes.size());
  for (const SubAxis &sub : axes)
    hash = llvm::hash_combine(hash, sub.axis, sub.pre, sub.size);
  return hash;
}
inline llvm::hash_code hash_value(const Machine &machine) {
  auto hash = [](double of) { return llvm::bit_cast<uint64_t>(of); };
  return llvm::hash_combine(hash(machine.latency), hash(machine.bandwidth),
                            hash(machine.copy), hash(machine.loops));
}
} // namespace tessera::layout

namespace mlir {
class ImplicitLocOpBuilder;
} // namespace mlir

namespace tessera::tv {
/// Refuses operands that are partial and read; the default of
/// ShardingRuleOpInterface's transferPartial.
llvm::LogicalResult
refusePartial(mlir::Operation *op,
              llvm::ArrayRef<std::optional<layout::Combiner>> operands,
              llvm::SmallVectorImpl<std::optional<layout::Combiner>> &results,
              std::string &why);
/// An error where an op on local types may not run on partial operands as they
/// lie, or its results are partial along other axes than they make them.
llvm::LogicalResult verifyLocalPartials(mlir::Operation *op);
} // namespace tessera::tv

namespace mlir::OpTrait {
/// An op whose result is cheaper to make anew at each use than to move.
template <typename ConcreteOp>
class Rematerializable : public TraitBase<ConcreteOp, Rematerializable> {};

/// An op that runs on every element by itself and names no dimension, so that a
/// flat(k) of adjacent dimensions is one dimension to it.
template <typename ConcreteOp>
class Pointwise : public TraitBase<ConcreteOp, Pointwise> {};

/// An op whose result may lie in the memory of its first operand: the same
/// elements, or some of them.
template <typename ConcreteOp>
class SharesMemory : public TraitBase<ConcreteOp, SharesMemory> {};

/// An op that says something to propagation and is gone after it. Each result
/// is the operand of its number.
template <typename ConcreteOp>
class GuidesPropagation : public TraitBase<ConcreteOp, GuidesPropagation> {};
} // namespace mlir::OpTrait

#include "TensorView/TensorViewDialect.h.inc"
#include "TensorView/TensorViewEnums.h.inc"

namespace tessera::tv {
class Cotangents;
class ElementBuilder;

/// How an op combines elements, and along which global dimensions.
struct Reduction {
  Combiner combiner;
  llvm::ArrayRef<int64_t> dims;
};

/// The labels of a contraction's dimensions. A label of a, b and the result is
/// a batch, one of a and the result a row, of b and the result a column, of a
/// and b one that is summed over. Each is at most once in each tensor.
struct ContractionLabels {
  llvm::SmallVector<int32_t> a, b, result;
};

/// An op's operands, and the values from outside that its regions use.
llvm::SmallVector<mlir::Value> getOperandsAndCaptured(mlir::Operation *op);
} // namespace tessera::tv

#include "TensorView/TensorViewInterfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "TensorView/TensorViewAttrs.h.inc"
#define GET_OP_CLASSES
#include "TensorView/TensorViewOps.h.inc"

namespace tessera::tv {

/// The view of a tensor type or value; null if it has none.
ViewAttr getView(mlir::Type type);
inline ViewAttr getView(mlir::Value value) { return getView(value.getType()); }

/// How one device's part of a tensor lies.
inline LocalAttr getLocal(mlir::Type type) {
  return llvm::cast<LocalAttr>(
      llvm::cast<mlir::RankedTensorType>(type).getEncoding());
}
inline LocalAttr getLocal(mlir::Value value) {
  return getLocal(value.getType());
}

/// The same shape and element type under another encoding, or none.
mlir::RankedTensorType withEncoding(mlir::Type type, mlir::Attribute encoding);

/// The type of one device's part of a tensor of `type` (with a view) whose
/// extents are `extents`.
mlir::RankedTensorType getLocalType(mlir::RankedTensorType type,
                                    std::vector<layout::Extent> extents);

/// The shape of the whole tensor that a tensor type speaks of: its own, or
/// under
/// `#tv.local` that of the encoding's extents.
layout::Shape getGlobalShape(mlir::Type type);

/// The views of the boxes of `op`, its results or its operands, that place them
/// where they are when the whole lies as `whole`.
Result<std::vector<layout::View>> getBoxViews(WindowOpInterface op,
                                              const layout::View &whole,
                                              const layout::Mesh &mesh);

/// What an element is in a scalar region: its type, signless.
mlir::Type getScalarType(mlir::Type element);

/// Whether both are one value, or made in the same way of such, where `skip`
/// gives what a value is a copy of, or itself; whether both regions compute the
/// same of what is the same.
using Skip = llvm::function_ref<mlir::Value(mlir::Value)>;
bool areSame(mlir::Value a, mlir::Value b, Skip skip);
bool areSame(mlir::Region &a, mlir::Region &b, Skip skip);

/// Puts the op's name into its location, if no name is there yet: what the op
/// becomes is then known to come from it.
void nameLocation(mlir::Operation *op);

/// The grammar's tokens out of MLIR's parser.
class AsmTokenSource : public layout::TokenSource {
public:
  explicit AsmTokenSource(mlir::AsmParser &parser) : parser(parser) {}
  bool accept(std::string_view text) override;
  std::optional<int64_t> integer() override;
  std::optional<std::string> identifier() override;
  void blameLast() override { blamesLast = true; }
  /// At what is wrong.
  mlir::InFlightDiagnostic emitError() const;

private:
  mlir::AsmParser &parser;
  llvm::SMLoc last;
  bool blamesLast = false;
};

/// `tv.variants = ["flash", "math"]` on attention: the variants of this op to
/// compile in, the preferred first.
inline constexpr llvm::StringLiteral kVariantsAttr = "tv.variants";

/// Attributes of functions, their arguments and results.
///
/// `tv.sizes = {b = 64, s = [256, 8]}` on a function declares its dynamic sizes
/// with their maximum, or maximum and multiple.
inline constexpr llvm::StringLiteral kSizesAttr = "tv.sizes";
/// `tv.dims = ["b", "s"]` on an argument names its `?` extents in order.
inline constexpr llvm::StringLiteral kDimsAttr = "tv.dims";
/// `tv.name = "encoder.weight"` on an argument or result: its name for people
/// and tensor files.
inline constexpr llvm::StringLiteral kNameAttr = "tv.name";
/// `tv.role = "weight"` on an argument: "input" (default), "weight", "state",
/// or "parameter", which is a weight and state.
inline constexpr llvm::StringLiteral kRoleAttr = "tv.role";
inline bool isWeightRole(mlir::StringAttr role) {
  return role && (role == "weight" || role == "parameter");
}
inline bool isStateRole(mlir::StringAttr role) {
  return role && (role == "state" || role == "parameter");
}
/// `tv.init = "zero"` on a state: what it is before the first run where nothing
/// else is given.
inline constexpr llvm::StringLiteral kInitAttr = "tv.init";
/// `tv.check = "..."` on a result: what it means where one of its integers is
/// not 0 after a run, which is an error.
inline constexpr llvm::StringLiteral kCheckAttr = "tv.check";
/// `tv.range = [lo, hi]` on an argument: elements that the interpreter makes up
/// are in [lo, hi).
inline constexpr llvm::StringLiteral kRangeAttr = "tv.range";
/// `tv.user_view = #tv.view<...>` on an argument or result: what the user
/// wrote, kept by `tv-bind`, with the devices on which it is to lie.
inline constexpr llvm::StringLiteral kUserViewAttr = "tv.user_view";
/// `tv.user_move` on a reshard: the user wrote it. Passes keep it until it is
/// planned, and strict mode lets it pass. On an argument or result: the user
/// wrote the move from or to the devices on which it lies.
inline constexpr llvm::StringLiteral kUserMoveAttr = "tv.user_move";
/// `tv.move` on a step, from tv-plan-reshards to tv-localize, for each of its
/// tensors: the number that remarks give the move of which it is one. It
/// is printed in the generic form alone.
inline constexpr llvm::StringLiteral kMoveAttr = "tv.move";
/// `tv.step = "all_gather"` on a reshard: one step of this kind does it.
inline constexpr llvm::StringLiteral kStepAttr = "tv.step";
/// `tv.local` on an op: it is written for each device, so that nothing may move
/// for it.
inline constexpr llvm::StringLiteral kLocalOpAttr = "tv.local";
/// `tv.machine = #tv.machine<...>` on the program: what choices are priced
/// with.
inline constexpr llvm::StringLiteral kMachineAttr = "tv.machine";
/// That of the program that the op is in; without one an H200's.
layout::Machine getMachine(mlir::Operation *op);

} // namespace tessera::tv

#endif // TESSERA_TENSORVIEW_TENSORVIEW_H
