//===- KernelEmitter.h - tv values as loops over memory -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel is made by pulling: the loops that store a result ask for its
// element at some local indices; an op that is part of the kernel answers with
// scalar code on elements of its operands, any other value with a load. So
// broadcasts, index numbers and random numbers never exist in memory.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_KERNELEMITTER_H
#define TESSERA_KERNELS_KERNELEMITTER_H

#include "Kernels/Memory.h"
#include "Plan/Plan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace tessera {

using tv::Arith;

/// Whether every device has all of a dimension, in order.
bool isWhole(const LocalDim &dim);

/// Whether what a device has of a dimension follows each other.
bool isBlock(const LocalDim &dim);

/// Whether `count` of what a device has of a dimension, from a multiple of that
/// on, are such in the whole, too.
bool hasRuns(const LocalDim &dim, int64_t count);

/// The type of an element in kernels: that of scalar regions, small floats as
/// f32.
mlir::Type getKernelScalar(mlir::Type element);

/// A constant in the type of kernels.
mlir::TypedAttr getKernelConstant(mlir::Attribute value, mlir::Type type);

class KernelEmitter final : public tv::ElementBuilder {
public:
  /// Starts the kernel `name` at the builder's place. `inlined` are the ops
  /// whose elements are computed where they are used.
  KernelEmitter(mlir::OpBuilder &builder, mlir::Location loc,
                llvm::StringRef name,
                llvm::SetVector<mlir::Operation *> inlined);

  mlir::Value element(mlir::Value tensor,
                      llvm::ArrayRef<mlir::Value> indices) override;
  /// From here on `element` answers with this.
  void setElement(mlir::Value tensor, llvm::ArrayRef<mlir::Value> indices,
                  mlir::Value scalar);

  /// Makes a result of the kernel of a main program's value.
  void addOutput(mlir::Value tensor);
  /// Memory that the kernel alone needs: one more result, after the outputs.
  mlir::Value addScratch(mlir::Type tensor);
  void store(mlir::Value scalar, mlir::Value output,
             llvm::ArrayRef<mlir::Value> indices);
  /// An element in memory: of an input, or what `store` stored.
  mlir::Value loadMemory(mlir::Value tensor,
                         llvm::ArrayRef<mlir::Value> indices);

  /// The element of a captured tensor at global indices; outside of it 0.
  /// Errors are at `op`.
  mlir::Value loadCaptured(mlir::Operation *op, mlir::Value tensor,
                           llvm::ArrayRef<mlir::Value> indices);
  /// The memory of an input, or of an output that was added.
  mlir::Value argument(mlir::Value tensor);

  llvm::SmallVector<mlir::Value>
  evaluate(mlir::Block &block, llvm::ArrayRef<mlir::Value> arguments) override;
  mlir::Value constant(mlir::Attribute value, mlir::Type element) override;
  mlir::Value attribute(mlir::Operation *op, mlir::StringAttr name) override;
  mlir::Value randomNumber(mlir::Value number, mlir::Value seed,
                           mlir::Value stream, int64_t bits) override;
  /// A region that yields what `body` returns for its arguments.
  void scalarRegion(mlir::Region &region, mlir::TypeRange types,
                    llvm::function_ref<llvm::SmallVector<mlir::Value>(
                        llvm::ArrayRef<mlir::Value>)>
                        body);

  /// A loop nest whose iterations are independent, as one op; without extents
  /// it has one iteration.
  void parallel(llvm::ArrayRef<mlir::Value> extents,
                llvm::function_ref<void(llvm::ArrayRef<mlir::Value>)> body);
  /// One whose iterations each return an addend of every sum, maximum or
  /// minimum; they may be combined in any order.
  struct Reduction {
    tv::Combiner combiner;
    mlir::Type element;
  };
  llvm::SmallVector<mlir::Value>
  reduce(llvm::ArrayRef<mlir::Value> extents,
         llvm::ArrayRef<Reduction> reductions,
         llvm::function_ref<
             llvm::SmallVector<mlir::Value>(llvm::ArrayRef<mlir::Value>)>
             body);
  llvm::SmallVector<mlir::Value> inOrder(llvm::ArrayRef<mlir::Value> extents,
                                         mlir::ValueRange init,
                                         Body body) override;

