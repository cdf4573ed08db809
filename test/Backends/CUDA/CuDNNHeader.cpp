//===- CuDNNHeader.cpp - our declarations beside cuDNN's own --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Alike.h.
//
//===----------------------------------------------------------------------===//

#include "Alike.h"
#include "Backends/CUDA/CuDNN/CuDNN.h"

#include <cudnn_graph.h>

namespace ours = tessera::cuda::dnn;

#define SAME(a, b) static_assert(int(ours::a) == int(b))
SAME(Kind::Pointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
SAME(Kind::Engine, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
SAME(Kind::Config, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
SAME(Kind::Heuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
SAME(Kind::Plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
SAME(Kind::PointwiseOp, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
SAME(Kind::Graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
SAME(Kind::Pack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
SAME(Kind::Tensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
SAME(Kind::Matmul, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
SAME(Kind::MatmulOp, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
SAME(Kind::Reduction, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
SAME(Kind::ReductionOp, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
SAME(Kind::ReshapeOp, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
SAME(Field::PointwiseMode, CUDNN_ATTR_POINTWISE_MODE);
SAME(Field::PointwiseType, CUDNN_ATTR_POINTWISE_MATH_PREC);
SAME(Field::PointwiseAxis, CUDNN_ATTR_POINTWISE_AXIS);
SAME(Field::HeuristicsMode, CUDNN_ATTR_ENGINEHEUR_MODE);
SAME(Field::HeuristicsGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
SAME(Field::HeuristicsResults, CUDNN_ATTR_ENGINEHEUR_RESULTS);
SAME(Field::ConfigEngine, CUDNN_ATTR_ENGINECFG_ENGINE);
SAME(Field::PlanConfig, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
SAME(Field::PlanWorkspace, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
SAME(Field::PointwiseOpDesc, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
SAME(Field::PointwiseOpX, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
SAME(Field::PointwiseOpB, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
SAME(Field::PointwiseOpY, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
SAME(Field::PointwiseOpT, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
SAME(Field::GraphHandle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
SAME(Field::GraphOps, CUDNN_ATTR_OPERATIONGRAPH_OPS);
SAME(Field::TensorAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
SAME(Field::TensorType, CUDNN_ATTR_TENSOR_DATA_TYPE);
SAME(Field::TensorSizes, CUDNN_ATTR_TENSOR_DIMENSIONS);
SAME(Field::TensorStrides, CUDNN_ATTR_TENSOR_STRIDES);
SAME(Field::TensorId, CUDNN_ATTR_TENSOR_UNIQUE_ID);
SAME(Field::TensorVirtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
SAME(Field::TensorByValue, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
SAME(Field::PackIds, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
SAME(Field::PackPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
SAME(Field::PackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
SAME(Field::EngineIndex, CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
SAME(Field::EngineNotes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
SAME(Field::MatmulType, CUDNN_ATTR_MATMUL_COMP_TYPE);
SAME(Field::MatmulOpA, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
SAME(Field::MatmulOpB, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
SAME(Field::MatmulOpC, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
SAME(Field::MatmulOpDesc, CUDNN_ATTR_OPERATION_MATMUL_DESC);
SAME(Field::ReductionOperator, CUDNN_ATTR_REDUCTION_OPERATOR);
SAME(Field::ReductionType, CUDNN_ATTR_REDUCTION_COMP_TYPE);
SAME(Field::ReductionOpX, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
SAME(Field::ReductionOpY, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
SAME(Field::ReductionOpDesc, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
SAME(Field::ReshapeOpX, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
SAME(Field::ReshapeOpY, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
SAME(DataType::F32, CUDNN_DATA_FLOAT);
SAME(DataType::F16, CUDNN_DATA_HALF);
SAME(DataType::I32, CUDNN_DATA_INT32);
SAME(DataType::BF16, CUDNN_DATA_BFLOAT16);
SAME(DataType::Boolean, CUDNN_DATA_BOOLEAN);
SAME(Mode::Add, CUDNN_POINTWISE_ADD);
SAME(Mode::Mul, CUDNN_POINTWISE_MUL);
SAME(Mode::Div, CUDNN_POINTWISE_DIV);
SAME(Mode::Sub, CUDNN_POINTWISE_SUB);
SAME(Mode::Exp, CUDNN_POINTWISE_EXP);
SAME(Mode::Log, CUDNN_POINTWISE_LOG);
SAME(Mode::GreaterEqual, CUDNN_POINTWISE_CMP_GE);
SAME(Mode::Index, CUDNN_POINTWISE_GEN_INDEX);
SAME(Mode::Select, CUDNN_POINTWISE_BINARY_SELECT);
SAME(Operator::Sum, CUDNN_REDUCE_TENSOR_ADD);
SAME(Operator::Max, CUDNN_REDUCE_TENSOR_MAX);
SAME(Heuristic::Fallback, CUDNN_HEUR_MODE_FALLBACK);
SAME(Heuristic::A, CUDNN_HEUR_MODE_A);
SAME(Note::Nondeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
// Newer versions may have more: they give as many as there is room for.
SAME(Note::Count, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
SAME(Type::Handle, CUDNN_TYPE_HANDLE);
SAME(Type::DataType, CUDNN_TYPE_DATA_TYPE);
SAME(Type::Boolean, CUDNN_TYPE_BOOLEAN);
SAME(Type::Int64, CUDNN_TYPE_INT64);
SAME(Type::Pointer, CUDNN_TYPE_VOID_PTR);
SAME(Type::Heuristic, CUDNN_TYPE_HEUR_MODE);
SAME(Type::Note, CUDNN_TYPE_NUMERICAL_NOTE);
SAME(Type::Mode, CUDNN_TYPE_POINTWISE_MODE);
SAME(Type::Object, CUDNN_TYPE_BACKEND_DESCRIPTOR);
SAME(Type::Operator, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
static_assert(sizeof(ours::Note) == sizeof(cudnnBackendNumericalNote_t));
static_assert(sizeof(ours::Code) == sizeof(cudnnStatus_t));
static_assert(CUDNN_STATUS_SUCCESS == 0);

using ours::Api;
using tessera::test::alike;
TESSERA_CUDNN(TESSERA_ALIKE)
static_assert(
    std::is_same_v<decltype(&cudnnGetVersion), decltype(Api::getVersion)>);
static_assert(alike(decltype(Api::getErrorString)(nullptr),
                    &cudnnGetErrorString));
static_assert(std::is_same_v<decltype(&cudnnGetLastErrorString),
                             decltype(Api::getLastErrorString)>);
