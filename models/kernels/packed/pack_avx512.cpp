#define ZOO_KERNELS_FOR avx512
#include "models/kernels/packed/pack.h"
