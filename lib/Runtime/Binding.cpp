//===- Binding.cpp - a loaded module, and a module with its sizes fixed ---===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Binding: tensors, then works and their scratch, then lifetimes and offsets,
// so that all memory is known; the ranks agree; only then memory is taken and
// addresses are set. A run is the backend's program of these works.
//
// Buffers are numbered: the plan's tensors, then one for the caller's memory of
// each port. A port whose tensor is not the caller's memory itself (an output
// that is an alias, or the new value of a state) is copied there at the end.
//
//===----------------------------------------------------------------------===//

#include "Runtime/Binding.h"
#include "Layout/Transfers.h"
#include "Support/Try.h"

#include <bit>
#include <set>

using namespace tessera;
using layout::Lifetime;
using layout::Shape;

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

Outcome<std::unique_ptr<LoadedModule>>
LoadedModule::load(Context &context, ReadModule source, tessera_code why) {
  // What may never end may be in flight, and the driver wait for it.
  TSR_TRY(context.alive());
  std::unique_ptr<LoadedModule> module;
  auto load = [&]() -> Outcome<Ok> {
    if (!source)
      return Failure{why, source.message(), {}, {}, context.rank()};
    module.reset(new LoadedModule(context, std::move(*source)));
    const ModuleReader &file = module->reader();
    int64_t devices = file.mesh().numDevices();
    if (devices != context.size())
      return Failure{TESSERA_INVALID_ARGUMENT,
                     "the module is for a mesh of " + std::to_string(devices) +
                         " devices, " + layout::toString(file.mesh()) + "; " +
                         std::to_string(context.size()) +
                         " were started; start " + std::to_string(devices) +
                         " ranks, or compile it for a mesh of " +
                         std::to_string(context.size())};
    Backend &backend = context.backend();
    std::string target = targetOf(file.plan());
    if (Status status = backend.accepts(target); !status)
      return Failure{TESSERA_INVALID_ARGUMENT,
                     "the module is compiled for " + target +
                         "; this context runs " + backend.target() + ": " +
                         status.message(),
                     {},
                     {},
                     context.rank()};
    Result<std::unique_ptr<BackendModule>> code = backend.load(file);
    if (!code)
      return Failure{
          TESSERA_INVALID_MODULE, code.message(), {}, {}, context.rank()};
    module->kernels = std::move(*code);
    return Ok{};
  };
  Outcome<Ok> loaded = load();
  uint64_t hash = module ? module->reader().hash() : 0;
  TSR_TRY(context.agree(loaded, hash, "the module they load"));
  const fb::PlanT &plan = module->reader().plan();
  for (const auto &port : plan.ports) {
    std::string text;
    for (const auto &extent : plan.tensors[port->tensor]->shape)
      text += (text.empty() ? "" : ", ") + toString(*extent, plan);
    module->shapeTexts.push_back("[" + text + "]");
  }
  module->reportText = module->reader().section(Section::Report);
  return module;
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

static uint64_t roundUp(uint64_t bytes, uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

static Failure atStep(const fb::StepT &step, std::string message) {
  return {TESSERA_INVALID_MODULE, std::move(message), step.op, step.location};
}

/// Adds what is left to do for ports after the last step.
static Outcome<Ok> addPortCopies(const fb::PlanT &plan, BackendModule &module,
                                 Prepared &prepared,
                                 std::vector<int> &lastUses) {
  std::vector<bool> given(plan.tensors.size()), state(plan.tensors.size());
  auto external = [&](int tensor) {
    return plan.tensors[tensor]->storage == fb::Storage::External;
  };
  for (const auto &port : plan.ports)
    if (port->kind != fb::PortKind::Output)
      given[port->tensor] = true;
  for (const auto &port : plan.ports)
    if (port->kind == fb::PortKind::State)
      state[port->tensor] = true;

  for (size_t i = 0; i < plan.ports.size(); ++i) {
    const fb::PortT &port = *plan.ports[i];
    Result<const LocalTensor *> tensor = prepared.tensors.get(port.tensor);
    if (!tensor)
      return Failure{TESSERA_INVALID_MODULE, tensor.message()};
    const LocalTensor &own = **tensor;
    prepared.portBytes.push_back(own.elements() * own.elementBytes());
    prepared.memory.external += prepared.portBytes.back();
    int value = -1;
    if (port.kind == fb::PortKind::State)
      value = port.state_result;
    else if (port.kind == fb::PortKind::Output) {
      if (external(port.tensor) && !given[port.tensor])
        given[port.tensor] = true; // its memory is this port's
      else
        value = port.tensor;
    }
    if (value < 0)
      continue;
    Result<const LocalTensor *> found = prepared.tensors.get(value);
    if (!found)
      return Failure{TESSERA_INVALID_MODULE, found.message()};
    const LocalTensor &from = **found;
    const int buffer = plan.tensors.size() + i;
    lastUses.push_back(from.root);
    bool isState = port.kind == fb::PortKind::State;
    if (isState && from.root == own.root && from.offset == own.offset &&
        from.strides == own.strides)
      continue; // computed in place
    // The memory of one state would be written before another is read from it.
    if (from.sizes != own.sizes || (isState && state[from.root]))
      return Failure{TESSERA_INVALID_MODULE,
                     "port '" + port.name +
                         "': its new value does not fit, or is another state "
                         "unchanged"};
    Result<std::unique_ptr<Work>> copy = module.makeCopy(
        CopyLoop(own.elementBytes(), own.sizes,
                 layout::localStrides(own.view, own.sizes), from.strides),
        Place{buffer, 0}, placeOf(from));
    if (!copy)
      return Failure{TESSERA_INVALID_MODULE,
                     "port '" + port.name + "': " + copy.message()};
    prepared.works.push_back(std::move(*copy));
  }
  return Ok{};
}

/// By tensor, the port that has its memory, or -1. An output that is an input
/// as well is copied.
static std::vector<int> findPorts(const fb::PlanT &plan) {
  std::vector<int> ports(plan.tensors.size(), -1);
  for (size_t i = 0; i < plan.ports.size(); ++i) {
    const fb::PortT &port = *plan.ports[i];
    if (plan.tensors[port.tensor]->storage == fb::Storage::External &&
        (port.kind != fb::PortKind::Output || ports[port.tensor] < 0))
      ports[port.tensor] = i;
  }
  return ports;
}

/// What ranks must have in common to bind alike.
static uint64_t keyOf(const LoadedModule &module,
                      std::span<const int64_t> symbols,
                      const std::vector<int> &variants) {
  const uint64_t key = hashBytes(
      {reinterpret_cast<const char *>(symbols.data()), symbols.size_bytes()},
      module.reader().hash());
  return hashBytes({reinterpret_cast<const char *>(variants.data()),
                    variants.size() * sizeof(int)},
                   key);
}

/// The works of the first variants that are not `refused`; those of them that
/// cannot take the sizes or the ports' memory are added to `more`, and their
/// works are missing.
static Outcome<Prepared> makeWorks(const LoadedModule &module,
                                   std::span<const int64_t> symbols,
                                   std::span<void *const> pointers,
                                   const Refusals &refused, Refusals &more) {
  const fb::PlanT &plan = module.reader().plan();
  Outcome<std::vector<int>> variants =
      chooseVariants(plan, module.context().backend(), refused);
  if (!variants)
    return variants.error();
  Result<Tensors> tensors =
      Tensors::create(module.reader(), module.context().rank(), symbols);
  if (!tensors)
    return Failure{TESSERA_INVALID_ARGUMENT, tensors.message()};
  Prepared prepared{std::move(*tensors), std::move(*variants)};
  const std::vector<int> ports = findPorts(plan);
  for (size_t i = 0; i < ports.size(); ++i)
    if (ports[i] >= 0 && static_cast<size_t>(ports[i]) < pointers.size())
      prepared.tensors.setAddress(i, pointers[ports[i]]);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const fb::StepT &step = *plan.steps[i];
    if (step.alternative >= 0 &&
        prepared.variants[step.alternative] != step.variant)
      continue;
    Result<std::unique_ptr<Work>> work =
        makeWork(i, prepared.tensors, module.code());
    if (!work) {
      auto of = variantOf(plan, step);
      if (!of)
        return atStep(step, work.message());
      more.try_emplace(*of, work.message());
      continue;
    }
    prepared.works.push_back(std::move(*work));
    prepared.steps.push_back(&step);
    prepared.numbers.push_back(i);
  }
  return prepared;
}

/// Collective: adds what other ranks refuse of the same variants.
static Outcome<Ok> gatherRefusals(Context &context,
                                  const std::vector<int> &variants,
                                  Refusals &refused) {
  const size_t count = variants.size();
  if (count == 0)
    return Ok{};
  std::vector<char> mine(count), all(count * context.size());
  for (const auto &[variant, why] : refused)
    mine[variant.first] = true;
  if (Status status = context.allGather(mine.data(), all.data(), count);
      !status)
    return context.giveUp({TESSERA_PEER, status.message()});
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i])
      refused.try_emplace(std::pair<int, int>(i % count, variants[i % count]),
                          "it cannot run on rank " + std::to_string(i / count));
  return Ok{};
}

