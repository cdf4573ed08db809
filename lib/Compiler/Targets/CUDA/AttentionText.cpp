//===- AttentionText.cpp - attention's functors ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernels are attention_fwd.cuh, attention_few.cuh and attention_bwd.cuh.
// Written here is what they are templates of: functors for the program's
// functions of a score, the configuration, and `__global__` functions that hand
// over the launch's parameters.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/AttentionKeys.h"
#include "Compiler/Targets/CUDA/KernelForms.h"
#include "Compiler/Targets/CUDA/NVRTC.h"
#include "Compiler/Targets/CUDA/ScalarText.h"
#include "Compiler/Targets/CUDA/Scheduling.h"
#include "Kernels/cuda/attention/attention_tiles.h"

#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;
using namespace tessera::schedule;

namespace {
/// What the functors have of a query or of a key, which the kernel computes
/// once: the members of a struct.
struct Stage {
  StringRef type, function, parameters;
  SmallVector<Value> values = {};

  Stage(StringRef type, StringRef function, StringRef parameters,
        Operation *attention, RoleKind role)
      : type(type), function(function), parameters(parameters) {
    // The wide ones first: no gaps.
    for (Block *block : getFunctions(attention))
      for (Operation &op : block->without_terminator())
        if (hasRole(&op, role))
          for (Value result : op.getResults())
            values.insert(isWide(result.getType()) ? values.begin()
                                                   : values.end(),
                          result);
  }
  std::string getMember(Value value) const {
    return "v" + std::to_string(llvm::find(values, value) - values.begin());
  }
};

struct Stages {
  Stage row, column;
};
} // namespace

/// Writes the ops that `values` are computed from, to where `names` are known.
static LogicalResult writeSlice(KernelWriter &out, Block &block,
                                ArrayRef<Value> values) {
  llvm::SmallPtrSet<Operation *, 16> needed;
  for (Value value : values)
    if (!out.names.contains(value) && value.getDefiningOp() &&
        value.getParentBlock() == &block)
      needed.insert(value.getDefiningOp());
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    if (!needed.contains(&op))
      continue;
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (operand.getParentBlock() == &block && operand.getDefiningOp() &&
            !out.names.contains(operand))
          needed.insert(operand.getDefiningOp());
    });
  }
  for (Operation &op : block.without_terminator())
    if (needed.contains(&op) && failed(out.writeOp(&op)))
      return failure();
  return success();
}

/// The struct of a stage and the function that computes it.
static LogicalResult writeStage(KernelWriter &out, Operation *op,
                                Stage const &stage) {
  if (stage.values.empty())
    return success();
  out.open("struct " + stage.type);
  for (Value value : stage.values)
    out.line() << *getTypeName(value.getType()) << " " << stage.getMember(value)
               << ";\n";
  out.close("};");
  out.open("static __device__ " + stage.type + " " + stage.function +
           "(const Args &args, " + stage.parameters + ")");
  out.line() << "const " << out.getParametersType() << " &p = *args.p;\n";
  out.line() << "(void)p;\n";
  if (failed(out.enterFunction(op)))
    return failure();
  std::string results;
  for (Region &region : op->getRegions()) {
    if (region.empty())
      continue;
    Block &block = region.front();
    for (auto [name, argument] :
         llvm::zip_equal(ArrayRef<StringRef>{"b", "h", "q", "k"},
                         block.getArguments().take_back(4)))
      out.names[argument] = name.str();
    SmallVector<Value> own;
    llvm::copy_if(stage.values, std::back_inserter(own), [&](Value value) {
      return value.getParentBlock() == &block;
    });
    if (failed(writeSlice(out, block, own)))
      return failure();
  }
  for (Value value : stage.values)
    results += (results.empty() ? "" : ", ") + out.name(value);
  out.line() << "return {" << results << "};\n";
  out.close();
  return success();
}

