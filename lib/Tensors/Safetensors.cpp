//===- Safetensors.cpp - tensors in files ---------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing in a file is trusted: each length, offset and number is checked
// before it is used, and an error names the file, the tensor and what would be
// right.
//
//===----------------------------------------------------------------------===//

#include "Tensors/Safetensors.h"
#include "Support/Names.h"
#include "Support/Try.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <functional>
#include <set>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tessera {

using nlohmann::json;

static constexpr uint64_t kMaxHeader = 100'000'000;

static std::string systemError() { return std::strerror(errno); }

//===----------------------------------------------------------------------===//
// Small helpers
//===----------------------------------------------------------------------===//

std::string toString(const layout::Shape &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") +
            (shape[i] == layout::kDynamic ? "?" : std::to_string(shape[i]));
  return text + "]";
}

//===----------------------------------------------------------------------===//
// Files in memory
//===----------------------------------------------------------------------===//

class TensorFiles::Mapping {
public:
  Mapping(const std::byte *data, size_t size) : data(data), size(size) {}
  Mapping(const Mapping &) = delete;
  ~Mapping() {
    if (size)
      munmap(const_cast<std::byte *>(data), size);
  }

  static Result<std::shared_ptr<const Mapping>> open(const std::string &path) {
    // A pipe would wait for who writes.
    int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
      return Error{path + ": cannot be opened: " + systemError()};
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
      close(fd);
      return Error{path + ": is not a file"};
    }
    size_t size = static_cast<size_t>(status.st_size);
    void *data = nullptr;
    if (size)
      data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    std::string reason = systemError();
    close(fd);
    if (data == MAP_FAILED)
      return Error{path + ": cannot be mapped: " + reason};
    return std::make_shared<const Mapping>(static_cast<std::byte *>(data),
                                           size);
  }

  const std::byte *data;
  size_t size;
};

/// Whether JSON has more levels of objects and arrays: so that a parser, which
/// remembers each, needs no memory for them.
static bool nestsDeeper(std::string_view text, int levels) {
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inString && c == '\\')
      ++i;
    else if (c == '"')
      inString = !inString;
    else if (!inString && (c == '{' || c == '['))
      ++depth;
    else if (!inString && (c == '}' || c == ']'))
      --depth;
    if (depth > levels)
      return true;
  }
  return false;
}

/// Takes a member of the outermost object, or says why not.
using TakeMember = std::function<Status(const std::string &, const json &)>;

/// Gives `take` the members of a JSON object one by one, so that no more than
/// one is in memory; of that no more than our files have: levels and values.
/// The member `skipped` may be anything. An error without words: it is no
/// object.
static Status parseObject(const std::byte *data, size_t size, int levels,
                          size_t maxValues, const char *skipped,
                          const TakeMember &take) {
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  if (nestsDeeper(text, levels))
    return Error{"it is nested more than " + std::to_string(levels) +
                 " levels deep"};
  Status status = Ok{};
  std::string key;
  size_t values = 0;
  std::set<std::string> keys;
  // Of an object or an array, what comes last is its end.
  auto see = [&](int depth, json::parse_event_t event, json &value) {
    using Event = json::parse_event_t;
    const bool begins =
        event == Event::object_start || event == Event::array_start;
    if (depth == 0 && event == Event::array_start)
      status = Error{};
    if (!status || depth == 0)
      return bool(status);
    if (depth == 1 && event == Event::key) {
      key = *value.get_ptr<const std::string *>();
      values = 0;
      if (!keys.insert(key).second)
        status = Error{"'" + key + "' is there twice"};
      return bool(status);
    }
    if (key == skipped)
      return false;
    if (begins || event == Event::key)
      return true;
    if (++values > maxValues)
      status = Error{"'" + key + "' has more than " +
                     std::to_string(maxValues) + " values"};
    else if (depth == 1)
      status = take(key, value);
    return status && depth > 1;
  };
  const json rest = json::parse(text.begin(), text.end(), see,
                                /*allow_exceptions=*/false);
  if (status && !rest.is_object())
    return Error{};
  return status;
}

/// So many values of a member are more than any tensor has.
static constexpr size_t kMaxValues = 1000;

/// A number of JSON that is a whole one in [0, 2^63).
static std::optional<int64_t> asCount(const json &value) {
  const auto *number = value.get_ptr<const json::number_unsigned_t *>();
  if (!number || *number > INT64_MAX)
    return std::nullopt;
  return static_cast<int64_t>(*number);
}

