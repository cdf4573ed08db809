//===- SafetensorsTest.cpp - good and bad tensor files --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Scratch.h"

#include <sys/resource.h>

using namespace tessera;

namespace {

class Safetensors : public Scratch {
protected:
  /// That `message` holds all of `parts`.
  static void expectParts(const std::string &message,
                          std::initializer_list<const char *> parts) {
    for (const char *part : parts)
      EXPECT_NE(message.find(part), std::string::npos)
          << "no '" << part << "' in: " << message;
  }

  /// What opening a file with this header and `dataBytes` bytes says.
  std::string errorOf(const std::string &header, size_t dataBytes) {
    return openError({write("bad.safetensors",
                            fileBytes(header, std::string(dataBytes, '\1')))});
  }
};

TEST_F(Safetensors, ReadsTensorsOfAFile) {
  std::string file = write(
      "a.safetensors",
      fileBytes(R"({"__metadata__":{"k":"v"},)"
                R"("b":{"dtype":"U8","shape":[],"data_offsets":[12,13]},)"
                R"("a":{"dtype":"I32","shape":[3,1],"data_offsets":[0,12]},)"
                R"("none":{"dtype":"F32","shape":[0,4],)"
                R"("data_offsets":[12,12]}}   )",
                std::string("\1\0\0\0\2\0\0\0\3\0\0\0\7", 13)));
  Result<TensorFiles> files = TensorFiles::open({file});
  ASSERT_TRUE(files) << files.message();
  EXPECT_EQ(files->tensors().size(), 3u);
  Result<const StoredTensor *> a = files->find("a"), b = files->find("b");
  ASSERT_TRUE(a && b);
  EXPECT_EQ((*a)->shape, (layout::Shape{3, 1}));
  EXPECT_EQ((*a)->typeName, "I32");
  EXPECT_EQ(static_cast<int>((*a)->data[8]), 3);
  EXPECT_EQ((*b)->shape, layout::Shape{});
  EXPECT_EQ(static_cast<int>(*(*b)->data), 7);
}

TEST_F(Safetensors, WhatIsLaidOutReadsBack) {
  std::vector<FileTensor> tensors = {
      {"x", DType::F32, {2, 3}},
      {"y \"quoted\" \xc3\xa9", DType::BF16, {5}},
      {"empty", DType::I64, {0}}};
  FileLayout layout = layoutFile(tensors);
  EXPECT_EQ(layout.header.size() % 8, 0u);
  std::string bytes = layout.header;
  bytes.resize(layout.bytes, '\0');
  Result<TensorFiles> files =
      TensorFiles::open({write("w.safetensors", bytes)});
  ASSERT_TRUE(files) << files.message();
  for (const FileTensor &tensor : tensors) {
    Result<const StoredTensor *> stored = files->find(tensor.name);
    ASSERT_TRUE(stored) << stored.message();
    EXPECT_EQ((*stored)->shape, tensor.shape);
    EXPECT_EQ((*stored)->typeName, info(tensor.dtype).safetensors);
  }
}

TEST_F(Safetensors, RefusesWhatIsNoSafetensorsFile) {
  expectParts(openError({path("missing.safetensors")}),
              {"missing.safetensors", "No such file"});
  expectParts(openError({write("short.safetensors", "abc")}),
              {"short.safetensors", "not a safetensors file", "3 bytes"});
  expectParts(openError({write("empty.safetensors", "")}), {"0 bytes"});
  expectParts(openError({write("zip.safetensors", "PK\3\4aaaaaaaaaaaaaaa")}),
              {"not a safetensors file", "100000000"});
  expectParts(openError({write("cut.safetensors",
                               fileBytes("{}", "").replace(0, 1, "\x63"))}),
              {"header is 99 bytes", "only 2"});
  expectParts(errorOf("[1, 2]", 0), {"JSON object"});
  expectParts(errorOf("{\"a\": ", 0), {"JSON object"});
  expectParts(errorOf("{\"a\xff\": 1}", 0), {"JSON object"});
  expectParts(errorOf(std::string(100000, '['), 0), {"3 levels"});
  expectParts(errorOf("{\"a\": " + std::string(100000, '['), 0), {"3 levels"});
  expectParts(errorOf(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                      R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                      1),
              {"bad.safetensors", "'a' is there twice"});
  // Brackets in names are no levels, and of metadata nothing is kept.
  std::string metadata;
  for (int i = 0; i < 2000; ++i)
    metadata += (i ? ",\"" : "\"") + std::to_string(i) + R"(":"[[\"{{")";
  EXPECT_EQ(errorOf(R"({"__metadata__":{)" + metadata +
                        R"(},"[[[{":{"dtype":"U8","shape":[1],)"
                        R"("data_offsets":[0,1]}})",
                    1),
            "");
  expectParts(openError({folder.string()}), {"safetensors"});
}

TEST_F(Safetensors, BadHeadersTakeNoMemory) {
  auto peak = [] {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss; // KiB
  };
  const size_t size = 30'000'000;
  std::string zeros;
  while (zeros.size() < size)
    zeros += "0,";
  const std::string headers[] = {
      std::string(size, '['), "{\"a\":" + std::string(size, '{'),
      R"({"a":{"shape":[)" + zeros + "0]}}", "[" + zeros + "0]"};
  for (const std::string &header : headers) {
    const std::string file = write("bad.safetensors", fileBytes(header, ""));
    const long before = peak();
    EXPECT_NE(openError({file}), "");
    // The file is mapped; a parser's token may be as long.
    EXPECT_LT(peak() - before, 4 * 30'000) << header.substr(0, 20);
  }
}

TEST_F(Safetensors, RefusesBadEntries) {
  expectParts(errorOf(R"({"w": 3})", 0), {"bad.safetensors", "'w'", "object"});
  expectParts(errorOf(R"({"w": {"shape":[1],"data_offsets":[0,4]}})", 4),
              {"'w'", "dtype"});
  expectParts(errorOf(R"({"w": {"dtype":"F32","data_offsets":[0,4]}})", 4),
              {"'w'", "shape"});
  expectParts(errorOf(R"({"w": {"dtype":"F32","shape":[1]}})", 4),
              {"'w'", "data_offsets"});
  expectParts(
      errorOf(R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4),
      {"'w'", "-1", "whole number"});
  expectParts(
      errorOf(R"({"w":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4),
      {"1.5"});
  expectParts(
      errorOf(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4),
      {"begin <= end"});
  expectParts(
      errorOf(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
      {"span 4 bytes", "F32 of shape [2]", "2 * 4"});
  expectParts(
      errorOf(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4),
      {"end at 8", "has 4", "cut off"});
  expectParts(errorOf(R"({"w":{"dtype":"F32","shape":[4294967296,4294967296],)"
                      R"("data_offsets":[0,4]}})",
                      4),
              {"2^63"});
  expectParts(errorOf(R"({"w":{"dtype":"F32","shape":[9223372036854775807],)"
                      R"("data_offsets":[0,4]}})",
                      4),
              {"span 4 bytes"});
  expectParts(
      errorOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
              R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
              12),
      {"'b'", "within tensor 'a'", "overlap"});
  expectParts(
      errorOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8),
      {"4 bytes of no tensor before tensor 'a'"});
  expectParts(
      errorOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 8),
      {"4 bytes of no tensor at its end"});
}

TEST_F(Safetensors, SurvivesEveryTruncationAndFlip) {
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"I8","shape":[3],"data_offsets":[8,11]}})";
  const std::string whole = fileBytes(header, "0123456789a");
  ASSERT_EQ(openError({write("f.safetensors", whole)}), "");
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(openError({write("f.safetensors", whole.substr(0, size))}), "")
        << size;
  int accepted = 0;
  for (size_t at = 0; at < 8 + header.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ 1 << bit);
      Result<TensorFiles> files =
          TensorFiles::open({write("f.safetensors", flipped)});
      if (!files)
        continue;
      // Only a name or a type of the same size can differ unnoticed.
      ++accepted;
      for (const auto &[name, tensor] : files->tensors()) {
        volatile std::byte last = tensor.data[tensor.bytes - 1];
        (void)last;
      }
    }
  }
  EXPECT_GT(accepted, 0);
}

