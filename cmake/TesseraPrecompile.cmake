# Headers that most files of a part read are parsed once for it: with MLIR's, that is more
# than half of the time that a file takes. Each file includes what it needs all the same.
#
# tessera_precompiled(SET target...): they have the headers of precompiled/SET.h, which is
# `mlir`, `compiler` (with our dialects) or `test`. Targets with options of their own
# cannot share them: tessera_precompiled(SET OWN target).
function(tessera_precompiled set)
  cmake_parse_arguments(arg "OWN" "" "" ${ARGN})
  set(header ${PROJECT_SOURCE_DIR}/cmake/precompiled/${set}.h)
  foreach(target ${arg_UNPARSED_ARGUMENTS})
    if(arg_OWN)
      target_precompile_headers(${target} PRIVATE ${header})
      # ccache knows headers by what is in them.
      target_compile_options(${target} PRIVATE -Xclang -fno-pch-timestamp)
    else()
      target_precompile_headers(${target} REUSE_FROM precompiled-${set})
    endif()
    # Of templates that the library marks so and uses all the same, it says nothing but
    # where it is parsed before.
    target_compile_options(${target} PRIVATE -Wno-deprecated-declarations)
    # A test's many assertions then take a quarter of the time to compile with sanitizers.
    if(TESSERA_SANITIZE AND set STREQUAL test)
      target_compile_options(${target} PRIVATE -O0)
    endif()
    if(set STREQUAL compiler)
      add_dependencies(${target} TesseraTensorViewIncGen
        TesseraTensorViewInterfacesIncGen TesseraCommIncGen TesseraPlanIncGen)
    endif()
  endforeach()
endfunction()

# Programs as libraries, whose headers they share.
set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC)
foreach(set mlir compiler test)
  if(set STREQUAL test OR NOT TESSERA_RUNTIME_ONLY)
    set(nothing ${PROJECT_BINARY_DIR}/precompiled/${set}.cpp)
    file(CONFIGURE OUTPUT ${nothing} CONTENT "// Whose headers others use.\n")
    add_library(precompiled-${set} OBJECT ${nothing})
    tessera_precompiled(${set} OWN precompiled-${set})
  endif()
endforeach()
target_link_libraries(precompiled-test PRIVATE GTest::gtest)
