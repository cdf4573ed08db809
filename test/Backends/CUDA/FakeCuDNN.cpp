//===- FakeCuDNN.cpp - libcudnn.so.9 without a GPU ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Descriptors keep what is set. A plan runs its graph's operations one after
// the other, in float64, on what sizes, strides and addresses say; nothing here
// knows of attention. Executions go to the fake driver's streams.
//
//===----------------------------------------------------------------------===//

#include "FakeCuDNN.h"
#include "Backends/CUDA/CuDNN/CuDNN.h"
#include "Support/DType.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

using namespace tessera::cuda::dnn;
using tessera::DType;
using tessera::cuda::Stream;
using tessera::test::FakeEngine;

/// The fake driver's, beside what it exports for all.
void fakeDriverPut(Stream stream, std::function<void()> step);

namespace {

constexpr Code kBadParam = 2000, kNotSupported = 3000;

std::mutex mutex; // of all that is here
std::string firstMisuse, lastError;
std::vector<FakeEngine> engines[2]; // by heuristic
bool failsSet = false;
int liveObjects = 0, plansMade = 0;
std::map<int64_t, int> executed;

Code fail(Code code, const std::string &why) {
  lastError = why;
  return code;
}
Code misuse(const std::string &text) {
  if (firstMisuse.empty())
    firstMisuse = text;
  return fail(kBadParam, text);
}

struct Elements {
  Type type;
  int64_t count;
  std::vector<std::byte> bytes;
};

size_t bytesOf(Type type) {
  switch (type) {
  case Type::Boolean:
    return 1;
  case Type::DataType:
  case Type::Heuristic:
  case Type::Note:
  case Type::Mode:
  case Type::Operator:
    return 4;
  default:
    return 8;
  }
}

/// What each field is made of, and of which descriptor.
const std::map<Field, std::pair<Kind, Type>> &fields() {
  using A = Field;
  using T = Type;
  static const std::map<A, std::pair<Kind, T>> known = {
      {A::PointwiseMode, {Kind::Pointwise, T::Mode}},
      {A::PointwiseType, {Kind::Pointwise, T::DataType}},
      {A::PointwiseAxis, {Kind::Pointwise, T::Int64}},
      {A::HeuristicsMode, {Kind::Heuristics, T::Heuristic}},
      {A::HeuristicsGraph, {Kind::Heuristics, T::Object}},
      {A::PlanConfig, {Kind::Plan, T::Object}},
      {A::PointwiseOpDesc, {Kind::PointwiseOp, T::Object}},
      {A::PointwiseOpX, {Kind::PointwiseOp, T::Object}},
      {A::PointwiseOpB, {Kind::PointwiseOp, T::Object}},
      {A::PointwiseOpY, {Kind::PointwiseOp, T::Object}},
      {A::PointwiseOpT, {Kind::PointwiseOp, T::Object}},
      {A::GraphHandle, {Kind::Graph, T::Handle}},
      {A::GraphOps, {Kind::Graph, T::Object}},
      {A::TensorAlignment, {Kind::Tensor, T::Int64}},
      {A::TensorType, {Kind::Tensor, T::DataType}},
      {A::TensorSizes, {Kind::Tensor, T::Int64}},
      {A::TensorStrides, {Kind::Tensor, T::Int64}},
      {A::TensorId, {Kind::Tensor, T::Int64}},
      {A::TensorVirtual, {Kind::Tensor, T::Boolean}},
      {A::TensorByValue, {Kind::Tensor, T::Boolean}},
      {A::PackIds, {Kind::Pack, T::Int64}},
      {A::PackPointers, {Kind::Pack, T::Pointer}},
      {A::PackWorkspace, {Kind::Pack, T::Pointer}},
      {A::MatmulType, {Kind::Matmul, T::DataType}},
      {A::MatmulOpA, {Kind::MatmulOp, T::Object}},
      {A::MatmulOpB, {Kind::MatmulOp, T::Object}},
      {A::MatmulOpC, {Kind::MatmulOp, T::Object}},
      {A::MatmulOpDesc, {Kind::MatmulOp, T::Object}},
      {A::ReductionOperator, {Kind::Reduction, T::Operator}},
      {A::ReductionType, {Kind::Reduction, T::DataType}},
      {A::ReductionOpX, {Kind::ReductionOp, T::Object}},
      {A::ReductionOpY, {Kind::ReductionOp, T::Object}},
      {A::ReductionOpDesc, {Kind::ReductionOp, T::Object}},
      {A::ReshapeOpX, {Kind::ReshapeOp, T::Object}},
      {A::ReshapeOpY, {Kind::ReshapeOp, T::Object}},
  };
  return known;
}

} // namespace

