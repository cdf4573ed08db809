//===- ModuleTest.cpp - the module file -----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is written is read back; whatever is wrong with a file is one error, and
// no file makes the reader crash.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

using namespace tessera;
using namespace tessera::test;

namespace {

/// A plan with a bit of everything.
PlanBuilder everything() {
  PlanBuilder b("<tp = 2>");
  int batch = b.symbol("batch", 64, 2);
  int x = b.input("x", {Size::symbol(batch), 8}, "[_, _]");
  int w = b.input("w", {8, 8}, "[did(tp) * _, _]");
  int h = b.tensor("h", {Size::symbol(batch), 8}, "[_, did(tp) * _]");
  int t = b.alias("t", w, fb::AliasKind::Transpose, {8, 8}, "[_, did(tp) * _]",
                  {1, 0});
  int s = b.alias("s", x, fb::AliasKind::Slice, {Size::symbol(batch), 4},
                  "[_, _]", {}, {0, 4});
  int c = b.tensor("c", {4}, "[_]", fb::Storage::Constant);
  int y = b.output("y", {Size::symbol(batch), 8}, "[_, _]");
  b.contract(x, {0, 2}, t, {2, 1}, h, {0, 1});
  fb::ScalarT scalar;
  scalar.kind = fb::ScalarKind::Value;
  scalar.extent = PlanBuilder::extent(Size::symbol(batch, 3));
  b.launch("kernel", {s, c}, {scalar});
  b.inVariant(b.alternative("attention", {{"flash", ""}, {"math", ""}}), 1);
  b.collective(fb::CollectiveKind::AllGather, h, y, {"tp"});
  return b;
}

std::string good() {
  return everything().module("code", std::string(16, '\0'), 0);
}

std::string errorOf(std::string_view bytes) {
  Result<ModuleReader> reader = ModuleReader::read(bytes);
  return reader ? "" : reader.message();
}

/// The error of a plan that `change` made wrong.
template <typename Change> std::string errorAfter(Change change) {
  PlanBuilder b = everything();
  change(b.plan);
  return errorOf(b.module("code", std::string(16, '\0'), 0));
}

bool contains(const std::string &text, const char *part) {
  return text.find(part) != std::string::npos;
}
#define EXPECT_ERROR(error, part)                                              \
  EXPECT_TRUE(contains(error, part)) << "error: '" << (error) << "'"

TEST(Module, RoundTrip) {
  Result<ModuleReader> reader = ModuleReader::read(good());
  ASSERT_TRUE(reader) << reader.message();
  EXPECT_EQ(reader->producer(), "tessera");
  EXPECT_EQ(reader->section(Section::Code), "code");
  EXPECT_EQ(reader->section(Section::Report), "made by hand");
  EXPECT_EQ(reader->section(Section::Constants).size(), 16u);
  EXPECT_EQ(reader->plan().tensors.size(), 7u);
  EXPECT_EQ(reader->view(1).dims.size(), 2u);
  ASSERT_EQ(reader->axes(2).size(), 1u);
  EXPECT_EQ(reader->axes(2)[0].size, 2);
  EXPECT_EQ(toString(*reader->plan().tensors[0]->shape[0], reader->plan()),
            "batch");
  // Sections lie on pages, in memory too.
  EXPECT_EQ(
      reinterpret_cast<uintptr_t>(reader->section(Section::Constants).data()) %
          kModulePage,
      0u);
}

TEST(Module, EqualContentsHaveEqualHashes) {
  EXPECT_EQ(ModuleReader::read(good())->hash(),
            ModuleReader::read(good())->hash());
  PlanBuilder other = everything();
  other.plan.tensors[0]->name = "z";
  EXPECT_NE(ModuleReader::read(good())->hash(),
            ModuleReader::read(other.module("code", std::string(16, '\0'), 0))
                ->hash());
}

TEST(Module, FileIsWrittenAndRead) {
  std::string path = testing::TempDir() + "/tessera_module_test.tsr";
  ModuleBuilder builder;
  builder.setPlan(PlanBuilder("<tp = 2>").plan);
  ASSERT_TRUE(builder.write(path));
  Result<ModuleReader> reader = ModuleReader::open(path);
  ASSERT_TRUE(reader) << reader.message();
  EXPECT_EQ(reader->mesh().numDevices(), 2);
  std::filesystem::remove(path);
  // Nothing is left beside it.
  for (const auto &entry :
       std::filesystem::directory_iterator(testing::TempDir()))
    EXPECT_FALSE(contains(entry.path().string(), "tessera_module_test"));
  EXPECT_ERROR(ModuleReader::open(path).message(), "No such file");
  EXPECT_ERROR(builder.write("/nowhere/at/all.tsr").message(),
               "/nowhere/at/all.tsr");
}

TEST(Module, Header) {
  EXPECT_ERROR(errorOf(""), "not a Tessera module");
  EXPECT_ERROR(errorOf("ELF and more than eight bytes"),
               "not a Tessera module");
  std::string newer = good();
  uint32_t major = 2;
  std::memcpy(newer.data() + 8, &major, sizeof major);
  EXPECT_ERROR(errorOf(newer), "version 2.0");

  ModuleBuilder features;
  features.setPlan(PlanBuilder("<tp = 2>").plan);
  features.setFeatures(kFeatureAlternatives);
  EXPECT_EQ(errorOf(features.build()), "");
  features.setFeatures(128);
  EXPECT_ERROR(errorOf(features.build()), "feature bit 7");
  EXPECT_ERROR(errorOf(everything().module("code", std::string(16, '\0'), 9)),
               "x86-64-v9");
}

/// A reader that does not know of gradients would attend again.
TEST(Module, AttentionGradientsAreAFeature) {
  auto featuresOf = [](bool isGrad) {
    PlanBuilder b("<tp = 1>");
    int x = b.input("x", {2, 4, 5, 16}, "[_, _, _, _]", fb::DType::F16);
    int l = b.input("l", {2, 4, 5}, "[_, _, _]");
    int y = b.output("y", {2, 4, 5, 16}, "[_, _, _, _]", fb::DType::F16);
    if (isGrad)
      b.attendGrad(x, x, x, x, x, l, {y, y, y}, 1, false);
    else
      b.attend(x, x, x, y, -1, 1, false);
    std::string module = b.module();
    uint64_t features = 0;
    std::memcpy(&features, module.data() + 16, sizeof features);
    return features & kFeatureAttentionGrads;
  };
  EXPECT_EQ(featuresOf(false), 0u);
  EXPECT_EQ(featuresOf(true), kFeatureAttentionGrads);
}

/// A reader that does not know of sums would leave them as they are, of addends
/// leave them out, of groups move their first tensor alone.
TEST(Module, SumsAddendsAndGroupsAreFeatures) {
  auto featuresOf = [](bool sums, bool addend = false, bool group = false) {
    PlanBuilder b = everything();
    fb::ContractT &contract = *b.plan.steps[0]->action.AsContract();
    if (sums) {
      contract.summed = fb::Summed::A;
      contract.sums = 5;
    }
    if (addend)
      contract.addend = contract.c;
    if (group)
      for (auto &step : b.plan.steps)
        if (fb::CollectiveT *collective = step->action.AsCollective())
          collective->more = {{collective->source, collective->target}};
    std::string module = b.module("code", std::string(16, '\0'), 0);
    uint64_t features = 0;
    std::memcpy(&features, module.data() + 16, sizeof features);
    return features;
  };
  EXPECT_EQ(featuresOf(false) & kFeatureSums, 0u);
  EXPECT_EQ(featuresOf(true) & kFeatureSums, kFeatureSums);
  EXPECT_EQ(featuresOf(false) & kFeatureAddends, 0u);
  EXPECT_EQ(featuresOf(false, true) & kFeatureAddends, kFeatureAddends);
  EXPECT_EQ(featuresOf(false) & kFeatureGroups, 0u);
  EXPECT_EQ(featuresOf(false, false, true) & kFeatureGroups, kFeatureGroups);
}

TEST(Module, EveryTruncationIsAnError) {
  std::string module = good();
  for (size_t size = 0; size < module.size(); size += size < 300 ? 1 : 97)
    EXPECT_NE(errorOf(std::string_view(module).substr(0, size)), "") << size;
  EXPECT_ERROR(errorOf(std::string_view(module).substr(0, module.size() - 1)),
               "truncated");
  EXPECT_ERROR(errorOf(module + "x"), "damaged");
}

TEST(Module, EveryFlippedByteIsAnError) {
  std::string module = good();
  for (size_t i = 0; i < module.size(); ++i) {
    char old = module[i];
    module[i] ^= 1 << (i % 8);
    EXPECT_NE(errorOf(module), "") << "byte " << i;
    module[i] = old;
  }
  EXPECT_EQ(errorOf(module), "");
}

TEST(Module, DamagedPlanWithAFittingHashNeverCrashes) {
  flatbuffers::FlatBufferBuilder builder;
  fb::PlanT plan = std::move(everything().plan);
  fb::FinishPlanBuffer(builder, fb::Plan::Pack(builder, &plan));
  std::string bytes(reinterpret_cast<char *>(builder.GetBufferPointer()),
                    builder.GetSize());
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = bytes;
    for (unsigned n = 1 + random() % 4; n > 0; --n)
      damaged[random() % damaged.size()] =
          random() % 2 ? random() : static_cast<char>(random() % 4);
    ModuleBuilder module;
    module.setPlan(damaged);
    module.setCode("code", 0);
    module.setConstants(std::string(16, '\0'));
    refused += errorOf(module.build()) != "";
  }
  EXPECT_GT(refused, 10000);
}

