//===- tessera-run.cpp - runs a compiled module on files ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program over the C header: loads a module on each rank, reads each rank's
// parts of the inputs, runs, writes the outputs, and prints what the run cost.
//
// Only this program ends processes: see Ending.h.
//
//===----------------------------------------------------------------------===//

#include "Elements.h"
#include "Ending.h"
#include "Losers.h"
#include "Module/Module.h"
#include "Options.h"
#include "Report.h"
#include "Session.h"
#include "Support/Names.h"
#include "Support/StandardStreams.h"
#include "Support/TemporaryFile.h"
#include "Support/Try.h"
#include "Trace.h"
#include "Verify.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <sstream>
#include <sys/random.h>
#include <system_error>
#include <thread>

using namespace tessera;
using namespace tessera::run;

/// What a caller expects to read must have arrived.
static Status print(const char *text) {
  if (fputs(text, stdout) < 0 || fflush(stdout) != 0)
    return Error{"the standard output cannot be written: " + systemError()};
  return Ok{};
}

//===----------------------------------------------------------------------===//
// A rank
//===----------------------------------------------------------------------===//

namespace {

class Rank {
public:
  /// `meetings`: of the run and of its check, null without threads.
  Rank(const Options &options, Team &team, tessera_threads *const *meetings)
      : options(options), team(team), meetings(meetings),
        session(options, team) {}

  Status run() {
    for (auto step :
         {&Rank::nameTemporaries, &Rank::checkOutput, &Rank::load,
          &Rank::findLogged, &Rank::openReference, &Rank::allowVariants,
          &Rank::readInputs, &Rank::execute, &Rank::writeOutput, &Rank::verify,
          &Rank::trace, &Rank::report})
      TSR_TRY((this->*step)());
    return Ok{};
  }

private:
  /// The files to be written, each with what it is before it is whole.
  std::vector<std::pair<const std::string *, std::string *>> written() {
    std::vector<std::pair<const std::string *, std::string *>> files{
        {&options.output, &outputTemporary},
        {&options.save, &saveTemporary},
        {&options.trace, &traceTemporary}};
    std::erase_if(files, [](auto &file) { return file.first->empty(); });
    return files;
  }
  /// All ranks know them before there are any, so that those that survive
  /// remove them.
  Status nameTemporaries() {
    uint64_t mine = 0;
    if (getrandom(&mine, sizeof mine, 0) != sizeof mine)
      return Error{"there are no random numbers: " + systemError()};
    Result<std::vector<uint64_t>> tokens = team.allGather(mine);
    if (!tokens)
      return tokens.error();
    char suffix[32];
    snprintf(suffix, sizeof suffix, ".tmp%016llx",
             static_cast<unsigned long long>((*tokens)[0]));
    for (auto [path, temporary] : written())
      removeAtError(*temporary = *path + suffix);
    return Ok{};
  }

  Status checkOutput() {
    if (team.rank() != 0)
      return Ok{};
    if (!canWriteStdout())
      return Error{"the standard output is closed: the report goes there"};
    for (auto [path, temporary] : written())
      TSR_TRY(checkWritable(*path, *temporary));
    return Ok{};
  }