/// One entry of a header. `bytes` is the size of the part after the header,
/// which starts at `data`.
static Result<StoredTensor> parseTensor(const std::string &file,
                                        const std::string &name,
                                        const json &entry,
                                        const std::byte *data, size_t bytes) {
  auto fail = [&](const std::string &what) {
    return Error{file + ": tensor '" + name + "': " + what};
  };
  if (!entry.is_object())
    return fail("its entry in the header is not a JSON object");
  auto typeName = entry.find("dtype"), shape = entry.find("shape"),
       offsets = entry.find("data_offsets");
  if (typeName == entry.end() || !typeName->is_string())
    return fail("its entry in the header needs a \"dtype\" like \"F32\"");
  if (shape == entry.end() || !shape->is_array())
    return fail("its entry in the header needs a \"shape\" like [2, 3]");
  if (offsets == entry.end() || !offsets->is_array() || offsets->size() != 2)
    return fail("its entry in the header needs \"data_offsets\" like [0, 24]");

  StoredTensor tensor{file, name,    *typeName->get_ptr<const std::string *>(),
                      {},   nullptr, 0};
  int64_t elements = 1;
  for (const json &extent : *shape) {
    std::optional<int64_t> count = asCount(extent);
    if (!count)
      return fail("its \"shape\" holds " +
                  extent.dump(-1, ' ', true, json::error_handler_t::replace) +
                  ", not a whole number");
    if (__builtin_mul_overflow(elements, *count, &elements))
      return fail("its \"shape\" has more than 2^63 elements");
    tensor.shape.push_back(*count);
  }
  std::optional<int64_t> begin = asCount((*offsets)[0]),
                         end = asCount((*offsets)[1]);
  if (!begin || !end || *begin > *end)
    return fail("its \"data_offsets\" must be two whole numbers, begin <= end");
  if (static_cast<uint64_t>(*end) > bytes)
    return fail("its bytes end at " + std::to_string(*end) +
                ", but the file has " + std::to_string(bytes) +
                " after the header: it is damaged or cut off");
  tensor.data = data + *begin;
  tensor.bytes = static_cast<size_t>(*end - *begin);
  // Of a type that Tessera lacks the size is not known; using it is an error.
  if (std::optional<DType> dtype = dtypeFromSafetensors(tensor.typeName)) {
    int64_t needed;
    if (__builtin_mul_overflow(elements, info(*dtype).bytes, &needed) ||
        needed != *end - *begin)
      return fail("its \"data_offsets\" span " + std::to_string(tensor.bytes) +
                  " bytes, but " + tensor.typeName + " of shape " +
                  toString(tensor.shape) + " is " + std::to_string(elements) +
                  " * " + std::to_string(info(*dtype).bytes));
  }
  return tensor;
}

static Result<std::vector<StoredTensor>>
parseFile(const std::string &file, const std::byte *data, size_t size) {
  auto fail = [&](const std::string &what) {
    return Error{file + ": " + what};
  };
  if (size < 8)
    return fail("is not a safetensors file: it has " + std::to_string(size) +
                " bytes, and its header's length alone takes 8");
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | static_cast<uint64_t>(data[i]);
  if (length > kMaxHeader)
    return fail("is not a safetensors file, or a damaged one: its header would "
                "be " +
                std::to_string(length) + " bytes long; at most " +
                std::to_string(kMaxHeader) + " are allowed");
  if (length > size - 8)
    return fail("its header is " + std::to_string(length) +
                " bytes long, but the file has only " +
                std::to_string(size - 8) +
                " after the first 8: it is damaged "
                "or cut off");
  size_t bytes = size - 8 - length;
  std::vector<StoredTensor> tensors;
  bool isTensor = false; // what is wrong
  Status parsed =
      parseObject(data + 8, length, 3, kMaxValues, "__metadata__",
                  [&](const std::string &name, const json &entry) -> Status {
                    Result<StoredTensor> tensor = parseTensor(
                        file, name, entry, data + 8 + length, bytes);
                    isTensor = !tensor;
                    if (!tensor)
                      return tensor.error();
                    tensors.push_back(std::move(*tensor));
                    return Ok{};
                  });
  if (!parsed && isTensor)
    return parsed.error();
  if (!parsed && !parsed.message().empty())
    return fail("its header is damaged: " + parsed.message());
  if (!parsed)
    return fail(
        "is not a safetensors file, or a damaged one: its header is not "
        "a JSON object");
  std::sort(tensors.begin(), tensors.end(), [](const auto &a, const auto &b) {
    return std::pair(a.data, a.bytes) < std::pair(b.data, b.bytes);
  });
  const std::byte *at = data + 8 + length;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].data < at)
      return fail("tensor '" + tensors[i].name + "' starts at byte " +
                  std::to_string(tensors[i].data - (data + 8 + length)) +
                  ", within tensor '" + tensors[i - 1].name +
                  "': their offsets must not overlap");
    if (tensors[i].data > at)
      return fail("there are " + std::to_string(tensors[i].data - at) +
                  " bytes of no tensor before tensor '" + tensors[i].name +
                  "': the header is damaged");
    at = tensors[i].data + tensors[i].bytes;
  }
  if (at != data + size)
    return fail("there are " + std::to_string(data + size - at) +
                " bytes of no tensor at its end: the header is damaged");
  return tensors;
}