  mlir::Value guarded(mlir::Value condition, mlir::Value otherwise,
                      llvm::function_ref<mlir::Value()> then) override;
  void ifThen(mlir::Value condition, llvm::function_ref<void()> then);

  llvm::SmallVector<mlir::Value> localExtents(mlir::Value tensor) override;
  mlir::Value extent(const layout::Extent &extent) override;
  std::pair<mlir::Value, mlir::Value>
  localIndex(mlir::Value tensor, int64_t dim, mlir::Value global) override;
  llvm::SmallVector<mlir::Value>
  globalIndices(mlir::Type type, llvm::ArrayRef<mlir::Value> local) override;
  std::pair<mlir::Value, llvm::SmallVector<mlir::Value>>
  localIndices(mlir::Type type, llvm::ArrayRef<mlir::Value> global) override;
  /// The global index of a local one along a dimension of memory.
  mlir::Value globalIndex(mlir::Value tensor, int64_t dim, mlir::Value local);

  /// Says that `index`, computed here, is one of a dimension of this extent.
  void noteIndex(mlir::Value index, const layout::Extent &extent);

  mlir::Value combine(tv::Combiner combiner, mlir::Type element, mlir::Value a,
                      mlir::Value b, bool mayReorder);
  /// What `combine` leaves as it is.
  mlir::Value identity(tv::Combiner combiner, mlir::Type element);

  mlir::Value index(int64_t value) override;
  mlir::Value yes() override;
  mlir::Value hoisted(llvm::function_ref<mlir::Value()> emit) override;

  /// The kernel is of no use then.
  mlir::Value fail(mlir::Operation *op, const llvm::Twine &message,
                   mlir::Type type) override;
  bool hasFailed() const { return failedAt; }

  /// Ends the kernel.
  mlir::func::FuncOp finish();
  mlir::func::FuncOp function() const { return func; }
  llvm::ArrayRef<mlir::Value> getInputs() const { return inputs.getArrayRef(); }
  /// Types of the outputs, then of the scratch memory.
  llvm::ArrayRef<mlir::Type> getResultTypes() const { return resultTypes; }
  llvm::ArrayRef<mlir::Attribute> getScalars() const { return scalars; }

private:
  /// One more scalar of the launch, an i64.
  mlir::Value addScalar(mlir::Attribute scalar);
  /// As an index, the same for the same attribute.
  mlir::Value scalarArgument(mlir::Attribute scalar);
  mlir::Value coordDigit(const layout::Mesh &mesh, const layout::SubAxis &sub);
  mlir::Value dimension(mlir::Value tensor, int64_t dim);
  mlir::Type getComputed(mlir::Type element) const override {
    return getKernelScalar(element);
  }
  /// This device's extent of a dimension.
  mlir::Value localExtent(const layout::Mesh &mesh, const LocalDim &dim);
  mlir::Value globalIndex(const layout::Mesh &mesh, const LocalDim &dim,
                          mlir::Value local);
  /// Whether this device holds a global index that is in range, and its local
  /// index if so.
  std::pair<mlir::Value, mlir::Value>
  localIndex(const layout::Mesh &mesh, const LocalDim &dim, mlir::Value global);

  using Elements =
      llvm::SmallVector<std::pair<llvm::SmallVector<mlir::Value>, mlir::Value>,
                        1>;

  mlir::func::FuncOp func;
  llvm::SetVector<mlir::Operation *> inlined;
  llvm::SetVector<mlir::Value> inputs, outputs;
  llvm::SmallVector<mlir::Type> resultTypes;
  llvm::SmallVector<mlir::Attribute> scalars;
  /// Elements known in the current block.
  llvm::DenseMap<mlir::Value, Elements> known;
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, mlir::Value> dimensions;
  llvm::DenseMap<int64_t, mlir::Value> constants;
  llvm::DenseMap<mlir::Attribute, mlir::Value> scalarValues;
  llvm::DenseMap<std::pair<mlir::Operation *, mlir::StringAttr>, mlir::Value>
      attributes;
  llvm::DenseMap<mlir::Value, layout::Extent> indexOf; ///< what was noted
  mlir::Value always;
  mlir::Operation *lastHoisted = nullptr;
  bool failedAt = false;
};

} // namespace tessera

#endif // TESSERA_KERNELS_KERNELEMITTER_H