TEST(Module, PlansThatMeanNothing) {
  using fb::PlanT;
  auto launch = [](PlanT &p) -> fb::LaunchT & {
    return *p.steps[1]->action.AsLaunch();
  };
  auto contract = [](PlanT &p) -> fb::ContractT & {
    return *p.steps[0]->action.AsContract();
  };
  auto collective = [](PlanT &p) -> fb::CollectiveT & {
    return *p.steps[2]->action.AsCollective();
  };
  EXPECT_EQ(errorAfter([](PlanT &) {}), "");
  EXPECT_ERROR(errorAfter([](PlanT &p) { p.mesh = "<tp"; }), "mesh '<tp'");
  EXPECT_ERROR(errorAfter([](PlanT &p) { p.mesh = "<tp = 4000000000>"; }),
               "devices");
  EXPECT_ERROR(errorAfter([](PlanT &p) {
                 p.tensors[1]->devices = {0, 0};
               }),
               "tensor 1 ('w'): its devices are no permutation of ranks");
  EXPECT_ERROR(errorAfter([](PlanT &p) {
                 p.tensors[1]->devices = {1, 0};
               }),
               "it is an alias of a tensor on other devices");
  EXPECT_ERROR(errorAfter([](PlanT &p) {
                 p.tensors[2]->devices = {1, 0};
               }),
               "lies on other devices than the plan's");
  EXPECT_ERROR(errorAfter([](PlanT &p) { p.symbols[0]->multiple = 0; }),
               "symbol 'batch'");
  EXPECT_ERROR(errorAfter([](PlanT &p) { p.symbols[0]->maximum = INT64_MAX; }),
               "overflow");
  EXPECT_ERROR(errorAfter([](PlanT &p) {
                 p.tensors[0]->shape[0]->terms[0]->symbols[0] = 1;
               }),
               "there is no symbol 1");
  EXPECT_ERROR(errorAfter([](PlanT &p) { p.tensors[1]->view = "[_, did(x)]"; }),
               "tensor 1 ('w'): view '[_, did(x)]'");
  EXPECT_ERROR(errorAfter([](PlanT &p) { p.tensors[1]->view = "[_]"; }),
               "tensor 1");
  EXPECT_ERROR(errorAfter([](PlanT &p) { p.tensors[3]->alias->source = 99; }),
               "there is no tensor 99");
  EXPECT_ERROR(errorAfter([](PlanT &p) { p.tensors[3]->alias->source = 3; }),
               "an alias of itself");
  EXPECT_ERROR(errorAfter([](PlanT &p) { p.tensors[3]->alias->dims = {1, 1}; }),
               "no permutation");
  EXPECT_ERROR(
      errorAfter([](PlanT &p) { p.tensors[4]->alias->offsets.clear(); }),
      "one offset for each");
  EXPECT_ERROR(errorAfter([](PlanT &p) { p.tensors[5]->constant_offset = 4; }),
               "beyond the module's constants");
  EXPECT_ERROR(errorAfter([](PlanT &p) { p.ports[0]->tensor = -1; }),
               "there is no tensor -1");
  EXPECT_ERROR(errorAfter([](PlanT &p) { p.ports[1]->name = "x"; }),
               "two of this name");
  EXPECT_ERROR(errorAfter([](PlanT &p) { p.ports.pop_back(); }), "no port");
  EXPECT_ERROR(errorAfter([&](PlanT &p) { launch(p).tensors[0] = 7; }),
               "step 1 ('tv.map' at test.mlir:2:1): there is no tensor 7");
  EXPECT_ERROR(errorAfter([&](PlanT &p) { launch(p).symbol = ""; }),
               "without a name");
  EXPECT_ERROR(errorAfter([&](PlanT &p) { launch(p).scalars[0]->extent = {}; }),
               "without a value");
  EXPECT_ERROR(errorAfter([&](PlanT &p) { contract(p).a_labels = {0}; }),
               "one label for each");
  EXPECT_ERROR(errorAfter([&](PlanT &p) { contract(p).a_labels = {0, 7}; }),
               "stands alone");
  EXPECT_ERROR(errorAfter([&](PlanT &p) { contract(p).a_labels = {0, 0}; }),
               "twice");
  EXPECT_ERROR(errorAfter([&](PlanT &p) { contract(p).addend = 5; }),
               "another rank");
  // All that means something, whatever a library does of it.
  EXPECT_EQ(errorAfter([&](PlanT &p) {
              contract(p).bias = 5;
              contract(p).addend = 6;
              contract(p).epilogue = fb::Epilogue::GeluTanh;
              contract(p).aux = 6;
              contract(p).summed = fb::Summed::A;
              contract(p).sums = 5;
            }),
            "");
  EXPECT_ERROR(errorAfter([&](PlanT &p) {
                 contract(p).epilogue = static_cast<fb::Epilogue>(9);
               }),
               "unknown epilogue 9");
  EXPECT_ERROR(errorAfter([&](PlanT &p) { contract(p).aux = 6; }),
               "aux has no epilogue");
  EXPECT_ERROR(errorAfter([&](PlanT &p) {
                 contract(p).epilogue = fb::Epilogue::GeluTanh;
                 contract(p).aux = 5;
               }),
               "another rank");
  auto grad = [&](PlanT &p) -> fb::ContractT & {
    contract(p).epilogue = fb::Epilogue::GeluTanhGrad;
    contract(p).x = 6;
    contract(p).summed = fb::Summed::C;
    contract(p).sums = 5;
    return contract(p);
  };
  EXPECT_EQ(errorAfter(grad), "");
  EXPECT_ERROR(errorAfter([&](PlanT &p) { grad(p).x = -1; }),
               "x belongs to the epilogue GeluTanhGrad");
  EXPECT_ERROR(errorAfter([&](PlanT &p) { contract(p).x = 6; }),
               "x belongs to the epilogue GeluTanhGrad");
  EXPECT_ERROR(errorAfter([&](PlanT &p) { grad(p).x = 99; }),
               "there is no tensor 99");
  EXPECT_ERROR(errorAfter([&](PlanT &p) { grad(p).x = 5; }), "another rank");
  EXPECT_ERROR(errorAfter([&](PlanT &p) {
                 grad(p).summed = static_cast<fb::Summed>(9);
               }),
               "unknown sums 9");
  EXPECT_ERROR(errorAfter([&](PlanT &p) { grad(p).sums = -1; }),
               "nowhere to store them");
  EXPECT_ERROR(errorAfter([&](PlanT &p) { grad(p).summed = fb::Summed::None; }),
               "sums of nothing");
  EXPECT_ERROR(errorAfter([&](PlanT &p) { grad(p).sums = 6; }),
               "sums have one dimension");
  EXPECT_ERROR(errorAfter([&](PlanT &p) { contract(p).bias = 9; }),
               "there is no tensor 9");
  EXPECT_ERROR(errorAfter([&](PlanT &p) { contract(p).bias = 0; }),
               "a bias has one dimension");
  EXPECT_ERROR(errorAfter([&](PlanT &p) {
                 contract(p).bias = 5;
                 p.tensors[5]->dtype = fb::DType::BF16;
               }),
               "other elements");
  EXPECT_ERROR(errorAfter([&](PlanT &p) { collective(p).axes = {"dp"}; }),
               "axes [dp]");
  EXPECT_ERROR(errorAfter([&](PlanT &p) { collective(p).axes = {"tp", "tp"}; }),
               "axes [tp, tp]");
  EXPECT_ERROR(errorAfter([&](PlanT &p) { collective(p).target = 1; }),
               "different global shapes");
  EXPECT_ERROR(errorAfter([&](PlanT &p) {
                 collective(p).more = {{collective(p).source, 1}};
               }),
               "different global shapes");
  EXPECT_ERROR(errorAfter([&](PlanT &p) {
                 collective(p).more = {{0, 99}};
               }),
               "there is no tensor 99");
  EXPECT_ERROR(errorOf(everything().module("", std::string(16, 0))), "no code");
}

