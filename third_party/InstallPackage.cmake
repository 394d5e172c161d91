# What `cmake --install` adds to the libraries and the program: the headers and the files that let another project
# say find_package(TransformerZoo) and link zoo::models and its like.
include(CMakePackageConfigHelpers)

set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/TransformerZoo)
set(_headers ${CMAKE_INSTALL_INCLUDEDIR}/transformer_zoo)

# One file at a time: install(DIRECTORY) would make a folder for every folder without headers.
file(GLOB_RECURSE _files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} data/*.h tokenizer/*.h models/*.h
     apps/training/*.h)
list(FILTER _files EXCLUDE REGEX "/pch\\.h$")
foreach(_file IN LISTS _files)
  get_filename_component(_folder ${_file} DIRECTORY)
  install(FILES ${_file} DESTINATION ${_headers}/${_folder})
endforeach()

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
