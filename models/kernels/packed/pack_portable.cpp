#define ZOO_KERNELS_FOR portable
#include "models/kernels/packed/pack.h"
