# `cmake --build build --target reference`: the API reference in build/reference, made by Doxygen from the
# installed headers (zoo_headers), under the paths that other projects include. A warning of Doxygen is an
# error.
find_package(Doxygen 1.9)
if(NOT DOXYGEN_FOUND)
  message(STATUS "No Doxygen: no target \"reference\" (Debian's doxygen has it)")
  return()
endif()

set(zoo_reference ${PROJECT_BINARY_DIR}/reference)
set(zoo_reference_headers ${PROJECT_BINARY_DIR}/reference-headers)
configure_file(third_party/Doxyfile.in ${zoo_reference_headers}/Doxyfile @ONLY)
file(WRITE ${zoo_reference_headers}/headers.cmake "
  set(SOURCE \"${PROJECT_SOURCE_DIR}\")
  set(STAGE \"${zoo_reference_headers}/stage\")
  set(DESTINATION \"${zoo_reference_headers}/zoo\")
  set(HEADERS \"${zoo_headers}\")
  set(MESSAGES MESSAGE_NEVER)
  include(\"${CMAKE_CURRENT_LIST_DIR}/InstallHeaders.cmake\")
")

add_custom_target(
  reference
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${zoo_reference} ${zoo_reference_headers}/stage ${zoo_reference_headers}/zoo
  COMMAND ${CMAKE_COMMAND} -P ${zoo_reference_headers}/headers.cmake
  COMMAND Doxygen::doxygen ${zoo_reference_headers}/Doxyfile
  COMMENT "The API reference: ${zoo_reference}/index.html"
  VERBATIM)