TEST(Module, Fetch) {
  using PlanT = fb::PlanT;
  using Fetch = fb::CollectiveT;
  auto errorAfter = [](auto change) {
    PlanBuilder b("<tp = 2, dp = 2>");
    int rows = b.input("rows", {6, 4, 8}, "[did(tp) * _, _, did(dp) * _]");
    int at = b.input("at", {5, 2}, "[_, _]", fb::DType::I32);
    int y = b.output("y", {5, 2, 8}, "[_, _, did(dp) * _]");
    b.fetch(rows, {at, at}, y, {"tp"});
    change(b.plan, *b.plan.steps[0]->action.AsCollective());
    return errorOf(b.module());
  };
  EXPECT_EQ(errorAfter([](PlanT &, Fetch &) {}), "");
  const std::tuple<const char *, void (*)(PlanT &, Fetch &)> cases[] = {
      {"needs indices", [](PlanT &, Fetch &f) { f.indices.clear(); }},
      {"needs indices, and one tensor",
       [](PlanT &, Fetch &f) { f.more = {{f.source, f.target}}; }},
      {"no tensor 9", [](PlanT &, Fetch &f) { f.indices[1] = 9; }},
      {"i32 or i64, and alike", [](PlanT &, Fetch &f) { f.indices[1] = 2; }},
      {"what a fetch gives", [](PlanT &, Fetch &f) { f.indices.pop_back(); }},
      {"more indices than its table",
       [](PlanT &, Fetch &f) { f.indices = {1, 1, 1, 1}; }},
      {"must lie in blocks", [](PlanT &, Fetch &f) { f.axes = {"dp"}; }},
      {"must lie in blocks", [](PlanT &, Fetch &f) { f.axes.clear(); }},
      {"must lie in blocks",
       [](PlanT &p, Fetch &) {
         p.tensors[0]->view = "[_ * did(tp), _, did(dp) * _]";
       }},
      {"a split index",
       [](PlanT &p, Fetch &f) {
         p.tensors[0]->view = "[did(tp) * _, did(dp) * _, _]";
         p.tensors[2]->view = "[_, _, _]";
       }},
      {"as its indices and rows",
       [](PlanT &p, Fetch &) { p.tensors[2]->view = "[_, _, _]"; }},
      {"a fetch of partial values",
       [](PlanT &p, Fetch &) {
         p.tensors[2]->view = "[_, _, did(dp) * _], partial = [tp : sum]";
       }},
      {"different element types",
       [](PlanT &p, Fetch &) { p.tensors[2]->dtype = fb::DType::I32; }},
      {"that is no fetch",
       [](PlanT &, Fetch &f) { f.kind = fb::CollectiveKind::Exchange; }}};
  for (const auto &[text, change] : cases)
    EXPECT_ERROR(errorAfter(change), text);
}