Outcome<Prepared> Prepared::create(const LoadedModule &module,
                                   std::span<const int64_t> symbols,
                                   std::span<void *const> pointers,
                                   bool together) {
  Context &context = module.context();
  const fb::PlanT &plan = module.reader().plan();
  for (Refusals refused, more;; refused.merge(more)) {
    more.clear();
    Outcome<Prepared> prepared =
        makeWorks(module, symbols, pointers, refused, more);
    if (together) {
      const Outcome<Ok> made =
          prepared ? Outcome<Ok>(Ok{}) : Outcome<Ok>(prepared.error());
      TSR_TRY(context.agree(
          made, prepared ? keyOf(module, symbols, prepared->variants) : 0,
          plan.alternatives.empty()
              ? "the module or the sizes they bind"
              : "the module, the sizes or the variants of ops they bind"));
      TSR_TRY(gatherRefusals(context, prepared->variants, more));
    }
    if (!prepared || more.empty())
      return prepared;
    for (const auto &[variant, why] : more) {
      const fb::AlternativeT &of = *plan.alternatives[variant.first];
      context.log(TESSERA_LOG_INFO,
                  of.location + ": " + of.op + " does not run as " +
                      of.variants[variant.second]->name + ": " + why);
    }
  }
}

Outcome<Ok> Prepared::layOut(const LoadedModule &module) {
  const ModuleReader &file = module.reader();
  const fb::PlanT &plan = file.plan();
  const Backend &backend = module.context().backend();
  const int64_t alignment = backend.alignment();
  memory.size = sizeof(tessera_memory);
  lifetimes.resize(plan.tensors.size());
  used.resize(plan.tensors.size());

  // Lifetimes count works: what is not chosen takes no part.
  auto use = [&](int root, int64_t step) {
    used[root] = true;
    fb::Storage storage = plan.tensors[root]->storage;
    if (storage != fb::Storage::Local && storage != fb::Storage::Symmetric)
      return;
    std::optional<Lifetime> &life = lifetimes[root];
    if (!life)
      life = Lifetime{0, step, step};
    life->last = std::max(life->last, step);
  };
  // Their tensors were found when the works were made.
  for (size_t i = 0; i < steps.size(); ++i)
    for (int id : tensorsOf(*steps[i]))
      use((*tensors.get(id))->root, i);
  // What runs beside others keeps its memory until it is awaited.
  for (size_t i = 0; i < steps.size(); ++i) {
    const fb::StepT &step = *steps[i];
    Work &work = *works[i];
    if (step.until < 0 || work.scratchBytes() > 0)
      continue;
    work.until =
        std::ranges::lower_bound(numbers, step.until) - numbers.begin();
    for (int id : tensorsOf(step))
      use((*tensors.get(id))->root, work.until - 1);
  }
  std::vector<int> lastUses;
  TSR_TRY(addPortCopies(plan, module.code(), *this, lastUses));
  for (int root : lastUses)
    use(root, works.size());

  // Offsets: symmetric tensors by their largest extent, which all ranks compute
  // alike; local ones and scratch by this rank's.
  std::vector<Lifetime> symmetric, local;
  std::vector<Lifetime *> symmetricTo, localTo;
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    if (plan.tensors[i]->storage == fb::Storage::Constant) {
      if (!used[i])
        continue;
      Result<const LocalTensor *> tensor = tensors.get(i);
      if (!tensor)
        return Failure{TESSERA_INVALID_MODULE, tensor.message()};
      uint64_t size =
          product((*tensor)->globalShape) * (*tensor)->elementBytes();
      uint64_t offset = plan.tensors[i]->constant_offset;
      if (size > file.section(Section::Constants).size() - offset)
        return Failure{TESSERA_INVALID_MODULE,
                       tensors.name(i) +
                           " reaches beyond the module's constants"};
      if (!(*tensor)->inModule)
        size = tensors.bytes(**tensor);
      if (!(*tensor)->inModule || !backend.isHost())
        memory.constants += roundUp(size, alignment);
      continue;
    }
    std::optional<Lifetime> &life = lifetimes[i];
    if (!life)
      continue;
    if (plan.tensors[i]->storage == fb::Storage::Symmetric) {
      life->bytes = *tensors.maxBytes(i);
      symmetric.push_back(*life);
      symmetricTo.push_back(&*life);
    } else {
      life->bytes = tensors.bytes(**tensors.get(i));
      local.push_back(*life);
      localTo.push_back(&*life);
    }
  }
  scratch.resize(works.size());
  for (size_t i = 0; i < works.size(); ++i) {
    scratch[i] = {works[i]->scratchBytes(), static_cast<int64_t>(i),
                  static_cast<int64_t>(i)};
    local.push_back(scratch[i]);
    localTo.push_back(&scratch[i]);
  }
  memory.symmetric = assignOffsets(symmetric, alignment);
  memory.local = assignOffsets(local, alignment);
  for (size_t i = 0; i < symmetric.size(); ++i)
    symmetricTo[i]->offset = symmetric[i].offset;
  for (size_t i = 0; i < local.size(); ++i)
    localTo[i]->offset = local[i].offset;
  return Ok{};
}