//===----------------------------------------------------------------------===//
// TensorFiles
//===----------------------------------------------------------------------===//

Status TensorFiles::addFile(const std::string &path) {
  Result<std::shared_ptr<const Mapping>> mapping = Mapping::open(path);
  if (!mapping)
    return mapping.error();
  Result<std::vector<StoredTensor>> tensors =
      parseFile(path, (*mapping)->data, (*mapping)->size);
  if (!tensors)
    return tensors.error();
  for (StoredTensor &tensor : *tensors) {
    std::string name = tensor.name;
    auto [there, added] = byName.emplace(name, std::move(tensor));
    if (!added)
      return Error{path + ": tensor '" + name + "' is also in " +
                   there->second.file + ": give only one of the files"};
  }
  mappings.push_back(std::move(*mapping));
  return Ok{};
}

Status TensorFiles::addIndex(const std::string &path) {
  Result<std::shared_ptr<const Mapping>> mapping = Mapping::open(path);
  if (!mapping)
    return mapping.error();
  std::vector<std::pair<std::string, std::string>> map;
  bool hasMap = false;
  Status parsed = parseObject(
      (*mapping)->data, (*mapping)->size, 2, SIZE_MAX, "metadata",
      [&](const std::string &key, const json &value) -> Status {
        if (key != "weight_map" || !value.is_object())
          return Ok{};
        hasMap = true;
        for (const auto &[name, file] : value.items()) {
          const std::string *text = file.get_ptr<const std::string *>();
          if (!text || text->empty() || text->find('/') != std::string::npos)
            return Error{"tensor '" + name +
                         "': its place in the \"weight_map\" must be the name "
                         "of a file in the same folder"};
          map.emplace_back(name, *text);
        }
        return Ok{};
      });
  if (!parsed && !parsed.message().empty())
    return Error{path + ": " + parsed.message()};
  if (!hasMap)
    return Error{path +
                 ": is not an index of safetensors files: it must be a "
                 "JSON object with a \"weight_map\" from tensor to file"};
  size_t slash = path.rfind('/');
  std::string folder =
      slash == std::string::npos ? "" : path.substr(0, slash + 1);
  std::set<std::string> files;
  for (const auto &[name, file] : map)
    if (files.insert(file).second)
      TSR_TRY(addFile(folder + file));
  for (const auto &[name, file] : map) {
    auto there = byName.find(name);
    const std::string expected = folder + file;
    if (there == byName.end() || there->second.file != expected)
      return Error{path + ": tensor '" + name + "' should be in " + expected +
                   ", but is not"};
  }
  return Ok{};
}

Status TensorFiles::addFolder(const std::string &path) {
  std::string folder = path.back() == '/' ? path : path + "/";
  std::string index = folder + "model.safetensors.index.json";
  if (access(index.c_str(), F_OK) == 0)
    return addIndex(index);
  std::vector<std::string> files;
  if (DIR *entries = opendir(path.c_str())) {
    while (const dirent *entry = readdir(entries))
      if (std::string(entry->d_name).ends_with(".safetensors"))
        files.push_back(folder + entry->d_name);
    closedir(entries);
  }
  if (files.empty())
    return Error{path + ": has no safetensors file and no "
                        "model.safetensors.index.json in it"};
  std::sort(files.begin(), files.end());
  for (const std::string &file : files)
    TSR_TRY(addFile(file));
  return Ok{};
}

Status TensorFiles::addPath(const std::string &path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0)
    return Error{path + ": cannot be opened: " + systemError()};
  if (S_ISDIR(status.st_mode))
    return addFolder(path);
  return path.ends_with(".json") ? addIndex(path) : addFile(path);
}

Result<TensorFiles> TensorFiles::open(const std::vector<std::string> &paths) {
  TensorFiles files;
  for (const std::string &path : paths)
    TSR_TRY(files.addPath(path));
  return files;
}