TEST(Module, Attention) {
  auto errorAfter = [](auto change) {
    PlanBuilder b("<tp = 2>");
    const std::string view = "[_, did(tp) * _, _, _]";
    int q = b.input("q", {2, 4, 5, 16}, view, fb::DType::BF16);
    int k = b.input("k", {2, 2, 5, 16}, view, fb::DType::BF16);
    int o = b.output("o", {2, 4, 5, 16}, view, fb::DType::BF16);
    int l = b.output("l", {2, 4, 5}, "[_, did(tp) * _, _]");
    b.attend(q, k, k, o, l, 0.25, true);
    change(b.plan, *b.plan.steps[0]->action.AsAttend());
    return errorOf(b.module());
  };
  using fb::AttendT, fb::PlanT;
  EXPECT_EQ(errorAfter([](PlanT &, AttendT &) {}), "");
  EXPECT_EQ(errorAfter([](PlanT &, AttendT &a) { a.lse = -1; }), "");
  EXPECT_ERROR(
      errorAfter([](PlanT &, AttendT &a) { a.query = 4; }),
      "step 0 ('tv.attention' at test.mlir:1:1): there is no tensor 4");
  EXPECT_ERROR(errorAfter([](PlanT &, AttendT &a) { a.result = -1; }),
               "there is no tensor -1");
  EXPECT_ERROR(errorAfter([](PlanT &, AttendT &a) { a.lse = -2; }),
               "there is no tensor -2");
  EXPECT_ERROR(errorAfter([](PlanT &, AttendT &a) { a.value = 3; }),
               "tensor 3 ('l') must have 4 local dimensions");
  EXPECT_ERROR(errorAfter([](PlanT &, AttendT &a) { a.lse = 2; }),
               "tensor 2 ('o') must have 3 local dimensions and be f32");
  EXPECT_ERROR(errorAfter([](PlanT &p, AttendT &) {
                 p.tensors[3]->dtype = fb::DType::BF16;
               }),
               "tensor 3 ('l') must have 3 local dimensions and be f32");
  EXPECT_ERROR(errorAfter([](PlanT &p, AttendT &) {
                 p.tensors[1]->dtype = fb::DType::F16;
               }),
               "different element types");
  EXPECT_ERROR(errorAfter([](PlanT &p, AttendT &) {
                 for (int i = 0; i < 3; ++i)
                   p.tensors[i]->dtype = fb::DType::F32;
               }),
               "attention in f32 is not supported, only in bf16 and f16");
  EXPECT_ERROR(errorAfter([](PlanT &, AttendT &a) { a.scale = INFINITY; }),
               "no finite number");
}