//===----------------------------------------------------------------------===//
// Binding
//===----------------------------------------------------------------------===//

/// This rank's part of a constant, from the global tensor.
static Status copyPart(const ModuleReader &file, const LocalTensor &tensor,
                       int rank, const std::byte *global, std::byte *part) {
  layout::View whole = layout::instantiate(
      layout::View::replicated(tensor.globalShape.size()), tensor.globalShape);
  layout::View to = tensor.view;
  to.partial.clear();
  layout::Transfers moves =
      layout::expandTransfers(whole, to, tensor.globalShape, file.mesh(), rank);
  Shape strides = rowMajor(tensor.globalShape);
  for (size_t b = 0; b < moves.keepFrom.boxes.size(); ++b) {
    const layout::Box &from = moves.keepFrom.boxes[b];
    const layout::Box &box = moves.keepTo.boxes[b];
    std::optional<CopyLoop> loop = CopyLoop::between(
        tensor.elementBytes(), box.size, tensor.strides, from.size, strides);
    if (!loop)
      return Error{"a copy of a rank's part of a constant takes more than " +
                   std::to_string(kMaxRank) + " nested loops"};
    int64_t read = 0, write = 0;
    for (size_t d = 0; d < from.offset.size(); ++d)
      read += from.offset[d] * strides[d];
    for (size_t d = 0; d < box.offset.size(); ++d)
      write += box.offset[d] * tensor.strides[d];
    loop->run(part + write * tensor.elementBytes(),
              global + read * tensor.elementBytes());
  }
  return Ok{};
}

