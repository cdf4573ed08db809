//===- Extent.cpp - a size as a polynomial of dynamic sizes ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/Extent.h"

#include <algorithm>
#include <functional>

namespace tessera::layout {

static void addTerm(Extent &e, std::vector<std::string> symbols, int64_t c) {
  if (symbols.empty()) {
    e.constant += c;
    return;
  }
  if ((e.terms[symbols] += c) == 0)
    e.terms.erase(symbols);
}

std::optional<int64_t>
Extent::evaluate(const std::map<std::string, int64_t> &values) const {
  int64_t sum = constant;
  for (const auto &[symbols, coefficient] : terms) {
    int64_t term = coefficient;
    for (const std::string &symbol : symbols) {
      auto it = values.find(symbol);
      if (it == values.end())
        return std::nullopt;
      term *= it->second;
    }
    sum += term;
  }
  return sum;
}

Extent operator+(const Extent &a, const Extent &b) {
  Extent r = a;
  r.constant += b.constant;
  for (const auto &[symbols, c] : b.terms)
    addTerm(r, symbols, c);
  return r;
}

Extent operator-(const Extent &a, const Extent &b) {
  return a + b * Extent(-1);
}

Extent operator*(const Extent &a, const Extent &b) {
  Extent r;
  auto each = [](const Extent &e, auto f) {
    if (e.constant)
      f(std::vector<std::string>{}, e.constant);
    for (const auto &[symbols, c] : e.terms)
      f(symbols, c);
  };
  each(a, [&](const std::vector<std::string> &sa, int64_t ca) {
    each(b, [&](const std::vector<std::string> &sb, int64_t cb) {
      std::vector<std::string> symbols = sa;
      symbols.insert(symbols.end(), sb.begin(), sb.end());
      std::sort(symbols.begin(), symbols.end());
      addTerm(r, std::move(symbols), ca * cb);
    });
  });
  return r;
}

std::optional<Extent> divideExactly(const Extent &a, const Extent &b) {
  std::vector<std::string> divisor;
  int64_t coefficient = b.constant;
  if (!b.terms.empty()) {
    if (b.constant || b.terms.size() != 1)
      return std::nullopt;
    divisor = b.terms.begin()->first;
    coefficient = b.terms.begin()->second;
  }
  if (coefficient == 0)
    return std::nullopt;
  Extent r;
  if (a.constant) {
    if (!divisor.empty() || a.constant % coefficient)
      return std::nullopt;
    r.constant = a.constant / coefficient;
  }
  for (const auto &[symbols, c] : a.terms) {
    if (c % coefficient || !std::includes(symbols.begin(), symbols.end(),
                                          divisor.begin(), divisor.end()))
      return std::nullopt;
    std::vector<std::string> rest;
    std::set_difference(symbols.begin(), symbols.end(), divisor.begin(),
                        divisor.end(), std::back_inserter(rest));
    addTerm(r, std::move(rest), c / coefficient);
  }
  return r;
}

size_t hashValue(const Extent &extent) {
  size_t h = std::hash<int64_t>()(extent.constant);
  for (const auto &[symbols, c] : extent.terms) {
    h = h * 31 + std::hash<int64_t>()(c);
    for (const std::string &s : symbols)
      h = h * 31 + std::hash<std::string>()(s);
  }
  return h;
}

Result<Extent> parseExtent(TokenSource &tokens) {
  Extent sum;
  bool negative = tokens.accept("-");
  while (true) {
    Extent term(negative ? -1 : 1);
    do {
      if (std::optional<int64_t> value = tokens.integer())
        term = term * Extent(*value);
      else if (std::optional<std::string> name = tokens.identifier())
        term = term * Extent::symbol(*name);
      else
        return Error{"expected an integer or the name of a dynamic size"};
    } while (tokens.accept("*"));
    sum = sum + term;
    if (tokens.accept("+"))
      negative = false;
    else if (tokens.accept("-"))
      negative = true;
    else
      return sum;
  }
}

std::string toString(const Extent &extent) {
  std::string text;
  for (const auto &[symbols, c] : extent.terms) {
    int64_t magnitude = c;
    if (text.empty()) {
      if (c < 0)
        text += "-";
    } else {
      text += c < 0 ? " - " : " + ";
    }
    magnitude = c < 0 ? -c : c;
    bool first = true;
    if (magnitude != 1) {
      text += std::to_string(magnitude);
      first = false;
    }
    for (const std::string &s : symbols) {
      if (!first)
        text += " * ";
      text += s;
      first = false;
    }
  }
  if (text.empty())
    return std::to_string(extent.constant);
  if (extent.constant > 0)
    text += " + " + std::to_string(extent.constant);
  else if (extent.constant < 0)
    text += " - " + std::to_string(-extent.constant);
  return text;
}

} // namespace tessera::layout
