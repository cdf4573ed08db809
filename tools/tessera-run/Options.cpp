//===- Options.cpp - the command line of tessera-run ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A flag's value comes as `--flag value` or `--flag=value`; some take none.
//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "Module/Module.h"
#include "Support/Names.h"
#include "Tensors/Safetensors.h"

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <map>

namespace tessera::run {

static const char *const kUsage =
    R"(usage: tessera-run MODULE.tsr [flags]       one rank
       tessera-run MODULE.tsr --ranks N ...    N ranks in this process
       mpirun -n N tessera-run MODULE.tsr ...  N ranks, one a process

  --inputs PATH         safetensors file, index, or folder; may be repeated
  --map FILE            JSON map {"port": "tensor" | {"name":, "cast":}}
  --size NAME=N         a dynamic size; those of inputs are known from the files
  --output FILE         safetensors file for outputs and the final state
  --report text|json    how to print collectives, times and memory;
           collectives  or only the collectives, in text, without their times
           ranks        or what each rank moves and holds
  --steps N             runs; a state goes from one to the next
  --log NAME            after each, a result or state that is a scalar; may be
                        repeated
  --save FILE           safetensors file for the states after the last run: with
                        it as --inputs, runs on any mesh go on from there
  --save-every N        after each N runs, too
  --attention LIST      variants of attention that may run, the preferred first:
                        flash,cudnn,math; else what the module prefers
  --matmul LIST         of matrix products: cublaslt,own
  --backend NAME        what runs it, cpu or cuda; else what it is compiled for
  --device N            the GPU of this rank; else the rank modulo their number
  --no-graph            cuda: enqueue the steps anew in each run
  --symmetric           cuda: NCCL maps temporaries between the GPUs
  --copy-engines        cuda: so it does, and copies without kernels
  --autotune FILE       cuda: measure algorithms of matrix products, as far as
                        FILE has none, and keep them in it
  --algorithms FILE     cuda: use those, and measure nothing
  --trace FILE          the last run's steps on all ranks, for Perfetto or
                        Chrome; steps are measured, so runs take longer
  --verify CPU.tsr      run this module, the same program compiled for cpu, on
                        the same inputs, and compare
  --verbose             a line on stderr for each step, before it begins
  --transport mpi|threads
  --ranks N             ranks of the transport `threads`
  --deadline SECONDS    without progress, after which a run is an error
  --memory-limit BYTES  for temporaries and constants of a rank
  --help, --version
)";

static bool parseWhole(const std::string &text, int64_t &value) {
  char *end = nullptr;
  errno = 0;
  value = std::strtoll(text.c_str(), &end, 10);
  return !text.empty() && *end == 0 && errno == 0 && text[0] != ' ';
}