const char *Binding::choiceOf(std::string_view kind) const {
  auto found = choices.find(kind);
  if (found == choices.end())
    found =
        choices
            .emplace(kind, choiceText(loaded->reader().plan(), variants, kind))
            .first;
  return found->second.c_str();
}

Outcome<Ok> Binding::prepare(Prepared &prepared,
                             std::span<void *const> pointers) {
  Context &context = loaded->context();
  const fb::PlanT &plan = loaded->reader().plan();
  TSR_TRY(prepared.layOut(*loaded));
  needs = prepared.memory;
  variants = std::move(prepared.variants);
  for (size_t i = 0; i < variants.size(); ++i) {
    const fb::AlternativeT &alternative = *plan.alternatives[i];
    chosen.push_back({&alternative,
                      alternative.variants[variants[i]]->name.c_str(),
                      variantNames(alternative)});
  }

  if (pointers.size() != plan.ports.size())
    return Failure{TESSERA_INVALID_ARGUMENT,
                   "the module has " + std::to_string(plan.ports.size()) +
                       " ports, " + std::to_string(pointers.size()) +
                       " pointers were given"};
  const uint64_t total = needs.local + needs.symmetric + needs.constants;
  if (context.memoryLimit() && total > context.memoryLimit())
    return Failure{TESSERA_OUT_OF_MEMORY,
                   "the binding needs " + std::to_string(total) +
                       " bytes of memory, the limit is " +
                       std::to_string(context.memoryLimit()),
                   {},
                   {},
                   context.rank()};

  Outcome<Context::Memories> memories = context.allocate(needs);
  if (!memories)
    return memories.error();
  blocks = std::move(*memories);

  bases.assign(plan.tensors.size() + plan.ports.size(), nullptr);
  for (size_t i = 0; i < plan.ports.size(); ++i) {
    const fb::PortT &port = *plan.ports[i];
    auto *pointer = static_cast<std::byte *>(pointers[i]);
    const size_t element =
        info(static_cast<DType>(plan.tensors[port.tensor]->dtype)).bytes;
    if (!pointer && prepared.portBytes[i])
      return Failure{TESSERA_INVALID_ARGUMENT,
                     "port '" + port.name + "' needs " +
                         std::to_string(prepared.portBytes[i]) +
                         " bytes, its pointer is null"};
    if (reinterpret_cast<uintptr_t>(pointer) % element)
      return Failure{TESSERA_INVALID_ARGUMENT,
                     "the pointer of port '" + port.name +
                         "' is not aligned to its elements"};
    bases[plan.tensors.size() + i] = pointer;
    if (!port.check.empty())
      if (Status status =
              checks.add(port, **prepared.tensors.get(port.tensor), pointer);
          !status)
        return Failure{TESSERA_INVALID_MODULE, status.message()};
  }
  const std::vector<int> ports = findPorts(plan);
  for (size_t i = 0; i < ports.size(); ++i)
    if (ports[i] >= 0)
      bases[i] = static_cast<std::byte *>(pointers[ports[i]]);
  for (size_t i = 0; i < plan.tensors.size(); ++i)
    if (const std::optional<Lifetime> &life = prepared.lifetimes[i])
      bases[i] =
          (plan.tensors[i]->storage == fb::Storage::Symmetric ? blocks.symmetric
                                                              : blocks.local)
              ->data() +
          life->offset;
  TSR_TRY(fillConstants(prepared));

  works = std::move(prepared.works);
  steps = std::move(prepared.steps);
  for (size_t i = 0; i < works.size(); ++i) {
    works[i]->setAddresses(
        {bases, blocks.local->data() + prepared.scratch[i].offset});
    if (Status status = works[i]->prepare(); !status)
      return Failure{TESSERA_INVALID_MODULE, status.message(), op(i),
                     location(i), context.rank()};
    texts.push_back(works[i]->text());
    const CollectiveReport *report = works[i]->collective();
    if (!report)
      continue;
    std::string axes;
    for (const std::string &axis : steps[i]->action.AsCollective()->axes)
      axes += (axes.empty() ? "" : ", ") + axis;
    collectives.push_back({report, static_cast<int>(i), "[" + axes + "]"});
  }
  Result<std::unique_ptr<Program>> made = loaded->code().makeProgram(works);
  if (!made)
    return Failure{TESSERA_INTERNAL, made.message(), {}, {}, context.rank()};
  runner = std::move(*made);
  return Ok{};
}

