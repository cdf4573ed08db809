//===- Context.cpp - one rank ---------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A context joins its transport, keeps the arenas, and turns whatever ends a
// wait into one failure that says who is at fault.
//
//===----------------------------------------------------------------------===//

#include "Runtime/Context.h"
#include "Runtime/Control/Control.h"
#include "Support/Clock.h"
#include "Support/Try.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <vector>

using namespace tessera;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Outcome<Context::Memories> Context::allocate(const tessera_memory &needs) {
  auto missing = [](const std::shared_ptr<Block> &arena, uint64_t bytes) {
    return arena && arena->size() >= bytes ? 0 : std::max<uint64_t>(bytes, 64);
  };
  // The two need not be there at once. (Symmetric memory ends on no rank
  // alone.)
  if (missing(local, needs.local) && local.use_count() == 1)
    local.reset();
  const uint64_t bytes[] = {missing(local, needs.local),
                            missing(symmetric, needs.symmetric),
                            std::max<uint64_t>(needs.constants, 64)};
  const uint64_t total = bytes[0] + bytes[1] + bytes[2];
  auto fail = [&](const std::string &message) {
    return Failure{TESSERA_OUT_OF_MEMORY, message, {}, {}, self};
  };
  std::optional<uint64_t> available = device->available();
  if (available && total > *available)
    return fail("not enough memory: the binding needs " +
                std::to_string(total) + " bytes, " +
                std::to_string(*available) + " are free");
  Memories result{local, symmetric, nullptr};
  const MemoryKind kinds[] = {MemoryKind::Local, MemoryKind::Symmetric,
                              MemoryKind::Local};
  std::shared_ptr<Block> *blocks[] = {&result.local, &result.symmetric,
                                      &result.constants};
  for (int i = 0; i < 3; ++i) {
    if (bytes[i] == 0)
      continue;
    Result<std::byte *> pointer = device->allocate(kinds[i], bytes[i]);
    if (!pointer)
      return fail(pointer.message());
    *blocks[i] = std::make_shared<Block>(*device, kinds[i], *pointer, bytes[i]);
  }
  return result;
}

void Context::keep(const Memories &memories) {
  local = memories.local;
  symmetric = memories.symmetric;
}

//===----------------------------------------------------------------------===//
// Joining the others
//===----------------------------------------------------------------------===//

Context::Context(const tessera_context_options &options) : options(options) {
  if (this->options.deadline == 0)
    this->options.deadline = 60;
  if (options.bootstrap)
    std::memcpy(&bootstrap, options.bootstrap,
                std::min(options.bootstrap->size, sizeof bootstrap));
}

Context::~Context() = default;

void Context::log(tessera_log_level level, const std::string &message) const {
  if (options.log)
    options.log(options.log_user, level, message.c_str());
}