TEST(Module, AttentionGradients) {
  auto errorAfter = [](auto change) {
    PlanBuilder b("<tp = 1>");
    const std::string view = "[_, _, _, _]";
    int q = b.input("q", {2, 4, 5, 16}, view, fb::DType::BF16);
    int k = b.input("k", {2, 2, 5, 16}, view, fb::DType::BF16);
    int l = b.input("l", {2, 4, 5}, "[_, _, _]");
    int dq = b.output("dq", {2, 4, 5, 16}, view, fb::DType::BF16);
    int dk = b.output("dk", {2, 2, 5, 16}, view, fb::DType::BF16);
    int dv = b.output("dv", {2, 2, 5, 16}, view, fb::DType::BF16);
    b.attendGrad(q, q, k, k, q, l, {dq, dk, dv}, 0.25, true);
    change(*b.plan.steps[0]->action.AsAttend());
    return errorOf(b.module());
  };
  using fb::AttendT;
  const char *parts = "a gradient of attention has all of its gradients and "
                      "the log-sum-exp, an attention no gradient";
  EXPECT_EQ(errorAfter([](AttendT &) {}), "");
  EXPECT_ERROR(errorAfter([](AttendT &a) { a.lse = -1; }), parts);
  EXPECT_ERROR(errorAfter([](AttendT &a) { a.grad = -1; }), parts);
  EXPECT_ERROR(errorAfter([](AttendT &a) { a.key_grad = -1; }), parts);
  EXPECT_ERROR(errorAfter([](AttendT &a) { a.value_grad = 2; }),
               "tensor 2 ('l') must have 4 local dimensions");
  EXPECT_ERROR(errorAfter([](AttendT &a) { a.query_grad = 17; }),
               "there is no tensor 17");
}

