//===- TensorViewAttrs.cpp - text and checks of meshes and views ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/Transfers.h"
#include "TensorView/TensorView.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"

#include <array>
#include <charconv>
#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

bool AsmTokenSource::accept(std::string_view text) {
  if (text.size() == 1) {
    switch (text[0]) {
    case '*':
      return succeeded(parser.parseOptionalStar());
    case '(':
      return succeeded(parser.parseOptionalLParen());
    case ')':
      return succeeded(parser.parseOptionalRParen());
    case '[':
      return succeeded(parser.parseOptionalLSquare());
    case ']':
      return succeeded(parser.parseOptionalRSquare());
    case '{':
      return succeeded(parser.parseOptionalLBrace());
    case '}':
      return succeeded(parser.parseOptionalRBrace());
    case '<':
      return succeeded(parser.parseOptionalLess());
    case '>':
      return succeeded(parser.parseOptionalGreater());
    case ',':
      return succeeded(parser.parseOptionalComma());
    case ':':
      return succeeded(parser.parseOptionalColon());
    case '=':
      return succeeded(parser.parseOptionalEqual());
    case '|':
      return succeeded(parser.parseOptionalVerticalBar());
    case '?':
      return succeeded(parser.parseOptionalQuestion());
    case '+':
      return succeeded(parser.parseOptionalPlus());
    case '-':
      return succeeded(parser.parseOptionalMinus());
    default:
      break;
    }
  }
  return succeeded(
      parser.parseOptionalKeyword(StringRef(text.data(), text.size())));
}

std::optional<int64_t> AsmTokenSource::integer() {
  SMLoc loc = parser.getCurrentLocation();
  APInt value;
  OptionalParseResult result = parser.parseOptionalInteger(value);
  if (!result.has_value() || failed(*result))
    return std::nullopt;
  last = loc;
  if (value.getSignificantBits() > 64) {
    blameLast();
    return std::nullopt;
  }
  return value.getSExtValue();
}

std::optional<std::string> AsmTokenSource::identifier() {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (failed(parser.parseOptionalKeyword(&keyword)))
    return std::nullopt;
  last = loc;
  return keyword.str();
}

InFlightDiagnostic AsmTokenSource::emitError() const {
  return parser.emitError(blamesLast ? last : parser.getCurrentLocation());
}

//===----------------------------------------------------------------------===//
// MeshAttr
//===----------------------------------------------------------------------===//

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  AsmTokenSource tokens(parser);
  Result<layout::Mesh> mesh = layout::parseMesh(tokens);
  if (!mesh) {
    parser.emitError(loc) << mesh.message();
    return {};
  }
  return parser.getChecked<MeshAttr>(loc, parser.getContext(), *mesh);
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << layout::toString(getMesh());
}

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               layout::Mesh mesh) {
  if (Status status = layout::verify(mesh); !status)
    return emitError() << status.message();
  // Planning a move looks at each of them.
  if (mesh.numDevices() > 65536)
    return emitError() << "a mesh has at most 65536 devices";
  return success();
}

//===----------------------------------------------------------------------===//
// ViewAttr
//===----------------------------------------------------------------------===//

Attribute ViewAttr::parse(AsmParser &parser, Type) {
  MeshAttr mesh;
  if (parser.parseLess() || parser.parseAttribute(mesh) || parser.parseComma())
    return {};
  AsmTokenSource tokens(parser);
  Result<layout::View> view = layout::parseView(tokens, mesh.getMesh());
  if (!view) {
    tokens.emitError() << view.message();
    return {};
  }
  if (parser.parseGreater())
    return {};
  return ViewAttr::get(parser.getContext(), mesh, *view);
}

void ViewAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printAttribute(getMesh());
  printer << ", " << layout::toString(getView(), getLayoutMesh()) << ">";
}

LogicalResult
ViewAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                         function_ref<InFlightDiagnostic()> emitError) const {
  Status status = layout::verify(
      getView(), layout::Shape(shape.begin(), shape.end()), getLayoutMesh());
  if (!status)
    return emitError() << status.message();
  return success();
}

ViewAttr ViewAttr::with(layout::View view) const {
  return ViewAttr::get(getContext(), getMesh(), std::move(view));
}

//===----------------------------------------------------------------------===//
// LocalAttr
//===----------------------------------------------------------------------===//

Attribute LocalAttr::parse(AsmParser &parser, Type) {
  ViewAttr view;
  if (parser.parseLess() || parser.parseAttribute(view) ||
      parser.parseComma() || parser.parseKeyword("of"))
    return {};
  std::vector<layout::Extent> extents;
  auto parseExtent = [&]() -> ParseResult {
    AsmTokenSource tokens(parser);
    Result<layout::Extent> extent = layout::parseExtent(tokens);
    if (!extent)
      return tokens.emitError() << extent.message();
    extents.push_back(*extent);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     parseExtent) ||
      parser.parseGreater())
    return {};
  return LocalAttr::get(parser.getContext(), view, extents);
}

void LocalAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printAttribute(getView());
  printer << ", of [";
  llvm::interleaveComma(getExtents(), printer,
                        [&](const layout::Extent &extent) {
                          printer << layout::toString(extent);
                        });
  printer << "]>";
}

layout::Shape LocalAttr::getGlobalShape() const {
  layout::Shape shape;
  for (const layout::Extent &extent : getExtents())
    shape.push_back(extent.asShape());
  return shape;
}

/// The local extents that a type may state: those that all devices share.
static layout::Shape statedLocalShape(const layout::View &view,
                                      const layout::Shape &shape,
                                      const layout::Mesh &mesh) {
  layout::Shape stated = layout::maxLocalShape(view, shape, mesh);
  if (layout::isEven(view, shape, mesh))
    return stated;
  for (size_t dim = 0; dim < stated.size(); ++dim) {
    layout::View one;
    one.dims.push_back({view.dims[dim].product, 1});
    int64_t bound = layout::boundOf(view, dim, shape);
    if (bound == layout::kDynamic || !layout::isEven(one, {bound}, mesh))
      stated[dim] = layout::kDynamic;
  }
  return stated;
}

LogicalResult
LocalAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                          function_ref<InFlightDiagnostic()> emitError) const {
  layout::Shape global = getGlobalShape();
  Status status = layout::verify(getLayoutView(), global, getLayoutMesh());
  if (!status)
    return emitError() << status.message();
  layout::Shape local =
      statedLocalShape(getLayoutView(), global, getLayoutMesh());
  if (ArrayRef(local) == shape)
    return success();
  std::string text;
  for (int64_t extent : local)
    text +=
        (ShapedType::isDynamic(extent) ? "?" : std::to_string(extent)) + "x";
  llvm::raw_string_ostream(text) << elementType;
  return emitError() << "local shape must be " << text;
}

//===----------------------------------------------------------------------===//
// StepAttr
//===----------------------------------------------------------------------===//

/// The attribute's kinds are those of the layout algebra, and passes cast them.
static constexpr bool isSame(StepKind kind, layout::Step::Kind other) {
  return static_cast<int>(kind) == static_cast<int>(other);
}
static_assert(isSame(StepKind::Slice, layout::Step::Kind::Slice));
static_assert(isSame(StepKind::AllGather, layout::Step::Kind::AllGather));
static_assert(isSame(StepKind::AllReduce, layout::Step::Kind::AllReduce));
static_assert(isSame(StepKind::ReduceScatter,
                     layout::Step::Kind::ReduceScatter));
static_assert(isSame(StepKind::AllToAll, layout::Step::Kind::AllToAll));
static_assert(isSame(StepKind::Permute, layout::Step::Kind::Permute));
static_assert(isSame(StepKind::Broadcast, layout::Step::Kind::Broadcast));
static_assert(isSame(StepKind::Exchange, layout::Step::Kind::Exchange));
static_assert(isSame(StepKind::Fetch, layout::Step::Kind::Fetch));

Attribute StepAttr::parse(AsmParser &parser, Type) {
  StringRef keyword;
  MeshAttr mesh;
  SMLoc loc;
  if (parser.parseLess() || parser.getCurrentLocation(&loc) ||
      parser.parseKeyword(&keyword))
    return {};
  std::optional<StepKind> kind = symbolizeStepKind(keyword);
  if (!kind) {
    parser.emitError(loc) << "unknown step '" << keyword << "'";
    return {};
  }
  std::vector<layout::SubAxis> axes;
  if (parser.parseKeyword("over") || parser.parseAttribute(mesh))
    return {};
  AsmTokenSource tokens(parser);
  Result<std::vector<layout::SubAxis>> parsed =
      layout::parseAxes(tokens, mesh.getMesh());
  if (!parsed) {
    tokens.emitError() << parsed.message();
    return {};
  }
  std::string loser;
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("loser") || parser.parseEqual() ||
       parser.parseString(&loser)))
    return {};
  if (parser.parseGreater())
    return {};
  return StepAttr::get(parser.getContext(), *kind, mesh, *parsed,
                       StringAttr::get(parser.getContext(), loser));
}

void StepAttr::print(AsmPrinter &printer) const {
  printer << "<" << stringifyStepKind(getKind()) << " over ";
  printer.printAttribute(getMesh());
  printer << " [";
  llvm::interleaveComma(getAxes(), printer, [&](const layout::SubAxis &sub) {
    printer << layout::toString(sub, getMesh().getMesh());
  });
  printer << "]";
  if (!getLoser().empty()) {
    printer << ", loser = ";
    printer.printString(getLoser().getValue());
  }
  printer << ">";
}

