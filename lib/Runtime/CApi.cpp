//===- CApi.cpp - the C edge ----------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Thin: checks pointers and struct sizes, calls the C++ inside, and turns
// failures into status objects. The one place where an exception may arrive: no
// memory for the library's own small objects.
//
//===----------------------------------------------------------------------===//

#include "Layout/Transfers.h"
#include "Runtime/Binding.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <optional>
#include <unistd.h>

using namespace tessera;

struct tessera_status {
  Failure failure;
};
struct tessera_context {
  std::unique_ptr<Context> context;
  std::string target, description;
  DeviceNote device; ///< as it was described last
};
struct tessera_module {
  std::unique_ptr<LoadedModule> module;
  std::string mesh;
  std::vector<std::string> meshes; ///< of ports
};
struct tessera_binding {
  std::unique_ptr<Binding> binding;
};

/// Stands for every status that there was no memory for.
static tessera_status *noMemory() {
  static tessera_status status{
      {TESSERA_OUT_OF_MEMORY, "no memory left for the library itself"}};
  return &status;
}

static tessera_status *fail(Failure failure) {
  return new tessera_status{std::move(failure)};
}
static tessera_status *invalid(std::string message) {
  return fail({TESSERA_INVALID_ARGUMENT, std::move(message)});
}

static constexpr const char *kNullPointer = "a null pointer where none may be";
/// Each pair of ranks has a place to meet.
static constexpr int32_t kMaxThreads = 4096;

static constexpr uint32_t kAllFlags = TESSERA_NO_GRAPH | TESSERA_TIME_STEPS |
                                      TESSERA_CHECK_STEPS | TESSERA_SYMMETRIC |
                                      TESSERA_COPY_ENGINES | TESSERA_AUTOTUNE;

/// Runs the body of a call; no exception leaves.
template <typename Body> static tessera_status *guard(Body body) {
  try {
    return body();
  } catch (...) {
    return noMemory();
  }
}

/// Whether a caller's struct can be so long: no pointer in it is cut off.
static bool isSize(size_t size) {
  return size > 0 && size % sizeof(size_t) == 0;
}