TEST(Module, DeviceFunctions) {
  auto errorAfter = [](auto change) {
    PlanBuilder b = everything();
    b.forCUDA();
    fb::LaunchT &launch = *b.plan.steps[1]->action.AsLaunch();
    change(b.plan, launch, *launch.functions[0]);
    return errorOf(b.module("code", std::string(16, '\0'), 0));
  };
  using fb::FunctionT, fb::LaunchT, fb::PlanT;
  EXPECT_EQ(errorAfter([](PlanT &, LaunchT &, FunctionT &) {}), "");
  EXPECT_ERROR(errorAfter([](PlanT &p, LaunchT &, FunctionT &) {
                 p.binaries[0]->offset = 3;
                 p.binaries[0]->size = 2;
               }),
               "binary 'kernels' lies outside of the code");
  EXPECT_ERROR(errorAfter([](PlanT &p, LaunchT &, FunctionT &) {
                 p.binaries[0]->ptx_offset = UINT64_MAX;
                 p.binaries[0]->ptx_size = 2;
               }),
               "binary 'kernels' lies outside of the code");
  EXPECT_ERROR(errorAfter([](PlanT &p, LaunchT &, FunctionT &) {
                 p.binaries[0]->offset = UINT64_MAX;
               }),
               "binary 'kernels' lies outside of the code");
  EXPECT_ERROR(
      errorAfter([](PlanT &p, LaunchT &, FunctionT &) { p.target.clear(); }),
      "no target");
  EXPECT_ERROR(errorAfter([](PlanT &p, LaunchT &, FunctionT &) {
                 p.target.clear();
                 p.binaries.clear();
               }),
               "device functions in a module for a CPU");
  EXPECT_ERROR(
      errorAfter([](PlanT &, LaunchT &l, FunctionT &) { l.functions.clear(); }),
      "step 1 ('tv.map' at test.mlir:2:1): kernel 'kernel' has no device "
      "function");
  EXPECT_ERROR(
      errorAfter([](PlanT &, LaunchT &, FunctionT &f) { f.binary = 1; }),
      "device function 'kernel': there is no binary 1");
  EXPECT_ERROR(
      errorAfter([](PlanT &, LaunchT &, FunctionT &f) { f.threads = 1025; }),
      "1025 threads; a block has 1 to 1024");
  EXPECT_ERROR(
      errorAfter([](PlanT &, LaunchT &, FunctionT &f) { f.shared = 232449; }),
      "232449 bytes of shared memory; a block has at most 232448");
  EXPECT_ERROR(
      errorAfter([](PlanT &, LaunchT &, FunctionT &f) { f.cluster = 0; }),
      "clusters of 0 blocks; there are 1 to 8");
  EXPECT_ERROR(
      errorAfter([](PlanT &, LaunchT &, FunctionT &f) { f.cluster = 9; }),
      "clusters of 9 blocks; there are 1 to 8");
  EXPECT_ERROR(
      errorAfter([](PlanT &, LaunchT &, FunctionT &f) { f.items = 0; }),
      "0 points a block");
  EXPECT_ERROR(errorAfter([](PlanT &, LaunchT &, FunctionT &f) {
                 f.space.push_back(std::make_unique<fb::ScalarT>());
                 f.space[0]->kind = fb::ScalarKind::Local;
                 f.space[0]->tensor = 0;
                 f.space[0]->dim = 2;
               }),
               "tensor 0 ('x') has no local dimension 2");
}

