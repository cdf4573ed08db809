//===- NVRTC.cpp - CUDA C++ to machine code -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/NVRTC.h"
#include "Compiler/Targets/CUDA/Cache.h"
#include "Compiler/Targets/CUDA/Target.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ThreadPool.h"

#include <cstdlib>
#include <dlfcn.h>
#include <mutex>

using namespace llvm;
using namespace tessera;
using namespace tessera::cuda;

/// No fast math: what need not be exact is so by name (prelude.cuh): tanh, and
/// behind results of 16 bits division, square root and exponential. The rest is
/// CUDA's accurate functions, and division and square root that round
/// correctly. Products are fused into sums, which the tolerance of results is
/// meant for.
static constexpr const char *kOptions[] = {
    "-std=c++17", "--ptxas-options=-v", "--fmad=true",
    // Indices that nothing uses;
    // floats divided by 0;
    // loops over no point.
    "--diag-suppress=177", "--diag-suppress=39", "--diag-suppress=186"};
static constexpr char kLibrary[] = "libnvrtc.so.13";

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

namespace {
struct Program; // NVRTC's own
} // namespace

/// Declared here, for there are no headers of CUDA where this is built. A
/// result is 0 or an error.
struct NVRTC::Functions {
  std::string identity; ///< of the library, for keys of the cache
  int (*version)(int *major, int *minor);
  const char *(*getErrorString)(int result);
  int (*createProgram)(Program **program, const char *text, const char *name,
                       int numHeaders, const char *const *headers,
                       const char *const *includeNames);
  int (*destroyProgram)(Program **program);
  int (*compileProgram)(Program *program, int numOptions,
                        const char *const *options);
  int (*getLogSize)(Program *program, size_t *size);
  int (*getLog)(Program *program, char *log);
  int (*getCubinSize)(Program *program, size_t *size);
  int (*getCubin)(Program *program, char *cubin);
  int (*getPTXSize)(Program *program, size_t *size);
  int (*getPTX)(Program *program, char *ptx);
  int (*getNumArchitectures)(int *number);
  int (*getArchitectures)(int *numbers);
};

/// The file that this code is in: a program, or a library that one has loaded.
static std::string getOwnFile() {
  void *own = reinterpret_cast<void *>(&getEmbeddedFiles);
  Dl_info info;
  if (dladdr(own, &info) && StringRef(info.dli_fname).contains(".so")) {
    SmallString<128> file(info.dli_fname);
    if (!sys::fs::real_path(info.dli_fname, file))
      return file.str().str();
  }
  return sys::fs::getMainExecutable(nullptr, own);
}

/// Where PyPI's package puts the library in the virtual environment `.venv` of
/// the source tree, from what a build tree in it has in `build/bin` and
/// `build/lib`.
static std::vector<std::string> getVenvCandidates() {
  SmallString<128> lib(sys::path::parent_path(getOwnFile()));
  sys::path::append(lib, "..", "..", ".venv", "lib");
  sys::path::remove_dots(lib, /*remove_dot_dot=*/true);
  auto getCandidate = [](StringRef python) {
    SmallString<128> file(python);
    sys::path::append(file, "site-packages", "nvidia", "cu13", "lib");
    sys::path::append(file, kLibrary);
    return file.str().str();
  };
  std::vector<std::string> candidates;
  std::error_code error;
  for (sys::fs::directory_iterator it(lib, error), end; it != end && !error;
       it.increment(error))
    if (sys::path::filename(it->path()).starts_with("python3"))
      candidates.push_back(getCandidate(it->path()));
  if (candidates.empty())
    candidates.push_back(getCandidate((lib + "/python3").str()));
  return candidates;
}

/// An error unless the library makes code for the architecture.
template <typename Functions>
static Status checkArchitecture(const Functions &functions,
                                const std::string &version,
                                StringRef architecture) {
  int number = 0, count = 0;
  architecture.drop_while([](char c) { return !isDigit(c); })
      .consumeInteger(10, number);
  if (functions.getNumArchitectures(&count))
    return tessera::Error{"nvrtcGetNumSupportedArchs"};
  std::vector<int> known(count);
  if (functions.getArchitectures(known.data()))
    return tessera::Error{"nvrtcGetSupportedArchs"};
  if (is_contained(known, number))
    return Ok{};
  // The nearest that there is a target for, below and above.
  sort(known);
  std::string below, above;
  for (int each : known) {
    const std::string name = "sm_" + std::to_string(each);
    if (!makePortable("cuda:" + name))
      continue;
    if (each < number)
      below = name;
    else if (above.empty())
      above = name;
  }
  const bool both = !below.empty() && !above.empty();
  return tessera::Error{"NVRTC " + version + " makes no code for " +
                        architecture.str() + "; the nearest that it does " +
                        (both ? "are " : "is ") + below +
                        (both ? " and " : "") + above};
}

