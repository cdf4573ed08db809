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
// Only this program ends processes. A rank that has an error says it in one
// line and ends all others; rank 0 at once and the others a little later, so
// that the error that all have is said once, and the one that rank 0 cannot say
// any more is said by another.
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "Report.h"
#include "Runtime/Tensors/Transfer.h"
#include "Team.h"
#include "tessera/tessera.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <unistd.h>

using namespace tessera;
using namespace tessera::run;

//===----------------------------------------------------------------------===//
// Failing
//===----------------------------------------------------------------------===//

/// `delay`: of rank 1, in seconds.
[[noreturn]] static void fail(int rank, std::string message, double delay = 1) {
  if (rank > 0)
    usleep(static_cast<useconds_t>(1e6 *
                                   (delay + std::min(0.25 * (rank - 1), 2.0))));
  static std::mutex once;
  once.lock(); // for ever: of the ranks in a process, only one says it
  std::replace(message.begin(), message.end(), '\n', ' ');
  fprintf(stderr, "tessera: %s\n", message.c_str());
  fflush(nullptr);
  abortMPI(1);
  _exit(1);
}

/// A status of the library as one sentence; frees it.
static Status take(tessera_status *status) {
  if (!status)
    return Ok{};
  std::string message = tessera_status_message(status);
  std::string op = tessera_status_op(status);
  std::string location = tessera_status_location(status);
  tessera_status_free(status);
  if (!op.empty())
    message = "'" + op + "': " + message;
  if (!location.empty())
    message = location + ": " + message;
  return Error{message};
}

//===----------------------------------------------------------------------===//
// A rank
//===----------------------------------------------------------------------===//

namespace {

template <auto destroy> struct Destroy {
  template <typename T> void operator()(T *object) const { destroy(object); }
};
using Context =
    std::unique_ptr<tessera_context, Destroy<tessera_context_destroy>>;
using Module = std::unique_ptr<tessera_module, Destroy<tessera_module_destroy>>;
using Binding =
    std::unique_ptr<tessera_binding, Destroy<tessera_binding_destroy>>;
using Buffer = std::unique_ptr<void, Destroy<std::free>>;

/// A port with its tensor for the sizes of this run.
struct Port {
  tessera_port description;
  GlobalTensor tensor;
  Buffer buffer;
};

class Rank {
public:
  Rank(const Options &options, Team &team, tessera_threads *threads)
      : options(options), team(team), threads(threads) {}

  Status run() {
    for (auto step :
         {&Rank::checkOutput, &Rank::load, &Rank::openInputs, &Rank::fixSizes,
          &Rank::makePorts, &Rank::execute, &Rank::writeOutput, &Rank::report})
      if (Status status = (this->*step)(); !status)
        return status;
    return Ok{};
  }

private:
  Status checkOutput() {
    if (team.rank() != 0 || options.output.empty())
      return Ok{};
    return OutputFile::checkWritable(options.output);
  }

  Status load() {
    tessera_context_options settings = {};
    settings.size = sizeof settings;
    settings.rank = team.rank();
    settings.world = team.size();
    settings.transport =
        options.transport.empty() ? nullptr : options.transport.c_str();
    settings.handle = threads;
    settings.memory_limit = static_cast<uint64_t>(options.memoryLimit);
    settings.deadline = options.deadline;
    settings.control = 1;
    tessera_context *newContext = nullptr;
    if (Status status = take(tessera_context_create(&settings, &newContext));
        !status)
      return status;
    context.reset(newContext);
    tessera_module *newModule = nullptr;
    if (Status status = take(tessera_module_load_file(
            context.get(), options.module.c_str(), &newModule));
        !status)
      return status;
    module.reset(newModule);
    Result<layout::Mesh> parsed =
        layout::parseMesh(tessera_module_mesh(module.get()));
    if (!parsed)
      return parsed.error();
    mesh = std::move(*parsed);

    for (size_t i = 0; i < tessera_module_port_count(module.get()); ++i) {
      Port port = {};
      port.description.size = sizeof port.description;
      if (Status status =
              take(tessera_module_port(module.get(), i, &port.description));
          !status)
        return status;
      ports.push_back(std::move(port));
    }
    for (size_t i = 0; i < tessera_module_symbol_count(module.get()); ++i) {
      tessera_symbol symbol = {};
      symbol.size = sizeof symbol;
      if (Status status = take(tessera_module_symbol(module.get(), i, &symbol));
          !status)
        return status;
      symbols.push_back(symbol);
    }
    return Ok{};
  }

  static bool isRead(const Port &port) {
    return port.description.kind != TESSERA_OUTPUT;
  }
  static bool isWritten(const Port &port) {
    return port.description.kind != TESSERA_INPUT;
  }

