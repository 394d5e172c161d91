#pragma once

#include <cstddef>

// No LibTorch header here: the kernel is compiled for AVX-512, and the linker might keep an inline function
// compiled that way for the whole program.
namespace zoo::short_attention {

/// One head's slice of a [T, 3C] projection: row t of the queries is at q + t * stride, and so on.
struct Head {
  const float *q, *k, *v;
  std::size_t stride;    // between positions, of q, k, v and their gradients
  std::size_t length;    // T
  std::size_t head_dim;  // D
};

struct HeadGradient {
  float *q, *k, *v;
};

/// T rounded up to whole vectors: the length of a row of attention weights.
std::size_t padded(std::size_t size);

/// Size of what forward keeps for backward: the attention weights [T, padded(T)].
std::size_t weights_size(std::size_t length);

/// Floats of scratch memory that forward and backward need, aligned to 64 bytes.
std::size_t scratch_size(std::size_t length, std::size_t head_dim);

/// Output row t is at output + t * output_stride. weights [T, padded(T)] hold softmax rows, zero past the
/// diagonal and up to the next multiple of a vector.
void forward(const Head& head, float* weights, float* output, std::size_t output_stride, float* scratch);

/// Computes gradients from the output's gradient and the weights that forward kept.
void backward(const Head& head, const float* weights, const float* output_gradient, std::size_t output_stride,
              const HeadGradient& gradient, float* scratch);

}  // namespace zoo::short_attention
