//===- Fetch.cpp - rows that indices name, on a transport -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backends/CPU/Fetch.h"
#include "Support/Try.h"

#include <algorithm>
#include <cstring>

using namespace tessera;

Result<std::unique_ptr<Work>>
FetchWork::create(const fb::CollectiveT &fetch,
                  const std::vector<layout::SubAxis> &axes, Tensors &tensors,
                  Transport *transport) {
  Result<FetchPlan> plan = FetchPlan::create(fetch, axes, tensors);
  if (!plan)
    return plan.error();
  auto work = std::make_unique<FetchWork>();
  work->wanted = plan->wanted();
  work->held = plan->held();
  work->rowBytes = plan->rowBytes();
  work->copy = plan->copy();
  work->pack = plan->pack();
  work->unpack = plan->unpack();
  work->zeros = plan->fill();

  int64_t asked = 0;
  for (int member : plan->group) {
    Result<Tensors> theirs = tensors.onRank(member);
    if (!theirs)
      return theirs.error();
    Result<const LocalTensor *> index = theirs->get(fetch.indices[0]);
    if (!index)
      return index.error();
    const bool isOther = member != tensors.rank();
    work->asked.push_back(isOther ? (*index)->elements() : 0);
    asked += work->asked.back();
  }
  const size_t members = plan->group.size();
  work->counts.resize(members);
  work->theirCounts.resize(members);
  work->wantedEnd.resize(members);
  work->requests.resize(work->wanted);
  work->targets.resize(work->wanted);
  work->theirRequests.resize(asked);
  work->sends.reserve(std::max<size_t>(members, asked));
  work->receives.reserve(std::max<size_t>(members, work->wanted));
  if (members > 1) {
    if (!work->pack.isDense())
      work->packedPlace = work->takeScratch(asked * work->rowBytes);
    if (!work->unpack.isDense())
      work->receivedPlace = work->takeScratch(work->wanted * work->rowBytes);
    if (transport)
      transport->reserve(
          std::max(work->sends.capacity(), work->receives.capacity()));
    // Until it has run: how many rows each wants.
    const int64_t bytes = (members - 1) * sizeof(int64_t);
    work->report.traffic = {bytes, bytes, 0, 0};
  }
  work->plan = std::move(*plan);
  return std::unique_ptr<Work>(std::move(work));
}

void FetchWork::setAddresses(const Bases &bases) {
  tableData = bases(plan.table);
  resultData = bases(plan.result);
  indexData.clear();
  for (const FetchPlan::Index &index : plan.indices)
    indexData.push_back(bases(index.place));
  if (plan.group.size() > 1 && !pack.isDense())
    packed = bases(packedPlace);
  if (plan.group.size() > 1 && !unpack.isDense())
    received = bases(receivedPlace);
}

/// Where row `number` of those that are held here lies.
int64_t FetchWork::bytesToRow(int64_t number) const {
  int64_t bytes = 0;
  for (size_t d = plan.extents.size(); d-- > 1; number /= plan.extents[d])
    bytes += number % plan.extents[d] * plan.tableStrides[d];
  return bytes + number * plan.tableStrides[0];
}

void FetchWork::findRows() {
  const layout::Shape &places = plan.places, &extents = plan.extents;
  std::ranges::fill(counts, 0);
  // Once to count them, once to list them.
  for (bool lists : {false, true}) {
    std::array<int64_t, kMaxRank> at{};
    for (int64_t place = 0; place < wanted; ++place) {
      int64_t number = 0;
      size_t owner = 0;
      bool isInside = true;
      for (size_t k = 0; k < plan.indices.size(); ++k) {
        const FetchPlan::Index &index = plan.indices[k];
        const std::byte *data = indexData[k];
        for (size_t d = 0; d < places.size(); ++d)
          data += at[d] * index.strides[d];
        int64_t row = 0;
        if (index.isWide) {
          memcpy(&row, data, sizeof(int64_t));
        } else {
          int32_t narrow;
          memcpy(&narrow, data, sizeof narrow);
          row = narrow;
        }
        isInside &= row >= 0 && row < extents[k];
        if (!isInside)
          break;
        if (k == 0) {
          owner = row / plan.block;
          row %= plan.block;
        }
        number = number * extents[k] + row;
      }
      std::byte *target = resultData;
      for (size_t d = 0; d < places.size(); ++d)
        target += at[d] * plan.placeStrides[d];
      if (isInside && owner != plan.self) {
        if (lists) {
          requests[wantedEnd[owner]] = number;
          targets[wantedEnd[owner]++] = target;
        } else {
          ++counts[owner];
        }
      } else if (lists && isInside) {
        copy.run(target, tableData + bytesToRow(number));
      } else if (lists) {
        static constexpr std::byte zero[8] = {};
        zeros.run(target, zero);
      }
      for (size_t d = places.size(); d-- > 0;) {
        if (++at[d] < places[d])
          break;
        at[d] = 0;
      }
    }
    if (!lists)
      for (size_t member = 0, end = 0; member < counts.size(); ++member) {
        wantedEnd[member] = end;
        end += counts[member];
      }
  }
}