/// In the function `keys`, where the values of no query have names.
static LogicalResult writeBound(KernelWriter &out, Block &mask,
                                const KeyBound &bound) {
  SmallVector<Value> ofQuery;
  for (const KeyBound::Quotient &quotient : bound.ofQuery)
    ofQuery.push_back(quotient.of);
  if (failed(writeSlice(out, mask, ofQuery)))
    return failure();
  std::string text = "int64(" + std::to_string(bound.constant) + ")";
  auto add = [&](int64_t factor, const std::string &number) {
    text += " + " + std::to_string(factor) + " * " + number;
  };
  for (const KeyBound::Quotient &quotient : bound.ofQuery) {
    const std::string name = out.name(quotient.of);
    add(quotient.factor,
        quotient.by == 1
            ? name
            : "(int64(" + name + ") / " + std::to_string(quotient.by) + ")");
  }
  for (auto [value, factor] : bound.values) {
    std::string number = "int64(" + out.name(value) + ")";
    if (const std::string far = "int64(" + std::to_string(KeyBound::kFar) + ")";
        mayBeFar(value))
      number = "max(-" + far + ", min(" + far + ", " + number + "))";
    add(factor, number);
  }
  if (!bound.isPlain()) {
    std::string numbers;
    for (int64_t number : bound.numbers)
      numbers += (numbers.empty() ? "" : ", ") + std::to_string(number);
    text = "keys_below<" + numbers + ">(" + text + ")";
  }
  out.line() << (bound.isEnd ? "end = min(end, " : "begin = max(begin, ")
             << text << ");\n";
  return success();
}

/// The keys that queries from `first` to `last` may see, as far as comparisons
/// are bounds of them. `least`: as keepsRange.
static LogicalResult writeKeys(KernelWriter &out, Operation *op, Block &mask,
                               int64_t least) {
  SmallVector<KeyBound> bounds;
  for (arith::CmpIOp compare : mask.getOps<arith::CmpIOp>())
    if (compare->hasAttr(kBoundAttr))
      llvm::append_range(bounds, getKeyBounds(compare));
  if (bounds.empty())
    return success();
  llvm::DenseMap<Operation *, unsigned> dependences = getDependences(mask);
  auto isOfHead = [&](Value value) {
    Operation *made = value.getDefiningOp();
    return made ? (dependences.lookup(made) & OnHead) != 0
                : value == mask.getArgument(1);
  };
  if (llvm::any_of(bounds, [&](const KeyBound &bound) {
        return llvm::any_of(llvm::make_first_range(bound.values), isOfHead) ||
               llvm::any_of(bound.ofQuery, [&](const KeyBound::Quotient &of) {
                 return isOfHead(of.of);
               });
      }))
    out.line() << "static constexpr bool KeysByHead = true;\n";
  if (keepsRange(mask, least))
    out.line() << "static constexpr bool KeepsRange = true;\n";
  out.open("static __device__ KeyRange keys(const Args &args, int64 b, int64 "
           "h, int64 first, int64 last, int keys)");
  out.line() << "const " << out.getParametersType() << " &p = *args.p;\n";
  out.line() << "(void)p;\n";
  if (failed(out.enterFunction(op, mask.getParent())))
    return failure();
  out.names[mask.getArgument(0)] = "b";
  out.names[mask.getArgument(1)] = "h";
  SmallVector<Value> values;
  for (const KeyBound &bound : bounds)
    llvm::append_range(values, llvm::make_first_range(bound.values));
  if (failed(writeSlice(out, mask, values)))
    return failure();
  out.line() << "int64 begin = 0, end = keys;\n";
  const llvm::DenseMap<Value, std::string> ofAll = out.names;
  for (const KeyBound &bound : bounds) {
    out.names = ofAll;
    out.names[mask.getArgument(2)] = bound.isEnd ? "last" : "first";
    if (failed(writeBound(out, mask, bound)))
      return failure();
  }
  out.line() << "return {int(min(begin, int64(keys))), int(max(end, "
                "int64(0)))};\n";
  out.close();
  return success();
}

/// A static member of the functors: `region` as a function of a score and its
/// gradient, as far as it has them, and a pair of a query and a key.
static LogicalResult writeFunctor(KernelWriter &out, Operation *op,
                                  Region &region, const std::string &functor,
                                  Stages const &stages) {
  static constexpr StringLiteral kScores[] = {"s", "dy"};
  static constexpr StringLiteral kIndices[] = {"at.batch", "at.head",
                                               "at.query", "at.key"};
  Block &block = region.front();
  auto scores = ArrayRef(kScores).take_front(block.getNumArguments() - 4);
  SmallVector<Value> results(block.getTerminator()->getOperands());
  out.line() << "template <class At>\n";
  std::string text = "static __device__ " + *getTypeName(results[0].getType()) +
                     " " + functor + "(const Args &args";
  for (StringRef score : scores)
    text += ", float " + score.str();
  text += ", const At &at";
  if (results.size() > 1)
    text += ", float (&addends)[" + std::to_string(results.size() - 1) + "]";
  out.open(text + ")");
  out.line() << "const " << out.getParametersType() << " &p = *args.p;\n";
  out.line() << "(void)p;\n";
  if (failed(out.enterFunction(op, &region)))
    return failure();
  for (auto [variable, argument] : llvm::zip(scores, block.getArguments()))
    out.names[argument] = variable.str();
  for (auto [variable, argument] :
       llvm::zip_equal(kIndices, block.getArguments().take_back(4)))
    out.names[argument] = variable.str();
  for (Stage const *stage : {&stages.row, &stages.column})
    for (Value value : stage->values)
      out.names[value] =
          "at." + stage->function.str() + "." + stage->getMember(value);
  // The kernel's scale has the factors.
  for (Operation &op : block.without_terminator())
    if (hasRole(&op, RoleKind::InnerScale))
      out.names[op.getResult(0)] = kScores[0].str();
    else if (hasRole(&op, RoleKind::OuterScale))
      results.front() = getScaling(&op)->value;
  if (failed(writeSlice(out, block, results)))
    return failure();
  for (auto [n, addend] : llvm::enumerate(ArrayRef(results).drop_front()))
    out.line() << "addends[" << n << "] = " << out.name(addend) << ";\n";
  out.line() << "return " << out.name(results[0]) << ";\n";
  out.close();
  return success();
}

