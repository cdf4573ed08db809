//===- StepKinds.cpp - the kinds of steps ---------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Module/Module.h"

using namespace tessera;
using Ids = std::vector<int32_t>;

namespace {
struct Name {
  const char *operator()(const fb::LaunchT &) { return "kernel"; }
  const char *operator()(const fb::ContractT &) { return "product"; }
  const char *operator()(const fb::AttendT &) { return "attention"; }
  const char *operator()(const fb::CollectiveT &) { return "collective"; }
  const char *operator()(const fb::CopyT &) { return "copy"; }
};

struct List {
  Ids &ids, &optional;

  void operator()(const fb::LaunchT &launch) { ids = launch.tensors; }
  void operator()(const fb::ContractT &contract) {
    ids = {contract.a, contract.b, contract.c};
    optional = {contract.bias, contract.x, contract.aux, contract.sums,
                contract.addend};
  }
  void operator()(const fb::AttendT &attend) {
    ids = {attend.query, attend.key, attend.value, attend.result};
    optional = {attend.lse, attend.grad, attend.query_grad, attend.key_grad,
                attend.value_grad};
  }
  void operator()(const fb::CollectiveT &collective) {
    for (const fb::Pair &pair : pairsOf(collective))
      ids.insert(ids.end(), {pair.source(), pair.target()});
    ids.insert(ids.end(), collective.indices.begin(), collective.indices.end());
  }
  void operator()(const fb::CopyT &copy) { ids = {copy.source, copy.target}; }
};
} // namespace

const char *tessera::nameOf(const fb::StepT &step) {
  return visit(step.action, Name());
}

void tessera::listTensors(const fb::ActionUnion &action, Ids &ids,
                          Ids &optional) {
  visit(action, List{ids, optional});
}

std::vector<int32_t> tessera::tensorsOf(const fb::StepT &step) {
  Ids ids, optional;
  listTensors(step.action, ids, optional);
  for (int32_t id : optional)
    if (id >= 0)
      ids.push_back(id);
  return ids;
}

//===----------------------------------------------------------------------===//
// Collectives: the schema's enums are the layout algebra's
//===----------------------------------------------------------------------===//

template <typename From, typename To>
static constexpr bool isSame(From from, To to) {
  return static_cast<int>(from) == static_cast<int>(to);
}

layout::Step::Kind tessera::kindOf(const fb::CollectiveT &collective) {
  using From = fb::CollectiveKind;
  using To = layout::Step::Kind;
  static_assert(isSame(From::Slice, To::Slice));
  static_assert(isSame(From::AllGather, To::AllGather));
  static_assert(isSame(From::AllReduce, To::AllReduce));
  static_assert(isSame(From::ReduceScatter, To::ReduceScatter));
  static_assert(isSame(From::AllToAll, To::AllToAll));
  static_assert(isSame(From::Permute, To::Permute));
  static_assert(isSame(From::Broadcast, To::Broadcast));
  static_assert(isSame(From::Exchange, To::Exchange));
  static_assert(isSame(From::Fetch, To::Fetch));
  static_assert(From::Fetch == From::MAX);
  return static_cast<To>(collective.kind);
}

std::vector<fb::Pair> tessera::pairsOf(const fb::CollectiveT &collective) {
  std::vector<fb::Pair> pairs = {{collective.source, collective.target}};
  pairs.insert(pairs.end(), collective.more.begin(), collective.more.end());
  return pairs;
}

layout::Combiner tessera::combinerOf(const fb::CollectiveT &collective) {
  using From = fb::Combiner;
  using To = layout::Combiner;
  static_assert(isSame(From::Sum, To::Sum));
  static_assert(isSame(From::Max, To::Max));
  static_assert(isSame(From::Min, To::Min));
  static_assert(From::Min == From::MAX);
  return static_cast<To>(collective.combiner);
}