namespace tessera::cuda::dnn {
struct HandleObject {
  Stream stream = nullptr;
};
struct DescriptorObject {
  explicit DescriptorObject(Kind kind) : kind(kind) {}
  Kind kind;
  bool finalized = false;
  std::map<Field, Elements> set;
  FakeEngine engine{};    ///< of a configuration or an engine
  Object graph = nullptr; ///< of a configuration

  bool has(Field field) const { return set.count(field); }
  template <typename T> std::vector<T> all(Field field) const {
    auto found = set.find(field);
    std::vector<T> values(found == set.end() ? 0 : found->second.count);
    for (size_t i = 0; i < values.size(); ++i)
      std::memcpy(&values[i], &found->second.bytes[i * sizeof(T)], sizeof(T));
    return values;
  }
  template <typename T> T one(Field field) const {
    T value{};
    if (auto found = set.find(field); found != set.end())
      std::memcpy(&value, found->second.bytes.data(), sizeof value);
    return value;
  }
};
} // namespace tessera::cuda::dnn

namespace {

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

using Shape = std::vector<int64_t>;

DType elementOf(const DescriptorObject &tensor) {
  switch (tensor.one<DataType>(Field::TensorType)) {
  case DataType::F16:
    return DType::F16;
  case DataType::BF16:
    return DType::BF16;
  case DataType::I32:
    return DType::I32;
  default:
    return DType::F32;
  }
}

Shape sizesOf(const DescriptorObject &tensor) {
  return tensor.all<int64_t>(Field::TensorSizes);
}

/// A tensor's elements in row-major order.
struct Dense {
  Shape sizes;
  std::vector<double> data;

  explicit Dense(Shape of) : sizes(std::move(of)) {
    int64_t count = 1;
    for (int64_t size : sizes)
      count *= size;
    data.resize(count);
  }
  Shape at(int64_t number) const {
    Shape index(sizes.size());
    for (size_t d = sizes.size(); d-- > 0; number /= sizes[d])
      index[d] = number % sizes[d];
    return index;
  }
  /// Where the element of an index is. An extent of 1 is all of the index's; of
  /// fewer heads, groups.
  int64_t numberOf(const Shape &index, const Shape &of) const {
    int64_t number = 0;
    for (size_t d = 0; d < sizes.size(); ++d)
      number = number * sizes[d] + index[d] / (of[d] / sizes[d]);
    return number;
  }
  double read(const Shape &index, const Shape &of) const {
    return data[numberOf(index, of)];
  }
};

class Run {
public:
  explicit Run(std::map<int64_t, std::vector<double>> numbers,
               std::map<int64_t, char *> memory)
      : numbers(std::move(numbers)), memory(std::move(memory)) {}

  void operation(const DescriptorObject &op) {
    using A = Field;
    switch (op.kind) {
    case Kind::MatmulOp:
      return matmul(*op.one<Object>(A::MatmulOpA),
                    *op.one<Object>(A::MatmulOpB),
                    *op.one<Object>(A::MatmulOpC));
    case Kind::ReductionOp:
      return reduce(op.one<Object>(A::ReductionOpDesc)
                        ->one<Operator>(A::ReductionOperator),
                    *op.one<Object>(A::ReductionOpX),
                    *op.one<Object>(A::ReductionOpY));
    case Kind::ReshapeOp:
      return reshape(*op.one<Object>(A::ReshapeOpX),
                     *op.one<Object>(A::ReshapeOpY));
    default:
      return pointwise(op);
    }
  }

private:
  Dense load(const DescriptorObject &tensor) {
    const int64_t id = tensor.one<int64_t>(Field::TensorId);
    Dense dense(sizesOf(tensor));
    if (auto found = numbers.find(id); found != numbers.end()) {
      dense.data = found->second;
      return dense;
    }
    const DType dtype = elementOf(tensor);
    visit(tensor, dense, [&](char *at, double &value) {
      convertElement(at, dtype, &value, DType::F64);
    });
    return dense;
  }
  void store(const DescriptorObject &tensor, Dense dense) {
    if (tensor.one<bool>(Field::TensorVirtual)) {
      numbers[tensor.one<int64_t>(Field::TensorId)] = std::move(dense.data);
      return;
    }
    const DType dtype = elementOf(tensor);
    visit(tensor, dense, [&](char *at, double &value) {
      convertElement(&value, DType::F64, at, dtype);
    });
  }
  static int64_t offsetOf(const DescriptorObject &tensor, const Shape &index) {
    const Shape strides = tensor.all<int64_t>(Field::TensorStrides);
    int64_t offset = 0;
    for (size_t d = 0; d < index.size(); ++d)
      offset += index[d] * strides[d];
    return offset;
  }
  void visit(const DescriptorObject &tensor, Dense &dense,
             const std::function<void(char *, double &)> &each) {
    char *base = memory.at(tensor.one<int64_t>(Field::TensorId));
    for (size_t i = 0; i < dense.data.size(); ++i)
      each(base + offsetOf(tensor, dense.at(i)) * info(elementOf(tensor)).bytes,
           dense.data[i]);
  }

