//===- Options.cpp - any command line of tessera-run ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An input has one argument a line. What is accepted must be within the bounds
// that the flags state; what is not has a reason.
//
//===----------------------------------------------------------------------===//

#include "../../tools/tessera-run/Options.h"
#include "Fuzz.h"

#include <cmath>
#include <string>

using namespace tessera;

int test::fuzzOne(std::string_view input) {
  std::vector<std::string> arguments = {"tessera-run"};
  for (std::string_view line : split(input, '\n'))
    arguments.emplace_back(line.substr(0, line.find('\0')));
  std::vector<const char *> argv;
  for (const std::string &argument : arguments)
    argv.push_back(argument.c_str());
  for (bool underMPI : {false, true}) {
    Result<run::Options> options =
        run::parseOptions(int(argv.size()), argv.data(), underMPI);
    if (!options) {
      FUZZ_CHECK(!options.message().empty());
      continue;
    }
    if (options->about)
      continue;
    FUZZ_CHECK(!options->module.empty());
    FUZZ_CHECK(options->steps > 0 && options->memoryLimit >= 0);
    FUZZ_CHECK(options->ranks > 0 && options->ranks <= 4096);
    FUZZ_CHECK(std::isfinite(options->deadline) && options->deadline > 0);
    FUZZ_CHECK(!options->device || *options->device >= 0);
    FUZZ_CHECK(options->transport == "" || options->transport == "mpi" ||
               options->transport == "threads");
    for (const auto &[name, size] : options->sizes)
      FUZZ_CHECK(!name.empty() && size >= 0);
  }
  return 0;
}
