//===- Report.cpp - what tessera-run prints about a run -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report.h"
#include "Elements.h"
#include "Support/Try.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace tessera::run {

Status Report::merge(Team &team) {
  auto ranks = static_cast<size_t>(team.size());
  std::vector<double> times(seconds.size() * ranks);
  std::vector<Traffic> mine, all(collectives.size() * ranks);
  for (const Collective &collective : collectives)
    mine.push_back(collective.traffic);
  TSR_TRY(team.allGather(seconds.data(), times.data(),
                         seconds.size() * sizeof(double)));
  TSR_TRY(
      team.allGather(mine.data(), all.data(), mine.size() * sizeof(Traffic)));
  std::vector<double> hosts(hostSeconds.size() * ranks);
  TSR_TRY(team.allGather(hostSeconds.data(), hosts.data(),
                         hostSeconds.size() * sizeof(double)));
  Result<std::vector<Memory>> held = team.allGather(memory);
  if (!held)
    return held.error();
  memories = std::move(*held);
  Result<std::vector<RankDevice>> gathered = team.allGather(device);
  if (!gathered)
    return gathered.error();
  devices = std::move(*gathered);
  for (Communicator &each : communicators) {
    Result<std::vector<Communicator::Numbers>> numbers =
        team.allGather(each.numbers);
    if (!numbers)
      return numbers.error();
    for (const Communicator::Numbers &other : *numbers)
      for (auto member :
           {&Communicator::Numbers::calls, &Communicator::Numbers::sent,
            &Communicator::Numbers::received, &Communicator::Numbers::memory})
        each.numbers.*member = std::max(each.numbers.*member, other.*member);
  }
  Result<std::vector<Products>> chosen = team.allGather(products);
  if (!chosen)
    return chosen.error();
  products = {};
  for (const Products &other : *chosen) {
    products.stored += other.stored;
    products.measured += other.measured;
    products.heuristic += other.heuristic;
    products.hash = 3 * products.hash + other.hash;
  }

  for (size_t rank = 0; rank < ranks; ++rank) {
    for (size_t i = 0; i < seconds.size(); ++i)
      seconds[i] = std::max(seconds[i], times[rank * seconds.size() + i]);
    for (size_t i = 0; i < hostSeconds.size(); ++i)
      hostSeconds[i] =
          std::max(hostSeconds[i], hosts[rank * hostSeconds.size() + i]);
    for (size_t i = 0; i < collectives.size(); ++i) {
      Traffic &traffic = collectives[i].traffic;
      const Traffic &other = all[rank * collectives.size() + i];
      collectives[i].byRank.push_back(other);
      traffic.sent = std::max(traffic.sent, other.sent);
      traffic.received = std::max(traffic.received, other.received);
      traffic.copies = std::max(traffic.copies, other.copies);
      traffic.copiedBytes = std::max(traffic.copiedBytes, other.copiedBytes);
      traffic.seconds = std::max(traffic.seconds, other.seconds);
    }
    const Memory &other = memories[rank];
    memory.external = std::max(memory.external, other.external);
    memory.local = std::max(memory.local, other.local);
    memory.symmetric = std::max(memory.symmetric, other.symmetric);
    memory.constants = std::max(memory.constants, other.constants);
  }
  return Ok{};
}

/// The middle one, of an even number the mean of two.
static double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t half = values.size() / 2;
  return values.size() % 2 ? values[half]
                           : (values[half - 1] + values[half]) / 2;
}

static std::string milliseconds(double seconds) {
  char text[32];
  snprintf(text, sizeof text, "%.3f ms", seconds * 1e3);
  return text;
}

