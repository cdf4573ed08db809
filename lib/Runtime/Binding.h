//===- Binding.h - a loaded module, and a module with its sizes fixed -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_BINDING_H
#define TESSERA_RUNTIME_BINDING_H

#include "Exec/Steps.h"
#include "Layout/Arena.h"
#include "Runtime/Checks.h"
#include "Runtime/Context.h"
#include "Runtime/Variants.h"

namespace tessera {

/// A module that all ranks of a context have loaded.
class LoadedModule {
public:
  /// Collective. `source` is what reading the module gave on this rank, `why`
  /// the code of its error.
  static Outcome<std::unique_ptr<LoadedModule>>
  load(Context &context, ReadModule source,
       tessera_code why = TESSERA_INVALID_MODULE);

  Context &context() const { return *owner; }
  const ModuleReader &reader() const { return *file; }
  BackendModule &code() const { return *kernels; }

  /// For the C edge, where texts must live as long as the module.
  const std::string &shapeText(size_t port) const { return shapeTexts[port]; }
  const std::string &report() const { return reportText; }

private:
  LoadedModule(Context &context, std::shared_ptr<const ModuleReader> file)
      : owner(&context), file(std::move(file)) {}

  Context *owner;
  std::shared_ptr<const ModuleReader> file;
  std::unique_ptr<BackendModule> kernels;
  std::vector<std::string> shapeTexts;
  std::string reportText;
};

/// What a plan comes to for one rank and fixed sizes, before any memory.
struct Prepared {
  Tensors tensors;
  std::vector<int> variants; ///< the chosen ones, by alternative
  std::vector<std::unique_ptr<Work>> works{}; ///< steps, then copies to ports
  std::vector<const fb::StepT *> steps{};     ///< those that run, by work
  std::vector<int64_t> numbers{};             ///< in the plan, of these
  std::vector<bool> used{}; ///< by root tensor: whether a work touches it
  std::vector<std::optional<layout::Lifetime>> lifetimes{}; ///< by root tensor
  std::vector<layout::Lifetime> scratch{};                  ///< by work
  std::vector<int64_t> portBytes{};
  tessera_memory memory{};

  /// Tensors and the works of the steps that run: the first variants that can
  /// take these sizes, and the memory of ports, as far as that is known.
  /// `together`: on all ranks; collective, and a failure on one is one on all.
  static Outcome<Prepared> create(const LoadedModule &module,
                                  std::span<const int64_t> symbols,
                                  std::span<void *const> pointers,
                                  bool together);
  /// The rest.
  Outcome<Ok> layOut(const LoadedModule &module);
};

class Binding final : public StepNames {
public:
  /// Collective.
  static Outcome<std::unique_ptr<Binding>>
  create(LoadedModule &module, std::span<const int64_t> symbols,
         std::span<void *const> pointers);

  Outcome<Ok> run();
  Outcome<Ok> enqueue(void *stream);
  Outcome<Ok> wait();
  const tessera_memory &memory() const { return needs; }

  tessera_products products() const;

  struct Collective {
    const CollectiveReport *report;
    int work;
    std::string axes;
  };
  const std::vector<Collective> &reports() const { return collectives; }
  struct Communicator {
    CommunicatorNote note;
    std::string axes; ///< of the collectives that go through it
    uint64_t collectives = 0;
  };
  const std::vector<Communicator> &communicators() const { return comms; }
  /// What a run hands to one of them, as of when its works were last enqueued.
  Handed handedTo(int communicator) const;
  const Program &program() const { return *runner; }
  /// The steps of the plan that run, then copies to ports, which have no op.
  size_t stepCount() const { return works.size(); }
  const std::string &text(size_t step) const { return texts[step]; }
  /// Null for a copy to a port.
  const fb::StepT *stepOf(int64_t work) const;
  /// "kernel", "product", ...
  const char *kind(size_t work) const;
  /// Of a kernel; empty for other steps.
  const char *symbol(size_t work) const;
  const char *op(int64_t work) const override;
  const char *location(int64_t work) const override;
  const LoadedModule &module() const { return *loaded; }

  /// An op that has variants, and which one runs.
  struct Alternative {
    const fb::AlternativeT *source;
    const char *chosen;
    std::string variants; ///< those in the module
  };
  const std::vector<Alternative> &alternatives() const { return chosen; }
  /// Of all alternatives of a kind, as a text; "" without any.
  const char *choiceOf(std::string_view kind) const;

private:
  explicit Binding(LoadedModule &module) : loaded(&module) {}
  Outcome<Ok> prepare(Prepared &prepared, std::span<void *const> pointers);
  Outcome<Ok> fillConstants(Prepared &prepared);
  void countCommunicators();
  Outcome<Ok> watched(Ran (*doIt)(Binding &, Context &));
  Failure giveUp(const Stop &stop);

  LoadedModule *loaded;
  Context::Memories blocks;
  std::vector<std::byte *> bases;
  std::vector<std::unique_ptr<Work>> works;
  std::vector<const fb::StepT *> steps; ///< those that run, by work
  std::vector<int> variants;
  std::vector<Alternative> chosen;
  /// By kind, of those that were asked for.
  mutable std::map<std::string, std::string, std::less<>> choices;
  std::unique_ptr<Program> runner;
  Checks checks;
  bool hasRun = false;            ///< or began to
  std::vector<std::string> texts; ///< by work
  std::vector<Collective> collectives;
  std::vector<Communicator> comms;
  tessera_memory needs{};
};

} // namespace tessera

#endif // TESSERA_RUNTIME_BINDING_H
