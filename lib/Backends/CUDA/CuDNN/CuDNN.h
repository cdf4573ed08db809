//===- CuDNN.h - cuDNN's graphs, opened at run time -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What we use of cuDNN's interface, declared in our own words: one table of
// functions by their exported names, and the numbers that go through it (a test
// compares them with cuDNN's header where there is one).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_CUDNN_CUDNN_H
#define TESSERA_BACKENDS_CUDA_CUDNN_CUDNN_H

#include "Backends/CUDA/Driver/Driver.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::cuda::dnn {

/// What a call returns; 0 is success.
using Code = int;
using Handle = struct HandleObject *;
/// A descriptor: its fields (cuDNN's attributes) are set, then it is finalized
/// and only read.
using Object = struct DescriptorObject *;

enum class Kind : int {
  Pointwise = 0,
  Engine = 2,
  Config = 3, ///< of an engine
  Heuristics = 4,
  Plan = 5,
  PointwiseOp = 13,
  Graph = 15,
  Pack = 16, ///< addresses for one execution
  Tensor = 17,
  Matmul = 18,
  MatmulOp = 19,
  Reduction = 21,
  ReductionOp = 22,
  ReshapeOp = 31,
};

enum class Field : int {
  PointwiseMode = 0,
  PointwiseType = 1,
  PointwiseAxis = 9,
  HeuristicsMode = 200,
  HeuristicsGraph = 201,
  HeuristicsResults = 202,
  ConfigEngine = 300,
  PlanConfig = 401,
  PlanWorkspace = 402,
  PointwiseOpDesc = 750,
  PointwiseOpX = 751,
  PointwiseOpB = 752,
  PointwiseOpY = 753,
  PointwiseOpT = 758,
  GraphHandle = 800,
  GraphOps = 801,
  TensorAlignment = 900,
  TensorType = 901,
  TensorSizes = 902,
  TensorStrides = 903,
  TensorId = 906,
  TensorVirtual = 907,
  TensorByValue = 908,
  PackIds = 1000,
  PackPointers = 1001,
  PackWorkspace = 1003,
  EngineIndex = 1301,
  EngineNotes = 1303,
  MatmulType = 1500,
  MatmulOpA = 1520,
  MatmulOpB = 1521,
  MatmulOpC = 1522,
  MatmulOpDesc = 1523,
  ReductionOperator = 1600,
  ReductionType = 1601,
  ReductionOpX = 1610,
  ReductionOpY = 1611,
  ReductionOpDesc = 1612,
  ReshapeOpX = 2200,
  ReshapeOpY = 2201,
};

// What fields are made of.
enum class DataType : int {
  F32 = 0,
  F16 = 2,
  I32 = 4,
  BF16 = 9,
  Boolean = 11,
};
enum class Mode : int { ///< of a pointwise op
  Add = 0,
  Mul = 1,
  Div = 6,
  Sub = 9,
  Exp = 13,
  Log = 15,
  GreaterEqual = 303,
  Index = 501, ///< each element's index along an axis
  Select = 601 ///< x where t, else b
};
enum class Operator : int { Sum = 0, Max = 3 };
enum class Heuristic : int { Fallback = 2, A = 3 };
enum class Note : int { Nondeterministic = 4, Count = 10 };

/// The kinds of those in calls.
enum class Type : int {
  Handle = 0,
  DataType = 1,
  Boolean = 2,
  Int64 = 3,
  Pointer = 6,
  Heuristic = 8,
  Note = 11,
  Mode = 14,
  Object = 15,
  Operator = 18,
};
constexpr Type typeOf(const Handle &) { return Type::Handle; }
constexpr Type typeOf(const DataType &) { return Type::DataType; }
constexpr Type typeOf(const bool &) { return Type::Boolean; }
constexpr Type typeOf(const int64_t &) { return Type::Int64; }
constexpr Type typeOf(void *const &) { return Type::Pointer; }
constexpr Type typeOf(const Heuristic &) { return Type::Heuristic; }
constexpr Type typeOf(const Note &) { return Type::Note; }
constexpr Type typeOf(const Mode &) { return Type::Mode; }
constexpr Type typeOf(const Object &) { return Type::Object; }
constexpr Type typeOf(const Operator &) { return Type::Operator; }

/// F(member, exported name, parameters)
#define TESSERA_CUDNN(F)                                                       \
  F(create, cudnnCreate, (Handle * handle))                                    \
  F(destroy, cudnnDestroy, (Handle handle))                                    \
  F(setStream, cudnnSetStream, (Handle handle, Stream stream))                 \
  F(objectCreate, cudnnBackendCreateDescriptor, (Kind kind, Object * object))  \
  F(objectDestroy, cudnnBackendDestroyDescriptor, (Object object))             \
  F(finalize, cudnnBackendFinalize, (Object object))                           \
  F(setField, cudnnBackendSetAttribute,                                        \
    (Object object, Field field, Type type, int64_t count,                     \
     const void *elements))                                                    \
  F(getField, cudnnBackendGetAttribute,                                        \
    (Object object, Field field, Type type, int64_t room, int64_t * count,     \
     void *elements))                                                          \
  F(execute, cudnnBackendExecute, (Handle handle, Object plan, Object pack))

class Api {
public:
  /// The cuDNN of this process, checked: new enough. Opened once.
  static Result<const Api *> get();

#define TESSERA_CUDNN_MEMBER(member, name, parameters) Code(*member) parameters;
  TESSERA_CUDNN(TESSERA_CUDNN_MEMBER)
#undef TESSERA_CUDNN_MEMBER
  size_t (*getVersion)();
  const char *(*getErrorString)(Code code);
  void (*getLastErrorString)(char *text, size_t bytes);

  /// Success, or one sentence: "cuDNN cannot `what`: CUDNN_STATUS_... (...)".
  Status check(Code code, std::string_view what) const;
  /// "9.19.0"
  const std::string &version() const { return versionText; }
  /// An error unless it is at least 91501, say, `what` needs that.
  Status needs(size_t oldest, std::string_view what) const;

private:
  static Result<Api *> open();
  std::string versionText;
};

/// Descriptors that end together. After the first call that fails, nothing more
/// is done, and `status` is its error.
class Objects {
public:
  explicit Objects(const Api &api) : api(api) {}
  ~Objects();
  Objects(const Objects &) = delete;
  Objects &operator=(const Objects &) = delete;

  Object make(Kind kind);
  template <typename T>
  void set(Object object, Field field, std::span<const T> values) {
    setElements(object, field, typeOf(T()), values.size(), values.data());
  }
  template <typename T> void set(Object object, Field field, const T &value) {
    set(object, field, std::span<const T>(&value, 1));
  }
  void finalize(Object object);
  /// How many there are, at most `values.size()`; with no room, all of them.
  /// Descriptors are made before, and become those that are asked for.
  template <typename T>
  int64_t get(Object object, Field field, std::span<T> values) {
    return getElements(object, field, typeOf(T()), values.size(),
                       values.data());
  }

  Status status = Ok{};

private:
  void setElements(Object object, Field field, Type type, size_t count,
                   const void *elements);
  int64_t getElements(Object object, Field field, Type type, size_t room,
                      void *elements);

  const Api &api;
  std::vector<Object> made;
};

} // namespace tessera::cuda::dnn

#endif // TESSERA_BACKENDS_CUDA_CUDNN_CUDNN_H
