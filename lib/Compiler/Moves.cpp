//===- Moves.cpp - what a compiled program moves, for people --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compiler/Moves.h"
#include "Compiler/Targets/Names.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;

remark::RemarkCategories Moves::getCategories() {
  remark::RemarkCategories categories;
  categories.passed =
      "tv-plan-reshards|tv-merge-reshards|tv-localize|tv-fetch-rows";
  categories.missed = "tv-fetch-rows";
  return categories;
}

static constexpr StringLiteral kMost = "at most ";

static uint64_t numberOf(StringRef text) {
  uint64_t number = 0;
  text.getAsInteger(10, number);
  return number;
}

static double realOf(StringRef text) {
  double number = 0;
  text.getAsDouble(number);
  return number;
}

void Moves::take(const remark::detail::Remark &remark, size_t behind) {
  Said said;
  for (const remark::detail::Remark::Arg &arg : remark.getArgs())
    said[arg.key] = arg.val;
  const StringRef name = remark.getRemarkName();
  const std::string function = remark.getFunction().str();
  auto atNumber = [&](StringRef number) {
    auto known = planned.find({function, numberOf(number)});
    return known == planned.end() ? -1 : int(known->second);
  };
  if (name == "reshard") {
    plan(remark, said, behind);
  } else if (name == "together") {
    if (int at = said.contains("move") ? atNumber(said["move"]) : -1; at >= 0)
      joining.push_back(at);
  } else if (name == "reshards") {
    Step step{std::exchange(joining, {}), std::nullopt};
    if (said.contains("moved"))
      step.bytes = numberOf(said["moved"]);
    llvm::sort(step.moves);
    // Of a chain of steps one is told.
    if (step.moves.size() > 1 && llvm::none_of(step.moves, [&](size_t at) {
          return llvm::any_of(together, [&](const Step &other) {
            return llvm::is_contained(other.moves, at);
          });
        }))
      together.push_back(std::move(step));
  } else if (name == "step") {
    for (StringRef number : llvm::split(said["moves"], ' ')) {
      const int at = atNumber(number);
      tensors[numberOf(said["id"])].push_back(at);
      if (at >= 0)
        ++moves[at].steps;
    }
  } else if (name == "fetch") {
    if (Move *move = find(said))
      fetch(*move, said,
            remark.getRemarkType() == llvm::remarks::Type::Passed);
  } else if (name == "dropped") {
    if (Move *move = find(said))
      move->isThere = --move->steps > 0 || !move->was.empty();
    auto &op = tensors[numberOf(said["id"])];
    if (size_t number = numberOf(said["tensor"]); number < op.size())
      op.erase(op.begin() + number);
  }
}

/// That of which an op's tensor is a step; null if it is not known.
Moves::Move *Moves::find(const Said &said) {
  auto op = tensors.find(numberOf(said.lookup("id")));
  const size_t number = numberOf(said.lookup("tensor"));
  if (op == tensors.end() || number >= op->second.size() ||
      op->second[number] < 0)
    return nullptr;
  return &moves[op->second[number]];
}

void Moves::plan(const remark::detail::Remark &remark, const Said &said,
                 size_t behind) {
  planned[{remark.getFunction().str(), numberOf(said.lookup("move"))}] =
      moves.size();
  Move move;
  move.place = getPlace(remark.getLocation());
  move.views = said.lookup("views");
  move.plan = said.lookup("plan");
  move.loser = said.lookup("loser");
  move.price = {numberOf(said.lookup("bytes")), realOf(said.lookup("us"))};
  move.bound = numberOf(said.lookup("bound"));
  move.behind = behind;
  move.isOneStep = said.lookup("steps") == "1";
  moves.push_back(std::move(move));
}

static std::string describe(StringRef plan, StringRef most, uint64_t bytes,
                            double us) {
  return llvm::formatv("{0}, {1}{2} bytes, {3:f1} us", plan, most, bytes, us)
      .str();
}

