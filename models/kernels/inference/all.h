// The kernels of one instruction set, in its namespace; the file that includes this is compiled for it.
// Everything here is inlined or has that namespace's name, so that the linker cannot give one machine's code
// to another.
#include <cstring>
#include <type_traits>

#include "models/kernels/activations.h"
#include "models/kernels/bfloat16.h"
#include "models/kernels/inference_kernels.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace zoo::kernels::ZOO_KERNELS_FOR {
namespace {

// Each uses what stands before it.
// clang-format off
#include "models/kernels/inference/dot.h"
#include "models/kernels/inference/tile.h"
#include "models/kernels/inference/product.h"
#include "models/kernels/inference/prepare.h"
#include "models/kernels/inference/attend.h"
// clang-format on

}  // namespace

extern const InferenceKernels kernels;
const InferenceKernels kernels{prepare, multiply, remember, attend, rotate};

}  // namespace zoo::kernels::ZOO_KERNELS_FOR
