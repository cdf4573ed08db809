//===- Module.h - the file between the compiler and the runtime -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A module file, little-endian:
//
//   page 0    header: magic, format version, required features, CPU level,
//             producer, number of sections, module hash; then the table of
//             sections: kind, offset, size, hash
//   page n    the sections, each from the start of a page; zeros between them
//
// A section's hash is over its bytes; the module's hash is over the header and
// the table (with that field zero), so it covers every byte of the file.
// Loading a module is trusting its code: the hashes find damage, not malice.
// The plan, though, is checked in full, so that a wrong one is an error and
// never a crash.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_MODULE_MODULE_H
#define TESSERA_MODULE_MODULE_H

#include "Layout/Transfers.h"
#include "Module/module_generated.h"
#include "Support/Limits.h"

#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tessera {

/// Another major version is refused; a higher minor one only adds what a reader
/// may ignore.
constexpr uint32_t kModuleMajor = 1;
constexpr uint32_t kModuleMinor = 0;
constexpr size_t kModulePage = 4096;

enum class Section : uint32_t { Plan, Code, Constants, Report };
constexpr size_t kNumSections = 4;

/// Bits of what a reader must know to run a module: some steps run only if
/// their variant is chosen; some products give sums, too; some have an addend;
/// some collectives move several tensors; some fetch rows; some tensors lie on
/// other devices than the plan's mesh lists.
constexpr uint64_t kFeatureAlternatives = 1;
constexpr uint64_t kFeatureSums = 2;
constexpr uint64_t kFeatureAddends = 4;
constexpr uint64_t kFeatureGroups = 8;
constexpr uint64_t kFeatureAttentionGrads = 16;
constexpr uint64_t kFeatureFetches = 32;
constexpr uint64_t kFeatureDevices = 64;

/// What the code of a module needs of the processor: 0 nothing (no code), else
/// the micro-architecture level x86-64-v<n>.
constexpr uint32_t kCPULevelCode = 3;

/// Makes module files.
class ModuleBuilder {
public:
  /// The plan, as bytes of a finished FlatBuffer or as its object form.
  void setPlan(std::string bytes);
  void setPlan(const fb::PlanT &plan);
  /// An ELF shared object for `cpuLevel`.
  void setCode(std::string elf, uint32_t cpuLevel = kCPULevelCode);
  /// Tensors of storage Constant refer to offsets in this; align them to 64.
  void setConstants(std::string bytes);
  void setReport(std::string text);
  /// Bits that a reader must know to run this module; a plan in object form
  /// adds its own.
  void setFeatures(uint64_t features);

  std::string build() const;
  /// Writes to a temporary beside `path` and renames it.
  Status write(const std::string &path) const;

private:
  std::array<std::string, kNumSections> sections;
  uint64_t features = 0;
  uint32_t cpuLevel = 0;
};

/// A module in memory, all of it checked.
class ModuleReader {
public:
  static Result<ModuleReader> open(const std::string &path);
  /// Copies the bytes.
  static Result<ModuleReader> read(std::string_view bytes);

  /// The whole file.
  std::string_view file() const { return {bytes.get(), size}; }
  uint64_t hash() const { return moduleHash; }
  const std::string &producer() const { return producerName; }
  std::string_view section(Section section) const {
    return sections[static_cast<size_t>(section)];
  }

  /// All ids, kinds, labels and texts in it are valid: see checkPlan.
  const fb::PlanT &plan() const { return *planObject; }
  const layout::Mesh &mesh() const { return checked.mesh; }
  /// On which a tensor of the plan lies: of the same axes.
  const layout::Mesh &mesh(int tensor) const {
    auto other = checked.others.find(tensor);
    return other == checked.others.end() ? checked.mesh : other->second;
  }
  /// The view of a tensor of the plan.
  const layout::View &view(int tensor) const { return checked.views[tensor]; }
  /// The sub-axes of the collective of a step; empty for other steps.
  const std::vector<layout::SubAxis> &axes(int step) const {
    return checked.axes[step];
  }

private:
  struct FreeBytes {
    void operator()(char *bytes) const;
  };
  using Bytes = std::unique_ptr<char[], FreeBytes>;
  struct Checked {
    layout::Mesh mesh;
    std::map<int, layout::Mesh> others; ///< of tensors on other devices
    std::vector<layout::View> views;
    std::vector<std::vector<layout::SubAxis>> axes;
  };

  static Bytes allocate(size_t size);
  static Result<ModuleReader> parse(Bytes bytes, size_t size);
  Status checkPlan();

  Bytes bytes;
  size_t size = 0;
  uint64_t moduleHash = 0;
  std::string producerName;
  std::array<std::string_view, kNumSections> sections;
  std::unique_ptr<fb::PlanT> planObject;
  Checked checked;
};

/// 64 bits over `bytes`; a change of any one aligned 8-byte word changes it.
uint64_t hashBytes(std::string_view bytes, uint64_t seed = 0);

/// The value of an extent for symbol values; nothing on overflow.
std::optional<int64_t> evaluate(const fb::ExtentT &extent,
                                std::span<const int64_t> symbols);
/// The tensor's shape with kDynamic for extents that depend on symbols.
layout::Shape staticShape(const fb::TensorT &tensor);
/// "2 * batch + 1"
std::string toString(const fb::ExtentT &extent, const fb::PlanT &plan);

/// The kinds of steps: gives `to` what a step does, as what it is. All that
/// differs by kind goes through this, so that a kind which it forgets does not
/// compile.
template <typename To>
decltype(auto) visit(const fb::ActionUnion &action, To &&to) {
  static_assert(static_cast<int>(fb::Action::MAX) == 5);
  switch (action.type) {
  case fb::Action::Launch:
    return to(*action.AsLaunch());
  case fb::Action::Contract:
    return to(*action.AsContract());
  case fb::Action::Attend:
    return to(*action.AsAttend());
  case fb::Action::Collective:
    return to(*action.AsCollective());
  default: // it is checked
    return to(*action.AsCopy());
  }
}

/// What a step is called: "kernel".
const char *nameOf(const fb::StepT &step);
/// The tensors that a step reads or writes: those that each step of its kind
/// has, and those that are -1 where a step has none.
void listTensors(const fb::ActionUnion &action, std::vector<int32_t> &ids,
                 std::vector<int32_t> &optional);
/// Those that it has.
std::vector<int32_t> tensorsOf(const fb::StepT &step);

layout::Step::Kind kindOf(const fb::CollectiveT &collective);
layout::Combiner combinerOf(const fb::CollectiveT &collective);
/// The tensors that it moves.
std::vector<fb::Pair> pairsOf(const fb::CollectiveT &collective);

/// What the module runs on: "cpu", "cuda:sm_90a".
inline std::string targetOf(const fb::PlanT &plan) {
  return plan.target.empty() ? "cpu" : plan.target;
}

} // namespace tessera

#endif // TESSERA_MODULE_MODULE_H