/// What the kernels can do (Attention.cpp says what that is); `tensors` are all
/// of four dimensions.
static LogicalResult verifyHeads(Operation *op, ArrayRef<Value> tensors) {
  for (Value tensor : tensors) {
    auto own = cast<MemRefType>(tensor.getType());
    SmallVector<int64_t> strides;
    int64_t offset;
    if (!(own.getElementType().isBF16() || own.getElementType().isF16()) ||
        failed(own.getStridesAndOffset(strides, offset)) || strides.back() != 1)
      return op->emitError()
             << "attention on cuda reads and writes heads of "
                "bf16 or f16 that are contiguous in memory, not "
             << own;
  }
  return success();
}

/// Packed, by the words of their tiles.
template <typename Op> static int64_t getNumSequences(Op op) {
  return (cast<MemRefType>(op.getTiles().getType()).getDimSize(1) -
          cast<MemRefType>(op.getQuery().getType()).getDimSize(2) - 4) /
         8;
}

/// Rows of no packed sequence: in these tensors, what they have there instead.
template <typename Op>
static void fillOutside(KernelWriter &out, Op op, StringRef mods,
                        StringRef arguments,
                        ArrayRef<std::pair<Value, StringRef>> tensors) {
  if (!op.getTiles())
    return;
  for (auto [tensor, value] : tensors)
    if (tensor)
      out.line() << "fill_outside(" << mods << "::packed(" << arguments << "), "
                 << out.name(tensor) << ", " << value << ");\n";
}

/// Of a page of keys.
static int64_t getPageRows(plan::AttentionOp op) {
  return cast<MemRefType>(op.getKey().getType()).getDimSize(2);
}

/// Whether all tiles of so many positions are whole, as is known here. Those of
/// packed sequences and of pages end where they do.
template <typename Op> static bool isWhole(Op op, Value tensor, int64_t tile) {
  if constexpr (std::is_same_v<Op, plan::AttentionOp>)
    if (op.getPages())
      return false;
  const int64_t size = cast<MemRefType>(tensor.getType()).getDimSize(2);
  return !op.getTiles() && !ShapedType::isDynamic(size) && size % tile == 0;
}

