// Compiles a program for a mesh, in the process: compile PROGRAM AXIS=SIZE
// MODULE
#include <tessera/Compiler.h>

#include <fstream>
#include <iostream>
#include <sstream>

int main(int argc, char **argv) {
  if (argc != 4) {
    std::cerr << "usage: compile PROGRAM AXIS=SIZE MODULE\n";
    return 2;
  }
  std::ifstream file(argv[1]);
  std::stringstream source;
  source << file.rdbuf();
  if (!file) {
    std::cerr << "cannot read " << argv[1] << "\n";
    return 1;
  }

  tessera::CompileOptions options;
  options.name = argv[1];
  options.mesh = {argv[2]};
  tessera::CompileResult result = tessera::compile(source.str(), options);
  std::cerr << result.diagnostics;
  if (!result.succeeded)
    return 1;

  std::ofstream module(argv[3], std::ios::binary);
  module << result.output;
  return module.flush() ? 0 : 1;
}