  void matmul(const DescriptorObject &a, const DescriptorObject &b,
              const DescriptorObject &c) {
    const Dense x = load(a), y = load(b);
    Dense z(sizesOf(c));
    const int64_t terms = x.sizes[3];
    Shape ofLeft = z.sizes, ofRight = z.sizes;
    ofLeft[3] = ofRight[2] = terms;
    for (size_t i = 0; i < z.data.size(); ++i) {
      Shape left = z.at(i), right = left;
      left[3] = right[2] = 0;
      const double *row = &x.data[x.numberOf(left, ofLeft)];
      const double *column = &y.data[y.numberOf(right, ofRight)];
      for (int64_t k = 0; k < terms; ++k)
        z.data[i] += row[k] * column[k * y.sizes[3]];
    }
    store(c, std::move(z));
  }

  void reduce(Operator by, const DescriptorObject &from,
              const DescriptorObject &to) {
    const Dense x = load(from);
    Dense y(sizesOf(to));
    std::vector<bool> begun(y.data.size());
    for (size_t i = 0; i < x.data.size(); ++i) {
      const int64_t number = y.numberOf(x.at(i), x.sizes);
      double &sum = y.data[number];
      sum = !begun[number]        ? x.data[i]
            : by == Operator::Max ? std::max(sum, x.data[i])
                                  : sum + x.data[i];
      begun[number] = true;
    }
    store(to, std::move(y));
  }

  /// Each element is the one at the same offset.
  void reshape(const DescriptorObject &from, const DescriptorObject &to) {
    const Dense x = load(from);
    std::map<int64_t, double> at;
    for (size_t i = 0; i < x.data.size(); ++i)
      at[offsetOf(from, x.at(i))] = x.data[i];
    Dense y(sizesOf(to));
    for (size_t i = 0; i < y.data.size(); ++i)
      y.data[i] = at.at(offsetOf(to, y.at(i)));
    store(to, std::move(y));
  }

  void pointwise(const DescriptorObject &op) {
    using A = Field;
    const DescriptorObject &desc = *op.one<Object>(A::PointwiseOpDesc);
    const DescriptorObject &to = *op.one<Object>(A::PointwiseOpY);
    const Mode mode = desc.one<Mode>(A::PointwiseMode);
    std::vector<Dense> inputs;
    for (A each : {A::PointwiseOpX, A::PointwiseOpB, A::PointwiseOpT})
      if (op.has(each) && mode != Mode::Index)
        inputs.push_back(load(*op.one<Object>(each)));
    Dense y(sizesOf(to));
    for (size_t i = 0; i < y.data.size(); ++i) {
      const Shape index = y.at(i);
      double in[3] = {};
      for (size_t n = 0; n < inputs.size(); ++n)
        in[n] = inputs[n].read(index, y.sizes);
      y.data[i] = mode == Mode::Add            ? in[0] + in[1]
                  : mode == Mode::Mul          ? in[0] * in[1]
                  : mode == Mode::Div          ? in[0] / in[1]
                  : mode == Mode::Sub          ? in[0] - in[1]
                  : mode == Mode::Exp          ? std::exp(in[0])
                  : mode == Mode::Log          ? std::log(in[0])
                  : mode == Mode::GreaterEqual ? in[0] >= in[1]
                  : mode == Mode::Select
                      ? (in[2] != 0 ? in[0] : in[1])
                      : index[desc.one<int64_t>(A::PointwiseAxis)];
    }
    store(to, std::move(y));
  }