/// The functors of an attention or its gradient: `symbol`_Mods.
template <typename Op>
static LogicalResult writeMods(KernelWriter &out, Op op,
                               const std::string &symbol) {
  SmallVector<std::tuple<Region *, StringRef, StringRef>> regions = {
      {&op.getScoreMod(), "HasScore", "score"},
      {&op.getMaskMod(), "HasMask", "mask"}};
  if constexpr (std::is_same_v<Op, plan::AttentionGradOp>) {
    regions.push_back({&op.getScoreGrad(), "HasScoreGrad", "score_grad"});
    regions.push_back({&op.getWalkMod(), "", "mask_head"});
  }
  regions.push_back({&op.getBlockMod(), "", "kind"});
  regions.push_back({&op.getNumberMod(), "HasDropout", "number"});
  regions.push_back({&op.getCausalMod(), "", "last_key"});
  out.line() << "\n";
  out.open("struct " + symbol + "_Mods : AttentionMods");
  out.line() << "struct Args {\n";
  out.line() << "  const " << out.getParametersType() << " *p;\n";
  out.line() << "};\n";
  Builder b(op.getContext());
  out.line() << "static constexpr float Scale = "
             << getLiteral(b.getF32FloatAttr(op.getScale().convertToDouble()))
             << ";\n";
  if (op.getCausal())
    out.line() << "static constexpr bool Causal = true;\n";
  const AttentionAttr tiles = getAttention(op);
  if (isWhole(op, op.getQuery(), tiles.getRows()))
    out.line() << "static constexpr bool WholeQueries = true;\n";
  if (isWhole(op, op.getKey(), tiles.getKeys()))
    out.line() << "static constexpr bool WholeKeys = true;\n";
  if (op.getBlocks())
    out.line() << "static constexpr int BlockQueries = " << (*op.getBlocks())[0]
               << ", BlockKeys = " << (*op.getBlocks())[1] << ";\n";
  if constexpr (std::is_same_v<Op, plan::AttentionGradOp>)
    if (Value walks = op.getWalks()) {
      out.open("static __device__ const int *walks(const Args &args, const "
               "IndexPair &at, bool last)");
      out.line() << "return args.p->" << out.getArgument(walks)
                 << ".data + (mask_head(args, at) * 2 + last) * "
                 << cast<MemRefType>(walks.getType()).getDimSize(3) << ";\n";
      out.close();
    }
  if (op.getTiles()) {
    out.line() << "static constexpr bool Packed = true;\n";
    out.open("static __device__ PackedTiles packed(const Args &args)");
    out.line() << "return {reinterpret_cast<const PackedHeader *>(args.p->"
               << out.getArgument(op.getTiles()) << ".data), "
               << getNumSequences(op) << "};\n";
    out.close();
  }
  if (op.getDropout()) {
    const double rate = op.getDropout()->convertToDouble();
    const std::string p = "args.p->";
    out.line() << "static constexpr uint32 DropBelow = "
               << tv::DropoutOp::leastKept(rate) << ";\n";
    out.line() << "static constexpr float KeptScale = "
               << getLiteral(b.getF32FloatAttr(1 / (1 - rate))) << ";\n";
    if (areInGroups(op.getNumberMod().front(), 8))
      out.line() << "static constexpr bool KeysInEights = true;\n";
    out.open("static __device__ WeightStream stream(const Args &args)");
    std::string stream = "uint64(" + p + out.getArgument(op.getStream()) + ")";
    if (op.getStep())
      stream += " + (uint64(" + p + out.getArgument(op.getStep()) +
                ".data[0]) << 32)";
    APInt seed;
    out.line() << "return {uint64("
               << (matchPattern(op.getSeed(), m_ConstantInt(&seed))
                       ? getLiteral(b.getIntegerAttr(b.getI64Type(), seed))
                       : p + out.getArgument(op.getSeed()))
               << "), " << stream << "};\n";
    out.close();
  }
  if constexpr (std::is_same_v<Op, plan::AttentionOp>)
    if (Value pages = op.getPages()) {
      const std::string table = "args.p->" + out.getArgument(pages);
      out.line() << "static constexpr int PageRows = " << getPageRows(op)
                 << ";\n";
      out.open("static __device__ int page(const Args &args, int batch, int "
               "index)");
      out.line() << "return " << table << ".data[batch * " << table
                 << ".stride[0] + index * " << table << ".stride[1]];\n";
      out.close();
    }
  if (!op.getScoreMod().empty())
    for (Operation &scale : op.getScoreMod().front())
      for (auto [role, name] : {std::pair(RoleKind::InnerScale, "InnerScale"),
                                {RoleKind::OuterScale, "OuterScale"}})
        if (hasRole(&scale, role))
          out.line() << "static constexpr float " << name << " = "
                     << getLiteral(b.getFloatAttr(b.getF32Type(),
                                                  getScaling(&scale)->factor))
                     << ";\n";
  if constexpr (std::is_same_v<Op, plan::AttentionOp>)
    if (isBoundedTanh(op))
      out.line() << "static constexpr bool BoundedTanh = true;\n";
  if constexpr (std::is_same_v<Op, plan::AttentionGradOp>)
    if (!op.getSums().empty()) {
      out.line() << "static constexpr int Sums = " << op.getSums().size()
                 << ";\n";
      std::string kinds;
      for (auto [n, by] :
           llvm::enumerate(op.getSumsBy().template getAsRange<StringAttr>())) {
        std::string kind = by.getValue().str();
        kind[0] = llvm::toUpper(kind[0]);
        kinds += n + 1 == op.getSums().size() ? "SumBy::" + kind
                                              : "n == " + std::to_string(n) +
                                                    " ? SumBy::" + kind + " : ";
      }
      out.open("static __device__ constexpr SumBy sum_by(int n)");
      out.line() << "return " << kinds << ";\n";
      out.close();
    }
  llvm::SaveAndRestore<Rounding> rounding(out.rounding);
  if (op.getQuery().getType().getElementType().isBF16())
    out.rounding = Rounding::Scores;
  const Stages stages = {
      {"Row", "row", "int64 b, int64 h, int64 q", op, RoleKind::Query},
      {"Column", "column", "int64 b, int64 k", op, RoleKind::Key}};
  for (Stage const *stage : {&stages.row, &stages.column})
    if (failed(writeStage(out, op, *stage)))
      return failure();
  for (auto [region, flag, name] : regions) {
    if (region->empty())
      continue;
    if (!flag.empty())
      out.line() << "static constexpr bool " << flag << " = true;\n";
    if (failed(writeFunctor(out, op, *region, name.str(), stages)))
      return failure();
  }
  if (!op.getCausalMod().empty() && !isShift(op.getCausalMod().front())) {
    out.open("static __device__ int64 diagonal(const Args &args, int64 query)");
    out.line() << "return last_key(args, IndexPair{0, 0, query, 0});\n";
    out.close();
  }
  if (!op.getMaskMod().empty() &&
      failed(writeKeys(out, op, op.getMaskMod().front(),
                       tiles.getRows() + tiles.getKeys())))
    return failure();
  out.close("};");
  return success();
}