/// Takes over the fields that the caller's struct has.
template <typename T> static bool readStruct(const T *from, T &to) {
  to = T{};
  if (!from || !isSize(from->size))
    return false;
  std::memcpy(&to, from, std::min(from->size, sizeof to));
  return true;
}
template <typename T> static tessera_status *writeStruct(T value, T *to) {
  if (!to || !isSize(to->size))
    return invalid("the struct for the result is null or its size is not set");
  value.size = to->size;
  std::memcpy(to, &value, std::min(to->size, sizeof value));
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Status
//===----------------------------------------------------------------------===//

tessera_code tessera_status_code(const tessera_status *status) {
  return status ? status->failure.code : TESSERA_OK;
}
const char *tessera_status_message(const tessera_status *status) {
  return status ? status->failure.message.c_str() : "";
}
const char *tessera_status_op(const tessera_status *status) {
  return status ? status->failure.op.c_str() : "";
}
const char *tessera_status_location(const tessera_status *status) {
  return status ? status->failure.location.c_str() : "";
}
int32_t tessera_status_rank(const tessera_status *status) {
  return status ? status->failure.rank : -1;
}
void tessera_status_free(tessera_status *status) {
  if (status != noMemory())
    delete status;
}

//===----------------------------------------------------------------------===//
// Context
//===----------------------------------------------------------------------===//

tessera_status *tessera_threads_create(int32_t world, tessera_threads **out) {
  return guard([&]() -> tessera_status * {
    if (!out)
      return invalid(kNullPointer);
    if (world < 1 || world > kMaxThreads)
      return invalid("a group of threads has 1 to " +
                     std::to_string(kMaxThreads) + " ranks, not " +
                     std::to_string(world));
    *out = new tessera_threads{ThreadsGroup::create(world),
                               std::make_shared<SharedModules>()};
    return nullptr;
  });
}

void tessera_threads_destroy(tessera_threads *threads) { delete threads; }

/// What no context can be made with, as one sentence.
static std::optional<std::string>
findWrong(const tessera_context_options &options) {
  if (options.world < 0 || options.rank < 0 ||
      (options.rank > 0 && options.rank >= options.world))
    return "there is no rank " + std::to_string(options.rank) + " of " +
           std::to_string(options.world);
  if (!(options.deadline >= 0) || std::isinf(options.deadline))
    return "the deadline is " + std::to_string(options.deadline) +
           ": it must be a number of seconds, or 0";
  if (options.flags & ~kAllFlags)
    return "there are no flags " + std::to_string(options.flags & ~kAllFlags);
  if (bool(options.allocate) != bool(options.deallocate))
    return "allocate and deallocate come together";
  if (!options.bootstrap)
    return std::nullopt;
  tessera_bootstrap bootstrap;
  if (!readStruct(options.bootstrap, bootstrap))
    return "the bootstrap's size is not set";
  if (!bootstrap.all_gather)
    return "the bootstrap has no all_gather";
  return std::nullopt;
}

tessera_status *tessera_context_create(const tessera_context_options *options,
                                       tessera_context **out) {
  return guard([&]() -> tessera_status * {
    tessera_context_options known;
    if (!out || !readStruct(options, known))
      return invalid("the context's options are null or their size is not set");
    if (std::optional<std::string> wrong = findWrong(known))
      return invalid(*wrong);
    Outcome<std::unique_ptr<Context>> context = Context::create(known);
    if (!context)
      return fail(context.error());
    std::string target = (*context)->backend().target();
    *out = new tessera_context{std::move(*context), std::move(target), {}, {}};
    return nullptr;
  });
}

void tessera_context_destroy(tessera_context *context) { delete context; }
int32_t tessera_context_rank(const tessera_context *context) {
  return context ? context->context->rank() : -1;
}
int32_t tessera_context_world(const tessera_context *context) {
  return context ? context->context->size() : 0;
}

tessera_status *tessera_context_device(tessera_context *context,
                                       tessera_device *out) {
  return guard([&]() -> tessera_status * {
    if (!context)
      return invalid("the context is null");
    tessera_device result{};
    result.target = context->target.c_str();
    context->device = context->context->backend().describeDevice();
    context->description = context->device.text();
    result.description = context->description.c_str();
    result.free_bytes = context->context->backend().available().value_or(0);
    result.ordinal = context->device.ordinal;
    result.model = context->device.model.c_str();
    result.driver = context->device.driver.c_str();
    result.libraries = context->device.libraries.c_str();
    return writeStruct(result, out);
  });
}

tessera_status *tessera_device_allocate(tessera_context *context, size_t bytes,
                                        void **out) {
  return guard([&]() -> tessera_status * {
    if (!context || !out)
      return invalid(kNullPointer);
    Result<std::byte *> pointer =
        context->context->backend().allocate(MemoryKind::External, bytes);
    if (!pointer)
      return fail({TESSERA_OUT_OF_MEMORY, pointer.message()});
    *out = *pointer;
    return nullptr;
  });
}

void tessera_device_free(tessera_context *context, void *pointer,
                         size_t bytes) {
  if (context && pointer)
    context->context->backend().deallocate(
        MemoryKind::External, static_cast<std::byte *>(pointer), bytes);
}

tessera_status *tessera_device_copy(tessera_context *context, void *to,
                                    const void *from, size_t bytes) {
  return guard([&]() -> tessera_status * {
    if (!context || ((!to || !from) && bytes))
      return invalid(kNullPointer);
    if (Status status = context->context->backend().copy(to, from, bytes);
        !status)
      return fail({TESSERA_INTERNAL, status.message()});
    return nullptr;
  });
}

//===----------------------------------------------------------------------===//
// Module
//===----------------------------------------------------------------------===//

/// Of an error about a module's file.
static tessera_code codeOf(const char *path) {
  return access(path, R_OK) == 0 ? TESSERA_INVALID_MODULE : TESSERA_IO;
}

static tessera_status *loadModule(tessera_context *context, ReadModule source,
                                  tessera_module **out,
                                  tessera_code why = TESSERA_INVALID_MODULE) {
  Outcome<std::unique_ptr<LoadedModule>> module =
      LoadedModule::load(*context->context, std::move(source), why);
  if (!module)
    return fail(module.error());
  const ModuleReader &reader = (*module)->reader();
  std::string mesh = layout::toString(reader.mesh());
  std::vector<std::string> meshes;
  for (const auto &port : reader.plan().ports)
    meshes.push_back(layout::toString(reader.mesh(port->tensor)));
  *out = new tessera_module{std::move(*module), std::move(mesh),
                            std::move(meshes)};
  return nullptr;
}

tessera_status *tessera_module_load(tessera_context *context, const void *bytes,
                                    size_t count, tessera_module **out) {
  return guard([&]() -> tessera_status * {
    if (!context || !out || (!bytes && count))
      return invalid(kNullPointer);
    return loadModule(
        context,
        context->context->read({static_cast<const char *>(bytes), count}), out);
  });
}

tessera_status *tessera_module_load_file(tessera_context *context,
                                         const char *path,
                                         tessera_module **out) {
  return guard([&]() -> tessera_status * {
    if (!context || !out || !path)
      return invalid(kNullPointer);
    return loadModule(context, share(ModuleReader::open(path)), out,
                      codeOf(path));
  });
}

tessera_status *tessera_module_inspect(const char *path,
                                       tessera_module_info *out) {
  return guard([&]() -> tessera_status * {
    if (!path)
      return invalid("the path is null");
    Result<ModuleReader> module = ModuleReader::open(path);
    if (!module)
      return fail({codeOf(path), module.message()});
    tessera_module_info result{};
    targetOf(module->plan()).copy(result.target, sizeof result.target - 1);
    return writeStruct(result, out);
  });
}

void tessera_module_destroy(tessera_module *module) { delete module; }
uint64_t tessera_module_hash(const tessera_module *module) {
  return module ? module->module->reader().hash() : 0;
}
const char *tessera_module_mesh(const tessera_module *module) {
  return module ? module->mesh.c_str() : "";
}
const char *tessera_module_report(const tessera_module *module) {
  return module ? module->module->report().c_str() : "";
}

static const fb::PlanT &planOf(const tessera_module *module) {
  return module->module->reader().plan();
}

size_t tessera_module_symbol_count(const tessera_module *module) {
  return module ? planOf(module).symbols.size() : 0;
}

tessera_status *tessera_module_symbol(const tessera_module *module,
                                      size_t index, tessera_symbol *out) {
  return guard([&]() -> tessera_status * {
    if (!module || index >= planOf(module).symbols.size())
      return invalid("there is no symbol " + std::to_string(index));
    const fb::SymbolT &symbol = *planOf(module).symbols[index];
    return writeStruct(
        {0, symbol.name.c_str(), symbol.maximum, symbol.multiple}, out);
  });
}

size_t tessera_module_port_count(const tessera_module *module) {
  return module ? planOf(module).ports.size() : 0;
}

tessera_status *tessera_module_port(const tessera_module *module, size_t index,
                                    tessera_port *out) {
  return guard([&]() -> tessera_status * {
    if (!module || index >= planOf(module).ports.size())
      return invalid("there is no port " + std::to_string(index));
    const fb::PortT &port = *planOf(module).ports[index];
    const fb::TensorT &tensor = *planOf(module).tensors[port.tensor];
    tessera_port result{};
    result.name = port.name.c_str();
    result.kind = static_cast<tessera_port_kind>(port.kind);
    result.dtype = static_cast<tessera_dtype>(tensor.dtype);
    result.rank = tensor.shape.size();
    for (size_t i = 0; i < tensor.shape.size(); ++i)
      result.shape[i] =
          tensor.shape[i]->terms.empty() ? tensor.shape[i]->constant : -1;
    result.shape_text = module->module->shapeText(index).c_str();
    result.view = tensor.view.c_str();
    result.zero_init = port.zero_init;
    result.check = port.check.c_str();
    result.mesh = module->meshes[index].c_str();
    return writeStruct(result, out);
  });
}

/// The local tensor of a port, on its own: a module has many.
static Outcome<LocalTensor> portTensor(const tessera_module *module,
                                       size_t port, const int64_t *symbols,
                                       size_t count) {
  if (!module || port >= planOf(module).ports.size())
    return Failure{TESSERA_INVALID_ARGUMENT,
                   "there is no port " + std::to_string(port)};
  if (!symbols && count)
    return Failure{TESSERA_INVALID_ARGUMENT, kNullPointer};
  Result<Tensors> tensors =
      Tensors::create(module->module->reader(),
                      module->module->context().rank(), {symbols, count});
  if (!tensors)
    return Failure{TESSERA_INVALID_ARGUMENT, tensors.message()};
  Result<const LocalTensor *> tensor =
      tensors->get(planOf(module).ports[port]->tensor);
  if (!tensor)
    return Failure{TESSERA_INVALID_MODULE, tensor.message()};
  return **tensor;
}

tessera_status *tessera_module_layout(const tessera_module *module, size_t port,
                                      const int64_t *symbols,
                                      size_t symbol_count,
                                      tessera_layout *out) {
  return guard([&]() -> tessera_status * {
    Outcome<LocalTensor> tensor =
        portTensor(module, port, symbols, symbol_count);
    if (!tensor)
      return fail(tensor.error());
    tessera_layout result{};
    std::vector<int64_t> strides =
        layout::localStrides(tensor->view, tensor->sizes);
    result.rank = tensor->sizes.size();
    result.global_rank = tensor->globalShape.size();
    std::copy(tensor->globalShape.begin(), tensor->globalShape.end(),
              result.global_shape);
    std::copy(tensor->sizes.begin(), tensor->sizes.end(), result.shape);
    std::copy(strides.begin(), strides.end(), result.strides);
    for (size_t i = 0; i < tensor->view.dims.size(); ++i)
      result.span[i] = tensor->view.dims[i].span;
    result.bytes = tensor->elements() * tensor->elementBytes();
    return writeStruct(result, out);
  });
}

tessera_status *tessera_module_runs(const tessera_module *module, size_t port,
                                    const int64_t *symbols, size_t symbol_count,
                                    int32_t dimension, tessera_run *runs,
                                    size_t *count) {
  return guard([&]() -> tessera_status * {
    Outcome<LocalTensor> tensor =
        portTensor(module, port, symbols, symbol_count);
    if (!tensor)
      return fail(tensor.error());
    if (dimension < 0 ||
        static_cast<size_t>(dimension) >= tensor->sizes.size() || !count ||
        (!runs && *count))
      return invalid("there is no dimension " + std::to_string(dimension) +
                     ", or no place for its runs");
    const layout::Mesh &mesh = *tensor->mesh;
    std::vector<layout::Run> found = layout::localRuns(
        tensor->view.dims[dimension].product,
        layout::boundOf(tensor->view, dimension, tensor->globalShape), mesh,
        mesh.coordsOfRank(module->module->context().rank()));
    for (size_t i = 0; i < std::min(*count, found.size()); ++i)
      runs[i] = {found[i].local, found[i].global, found[i].length};
    *count = found.size();
    return nullptr;
  });
}

tessera_status *tessera_module_memory(const tessera_module *module,
                                      const int64_t *symbols,
                                      size_t symbol_count,
                                      tessera_memory *out) {
  return guard([&]() -> tessera_status * {
    if (!module || (!symbols && symbol_count))
      return invalid(kNullPointer);
    Outcome<Prepared> prepared = Prepared::create(
        *module->module, {symbols, symbol_count}, /*pointers=*/{},
        /*together=*/false);
    if (!prepared)
      return fail(prepared.error());
    if (Outcome<Ok> known = prepared->layOut(*module->module); !known)
      return fail(known.error());
    return writeStruct(prepared->memory, out);
  });
}

//===----------------------------------------------------------------------===//
// Variants
//===----------------------------------------------------------------------===//

tessera_status *tessera_variants_push(const char *kind, const char *names) {
  return guard([&]() -> tessera_status * {
    if (!kind || !names)
      return invalid(kNullPointer);
    Status status = pushVariants(kind, names);
    return status ? nullptr : invalid(status.message());
  });
}

tessera_status *tessera_variants_push_choice(const char *choice) {
  return guard([&]() -> tessera_status * {
    if (!choice)
      return invalid(kNullPointer);
    Status status = pushChoice(choice);
    return status ? nullptr : invalid(status.message());
  });
}

tessera_status *tessera_variants_pop(void) {
  return guard([&]() -> tessera_status * {
    Status status = popVariants();
    return status ? nullptr : invalid(status.message());
  });
}

tessera_status *tessera_variants_default(const char *kind, const char *names) {
  return guard([&]() -> tessera_status * {
    if (!kind)
      return invalid(kNullPointer);
    Status status =
        names ? setDefaultVariants(kind, names) : clearDefaultVariants(kind);
    return status ? nullptr : invalid(status.message());
  });
}

//===----------------------------------------------------------------------===//
// Binding
//===----------------------------------------------------------------------===//

tessera_status *
tessera_binding_create(tessera_module *module, const int64_t *symbols,
                       size_t symbol_count, void *const *pointers,
                       size_t pointer_count, tessera_binding **out) {
  return guard([&]() -> tessera_status * {
    if (!module || !out || (!symbols && symbol_count) ||
        (!pointers && pointer_count))
      return invalid(kNullPointer);
    Outcome<std::unique_ptr<Binding>> binding = Binding::create(
        *module->module, {symbols, symbol_count}, {pointers, pointer_count});
    if (!binding)
      return fail(binding.error());
    *out = new tessera_binding{std::move(*binding)};
    return nullptr;
  });
}

void tessera_binding_destroy(tessera_binding *binding) { delete binding; }

tessera_status *tessera_binding_run(tessera_binding *binding) {
  return guard([&]() -> tessera_status * {
    if (!binding)
      return invalid("the binding is null");
    Outcome<Ok> outcome = binding->binding->run();
    return outcome ? nullptr : fail(outcome.error());
  });
}

tessera_status *tessera_binding_enqueue(tessera_binding *binding,
                                        void *stream) {
  return guard([&]() -> tessera_status * {
    if (!binding)
      return invalid("the binding is null");
    Outcome<Ok> outcome = binding->binding->enqueue(stream);
    return outcome ? nullptr : fail(outcome.error());
  });
}

tessera_status *tessera_binding_wait(tessera_binding *binding) {
  return guard([&]() -> tessera_status * {
    if (!binding)
      return invalid("the binding is null");
    Outcome<Ok> outcome = binding->binding->wait();
    return outcome ? nullptr : fail(outcome.error());
  });
}

tessera_status *tessera_binding_memory(const tessera_binding *binding,
                                       tessera_memory *out) {
  return guard([&]() -> tessera_status * {
    if (!binding)
      return invalid("the binding is null");
    return writeStruct(binding->binding->memory(), out);
  });
}

tessera_status *tessera_binding_products(const tessera_binding *binding,
                                         tessera_products *out) {
  return guard([&]() -> tessera_status * {
    if (!binding)
      return invalid("the binding is null");
    return writeStruct(binding->binding->products(), out);
  });
}

size_t tessera_binding_collective_count(const tessera_binding *binding) {
  return binding ? binding->binding->reports().size() : 0;
}

tessera_status *tessera_binding_collective(const tessera_binding *binding,
                                           size_t index,
                                           tessera_collective *out) {
  return guard([&]() -> tessera_status * {
    if (!binding || index >= binding->binding->reports().size())
      return invalid("there is no collective " + std::to_string(index));
    const Binding::Collective &each = binding->binding->reports()[index];
    const fb::StepT &step = *binding->binding->stepOf(each.work);
    const fb::CollectiveT &collective = *step.action.AsCollective();
    const Traffic &traffic = each.report->traffic;
    std::span<const StepTime> times = binding->binding->program().times();
    tessera_collective result{};
    result.kind = layout::toString(kindOf(collective));
    result.axes = each.axes.c_str();
    result.op = step.op.c_str();
    result.location = step.location.c_str();
    result.loser = collective.loser.c_str();
    result.bytes_sent = traffic.bytesSent;
    result.bytes_received = traffic.bytesReceived;
    result.copies = traffic.copies;
    result.copied_bytes = traffic.copiedBytes;
    result.tensors = 1 + collective.more.size();
    if (!times.empty())
      result.seconds = times[each.work].end - times[each.work].begin;
    return writeStruct(result, out);
  });
}

size_t tessera_binding_communicator_count(const tessera_binding *binding) {
  return binding ? binding->binding->communicators().size() : 0;
}

tessera_status *tessera_binding_communicator(const tessera_binding *binding,
                                             size_t index,
                                             tessera_communicator *out) {
  return guard([&]() -> tessera_status * {
    if (!binding || index >= binding->binding->communicators().size())
      return invalid("there is no communicator " + std::to_string(index));
    const Binding::Communicator &each =
        binding->binding->communicators()[index];
    tessera_communicator result{};
    result.library = each.note.library.c_str();
    result.ranks = each.note.ranks.c_str();
    result.axes = each.axes.c_str();
    result.groups = each.note.groups;
    result.split = each.note.split;
    result.collectives = each.collectives;
    const Handed handed = binding->binding->handedTo(static_cast<int>(index));
    result.bytes_sent = handed.bytesSent;
    result.bytes_received = handed.bytesReceived;
    result.memory = each.note.memory;
    result.seconds = each.note.seconds;
    result.calls = handed.calls;
    return writeStruct(result, out);
  });
}

size_t tessera_binding_step_count(const tessera_binding *binding) {
  return binding ? binding->binding->stepCount() : 0;
}

tessera_status *tessera_binding_step(const tessera_binding *binding,
                                     size_t index, tessera_step *out) {
  return guard([&]() -> tessera_status * {
    if (!binding || index >= binding->binding->stepCount())
      return invalid("there is no step " + std::to_string(index));
    const Binding &bound = *binding->binding;
    tessera_step result{};
    result.op = bound.op(index);
    result.location = bound.location(index);
    result.text = bound.text(index).c_str();
    result.kind = bound.kind(index);
    result.symbol = bound.symbol(index);
    result.collective = -1;
    for (size_t i = 0; i < bound.reports().size(); ++i)
      if (bound.reports()[i].work == static_cast<int>(index))
        result.collective = i;
    if (std::span<const StepTime> times = bound.program().times();
        !times.empty()) {
      result.begin = times[index].begin;
      result.end = times[index].end;
      result.enqueue_begin = times[index].enqueueBegin;
      result.enqueue_end = times[index].enqueueEnd;
    }
    return writeStruct(result, out);
  });
}

double tessera_binding_clock_error(const tessera_binding *binding) {
  return binding ? binding->binding->program().clockError() : 0;
}

size_t tessera_binding_alternative_count(const tessera_binding *binding) {
  return binding ? binding->binding->alternatives().size() : 0;
}

tessera_status *tessera_binding_alternative(const tessera_binding *binding,
                                            size_t index,
                                            tessera_alternative *out) {
  return guard([&]() -> tessera_status * {
    if (!binding || index >= binding->binding->alternatives().size())
      return invalid("there is no alternative " + std::to_string(index));
    const Binding::Alternative &choice =
        binding->binding->alternatives()[index];
    tessera_alternative result{};
    result.kind = choice.source->kind.c_str();
    result.op = choice.source->op.c_str();
    result.location = choice.source->location.c_str();
    result.chosen = choice.chosen;
    result.variants = choice.variants.c_str();
    return writeStruct(result, out);
  });
}

const char *tessera_binding_choice(const tessera_binding *binding,
                                   const char *kind) {
  return binding && kind ? binding->binding->choiceOf(kind) : "";
}

double tessera_binding_host_seconds(const tessera_binding *binding) {
  return binding ? binding->binding->program().hostSeconds() : 0;
}