  std::map<int64_t, std::vector<double>> numbers; ///< by tensor
  std::map<int64_t, char *> memory;
};

/// The tensors of a graph, once each.
std::set<Object> tensorsOf(const DescriptorObject &graph) {
  std::set<Object> tensors;
  for (Object op : graph.all<Object>(Field::GraphOps))
    for (const auto &[field, elements] : op->set)
      for (Object object : op->all<Object>(field))
        if (object->kind == Kind::Tensor)
          tensors.insert(object);
  return tensors;
}

/// What is wrong with a descriptor that is to be finalized.
std::string whyNot(const DescriptorObject &object) {
  for (const auto &[field, elements] : object.set)
    if (elements.type == Type::Object)
      for (Object other : object.all<Object>(field))
        if (!other || !other->finalized)
          return "a descriptor that is not finalized in another";
  if (object.kind == Kind::Tensor) {
    const Shape sizes = sizesOf(object);
    if (sizes.size() != 4 ||
        object.all<int64_t>(Field::TensorStrides).size() != 4 ||
        *std::min_element(sizes.begin(), sizes.end()) < 1 ||
        !object.has(Field::TensorId) || !object.has(Field::TensorType) ||
        object.one<int64_t>(Field::TensorAlignment) != 16)
      return "a tensor with a field missing, or empty";
  }
  if (object.kind == Kind::Graph) {
    std::set<int64_t> ids;
    for (Object tensor : tensorsOf(object))
      if (!ids.insert(tensor->one<int64_t>(Field::TensorId)).second)
        return "two tensors with one number";
  }
  return {};
}

} // namespace

//===----------------------------------------------------------------------===//
// What the library exports
//===----------------------------------------------------------------------===//