/// How far behind a query, or what its functor says, the last key lies that it
/// sees.
template <typename Op>
static void writeCausal(KernelWriter &out, Op op, const std::string &symbol) {
  out.line() << "f.causal_shift = "
             << (op.getCausalMod().empty() ? "f.keys - f.queries"
                 : isShift(op.getCausalMod().front())
                     ? "int(" + symbol + "_Mods::last_key(f.args, IndexPair{}))"
                     : "0")
             << ";\n";
}

/// A tensor among the kernel's parameters f.
static void writePointer(KernelWriter &out, StringRef field, Value tensor) {
  if (!tensor)
    return;
  out.line() << "f." << field << " = " << out.name(tensor) << ".data;\n";
  for (int dim = 0; dim < 3; ++dim)
    out.line() << "f." << field << "_strides[" << dim
               << "] = " << out.name(tensor) << ".stride[" << dim << "];\n";
}

static unsigned numberOf(Value tensor) {
  return cast<BlockArgument>(tensor).getArgNumber();
}

/// How the kernel of an attention is written and launched.
namespace {
struct ForwardForm {
  StringRef name;    // before Config, Maps and Params
  StringRef kernel;  // the template's function
  std::string tiles; // behind the types
  std::vector<DeviceFunction::Boxed> boxed;
};
} // namespace

static int64_t getMultiprocessors(plan::AttentionOp op) {
  return plan::getTarget(op).getLimits().multiprocessors;
}
/// A block of keys, as one copy has it.
static int32_t getBoxKeys(plan::AttentionOp op) {
  const int64_t keys = getAttention(op).getKeys();
  return op.getPages() ? std::gcd(keys, getPageRows(op)) : keys;
}
/// Tiles of a head's queries.
static ForwardForm getQueryForm(plan::AttentionOp op,
                                DeviceFunction &function) {
  const AttentionAttr tiles = getAttention(op);
  const int32_t rows = tiles.getRows(), keys = tiles.getKeys();
  function.threads = 128 * (rows / 64 + 1);
  for (unsigned dim : {0, 1, 2})
    function.space.push_back(
        {SpaceExtent::Kind::Dimension, 0, numberOf(op.getResult()), dim});
  std::string text = std::to_string(rows) + ", " + std::to_string(keys) + ", " +
                     std::to_string(tiles.getStages());
  if (tiles.getShared()) {
    // All blocks count the steps: there is one without keys, too.
    function.space.push_back(
        {SpaceExtent::Kind::Constant, getMultiprocessors(op)});
    text += ", " + std::to_string(getMultiprocessors(op));
  }
  const int32_t box = getBoxKeys(op);
  return {"Fwd",
          "attention_fwd",
          text,
          {{numberOf(op.getQuery()), {1, 1, rows, 64}},
           {numberOf(op.getKey()), {1, 1, box, 64}},
           {numberOf(op.getValue()), {1, 1, box, 64}},
           {numberOf(op.getResult()), {1, 1, 64, 64}}}};
}