std::string table(const std::vector<std::vector<std::string>> &rows,
                  const std::vector<bool> &alignRight) {
  std::vector<size_t> widths(alignRight.size());
  for (const auto &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto &row : rows) {
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i) {
      std::string fill(widths[i] - row[i].size(), ' ');
      line += " " + (alignRight[i] ? fill + row[i] : row[i] + fill) + " ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string Report::title() const {
  std::string text = module + ": " + std::to_string(ranks) +
                     (ranks == 1 ? " rank" : " ranks") + ", mesh " + mesh;
  for (const auto &[name, size] : sizes)
    text += ", " + name + " = " + std::to_string(size);
  return text + "\n";
}

/// A number's mean over ranks.
static double mean(const Collective &collective, uint64_t Traffic::*number) {
  double sum = 0;
  for (const Traffic &each : collective.byRank)
    sum += each.*number;
  return sum / collective.byRank.size();
}

/// The largest number of any rank, and the mean where it is less.
static std::string loads(const Collective &collective,
                         uint64_t Traffic::*number) {
  const uint64_t most = collective.traffic.*number;
  const auto middle =
      static_cast<uint64_t>(std::llround(mean(collective, number)));
  return std::to_string(most) +
         (middle == most ? "" : ", mean " + std::to_string(middle));
}

std::string Report::collectiveTable(bool withTimes) const {
  std::vector<std::vector<std::string>> rows = {
      {"collective", "axes", "sent", "received", "copies"}};
  std::vector<bool> alignRight = {false, false, true, true, true};
  if (withTimes) {
    rows[0].push_back("time");
    alignRight.push_back(true);
  }
  for (const char *title : {"source", "op", "instead of"}) {
    rows[0].push_back(title);
    alignRight.push_back(false);
  }
  for (const Collective &each : collectives) {
    // Some are local on this mesh, as a slice always is.
    if (each.traffic.sent == 0 && each.traffic.received == 0)
      continue;
    const std::string count =
        each.tensors > 1 ? " of " + std::to_string(each.tensors) : "";
    std::vector<std::string> row = {
        each.kind + count, each.axes, loads(each, &Traffic::sent),
        loads(each, &Traffic::received), std::to_string(each.traffic.copies)};
    if (withTimes)
      row.push_back(milliseconds(each.traffic.seconds));
    row.insert(row.end(),
               {each.location, each.op, each.loser.empty() ? "-" : each.loser});
    rows.push_back(std::move(row));
  }
  if (rows.size() == 1)
    return "no collective moves a byte\n";
  std::string text = "collectives of a run, in bytes of the busiest rank\n" +
                     table(rows, alignRight);
  if (size_t local = collectives.size() + 1 - rows.size())
    text += "  and " + std::to_string(local) + " that move no byte\n";
  return text;
}

std::string Report::collectivesText() const {
  return title() + collectiveTable(/*withTimes=*/false);
}

std::string Report::ranksText() const {
  std::vector<std::vector<std::string>> rows = {{"rank", "sent", "received",
                                                 "copied", "external", "local",
                                                 "symmetric", "constants"}};
  for (size_t rank = 0; rank < memories.size(); ++rank) {
    Traffic sum = {};
    for (const Collective &each : collectives)
      for (auto number :
           {&Traffic::sent, &Traffic::received, &Traffic::copiedBytes})
        sum.*number += each.byRank[rank].*number;
    const Memory &own = memories[rank];
    std::vector<std::string> &row = rows.emplace_back();
    for (uint64_t number :
         {uint64_t(rank), sum.sent, sum.received, sum.copiedBytes, own.external,
          own.local, own.symmetric, own.constants})
      row.push_back(std::to_string(number));
  }
  return title() + "bytes that a rank moves in a run, and holds\n" +
         table(rows, std::vector<bool>(rows[0].size(), true));
}

static std::string hexText(uint64_t value) {
  char text[32];
  snprintf(text, sizeof text, "%016llx",
           static_cast<unsigned long long>(value));
  return text;
}

/// For each kind of op that has variants how many run as which: "attention",
/// "flash 12, math 0".
static std::vector<std::pair<std::string, std::string>>
countChoices(const std::vector<Choice> &choices) {
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, int>>>>
      kinds;
  auto find = [](auto &list, const std::string &name) -> auto & {
    for (auto &each : list)
      if (each.first == name)
        return each.second;
    return list.emplace_back(name, decltype(list[0].second){}).second;
  };
  for (const Choice &choice : choices) {
    auto &variants = find(kinds, choice.kind);
    for (const std::string &variant : choice.variants)
      find(variants, variant) += variant == choice.chosen;
  }
  std::vector<std::pair<std::string, std::string>> texts;
  for (const auto &[kind, variants] : kinds) {
    std::string text;
    for (const auto &[variant, count] : variants)
      text +=
          (text.empty() ? "" : ", ") + variant + " " + std::to_string(count);
    texts.emplace_back(kind, text);
  }
  return texts;
}

/// What the bits of the results depend on: they are the same in each run for
/// which these lines are.
std::string Report::bitsTable() const {
  // Equal devices are one line.
  std::vector<std::pair<std::string, std::string>> kinds;
  for (const RankDevice &each : devices) {
    std::string text = std::string(each.model) + ", driver " + each.driver;
    if (*each.libraries)
      text += std::string(", ") + each.libraries;
    auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto &kind) {
      return kind.first == text;
    });
    if (kind == kinds.end())
      kind = kinds.insert(kind, {text, "GPU"});
    kind->second +=
        (kind->second == "GPU" ? " " : ", ") + std::to_string(each.ordinal);
  }
  std::vector<std::vector<std::string>> rows = {
      {"module", hexText(hash) + ", " + target},
      {"ranks", std::to_string(ranks) + ", mesh " + mesh}};
  for (const auto &[kind, counts] : countChoices(choices))
    rows.push_back({kind, counts});
  for (const auto &[text, ordinals] : kinds)
    rows.push_back({ordinals, text});
  if (withProducts)
    rows.push_back({"algorithms", hexText(products.hash)});
  return "the bits of results depend on\n" + table(rows, {false, false});
}

