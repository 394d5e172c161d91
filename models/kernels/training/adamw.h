#pragma once

#include <cstddef>

namespace zoo::kernels {

/// One AdamW update (Loshchilov and Hutter, 2019, algorithm 2) of contiguous weights.
struct AdamWUpdate {
  float beta2, one_minus_beta1, one_minus_beta2;
  float eps;
  float kept;          // weight decay factor: 1 - learning rate * weight decay
  bool cautious;       // only where the step does not grow the weight
  float step_size;     // learning rate / (1 - beta1^t)
  float square_scale;  // 1 / sqrt(1 - beta2^t)
  float divisor;       // divides the gradients
};

struct AdamWWeights {
  float* weight;
  const float* gradient;
  float *exp_avg, *exp_avg_sq;
};

void adamw(const AdamWUpdate& update, const AdamWWeights& weights, std::size_t size);

/// Sum of squares: blocks of a few thousand in float32, their total in double.
double sum_of_squares(const float* x, std::size_t size);

}  // namespace zoo::kernels
