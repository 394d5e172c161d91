#pragma once

#include <ATen/core/Tensor.h>

#include "models/kernels/matrix_product.h"

namespace zoo::kernels {

/// View of a float32 matrix with any strides.
Matrix view(const at::Tensor& matrix);

/// Multiplies on all threads; each computes rows or columns of the result, whichever are more.
void multiply_in_parallel(const MatrixProduct& product);

}  // namespace zoo::kernels
