//===- Session.cpp - a module with its tensors on one rank ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Session.h"
#include "Layout/Transfers.h"
#include "Support/Clock.h"
#include "Support/Try.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>

using namespace tessera;
using namespace tessera::run;

static thread_local int lastCulprit = -1;
int run::culprit() { return lastCulprit; }

/// A status of the library as one sentence; frees it.
Status run::take(tessera_status *status) {
  if (!status)
    return Ok{};
  std::string message = tessera_status_message(status);
  std::string op = tessera_status_op(status);
  std::string location = tessera_status_location(status);
  lastCulprit = tessera_status_rank(status);
  tessera_status_free(status);
  if (!op.empty())
    message = "'" + op + "': " + message;
  if (!location.empty())
    message = location + ": " + message;
  return Error{message};
}

Result<HostBuffer> run::allocateHost(const std::string &name, size_t bytes) {
  if (bytes == 0)
    return HostBuffer();
  // Rounded up, as aligned_alloc wants it; 0 would be beyond all there is.
  const size_t rounded = (bytes + 63) / 64 * 64;
  HostBuffer buffer(rounded ? std::aligned_alloc(64, rounded) : nullptr);
  if (!buffer)
    return Error{"not enough memory for '" + name +
                 "': " + std::to_string(bytes) + " bytes"};
  return buffer;
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

/// What is no warning is for --verbose; else what is measured is counted.
void Session::log(void *user, tessera_log_level level, const char *message) {
  auto &session = *static_cast<Session *>(user);
  if (level == TESSERA_LOG_WARNING || session.options.verbose)
    fprintf(stderr, "tessera-run: rank %d: %s\n", session.team.rank(), message);
  else if (session.measuring && strncmp(message, "measuring ", 10) == 0)
    session.measuring->show(session.measured++, 0);
}

tessera_context_options Session::contextOptions(const std::string &backend,
                                                tessera_threads *threads) {
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
  settings.backend = backend.c_str();
  if (backend != kHostBackend) {
    if (options.device)
      settings.device = &*options.device;
    if (options.noGraph)
      settings.flags |= TESSERA_NO_GRAPH;
    if (options.symmetric)
      settings.flags |= TESSERA_SYMMETRIC;
    if (options.copyEngines)
      settings.flags |= TESSERA_COPY_ENGINES;
    if (!options.algorithms.empty())
      settings.algorithms = options.algorithms.c_str();
    if (options.autotune)
      settings.flags |= TESSERA_AUTOTUNE;
  }
  if (!options.trace.empty())
    settings.flags |= TESSERA_TIME_STEPS;
  if (options.verbose)
    settings.flags |= TESSERA_CHECK_STEPS;
  if (options.verbose || settings.algorithms) {
    settings.log_user = this;
    settings.log = log;
  }
  return settings;
}

Status Session::describe() {
  tessera_device description = {};
  description.size = sizeof description;
  TSR_TRY(take(tessera_context_device(context.get(), &description)));
  target = description.target;
  device = description.description;
  freeBytes = description.free_bytes;
  rankDevice = {};
  rankDevice.ordinal = description.ordinal;
  for (auto [to, from] :
       {std::pair(std::span<char>(rankDevice.model), description.model),
        std::pair(std::span<char>(rankDevice.driver), description.driver),
        std::pair(std::span<char>(rankDevice.libraries),
                  description.libraries)})
    strncpy(to.data(), from, to.size() - 1);
  return Ok{};
}

Status Session::load(const std::string &path, std::string backend,
                     tessera_threads *threads) {
  this->path = path;
  if (backend.empty()) {
    // A file that cannot be read is an error of all ranks below.
    tessera_module_info info = {};
    info.size = sizeof info;
    if (take(tessera_module_inspect(path.c_str(), &info)))
      backend = std::string(info.target, strcspn(info.target, ":"));
    else
      backend = kHostBackend;
  }
  tessera_context_options settings = contextOptions(backend, threads);
  tessera_context *newContext = nullptr;
  TSR_TRY(take(tessera_context_create(&settings, &newContext)));
  context.reset(newContext);
  tessera_module *newModule = nullptr;
  TSR_TRY(
      take(tessera_module_load_file(context.get(), path.c_str(), &newModule)));
  module.reset(newModule);
  TSR_TRY(describe());
  Result<layout::Mesh> parsed =
      layout::parseMesh(tessera_module_mesh(module.get()));
  if (!parsed)
    return parsed.error();
  mesh = std::move(*parsed);

  for (size_t i = 0; i < tessera_module_port_count(module.get()); ++i) {
    Port port = {};
    port.description.size = sizeof port.description;
    TSR_TRY(take(tessera_module_port(module.get(), i, &port.description)));
    ports.push_back(std::move(port));
  }
  for (size_t i = 0; i < tessera_module_symbol_count(module.get()); ++i) {
    tessera_symbol symbol = {};
    symbol.size = sizeof symbol;
    TSR_TRY(take(tessera_module_symbol(module.get(), i, &symbol)));
    symbols.push_back(symbol);
  }
  return Ok{};
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

Status Session::readInputs() {
  for (auto step : {&Session::fixSizes, &Session::checkMemory,
                    &Session::makePorts, &Session::fillPorts})
    TSR_TRY((this->*step)());
  return Ok{};
}

Status Session::openInputs() {
  if (!options.names.empty()) {
    Result<NameMap> map = NameMap::read(options.names);
    if (!map)
      return map.error();
    names = std::move(*map);
    std::vector<std::string> portNames;
    for (const Port &port : ports)
      portNames.push_back(port.name());
    TSR_TRY(names.check(portNames));
  }
  Result<TensorFiles> opened = TensorFiles::open(options.inputs);
  if (!opened)
    return opened.error();
  files = std::move(*opened);
  for (Port &port : ports) {
    if (!port.isRead()) {
      if (names.lookup(port.name()).cast)
        return Error{options.names + ": '" + port.name() +
                     "': only what is read can have a \"cast\""};
      continue;
    }
    const std::string name = names.lookup(port.name()).name;
    Result<const StoredTensor *> found = files.find(name);
    if (found)
      port.stored = *found;
    else if (!port.description.zero_init || name != port.name())
      return Error{(port.isState() ? "state '" : "input '") + port.name() +
                   "': " + found.message()};
  }
  // A file that has some of what it may lack altogether is damaged, or of
  // another program.
  auto given = std::ranges::find_if(ports, [](const Port &port) {
    return port.description.zero_init && port.stored;
  });
  auto lacking = std::ranges::find_if(ports, &Port::startsAsZeros);
  if (given != ports.end() && lacking != ports.end())
    return Error{"state '" + lacking->name() + "': " +
                 files.find(names.lookup(lacking->name()).name).message() +
                 "; states that start as zeros are given all, as '" +
                 given->name() + "' is, or none"};
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
Status Session::fixSizes() {
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
    for (const Port &port : ports) {
      if (!port.stored || value)
        continue;
      std::vector<std::string> extents = extentTexts(port);
      for (size_t dim = 0; dim < extents.size(); ++dim)
        if (extents[dim] == name && dim < port.stored->shape.size())
          value = port.stored->shape[dim];
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

/// Before anything is allocated: all that this rank will need at once.
Status Session::checkMemory() {
  tessera_memory needs = {};
  needs.size = sizeof needs;
  TSR_TRY(take(
      tessera_module_memory(module.get(), sizes.data(), sizes.size(), &needs)));
  TSR_TRY(describe());
  const uint64_t total =
      needs.external + needs.local + needs.symmetric + needs.constants;
  if (freeBytes && total > freeBytes)
    return Error{"not enough memory on " + device + ": the program needs " +
                 std::to_string(total) + " bytes (external " +
                 std::to_string(needs.external) + ", local " +
                 std::to_string(needs.local) + ", symmetric " +
                 std::to_string(needs.symmetric) + ", constants " +
                 std::to_string(needs.constants) + "), " +
                 std::to_string(freeBytes) + " are free"};
  return Ok{};
}

/// Gives each port memory.
Status Session::makePorts() {
  for (size_t i = 0; i < ports.size(); ++i) {
    Port &port = ports[i];
    tessera_layout local = {};
    local.size = sizeof local;
    TSR_TRY(take(tessera_module_layout(module.get(), i, sizes.data(),
                                       sizes.size(), &local)));
    layout::Shape shape(local.global_shape,
                        local.global_shape + local.global_rank);
    Result<layout::Mesh> own = layout::parseMesh(port.description.mesh);
    if (!own)
      return own.error();
    Result<layout::View> view = layout::parseView(port.description.view, *own);
    if (!view)
      return view.error();
    port.tensor = {port.name(), static_cast<DType>(port.description.dtype),
                   shape, layout::instantiate(*view, shape), std::move(*own)};
    port.bytes = local.bytes;
    if (port.bytes > 0) {
      void *pointer = nullptr;
      if (Status status = take(
              tessera_device_allocate(context.get(), port.bytes, &pointer));
          !status)
        return Error{"'" + port.name() + "': " + status.message()};
      port.buffer = DeviceBuffer(pointer, {context.get(), port.bytes});
    }
  }
  return Ok{};
}

Status Session::fillPorts() {
  uint64_t bytes = 0, all = 0;
  for (const Port &port : ports)
    all += port.stored ? port.bytes : 0;
  Progress progress("reading inputs", "bytes", showsProgress());
  for (Port &port : ports) {
    if (!port.stored && !port.startsAsZeros())
      continue;
    progress.show(bytes, all);
    bytes += port.stored ? port.bytes : 0;
    // Where the host sees the memory, it reads right there.
    HostBuffer staging;
    void *to = port.buffer.get();
    if (rankDevice.isGPU()) {
      Result<HostBuffer> host = allocateHost(port.name(), port.bytes);
      if (!host)
        return host.error();
      staging = std::move(*host);
      to = staging.get();
    }
    if (port.stored)
      TSR_TRY(readLocal(*port.stored, port.tensor,
                        names.lookup(port.name()).cast,
                        port.tensor.mesh.coordsOfRank(team.rank()), to));
    else if (port.bytes)
      memset(to, 0, port.bytes);
    if (staging)
      if (Status status = take(tessera_device_copy(
              context.get(), port.buffer.get(), staging.get(), port.bytes));
          !status)
        return Error{"'" + port.name() + "': " + status.message()};
  }
  return Ok{};
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

Status Session::execute(const std::function<Status(int64_t)> &after) {
  std::vector<void *> pointers;
  for (const Port &port : ports)
    pointers.push_back(port.buffer.get());
  tessera_binding *newBinding = nullptr;
  measuring.emplace("measuring algorithms", "matrix products", showsProgress());
  TSR_TRY(take(tessera_binding_create(module.get(), sizes.data(), sizes.size(),
                                      pointers.data(), pointers.size(),
                                      &newBinding)));
  measuring.reset();
  binding.reset(newBinding);
  // What is logged goes to a terminal, too.
  Progress progress("running", "runs",
                    showsProgress() && options.logged.empty());
  for (int64_t i = 0; i < options.steps; ++i) {
    progress.show(i, options.steps);
    const double begin = now();
    tessera_status *status = tessera_binding_run(binding.get());
    const bool isOfData = status && tessera_status_code(status) == TESSERA_DATA;
    if (Status ran = take(status); !ran)
      return isOfData
                 ? Error{"run " + std::to_string(i + 1) + ": " + ran.message()}
                 : ran;
    seconds.push_back(now() - begin);
    hostSeconds.push_back(tessera_binding_host_seconds(binding.get()));
    if (after)
      TSR_TRY(after(i + 1));
  }
  return Ok{};
}

Result<HostBuffer> Session::fetch(const Port &port) const {
  Result<HostBuffer> host = allocateHost(port.name(), port.bytes);
  if (host && port.bytes)
    if (Status status = take(tessera_device_copy(
            context.get(), host->get(), port.buffer.get(), port.bytes));
        !status)
      return Error{"'" + port.name() + "': " + status.message()};
  return host;
}