/// Queries of all heads of a group in a tile; blocks share the keys.
static ForwardForm getFewForm(plan::AttentionOp op, DeviceFunction &function) {
  const AttentionAttr tiles = getAttention(op);
  const int32_t keys = tiles.getKeys(), box = getBoxKeys(op);
  const int32_t queries = getTileQueries(op);
  function.threads = 128 * (kFewPipes + 1);
  function.space = {
      {SpaceExtent::Kind::Dimension, 0, numberOf(op.getQuery()), 0},
      {SpaceExtent::Kind::Dimension, 0, numberOf(op.getKey()), 1},
      {SpaceExtent::Kind::Constant, getMultiprocessors(op)}};
  return {"Few",
          "attention_few",
          std::to_string(tiles.getRows()) + ", " + std::to_string(keys) + ", " +
              std::to_string(tiles.getStages()) + ", " +
              std::to_string(getMultiprocessors(op)),
          {{numberOf(op.getQuery()),
            {1, int32_t(tiles.getRows()) / queries, queries, 64}},
           {numberOf(op.getKey()), {1, 1, box, 64}},
           {numberOf(op.getValue()), {1, 1, box, 64}}}};
}

LogicalResult cuda::writeAttention(KernelWriter &out, plan::AttentionOp op,
                                   DeviceFunction &function) {
  if (failed(verifyHeads(
          op, {op.getQuery(), op.getKey(), op.getValue(), op.getResult()})))
    return failure();
  auto type = cast<MemRefType>(op.getQuery().getType());
  const int64_t depth = type.getDimSize(3);
  const int64_t ofValues =
      cast<MemRefType>(op.getValue().getType()).getDimSize(3);
  const std::string &symbol = function.symbol,
                    parameters = out.getParametersType();
  const bool few = isOfFew(op), shares = few || getAttention(op).getShared();
  ForwardForm form =
      few ? getFewForm(op, function) : getQueryForm(op, function);
  function.persistent = true;
  function.shared = getSharedBytes(op);
  function.boxed = std::move(form.boxed);
  for (DeviceFunction::Boxed &boxed : function.boxed)
    boxed.ragged = bool(op.getTiles());

  if (failed(writeMods(out, op, symbol)))
    return failure();

  out.nameParameters();
  auto size = [&](Value tensor, int dim) {
    return "int(" + out.name(tensor) + ".size[" + std::to_string(dim) + "])";
  };
  const std::string config = symbol + "_Config";
  out.line() << "using " << config << " = " << form.name << "Config<"
             << *getTypeName(type.getElementType()) << ", " << depth << ", "
             << symbol << "_Mods, " << ofValues << ", " << form.tiles << ">;\n";
  out.line() << "static_assert(" << config
             << "::Threads == " << function.threads << " &&\n";
  out.line() << "              sizeof(" << config
             << "::Shared) <= " << function.shared << ",\n";
  out.line() << "              \"what the launch says\");\n";
  out.line() << "// Launches of a module follow each other.\n";
  if (shares) {
    const std::string slots =
        config +
        (few ? "::MostPipes" : "::MostBlocks * " + config + "::Groups") +
        " * 2";
    out.line() << "static __device__ __align__(16) float " << symbol
               << "_pieces[" << slots << " * " << config << "::PieceFloats];\n";
    out.line() << "static __device__ int " << symbol << "_arrived[2 * " << slots
               << "];\n";
  } else {
    out.line() << "static __device__ int " << symbol << "_ticket;\n";
  }
  out.line() << "struct " << symbol << "_Boxed {\n";
  out.line() << "  " << parameters << " p;\n";
  out.line() << "  " << form.name << "Maps maps;\n";
  out.line() << "};\n";
  out.line() << "extern \"C\" __global__ void __launch_bounds__("
             << function.threads << ", 1)\n";
  out.open(symbol + "(const __grid_constant__ " + symbol + "_Boxed boxed)");
  out.line() << "const " << parameters << " &p = boxed.p;\n";
  out.line() << form.name << "Params<" << symbol << "_Mods::Args> f = {};\n";
  writePointer(out, "o", op.getResult());
  writePointer(out, "lse", op.getLse());
  if (few)
    out.line() << "f.tile_queries = " << getTileQueries(op) << ";\n";
  if (shares) {
    out.line() << "f.pieces = " << symbol << "_pieces;\n";
    out.line() << "f.arrived = " << symbol << "_arrived;\n";
  } else {
    out.line() << "f.ticket = &" << symbol << "_ticket;\n";
  }
  out.line() << "f.batch = " << size(op.getQuery(), 0) << ";\n";
  out.line() << "f.heads = " << size(op.getQuery(), 1) << ";\n";
  out.line() << "f.key_heads = " << size(op.getKey(), 1) << ";\n";
  out.line() << "f.queries = " << size(op.getQuery(), 2) << ";\n";
  out.line() << "f.keys = "
             << (op.getPages() ? std::to_string(op.getNumKeys())
                               : size(op.getKey(), 2))
             << ";\n";
  out.line() << "f.args.p = &p;\n";
  writeCausal(out, op, symbol);
  fillOutside(
      out, op, symbol + "_Mods", "f.args",
      {{op.getResult(), "{}"}, {op.getLse(), "__int_as_float(0xff800000)"}});
  out.line() << form.kernel << "<" << config << ">(boxed.maps, f);\n";
  out.close();
  return success();
}

