find_package(GTest REQUIRED)

# tessera_unittest(NAME SOURCE... LIBS library...) adds a GoogleTest program, run
# by ctest as NAME.
function(tessera_unittest name)
  cmake_parse_arguments(arg "" "TIMEOUT" "LIBS" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${arg_LIBS} GTest::gtest GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT})
endfunction()
