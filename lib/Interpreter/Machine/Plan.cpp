//===- Plan.cpp - runs the plan dialect ----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The result of an op of the plan is a window on each rank's memory, of its own
// in the order of its view, or, of an alias or a choice, on that of its source
// or of its first variant. For the ops
// in between, collectives and the return, its elements are read out.
//
//===----------------------------------------------------------------------===//

#include "Plan/Plan.h"
#include "Interpreter/Machine/Interpreter.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// The order of a tensor's own memory.
static Shape orderOf(const Layout &layout) {
  const layout::View &view = layout.view;
  if (!view.alloc)
    return rowMajor(view.dims.size());
  return Shape(view.alloc->begin(), view.alloc->end());
}

FailureOr<Window> Interpreter::windowOf(Operation *op, Value value,
                                        int64_t rank) {
  auto found = windows.find(value);
  if (found != windows.end())
    return found->second[rank];
  const Tensor &tensor = values.find(value)->second;
  if (!tensor.layout)
    return op->emitOpError() << "runs on each device's part only; compare with "
                                "'source' or '@NAME'";
  return Window::create(*tensor.parts[rank], orderOf(*tensor.layout));
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

LogicalResult Interpreter::runLaunch(Operation *op, ArrayRef<Window> inputs,
                                     ArrayRef<Window> results,
                                     const layout::Mesh &mesh, int64_t rank) {
  auto launch = cast<plan::LaunchOp>(op);
  auto function = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      op, launch.getKernelAttr());
  std::unique_ptr<Kernel> &kernel = kernels[function];
  if (!kernel)
    kernel = Kernel::compile(function);
  if (!kernel)
    return failure();
  SmallVector<int64_t> scalars;
  for (Attribute scalar : launch.getScalars()) {
    if (auto coord = dyn_cast<plan::CoordAttr>(scalar)) {
      std::optional<int> axis = mesh.findAxis(coord.getAxis().str());
      if (!axis)
        return op->emitOpError()
               << "its mesh has no axis '" << coord.getAxis() << "'";
      scalars.push_back(mesh.coordsOfRank(rank)[*axis]);
      continue;
    }
    const layout::Extent &extent = cast<plan::ExtentAttr>(scalar).getExtent();
    std::optional<int64_t> size = extent.evaluate(config.sizes);
    if (!size)
      return op->emitOpError()
             << "extent " << layout::toString(extent)
             << " names a size that the function does not declare in "
                "'tv.sizes'";
    scalars.push_back(*size);
  }
  SmallVector<Window> tensors(inputs);
  tensors.append(results.begin(), results.end());
  return kernel->run(tensors, scalars, rank, config.roundValues);
}

static LogicalResult runCopy(Operation *op, const Window &input,
                             const Window &result) {
  Result<std::shared_ptr<NDArray>> elements = input.read();
  if (!elements)
    return op->emitOpError() << "copies its operand: " << elements.message();
  if (input.shape != result.shape)
    return op->emitOpError()
           << "copies a part of shape " << indexText(input.shape)
           << " to one of shape " << indexText(result.shape);
  for (size_t i = 0; i < (*elements)->data.size(); ++i) {
    int64_t at = *result.find(delinearize(i, result.shape));
    result.memory->data[at] = (*elements)->data[i];
    result.memory->written[at] = true;
  }
  return success();
}

