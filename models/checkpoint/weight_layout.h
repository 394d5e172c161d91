#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/formats/weight_table.h"

namespace zoo {

/// Rows of a parameter with `total` of them that each name holds.
std::vector<std::int64_t> rows_of_names(const WeightName& name, std::int64_t total);

/// A parameter from the tensors of its names, and the tensors from it.
at::Tensor from_stored_layout(const WeightName& name, std::vector<at::Tensor> parts);
std::vector<at::Tensor> to_stored_layout(const WeightName& name, const at::Tensor& tensor);

}  // namespace zoo