TEST(Module, Checks) {
  auto make = [](fb::DType dtype, int checked) {
    PlanBuilder b("<tp = 2>");
    int x = b.input("x", {4}, "[_]", dtype);
    b.copy(x, b.output("y", {4}, "[_]", dtype));
    b.plan.ports[checked]->check = "x is not 0";
    return b.module();
  };
  EXPECT_EQ(errorOf(make(fb::DType::I32, 1)), "");
  const char *error = "only an output of integers is checked";
  EXPECT_ERROR(errorOf(make(fb::DType::I32, 0)), error);
  EXPECT_ERROR(errorOf(make(fb::DType::F32, 1)), error);
}

TEST(Module, Alternatives) {
  // x -> a or b (through t) -> y -> z
  auto make = [](auto change) {
    PlanBuilder b("<tp = 2>");
    int x = b.input("x", {4}, "[_]");
    int t = b.tensor("t", {4}, "[_]"), y = b.tensor("y", {4}, "[_]");
    int z = b.output("z", {4}, "[_]");
    int of = b.alternative("attention",
                           {{"a", ""}, {"c", "it does not fit"}, {"b", ""}});
    b.copy(x, y);
    b.inVariant(of, 0);
    b.copy(x, t);
    b.inVariant(of, 2);
    b.copy(t, y);
    b.inVariant(of, 2);
    b.copy(y, z);
    change(b.plan);
    return b.module();
  };
  auto errorAfter = [&](auto change) { return errorOf(make(change)); };
  using fb::PlanT;
  Result<ModuleReader> reader = ModuleReader::read(make([](PlanT &) {}));
  ASSERT_TRUE(reader) << reader.message();
  EXPECT_EQ(reader->plan().alternatives[0]->variants[1]->reason,
            "it does not fit");
  EXPECT_EQ(reader->plan().steps[1]->variant, 2);
  EXPECT_EQ(reader->plan().steps[3]->alternative, -1);

  EXPECT_ERROR(
      errorAfter([](PlanT &p) { p.steps[1]->alternative = 1; }),
      "step 1 ('tv.copy' at test.mlir:2:1): there is no alternative 1");
  EXPECT_ERROR(errorAfter([](PlanT &p) { p.steps[1]->alternative = -2; }),
               "there is no alternative -2");
  for (int variant : {-1, 1, 3})
    EXPECT_ERROR(errorAfter([&](PlanT &p) { p.steps[1]->variant = variant; }),
                 ("there is no variant " + std::to_string(variant)).c_str());
  EXPECT_ERROR(errorAfter([](PlanT &p) { p.alternatives[0]->kind.clear(); }),
               "alternative 0: it has no kind");
  EXPECT_ERROR(
      errorAfter([](PlanT &p) { p.alternatives[0]->variants[2]->name = "a"; }),
      "alternative 0: two variants are named 'a'");
  EXPECT_ERROR(errorAfter([](PlanT &p) {
                 for (int variant : {0, 2})
                   p.alternatives[0]->variants[variant]->reason = "gone";
               }),
               "alternative 0: it has no variant");
  // Whatever is chosen, what a step reads is there.
  const char *y = "tensor 2 ('y') is written in variant 'a' of attention only";
  EXPECT_ERROR(errorAfter([](PlanT &p) { p.steps.erase(p.steps.begin() + 2); }),
               y);
  EXPECT_ERROR(errorAfter([](PlanT &p) { std::swap(p.steps[2], p.steps[3]); }),
               y);
  EXPECT_ERROR(
      errorAfter([](PlanT &p) { p.steps[3]->action.AsCopy()->source = 1; }),
      "tensor 1 ('t') is written in variant 'b' of attention only");
  EXPECT_ERROR(errorAfter([](PlanT &p) {
                 p.steps[2]->action.AsCopy()->target = 3;
                 p.steps.pop_back();
               }),
               "port 'z': tensor 3 ('z') is written in variant 'b'");
  // Through a window, and from another alternative.
  EXPECT_ERROR(errorAfter([](PlanT &p) {
                 auto window = std::make_unique<fb::TensorT>(*p.tensors[1]);
                 window->storage = fb::Storage::Alias;
                 window->alias = std::make_unique<fb::AliasT>();
                 window->alias->source = 1;
                 p.tensors.push_back(std::move(window));
                 p.steps[3]->action.AsCopy()->source = 4;
               }),
               "is written in variant 'b' of attention only");
  EXPECT_ERROR(errorAfter([](PlanT &p) {
                 p.alternatives.push_back(
                     std::make_unique<fb::AlternativeT>(*p.alternatives[0]));
                 p.steps[2]->alternative = 1;
               }),
               "tensor 1 ('t') is written in variant 'b' of attention only");
  // A tensor that is there anyway.
  EXPECT_EQ(
      errorAfter([](PlanT &p) { p.steps[3]->action.AsCopy()->source = 0; }),
      "");
}

