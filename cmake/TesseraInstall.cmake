# `cmake --install` and cpack: tools, the two libraries with their headers, what
# find_package, pkg-config and Python need. All paths are relative, so that the tree may
# be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(config ${CMAKE_INSTALL_LIBDIR}/cmake/Tessera)

set_target_properties(tessera-run tessera-compile PROPERTIES
  INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
install(TARGETS tessera-opt tessera-compile tessera-lsp-server tessera-run RUNTIME)
foreach(library tessera tessera-compiler)
  target_include_directories(${library} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(TARGETS ${library} EXPORT TesseraTargets LIBRARY)
endforeach()
target_compile_features(tessera-compiler INTERFACE cxx_std_17)
# The library opens it, beside itself.
install(TARGETS tessera-mpi TesseraMLIRPlugin LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tessera TYPE INCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/tessera
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/python PATTERN __pycache__ EXCLUDE)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/python/tessera-view TYPE BIN)
file(MAKE_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/python/tessera-view
  ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/tessera-view SYMBOLIC)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE TYPE DOC)

install(EXPORT TesseraTargets NAMESPACE Tessera:: DESTINATION ${config})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/TesseraConfig.cmake.in
  ${PROJECT_BINARY_DIR}/TesseraConfig.cmake INSTALL_DESTINATION ${config})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TesseraConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TesseraConfig.cmake
  ${PROJECT_BINARY_DIR}/TesseraConfigVersion.cmake DESTINATION ${config})

# tessera_pkg_config(NAME "what it is")
function(tessera_pkg_config name description)
  file(WRITE ${PROJECT_BINARY_DIR}/${name}.pc
"prefix=\${pcfiledir}/../..
Name: ${name}
Description: ${description}
Version: ${PROJECT_VERSION}
Cflags: -I\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}
Libs: -L\${prefix}/${CMAKE_INSTALL_LIBDIR} -l${name}
")
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
tessera_pkg_config(tessera "Runs modules of sharded tensor programs")
tessera_pkg_config(tessera-compiler "Compiles sharded tensor programs to modules")

set(CPACK_GENERATOR TXZ)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_PACKAGE_FILE_NAME
  tessera-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
include(CPack)
