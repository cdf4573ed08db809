//===- ViewText.cpp - views and meshes as text ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The grammar of View.h as a recursive descent over a token source, a token
// source over a string, and the printer. The parser checks what it needs to
// build a view (axes exist); `verify` checks the rest.
//
//===----------------------------------------------------------------------===//

#include "Layout/View.h"

#include <algorithm>
#include <numeric>

using namespace tessera;
using namespace tessera::layout;

//===----------------------------------------------------------------------===//
// Tokens of a string
//===----------------------------------------------------------------------===//

namespace {
class StringTokens : public TokenSource {
public:
  explicit StringTokens(std::string_view text) : text(text) {}

  bool accept(std::string_view token) override {
    skipSpace();
    if (text.substr(pos, token.size()) != token)
      return false;
    // A keyword does not match the start of a longer word.
    if (isWordStart(token[0]) && pos + token.size() < text.size() &&
        isWord(text[pos + token.size()]))
      return false;
    pos += token.size();
    return true;
  }

  std::optional<int64_t> integer() override {
    skipSpace();
    size_t end = pos;
    int64_t value = 0;
    for (; end < text.size() && isDigit(text[end]); ++end)
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text[end] - '0', &value))
        return std::nullopt;
    if (end == pos || (end < text.size() && isWordStart(text[end])))
      return std::nullopt;
    last = pos;
    pos = end;
    return value;
  }

  std::optional<std::string> identifier() override {
    skipSpace();
    if (pos >= text.size() || !isWordStart(text[pos]))
      return std::nullopt;
    last = pos;
    while (pos < text.size() && isWord(text[pos]))
      ++pos;
    return std::string(text.substr(last, pos - last));
  }

  void blameLast() override { pos = last; }

  bool atEnd() {
    skipSpace();
    return pos >= text.size();
  }

  /// "MESSAGE at column N of `TEXT`".
  Error locate(const Error &error) const {
    return {error.message + " (at column " + std::to_string(pos + 1) + " of `" +
            std::string(text) + "`)"};
  }

private:
  static bool isDigit(char c) { return c >= '0' && c <= '9'; }
  static bool isWordStart(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  static bool isWord(char c) {
    return isWordStart(c) || isDigit(c) || c == '.' || c == '$';
  }
  void skipSpace() {
    while (pos < text.size() && (text[pos] == ' ' || text[pos] == '\t' ||
                                 text[pos] == '\n' || text[pos] == '\r'))
      ++pos;
  }

  std::string_view text;
  size_t pos = 0, last = 0;
};

//===----------------------------------------------------------------------===//
// The grammar
//===----------------------------------------------------------------------===//

/// Each method consumes one phrase; false means that `error` is set.
class Parser {
public:
  Parser(TokenSource &tokens, const Mesh *mesh) : tokens(tokens), mesh(mesh) {}

  Error error;

  bool parseMesh(Mesh &result) {
    if (!expect("<"))
      return false;
    do {
      std::optional<std::string> name = tokens.identifier();
      if (!name)
        return fail("expected the name of a mesh axis");
      if (!expect("="))
        return false;
      if (*name == "devices" && !result.axes.empty()) {
        if (!parseDevices(result))
          return false;
        break;
      }
      std::optional<int64_t> size = tokens.integer();
      if (!size)
        return fail("expected the size of mesh axis " + *name);
      result.axes.push_back({*name, *size});
    } while (tokens.accept(","));
    if (!expect(">"))
      return false;
    const std::vector<int64_t> listed = std::exchange(result.devices, {});
    if (Status status = verify(result); !status)
      return fail(status.message());
    // All in order are no list.
    std::vector<int64_t> inOrder(listed.size());
    std::iota(inOrder.begin(), inOrder.end(), int64_t(0));
    if (listed == inOrder && int64_t(listed.size()) == result.numDevices())
      return true;
    result.devices = listed;
    if (Status status = verify(result); !status)
      return fail(status.message());
    return true;
  }

  bool parseView(View &view) {
    if (tokens.accept("axes"))
      return refusePart(view);
    if (!parseList("[", "]", [&] { return parseDim(view); }))
      return false;
    while (tokens.accept(",")) {
      if (tokens.accept("alloc")) {
        if (view.alloc)
          return fail("`alloc` is there twice");
        view.alloc.emplace();
        if (!expect("=") ||
            !parseList("(", ")", [&] { return parseInt(*view.alloc); }))
          return false;
      } else if (tokens.accept("partial")) {
        if (!view.partial.empty())
          return fail("`partial` is there twice; one lists all states, as in "
                      "`[x : sum, y : sum]`");
        if (!expect("=") ||
            !parseList("[", "]", [&] { return parsePartial(view); }))
          return false;
      } else if (tokens.accept("priority")) {
        if (!view.priority.empty())
          return fail("`priority` is there twice");
        if (!expect("=") ||
            !parseList("[", "]", [&] { return parseInt(view.priority); }))
          return false;
      } else if (tokens.accept("axes")) {
        return refusePart(view);
      } else {
        return fail("expected `alloc`, `partial` or `priority`");
      }
    }
    return true;
  }

