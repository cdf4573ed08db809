//===- Launcher.cpp - kernels as programs of their own --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For people who look at one kernel: under a profiler, or with a change by
// hand. Tensors are dense, in the order that the kernel knows of. What is
// dynamic gets one size, an argument of the program.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/Codegen.h"
#include "Compiler/Targets/CUDA/Lanes.h"
#include "Plan/Target.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;

static constexpr StringLiteral kHelpers = R"(
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

static void check(cudaError_t error, const char *what) {
  if (error == cudaSuccess)
    return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

static unsigned long long state = 1;
static double randomNumber() {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return double(state >> 40) / (1 << 23) - 1;
}
static void set(double &x) { x = randomNumber(); }
static void set(float &x) { x = float(randomNumber()); }
static void set(bf16 &x) {
  x.bits = __builtin_bit_cast(unsigned, float(randomNumber())) >> 16;
}
static void set(f16 &x) {
  x.bits = uint16((randomNumber() < 0) << 15 | int(randomNumber() * 511 + 14847));
}
static void set(f8E4M3 &x) { x.bits = uint8(randomNumber() * 60); }
static void set(f8E5M2 &x) { x.bits = uint8(randomNumber() * 60); }
template <class T> void set(T &x) { x = T(int(randomNumber() * 4 + 4)); }

/// Dense, dimension `unit` innermost, of random numbers.
template <class T, int Rank, int Unit>
void allocate(Tensor<T, Rank, Unit> &tensor,
              std::initializer_list<long long> sizes) {
  long long count = 1;
  if constexpr (Rank > 0) {
    int dim = 0;
    for (long long size : sizes)
      tensor.size[dim++] = size;
    auto take = [&](int dim) {
      tensor.stride[dim] = count;
      count *= tensor.size[dim];
    };
    if (Unit >= 0)
      take(Unit);
    for (int dim = Rank; dim-- > 0;)
      if (dim != Unit)
        take(dim);
  }
  void *memory = nullptr;
  check(cudaMallocManaged(&memory, (count + 1) * sizeof(T)), "allocation");
  auto *elements = static_cast<std::remove_const_t<T> *>(memory);
  for (long long i = 0; i < count; ++i)
    set(elements[i]);
  tensor.data = elements;
}

template <class T, int Rank, int Unit>
unsigned long long checksum(const Tensor<T, Rank, Unit> &tensor) {
  long long count = 1;
  if constexpr (Rank > 0)
    for (int dim = 0; dim < Rank; ++dim)
      count *= tensor.size[dim];
  unsigned long long sum = 0;
  auto *bytes = reinterpret_cast<const unsigned char *>(tensor.data);
  for (long long i = 0; i < count * (long long)sizeof(T); ++i)
    sum = (sum ^ bytes[i]) * 1099511628211ULL;
  return sum;
}

static int getBlocks(double points, double items, int cluster, double most) {
  double wanted = (points + items - 1) / items;
  int blocks = wanted < 1 ? 1 : wanted < most ? int(wanted) : int(most);
  return (blocks + cluster - 1) / cluster * cluster;
}
)";

/// For functions that read boxes.
static constexpr StringLiteral kMapHelpers = R"(
#include <cuda.h>

template <class T> constexpr auto kMapType = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
template <>
constexpr auto kMapType<const f16> = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
template <> constexpr auto kMapType<f16> = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;

/// A row of the box is 128 bytes. Ragged: see attention_packed.cuh.
template <bool Ragged, class T, int Rank, int Unit>
TensorMap makeMap(const Tensor<T, Rank, Unit> &tensor,
                  std::initializer_list<unsigned> outermostFirst) {
  void *encode = nullptr;
  cudaDriverEntryPointQueryResult found;
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000,
                                         cudaEnableDefault, &found),
        "cuTensorMapEncodeTiled");
  constexpr int MapRank = Ragged ? 5 : Rank;
  cuuint64_t sizes[MapRank], strides[MapRank];
  cuuint32_t box[MapRank], steps[] = {1, 1, 1, 1, 1};
  for (int i = 0; i < Rank; ++i) {
    sizes[i] = tensor.size[Rank - 1 - i];
    box[i] = outermostFirst.begin()[Rank - 1 - i];
    if (i > 0)
      strides[i - 1] = tensor.stride[Rank - 1 - i] * sizeof(T);
  }
  if constexpr (Ragged) {
    strides[3] = strides[0], strides[2] = (1ULL << 34) - strides[0];
    sizes[4] = sizes[1] + 1, sizes[3] = (1 << 30) + 1, sizes[1] = 1 << 30;
    box[4] = box[3] = box[2] = 1;
  }
  TensorMap map;
  if (reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
          reinterpret_cast<CUtensorMap *>(&map), kMapType<T>, MapRank,
          const_cast<std::remove_const_t<T> *>(tensor.data), sizes, strides, box,
          steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
          sizes[0] * sizeof(T) % 256 && strides[0] != sizes[0] * sizeof(T)
              ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B
              : CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
          CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS) {
    std::fprintf(stderr, "cannot make a tensor map\n");
    std::exit(1);
  }
  return map;
}
)";

