#define ZOO_KERNELS_FOR avx512
#include "models/kernels/inference/all.h"
