# Finds LibTorch and makes the target zoo::libtorch.
#
# Torch's own TorchConfig.cmake of a CUDA build asks for nvcc and the CUDA toolkit; a program that only calls the
# library needs neither, so the target is put together here from the headers and shared libraries that are present.
#
# Looked for in: Torch_DIR (variable or environment; the folder of TorchConfig.cmake, or the root of a LibTorch),
# then third_party/libtorch, where third_party/install.sh puts it.
set(_torch_hints ${Torch_DIR} $ENV{Torch_DIR})
list(TRANSFORM _torch_hints APPEND /../../.. OUTPUT_VARIABLE _torch_roots)

find_path(LibTorch_ROOT include/ATen/ATen.h
          HINTS ${_torch_roots} ${_torch_hints} ${CMAKE_CURRENT_LIST_DIR}/libtorch/torch
          NO_DEFAULT_PATH)
find_library(LibTorch_LIBRARY torch HINTS ${LibTorch_ROOT}/lib NO_DEFAULT_PATH)

foreach(_header headeronly/version.h version.h)
  if(EXISTS "${LibTorch_ROOT}/include/torch/${_header}" AND NOT LibTorch_VERSION)
    file(STRINGS "${LibTorch_ROOT}/include/torch/${_header}" LibTorch_VERSION
         REGEX "^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+$")
    list(TRANSFORM LibTorch_VERSION REPLACE "^.* " "")
    list(JOIN LibTorch_VERSION "." LibTorch_VERSION)
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  LibTorch
  REQUIRED_VARS LibTorch_LIBRARY LibTorch_ROOT
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "run third_party/install.sh, or set Torch_DIR to a LibTorch")

if(LibTorch_FOUND AND NOT TARGET zoo::libtorch)
  set(_torch_libraries)
  foreach(_name torch torch_cpu c10 torch_cuda c10_cuda)
    find_library(LibTorch_${_name}_LIBRARY ${_name} HINTS ${LibTorch_ROOT}/lib NO_DEFAULT_PATH)
    mark_as_advanced(LibTorch_${_name}_LIBRARY)
    if(LibTorch_${_name}_LIBRARY)
      list(APPEND _torch_libraries ${LibTorch_${_name}_LIBRARY})
    endif()
  endforeach()

  add_library(zoo::libtorch INTERFACE IMPORTED)
  target_include_directories(zoo::libtorch SYSTEM INTERFACE ${LibTorch_ROOT}/include
                                                            ${LibTorch_ROOT}/include/torch/csrc/api/include)
  target_compile_features(zoo::libtorch INTERFACE cxx_std_20)
  # torch_cuda registers its kernels when it is loaded; nothing refers to it by name.
  target_link_libraries(zoo::libtorch INTERFACE -Wl,--push-state,--no-as-needed ${_torch_libraries}
                                                -Wl,--pop-state)
  target_link_options(zoo::libtorch INTERFACE -Wl,-rpath,${LibTorch_ROOT}/lib)

  # The OpenMP runtime in LibTorch's own folder, or the system's where LibTorch was built with that.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    file(GLOB _torch_gomp ${LibTorch_ROOT}/lib/libgomp*.so*)
    list(APPEND _torch_gomp gomp)
    list(POP_FRONT _torch_gomp zoo_libtorch_openmp)
    target_link_libraries(zoo::libtorch INTERFACE ${zoo_libtorch_openmp})
  endif()
endif()
mark_as_advanced(LibTorch_ROOT LibTorch_LIBRARY)