TEST_F(Safetensors, SuggestsTheNearestName) {
  std::string file = write(
      "m.safetensors",
      fileBytes(
          R"({"encoder.weight":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
          R"("other":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
          "ab"));
  Result<TensorFiles> files = TensorFiles::open({file});
  ASSERT_TRUE(files);
  expectParts(
      files->find("encoder.wieght").message(),
      {"'encoder.wieght'", "m.safetensors", "did you mean 'encoder.weight'?"});
  expectParts(files->find("bert.encoder.weight").message(),
              {"did you mean 'encoder.weight'?"});
  EXPECT_EQ(files->find("zzzzzz").message().find("did you mean"),
            std::string::npos);
}

TEST_F(Safetensors, ReadsFoldersAndIndices) {
  auto tensor = [](const std::string &name) {
    return fileBytes(
        "{\"" + name + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
        "x");
  };
  write("one.safetensors", tensor("a"));
  write("two.safetensors", tensor("b"));
  Result<TensorFiles> files = TensorFiles::open({folder.string()});
  ASSERT_TRUE(files) << files.message();
  EXPECT_EQ(files->tensors().size(), 2u);

  std::string index =
      write("model.safetensors.index.json",
            R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  EXPECT_EQ(openError({folder.string()}), "");
  EXPECT_EQ(openError({index}), "");
  write("model.safetensors.index.json",
        R"({"weight_map":{"a":"two.safetensors","b":"two.safetensors"}})");
  expectParts(openError({index}), {"'a'", "should be in", "two.safetensors"});
  write("model.safetensors.index.json", R"({"weight_map":{"a":"../x"}})");
  expectParts(openError({index}), {"'a'", "same folder"});
  write("model.safetensors.index.json", R"({"map":{}})");
  expectParts(openError({index}), {"weight_map"});
  write("model.safetensors.index.json", R"({"weight_map":{"a":"gone"}})");
  expectParts(openError({index}), {"gone", "No such file"});

  expectParts(openError({path("one.safetensors"),
                         write("again.safetensors", tensor("a"))}),
              {"again.safetensors", "'a'", "also in", "one.safetensors"});
}

TEST_F(Safetensors, NameMapNamesAndCasts) {
  Result<NameMap> map = NameMap::read(
      write("names.json", R"({"w": "layer.weight", "x": {"cast": "f32"},)"
                          R"( "y": {"name": "z", "cast": "bf16"}})"));
  ASSERT_TRUE(map) << map.message();
  EXPECT_EQ(map->lookup("w").name, "layer.weight");
  EXPECT_EQ(map->lookup("x").name, "x");
  EXPECT_EQ(map->lookup("x").cast, DType::F32);
  EXPECT_EQ(map->lookup("y").name, "z");
  EXPECT_EQ(map->lookup("y").cast, DType::BF16);
  EXPECT_EQ(map->lookup("v").name, "v");
  EXPECT_EQ(map->lookup("v").cast, std::nullopt);
  EXPECT_TRUE(map->check({"w", "x", "y", "v"}));
  expectParts(map->check({"w", "x", "yy"}).message(),
              {"names.json", "'y'", "did you mean 'yy'?"});

  auto error = [&](const char *text) {
    Result<NameMap> bad = NameMap::read(write("names.json", text));
    return bad ? "" : bad.message();
  };
  expectParts(error("[]"), {"names.json", "JSON object"});
  expectParts(error(R"({"a": 1})"), {"'a'", "name"});
  expectParts(error(R"({"a": {"cast": "float"}})"), {"'a'", "'float'", "f32"});
  expectParts(error(R"({"a": {"kast": "f32"}})"), {"'a'", "kast"});
  expectParts(NameMap::read(path("gone.json")).message(), {"gone.json"});
}

} // namespace