//===----------------------------------------------------------------------===//
// MachineAttr
//===----------------------------------------------------------------------===//

/// The figures of a machine, by name.
template <typename MachineT> static auto getFigures(MachineT &machine) {
  return std::array{std::pair(StringRef("latency"), &machine.latency),
                    std::pair(StringRef("bandwidth"), &machine.bandwidth),
                    std::pair(StringRef("copy"), &machine.copy),
                    std::pair(StringRef("loops"), &machine.loops)};
}

/// A number; without a point, too, as 1e-5, which to MLIR is an
/// integer before a name and a sign.
static ParseResult parseFigure(AsmParser &parser, double &value) {
  SMLoc at = parser.getCurrentLocation();
  const bool isNegative = succeeded(parser.parseOptionalMinus());
  int64_t digits;
  OptionalParseResult integer = parser.parseOptionalInteger(digits);
  if (!integer.has_value()) {
    if (parser.parseFloat(value))
      return failure();
    value = isNegative ? -value : value;
    return success();
  }
  if (failed(*integer))
    return failure();
  std::string text = (isNegative ? "-" : "") + std::to_string(digits);
  StringRef exponent;
  if (succeeded(parser.parseOptionalKeyword(&exponent))) {
    text += exponent;
    if (exponent == "e" || exponent == "E") {
      int64_t power;
      if (parser.parseInteger(power))
        return failure();
      text += std::to_string(power);
    }
  }
  if (!llvm::to_float(text, value))
    return parser.emitError(at) << "expected a number, as 1.0e-5 or 1e-5";
  return success();
}

Attribute MachineAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  const double none = std::nan("");
  layout::Machine machine{none, none, none, none};
  if (parser.parseCommaSeparatedList(
          AsmParser::Delimiter::LessGreater, [&]() -> ParseResult {
            SMLoc at = parser.getCurrentLocation();
            StringRef name;
            if (parser.parseKeyword(&name) || parser.parseEqual())
              return failure();
            for (auto [figure, value] : getFigures(machine))
              if (figure == name && std::isnan(*value))
                return parseFigure(parser, *value);
            return parser.emitError(at)
                   << "'" << name << "' is not one of latency, bandwidth, "
                   << "copy and loops, each of which is given once";
          }))
    return {};
  return parser.getChecked<MachineAttr>(loc, parser.getContext(), machine);
}

void MachineAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(getFigures(getMachine()), printer, [&](auto figure) {
    // The shortest that is read as the same number, with the point that MLIR
    // wants.
    char digits[32];
    const auto end =
        std::to_chars(std::begin(digits), std::end(digits), *figure.second,
                      std::chars_format::scientific);
    std::string text(digits, end.ptr);
    if (text.find('.') == std::string::npos)
      text.insert(text.find('e'), ".0");
    printer << figure.first << " = " << text;
  });
  printer << ">";
}

LogicalResult MachineAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  layout::Machine machine) {
  for (auto [figure, value] : getFigures(machine))
    if (!std::isfinite(*value) || *value <= 0)
      return emitError() << "the " << figure << " of a machine is a number "
                         << "above 0, such as "
                         << "#tv.machine<latency = 5.0e-6, bandwidth = "
                         << "3.0e11, copy = 2.0e12, loops = 3.0e14>";
  return success();
}

layout::Machine tv::getMachine(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto machine = op->getAttrOfType<MachineAttr>(kMachineAttr))
      return machine.getMachine();
  return {};
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

ViewAttr tv::getView(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<ViewAttr>(tensor.getEncoding()) : ViewAttr();
}

RankedTensorType tv::withEncoding(Type type, Attribute encoding) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape(), tensor.getElementType(),
                               encoding);
}

RankedTensorType tv::getLocalType(RankedTensorType type,
                                  std::vector<layout::Extent> extents) {
  auto local =
      LocalAttr::get(type.getContext(), getView(type), std::move(extents));
  layout::Shape shape = statedLocalShape(
      local.getLayoutView(), local.getGlobalShape(), local.getLayoutMesh());
  return RankedTensorType::get(shape, type.getElementType(), local);
}

layout::Shape tv::getGlobalShape(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  if (auto local = dyn_cast_or_null<LocalAttr>(tensor.getEncoding()))
    return local.getGlobalShape();
  return layout::Shape(tensor.getShape().begin(), tensor.getShape().end());
}

void tv::nameLocation(Operation *op) {
  if (!isa<NameLoc>(op->getLoc()))
    op->setLoc(NameLoc::get(op->getName().getIdentifier(), op->getLoc()));
}

Type tv::getScalarType(Type element) {
  if (auto integer = dyn_cast<IntegerType>(element))
    return IntegerType::get(element.getContext(), integer.getWidth());
  return element;
}