Result<Options> parseOptions(int argc, const char *const *argv, bool underMPI) {
  Options options;
  bool ranksGiven = false, algorithmsGiven = false;

  struct Flag {
    std::string name;
    std::function<bool(const std::string &)> take; ///< false: a bad value
    const char *want;                              ///< null: it takes no value
  };
  auto positive = [](int64_t &target) {
    return [&target](const std::string &value) {
      return parseWhole(value, target) && target > 0;
    };
  };
  auto variantsOf = [&](const char *kind) {
    return [&options, kind](const std::string &value) {
      options.variants.emplace_back(kind, value);
      return !value.empty();
    };
  };
  const std::vector<Flag> flags = {
      {"--inputs",
       [&](const std::string &value) {
         options.inputs.push_back(value);
         return !value.empty();
       },
       "a path"},
      {"--map",
       [&](const std::string &value) {
         options.names = value;
         return !value.empty();
       },
       "a path"},
      {"--size",
       [&](const std::string &value) {
         size_t equals = value.find('=');
         int64_t size;
         if (equals == std::string::npos || equals == 0 ||
             !parseWhole(value.substr(equals + 1), size) || size < 0)
           return false;
         options.sizes.emplace_back(value.substr(0, equals), size);
         return true;
       },
       "NAME=N like b=3"},
      {"--output",
       [&](const std::string &value) {
         options.output = value;
         return !value.empty();
       },
       "a path"},
      {"--report",
       [&](const std::string &value) {
         using Format = Options::Format;
         options.report = value == "json"          ? Format::JSON
                          : value == "collectives" ? Format::Collectives
                          : value == "ranks"       ? Format::Ranks
                                                   : Format::Text;
         return options.report != Format::Text || value == "text";
       },
       "text, collectives, ranks or json"},
      {"--steps", positive(options.steps), "a number of runs, at least 1"},
      {"--log",
       [&](const std::string &value) {
         options.logged.push_back(value);
         return !value.empty();
       },
       "the name of a result or state"},
      {"--save",
       [&](const std::string &value) {
         options.save = value;
         return !value.empty();
       },
       "a path"},
      {"--save-every", positive(options.saveEvery),
       "a number of runs, at least 1"},
      {"--transport",
       [&](const std::string &value) {
         options.transport = value;
         return value == "mpi" || value == "threads";
       },
       "mpi or threads"},
      {"--ranks",
       [&](const std::string &value) {
         ranksGiven = true;
         return parseWhole(value, options.ranks) && options.ranks > 0 &&
                options.ranks <= 4096;
       },
       "a number of ranks, 1 to 4096"},
      {"--deadline",
       [&](const std::string &value) {
         char *end = nullptr;
         options.deadline = std::strtod(value.c_str(), &end);
         return !value.empty() && *end == 0 && options.deadline > 0 &&
                options.deadline < 1e9;
       },
       "a number of seconds above 0"},
      {"--memory-limit", positive(options.memoryLimit),
       "a number of bytes above 0"},
      {"--attention", variantsOf("attention"), "variants like flash,math"},
      {"--matmul", variantsOf("matmul"), "variants like cublaslt,own"},
      {"--backend",
       [&](const std::string &value) {
         options.backend = value;
         return !value.empty();
       },
       "a backend like cpu or cuda"},
      {"--device",
       [&](const std::string &value) {
         int64_t ordinal = -1;
         if (!parseWhole(value, ordinal) || ordinal < 0 || ordinal > 1023)
           return false;
         options.device = static_cast<int32_t>(ordinal);
         return true;
       },
       "the ordinal of a GPU, like 0"},
      {"--autotune",
       [&](const std::string &value) {
         options.autotune = true;
         options.algorithms = value;
         return !value.empty();
       },
       "a path"},
      {"--algorithms",
       [&](const std::string &value) {
         algorithmsGiven = true;
         options.algorithms = value;
         return !value.empty();
       },
       "a path"},
      {"--trace",
       [&](const std::string &value) {
         options.trace = value;
         return !value.empty();
       },
       "a path"},
      {"--verify",
       [&](const std::string &value) {
         options.verify = value;
         return !value.empty();
       },
       "a path"},
      {"--no-graph",
       [&](const std::string &) { return options.noGraph = true; }, nullptr},
      {"--symmetric",
       [&](const std::string &) { return options.symmetric = true; }, nullptr},
      {"--copy-engines",
       [&](const std::string &) { return options.copyEngines = true; },
       nullptr},
      {"--verbose", [&](const std::string &) { return options.verbose = true; },
       nullptr},
  };

  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      options.about = kUsage;
      return options;
    }
    if (argument == "--version") {
      options.about = "Tessera " TESSERA_VERSION "\n";
      return options;
    }
    if (argument.empty() || argument[0] != '-') {
      if (!options.module.empty())
        return Error{"'" + argument + "': only one module can be run, and '" +
                     options.module +
                     "' is given already; a value of a flag "
                     "goes right after it"};
      options.module = argument;
      continue;
    }
    size_t equals = argument.find('=');
    std::string name = argument.substr(0, equals);
    const Flag *flag = nullptr;
    std::vector<std::string> names;
    for (const Flag &each : flags) {
      names.push_back(each.name);
      if (each.name == name)
        flag = &each;
    }
    if (!flag)
      return Error{"unknown flag '" + name + "'" + suggestName(name, names)};
    if (!flag->want && equals != std::string::npos)
      return Error{name + " takes no value"};
    std::string value;
    if (!flag->want)
      ;
    else if (equals != std::string::npos)
      value = argument.substr(equals + 1);
    else if (i + 1 < argc)
      value = argv[++i];
    if (!flag->take(value))
      return Error{name + " '" + value + "': must be " + flag->want};
  }

  if (options.module.empty())
    return Error{"no module is given; see tessera-run --help"};
  if (options.autotune && algorithmsGiven)
    return Error{"--autotune uses what its file holds, too: --algorithms is "
                 "for runs that measure nothing"};
  std::map<std::string, const char *> written;
  for (auto [flag, path] : {std::pair("--output", &options.output),
                            std::pair("--save", &options.save),
                            std::pair("--trace", &options.trace)}) {
    auto [other, isNew] = written.try_emplace(*path, flag);
    if (!isNew && !path->empty())
      return Error{std::string(other->second) + " and " + flag + " are both '" +
                   *path + "'"};
  }
  if (options.saveEvery && options.save.empty())
    return Error{"--save-every needs --save FILE, where the states go"};
  if (options.transport.empty() && underMPI && !ranksGiven)
    options.transport = "mpi";
  if (options.transport.empty() && ranksGiven)
    options.transport = "threads";
  if (options.transport == "mpi" && ranksGiven)
    return Error{"--ranks is for --transport threads; with mpi, mpirun -n says "
                 "how many ranks there are"};
  if (options.transport == "threads" && !ranksGiven)
    return Error{"--transport threads needs --ranks N"};
  // Before there are that many threads; a module that cannot be read is an
  // error of the ranks.
  if (options.transport != "mpi")
    if (Result<ModuleReader> module = ModuleReader::open(options.module);
        module && module->mesh().numDevices() != options.ranks)
      return Error{"the module is for a mesh of " +
                   std::to_string(module->mesh().numDevices()) + " devices, " +
                   layout::toString(module->mesh()) + "; " +
                   std::to_string(options.ranks) +
                   " were started; run it with --ranks " +
                   std::to_string(module->mesh().numDevices()) +
                   ", or that many processes of mpirun"};
  return options;
}

} // namespace tessera::run