  Status openInputs() {
    if (!options.names.empty()) {
      Result<NameMap> map = NameMap::read(options.names);
      if (!map)
        return map.error();
      names = std::move(*map);
      std::vector<std::string> portNames;
      for (const Port &port : ports)
        portNames.push_back(port.description.name);
      if (Status status = names.check(portNames); !status)
        return status;
    }
    Result<TensorFiles> opened = TensorFiles::open(options.inputs);
    if (!opened)
      return opened.error();
    files = std::move(*opened);
    for (const Port &port : ports) {
      const StoredTensor *tensor = nullptr;
      if (isRead(port)) {
        Result<const StoredTensor *> found =
            files.find(names.lookup(port.description.name).name);
        if (!found)
          return Error{std::string("input '") + port.description.name +
                       "': " + found.message()};
        tensor = *found;
      }
      stored.push_back(tensor);
    }
    return Ok{};
  }

  /// The extent of a port's dimension as text, like "b" or "4 * heads".
  static std::vector<std::string> extentTexts(const Port &port) {
    std::string text = port.description.shape_text;
    std::vector<std::string> extents;
    for (size_t at = 1; at < text.size();) {
      size_t end = std::min(text.find(", ", at), text.size() - 1);
      extents.push_back(text.substr(at, end - at));
      at = end + 2;
    }
    return extents;
  }

  /// Each size is given, or is an extent of a tensor that is read.
  Status fixSizes() {
    std::vector<std::string> known;
    for (const tessera_symbol &symbol : symbols)
      known.push_back(symbol.name);
    for (const auto &[name, value] : options.sizes) {
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        std::string all;
        for (const std::string &each : known)
          all += (all.empty() ? ": it has " : ", ") + each;
        return Error{"--size " + name + ": the program has no such size" +
                     (all.empty() ? ": all its sizes are fixed" : all)};
      }
    }
    for (const std::string &name : known) {
      std::optional<int64_t> value;
      for (const auto &[given, size] : options.sizes)
        if (given == name)
          value = size;
      for (size_t i = 0; i < ports.size() && !value; ++i) {
        if (!stored[i])
          continue;
        std::vector<std::string> extents = extentTexts(ports[i]);
        for (size_t dim = 0; dim < extents.size(); ++dim)
          if (extents[dim] == name && dim < stored[i]->shape.size())
            value = stored[i]->shape[dim];
      }
      if (!value)
        return Error{"size '" + name +
                     "' is not known from an input: give it "
                     "as --size " +
                     name + "=N"};
      sizes.push_back(*value);
    }
    return Ok{};
  }

  /// Gives each port memory, and reads what is read.
  Status makePorts() {
    for (size_t i = 0; i < ports.size(); ++i) {
      Port &port = ports[i];
      tessera_layout local = {};
      local.size = sizeof local;
      if (Status status = take(tessera_module_layout(
              module.get(), i, sizes.data(), sizes.size(), &local));
          !status)
        return status;
      layout::Shape shape(local.global_shape,
                          local.global_shape + local.global_rank);
      Result<layout::View> view =
          layout::parseView(port.description.view, mesh);
      if (!view)
        return view.error();
      port.tensor = {port.description.name,
                     static_cast<DType>(port.description.dtype), shape,
                     layout::canonicalize(*view, shape, mesh), mesh};
      if (local.bytes > 0) {
        // Rounded up, as aligned_alloc wants it.
        size_t bytes = (local.bytes + 63) / 64 * 64;
        port.buffer.reset(std::aligned_alloc(64, bytes));
        if (!port.buffer)
          return Error{std::string("not enough memory for '") +
                       port.description.name + "': " + std::to_string(bytes) +
                       " bytes"};
      }
      if (stored[i])
        if (Status status =
                readLocal(*stored[i], port.tensor,
                          names.lookup(port.description.name).cast,
                          mesh.coordsOfRank(team.rank()), port.buffer.get());
            !status)
          return status;
    }
    return Ok{};
  }

  Status execute() {
    std::vector<void *> pointers;
    for (const Port &port : ports)
      pointers.push_back(port.buffer.get());
    tessera_binding *newBinding = nullptr;
    if (Status status = take(tessera_binding_create(
            module.get(), sizes.data(), sizes.size(), pointers.data(),
            pointers.size(), &newBinding));
        !status)
      return status;
    binding.reset(newBinding);
    for (int64_t i = 0; i < options.repeat; ++i) {
      auto begin = std::chrono::steady_clock::now();
      if (Status status = take(tessera_binding_run(binding.get())); !status)
        return status;
      seconds.push_back(std::chrono::duration<double>(
                            std::chrono::steady_clock::now() - begin)
                            .count());
    }
    return Ok{};
  }