  Status load() {
    TSR_TRY(session.load(options.module, options.backend, meetings[0]));
    if (session.rankDevice.isGPU())
      return Ok{};
    for (auto [isGiven, flag] :
         {std::pair(options.device.has_value(), "--device"),
          std::pair(options.noGraph, "--no-graph"),
          std::pair(options.symmetric, "--symmetric"),
          std::pair(options.copyEngines, "--copy-engines"),
          std::pair(options.autotune, "--autotune"),
          std::pair(!options.algorithms.empty(), "--algorithms")})
      if (isGiven)
        return Error{std::string(flag) +
                     " is for modules that are compiled for cuda; '" +
                     options.module + "' is compiled for cpu"};
    return Ok{};
  }
  Status findLogged() {
    if (!options.save.empty() &&
        std::ranges::none_of(session.ports, &Port::isState))
      return Error{"--save: '" + options.module +
                   "' has no states; --output writes results"};
    for (const std::string &name : options.logged) {
      Result<size_t> port = findScalar("--log " + name + ": ", name);
      if (!port)
        return port.error();
      logged.push_back(*port);
      log.emplace_back(name, std::vector<double>());
    }
    return Ok{};
  }
  /// A port that each rank has.
  Result<size_t> findScalar(const std::string &flag, const std::string &name) {
    auto port = std::ranges::find(session.ports, name, &Port::name);
    std::vector<std::string> names;
    for (const Port &each : session.ports)
      if (each.isWritten())
        names.push_back(each.name());
    if (port == session.ports.end() || !port->isWritten())
      return Error{flag + "the program has no such result or state" +
                   suggestName(name, names)};
    if (port->description.rank > 0)
      return Error{flag + "is " + port->description.shape_text +
                   "; it must be a scalar, of shape []"};
    Result<layout::View> view =
        layout::parseView(port->description.view, session.mesh);
    if (!view)
      return view.error();
    if (!view->partial.empty())
      return Error{flag + "is in parts, " + port->description.view +
                   "; give it a view that is whole"};
    if (!layout::axesOf(*view).empty())
      return Error{flag + "is split, " + port->description.view +
                   "; give it a view that is whole"};
    return port - session.ports.begin();
  }
  Result<double> readScalar(const Port &port) {
    Result<HostBuffer> host = session.fetch(port);
    if (!host)
      return host.error();
    return valueOf(host->get(), port.tensor.dtype, 0);
  }
  /// What is wrong with it is known before anything runs.
  Status openReference() {
    if (options.verify.empty())
      return Ok{};
    Result<std::unique_ptr<Reference>> opened =
        run::openReference(session, options, team, meetings[1]);
    if (!opened)
      return opened.error();
    reference = std::move(*opened);
    return Ok{};
  }
  /// What is chosen is asked for with the memory, and again by the binding.
  Status allowVariants() {
    for (const auto &[kind, names] : options.variants)
      if (Status status =
              take(tessera_variants_push(kind.c_str(), names.c_str()));
          !status)
        return Error{"--" + kind + ": " + status.message()};
    if (options.variants.empty() || team.rank() != 0)
      return Ok{};
    // For the library they are a scope, which may be around any module.
    Result<ModuleReader> module = ModuleReader::open(options.module);
    if (!module)
      return module.error();
    for (const auto &[kind, names] : options.variants)
      if (std::ranges::count(module->plan().alternatives, kind,
                             &fb::AlternativeT::kind) == 0)
        return Error{"--" + kind + "=" + names + ": '" + options.module +
                     "' leaves no variant of " + kind + " to choose; " +
                     (kind == "matmul"
                          ? "compile it for cuda with --matmul=own,cublaslt"
                          : "it has no " + kind)};
    return Ok{};
  }
  Status readInputs() {
    TSR_TRY(session.openInputs());
    TSR_TRY(checkNames());
    TSR_TRY(session.readInputs());
    // The output may take the place of a file that it is read from.
    return reference ? reference->cpu.openInputs() : Ok{};
  }
  /// Those in the output, which the map may give.
  Status checkNames() {
    if (options.output.empty() && options.save.empty())
      return Ok{};
    std::map<std::string, std::string> written{{"__metadata__", ""}};
    for (const Port &port : session.ports) {
      if (!port.isWritten())
        continue;
      const std::string name = session.names.lookup(port.name()).name;
      auto [other, isNew] = written.insert({name, port.name()});
      if (!isNew)
        return Error{options.names + ": '" + port.name() + "' cannot be '" +
                     name + "' in the output" +
                     (other->second.empty()
                          ? ": safetensors files have no such tensor"
                          : ", '" + other->second + "' is")};
    }
    return Ok{};
  }
  /// Then the libraries that it takes are open, and have a version.
  Status execute() {
    TSR_TRY(session.execute([&](int64_t run) -> Status {
      TSR_TRY(showLogged(run));
      const bool saves = run == options.steps ||
                         (options.saveEvery && run % options.saveEvery == 0);
      return saves ? write(options.save, saveTemporary, &Port::isState)
                   : Status(Ok{});
    }));
    for (size_t i = 0; i < options.variants.size(); ++i)
      TSR_TRY(take(tessera_variants_pop()));
    return session.describe();
  }

  Status verify() {
    if (!reference)
      return Ok{};
    Result<Comparison> found =
        compareWithCPU(session, *reference, options, team);
    if (!found)
      return found.error();
    comparison = std::move(*found);
    reference.reset();
    return Ok{};
  }

  /// A line for people; those who read JSON get all at once.
  Status showLogged(int64_t run) {
    std::string line = std::to_string(run);
    for (size_t i = 0; i < logged.size(); ++i) {
      const Port &port = session.ports[logged[i]];
      Result<double> value = readScalar(port);
      if (!value)
        return value.error();
      log[i].second.push_back(*value);
      line += (i ? ", " : ": ") + log[i].first + " " + numberText(port, *value);
    }
    if (logged.empty() || team.rank() != 0 ||
        options.report == Options::Format::JSON)
      return Ok{};
    return print((line + "\n").c_str());
  }