  bool parseAxes(std::vector<SubAxis> &axes) {
    return parseList("[", "]", [&] { return parseSub(axes.emplace_back()); });
  }

private:
  bool fail(std::string message) {
    error.message = std::move(message);
    return false;
  }
  /// Of the identifier or integer that was read.
  bool refuse(std::string message) {
    tokens.blameLast();
    return fail(std::move(message));
  }
  bool expect(std::string_view token) {
    return tokens.accept(token) ||
           fail("expected `" + std::string(token) + "`");
  }
  bool parseInt(std::vector<int64_t> &list) {
    std::optional<int64_t> value = tokens.integer();
    if (!value)
      return fail("expected an integer below 2^63");
    list.push_back(*value);
    return true;
  }
  template <typename Item>
  bool parseList(std::string_view open, std::string_view close, Item item) {
    if (!expect(open))
      return false;
    if (tokens.accept(close))
      return true;
    do {
      if (!item())
        return false;
    } while (tokens.accept(","));
    return expect(close);
  }

  /// `[` int, ... `]` | `iota` `(` axis, ... `)`
  bool parseDevices(Mesh &result) {
    if (!tokens.accept("iota"))
      return parseList("[", "]", [&] { return parseInt(result.devices); }) &&
             (!result.devices.empty() ||
              fail("`devices` lists each rank of the mesh once"));
    std::vector<int> order;
    auto axis = [&] {
      std::optional<std::string> name = tokens.identifier();
      if (!name)
        return fail("expected an axis of this mesh: " + names(result));
      std::optional<int> found = result.findAxis(*name);
      if (!found)
        return refuse("`iota` lists axes of this mesh: " + names(result));
      order.push_back(*found);
      return true;
    };
    if (!parseList("(", ")", axis))
      return false;
    std::vector<int> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < result.axes.size(); ++i)
      if (sorted.size() != result.axes.size() || sorted[i] != int(i))
        return fail("`iota` lists each axis of the mesh once: " +
                    names(result));
    if (Status status = verify(result); !status)
      return fail(status.message());
    if (result.numDevices() > 65536) // this text is short, the list is not
      return fail("`iota` lists at most 65536 devices");
    result.devices = iota(result, order);
    return true;
  }

  bool parseDim(View &view) {
    Dim dim;
    if (tokens.accept("flat")) {
      if (!expect("("))
        return false;
      std::optional<int64_t> span = tokens.integer();
      if (!span)
        return fail("expected how many dimensions `flat` spans");
      if (*span < 1)
        return refuse("`flat` spans one dimension or more");
      dim.span = *span;
      if (!expect(")"))
        return false;
    }
    if (!parseProduct(dim.product, 0))
      return false;
    view.dims.push_back(std::move(dim));
    return true;
  }

  bool parseProduct(Product &product, int depth) {
    // Bounds the recursion on hostile input; no real view comes near.
    if (depth > 64)
      return fail("groups are nested deeper than 64");
    do {
      if (!parseFactor(product, depth))
        return false;
    } while (tokens.accept("*"));
    return true;
  }

  bool parseFactor(Product &product, int depth) {
    if (std::optional<int64_t> size = tokens.integer()) {
      product.push_back(Factor::stored(*size));
      return true;
    }
    if (tokens.accept("?")) {
      product.push_back(Factor::open());
      return true;
    }
    if (tokens.accept("_")) {
      product.push_back(Factor::rest());
      return true;
    }
    if (tokens.accept("did")) {
      SubAxis sub;
      if (!expect("(") || !parseSub(sub) || !expect(")"))
        return false;
      product.push_back(Factor::device(sub));
      return true;
    }
    if (!tokens.accept("("))
      return fail("expected an integer, `_`, `?`, `did(...)` or `(`");
    Factor group = Factor::group({}, 0, 0);
    if (!parseProduct(group.product, depth + 1) || !expect("|"))
      return false;
    std::optional<int64_t> bound = tokens.integer();
    if (!bound)
      return fail("expected the bound of a group");
    group.hi = *bound;
    if (tokens.accept(":")) {
      bound = tokens.integer();
      if (!bound)
        return fail("expected the upper bound of a group");
      group.lo = group.hi;
      group.hi = *bound;
    }
    product.push_back(std::move(group));
    return expect(")");
  }

  /// Says how a view puts a value where the text, after `axes`, has some axes:
  /// `=` `{` axis `=` int, ... `}`.
  bool refusePart(const View &view) {
    std::string written, digits;
    int64_t place = 0;
    auto coordinate = [&] {
      SubAxis sub;
      if (!parseSub(sub) || !expect("="))
        return false;
      const std::string axis = toString(sub, *mesh);
      std::optional<int64_t> at = tokens.integer();
      if (!at || *at >= sub.size)
        return refuse(axis + " is 0 to " + std::to_string(sub.size - 1));
      written +=
          (written.empty() ? "" : ", ") + axis + " = " + std::to_string(*at);
      digits += "did(" + axis + ") * ";
      place = place * sub.size + *at;
      return true;
    };
    if (!expect("=") || !parseList("{", "}", coordinate))
      return false;
    const std::string dim = "(" + digits + "1 | " + std::to_string(place) +
                            ":" + std::to_string(place + 1) + ")";
    std::string dims = dim;
    for (const Dim &other : view.dims)
      dims += ", " + toString(other.product, *mesh);
    return refuse("a value on a part of the mesh has a dimension of 1 that "
                  "lies there: {" +
                  written + "} is `" + dim + "`, as in `[" + dims + "]`");
  }

  /// With `colon`, a `:` after the whole axis may belong to what follows; then
  /// it is consumed and `colon` set.
  bool parseSub(SubAxis &sub, bool *colon = nullptr) {
    std::optional<std::string> name = tokens.identifier();
    if (!name)
      return fail("expected a mesh axis: " + names(*mesh));
    std::optional<int> axis = mesh->findAxis(*name);
    if (!axis)
      return refuse("unknown mesh axis '" + *name + "'; the mesh has " +
                    names(*mesh));
    sub = {*axis, 1, mesh->axes[*axis].size};
    if (!tokens.accept(":"))
      return true;
    if (!tokens.accept("(")) {
      if (!colon)
        return fail("expected `(pre)size` of a sub-axis of " + *name);
      return *colon = true;
    }
    std::optional<int64_t> pre = tokens.integer();
    if (!pre || !expect(")"))
      return fail("expected `(pre)size` of a sub-axis of " + *name);
    std::optional<int64_t> size = tokens.integer();
    if (!size)
      return fail("expected the size of a sub-axis of " + *name);
    sub.pre = *pre;
    sub.size = *size;
    return true;
  }

  bool parsePartial(View &view) {
    Partial partial;
    bool colon = false;
    if (tokens.accept("(")) {
      do {
        if (!parseSub(partial.axes.emplace_back()))
          return false;
      } while (tokens.accept(","));
      if (!expect(")"))
        return false;
    } else if (!parseSub(partial.axes.emplace_back(), &colon)) {
      return false;
    }
    if (!colon && !expect(":"))
      return false;
    if (tokens.accept("sum"))
      partial.combiner = Combiner::Sum;
    else if (tokens.accept("max"))
      partial.combiner = Combiner::Max;
    else if (tokens.accept("min"))
      partial.combiner = Combiner::Min;
    else
      return fail("expected a combiner: sum, max or min");
    view.partial.push_back(std::move(partial));
    return true;
  }

  static std::string names(const Mesh &mesh) {
    std::string text;
    for (const Axis &axis : mesh.axes)
      text += (text.empty() ? "" : ", ") + axis.name;
    return text.empty() ? "no axes" : text;
  }