/// Constants where they lie in the module, if the backend reads the host's
/// memory; else a copy, or one of this rank's part where that is no window.
Outcome<Ok> Binding::fillConstants(Prepared &prepared) {
  const ModuleReader &file = loaded->reader();
  Backend &backend = loaded->context().backend();
  const fb::PlanT &plan = file.plan();
  std::byte *next = blocks.constants->data();
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    if (plan.tensors[i]->storage != fb::Storage::Constant || !prepared.used[i])
      continue;
    const LocalTensor &tensor = **prepared.tensors.get(i);
    // Kernels read it through the same kind of pointer as everything else.
    auto *global = reinterpret_cast<std::byte *>(
        const_cast<char *>(file.section(Section::Constants).data() +
                           plan.tensors[i]->constant_offset));
    if (tensor.inModule && backend.isHost()) {
      bases[i] = global;
      continue;
    }
    std::vector<std::byte> part;
    std::span<const std::byte> bytes(global, product(tensor.globalShape) *
                                                 tensor.elementBytes());
    if (!tensor.inModule) {
      part.resize(prepared.tensors.bytes(tensor));
      if (Status status = copyPart(file, tensor, loaded->context().rank(),
                                   global, part.data());
          !status)
        return Failure{TESSERA_UNSUPPORTED,
                       prepared.tensors.name(i) + ": " + status.message()};
      bytes = part;
    }
    bases[i] = next;
    next += roundUp(bytes.size(), backend.alignment());
    if (Status status = backend.copy(bases[i], bytes.data(), bytes.size());
        !status)
      return Failure{TESSERA_INTERNAL, status.message()};
  }
  return Ok{};
}

