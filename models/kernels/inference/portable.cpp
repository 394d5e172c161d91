#define ZOO_KERNELS_FOR portable
#define ZOO_KERNELS_NAME "portable"
#include "models/kernels/inference/all.h"
