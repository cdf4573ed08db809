//===- Trace.cpp - the steps of a run on a time axis ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rank makes its events; rank 0 writes those of all, on its own clock and
// from the first event on. A rank is a process of the trace. What it does, one
// step after the other, is on two tracks, so that a look tells collectives from
// the rest; what the host does to enqueue it is on a third.
//
//===----------------------------------------------------------------------===//

#include "Trace.h"
#include "Clock.h"
#include "Support/TemporaryFile.h"
#include "Support/Try.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

using namespace tessera;
using namespace tessera::run;
using nlohmann::json;

static std::string dump(const json &value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

namespace {

enum Track { Kernels, Collectives, Host };

/// This rank's events as text, separated by commas.
class Events {
public:
  /// `origin`: what the time axis begins with, on this rank's clock.
  Events(int rank, double origin) : rank(rank), origin(origin) {}

  void name(const char *what, json args, int track = -1) {
    json event = {
        {"ph", "M"}, {"name", what}, {"pid", rank}, {"args", std::move(args)}};
    if (track >= 0)
      event["tid"] = track;
    add(event);
  }

  void span(const std::string &name, const char *category, Track track,
            double begin, double end, json args) {
    // In whole nanoseconds, so that what does not overlap still does not.
    const double from = nanoseconds(begin), to = nanoseconds(end);
    add({{"ph", "X"},
         {"name", name},
         {"cat", category},
         {"pid", rank},
         {"tid", static_cast<int>(track)},
         {"ts", from / 1e3},
         {"dur", (to - from) / 1e3},
         {"args", std::move(args)}});
  }

  std::string text;

private:
  double nanoseconds(double time) const {
    return std::round(1e9 * (time - origin));
  }
  void add(const json &event) {
    text += (text.empty() ? "" : ",\n") + dump(event);
  }

  const int rank;
  const double origin;
};

} // namespace

static Result<std::vector<tessera_step>> stepsOf(tessera_binding *binding) {
  std::vector<tessera_step> steps(tessera_binding_step_count(binding));
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i].size = sizeof steps[i];
    TSR_TRY(take(tessera_binding_step(binding, i, &steps[i])));
  }
  return steps;
}

static Status addSteps(Events &events, tessera_binding *binding,
                       const std::vector<tessera_step> &steps) {
  for (size_t i = 0; i < steps.size(); ++i) {
    const tessera_step &step = steps[i];
    std::string name = *step.symbol ? step.symbol
                       : *step.op   ? step.op
                                    : "copy to a port";
    json args = {{"step", i},
                 {"op", step.op},
                 {"location", step.location},
                 {"kind", step.kind},
                 {"what", step.text}};
    if (*step.symbol)
      args["symbol"] = step.symbol;
    if (step.collective >= 0) {
      tessera_collective collective = {};
      collective.size = sizeof collective;
      TSR_TRY(take(
          tessera_binding_collective(binding, step.collective, &collective)));
      name = std::string(collective.kind) + " " + collective.axes;
      args["collective"] = collective.kind;
      args["axes"] = collective.axes;
      args["bytes_sent"] = collective.bytes_sent;
      args["bytes_received"] = collective.bytes_received;
    }
    events.span(name, step.kind, step.collective >= 0 ? Collectives : Kernels,
                step.begin, step.end, std::move(args));
    if (step.enqueue_end > 0)
      events.span(name, "enqueue", Host, step.enqueue_begin, step.enqueue_end,
                  {{"step", i}});
  }
  return Ok{};
}

/// What each rank brings, at rank 0 and everywhere else.
static Result<std::vector<std::string>> gather(std::string mine, Team &team) {
  Result<std::vector<size_t>> sizes = team.allGather(mine.size());
  if (!sizes)
    return sizes.error();
  const size_t most = *std::max_element(sizes->begin(), sizes->end());
  std::string all(most * sizes->size(), ' ');
  mine.resize(most, ' ');
  TSR_TRY(team.allGather(mine.data(), all.data(), most));
  std::vector<std::string> texts;
  for (size_t rank = 0; rank < sizes->size(); ++rank)
    texts.push_back(all.substr(rank * most, (*sizes)[rank]));
  return texts;
}

Status run::writeTrace(const std::string &path, const std::string &temporary,
                       const Session &session, Team &team) {
  tessera_binding *binding = session.binding.get();
  Result<std::vector<tessera_step>> steps = stepsOf(binding);
  if (!steps)
    return steps.error();
  Result<std::vector<Clock>> clocks = compareClocks(team);
  if (!clocks)
    return clocks.error();
  const Clock &clock = (*clocks)[team.rank()];
  double first = std::numeric_limits<double>::infinity();
  for (const tessera_step &step : *steps) {
    first = std::min(first, step.begin);
    if (step.enqueue_end > 0)
      first = std::min(first, step.enqueue_begin);
  }
  Result<std::vector<double>> firsts = team.allGather(first - clock.ahead);
  if (!firsts)
    return firsts.error();
  const double origin = *std::min_element(firsts->begin(), firsts->end());
  const double error = clock.error + tessera_binding_clock_error(binding);
  Result<std::vector<double>> errors = team.allGather(1e6 * error);
  if (!errors)
    return errors.error();

  const bool device = session.rankDevice.isGPU();
  Events events(team.rank(), origin + clock.ahead);
  events.name("process_name", {{"name", "rank " + std::to_string(team.rank()) +
                                            ", " + session.device}});
  events.name("process_sort_index", {{"sort_index", team.rank()}});
  const char *const one = device ? "the one stream" : "the one thread";
  for (auto [track, name] :
       {std::pair(Kernels, "kernels, products, copies"),
        std::pair(Collectives, "collectives"), std::pair(Host, "host")}) {
    if (track == Host && !device)
      continue;
    std::string text = name;
    text += track == Host ? ": enqueueing" : std::string(", on ") + one;
    events.name("thread_name", {{"name", text}}, track);
    events.name("thread_sort_index", {{"sort_index", track}}, track);
  }
  TSR_TRY(addSteps(events, binding, *steps));
  Result<std::vector<std::string>> texts = gather(events.text, team);
  if (!texts)
    return texts.error();
  if (team.rank() != 0)
    return Ok{};

  const json about = {
      {"program", session.path},
      {"clock", "CLOCK_MONOTONIC of rank 0, from the first event on"},
      {"clock_error_us", *errors},
      {"clock_error", "a rank's events may all be too early, or all too late, "
                      "by so much"}};
  const int fd = createNew(temporary);
  FILE *file = fd < 0 ? nullptr : fdopen(fd, "w");
  auto put = [&](const std::string &text) {
    return fwrite(text.data(), 1, text.size(), file) == text.size();
  };
  bool written =
      file && put("{\"displayTimeUnit\":\"ns\",\n\"otherData\":" + dump(about) +
                  ",\n\"traceEvents\":[\n");
  for (size_t rank = 0; written && rank < texts->size(); ++rank)
    written = put((rank ? ",\n" : "") + (*texts)[rank]);
  written = written && put("\n]}\n");
  if (file)
    written = fclose(file) == 0 && written;
  if (written && rename(temporary.c_str(), path.c_str()) == 0)
    return Ok{};
  const std::string why = systemError();
  if (fd >= 0)
    unlink(temporary.c_str());
  return Error{path + ": cannot be written: " + why};
}
