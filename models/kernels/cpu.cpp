#include "models/kernels/cpu.h"

namespace zoo::kernels {

bool supported_by_cpu() {
#if defined(__x86_64__)
  static const bool supported = __builtin_cpu_supports("avx512f") != 0 &&
                                __builtin_cpu_supports("avx512dq") != 0 &&
                                __builtin_cpu_supports("avx512vl") != 0;
  return supported;
#else
  return false;
#endif
}

}  // namespace zoo::kernels
