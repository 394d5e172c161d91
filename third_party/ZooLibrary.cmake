# Declares our targets.

# zoo_unity(NAME): compiles a dozen sources at a time, because LibTorch's headers and the JSON library take
# longer to compile than one of our sources. -DZOO_UNITY=OFF compiles each separately, which is quicker after
# a small change.
function(zoo_unity name)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${ZOO_UNITY} UNITY_BUILD_BATCH_SIZE 12)
endfunction()

# zoo_quick_to_compile(NAME): for programs whose own loops take no time; LibTorch and our libraries compute. In a Release
# build -O1 compiles a third faster than -O3. A precompiled header that it reuses must have the same option.
function(zoo_quick_to_compile name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# zoo_library(NAME SOURCES ... LINK ... [PRIVATE_LINK ...]) makes the static library zoo_NAME, alias zoo::NAME. Its
# headers are included by their path from the root ("models/registry.h").
function(zoo_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(zoo_${name} STATIC ${ARG_SOURCES})
  add_library(zoo::${name} ALIAS zoo_${name})
  zoo_unity(zoo_${name})
  set_target_properties(zoo_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(zoo_${name} PUBLIC cxx_std_20)
  target_include_directories(
    zoo_${name} PUBLIC $<BUILD_INTERFACE:${TransformerZoo_SOURCE_DIR}>
                       $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  if(NOT TransformerZoo_IS_TOP_LEVEL)
    target_include_directories(zoo_${name} INTERFACE $<BUILD_INTERFACE:${TransformerZoo_BINARY_DIR}/include>)
  endif()
  target_link_libraries(zoo_${name} PUBLIC ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK} $<BUILD_INTERFACE:zoo_flags>)
  install(TARGETS zoo_${name} EXPORT TransformerZooTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# zoo_embed(NAME VARIABLE FILE) adds to a target a source with zoo::embedded::VARIABLE, the text of a file of this folder.
# The text of other languages so lies in files of its own, and an installed program needs none of them.
function(zoo_embed name variable file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  file(READ ${file} text)
  configure_file(${PROJECT_SOURCE_DIR}/third_party/embedded_text.cpp.in ${CMAKE_CURRENT_BINARY_DIR}/embedded_${variable}.cpp @ONLY)
  target_sources(${name} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/embedded_${variable}.cpp)
endfunction()
