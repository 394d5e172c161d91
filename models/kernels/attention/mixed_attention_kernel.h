#pragma once

#include <cstddef>
#include <cstdint>

#include "models/kernels/attention/short_attention_kernel.h"

// short_attention in mixed precision: products round their factors to bfloat16; sums and softmax are float32.
namespace zoo::mixed_attention {

using short_attention::Head;
using short_attention::HeadGradient;

/// Two bfloat16.
using Pair = std::uint32_t;

/// Size of what forward keeps for backward: attention weights, two rows in a pair, [T / 2, T], T padded.
std::size_t weights_size(std::size_t length);

/// Pairs of scratch memory that forward and backward need, aligned to 64 bytes.
std::size_t scratch_size(std::size_t length, std::size_t head_dim);

/// Output row t is at output + t * output_stride.
void forward(const Head& head, Pair* weights, float* output, std::size_t output_stride, Pair* scratch);

void backward(const Head& head, const Pair* weights, const float* output_gradient, std::size_t output_stride,
              const HeadGradient& gradient, Pair* scratch);

}  // namespace zoo::mixed_attention