TEST(Module, StepsBesideOthers) {
  auto check = [](int32_t until, bool isRead = false) {
    PlanBuilder plan("<tp = 1>");
    const int x = plan.input("x", {8}, "[_]"), y = plan.output("y", {8}, "[_]");
    const int a = plan.tensor("a", {8}, "[_]"),
              b = plan.tensor("b", {8}, "[_]");
    plan.copy(x, a);
    plan.plan.steps[0]->until = until;
    plan.copy(isRead ? a : x, b);
    plan.copy(a, y);
    return errorOf(plan.module());
  };
  EXPECT_EQ(check(2), "");
  EXPECT_EQ(check(1, /*isRead=*/true), "");
  EXPECT_ERROR(check(2, /*isRead=*/true),
               "step 1 ('tv.copy' at test.mlir:2:1): tensor 2 ('a') is there "
               "only for step 2 and those behind it");
  EXPECT_ERROR(check(3), "step 2 ('tv.copy' at test.mlir:3:1): tensor 2 ('a') "
                         "is there only for step 3 and those behind it");
  for (int32_t none : {0, 4, -2})
    EXPECT_ERROR(check(none), ("step " + std::to_string(none) +
                               " cannot be the first that waits for it")
                                  .c_str());
}

TEST(Module, Extents) {
  fb::ExtentT extent = *PlanBuilder::extent(Size::symbol(0, 3));
  extent.constant = 4;
  int64_t values[] = {5};
  EXPECT_EQ(evaluate(extent, values), 19);
  values[0] = INT64_MAX / 2;
  EXPECT_EQ(evaluate(extent, values), std::nullopt);
}

} // namespace