/// Which go through each, when all works are connected.
void Binding::countCommunicators() {
  for (CommunicatorNote &note :
       loaded->context().backend().describeCommunicators())
    comms.push_back({std::move(note), {}});
  std::vector<std::set<std::string>> axes(comms.size());
  for (const Collective &each : collectives) {
    const int number = each.report->communicator;
    if (number < 0)
      continue;
    Communicator &used = comms[number];
    ++used.collectives;
    if (axes[number].insert(each.axes).second)
      used.axes += (used.axes.empty() ? "" : " ") + each.axes;
  }
}

Handed Binding::handedTo(int communicator) const {
  Handed sum{communicator};
  for (const Collective &each : collectives) {
    const Handed &handed = each.report->handed;
    if (handed.communicator != communicator)
      continue;
    sum.calls += handed.calls;
    sum.bytesSent += handed.bytesSent;
    sum.bytesReceived += handed.bytesReceived;
  }
  return sum;
}

Outcome<std::unique_ptr<Binding>>
Binding::create(LoadedModule &module, std::span<const int64_t> symbols,
                std::span<void *const> pointers) {
  TSR_TRY(module.context().alive());
  Outcome<Prepared> prepared =
      Prepared::create(module, symbols, pointers, /*together=*/true);
  if (!prepared)
    return prepared.error();
  std::unique_ptr<Binding> binding(new Binding(module));
  TSR_TRY(module.context().agree(binding->prepare(*prepared, pointers), 0, ""));
  module.context().keep(binding->blocks);
  TSR_TRY(module.context().backend().agree());
  for (size_t i = 0; i < binding->works.size(); ++i)
    if (Status status = binding->works[i]->connect(module.context()); !status)
      return binding->giveUp({i, TESSERA_PEER, status.message()});
  if (binding->needs.symmetric) {
    const Block &block = *binding->blocks.symmetric;
    TSR_TRY(module.context().backend().share(module.context(), block.data(),
                                             block.size()));
  }
  binding->countCommunicators();
  const tessera_memory &needs = binding->needs;
  module.context().log(TESSERA_LOG_INFO,
                       "bound: " + std::to_string(binding->works.size()) +
                           " steps, " + std::to_string(needs.local) +
                           " bytes local, " + std::to_string(needs.symmetric) +
                           " symmetric, " + std::to_string(needs.constants) +
                           " of constants");
  return binding;
}