LogicalResult Interpreter::runContract(Operation *op, ArrayRef<Window> inputs,
                                       ArrayRef<Window> results) {
  auto contract = cast<plan::ContractOp>(op);
  const Window &a = inputs[0], &b = inputs[1], &result = results[0];
  // The result's labels, then those that are summed over: of each its extent
  // and its stride in the result, a, b, and those that may not be there.
  struct Loop {
    int32_t label;
    int64_t extent, strides[7] = {};
  };
  SmallVector<Loop> loops;
  SmallVector<const Window *> tensors = {&result, &a, &b};
  SmallVector<ArrayRef<int32_t>> labels = {
      contract.getLabels(), contract.getALabels(), contract.getBLabels()};
  SmallVector<int32_t> column;
  for (int32_t label : contract.getLabels())
    if (!llvm::is_contained(contract.getALabels(), label))
      column.push_back(label);
  // Places in `tensors` of those that may not be there.
  size_t bias = 0, x = 0, aux = 0, addend = 0;
  auto add = [&](const Window &tensor, ArrayRef<int32_t> of) {
    tensors.push_back(&tensor);
    labels.push_back(of);
    return tensors.size() - 1;
  };
  size_t next = 2;
  if (contract.getBias())
    bias = add(inputs[next++], column);
  if (contract.getX())
    x = add(inputs[next++], contract.getLabels());
  if (contract.getAddend())
    addend = add(inputs[next++], contract.getLabels());
  if (contract.getAux())
    aux = add(results[1], contract.getLabels());
  for (size_t t = 0; t < tensors.size(); ++t)
    for (auto [d, label] : llvm::enumerate(labels[t])) {
      int64_t extent = tensors[t]->shape[d];
      auto loop = llvm::find_if(loops, [&, label = label](const Loop &l) {
        return l.label == label;
      });
      if (loop == loops.end())
        loop = loops.insert(loops.end(), Loop{label, extent});
      if (loop->extent != extent)
        return op->emitOpError()
               << "label " << label << " has extents " << loop->extent
               << " and " << extent << " on one rank";
      loop->strides[t] = tensors[t]->strides[d];
    }
  size_t outer = labels[0].size();
  Shape outerShape, innerShape;
  for (auto [i, loop] : llvm::enumerate(loops))
    (i < outer ? outerShape : innerShape).push_back(loop.extent);
  // No check of reads below: operands were read as a whole when they were made.
  Type type = result.memory->type;
  const bool ofFloats = isFloat(type);
  int64_t numInner = numElements(innerShape);
  std::vector<std::pair<int64_t, int64_t>> inner;
  for (int64_t i = 0; i < numInner; ++i) {
    std::pair<int64_t, int64_t> at;
    for (auto [loop, k] : llvm::zip_equal(ArrayRef(loops).drop_front(outer),
                                          delinearize(i, innerShape))) {
      at.first += k * loop.strides[1];
      at.second += k * loop.strides[2];
    }
    inner.push_back(at);
  }
  for (int64_t i = 0, e = numElements(outerShape); i < e; ++i) {
    SmallVector<int64_t> at;
    for (const Window *tensor : tensors)
      at.push_back(tensor->offset);
    for (auto [loop, k] : llvm::zip_equal(ArrayRef(loops).take_front(outer),
                                          delinearize(i, outerShape)))
      for (size_t t = 0; t < tensors.size(); ++t)
        at[t] += k * loop.strides[t];
    Scalar sum;
    const Scalar *ofA = a.memory->data.data() + at[1],
                 *ofB = b.memory->data.data() + at[2];
    if (ofFloats) {
      double total = 0;
      for (auto [inA, inB] : inner)
        total += ofA[inA].real * ofB[inB].real;
      sum = real(total);
    } else {
      uint64_t total = 0;
      for (auto [inA, inB] : inner)
        total += uint64_t(ofA[inA].whole) * uint64_t(ofB[inB].whole);
      sum = whole(static_cast<int64_t>(total));
    }
    auto store = [&](const Window &window, int64_t at, Scalar value) {
      if (!isFloat(type))
        value.whole = wrapTo(value.whole, type);
      else if (config.roundValues)
        value.real = roundTo(value.real, type);
      window.memory->data[at] = value;
      window.memory->written[at] = true;
    };
    for (size_t added : {bias, addend}) {
      if (!added)
        continue;
      const Scalar term = tensors[added]->memory->data[at[added]];
      sum = ofFloats ? real(sum.real + term.real)
                     : whole(static_cast<int64_t>(uint64_t(sum.whole) +
                                                  uint64_t(term.whole)));
    }
    if (aux)
      store(*tensors[aux], at[aux], sum);
    if (contract.getEpilogue() == plan::Epilogue::GeluTanh)
      sum.real = geluTanh(sum.real);
    if (contract.getEpilogue() == plan::Epilogue::GeluTanhGrad)
      sum.real *= geluTanhGrad(tensors[x]->memory->data[at[x]].real);
    store(result, at[0], sum);
  }
  if (!contract.getSummed())
    return success();

  // Sums of what is in memory by now.
  bool ofA = contract.getSummed() == plan::Summed::A;
  bool ofB = contract.getSummed() == plan::Summed::B;
  const Window &summed = ofA ? a : ofB ? b : result, &sums = results[1];
  ArrayRef<int32_t> of = ofA   ? contract.getALabels()
                         : ofB ? contract.getBLabels()
                               : contract.getLabels();
  size_t kept = 0;
  while (llvm::is_contained(ofA ? contract.getBLabels() : contract.getALabels(),
                            of[kept]) ||
         !llvm::is_contained(contract.getLabels(), of[kept]))
    ++kept;
  if (sums.shape[0] != summed.shape[kept])
    return op->emitOpError() << "has " << sums.shape[0] << " sums of "
                             << summed.shape[kept] << " on one rank";
  std::vector<double> totals(sums.shape[0]);
  for (int64_t i = 0, e = numElements(summed.shape); i < e; ++i) {
    Index index = delinearize(i, summed.shape);
    totals[index[kept]] += summed.memory->data[*summed.find(index)].real;
  }
  for (size_t i = 0; i < totals.size(); ++i) {
    int64_t at = sums.offset + int64_t(i) * sums.strides[0];
    sums.memory->data[at].real =
        config.roundValues ? roundTo(totals[i], type) : totals[i];
    sums.memory->written[at] = true;
  }
  return success();
}