static std::string mebibytes(uint64_t bytes) {
  char text[32];
  snprintf(text, sizeof text, "%.1f MiB", double(bytes) / (1 << 20));
  return text;
}

std::string Report::communicatorTable() const {
  if (communicators.empty())
    return "";
  std::vector<std::vector<std::string>> rows = {
      {"ranks", "groups", "axes", "collectives", "calls", "sent", "received",
       "memory", "made in", "as"}};
  for (const Communicator &each : communicators)
    rows.push_back(
        {each.ranks, std::to_string(each.groups),
         each.axes.empty() ? "-" : each.axes,
         std::to_string(each.numbers.collectives),
         std::to_string(each.numbers.calls), std::to_string(each.numbers.sent),
         std::to_string(each.numbers.received), mebibytes(each.numbers.memory),
         milliseconds(each.numbers.seconds),
         each.split ? "part of the first" : "the first"});
  const size_t count = communicators.size();
  return std::to_string(count) +
         (count == 1 ? " communicator of " : " communicators of ") +
         communicators[0].library +
         ", as called in a run of the busiest rank, in bytes\n" +
         table(rows,
               {false, true, false, true, true, true, true, true, true, false});
}

static std::string timeLine(const std::string &what,
                            const std::vector<double> &seconds) {
  if (seconds.size() == 1)
    return what + " " + milliseconds(seconds[0]) + "\n";
  auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  return what + " of " + std::to_string(seconds.size()) + " runs: min " +
         milliseconds(*least) + ", median " + milliseconds(median(seconds)) +
         ", max " + milliseconds(*most) + "\n";
}

std::string Report::text() const {
  std::string text =
      title() + collectiveTable(/*withTimes=*/timed) + communicatorTable();
  text += timeLine("time", seconds);
  if (device.isGPU())
    text +=
        timeLine(graph ? "host time after the first run, launching a CUDA graph"
                       : "host time, enqueueing each step",
                 hostSeconds);
  text += "memory of the largest rank: external " +
          std::to_string(memory.external) + ", local " +
          std::to_string(memory.local) + ", symmetric " +
          std::to_string(memory.symmetric) + ", constants " +
          std::to_string(memory.constants) + " bytes\n";
  if (device.isGPU())
    text += bitsTable();
  else
    for (const auto &[kind, counts] : countChoices(choices))
      text += kind + ": " + counts + "\n";
  if (withProducts)
    text += "matrix products of all ranks: " + std::to_string(products.stored) +
            " of stored algorithms, " + std::to_string(products.measured) +
            " measured, " + std::to_string(products.heuristic) +
            " by cuBLASLt's heuristic\n";
  text += comparison.text();
  for (const std::string &path : {output, save, trace})
    if (!path.empty())
      text += "wrote " + path + "\n";
  return text;
}

