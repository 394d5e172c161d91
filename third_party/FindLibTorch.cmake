# Finds LibTorch and makes the target zoo::libtorch.
#
# In a CUDA build, Torch's TorchConfig.cmake requires nvcc and the CUDA toolkit; a program that only calls the
# library needs neither, so the target is made here from the headers and shared libraries.
#
# If Torch_DIR is set (variable or environment: the folder of TorchConfig.cmake, or the root of a LibTorch),
# searches only there; otherwise in third_party/libtorch, where third_party/install.sh installs it, or in
# LibTorch_FALLBACKS, which an installed TransformerZooConfig.cmake sets.
set(_torch_dir ${Torch_DIR})
if(NOT _torch_dir)
  set(_torch_dir $ENV{Torch_DIR})
endif()
if(_torch_dir)
  set(_torch_roots ${_torch_dir}/../../.. ${_torch_dir})
  set(_torch_advice "Torch_DIR is ${_torch_dir}: it must be the root of a LibTorch or the folder of its TorchConfig.cmake")
elseif(DEFINED LibTorch_FALLBACKS)
  set(_torch_roots ${LibTorch_FALLBACKS})
  set(_torch_advice "set Torch_DIR to the root of a LibTorch or to the folder of its TorchConfig.cmake")
else()
  set(_torch_roots ${CMAKE_CURRENT_LIST_DIR}/libtorch/torch)
  set(_torch_advice "run third_party/install.sh, or set Torch_DIR to the root of a LibTorch")
endif()

# Nothing is cached: Torch_DIR may have changed since the last run.
find_path(LibTorch_ROOT include/ATen/ATen.h HINTS ${_torch_roots} NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH NO_CACHE)
find_library(LibTorch_LIBRARY torch HINTS ${LibTorch_ROOT}/lib NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH NO_CACHE)

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
  REASON_FAILURE_MESSAGE "${_torch_advice}")

if(LibTorch_FOUND AND NOT TARGET zoo::libtorch)
  set(_torch_libraries)
  foreach(_name torch torch_cpu c10 torch_cuda c10_cuda)
    find_library(LibTorch_${_name}_LIBRARY ${_name} HINTS ${LibTorch_ROOT}/lib NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH NO_CACHE)
    if(LibTorch_${_name}_LIBRARY)
      list(APPEND _torch_libraries ${LibTorch_${_name}_LIBRARY})
    endif()
  endforeach()

  add_library(zoo::libtorch INTERFACE IMPORTED)
  target_include_directories(zoo::libtorch SYSTEM INTERFACE ${LibTorch_ROOT}/include
                                                            ${LibTorch_ROOT}/include/torch/csrc/api/include)
  target_compile_features(zoo::libtorch INTERFACE cxx_std_20)
  # libstdc++ comes first, because LibTorch's libraries also export std::filesystem, part of which crashes in
  # 2.11. torch_cuda registers its kernels when it is loaded; nothing refers to it by name.
  target_link_libraries(zoo::libtorch INTERFACE stdc++ -Wl,--push-state,--no-as-needed ${_torch_libraries}
                                                -Wl,--pop-state)

  # Headers of CUDA's runtime: of the toolkit, or of the packages that the CUDA wheel of PyTorch depends on.
  if(LibTorch_torch_cuda_LIBRARY)
    find_path(LibTorch_CUDA_INCLUDE cuda_runtime_api.h
              HINTS $ENV{CUDA_HOME}/include ${LibTorch_ROOT}/../nvidia/cu13/include ${LibTorch_ROOT}/../nvidia/cuda_runtime/include
              PATHS /usr/local/cuda/include NO_CMAKE_FIND_ROOT_PATH NO_CACHE)
    # Training on several GPUs: NCCL, and the headers of CUDA that LibTorch's of NCCL include.
    find_path(LibTorch_NCCL_INCLUDE nccl.h HINTS ${LibTorch_ROOT}/../nvidia/nccl/include ${LibTorch_CUDA_INCLUDE}
              NO_CMAKE_FIND_ROOT_PATH NO_CACHE)
    foreach(_header nv/target cublas_v2.h cusolverDn.h cusparse.h)
      if(NOT EXISTS ${LibTorch_CUDA_INCLUDE}/${_header})
        set(LibTorch_NCCL_INCLUDE LibTorch_NCCL_INCLUDE-NOTFOUND)
      endif()
    endforeach()
  endif()

  # The OpenMP runtime in LibTorch's folder, or the system's if LibTorch was built with that. Both GCC and
  # Clang must compile for it: a second runtime would have a second set of threads.
  file(GLOB _torch_gomp ${LibTorch_ROOT}/lib/libgomp*.so*)
  list(APPEND _torch_gomp gomp)
  list(POP_FRONT _torch_gomp zoo_libtorch_openmp)
  target_link_libraries(zoo::libtorch INTERFACE ${zoo_libtorch_openmp})
endif()