tessera_products Binding::products() const {
  tessera_products result{};
  for (const auto &work : works) {
    const AlgorithmReport *report = work->algorithm();
    if (!report)
      continue;
    if (report->hash)
      result.hash = std::rotl(result.hash, 1) ^ report->hash;
    switch (report->choice) {
    case Choice::Stored:
      ++result.stored;
      break;
    case Choice::Measured:
      ++result.measured;
      break;
    case Choice::Heuristic:
      ++result.heuristic;
      break;
    }
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

const fb::StepT *Binding::stepOf(int64_t work) const {
  return work >= 0 && static_cast<size_t>(work) < steps.size() ? steps[work]
                                                               : nullptr;
}

const char *Binding::op(int64_t work) const {
  const fb::StepT *step = stepOf(work);
  return step ? step->op.c_str() : "";
}

const char *Binding::location(int64_t work) const {
  const fb::StepT *step = stepOf(work);
  return step ? step->location.c_str() : "";
}

const char *Binding::kind(size_t work) const {
  const fb::StepT *step = stepOf(work);
  return step ? nameOf(*step) : "copy";
}

const char *Binding::symbol(size_t work) const {
  const fb::StepT *step = stepOf(work);
  const fb::LaunchT *launch = step ? step->action.AsLaunch() : nullptr;
  return launch ? launch->symbol.c_str() : "";
}

/// The context's end, for all ranks, at a step that cannot be done.
Failure Binding::giveUp(const Stop &stop) {
  return loaded->context().giveUp(
      {stop.code, stop.message, op(stop.work), location(stop.work)});
}

/// `doIt` while the control channel watches.
Outcome<Ok> Binding::watched(Ran (*doIt)(Binding &, Context &)) {
  Context &context = loaded->context();
  TSR_TRY(context.alive());
  Watch *watch = context.watch();
  if (watch)
    watch->beginRun(*this);
  if (Ran ran = doIt(*this, context); !ran)
    return giveUp(ran.error());
  if (watch)
    watch->endRun();
  return Ok{};
}

Outcome<Ok> Binding::run() {
  hasRun = true;
  TSR_TRY(watched([](Binding &binding, Context &context) {
    return binding.runner->run(context, binding);
  }));
  return checks.look(loaded->context().backend());
}

Outcome<Ok> Binding::enqueue(void *stream) {
  Context &context = loaded->context();
  TSR_TRY(context.alive());
  hasRun = true;
  Ran ran = runner->enqueue(context, stream);
  if (ran)
    return Ok{};
  if (ran.error().code == TESSERA_INVALID_ARGUMENT)
    return Failure{ran.error().code, ran.message()};
  return giveUp(ran.error());
}

Outcome<Ok> Binding::wait() {
  if (!hasRun)
    return loaded->context().alive();
  TSR_TRY(watched([](Binding &binding, Context &context) {
    return binding.runner->wait(context);
  }));
  return checks.look(loaded->context().backend());
}
