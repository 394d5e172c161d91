#pragma once

#include <ATen/core/Tensor.h>

namespace zoo {

struct AttentionOutput {
  at::Tensor output;   // [B, H, T, D] from functions on heads, [B, T, C] from a module
  at::Tensor weights;  // [B, H, T, S], only when asked for
};

}  // namespace zoo
