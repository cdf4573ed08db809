//===- Trace.cpp - the steps of a run on a time axis ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rank makes its events; rank 0 writes those of all. Times are those of
// the monotonic clock, which the ranks of a machine share.
//
//===----------------------------------------------------------------------===//

#include "Trace.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

using namespace tessera;
using namespace tessera::run;
using nlohmann::json;

/// The events of this rank, separated by commas; `first` gets when they begin.
static Result<std::string> eventsOf(const Session &session, int rank,
                                    double &first) {
  tessera_binding *binding = session.binding.get();
  std::vector<tessera_step> steps(tessera_binding_step_count(binding));
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i].size = sizeof steps[i];
    if (Status status = take(tessera_binding_step(binding, i, &steps[i]));
        !status)
      return status.error();
  }
  first = steps.empty() ? 0 : steps[0].begin;
  auto dump = [](const json &event) {
    return event.dump(-1, ' ', false, json::error_handler_t::replace);
  };
  std::string text = dump(
      {{"ph", "M"},
       {"name", "process_name"},
       {"pid", rank},
       {"args",
        {{"name", "rank " + std::to_string(rank) + ", " + session.device}}}});
  for (const tessera_step &step : steps) {
    std::string name = *step.op ? step.op : "copy to a port";
    if (step.collective >= 0) {
      tessera_collective collective = {};
      collective.size = sizeof collective;
      if (Status status = take(tessera_binding_collective(
              binding, step.collective, &collective));
          !status)
        return status.error();
      name = std::string(collective.kind) + " " + collective.axes;
    }
    // In microseconds; seconds have enough digits for nanoseconds.
    text += ",\n" + dump({{"ph", "X"},
                          {"name", name},
                          {"cat", step.collective >= 0 ? "collective" : "step"},
                          {"pid", rank},
                          {"tid", 0},
                          {"ts", 1e6 * step.begin},
                          {"dur", 1e6 * (step.end - step.begin)},
                          {"args",
                           {{"op", step.op},
                            {"location", step.location},
                            {"what", step.text}}}});
  }
  return text;
}

Status run::writeTrace(const std::string &path, const Session &session,
                       Team &team) {
  double first = 0;
  Result<std::string> events = eventsOf(session, team.rank(), first);
  if (!events)
    return events.error();
  Result<std::vector<size_t>> sizes = team.allGather(events->size());
  if (!sizes)
    return sizes.error();
  const size_t most = *std::max_element(sizes->begin(), sizes->end());
  std::string all(most * sizes->size(), ' ');
  events->resize(most, ' ');
  if (Status status = team.allGather(events->data(), all.data(), most); !status)
    return status;
  if (team.rank() != 0)
    return Ok{};
  const std::string temporary = path + ".part";
  FILE *file = fopen(temporary.c_str(), "we");
  bool written = file && fputs("{\"traceEvents\":[\n", file) >= 0;
  for (size_t rank = 0; written && rank < sizes->size(); ++rank) {
    if (rank)
      written = fputs(",\n", file) >= 0;
    written = written && fwrite(&all[rank * most], 1, (*sizes)[rank], file) ==
                             (*sizes)[rank];
  }
  written = written && fputs("\n]}\n", file) >= 0;
  if (file)
    written = fclose(file) == 0 && written;
  if (!written || rename(temporary.c_str(), path.c_str()))
    return Error{"cannot write '" + path + "'"};
  return Ok{};
}