/// A file without its inclusions of others of ours.
static std::string getText(StringRef text) {
  std::string result;
  for (StringRef line : llvm::split(text, '\n'))
    if (!line.starts_with("#include \"") && line != "#pragma once")
      result += (line + "\n").str();
  return result;
}

/// The main function.
static void writeMain(llvm::raw_ostream &os, func::FuncOp kernel,
                      plan::LaunchOp launch, const KernelSource &source) {
  const int64_t multiprocessors =
      plan::getTarget(kernel).getLimits().multiprocessors;
  SmallVector<std::string> sizes, names;
  unsigned inputs = 0, outputs = 0, scalars = 0;
  os << "\nint main(int argc, char **argv) {\n"
     << "  const long long dynamic = argc > 1 ? std::atoll(argv[1]) : 1024;\n"
     << "  (void)dynamic;\n"
     << "  " << source.name << "_Parameters p;\n";
  SmallVector<std::string> stored;
  MemoryUse use(kernel);
  for (BlockArgument argument : kernel.getArguments()) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    if (!type) {
      Attribute scalar = launch.getScalars()[scalars];
      auto extent = dyn_cast<plan::ExtentAttr>(scalar);
      std::string value = "0"; // a coordinate
      if (extent)
        value = extent.getExtent().getStatic()
                    ? std::to_string(*extent.getExtent().getStatic())
                    : "dynamic";
      names.push_back("n" + std::to_string(scalars++));
      os << "  p." << names.back() << " = " << value << ";\n";
      continue;
    }
    bool isStored = use.isStored(argument);
    names.push_back(isStored ? "y" + std::to_string(outputs++)
                             : "x" + std::to_string(inputs++));
    if (isStored)
      stored.push_back(names.back());
    os << "  allocate(p." << names.back() << ", {";
    llvm::interleaveComma(type.getShape(), os, [&](int64_t size) {
      if (ShapedType::isDynamic(size))
        os << "dynamic";
      else
        os << size;
    });
    os << "});\n";
  }
  for (const DeviceFunction &function : source.functions) {
    if (function.boxed.empty())
      continue;
    os << "  " << function.symbol << "_Boxed boxed_" << function.symbol
       << " = {p, {";
    llvm::interleaveComma(
        function.boxed, os, [&](const DeviceFunction::Boxed &boxed) {
          os << "makeMap<" << (boxed.ragged ? "true" : "false") << ">(p."
             << names[boxed.argument] << ", {";
          llvm::interleaveComma(boxed.box, os);
          os << "})";
        });
    os << "}};\n";
  }
  for (const DeviceFunction &function : source.functions)
    if (function.shared > 0)
      os << "  check(cudaFuncSetAttribute(" << function.symbol
         << ", cudaFuncAttributeMaxDynamicSharedMemorySize, " << function.shared
         << "), \"shared memory\");\n";
  os << "  auto run = [&] {\n";
  for (const DeviceFunction &function : source.functions) {
    os << "    " << function.symbol << "<<<getBlocks(1.0";
    for (const SpaceExtent &extent : function.space) {
      os << " * ";
      if (extent.kind == SpaceExtent::Kind::Constant)
        os << extent.constant;
      else if (extent.kind == SpaceExtent::Kind::Scalar)
        os << "p." << names[extent.argument];
      else
        os << "p." << names[extent.argument] << ".size[" << extent.dim << "]";
    }
    os << ", " << function.items << ", " << function.cluster << ", "
       << (function.persistent ? multiprocessors : INT32_MAX) << "), "
       << function.threads << ", " << function.shared << ">>>("
       << (function.boxed.empty() ? "p" : "boxed_" + function.symbol) << ");\n";
  }
  os << "  };\n"
     << "  for (int i = 0; i < 3; ++i)\n    run();\n"
     << "  check(cudaDeviceSynchronize(), \"" << source.name << "\");\n"
     << "  const auto begin = std::chrono::steady_clock::now();\n"
     << "  for (int i = 0; i < 20; ++i)\n    run();\n"
     << "  check(cudaDeviceSynchronize(), \"" << source.name << "\");\n"
     << "  const std::chrono::duration<double, std::micro> time =\n"
     << "      std::chrono::steady_clock::now() - begin;\n";
  for (const std::string &name : stored)
    os << "  std::printf(\"checksum " << name << " %016llx\\n\", checksum(p."
       << name << "));\n";
  os << "  std::printf(\"" << source.name
     << " takes %.2f us\\n\", time.count() / 20);\n"
     << "}\n";
}

