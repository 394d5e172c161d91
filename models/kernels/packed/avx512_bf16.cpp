#define ZOO_KERNELS_FOR avx512_bf16
#include "models/kernels/packed/all.h"
