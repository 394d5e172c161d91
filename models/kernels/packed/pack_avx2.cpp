#define ZOO_KERNELS_FOR avx2
#include "models/kernels/packed/pack.h"