std::string Report::json() const {
  using nlohmann::json;
  json result = {{"module", module},
                 {"hash", hexText(hash)},
                 {"mesh", mesh},
                 {"ranks", ranks}};
  result["sizes"] = json::object();
  for (const auto &[name, size] : sizes)
    result["sizes"][name] = size;
  result["collectives"] = json::array();
  for (const Collective &each : collectives) {
    result["collectives"].push_back(
        {{"kind", each.kind},
         {"axes", each.axes},
         {"op", each.op},
         {"location", each.location},
         {"loser", each.loser},
         {"tensors", each.tensors},
         {"sent", each.traffic.sent},
         {"received", each.traffic.received},
         {"mean_sent", mean(each, &Traffic::sent)},
         {"mean_received", mean(each, &Traffic::received)},
         {"copies", each.traffic.copies},
         {"copied_bytes", each.traffic.copiedBytes}});
    if (timed)
      result["collectives"].back()["seconds"] = each.traffic.seconds;
  }
  auto times = [](const std::vector<double> &seconds) -> json {
    auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
    return {{"runs", seconds.size()},
            {"min", *least},
            {"median", median(seconds)},
            {"max", *most}};
  };
  for (const Choice &each : choices)
    result["choices"].push_back({{"kind", each.kind},
                                 {"op", each.op},
                                 {"location", each.location},
                                 {"chosen", each.chosen},
                                 {"variants", each.variants}});
  for (const auto &[name, values] : logged)
    result["log"][name] = values;
  result["seconds"] = times(seconds);
  result["target"] = target;
  if (device.isGPU()) {
    result["host_seconds"] = times(hostSeconds);
    result["graph"] = graph;
    result["devices"] = json::array();
    for (const RankDevice &each : devices)
      result["devices"].push_back({{"ordinal", each.ordinal},
                                   {"model", each.model},
                                   {"driver", each.driver},
                                   {"libraries", each.libraries}});
    result["communicators"] = json::array();
    for (const Communicator &each : communicators)
      result["communicators"].push_back(
          {{"library", each.library},
           {"ranks", each.ranks},
           {"groups", each.groups},
           {"axes", each.axes},
           {"split", each.split},
           {"collectives", each.numbers.collectives},
           {"calls", each.numbers.calls},
           {"sent", each.numbers.sent},
           {"received", each.numbers.received},
           {"memory", each.numbers.memory},
           {"seconds", each.numbers.seconds}});
  }
  if (withProducts)
    result["products"] = {{"stored", products.stored},
                          {"measured", products.measured},
                          {"heuristic", products.heuristic},
                          {"hash", hexText(products.hash)}};
  if (!comparison.rule.empty()) {
    json outputs = json::array();
    for (const Difference &each : comparison.outputs) {
      auto worst = [&](const Worst &worst) -> json {
        json result = {{"value", worst.value}};
        if (worst.place >= 0)
          result.update({{"at", indexOf(worst.place, each.shape)},
                         {"mine", worst.mine},
                         {"cpu", worst.reference},
                         {"allowed", worst.allowed}});
        return result;
      };
      outputs.push_back({{"name", each.name},
                         {"difference", worst(each.largest)},
                         {"relative", worst(each.relative)},
                         {"of_allowed", worst(each.share)},
                         {"wrong", each.wrong},
                         {"elements", each.elements}});
    }
    result["verify"] = {{"allowed", comparison.rule},
                        {"outputs", std::move(outputs)}};
  }
  result["memory"] = {{"external", memory.external},
                      {"local", memory.local},
                      {"symmetric", memory.symmetric},
                      {"constants", memory.constants}};
  if (!output.empty())
    result["output"] = output;
  if (!trace.empty())
    result["trace"] = trace;
  return result.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

} // namespace tessera::run