Result<unsigned> cuda::getTrapWaits() {
  unsigned looks = 0;
  const char *variable = std::getenv("TESSERA_TRAP_WAITS");
  if (!variable || !*variable)
    return looks;
  if (StringRef(variable).getAsInteger(10, looks) || looks >= 1u << 31)
    return tessera::Error{
        std::string("TESSERA_TRAP_WAITS is '") + variable +
        "', and must be a number of looks below 2^31, 1 for the "
        "usual one, or 0"};
  return looks;
}

Result<NVRTC> NVRTC::open(const std::string &where,
                          const std::string &architecture) {
  Result<unsigned> trapWaits = getTrapWaits();
  if (!trapWaits)
    return trapWaits.error();
  std::string place = where;
  if (const char *variable = std::getenv("TESSERA_NVRTC");
      place.empty() && variable)
    place = variable;
  std::vector<std::string> candidates;
  if (!place.empty()) {
    // (The loader looks for a bare name in its own folders.)
    SmallString<128> file(place);
    sys::fs::make_absolute(file);
    if (sys::fs::is_directory(file))
      sys::path::append(file, kLibrary);
    candidates = {file.str().str()};
  } else {
    candidates = {kLibrary, std::string("/usr/local/cuda/lib64/") + kLibrary};
    append_range(candidates, getVenvCandidates());
  }
  void *library = nullptr;
  std::string tried, opened;
  for (const std::string &candidate : candidates) {
    library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library) {
      opened = candidate;
      break;
    }
    const char *why = dlerror();
    tried += "\n  " + candidate + ": " + (why ? why : "cannot be opened");
  }
  if (!library)
    return Error{"cuda kernels need NVRTC of CUDA 13, which cannot be opened; "
                 "give its place by --nvrtc or TESSERA_NVRTC, or install the "
                 "PyPI package nvidia-cuda-nvrtc 13.0 into .venv. Tried:" +
                 tried};

  auto functions = std::make_shared<Functions>();
  std::string missing;
  auto find = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(
        dlsym(library, name));
    if (!function)
      missing += std::string(missing.empty() ? "" : ", ") + name;
  };
  find(functions->version, "nvrtcVersion");
  find(functions->getErrorString, "nvrtcGetErrorString");
  find(functions->createProgram, "nvrtcCreateProgram");
  find(functions->destroyProgram, "nvrtcDestroyProgram");
  find(functions->compileProgram, "nvrtcCompileProgram");
  find(functions->getLogSize, "nvrtcGetProgramLogSize");
  find(functions->getLog, "nvrtcGetProgramLog");
  find(functions->getCubinSize, "nvrtcGetCUBINSize");
  find(functions->getCubin, "nvrtcGetCUBIN");
  find(functions->getPTXSize, "nvrtcGetPTXSize");
  find(functions->getPTX, "nvrtcGetPTX");
  find(functions->getNumArchitectures, "nvrtcGetNumSupportedArchs");
  find(functions->getArchitectures, "nvrtcGetSupportedArchs");
  if (!missing.empty())
    return Error{"'" + opened + "' is no NVRTC of CUDA 13: it lacks " +
                 missing};
  int major = 0, minor = 0;
  if (int result = functions->version(&major, &minor))
    return Error{"nvrtcVersion: " +
                 std::string(functions->getErrorString(result))};
  if (major != 13)
    return Error{"'" + opened + "' is NVRTC " + std::to_string(major) + "." +
                 std::to_string(minor) + ", but 13 is needed"};
  const std::string number =
      std::to_string(major) + "." + std::to_string(minor);
  if (Status status = checkArchitecture(*functions, number, architecture);
      !status)
    return status.error();
  // Patch releases have the same version: the file's size tells them apart.
  Dl_info info;
  uint64_t size = 0;
  if (dladdr(reinterpret_cast<void *>(functions->version), &info) &&
      info.dli_fname) {
    sys::fs::file_size(info.dli_fname, size);
    // NVRTC opens this by its bare name, so outside of a toolkit that the
    // loader knows only finds it if it is loaded. Where it is not beside NVRTC,
    // NVRTC's own search and error are right.
    SmallString<128> builtins(sys::path::parent_path(info.dli_fname));
    sys::path::append(builtins, "libnvrtc-builtins.so." + Twine(major) + "." +
                                    Twine(minor));
    dlopen(builtins.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  functions->identity = number + " of " + std::to_string(size) + " bytes";
  return NVRTC(std::move(functions), architecture, *trapWaits);
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

const char *cuda::getEmbeddedFile(std::string_view name) {
  for (const EmbeddedFile &file : getEmbeddedFiles())
    if (name == file.name)
      return file.text;
  return nullptr;
}

/// What units include.
static std::vector<EmbeddedFile> getHeaders() {
  std::vector<EmbeddedFile> headers;
  for (const EmbeddedFile &file : getEmbeddedFiles())
    if (StringRef(file.name).ends_with(".cuh"))
      headers.push_back(file);
  return headers;
}

/// Reads what ptxas reports of each function.
static void parseLog(Binary &binary) {
  FunctionReport *current = nullptr;
  auto before = [](StringRef text, StringRef unit) {
    // The number in front of `unit`.
    StringRef head = text.substr(0, text.find(unit)).rtrim();
    int number = 0;
    head.substr(head.find_last_of(" ,") + 1).getAsInteger(10, number);
    return number;
  };
  for (StringRef line : split(binary.log, '\n')) {
    if (line.contains("Compiling entry function '")) {
      binary.functions.emplace_back();
      current = &binary.functions.back();
      current->symbol = line.split('\'').second.split('\'').first.str();
    } else if (current && line.contains("bytes spill stores")) {
      current->stackBytes = before(line, "bytes stack frame");
      current->spillBytes = before(line, "bytes spill stores") +
                            before(line, "bytes spill loads");
    } else if (current && line.contains("Used ") &&
               line.contains("registers")) {
      current->registers = before(line, "registers");
      if (line.contains("bytes smem"))
        current->sharedBytes = before(line, "bytes smem");
    } else if (line.contains("(C75") || line.contains("warning")) {
      binary.notes.push_back(line.trim().str());
    }
  }
}

std::vector<std::string> NVRTC::getOptions() const {
  std::vector<std::string> options = {"-arch=" + architecture};
  append_range(options, kOptions);
  if (trapWaits)
    options.push_back("-DTESSERA_TRAP_WAITS=" + std::to_string(trapWaits));
  return options;
}

Result<Binary> NVRTC::compileAnew(const Unit &unit) const {
  std::vector<const char *> names, texts;
  for (const EmbeddedFile &file : getHeaders()) {
    names.push_back(file.name);
    texts.push_back(file.text);
  }
  Program *program = nullptr;
  auto error = [&](const char *what, int result) {
    if (program)
      functions->destroyProgram(&program);
    return Error{std::string(what) + ": " + functions->getErrorString(result)};
  };
  if (int result = functions->createProgram(
          &program, unit.text.c_str(), (unit.name + ".cu").c_str(),
          names.size(), texts.data(), names.data()))
    return error("nvrtcCreateProgram", result);
  const std::vector<std::string> options = getOptions();
  std::vector<const char *> pointers;
  for (const std::string &option : options)
    pointers.push_back(option.c_str());
  int compiled =
      functions->compileProgram(program, pointers.size(), pointers.data());
  Binary binary;
  size_t size = 0;
  if (int result = functions->getLogSize(program, &size))
    return error("nvrtcGetProgramLogSize", result);
  binary.log.resize(size);
  if (size > 0)
    if (int result = functions->getLog(program, binary.log.data()))
      return error("nvrtcGetProgramLog", result);
  // It counts the zero at the end.
  binary.log.erase(std::min(binary.log.find('\0'), binary.log.size()));
  if (compiled) {
    functions->destroyProgram(&program);
    return Error{"NVRTC does not compile '" + unit.name + "': " +
                 functions->getErrorString(compiled) + "\n" + binary.log};
  }
  if (int result = functions->getCubinSize(program, &size))
    return error("nvrtcGetCUBINSize", result);
  binary.cubin.resize(size);
  if (int result = functions->getCubin(program, binary.cubin.data()))
    return error("nvrtcGetCUBIN", result);
  if (isDigit(architecture.back())) {
    if (int result = functions->getPTXSize(program, &size))
      return error("nvrtcGetPTXSize", result);
    binary.ptx.resize(size);
    if (int result = functions->getPTX(program, binary.ptx.data()))
      return error("nvrtcGetPTX", result);
  }
  functions->destroyProgram(&program);
  return binary;
}

Result<Binary> NVRTC::compile(const Unit &unit) const {
  std::string key = functions->identity;
  for (const std::string &option : getOptions())
    key += "\n" + option;
  for (const EmbeddedFile &file : getHeaders())
    key += std::string("\n") + file.name + "\n" + file.text;
  key += "\n" + unit.name + "\n" + unit.text;
  Binary binary;
  if (std::optional<CacheEntry> entry = readCache(key)) {
    binary.cubin = std::move(entry->cubin);
    binary.ptx = std::move(entry->ptx);
    binary.log = std::move(entry->log);
    binary.fromCache = true;
  } else {
    Result<Binary> compiled = compileAnew(unit);
    if (!compiled)
      return compiled;
    binary = std::move(*compiled);
    writeCache(key, {binary.cubin, binary.ptx, binary.log});
  }
  parseLog(binary);
  return binary;
}

Result<std::vector<Binary>>
NVRTC::compile(std::span<const Unit> units,
               const std::function<void(size_t, size_t)> &progress) const {
  std::vector<std::optional<Result<Binary>>> results(units.size());
  std::mutex mutex;
  size_t done = 0;
  DefaultThreadPool pool;
  for (size_t i = 0; i < units.size(); ++i)
    pool.async([&, i] {
      results[i] = compile(units[i]);
      std::lock_guard lock(mutex);
      if (++done; progress)
        progress(done, units.size());
    });
  pool.wait();
  std::vector<Binary> binaries;
  for (std::optional<Result<Binary>> &result : results) {
    if (!*result)
      return result->error();
    binaries.push_back(std::move(**result));
  }
  return binaries;
}