public:
  /// The rank at each position when ranks are numbered with the last axis of
  /// `order` fastest.
  static std::vector<int64_t> iota(const Mesh &mesh,
                                   const std::vector<int> &order) {
    std::vector<int64_t> stride(mesh.axes.size(), 1);
    int64_t count = 1;
    for (size_t i = order.size(); i-- > 0;) {
      stride[order[i]] = count;
      count *= mesh.axes[order[i]].size;
    }
    std::vector<int64_t> devices(count);
    for (int64_t position = 0; position < count; ++position) {
      int64_t rest = position;
      for (size_t i = mesh.axes.size(); i-- > 0;) {
        devices[position] += rest % mesh.axes[i].size * stride[i];
        rest /= mesh.axes[i].size;
      }
    }
    return devices;
  }

private:
  TokenSource &tokens;
  const Mesh *mesh;
};
} // namespace

Result<Mesh> layout::parseMesh(TokenSource &tokens) {
  Parser parser(tokens, nullptr);
  Mesh mesh;
  if (!parser.parseMesh(mesh))
    return parser.error;
  return mesh;
}

Result<View> layout::parseView(TokenSource &tokens, const Mesh &mesh) {
  Parser parser(tokens, &mesh);
  View view;
  if (!parser.parseView(view))
    return parser.error;
  return view;
}

Result<std::vector<SubAxis>> layout::parseAxes(TokenSource &tokens,
                                               const Mesh &mesh) {
  Parser parser(tokens, &mesh);
  std::vector<SubAxis> axes;
  if (!parser.parseAxes(axes))
    return parser.error;
  return axes;
}