static double read(const Window &window, ArrayRef<int64_t> at) {
  return window.memory->data[*window.find(at)].real;
}

namespace {
/// The extents of an attention on one rank.
struct Heads {
  int64_t batch, heads, groups, queries, keys, depth;
  bool causal;
  double scale;

  template <typename Op>
  Heads(Op op, const Window &q, const Window &k)
      : batch(q.shape[0]), heads(q.shape[1]), groups(k.shape[1]),
        queries(q.shape[2]), keys(k.shape[2]), depth(q.shape[3]),
        causal(op.getCausal()), scale(op.getScale().convertToDouble()) {}

  LogicalResult check(Operation *op, const Window &q, const Window &k,
                      ArrayRef<const Window *> likeQuery,
                      ArrayRef<const Window *> likeKey) const {
    auto have = [](ArrayRef<const Window *> windows, const Shape &shape) {
      return llvm::all_of(windows, [&](const Window *window) {
        return window->shape == shape;
      });
    };
    if (have(likeQuery, q.shape) && have(likeKey, k.shape) &&
        k.shape[0] == batch && k.shape[3] == depth &&
        !(heads && (!groups || heads % groups)) && !(causal && queries > keys))
      return success();
    return op->emitOpError()
           << "parts of shapes " << indexText(q.shape) << " and "
           << indexText(k.shape) << " do not fit together on one rank";
  }
  /// Calls `each` for every query: with its batch, head, group and position,
  /// and the scaled scores of the keys that it sees.
  template <typename Each>
  void forQueries(const Window &q, const Window &k, Each each) const {
    for (int64_t i = 0; i < batch * heads * queries; ++i) {
      const int64_t b = i / (heads * queries), h = i / queries % heads,
                    s = i % queries, g = h / (heads / groups);
      std::vector<double> scores(causal ? s + keys - queries + 1 : keys);
      for (int64_t t = 0, e = scores.size(); t < e; ++t) {
        for (int64_t d = 0; d < depth; ++d)
          scores[t] += read(q, {b, h, s, d}) * read(k, {b, g, t, d});
        scores[t] *= scale;
      }
      each(b, h, g, s, scores);
    }
  }
};
} // namespace

void Interpreter::store(const Window &window, ArrayRef<int64_t> at,
                        double number) {
  const int64_t place = *window.find(at);
  Scalar value;
  value.real =
      config.roundValues ? roundTo(number, window.memory->type) : number;
  window.memory->data[place] = value;
  window.memory->written[place] = true;
}

/// By its definition, on one rank's part.
LogicalResult Interpreter::runAttend(Operation *op, ArrayRef<Window> inputs,
                                     ArrayRef<Window> results) {
  auto attend = cast<plan::AttendOp>(op);
  const Window &q = inputs[0], &k = inputs[1], &v = inputs[2];
  const Heads heads(attend, q, k);
  if (failed(heads.check(op, q, k, {&results[0]}, {&v})))
    return failure();
  const double none = -std::numeric_limits<double>::infinity();
  heads.forQueries(
      q, k,
      [&](int64_t b, int64_t h, int64_t g, int64_t s,
          std::vector<double> &weights) {
        double largest = none, sum = 0;
        for (double score : weights)
          largest = std::max(largest, score);
        for (double &weight : weights)
          sum += weight = std::exp(weight - largest);
        for (int64_t d = 0; d < heads.depth; ++d) {
          double total = 0;
          for (size_t t = 0; t < weights.size(); ++t)
            total += weights[t] * read(v, {b, g, int64_t(t), d});
          store(results[0], {b, h, s, d}, sum > 0 ? total / sum : 0);
        }
        if (attend.getLse())
          store(results[1], {b, h, s},
                sum > 0 ? largest + std::log(sum) : none);
      });
  return success();
}

