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

static const ActionKind kKinds[] = {
    {fb::Action::Launch, "kernel",
     [](const fb::ActionUnion &action, Ids &ids, Ids &) {
       ids = action.AsLaunch()->tensors;
     }},
    {fb::Action::Contract, "product",
     [](const fb::ActionUnion &action, Ids &ids, Ids &optional) {
       const fb::ContractT &contract = *action.AsContract();
       ids = {contract.a, contract.b, contract.c};
       optional = {contract.bias, contract.x, contract.aux, contract.sums,
                   contract.addend};
     }},
    {fb::Action::Attend, "attention",
     [](const fb::ActionUnion &action, Ids &ids, Ids &optional) {
       const fb::AttendT &attend = *action.AsAttend();
       ids = {attend.query, attend.key, attend.value, attend.result};
       optional = {attend.lse, attend.grad, attend.query_grad, attend.key_grad,
                   attend.value_grad};
     }},
    {fb::Action::Collective, "collective",
     [](const fb::ActionUnion &action, Ids &ids, Ids &) {
       const fb::CollectiveT &collective = *action.AsCollective();
       for (const fb::Pair &pair : pairsOf(collective))
         ids.insert(ids.end(), {pair.source(), pair.target()});
       ids.insert(ids.end(), collective.indices.begin(),
                  collective.indices.end());
     }},
    {fb::Action::Copy, "copy",
     [](const fb::ActionUnion &action, Ids &ids, Ids &) {
       ids = {action.AsCopy()->source, action.AsCopy()->target};
     }},
};
static_assert(std::size(kKinds) == static_cast<size_t>(fb::Action::MAX));

const ActionKind *tessera::kindOf(const fb::StepT &step) {
  for (const ActionKind &kind : kKinds)
    if (kind.action == step.action.type)
      return &kind;
  return nullptr;
}

std::vector<int32_t> tessera::tensorsOf(const fb::StepT &step) {
  Ids ids, optional;
  kindOf(step)->listTensors(step.action, ids, optional);
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