extern "C" {

size_t cudnnGetVersion() {
  const char *version = std::getenv("TESSERA_FAKE_CUDNN_VERSION");
  return version ? std::atoi(version) : 91900;
}
const char *cudnnGetErrorString(Code code) {
  return code == kNotSupported ? "CUDNN_STATUS_NOT_SUPPORTED"
                               : "CUDNN_STATUS_BAD_PARAM";
}
void cudnnGetLastErrorString(char *text, size_t bytes) {
  std::lock_guard lock(mutex);
  std::strncpy(text, lastError.c_str(), bytes);
  lastError.clear();
}

Code cudnnCreate(Handle *handle) {
  std::lock_guard lock(mutex);
  ++liveObjects;
  return *handle = new HandleObject, 0;
}
Code cudnnDestroy(Handle handle) {
  std::lock_guard lock(mutex);
  --liveObjects;
  return delete handle, 0;
}
Code cudnnSetStream(Handle handle, Stream stream) {
  return handle->stream = stream, 0;
}

Code cudnnBackendCreateDescriptor(Kind kind, Object *object) {
  std::lock_guard lock(mutex);
  ++liveObjects;
  return *object = new DescriptorObject(kind), 0;
}
Code cudnnBackendDestroyDescriptor(Object object) {
  std::lock_guard lock(mutex);
  --liveObjects;
  return delete object, 0;
}

Code cudnnBackendSetAttribute(Object object, Field field, Type type,
                              int64_t count, const void *elements) {
  std::lock_guard lock(mutex);
  if (std::exchange(failsSet, false))
    return fail(kBadParam, "as the test wants");
  auto known = fields().find(field);
  if (known == fields().end() || known->second != std::pair(object->kind, type))
    return misuse("field " + std::to_string(int(field)) +
                  " on another kind of descriptor, or of another type");
  if (object->finalized)
    return misuse("a field of a finalized descriptor");
  const auto *bytes = static_cast<const std::byte *>(elements);
  object->set[field] = {type, count, {bytes, bytes + count * bytesOf(type)}};
  return 0;
}

Code cudnnBackendFinalize(Object object) {
  std::lock_guard lock(mutex);
  if (std::string why = whyNot(*object); !why.empty())
    return misuse(why);
  if (object->kind == Kind::Plan) {
    const DescriptorObject &config = *object->one<Object>(Field::PlanConfig);
    if (config.engine.fails)
      return fail(kNotSupported, "engine " +
                                     std::to_string(config.engine.number) +
                                     " does not want to");
    ++plansMade;
  }
  object->finalized = true;
  return 0;
}

Code cudnnBackendGetAttribute(Object object, Field field, Type type,
                              int64_t room, int64_t *count, void *elements) {
  std::lock_guard lock(mutex);
  if (!object->finalized)
    return misuse("a question to a descriptor that is not finalized");
  *count = 1;
  switch (field) {
  case Field::HeuristicsResults: {
    const bool isA =
        object->one<Heuristic>(Field::HeuristicsMode) == Heuristic::A;
    const std::vector<FakeEngine> &found = engines[isA ? 0 : 1];
    *count = found.size();
    for (int64_t i = 0; i < std::min(room, *count); ++i) {
      Object config = static_cast<Object *>(elements)[i];
      config->finalized = true;
      config->engine = found[i];
      config->graph = object->one<Object>(Field::HeuristicsGraph);
    }
    return 0;
  }
  case Field::ConfigEngine: {
    Object engine = *static_cast<Object *>(elements);
    engine->finalized = true;
    engine->engine = object->engine;
    return 0;
  }
  case Field::EngineIndex:
    return *static_cast<int64_t *>(elements) = object->engine.number, 0;
  case Field::EngineNotes: {
    *count = 0;
    auto *notes = static_cast<Note *>(elements);
    notes[(*count)++] = static_cast<Note>(0); // tensor cores
    if (object->engine.nondeterministic)
      notes[(*count)++] = Note::Nondeterministic;
    return 0;
  }
  case Field::PlanWorkspace:
    *static_cast<int64_t *>(elements) =
        object->one<Object>(Field::PlanConfig)->engine.workspace;
    return 0;
  default:
    return misuse("a question for field " + std::to_string(int(field)));
  }
}

Code cudnnBackendExecute(Handle handle, Object plan, Object pack) {
  std::lock_guard lock(mutex);
  if (!plan->finalized || !pack->finalized || !handle->stream)
    return misuse("an execution of what is not finalized, or on no stream");
  const DescriptorObject &config = *plan->one<Object>(Field::PlanConfig);
  const auto ids = pack->all<int64_t>(Field::PackIds);
  const auto pointers = pack->all<void *>(Field::PackPointers);
  const auto workspace =
      reinterpret_cast<uintptr_t>(pack->one<void *>(Field::PackWorkspace));
  if (ids.size() != pointers.size() ||
      (config.engine.workspace && (!workspace || workspace % 256)))
    return misuse("a pack without its workspace, or with other pointers");
  std::map<int64_t, std::vector<double>> numbers;
  std::map<int64_t, char *> memory;
  size_t used = 0;
  for (Object tensor : tensorsOf(*config.graph)) {
    if (tensor->one<bool>(Field::TensorVirtual))
      continue;
    const int64_t id = tensor->one<int64_t>(Field::TensorId);
    auto found = std::find(ids.begin(), ids.end(), id);
    if (found == ids.end())
      return misuse("a pack without a pointer for tensor " +
                    std::to_string(id));
    ++used;
    auto *pointer = static_cast<char *>(pointers[found - ids.begin()]);
    if (tensor->one<bool>(Field::TensorByValue)) {
      double value;
      convertElement(pointer, elementOf(*tensor), &value, DType::F64);
      numbers[id] = {value};
      continue;
    }
    if (reinterpret_cast<uintptr_t>(pointer) % 16)
      return misuse("a pointer that is not aligned");
    memory[id] = pointer;
  }
  if (used != ids.size())
    return misuse("a pack with a pointer for no tensor");
  ++executed[config.engine.number];
  // The plan may be gone when the stream gets here, but must not be.
  fakeDriverPut(handle->stream, [=, graph = config.graph,
                                 bytes = config.engine.workspace] {
    if (bytes)
      std::memset(reinterpret_cast<void *>(workspace), 0x5a, bytes);
    Run run(numbers, memory);
    for (Object op : graph->all<Object>(Field::GraphOps))
      run.operation(*op);
  });
  return 0;
}

extern const tessera::test::FakeCuDNN fake_cudnn;
const tessera::test::FakeCuDNN fake_cudnn = {
    [](std::vector<FakeEngine> best, std::vector<FakeEngine> other) {
      std::lock_guard lock(mutex);
      engines[0] = std::move(best);
      engines[1] = std::move(other);
    },
    [] {
      std::lock_guard lock(mutex);
      failsSet = true;
    },
    [] {
      std::lock_guard lock(mutex);
      return liveObjects;
    },
    [] {
      std::lock_guard lock(mutex);
      return plansMade;
    },
    [](int64_t engine) {
      std::lock_guard lock(mutex);
      return executed[engine];
    },
    [] {
      std::lock_guard lock(mutex);
      return firstMisuse.c_str();
    },
    [] {
      std::lock_guard lock(mutex);
      engines[0] = {{2, false, false, 1000}};
      engines[1] = {{1}};
      failsSet = false;
      plansMade = 0;
      executed.clear();
      firstMisuse.clear();
      lastError.clear();
    }};

} // extern "C"

/// As after a reset.
static const bool begun = (fake_cudnn.reset(), true);