LogicalResult Interpreter::runAttendGrad(Operation *op, ArrayRef<Window> inputs,
                                         ArrayRef<Window> results) {
  auto attend = cast<plan::AttendGradOp>(op);
  const Window &grad = inputs[0], &q = inputs[1], &k = inputs[2],
               &v = inputs[3], &o = inputs[4], &lse = inputs[5];
  const Window &dq = results[0], &dk = results[1], &dv = results[2];
  const Heads heads(attend, q, k);
  if (failed(heads.check(op, q, k, {&grad, &o, &dq}, {&v, &dk, &dv})))
    return failure();
  const int64_t depth = heads.depth;
  // Of key and value, the sums over all queries that see them.
  const int64_t count = numElements(k.shape);
  std::vector<double> ofKeys(count), ofValues(count);
  heads.forQueries(
      q, k,
      [&](int64_t b, int64_t h, int64_t g, int64_t s,
          std::vector<double> &scores) {
        double mean = 0;
        for (int64_t d = 0; d < depth; ++d)
          mean += read(grad, {b, h, s, d}) * read(o, {b, h, s, d});
        std::vector<double> ofQuery(depth);
        for (int64_t t = 0, e = scores.size(); t < e; ++t) {
          const double weight = std::exp(scores[t] - read(lse, {b, h, s}));
          double dot = 0;
          for (int64_t d = 0; d < depth; ++d)
            dot += read(grad, {b, h, s, d}) * read(v, {b, g, t, d});
          const double ofScore = heads.scale * weight * (dot - mean);
          const int64_t row = ((b * heads.groups + g) * heads.keys + t) * depth;
          for (int64_t d = 0; d < depth; ++d) {
            ofValues[row + d] += weight * read(grad, {b, h, s, d});
            ofKeys[row + d] += ofScore * read(q, {b, h, s, d});
            ofQuery[d] += ofScore * read(k, {b, g, t, d});
          }
        }
        for (int64_t d = 0; d < depth; ++d)
          store(dq, {b, h, s, d}, ofQuery[d]);
      });
  for (int64_t i = 0; i < count; ++i) {
    const Index at = delinearize(i, k.shape);
    store(dk, at, ofKeys[i]);
    store(dv, at, ofValues[i]);
  }
  return success();
}

/// Gives `result` the strides with which it has the elements of `input` in
/// their order; false if none do.
static bool reshape(const Window &input, Window &result) {
  const int64_t count = numElements(input.shape);
  if (count != numElements(result.shape))
    return false;
  auto find = [&](int64_t i) {
    return *input.find(delinearize(i, input.shape));
  };
  result.strides = stridesOf(result.shape, rowMajor(result.shape.size()));
  if (count == 0)
    return true;
  // One step along each dimension says them.
  for (auto [size, stride] : llvm::zip_equal(result.shape, result.strides))
    stride = size > 1 ? find(stride) - find(0) : 0;
  return llvm::all_of(llvm::seq<int64_t>(0, count), [&](int64_t i) {
    return find(i) == *result.find(delinearize(i, result.shape));
  });
}

/// The window on `input` that `result` is by its kind.
static LogicalResult runAlias(plan::AliasOp op, const Window &input,
                              const Placement &from, const Placement &to,
                              Window &result) {
  ArrayRef<int64_t> at;
  if (op.getAt())
    at = *op.getAt();
  Window window = input;
  window.shape = to.localShape();
  switch (op.getKind()) {
  case plan::AliasKind::Reshape:
    if (!reshape(input, window))
      return op.emitOpError()
             << "reshapes a part of shape " << indexText(input.shape)
             << " and strides " << indexText(input.strides) << " to "
             << indexText(window.shape)
             << ": its elements do not lie in that order";
    break;
  case plan::AliasKind::Transpose:
    window.strides.clear();
    for (auto [d, source] : llvm::enumerate(at)) {
      if (source < 0 || source >= static_cast<int64_t>(input.shape.size()) ||
          input.shape[source] != window.shape[d])
        return op.emitOpError()
               << "dimension " << d << " of its result is not dimension "
               << source << " of a part of shape " << indexText(input.shape);
      window.strides.push_back(input.strides[source]);
    }
    break;
  case plan::AliasKind::Slice:
  case plan::AliasKind::Shard:
    // Element i of the result is the source's that has its global index, moved
    // by `at`. On memory those must be one run.
    if (from.dims.size() != to.dims.size())
      return op.emitOpError() << "has another rank than its source";
    for (auto [d, dim] : llvm::enumerate(to.dims)) {
      const Placement::Dim &source = from.dims[d];
      int64_t offset = at.empty() ? 0 : at[d];
      for (auto [i, global] : llvm::enumerate(dim.held)) {
        int64_t of = global + offset;
        int64_t local =
            of < 0 || of >= static_cast<int64_t>(source.local.size())
                ? -1
                : source.local[of];
        int64_t first = source.local[std::clamp<int64_t>(
            dim.held[0] + offset, 0, source.local.size() - 1)];
        if (local < 0 || local != first + static_cast<int64_t>(i))
          return op.emitOpError()
                 << "along dimension " << d << " element " << global
                 << " is not at its place in one window on its source";
        if (i == 0)
          window.offset += local * window.strides[d];
      }
    }
    break;
  }
  result = std::move(window);
  return success();
}

