# MLIR and LLVM from the distribution, always as archives: the exported CMake
# targets mix libMLIR.so with the archives, and both in one binary crash.

find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

set(LLVM_CONFIG ${LLVM_TOOLS_BINARY_DIR}/llvm-config)
execute_process(
  COMMAND ${LLVM_CONFIG} --link-static --libs x86 orcjit bitreader bitwriter
          irreader asmparser passes lto debuginfodwarf dtlto libdriver windowsdriver
  OUTPUT_VARIABLE llvm_libs OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(llvm_libs)
list(FILTER llvm_libs EXCLUDE REGEX "Polly") # in a package of its own, unused
execute_process(
  COMMAND ${LLVM_CONFIG} --link-static --system-libs
  OUTPUT_VARIABLE llvm_system_libs OUTPUT_STRIP_TRAILING_WHITESPACE)
separate_arguments(llvm_system_libs)
file(GLOB mlir_archives ${LLVM_LIBRARY_DIR}/libMLIR*.a)
list(FILTER mlir_archives EXCLUDE REGEX "CAPI|Test|Python|ExecutionEngine|Runner|TableGen")

# Everything that a tool may use of MLIR, LLVM and lld; unused parts are dropped
# by the linker.
add_library(tessera-mlir INTERFACE)
target_include_directories(tessera-mlir SYSTEM INTERFACE
  ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
target_link_options(tessera-mlir INTERFACE -Wl,--gc-sections)
set(lld_archives ${LLVM_LIBRARY_DIR}/liblldELF.a ${LLVM_LIBRARY_DIR}/liblldCommon.a)
set(archives -Wl,--start-group ${mlir_archives} ${lld_archives}
  -L${LLVM_LIBRARY_DIR} ${llvm_libs} -Wl,--end-group)
# But a target with TESSERA_PLUGIN is loaded by what has the shared ones.
set(shared ${lld_archives} ${LLVM_LIBRARY_DIR}/libMLIR.so ${LLVM_LIBRARY_DIR}/libLLVM.so)
set(is_plugin $<BOOL:$<TARGET_PROPERTY:TESSERA_PLUGIN>>)
target_link_libraries(tessera-mlir INTERFACE
  "$<${is_plugin}:${shared}>" "$<$<NOT:${is_plugin}>:${archives}>"
  # What only unused parts need must not be where a package goes: libz3.
  -Wl,--as-needed ${llvm_system_libs} -Wl,--no-as-needed)

# For executables: a compiler makes and frees much that is small. Sanitizers have
# an allocator of their own.
add_library(tessera-malloc INTERFACE)
if(NOT TESSERA_SANITIZE)
  find_library(TESSERA_JEMALLOC libjemalloc.a REQUIRED)
  target_link_libraries(tessera-malloc INTERFACE ${TESSERA_JEMALLOC} -lpthread)
endif()

include_directories(SYSTEM ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})

# tessera_tablegen(TARGET FILE.td (OUTPUT -generator)...) makes the files in the
# current binary folder and a target that others depend on.
function(tessera_tablegen target td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  set(args ${ARGN})
  while(args)
    list(POP_FRONT args output generator)
    separate_arguments(generator)
    mlir_tablegen(${output} ${generator} -I ${PROJECT_SOURCE_DIR}/dialects)
  endwhile()
  add_public_tablegen_target(${target})
endfunction()

# tessera_passes(FOLDER SOURCE... LIBS library...) is the library of a folder of
# passes, whose names are in its Passes.td.
function(tessera_passes folder)
  cmake_parse_arguments(arg "" "" "LIBS" ${ARGN})
  tessera_tablegen(Tessera${folder}PassesIncGen Passes.td
    Passes.h.inc "-gen-pass-decls -name=${folder}")
  add_library(Tessera${folder} STATIC ${arg_UNPARSED_ARGUMENTS})
  add_dependencies(Tessera${folder} Tessera${folder}PassesIncGen)
  target_link_libraries(Tessera${folder} PUBLIC ${arg_LIBS})
  tessera_precompiled(compiler Tessera${folder})
endfunction()