Result<const StoredTensor *> TensorFiles::find(const std::string &name) const {
  if (auto tensor = byName.find(name); tensor != byName.end())
    return &tensor->second;
  std::vector<std::string> names;
  std::set<std::string> files;
  for (const auto &[other, tensor] : byName) {
    names.push_back(other);
    files.insert(tensor.file);
  }
  std::string where;
  for (const std::string &file : files)
    where += (where.empty() ? "" : ", ") + file;
  return Error{"no tensor '" + name + "' in " +
               (where.empty() ? "the inputs: no file was given" : where) +
               suggestName(name, names)};
}

//===----------------------------------------------------------------------===//
// NameMap
//===----------------------------------------------------------------------===//

static Result<NameMap::Entry> parseEntry(const std::string &port,
                                         const json &value) {
  NameMap::Entry entry{port, std::nullopt};
  if (const auto *name = value.get_ptr<const std::string *>()) {
    entry.name = *name;
    return entry;
  }
  if (!value.is_object())
    return Error{"must be a tensor's name or an object with a \"name\" and a "
                 "\"cast\""};
  for (const auto &[key, item] : value.items()) {
    const auto *text = item.get_ptr<const std::string *>();
    if (!text || (key != "name" && key != "cast"))
      return Error{"may have a \"name\" and a \"cast\", both strings; has \"" +
                   key + "\""};
    if (key == "name") {
      entry.name = *text;
      continue;
    }
    entry.cast = dtypeFromName(*text);
    if (!entry.cast)
      return Error{"cast to unknown type '" + *text +
                   "': it must be one like f32, bf16, i64"};
  }
  return entry;
}

Result<NameMap> NameMap::read(const std::string &path) {
  // Through a stream of the C library: the map is small and maybe a pipe.
  FILE *file = fopen(path.c_str(), "rbe");
  if (!file)
    return Error{path + ": cannot be opened: " + systemError()};
  std::string text;
  char buffer[4096];
  size_t count;
  while (text.size() <= kMaxHeader &&
         (count = fread(buffer, 1, sizeof buffer, file)))
    text.append(buffer, count);
  fclose(file);
  if (text.size() > kMaxHeader)
    return Error{path + ": is not a map of names: it has more than " +
                 std::to_string(kMaxHeader) + " bytes"};

  NameMap result;
  result.path = path;
  Status parsed =
      parseObject(reinterpret_cast<const std::byte *>(text.data()), text.size(),
                  2, kMaxValues, "",
                  [&](const std::string &port, const json &value) -> Status {
                    Result<Entry> entry = parseEntry(port, value);
                    if (!entry)
                      return Error{"'" + port + "': " + entry.message()};
                    result.entries.emplace(port, std::move(*entry));
                    return Ok{};
                  });
  if (!parsed && !parsed.message().empty())
    return Error{path + ": " + parsed.message()};
  if (!parsed)
    return Error{path + ": is not a map of names: it must be a JSON object "
                        "like {\"port\": \"tensor\"}"};
  return result;
}

NameMap::Entry NameMap::lookup(const std::string &port) const {
  auto entry = entries.find(port);
  return entry == entries.end() ? Entry{port, std::nullopt} : entry->second;
}

Status NameMap::check(const std::vector<std::string> &ports) const {
  for (const auto &[port, entry] : entries)
    if (std::find(ports.begin(), ports.end(), port) == ports.end())
      return Error{path + ": the program has no input, output or state '" +
                   port + "'" + suggestName(port, ports)};
  return Ok{};
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

FileLayout layoutFile(const std::vector<FileTensor> &tensors) {
  json header = json::object();
  FileLayout layout;
  size_t at = 0;
  for (const FileTensor &tensor : tensors) {
    size_t bytes = info(tensor.dtype).bytes;
    for (int64_t extent : tensor.shape)
      bytes *= static_cast<size_t>(extent);
    layout.offsets.push_back(at);
    header[tensor.name] = {{"dtype", info(tensor.dtype).safetensors},
                           {"shape", tensor.shape},
                           {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string text =
      header.dump(-1, ' ', false, json::error_handler_t::replace);
  // Tensors start at a multiple of 8, as other writers have it.
  text.append((8 - text.size() % 8) % 8, ' ');
  uint64_t length = text.size();
  for (int i = 0; i < 8; ++i)
    layout.header += static_cast<char>(length >> 8 * i & 0xff);
  layout.header += text;
  for (size_t &offset : layout.offsets)
    offset += layout.header.size();
  layout.bytes = layout.header.size() + at;
  return layout;
}

} // namespace tessera
