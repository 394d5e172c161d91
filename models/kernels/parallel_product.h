#pragma once

#include <ATen/core/Tensor.h>

#include "models/kernels/matrix_product.h"

namespace zoo::kernels {

/// A float32 matrix of any strides.
Matrix view(const at::Tensor& matrix);

/// On all threads, each with its own rows or columns of the result, whichever there are more of.
void multiply_in_parallel(const MatrixProduct& product);

}  // namespace zoo::kernels
