// Kernels of one instruction set, in its namespace; the including file is compiled for it. Everything is
// inlined or has that namespace's name, so that the linker cannot give one machine's code to another.
#include <cstring>
#include <type_traits>

#include "models/kernels/activations.h"
#include "models/kernels/bfloat16.h"
#include "models/kernels/packed/inference_kernels.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace zoo::kernels::ZOO_KERNELS_FOR {
namespace {

// Each header uses the previous ones.
// clang-format off
#include "models/kernels/packed/dot.h"
#include "models/kernels/packed/tile.h"
#include "models/kernels/packed/product.h"
#include "models/kernels/packed/prepare.h"
#include "models/kernels/packed/attend.h"
// clang-format on

}  // namespace

extern const InferenceKernels kernels;
const InferenceKernels kernels{prepare, multiply, remember, attend, rotate};

}  // namespace zoo::kernels::ZOO_KERNELS_FOR
