#define ZOO_KERNELS_FOR avx512_bf16
#define ZOO_KERNELS_NAME "avx512_bf16"
#include "models/kernels/inference/all.h"
