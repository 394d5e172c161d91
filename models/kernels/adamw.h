#pragma once

#include <cstddef>

namespace zoo::kernels {

/// An update of AdamW (Loshchilov and Hutter, 2019, algorithm 2) for some weights side by side.
struct AdamWUpdate {
  float beta2, rest1, rest2;  // rest: 1 - beta
  float eps;
  float kept;          // of a weight by its decay: 1 - learning rate * weight decay
  float step_size;     // learning rate / (1 - beta1^t)
  float square_scale;  // 1 / sqrt(1 - beta2^t)
  float divisor;       // of the gradients
};

struct AdamWWeights {
  float* weight;
  const float* gradient;
  float *exp_avg, *exp_avg_sq;
};

void adamw(const AdamWUpdate& update, const AdamWWeights& weights, std::size_t size);

/// The sum of squares, in float32 for a few thousand at a time, in double for all.
double sum_of_squares(const float* x, std::size_t size);

}  // namespace zoo::kernels