  static std::string numberText(const Port &port, double value) {
    char number[32];
    snprintf(number, sizeof number, "%.*g",
             port.tensor.dtype == DType::F32 ? 9 : 17, value);
    return number;
  }
  Status writeOutput() {
    return write(options.output, outputTemporary, &Port::isWritten);
  }
  /// All ranks: a file `path` with some of the ports; none where it is empty.
  Status write(const std::string &path, const std::string &temporary,
               bool (Port::*isPart)() const) {
    if (path.empty())
      return Ok{};
    std::vector<GlobalTensor> tensors;
    std::vector<HostBuffer> data;
    for (const Port &port : session.ports) {
      if (!(port.*isPart)())
        continue;
      tensors.push_back(port.tensor);
      tensors.back().name = session.names.lookup(port.name()).name;
      Result<HostBuffer> host = session.fetch(port);
      if (!host)
        return host.error();
      data.push_back(std::move(*host));
    }

    std::optional<OutputFile> file;
    if (team.rank() == 0) {
      Result<OutputFile> created = OutputFile::create(path, temporary, tensors);
      if (!created)
        return created.error();
      file.emplace(std::move(*created));
    }
    TSR_TRY(team.barrier());
    if (team.rank() != 0) {
      Result<OutputFile> opened = OutputFile::open(path, temporary, tensors);
      if (!opened)
        return opened.error();
      file.emplace(std::move(*opened));
    }
    for (size_t i = 0; i < tensors.size(); ++i)
      TSR_TRY(file->write(i, tensors[i].mesh.coordsOfRank(team.rank()),
                          data[i].get()));
    TSR_TRY(file->flush());
    // All have written; then all know that the file has its name.
    TSR_TRY(team.barrier());
    if (team.rank() == 0)
      TSR_TRY(file->rename());
    return team.barrier();
  }

  Status trace() {
    if (options.trace.empty())
      return Ok{};
    return writeTrace(options.trace, traceTemporary, session, team);
  }

  Status report() {
    Report report;
    report.module = options.module;
    report.mesh = tessera_module_mesh(session.module.get());
    report.ranks = team.size();
    report.target = session.target;
    report.hash = tessera_module_hash(session.module.get());
    report.device = session.rankDevice;
    // On the CPU that costs nothing.
    report.timed =
        !report.device.isGPU() || !options.trace.empty() || options.verbose;
    report.graph = report.device.isGPU() && options.steps > 1 &&
                   !options.noGraph && !options.verbose &&
                   options.trace.empty();
    for (size_t i = 0; i < session.symbols.size(); ++i)
      report.sizes.emplace_back(session.symbols[i].name, session.sizes[i]);
    tessera_binding *binding = session.binding.get();
    Result<std::vector<std::string>> losers =
        priceLosers(options.module, report.hash, session.sizes);
    if (!losers)
      return losers.error();
    for (size_t i = 0; i < tessera_binding_collective_count(binding); ++i) {
      tessera_collective each = {};
      each.size = sizeof each;
      TSR_TRY(take(tessera_binding_collective(binding, i, &each)));
      report.collectives.push_back(
          {each.kind,
           each.axes,
           each.op,
           each.location,
           losers->at(i),
           each.tensors,
           {each.bytes_sent, each.bytes_received, each.copies,
            each.copied_bytes, each.seconds},
           {}});
    }
    for (size_t i = 0; i < tessera_binding_communicator_count(binding); ++i) {
      tessera_communicator each = {};
      each.size = sizeof each;
      TSR_TRY(take(tessera_binding_communicator(binding, i, &each)));
      report.communicators.push_back(
          {each.library,
           each.ranks,
           each.axes,
           each.groups,
           each.split != 0,
           {each.collectives, each.calls, each.bytes_sent, each.bytes_received,
            each.memory, each.seconds}});
    }
    for (size_t i = 0; i < tessera_binding_alternative_count(binding); ++i) {
      tessera_alternative each = {};
      each.size = sizeof each;
      TSR_TRY(take(tessera_binding_alternative(binding, i, &each)));
      report.choices.push_back(
          {each.kind, each.op, each.location, each.chosen, {}});
      std::stringstream names(each.variants);
      for (std::string name; std::getline(names >> std::ws, name, ',');)
        report.choices.back().variants.push_back(name);
    }
    report.logged = log;
    report.seconds = session.seconds;
    // The first run goes step by step, and makes the graph of the others.
    report.hostSeconds.assign(session.hostSeconds.begin() + report.graph,
                              session.hostSeconds.end());
    tessera_memory memory = {};
    memory.size = sizeof memory;
    TSR_TRY(take(tessera_binding_memory(binding, &memory)));
    report.memory = {memory.external, memory.local, memory.symmetric,
                     memory.constants};
    report.withProducts = !options.algorithms.empty();
    tessera_products products = {};
    products.size = sizeof products;
    TSR_TRY(take(tessera_binding_products(binding, &products)));
    report.products = {products.stored, products.measured, products.heuristic,
                       products.hash};
    report.output = options.output;
    report.save = options.save;
    report.trace = options.trace;
    report.comparison = comparison;
    TSR_TRY(report.merge(team));
    if (team.rank() == 0) {
      using Format = Options::Format;
      std::string text = options.report == Format::JSON ? report.json()
                         : options.report == Format::Collectives
                             ? report.collectivesText()
                         : options.report == Format::Ranks ? report.ranksText()
                                                           : report.text();
      TSR_TRY(print(text.c_str()));
    }
    return comparison.check();
  }

