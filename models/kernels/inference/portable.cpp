#define ZOO_KERNELS_FOR portable
#include "models/kernels/inference/all.h"