/// A dump's first line, up to the architecture: it also tells the files of
/// earlier dumps from those of others.
static constexpr StringLiteral kFirstLine =
    "// nvcc -std=c++17 -gencode=arch=compute_";

/// (-arch=sm_90a may compile for compute_90 as well, which lacks wgmma.)
static std::string getFirstLine(StringRef name, StringRef architecture) {
  return (kFirstLine + architecture.drop_front(3) + ",code=" + architecture +
          " " + name + ".cu -o " + name + " && ./" + name +
          " [size of what is dynamic]\n")
      .str();
}

/// Removes what an earlier dump wrote, so that no kernel of another program is
/// among those of this one.
static std::error_code removeDump(StringRef folder) {
  std::error_code error;
  std::vector<std::string> paths;
  for (llvm::sys::fs::directory_iterator it(folder, error), end;
       it != end && !error; it.increment(error))
    if (llvm::sys::path::extension(it->path()) == ".cu")
      paths.push_back(it->path());
  for (StringRef path : paths) {
    auto file = llvm::MemoryBuffer::getFile(path);
    StringRef stem = llvm::sys::path::stem(path);
    if (!file || !(*file)->getBuffer().starts_with(kFirstLine) ||
        !(*file)->getBuffer().split('\n').first.contains(
            (" " + stem + ".cu -o " + stem + " ").str()))
      continue;
    SmallString<128> machineCode(path), ptx(path);
    llvm::sys::path::replace_extension(machineCode, "cubin");
    llvm::sys::path::replace_extension(ptx, "ptx");
    for (StringRef written : {path, StringRef(machineCode), StringRef(ptx)})
      if (std::error_code why = llvm::sys::fs::remove(written))
        return why;
  }
  return error;
}

LogicalResult cuda::dumpKernels(ModuleOp program,
                                ArrayRef<CompiledKernel> kernels,
                                const std::string &folder,
                                StringRef architecture) {
  if (std::error_code error = llvm::sys::fs::create_directories(folder))
    return program.emitError()
           << "cannot make the folder '" << folder << "': " << error.message();
  if (std::error_code error = removeDump(folder))
    return program.emitError()
           << "cannot remove the kernels of an earlier "
           << "program from '" << folder << "': " << error.message();
  llvm::StringMap<plan::LaunchOp> launches;
  program.walk([&](plan::LaunchOp launch) {
    launches.try_emplace(launch.getKernel(), launch);
  });
  for (const CompiledKernel &kernel : kernels) {
    auto function = program.lookupSymbol<func::FuncOp>(kernel.source.name);
    if (!function || !launches.count(kernel.source.name))
      continue;
    SmallString<128> path(folder), machineCode(folder);
    llvm::sys::path::append(path, kernel.source.name + ".cu");
    llvm::sys::path::append(machineCode, kernel.source.name + ".cubin");
    std::string why;
    auto file = openOutputFile(path, &why);
    auto cubin = file ? openOutputFile(machineCode, &why) : nullptr;
    if (!cubin)
      return program.emitError() << why;
    cubin->os() << kernel.binary.cubin;
    cubin->keep();
    if (!kernel.binary.ptx.empty()) {
      llvm::sys::path::replace_extension(machineCode, "ptx");
      auto ptx = openOutputFile(machineCode, &why);
      if (!ptx)
        return program.emitError() << why;
      ptx->os() << StringRef(kernel.binary.ptx).rtrim('\0');
      ptx->keep();
    }
    llvm::raw_ostream &os = file->os();
    os << getFirstLine(kernel.source.name, architecture);
    for (const FunctionReport &report : kernel.binary.functions)
      os << "// " << report.symbol << ": " << report.registers << " registers, "
         << report.sharedBytes << " bytes of shared memory, "
         << report.spillBytes << " bytes of spills\n";
    os << kernel.defines;
    // With what they include, each once, in the order of the list.
    llvm::StringSet<> included;
    std::vector<StringRef> texts = {kernel.source.text};
    for (size_t i = 0; i < texts.size(); ++i)
      for (const EmbeddedFile &header : getEmbeddedFiles())
        if (texts[i].contains("#include \"" + std::string(header.name) +
                              "\"") &&
            included.insert(header.name).second)
          texts.push_back(header.text);
    for (const EmbeddedFile &header : getEmbeddedFiles())
      if (included.contains(header.name))
        os << getText(header.text);
    os << kernel.source.origin << getText(kernel.source.text) << kHelpers;
    if (llvm::any_of(kernel.source.functions,
                     [](const DeviceFunction &function) {
                       return !function.boxed.empty();
                     }))
      os << kMapHelpers;
    writeMain(os, function, launches.lookup(kernel.source.name), kernel.source);
    file->keep();
  }
  return success();
}