/// Rows that data name instead of a step of `move`, or not.
void Moves::fetch(Move &move, const Said &said, bool isChosen) {
  std::string plan = move.plan;
  const std::string of = said.lookup("of");
  if (const size_t at = plan.find(of); at != plan.npos)
    plan.replace(at, of.size(), said.lookup("plan"));
  const Price price = {
      move.price.bytes - numberOf(said.lookup("bytes")) +
          numberOf(said.lookup("most")),
      move.price.us - realOf(said.lookup("otherwise")) +
          realOf(said.lookup("us"))};
  if (!isChosen) {
    move.others = describe(plan, kMost, price.bytes, price.us);
    return;
  }
  move.was = describe(move.plan, "", move.price.bytes, move.price.us);
  move.plan = std::move(plan);
  move.price = price;
}

std::string Moves::explain(StringRef told) const {
  std::string result;
  size_t begin = 0;
  for (const Move &move : moves) {
    result += told.slice(begin, move.behind);
    begin = move.behind;
    if (!move.isThere)
      continue;
    const bool isFetched = !move.was.empty();
    result += llvm::formatv("{0}: {1}: {2}", move.place, move.views,
                            describe(move.plan, isFetched ? StringRef(kMost) : "",
                                     move.price.bytes, move.price.us))
                  .str();
    if (!isFetched)
      result += "; lower bound " + std::to_string(move.bound) + " bytes";
    llvm::SmallVector<StringRef> others = {isFetched ? move.was : move.loser,
                                           move.others};
    llvm::erase_if(others, [](StringRef other) { return other.empty(); });
    if (!others.empty())
      result += "; instead of " + llvm::join(others, ", or ");
    result += "\n";
  }
  return result + told.substr(begin).str();
}

std::string Moves::print(const Step &step) const {
  llvm::SmallVector<std::string> places, plans;
  uint64_t bytes = 0;
  bool isOneStep = true, isMost = false;
  for (size_t at : step.moves) {
    const Move &move = moves[at];
    if (!llvm::is_contained(places, move.place))
      places.push_back(move.place);
    if (!llvm::is_contained(plans, move.plan))
      plans.push_back(move.plan);
    bytes += move.price.bytes;
    isOneStep &= move.isOneStep;
    isMost |= !move.was.empty();
  }
  // Of a chain of steps only one is known to be that.
  if (isOneStep && step.bytes)
    bytes = *step.bytes;
  std::string line =
      llvm::formatv("{0}: {1} of {2}{3} bytes on a device",
                    llvm::join(places, ", "), llvm::join(plans, " and "),
                    isMost ? StringRef(kMost) : "", bytes)
          .str();
  if (step.moves.size() > 1)
    line += ", " + std::to_string(step.moves.size()) + " tensors in one step";
  return line;
}

std::string Moves::getLines() const {
  // What goes in one step is said where the first of it is.
  std::vector<std::optional<Step>> steps;
  for (size_t at = 0; at < moves.size(); ++at)
    steps.push_back(Step{{at}, std::nullopt});
  for (const Step &all : together) {
    Step left{{}, all.bytes};
    for (size_t at : all.moves)
      if (moves[at].isThere && moves[at].was.empty())
        left.moves.push_back(at);
    if (left.moves.size() != all.moves.size())
      left.bytes.reset();
    for (size_t at : left.moves)
      steps[at].reset();
    if (!left.moves.empty())
      steps[left.moves.front()] = left;
  }
  // What is inlined several times is one line.
  llvm::MapVector<std::string, int, std::map<std::string, unsigned>> lines;
  for (const std::optional<Step> &step : steps)
    if (step && moves[step->moves.front()].isThere &&
        moves[step->moves.front()].price.bytes)
      ++lines[print(*step)];
  std::string result;
  for (const auto &[line, count] : lines)
    result += count > 1 ? llvm::formatv("{0}, {1} times\n", line, count).str()
                        : line + "\n";
  return result;
}
