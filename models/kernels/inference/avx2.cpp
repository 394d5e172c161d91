#define ZOO_KERNELS_FOR avx2
#define ZOO_KERNELS_NAME "avx2"
#include "models/kernels/inference/all.h"