/// Opens `libtessera-NAME.so` beside this library, else where the loader looks.
static Result<TransportOpen *> openPlugin(const std::string &name) {
  std::string file = "libtessera-" + name + ".so";
  void *library = nullptr;
  Dl_info self;
  if (dladdr(reinterpret_cast<void *>(&openPlugin), &self) && self.dli_fname) {
    std::string path = self.dli_fname;
    size_t slash = path.rfind('/');
    if (slash != std::string::npos)
      library = dlopen((path.substr(0, slash + 1) + file).c_str(),
                       RTLD_NOW | RTLD_LOCAL);
  }
  std::string why;
  if (!library) {
    if (const char *error = dlerror())
      why = error;
    library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (!library)
    return Error{"cannot open transport '" + name + "': " + why};
  // It stays open: MPI cannot be unloaded.
  auto open = reinterpret_cast<TransportOpen *>(
      dlsym(library, "tessera_transport_open"));
  if (!open)
    return Error{"'" + file +
                 "' is no transport: it has no "
                 "tessera_transport_open"};
  return open;
}

ReadModule SharedModules::read(std::string_view bytes) {
  // Under the lock: the others wait for the first.
  std::lock_guard guard(mutex);
  if (std::shared_ptr<const ModuleReader> known = last.lock();
      known && known->file() == bytes)
    return known;
  ReadModule module = share(ModuleReader::read(bytes));
  if (module)
    last = *module;
  return module;
}

Status Context::openTransport() {
  if (!options.transport) {
    if (options.world > 1)
      return Error{"a context of " + std::to_string(options.world) +
                   " ranks needs a transport: \"threads\" or \"mpi\""};
    return Ok{};
  }
  std::string name = options.transport;
  if (name == "threads") {
    if (!options.handle)
      return Error{"transport \"threads\" needs a tessera_threads as handle"};
    auto *threads = static_cast<tessera_threads *>(options.handle);
    Result<std::unique_ptr<Transport>> joined =
        threads->group->join(options.rank);
    if (!joined)
      return joined.error();
    link = std::move(*joined);
    modules = threads->modules;
  } else {
    Result<TransportOpen *> open = openPlugin(name);
    if (!open)
      return open.error();
    char error[512] = "";
    link.reset((*open)(options.handle, options.deadline, error, sizeof error));
    if (!link)
      return Error{"transport '" + name + "': " + error};
  }
  self = link->rank();
  world = link->size();
  // Other threads may never come; MPI has all its ranks, which agree later.
  if (name == "threads")
    if (Outcome<Ok> right = checkRank(); !right)
      return Error{right.message()};
  link->reserve(world);
  return Ok{};
}

Outcome<Ok> Context::checkRank() {
  if (options.world == 0 || (options.world == world && options.rank == self))
    return Ok{};
  return Failure{TESSERA_INVALID_ARGUMENT,
                 "the options say rank " + std::to_string(options.rank) +
                     " of " + std::to_string(options.world) +
                     ", the transport says " + std::to_string(self) + " of " +
                     std::to_string(world)};
}

Outcome<std::unique_ptr<Context>>
Context::create(const tessera_context_options &options) {
  std::unique_ptr<Context> context(new Context(options));
  if (Status status = context->openTransport(); !status)
    return Failure{TESSERA_INVALID_ARGUMENT, status.message()};
  if (options.control && context->world > 1) {
    Context &self = *context;
    Result<std::unique_ptr<Watch>> watch =
        startControl(self.self, self.world, self.options.deadline,
                     [&self, gathers = 0](const void *mine, void *all,
                                          size_t bytes) mutable {
                       // Of ranks that connect before the last some wait there
                       // longer.
                       return self.gather(mine, all, bytes, ++gathers != 3);
                     });
    if (!watch)
      return Failure{TESSERA_PEER, watch.message(), {}, {}, self.culprit};
    self.watcher = std::move(*watch);
  }
  Outcome<std::unique_ptr<Backend>> backend =
      createBackend(context->options, *context);
  Outcome<Ok> opened = context->checkRank();
  if (backend)
    context->device = std::move(*backend);
  else
    opened = backend.error();
  TSR_TRY(context->agree(
      opened, backend ? hashBytes(context->device->common()) : 0,
      "what they run on: " +
          (backend ? context->device->commonParts() : std::string())));
  return context;
}

Status Context::gather(const void *mine, void *all, size_t bytes, bool anew) {
  char *slots = static_cast<char *>(all);
  if (anew)
    startWait();
  if (bootstrap.all_gather) {
    if (watcher)
      watcher->wait(true);
    const int code = bootstrap.all_gather(bootstrap.user, mine, all, bytes);
    if (watcher)
      watcher->wait(false);
    if (code)
      return Error{"the caller's all_gather returned " + std::to_string(code)};
    return Ok{};
  }
  std::memcpy(slots + self * bytes, mine, bytes);
  std::vector<SendMessage> sends;
  std::vector<ReceiveMessage> receives;
  for (int peer = 0; peer < world; ++peer)
    if (peer != self) {
      sends.push_back({peer, mine, static_cast<int64_t>(bytes)});
      receives.push_back(
          {peer, slots + peer * bytes, static_cast<int64_t>(bytes)});
    }
  if (sends.empty())
    return Ok{};
  return link->exchange(sends, receives, *this);
}

Outcome<Ok> Context::agree(const Outcome<Ok> &mine, uint64_t value,
                           const std::string &what) {
  TSR_TRY(state);
  struct Record {
    uint64_t value;
    int32_t code;
    char message[244];
  };
  static_assert(sizeof(Record) == 256);
  Record record{value, mine ? TESSERA_OK : mine.error().code, {}};
  if (!mine)
    mine.message().copy(record.message, sizeof record.message - 1);
  std::vector<Record> all(world);
  if (Status status = allGather(&record, all.data(), sizeof record); !status)
    return mine ? giveUp({TESSERA_PEER, status.message()}) : mine.error();
  TSR_TRY(mine);
  for (int peer = 0; peer < world; ++peer)
    if (all[peer].code != TESSERA_OK)
      return Failure{
          TESSERA_PEER,
          "rank " + std::to_string(peer) + ": " +
              std::string(all[peer].message,
                          strnlen(all[peer].message, sizeof all[peer].message)),
          {},
          {},
          peer};
  for (int peer = 0; peer < world; ++peer)
    if (all[peer].value != all[0].value)
      return Failure{TESSERA_INVALID_ARGUMENT,
                     "ranks 0 and " + std::to_string(peer) + " differ in " +
                         what,
                     {},
                     {},
                     peer};
  return Ok{};
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

Poll &Context::startWait() {
  waitBegan = now();
  culprit = -1;
  return *this;
}

Status Context::poll() {
  if (watcher) {
    // It has its own deadline, which knows whether anybody makes progress.
    if ((verdict = watcher->poll()))
      return Error{verdict->message};
    return Ok{};
  }
  if (now() - waitBegan > options.deadline)
    return Error{"no answer for " + deadlineText()};
  return Ok{};
}

/// Asks for a verdict until there is one or `seconds` have passed.
static std::optional<Verdict> awaitVerdict(Watch &watch, double seconds) {
  const double end = now() + seconds;
  while (true) {
    std::optional<Verdict> verdict = watch.poll();
    if (verdict || now() > end)
      return verdict;
    timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
}

const Failure &Context::giveUp(Failure failure) {
  if (!state)
    return state.error();
  // All ranks return the same verdict. What a transport sees may be but the
  // consequence of one that is on its way; else this rank tells the others, and
  // does not leave, which they would see, before they know.
  if (watcher && !verdict)
    verdict = awaitVerdict(*watcher, 0.5);
  if (failure.rank < 0)
    failure.rank = culprit;
  if (watcher && !verdict) {
    watcher->fail({failure.message, failure.op, failure.location,
                   failure.rank < 0 && failure.code != TESSERA_PEER
                       ? self
                       : failure.rank});
    verdict = awaitVerdict(*watcher, 2);
  }
  if (verdict) {
    failure.message = verdict->message;
    if (!verdict->op.empty()) {
      failure.op = verdict->op;
      failure.location = verdict->location;
    }
    failure.rank = verdict->rank;
  }
  state = std::move(failure);
  log(TESSERA_LOG_WARNING, "this context ends: " + state.message());
  return state.error();
}