  const Options &options;
  Team &team;
  tessera_threads *const *meetings;
  /// Empty without those files.
  std::string outputTemporary, saveTemporary, traceTemporary;
  Session session;
  std::vector<size_t> logged; ///< numbers of ports
  std::vector<std::pair<std::string, std::vector<double>>> log;
  std::unique_ptr<Reference> reference; ///< with --verify, until it has run
  Comparison comparison;
};

} // namespace

static void runRank(const Options &options, Team &team,
                    tessera_threads *const *meetings) {
  try {
    Rank rank(options, team, meetings);
    if (Status status = rank.run(); !status)
      fail(team.rank(), status.message(), culprit());
  } catch (const std::bad_alloc &) {
    fail(team.rank(), "not enough memory");
  }
}

static void runThreads(const Options &options) {
  const int ranks = static_cast<int>(options.ranks);
  std::vector<std::unique_ptr<Team>> teams =
      makeThreadsTeams(ranks, options.deadline);
  tessera_threads *meetings[2] = {};
  for (tessera_threads *&meeting : meetings)
    if (Status status = take(tessera_threads_create(ranks, &meeting)); !status)
      fail(0, status.message());
  std::vector<std::thread> others;
  for (int rank = 1; rank < ranks; ++rank)
    try {
      others.emplace_back(
          [&, rank] { runRank(options, *teams[rank], meetings); });
    } catch (const std::system_error &error) {
      fail(0, "cannot start the thread of rank " + std::to_string(rank) + ": " +
                  error.code().message());
    }
  runRank(options, *teams[0], meetings);
  for (std::thread &thread : others)
    thread.join();
  for (tessera_threads *meeting : meetings)
    tessera_threads_destroy(meeting);
}

//===----------------------------------------------------------------------===//
// main
//===----------------------------------------------------------------------===//

static void runTool(int argc, char **argv) {
  const std::optional<int> launched = launchedRank();
  const int rank = launched.value_or(0);
  if (Status status = startWarden(); !status)
    fail(rank, status.message());
  Result<Options> parsed = parseOptions(argc, argv, launched.has_value());
  if (!parsed)
    fail(rank, parsed.message());
  const Options &options = *parsed;
  if (options.about) {
    if (Status status = print(options.about); !status)
      fail(rank, status.message());
    return;
  }
  tessera_threads *const alone[2] = {};
  if (options.transport == "mpi") {
    Result<std::unique_ptr<Team>> team = joinMPITeam(options.deadline);
    if (!team)
      fail(rank, team.message());
    runRank(options, **team, alone);
    // The plug-in ends MPI when the process exits.
    static Phase leaving("MPI_Finalize", options.deadline);
    leaving.keep();
  } else if (options.transport == "threads") {
    runThreads(options);
  } else {
    runRank(options, *makeThreadsTeams(1, options.deadline)[0], alone);
  }
}

/// Kept for the way out when there is no memory left: what is destroyed on it
/// may want some, and so does the error.
static std::atomic<void *> reserve = nullptr;

int main(int argc, char **argv) {
  holdStandardStreams();
  reserve = std::malloc(1 << 20);
  std::set_new_handler([] {
    std::free(reserve.exchange(nullptr));
    throw std::bad_alloc();
  });
  // NVLink multicast is never used; NCCL reads this when it starts.
  setenv("NCCL_NVLS_ENABLE", "0", 1);
  try {
    runTool(argc, argv);
  } catch (const std::bad_alloc &) {
    fail(launchedRank().value_or(0), "not enough memory");
  }
  return 0;
}
