//===- CompileTest.cpp - local programs compiled and run ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs of one device, as localization leaves them, go through the lower
// half of the compiler and run on ranks that are threads. Each file in
// programs/ is a test: what the ranks compute must equal what the interpreter
// makes of the same file, within the one tolerance.
//
//===----------------------------------------------------------------------===//

#include "../Runtime/Ranks.h"
#include "Compiler/Register.h"
#include "Interpreter/Machine/Inputs.h"
#include "Interpreter/Machine/Tolerance.h"
#include "Module/Module.h"
#include "TensorView/TensorView.h"
#include "tessera/Compiler.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

using namespace tessera;
using interp::NDArray;
using Arrays = std::vector<std::shared_ptr<NDArray>>;

namespace {

std::string readFile(const std::string &path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The program in another element type; a log-sum-exp stays f32.
std::string withElement(const std::string &source, const std::string &element) {
  std::stringstream lines(source), result;
  for (std::string line; std::getline(lines, line); result << line << "\n")
    if (line.find("lse") == std::string::npos)
      for (size_t at = 0; (at = line.find("xf32", at)) != std::string::npos;)
        line.replace(at + 1, 3, element), at += 1 + element.size();
  return result.str();
}

double toDouble(const NDArray &array, size_t at) {
  return array.isFloat() ? array.data[at].real
                         : static_cast<double>(array.data[at].whole);
}

std::string nameOf(mlir::DictionaryAttr attributes, const std::string &made) {
  auto name = attributes ? attributes.getAs<mlir::StringAttr>(tv::kNameAttr)
                         : mlir::StringAttr();
  return name ? name.str() : made;
}

class Program {
public:
  /// A program in the phase `from`.
  Program(const std::string &path, const std::string &from,
          const std::vector<std::string> &mesh = {},
          const std::string &element = "f32")
      : source(withElement(readFile(path), element)), isLocal(from == "local") {
    CompileOptions options;
    options.name = path;
    options.from = from;
    options.mesh = mesh;
    CompileResult result = compile(source, options);
    EXPECT_TRUE(result.succeeded) << result.diagnostics;
    module = result.output;
    if (!isCompiled())
      return;
    mlir::DialectRegistry registry;
    registerAll(registry);
    context.appendDialectRegistry(registry);
    parsed = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
    main = parsed->lookupSymbol<mlir::func::FuncOp>("main");
    ranks = ModuleReader::read(module)->mesh().numDevices();
  }

  bool isCompiled() const { return !module.empty(); }
  bool declares(const std::string &size) {
    auto sizes = main->getAttrOfType<mlir::DictionaryAttr>(tv::kSizesAttr);
    return sizes && sizes.get(size);
  }

  /// Runs with these sizes, others as the interpreter chooses, and compares.
  void check(const std::map<std::string, int64_t> &given) {
    auto sizes = interp::chooseSizes(main, given);
    ASSERT_TRUE(mlir::succeeded(sizes));
    auto inputs = interp::makeInputs(main, *sizes, /*seed=*/1, nullptr);
    ASSERT_TRUE(mlir::succeeded(inputs));
    interp::Config config;
    config.ranks = isLocal ? ranks : 1;
    config.ignoreViews = !isLocal;
    config.sizes = *sizes;
    interp::Interpreter exact(config);
    config.roundValues = true;
    interp::Interpreter rounded(config);
    auto expected = exact.run(main, *inputs);
    auto close = rounded.run(main, *inputs);
    ASSERT_TRUE(mlir::succeeded(expected) && mlir::succeeded(close));

    Arrays results = run(*sizes, *inputs, *expected);
    ASSERT_EQ(results.size(), expected->size());
    for (size_t i = 0; i < results.size(); ++i) {
      interp::Comparison comparison =
          interp::compare({*(*expected)[i], *(*close)[i]}, *results[i], ranks,
                          exact.getLargestAddend());
      if (comparison.differs) {
        size_t at = interp::linearize(*comparison.differs, results[i]->shape);
        ADD_FAILURE() << "result " << i << " at "
                      << interp::indexText(*comparison.differs) << " is "
                      << toDouble(*results[i], at) << ", expected "
                      << toDouble(*(*expected)[i], at) << " within "
                      << comparison.allowed;
      }
    }
  }

private:
  Arrays run(const std::map<std::string, int64_t> &sizes, const Arrays &inputs,
             const Arrays &expected) {
    // A state has both.
    std::map<std::string, std::shared_ptr<NDArray>> sources, targets;
    for (size_t i = 0; i < inputs.size(); ++i)
      sources[nameOf(main.getArgAttrDict(i), "arg" + std::to_string(i))] =
          inputs[i];
    Arrays results;
    for (size_t i = 0; i < expected.size(); ++i) {
      results.push_back(
          std::make_shared<NDArray>(expected[i]->type, expected[i]->shape));
      targets[nameOf(main.getResultAttrDict(i), "result" + std::to_string(i))] =
          results.back();
    }
    test::RunOptions options;
    for (const auto &size : sizes)
      options.symbols.push_back(size.second);
    std::mutex mutex;
    options.observe = [&](const std::string &port, const layout::Shape &index,
                          double got) {
      std::lock_guard lock(mutex);
      NDArray &array = *targets.at(port);
      interp::Scalar &element =
          array.data[interp::linearize(index, array.shape)];
      element = array.isFloat() ? interp::real(got)
                                : interp::whole(static_cast<int64_t>(got));
    };
    test::runModule(
        module, ranks,
        [&](const std::string &port, const layout::Shape &index, int) {
          const NDArray &array = *sources.at(port);
          return toDouble(array, interp::linearize(index, array.shape));
        },
        nullptr, options);
    return results;
  }

  std::string source, module;
  bool isLocal;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> parsed;
  mlir::func::FuncOp main;
  int64_t ranks = 0;
};

std::vector<std::string> getPrograms() {
  std::vector<std::string> names;
  for (const auto &entry :
       std::filesystem::directory_iterator(TESSERA_TEST_PROGRAMS))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class Compile : public testing::TestWithParam<std::string> {};

TEST_P(Compile, EqualsTheInterpreter) {
  Program program(
      std::string(TESSERA_TEST_PROGRAMS) + "/" + GetParam() + ".mlir", "local");
  ASSERT_TRUE(program.isCompiled());
  program.check({});
  // One module serves all sizes.
  if (program.declares("b"))
    program.check({{"b", 1}});
}

INSTANTIATE_TEST_SUITE_P(Programs, Compile, testing::ValuesIn(getPrograms()),
                         [](const auto &info) { return info.param; });

/// The number of f32 values between two, as both are rounded.
int64_t distance(float a, float b) {
  auto order = [](float x) {
    int32_t bits = std::bit_cast<int32_t>(x);
    return bits < 0 ? -static_cast<int64_t>(bits & 0x7fffffff) : bits;
  };
  return std::abs(order(a) - order(b));
}

TEST(Math, FunctionsAreWithinOneUlp) {
  CompileOptions options;
  options.name = TESSERA_TEST_PROGRAMS "/../functions.mlir";
  options.from = "local";
  CompileResult module = compile(readFile(options.name), options);
  ASSERT_TRUE(module.succeeded) << module.diagnostics;
  // Every 65521st of all f32 values, from one end to the other.
  auto number = [](int64_t i) {
    return std::bit_cast<float>(static_cast<uint32_t>(i * 65521));
  };
  test::RunOptions run;
  run.observe = [&](const std::string &port, const layout::Shape &index,
                    double got) {
    float x = number(index[0]);
    double exact = port == "exp"   ? std::exp(static_cast<double>(x))
                   : port == "erf" ? std::erf(static_cast<double>(x))
                                   : std::tanh(static_cast<double>(x));
    if (std::isnan(x))
      EXPECT_TRUE(std::isnan(got)) << port;
    else
      EXPECT_LE(distance(got, exact), 1) << port << " of " << x;
  };
  test::runModule(
      module.output, 1,
      [&](const std::string &, const layout::Shape &index, int) {
        return number(index[0]);
      },
      nullptr, run);
}

struct Example {
  const char *name;
  std::vector<std::string> mesh;
  std::map<std::string, int64_t> sizes;
  /// In place of f32, save on the lines of a log-sum-exp.
  std::string element = "f32";
};

class Examples : public testing::TestWithParam<Example> {};

TEST_P(Examples, EqualTheInterpreterOnWholeTensors) {
  Program program(std::string(TESSERA_EXAMPLES) + "/" + GetParam().name +
                      ".mlir",
                  "source", GetParam().mesh, GetParam().element);
  ASSERT_TRUE(program.isCompiled());
  program.check(GetParam().sizes);
}

INSTANTIATE_TEST_SUITE_P(
    Programs, Examples,
    testing::Values(Example{"mlp", {"tp=1"}, {}}, Example{"mlp", {"tp=2"}, {}},
                    Example{"mlp", {"tp=3"}, {}}, Example{"mlp", {"tp=4"}, {}},
                    Example{"gpt/block_tp", {"tp=2"}, {}},
                    Example{"gpt/block_tp", {"tp=3"}, {}},
                    Example{"gpt/block_tp", {"tp=4"}, {}},
                    Example{"gpt/block_tp", {"tp=5"}, {}},
                    Example{"gpt/block_sp", {"tp=2"}, {}},
                    Example{"gpt/block_sp", {"tp=3"}, {}},
                    Example{"gpt/block_sp", {"tp=4"}, {}},
                    Example{"gpt/block_dp_tp", {"dp=2", "tp=2"}, {}},
                    Example{"gpt/block_dp_tp", {"dp=2", "tp=3"}, {}},
                    Example{"mlp", {"tp=2"}, {}, "bf16"},
                    Example{"mlp", {"tp=3"}, {}, "f16"},
                    Example{"gpt/block_tp", {"tp=2"}, {}, "bf16"},
                    Example{"gpt/block_tp", {"tp=4"}, {}, "f16"},
                    Example{"gpt/block_sp", {"tp=2"}, {}, "bf16"}),
    [](const auto &info) {
      std::string name = info.param.name;
      for (const std::string &axis : info.param.mesh)
        name += "_" + axis;
      name += "_" + info.param.element;
      for (char &c : name)
        c = std::isalnum(c) ? c : '_';
      return name;
    });

} // namespace