Status FetchWork::run(const Running &running) {
  if (rowBytes == 0)
    return Ok{}; // on all of the group
  findRows();
  return plan.group.size() > 1 ? exchange(running) : Ok{};
}

/// What is in `sends` and `receives`, which are empty after it.
Status FetchWork::swap(const Running &running) {
  if (sends.empty() && receives.empty())
    return Ok{};
  TSR_TRY(running.transport->exchange(sends, receives, *running.poll));
  for (const SendMessage &message : sends)
    report.traffic.bytesSent += message.bytes;
  for (const ReceiveMessage &message : receives)
    report.traffic.bytesReceived += message.bytes;
  sends.clear();
  receives.clear();
  return Ok{};
}

Status FetchWork::exchange(const Running &running) {
  report.traffic = {};
  sends.clear();
  receives.clear();
  constexpr int64_t word = sizeof(int64_t);
  auto forOthers = [&](auto each) {
    for (size_t member = 0; member < plan.group.size(); ++member)
      if (member != plan.self)
        each(member, plan.group[member]);
  };
  forOthers([&](size_t member, int peer) {
    sends.push_back({peer, &counts[member], word});
    receives.push_back({peer, &theirCounts[member], word});
  });
  TSR_TRY(swap(running));

  int64_t asks = 0;
  Status status = Ok{};
  forOthers([&](size_t member, int peer) {
    const int64_t theirs = theirCounts[member];
    if (theirs < 0 || theirs > asked[member]) {
      status = Error{"rank " + std::to_string(peer) + " wants " +
                     std::to_string(theirs) + " rows of at most " +
                     std::to_string(asked[member])};
      return;
    }
    if (const int64_t mine = counts[member])
      sends.push_back({peer, &requests[wantedEnd[member] - mine], mine * word});
    if (theirs)
      receives.push_back({peer, &theirRequests[asks], theirs * word});
    asks += theirs;
  });
  TSR_TRY(status);
  TSR_TRY(swap(running));

  if (std::any_of(theirRequests.begin(), theirRequests.begin() + asks,
                  [&](int64_t row) { return row < 0 || row >= held; }))
    return Error{"a rank wants a row that this one does not have"};
  asks = 0;
  forOthers([&](size_t member, int peer) {
    for (int64_t i = 0; i < theirCounts[member]; ++i, ++asks) {
      const std::byte *row = tableData + bytesToRow(theirRequests[asks]);
      if (packed) {
        pack.run(packed + asks * rowBytes, row);
        row = packed + asks * rowBytes;
      }
      sends.push_back({peer, row, rowBytes});
    }
    for (int64_t i = wantedEnd[member] - counts[member]; i < wantedEnd[member];
         ++i)
      receives.push_back(
          {peer, received ? received + i * rowBytes : targets[i], rowBytes});
  });
  report.traffic.copies = (packed != nullptr) + (received != nullptr);
  report.traffic.copiedBytes =
      (packed ? asks * rowBytes : 0) +
      (received ? int64_t(receives.size()) * rowBytes : 0);
  TSR_TRY(swap(running));
  if (received)
    for (int64_t i = 0; i < wantedEnd.back(); ++i)
      unpack.run(targets[i], received + i * rowBytes);
  return Ok{};
}
