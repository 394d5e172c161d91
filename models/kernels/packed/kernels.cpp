// The inference kernels, compiled once for each instruction set. Everything is inlined or in that set's
// namespace, so that the linker cannot merge code of two sets.
#include "models/kernels/activations.h"
#if defined(__AMX_TILE__)
#include "models/kernels/amx.h"
#endif
#include "models/kernels/elementary.h"
#include "models/kernels/packed/inference_kernels.h"
#include "models/kernels/tile.h"

namespace zoo::kernels::ZOO_KERNELS_FOR {
namespace {

// Each header uses the previous ones.
// clang-format off
#include "models/kernels/packed/product.h"
#include "models/kernels/packed/amx_product.h"
#include "models/kernels/packed/group_product.h"
#include "models/kernels/packed/prepare.h"
#include "models/kernels/packed/attend.h"
#include "models/kernels/packed/probe.h"
// clang-format on

}  // namespace

extern const InferenceKernels kernels;
const InferenceKernels kernels{kBfloat16Bytes, prepare, multiply,     append,    attend,
                               rotate,         apply,   multiply_add, read_words};

}  // namespace zoo::kernels::ZOO_KERNELS_FOR
