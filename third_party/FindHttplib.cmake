# Finds cpp-httplib and makes zoo::httplib. Debian builds it as a library, whose header has structs that
# depend on macros; its pkg-config file has these. Elsewhere it is header-only.
find_path(Httplib_INCLUDE_DIR httplib.h)
find_library(Httplib_LIBRARY NAMES cpp-httplib httplib)
mark_as_advanced(Httplib_INCLUDE_DIR Httplib_LIBRARY)

if(Httplib_INCLUDE_DIR)
  file(STRINGS ${Httplib_INCLUDE_DIR}/httplib.h _line REGEX "^#define CPPHTTPLIB_VERSION \"" LIMIT_COUNT 1)
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" Httplib_VERSION "${_line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Httplib REQUIRED_VARS Httplib_INCLUDE_DIR VERSION_VAR Httplib_VERSION)

if(Httplib_FOUND AND NOT TARGET zoo::httplib)
  add_library(zoo::httplib INTERFACE IMPORTED)
  target_include_directories(zoo::httplib SYSTEM INTERFACE ${Httplib_INCLUDE_DIR})
  if(Httplib_LIBRARY)
    target_link_libraries(zoo::httplib INTERFACE ${Httplib_LIBRARY})
    cmake_path(GET Httplib_LIBRARY PARENT_PATH _folder)
    if(EXISTS ${_folder}/pkgconfig/cpp-httplib.pc)
      file(STRINGS ${_folder}/pkgconfig/cpp-httplib.pc _flags REGEX "^Cflags:")
      string(REGEX MATCHALL "CPPHTTPLIB_[A-Z0-9_]+(=[^ ]+)?" _macros "${_flags}")
      target_compile_definitions(zoo::httplib INTERFACE ${_macros})
    endif()
  endif()
endif()
