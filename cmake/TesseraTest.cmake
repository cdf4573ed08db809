find_package(GTest REQUIRED)

# What a test that calls mpirun needs.
file(STRINGS ${PROJECT_SOURCE_DIR}/scripts/mpi.env TESSERA_MPI_ENVIRONMENT
     REGEX "^[^#]")

# tessera_unittest(NAME SOURCE... LIBS library... [PRECOMPILED compiler] [COMPUTES]) adds a
# GoogleTest program, run by ctest as NAME. One that computes much itself is optimized with
# sanitizers, too.
function(tessera_unittest name)
  cmake_parse_arguments(arg "COMPUTES" "TIMEOUT;PRECOMPILED" "LIBS" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${arg_LIBS} GTest::gtest GTest::gtest_main)
  if(NOT arg_PRECOMPILED)
    set(arg_PRECOMPILED test)
  endif()
  if(NOT (arg_COMPUTES AND TESSERA_SANITIZE))
    tessera_precompiled(${arg_PRECOMPILED} ${name})
  endif()
  add_test(NAME ${name} COMMAND ${name})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT})
endfunction()

# With the packages of requirements.txt; scripts/setup makes it.
set(TESSERA_PYTHON ${PROJECT_SOURCE_DIR}/.venv/bin/python3)
if(NOT EXISTS ${TESSERA_PYTHON})
  message(WARNING "${TESSERA_PYTHON} is missing: run scripts/setup, or the tests "
                  "that use Python fail")
endif()

# tessera_lit_tests() gives each folder below the current one that holds .mlir
# files to ctest as one test, lit/FOLDER, run by lit with all folders in it.
function(tessera_lit_tests)
  find_program(TESSERA_LIT NAMES lit lit-22 REQUIRED
    HINTS ${PROJECT_SOURCE_DIR}/.venv/bin ${LLVM_TOOLS_BINARY_DIR})
  configure_file(lit.site.cfg.py.in lit.site.cfg.py @ONLY)
  file(GLOB_RECURSE files RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}
       CONFIGURE_DEPENDS *.mlir)
  set(folders "")
  foreach(file ${files})
    cmake_path(GET file PARENT_PATH folder)
    list(APPEND folders ${folder})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  list(SORT folders) # a folder comes before those in it
  set(above "//")
  foreach(folder ${folders})
    string(FIND "${folder}/" "${above}/" at)
    if(NOT at EQUAL 0)
      set(above ${folder})
      add_test(NAME lit/${folder}
               COMMAND ${TESSERA_LIT} -sv ${CMAKE_CURRENT_BINARY_DIR}/${folder})
      set_tests_properties(lit/${folder} PROPERTIES TIMEOUT 900)
    endif()
  endforeach()
endfunction()
