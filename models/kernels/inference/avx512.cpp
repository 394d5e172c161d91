#define ZOO_KERNELS_FOR avx512
#define ZOO_KERNELS_NAME "avx512"
#include "models/kernels/inference/all.h"
