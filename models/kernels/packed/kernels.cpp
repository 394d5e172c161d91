// Inference kernels of one instruction set, which this is compiled for, in its namespace. Everything is
// inlined or has that namespace's name, so that the linker cannot give one machine's code to another.
#include "models/kernels/activations.h"
#include "models/kernels/packed/inference_kernels.h"
#include "models/kernels/softmax.h"
#include "models/kernels/tile.h"

namespace zoo::kernels::ZOO_KERNELS_FOR {
namespace {

// Each header uses the previous ones.
// clang-format off
#include "models/kernels/packed/product.h"
#include "models/kernels/packed/prepare.h"
#include "models/kernels/packed/attend.h"
// clang-format on

}  // namespace

extern const InferenceKernels kernels;
const InferenceKernels kernels{kBfloat16Bytes, prepare, multiply, append, attend, rotate};

}  // namespace zoo::kernels::ZOO_KERNELS_FOR