LogicalResult cuda::writeAttentionGrad(KernelWriter &out,
                                       plan::AttentionGradOp op,
                                       const std::string &symbol,
                                       std::vector<DeviceFunction> &functions) {
  if (failed(verifyHeads(op, {op.getQuery(), op.getKey(), op.getValue(),
                              op.getGrad(), op.getOutput(), op.getQueryGrad(),
                              op.getKeyGrad(), op.getValueGrad()})))
    return failure();
  auto type = cast<MemRefType>(op.getQuery().getType());
  const int64_t depth = type.getDimSize(3);
  const int64_t ofValues =
      cast<MemRefType>(op.getValue().getType()).getDimSize(3);
  const std::string parameters = out.getParametersType();
  const AttentionAttr tiles = getAttention(op);
  const int32_t rows = tiles.getRows(), keys = tiles.getKeys();
  DeviceFunction prepare, main, finish, share;
  prepare.symbol = symbol + "_prepare";
  main.symbol = symbol + "_main";
  finish.symbol = symbol + "_finish";
  share.symbol = symbol + "_share";
  // Of query heads, where they share keys, or the results themselves.
  const bool shares = bool(op.getKeyGradOfHeads());
  Value keyGrad = shares ? op.getKeyGradOfHeads() : op.getKeyGrad();
  Value valueGrad = shares ? op.getValueGradOfHeads() : op.getValueGrad();
  auto points = [&](DeviceFunction &function, Value tensor, int64_t items) {
    function.items = items;
    for (unsigned dim : {0, 1, 2})
      function.space.push_back(
          {SpaceExtent::Kind::Dimension, 0, numberOf(tensor), dim});
  };
  prepare.threads = finish.threads = share.threads = 256;
  points(prepare, op.getQuery(), rows);
  points(finish, op.getQuery(), rows);
  constexpr int64_t kShareRows = 32; // half of a block of one of the two
  points(share, op.getKey(), kShareRows);
  // Blocks of a cluster have a part of a tile each.
  const int32_t cluster = isOfClusters(op) ? 2 : 1;
  main.threads = cluster > 1 ? 512 : 384;
  main.cluster = cluster;
  main.persistent = true;
  main.shared = getSharedBytes(op);
  main.early = finish.early = share.early = true;
  points(main, keyGrad, keys / cluster);
  main.boxed = {{numberOf(op.getQuery()), {1, 1, rows / cluster, 64}},
                {numberOf(op.getKey()), {1, 1, keys / cluster, 64}},
                {numberOf(op.getValue()), {1, 1, keys / cluster, 64}},
                {numberOf(op.getGrad()), {1, 1, rows / cluster, 64}},
                {numberOf(keyGrad), {1, 1, 64, 64}},
                {numberOf(valueGrad), {1, 1, 64, 64}}};
  for (DeviceFunction::Boxed &boxed : main.boxed)
    boxed.ragged = bool(op.getTiles());
  if (failed(writeMods(out, op, symbol)))
    return failure();

  out.nameParameters();
  const std::string config = symbol + "_Config", bwd = symbol + "_Bwd";
  out.line() << "using " << config << " = BwdConfig<"
             << *getTypeName(type.getElementType()) << ", " << depth << ", "
             << symbol << "_Mods, /*Ordered=*/true, " << rows << ", " << keys
             << ", " << tiles.getStages() << ", " << ofValues << ">;\n";
  out.line() << "static_assert(" << config << "::Threads == " << main.threads
             << " && " << config << "::SideThreads == " << prepare.threads
             << " && " << config << "::Cluster == " << main.cluster << " &&\n";
  out.line() << "              sizeof(" << config
             << "::Shared) <= " << main.shared << " && " << config
             << "::HasFinish == " << (tiles.getFinish() ? "true" : "false")
             << ",\n";
  out.line() << "              \"what the launch says\");\n";
  out.line() << "// Launches of a module follow each other.\n";
  out.line() << "static __device__ int " << symbol << "_ticket;\n";
  out.line() << "using " << bwd << " = BwdParams<" << symbol << "_Mods::Args, "
             << config << "::Sums>;\n";
  out.open("static __device__ " + bwd + " " + symbol + "_parameters(const " +
           parameters + " &p)");
  out.line() << bwd << " f = {};\n";
  writePointer(out, "o", op.getOutput());
  writePointer(out, "dout", op.getGrad());
  writePointer(out, "dq", op.getQueryGrad());
  writePointer(out, "lse", op.getLse());
  writePointer(out, "dlse", op.getLseGrad());
  out.line() << "f.workspace = " << out.name(op.getScratch()) << ".data;\n";
  for (auto [n, sum] : llvm::enumerate(op.getSums())) {
    const std::string field = "f.sums[" + std::to_string(n) + "].";
    out.line() << field << "to = " << out.name(sum) << ".data;\n";
    for (int dim = 0; dim < cast<MemRefType>(sum.getType()).getRank(); ++dim)
      out.line() << field << "strides[" << dim << "] = " << out.name(sum)
                 << ".stride[" << dim << "];\n";
  }
  auto size = [&](StringRef field, Value tensor, int dim) {
    out.line() << "f." << field << " = int(" << out.name(tensor) << ".size["
               << dim << "]);\n";
  };
  out.line() << "f.ticket = &" << symbol << "_ticket;\n";
  size("batch", op.getQuery(), 0);
  size("heads", op.getQuery(), 1);
  size("key_heads", op.getKey(), 1);
  size("queries", op.getQuery(), 2);
  size("keys", op.getKey(), 2);
  out.line() << "f.args.p = &p;\n";
  writeCausal(out, op, symbol);
  out.line() << "return f;\n";
  out.close();

  for (auto [side, name] : {std::pair(&prepare, "attention_bwd_prepare"),
                            std::pair(&finish, "attention_bwd_finish")}) {
    if (side == &finish && !tiles.getFinish())
      continue;
    std::string bounds = config + "::SideThreads";
    if (side == &prepare)
      bounds += ", resident(" + config + "::PrepareBlocks)";
    out.openGlobal(bounds, side->symbol);
    out.line() << "const " << bwd << " f = " << symbol << "_parameters(p);\n";
    out.line() << "const int blocks = BwdSide<" << config
               << ">::blocks(f) * f.heads * f.batch;\n";
    if (side == &prepare)
      fillOutside(
          out, op, symbol + "_Mods", "f.args",
          {{op.getQueryGrad(), "{}"}, {keyGrad, "{}"}, {valueGrad, "{}"}});
    out.line() << "for (int i = blockIdx.x; i < blocks; i += gridDim.x)\n";
    out.line() << "  " << name << "<" << config << ">(f, i);\n";
    out.close();
  }
  if (shares) {
    out.openGlobal(config + "::SideThreads", share.symbol);
    out.line() << "static_assert(kShareRows == " << 2 * kShareRows
               << ", \"what the launch says\");\n";
    out.line() << "BwdShares<" << symbol << "_Mods::Args> f = {};\n";
    writePointer(out, "dk.from", keyGrad);
    writePointer(out, "dk.to", op.getKeyGrad());
    writePointer(out, "dv.from", valueGrad);
    writePointer(out, "dv.to", op.getValueGrad());
    size("batch", op.getKey(), 0);
    size("heads", op.getQuery(), 1);
    size("key_heads", op.getKey(), 1);
    size("keys", op.getKey(), 2);
    out.line() << "f.args.p = &p;\n";
    out.line() << "const int blocks = bwd_share_blocks(f);\n";
    out.line() << "for (int i = blockIdx.x; i < blocks; i += gridDim.x)\n";
    out.line() << "  attention_bwd_share<" << config << ">(f, i);\n";
    out.close();
  }
  out.line() << "struct " << main.symbol << "_Boxed {\n";
  out.line() << "  " << parameters << " p;\n";
  out.line() << "  BwdMaps maps;\n";
  out.line() << "};\n";
  out.line() << "extern \"C\" __global__ void "
             << (cluster > 1 ? "__cluster_dims__(2) " : "")
             << "__launch_bounds__(" << main.threads << ", 1)\n";
  out.open(main.symbol + "(const __grid_constant__ " + main.symbol +
           "_Boxed boxed)");
  out.line() << "const " << bwd << " f = " << symbol
             << "_parameters(boxed.p);\n";
  out.line() << "attention_bwd<" << config << ">(boxed.maps, f);\n";
  out.close();
  functions = {std::move(prepare), std::move(main)};
  if (tiles.getFinish())
    functions.push_back(std::move(finish));
  if (shares)
    functions.push_back(std::move(share));
  return success();
}
