#pragma once

#include <cstddef>
#include <cstdint>

// Causal self-attention of one head, compiled for several instruction sets. No LibTorch header here: the
// linker might use an inline function compiled for one of them in the rest of the program.
namespace zoo::kernels {

/// Positions of a head, at most: its weights in float32 take a quarter of a core's L2 cache.
constexpr std::size_t kLongest = 256;

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

/// A float32, or two bfloat16 in mixed precision.
using Word = std::uint32_t;

/// The kernel in one precision.
struct HeadAttention {
  /// Words that forward saves for backward: the attention weights.
  std::size_t (*weights_size)(std::size_t length);

  /// Words of scratch memory that forward and backward need, aligned to 64 bytes.
  std::size_t (*scratch_size)(std::size_t length, std::size_t head_dim);

  /// Output row t is at output + t * output_stride.
  void (*forward)(const Head& head, Word* weights, float* output, std::size_t output_stride, Word* scratch);

  /// Computes gradients from the output's gradient and the weights that forward saved.
  void (*backward)(const Head& head, const Word* weights, const float* output_gradient,
                   std::size_t output_stride, const HeadGradient& gradient, Word* scratch);
};

const HeadAttention& float_attention();

/// Products round their factors to bfloat16; sums and softmax are float32. Needs has_bfloat16_products().
const HeadAttention& mixed_attention();

}  // namespace zoo::kernels
