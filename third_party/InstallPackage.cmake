# What `cmake --install` adds to the libraries and the program: headers, LibTorch if it is
# third_party/libtorch, and the files for find_package(TransformerZoo) and pkg-config transformer_zoo. `cpack`
# makes a Debian package and a tarball of the same.
include(CMakePackageConfigHelpers)

set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/TransformerZoo)
file(GLOB_RECURSE zoo_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} data/*.h tokenizer/*.h models/*.h
     apps/training/*.h)
install(CODE "
  set(SOURCE \"${PROJECT_SOURCE_DIR}\")
  set(STAGE \"${PROJECT_BINARY_DIR}/zoo\")
  set(DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/zoo\")
  set(HEADERS \"${zoo_headers}\")
  include(\"${PROJECT_SOURCE_DIR}/third_party/InstallHeaders.cmake\")")

# The clone's LibTorch is installed with the program, which then works without the clone and on other
# machines; a LibTorch in Torch_DIR is not copied.
set(_libtorch ${CMAKE_INSTALL_LIBDIR}/transformer_zoo/libtorch)
if(zoo_bundles_libtorch)
  file(GLOB _runtime ${LibTorch_ROOT}/lib/libtorch.so ${LibTorch_ROOT}/lib/libtorch_cpu.so ${LibTorch_ROOT}/lib/libc10.so
       ${LibTorch_ROOT}/lib/libgomp*.so* ${LibTorch_ROOT}/lib/lib*openblas*.so* ${LibTorch_ROOT}/lib/libarm_compute*.so*)
  install(PROGRAMS ${_runtime} DESTINATION ${_libtorch}/lib)
  install(DIRECTORY ${LibTorch_ROOT}/include DESTINATION ${_libtorch})
  file(RELATIVE_PATH _rpath /${CMAKE_INSTALL_BINDIR} /${_libtorch}/lib)
  set_target_properties(tzoo PROPERTIES INSTALL_RPATH "$ORIGIN/${_rpath}")
  # Below the prefix, which find_package and pkg-config know.
  set(_installed_libtorch "\${PACKAGE_PREFIX_DIR}/${_libtorch}")
  set(_pkgconfig_libtorch "\${prefix}/${_libtorch}")
else()
  set_target_properties(tzoo PROPERTIES INSTALL_RPATH "${LibTorch_ROOT}/lib")
  set(_installed_libtorch "${LibTorch_ROOT}")
  set(_pkgconfig_libtorch "${LibTorch_ROOT}")
endif()

# LibTorch promises no stable ABI between releases.
set(_exact_torch ${LibTorch_VERSION})
if(_exact_torch)
  string(APPEND _exact_torch " EXACT")
endif()
install(EXPORT TransformerZooTargets NAMESPACE zoo:: DESTINATION ${_package})
configure_package_config_file(third_party/TransformerZooConfig.cmake.in TransformerZooConfig.cmake
                              INSTALL_DESTINATION ${_package})
write_basic_package_version_file(TransformerZooConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TransformerZooConfig.cmake
              ${PROJECT_BINARY_DIR}/TransformerZooConfigVersion.cmake third_party/FindLibTorch.cmake
              third_party/FindSentencePiece.cmake
        DESTINATION ${_package})

# Libraries that a program must link in addition to a static library.
set(_private_libraries)
cmake_path(GET zoo_libtorch_openmp FILENAME _openmp)
if(_openmp STREQUAL "gomp")
  string(APPEND _private_libraries " -lgomp")
else()
  string(APPEND _private_libraries " ${_pkgconfig_libtorch}/lib/${_openmp}")
endif()
file(RELATIVE_PATH _to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" _to_prefix "${_to_prefix}")
configure_file(third_party/transformer_zoo.pc.in transformer_zoo.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/transformer_zoo.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(CPACK_GENERATOR "DEB;TGZ")
set(CPACK_PACKAGE_NAME tzoo)
set(CPACK_PACKAGE_VENDOR "Transformer Zoo")
set(CPACK_PACKAGE_CONTACT "Transformer Zoo")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME tzoo-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
# The packages of the linked libraries, with this release's names and versions.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${LibTorch_ROOT}/lib)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "gnuplot-nox, bible-kjv")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "curl")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
include(CPack)