  Status writeOutput() {
    if (options.output.empty())
      return Ok{};
    std::vector<GlobalTensor> tensors;
    std::vector<const void *> data;
    for (const Port &port : ports) {
      if (!isWritten(port))
        continue;
      tensors.push_back(port.tensor);
      tensors.back().name = names.lookup(port.description.name).name;
      data.push_back(port.buffer.get());
    }

    struct Path {
      char text[4096];
    };
    std::optional<OutputFile> file;
    Path temporary = {};
    if (team.rank() == 0) {
      Result<OutputFile> created = OutputFile::create(options.output, tensors);
      if (!created)
        return created.error();
      file.emplace(std::move(*created));
      strncpy(temporary.text, file->temporaryPath().c_str(),
              sizeof temporary.text - 1);
    }
    Result<std::vector<Path>> paths = team.allGather(temporary);
    if (!paths)
      return paths.error();
    if (team.rank() != 0) {
      Result<OutputFile> opened =
          OutputFile::open(options.output, (*paths)[0].text, tensors);
      if (!opened)
        return opened.error();
      file.emplace(std::move(*opened));
    }
    layout::Coords coords = mesh.coordsOfRank(team.rank());
    for (size_t i = 0; i < tensors.size(); ++i)
      if (Status status = file->write(i, coords, data[i]); !status)
        return status;
    if (Status status = file->flush(); !status)
      return status;
    // All have written; then all know that the file has its name.
    if (Status status = team.barrier(); !status)
      return status;
    if (team.rank() == 0)
      if (Status status = file->rename(); !status)
        return status;
    return team.barrier();
  }

  Status report() {
    Report report;
    report.module = options.module;
    report.mesh = tessera_module_mesh(module.get());
    report.ranks = team.size();
    for (size_t i = 0; i < symbols.size(); ++i)
      report.sizes.emplace_back(symbols[i].name, sizes[i]);
    for (size_t i = 0; i < tessera_binding_collective_count(binding.get());
         ++i) {
      tessera_collective each = {};
      each.size = sizeof each;
      if (Status status =
              take(tessera_binding_collective(binding.get(), i, &each));
          !status)
        return status;
      report.collectives.push_back(
          {each.kind,
           each.axes,
           each.op,
           each.location,
           each.loser,
           {each.bytes_sent, each.bytes_received, each.copies,
            each.copied_bytes, each.seconds}});
    }
    report.seconds = seconds;
    tessera_memory memory = {};
    memory.size = sizeof memory;
    if (Status status = take(tessera_binding_memory(binding.get(), &memory));
        !status)
      return status;
    report.memory = {memory.external, memory.local, memory.symmetric,
                     memory.constants};
    report.output = options.output;
    if (Status status = report.merge(team); !status)
      return status;
    if (team.rank() == 0) {
      using Format = Options::Format;
      std::string text = options.report == Format::JSON ? report.json()
                         : options.report == Format::Collectives
                             ? report.collectivesText()
                             : report.text();
      fputs(text.c_str(), stdout);
      fflush(stdout);
    }
    return Ok{};
  }

  const Options &options;
  Team &team;
  tessera_threads *threads;

  Context context;
  Module module;
  layout::Mesh mesh;
  std::vector<tessera_symbol> symbols;
  std::vector<int64_t> sizes; ///< parallel to `symbols`
  std::vector<Port> ports;
  TensorFiles files;
  NameMap names;
  std::vector<const StoredTensor *> stored; ///< parallel to `ports`; null: none
  Binding binding;                          ///< goes before what it points to
  std::vector<double> seconds;
};

} // namespace

static void runRank(const Options &options, Team &team,
                    tessera_threads *threads) {
  Rank rank(options, team, threads);
  if (Status status = rank.run(); !status)
    fail(team.rank(), status.message());
}

//===----------------------------------------------------------------------===//
// main
//===----------------------------------------------------------------------===//

/// This process' rank, if an MPI launcher started it.
static std::optional<int> launchedRank() {
  for (const char *name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    if (const char *value = getenv(name))
      return atoi(value);
  return std::nullopt;
}

int main(int argc, char **argv) {
  // NVLink multicast is never used; NCCL reads this when it starts.
  setenv("NCCL_NVLS_ENABLE", "0", 1);
  std::optional<int> launched = launchedRank();
  const int early = launched.value_or(0);
  // Without MPI_Abort, mpirun takes its time to end the others.
  const double earlyDelay = 10;
  Result<Options> parsed = parseOptions(argc, argv, launched.has_value());
  if (!parsed)
    fail(early, parsed.message(), earlyDelay);
  const Options &options = *parsed;
  if (options.help) {
    fputs(kUsage, stdout);
    return 0;
  }

  if (options.transport == "mpi") {
    Result<std::unique_ptr<Team>> team = joinMPITeam(options.deadline);
    if (!team)
      fail(early, team.message(), earlyDelay);
    runRank(options, **team, nullptr);
    return 0;
  }

  const int ranks = static_cast<int>(options.ranks);
  std::vector<std::unique_ptr<Team>> teams =
      makeThreadsTeams(ranks, options.deadline);
  if (options.transport.empty()) {
    runRank(options, *teams[0], nullptr);
    return 0;
  }
  tessera_threads *meeting = nullptr;
  if (Status status = take(tessera_threads_create(ranks, &meeting)); !status)
    fail(0, status.message());
  std::vector<std::thread> others;
  for (int rank = 1; rank < ranks; ++rank)
    others.emplace_back([&, rank] { runRank(options, *teams[rank], meeting); });
  runRank(options, *teams[0], meeting);
  for (std::thread &thread : others)
    thread.join();
  tessera_threads_destroy(meeting);
  return 0;
}