//===----------------------------------------------------------------------===//
// One op
//===----------------------------------------------------------------------===//

LogicalResult Interpreter::evaluatePlan(Operation *op) {
  // All variants were computed, and are equal; the preferred one stands.
  if (auto choice = dyn_cast<plan::ChooseOp>(op)) {
    for (auto [value, result] :
         llvm::zip_equal(choice.getValuesOf(0), op->getResults())) {
      Tensor tensor = values.find(value)->second;
      values[result] = std::move(tensor);
      if (auto found = windows.find(value); found != windows.end()) {
        std::vector<Window> window = found->second;
        windows[result] = std::move(window);
      }
    }
    return success();
  }
  std::vector<Tensor> tensors;
  std::vector<std::vector<Window>> made(op->getNumResults());
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    FailureOr<Shape> shape = resultShape(op, i);
    FailureOr<std::optional<Layout>> layout = layoutOf(op, result.getType());
    if (failed(shape) || failed(layout))
      return failure();
    if (!*layout)
      return op->emitOpError() << "runs on each device's part only; compare "
                                  "with 'source' or '@NAME'";
    tensors.push_back({*shape, *layout, {}});
  }
  for (int64_t rank = 0; rank < config.ranks; ++rank) {
    SmallVector<Window> inputs, results;
    for (Value operand : op->getOperands()) {
      FailureOr<Window> window = windowOf(op, operand, rank);
      if (failed(window))
        return failure();
      inputs.push_back(std::move(*window));
    }
    SmallVector<Placement> places;
    for (auto [tensor, result] : llvm::zip_equal(tensors, op->getResults())) {
      places.push_back(Placement::of(tensor.layout->view, tensor.shape,
                                     tensor.layout->mesh, rank));
      results.push_back(Window::create(
          cast<RankedTensorType>(result.getType()).getElementType(),
          places.back().localShape(), orderOf(*tensor.layout)));
    }
    LogicalResult ran =
        TypeSwitch<Operation *, LogicalResult>(op)
            .Case([&](plan::LaunchOp) {
              return runLaunch(op, inputs, results, tensors[0].layout->mesh,
                               rank);
            })
            .Case([&](plan::ContractOp) {
              return runContract(op, inputs, results);
            })
            .Case(
                [&](plan::AttendOp) { return runAttend(op, inputs, results); })
            .Case([&](plan::AttendGradOp) {
              return runAttendGrad(op, inputs, results);
            })
            .Case([&](plan::CopyOp) {
              return runCopy(op, inputs[0], results[0]);
            })
            .Case([&](plan::AliasOp alias) {
              const Tensor &source = values.find(alias.getInput())->second;
              return runAlias(alias, inputs[0],
                              Placement::of(source.layout->view, source.shape,
                                            source.layout->mesh, rank),
                              places[0], results[0]);
            })
            .Case([&](plan::JoinOp join) {
              Window part = results[0];
              for (const Window &input : inputs) {
                part.shape = input.shape;
                if (failed(runCopy(op, input, part)))
                  return failure();
                part.offset +=
                    input.shape[join.getDim()] * part.strides[join.getDim()];
              }
              return success();
            })
            .Default([](Operation *op) {
              return op->emitError() << "the interpreter has no rule for '"
                                     << op->getName() << "'";
            });
    if (failed(ran))
      return failure();
    for (auto [i, window] : llvm::enumerate(results)) {
      Result<std::shared_ptr<NDArray>> elements = window.read();
      if (!elements)
        return op->emitOpError() << "result #" << i << " on rank " << rank
                                 << ": " << elements.message();
      tensors[i].parts.push_back(*elements);
      made[i].push_back(std::move(window));
    }
  }
  for (auto [i, value] : llvm::enumerate(op->getResults())) {
    values[value] = std::move(tensors[i]);
    windows[value] = std::move(made[i]);
  }
  return success();
}
