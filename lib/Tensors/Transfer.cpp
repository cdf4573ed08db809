//===- Transfer.cpp - a rank's part of a tensor, from and to files --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A local tensor is a product of runs, one list a view dimension. Dimensions at
// the inner end that are whole on this rank and dense in its memory become one
// run, so that a row split costs one copy or one write, whatever the rank.
//
//===----------------------------------------------------------------------===//

#include "Tensors/Transfer.h"
#include "Support/TemporaryFile.h"
#include "Support/Try.h"

#include <algorithm>

namespace tessera {

using layout::Coords;
using layout::Run;

//===----------------------------------------------------------------------===//
// Pieces of a local tensor
//===----------------------------------------------------------------------===//

namespace {
/// `length` elements that are consecutive in the global tensor from element
/// `global`, and in local memory from `local` on, `stride` apart.
struct Piece {
  int64_t global, local, stride, length;
};
} // namespace

/// Calls `visit(piece)` for all of the part at `coords`, in global order, until
/// one returns an error.
template <typename Visit>
static Status forEachPiece(const GlobalTensor &tensor, const Coords &coords,
                           Visit visit) {
  const layout::View &view = tensor.view;
  layout::Shape local =
      layout::localShape(view, tensor.shape, tensor.mesh, coords);
  std::vector<int64_t> strides = layout::localStrides(view, local);

  size_t rank = view.dims.size();
  std::vector<std::vector<Run>> runs(rank);
  std::vector<int64_t> globalStrides(rank, 1);
  int64_t globalStride = 1;
  for (size_t dim = rank; dim-- > 0;) {
    int64_t bound = layout::boundOf(view, dim, tensor.shape);
    runs[dim] =
        layout::localRuns(view.dims[dim].product, bound, tensor.mesh, coords);
    if (runs[dim].empty())
      return Ok{}; // nothing held here
    globalStrides[dim] = globalStride;
    globalStride *= bound;
  }
  if (rank == 0)
    return visit(Piece{0, 0, 1, 1});

  // Merge the innermost dimension into the one before it where it is whole and
  // the two are dense in memory.
  std::vector<int64_t> scale(rank, 1);
  size_t inner = rank - 1;
  while (inner > 0) {
    const std::vector<Run> &last = runs[inner];
    int64_t bound = layout::boundOf(view, inner, tensor.shape) * scale[inner];
    if (last.size() != 1 || last[0].length != bound || strides[inner] != 1 ||
        strides[inner - 1] != bound)
      break;
    --inner;
    for (Run &run : runs[inner])
      run = {run.local * bound, run.global * bound, run.length * bound};
    scale[inner] = bound;
    strides[inner] = 1;
    globalStrides[inner] = 1;
  }

  // An odometer over the runs of the outer dimensions and the elements in them.
  struct Digit {
    size_t run = 0;
    int64_t element = 0;
  };
  std::vector<Digit> digits(inner);
  while (true) {
    int64_t global = 0, at = 0;
    for (size_t dim = 0; dim < inner; ++dim) {
      const Run &run = runs[dim][digits[dim].run];
      global += (run.global + digits[dim].element) * globalStrides[dim];
      at += (run.local + digits[dim].element) * strides[dim];
    }
    for (const Run &run : runs[inner])
      TSR_TRY(visit(Piece{global + run.global * globalStrides[inner],
                          at + run.local * strides[inner], strides[inner],
                          run.length}));
    size_t dim = inner;
    for (; dim > 0; --dim) {
      Digit &digit = digits[dim - 1];
      if (++digit.element < runs[dim - 1][digit.run].length)
        break;
      digit.element = 0;
      if (++digit.run < runs[dim - 1].size())
        break;
      digit.run = 0;
    }
    if (dim == 0)
      return Ok{};
  }
}

/// Of the ranks that hold the same elements, whether this one writes them: it
/// has digit 0 everywhere that the view does not use.
static bool writes(const GlobalTensor &tensor, const Coords &coords) {
  std::vector<int64_t> unused = coords;
  for (const layout::SubAxis &sub : layout::axesOf(tensor.view)) {
    int64_t rest = tensor.mesh.axes[sub.axis].size / (sub.pre * sub.size);
    unused[sub.axis] -= sub.digit(tensor.mesh, coords) * rest;
  }
  return std::all_of(unused.begin(), unused.end(),
                     [](int64_t digit) { return digit == 0; });
}

static Status checkWhole(const GlobalTensor &tensor, const char *what) {
  if (tensor.view.partial.empty())
    return Ok{};
  return Error{std::string(what) + " '" + tensor.name +
               "' has a partial view " +
               layout::toString(tensor.view, tensor.mesh) +
               ", but a file holds whole values"};
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

Status readLocal(const StoredTensor &stored, const GlobalTensor &tensor,
                 std::optional<DType> cast, const Coords &coords, void *local) {
  auto fail = [&](const std::string &what) {
    return Error{stored.file + ": tensor '" + stored.name + "': " + what};
  };
  TSR_TRY(checkWhole(tensor, "input"));
  if (stored.shape != tensor.shape)
    return fail("has shape " + toString(stored.shape) + ", but input '" +
                tensor.name + "' is " + toString(tensor.shape));
  std::optional<DType> from = dtypeFromSafetensors(stored.typeName);
  const DTypeInfo &to = info(tensor.dtype);
  if (!from)
    return fail("has elements of type " + stored.typeName +
                ", which Tessera lacks; input '" + tensor.name + "' is " +
                to.safetensors);
  if (cast && *cast != tensor.dtype)
    return fail(std::string("the map of names casts it to ") +
                info(*cast).name + ", but input '" + tensor.name + "' is " +
                to.name);
  if (*from != tensor.dtype && !cast)
    return fail("has elements of type " + stored.typeName + ", but input '" +
                tensor.name + "' is " + to.safetensors +
                "; state {\"name\": \"" + stored.name + "\", \"cast\": \"" +
                to.name + "\"} for '" + tensor.name +
                "' in the file of --map to convert it");

  std::byte *target = static_cast<std::byte *>(local);
  const size_t fromBytes = info(*from).bytes, toBytes = to.bytes;
  return forEachPiece(tensor, coords, [&](const Piece &piece) -> Status {
    const std::byte *source = stored.data + piece.global * fromBytes;
    std::byte *at = target + piece.local * toBytes;
    if (*from == tensor.dtype && piece.stride == 1) {
      std::memcpy(at, source, piece.length * toBytes);
      return Ok{};
    }
    for (int64_t i = 0; i < piece.length; ++i) {
      const std::byte *element = source + i * fromBytes;
      std::byte *place = at + i * piece.stride * toBytes;
      if (*from == tensor.dtype)
        std::memcpy(place, element, toBytes);
      else if (!convertElement(element, *from, place, tensor.dtype))
        return fail("element " + std::to_string(piece.global + i) +
                    " does not fit into " + to.name);
    }
    return Ok{};
  });
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

OutputFile::OutputFile(std::string path,
                       const std::vector<GlobalTensor> &tensors)
    : path(std::move(path)), tensors(tensors) {
  std::vector<FileTensor> stored;
  for (const GlobalTensor &tensor : tensors)
    stored.push_back({tensor.name, tensor.dtype, tensor.shape});
  layout = layoutFile(stored);
}

OutputFile::OutputFile(OutputFile &&other)
    : path(std::move(other.path)), temporary(std::move(other.temporary)),
      tensors(std::move(other.tensors)), layout(std::move(other.layout)),
      fd(std::exchange(other.fd, -1)),
      owner(std::exchange(other.owner, false)) {}

OutputFile::~OutputFile() {
  if (fd >= 0)
    close(fd);
  if (owner)
    unlink(temporary.c_str());
}

static Status writeAll(int fd, const void *data, size_t size, size_t offset) {
  const char *at = static_cast<const char *>(data);
  while (size > 0) {
    ssize_t count = pwrite(fd, at, size, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return Error{"cannot be written: " + systemError()};
    at += count;
    offset += static_cast<size_t>(count);
    size -= static_cast<size_t>(count);
  }
  return Ok{};
}

Result<OutputFile>
OutputFile::create(const std::string &path, const std::string &temporary,
                   const std::vector<GlobalTensor> &tensors) {
  OutputFile file(path, tensors);
  for (const GlobalTensor &tensor : tensors)
    TSR_TRY(checkWhole(tensor, "output"));
  file.temporary = temporary;
  file.fd = createNew(temporary);
  if (file.fd < 0)
    return Error{path + ": cannot be written: " + systemError()};
  file.owner = true;
  // Reserve the space now, so that a full disk is known before the writes.
  if (int error =
          posix_fallocate(file.fd, 0, static_cast<off_t>(file.layout.bytes)))
    return Error{path + ": cannot be made " +
                 std::to_string(file.layout.bytes) +
                 " bytes long: " + std::strerror(error)};
  if (Status status = writeAll(file.fd, file.layout.header.data(),
                               file.layout.header.size(), 0);
      !status)
    return Error{path + ": " + status.message()};
  return file;
}

Result<OutputFile> OutputFile::open(const std::string &path,
                                    const std::string &temporary,
                                    const std::vector<GlobalTensor> &tensors) {
  OutputFile file(path, tensors);
  file.temporary = temporary;
  file.fd = ::open(temporary.c_str(), O_WRONLY | O_CLOEXEC);
  if (file.fd < 0)
    return Error{path + ": this rank cannot open " + temporary +
                 ", made by rank 0: " + systemError() +
                 "; the output must be in a folder that all ranks share"};
  return file;
}

Status OutputFile::write(size_t index, const Coords &coords,
                         const void *local) {
  const GlobalTensor &tensor = tensors[index];
  if (!writes(tensor, coords))
    return Ok{};
  const std::byte *source = static_cast<const std::byte *>(local);
  const size_t bytes = info(tensor.dtype).bytes;
  std::vector<std::byte> packed;
  Status status =
      forEachPiece(tensor, coords, [&](const Piece &piece) -> Status {
        const std::byte *data = source + piece.local * bytes;
        if (piece.stride != 1 && piece.length > 1) {
          packed.resize(piece.length * bytes);
          for (int64_t i = 0; i < piece.length; ++i)
            std::memcpy(&packed[i * bytes], data + i * piece.stride * bytes,
                        bytes);
          data = packed.data();
        }
        return writeAll(fd, data, piece.length * bytes,
                        layout.offsets[index] + piece.global * bytes);
      });
  if (!status)
    return Error{path + ": output '" + tensor.name + "' " + status.message()};
  return Ok{};
}

Status OutputFile::flush() {
  int result = fsync(fd);
  if (result != 0)
    return Error{path + ": cannot be written: " + systemError()};
  return Ok{};
}

Status OutputFile::rename() {
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    return Error{path + ": cannot be written: " + systemError()};
  owner = false;
  return Ok{};
}

} // namespace tessera