template <typename T>
static Result<T> finish(StringTokens &tokens, Result<T> result) {
  if (!result)
    return tokens.locate(result.error());
  if (!tokens.atEnd())
    return tokens.locate({"expected the end of the text"});
  return result;
}

Result<Mesh> layout::parseMesh(std::string_view text) {
  StringTokens tokens(text);
  return finish(tokens, parseMesh(tokens));
}

Result<View> layout::parseView(std::string_view text, const Mesh &mesh) {
  StringTokens tokens(text);
  return finish(tokens, parseView(tokens, mesh));
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

/// Calls `item` for each element and puts `separator` between the texts.
template <typename Range, typename Item>
static void join(std::string &text, const Range &range, const char *separator,
                 Item item) {
  bool first = true;
  for (const auto &element : range) {
    if (!first)
      text += separator;
    first = false;
    item(element);
  }
}

static void joinInts(std::string &text, const std::vector<int64_t> &ints) {
  join(text, ints, ", ", [&](int64_t i) { text += std::to_string(i); });
}

std::string layout::toString(const Mesh &mesh) {
  std::string text = "<";
  join(text, mesh.axes, ", ", [&](const Axis &axis) {
    text += axis.name + " = " + std::to_string(axis.size);
  });
  if (mesh.devices.empty())
    return text + ">";

  // The order of the axes by the step that each makes in rank, if that gives
  // the same ranks.
  std::vector<int> order;
  std::vector<int64_t> step(mesh.axes.size(), INT64_MAX);
  int64_t inner = 1;
  for (size_t i = mesh.axes.size(); i-- > 0;) {
    if (mesh.axes[i].size > 1)
      step[i] = mesh.devices[inner] - mesh.devices[0];
    inner *= mesh.axes[i].size;
    order.insert(order.begin(), int(i));
  }
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return std::pair(-step[a], a) < std::pair(-step[b], b);
  });
  if (Parser::iota(mesh, order) == mesh.devices) {
    text += ", devices = iota(";
    join(text, order, ", ", [&](int i) { text += mesh.axes[i].name; });
    return text + ")>";
  }
  text += ", devices = [";
  joinInts(text, mesh.devices);
  return text + "]>";
}

std::string layout::toString(const SubAxis &sub, const Mesh &mesh) {
  std::string text = mesh.axes[sub.axis].name;
  if (!sub.isWhole(mesh))
    text += ":(" + std::to_string(sub.pre) + ")" + std::to_string(sub.size);
  return text;
}

static void print(std::string &text, const Product &product, const Mesh &mesh) {
  if (product.empty())
    text += "1";
  join(text, product, " * ", [&](const Factor &factor) {
    switch (factor.kind) {
    case Factor::Kind::Stored:
      text += std::to_string(factor.size);
      break;
    case Factor::Kind::Rest:
      text += "_";
      break;
    case Factor::Kind::Open:
      text += "?";
      break;
    case Factor::Kind::Device:
      text += "did(" + toString(factor.sub, mesh) + ")";
      break;
    case Factor::Kind::Group:
      text += "(";
      print(text, factor.product, mesh);
      text += " | ";
      if (factor.lo)
        text += std::to_string(factor.lo) + ":";
      text += std::to_string(factor.hi) + ")";
      break;
    }
  });
}

std::string layout::toString(const Product &product, const Mesh &mesh) {
  std::string text;
  print(text, product, mesh);
  return text;
}

const char *layout::toString(Combiner combiner) {
  switch (combiner) {
  case Combiner::Sum:
    return "sum";
  case Combiner::Max:
    return "max";
  case Combiner::Min:
    return "min";
  }
  __builtin_unreachable();
}

std::string layout::toString(const View &view, const Mesh &mesh) {
  std::string text = "[";
  join(text, view.dims, ", ", [&](const Dim &dim) {
    if (dim.span != 1)
      text += "flat(" + std::to_string(dim.span) + ") ";
    print(text, dim.product, mesh);
  });
  text += "]";
  if (view.alloc) {
    text += ", alloc = (";
    joinInts(text, *view.alloc);
    text += ")";
  }
  if (!view.partial.empty()) {
    text += ", partial = [";
    join(text, view.partial, ", ", [&](const Partial &partial) {
      bool single = partial.axes.size() == 1;
      text += single ? "" : "(";
      join(text, partial.axes, ", ",
           [&](const SubAxis &sub) { text += toString(sub, mesh); });
      text += single ? " : " : ") : ";
      text += toString(partial.combiner);
    });
    text += "]";
  }
  if (!view.priority.empty()) {
    text += ", priority = [";
    joinInts(text, view.priority);
    text += "]";
  }
  return text;
}
