#pragma once

#include <cstddef>
#include <cstdint>

#include "models/kernels/pointwise.h"

namespace zoo::kernels {

/// Rows [columns] of a LayerNorm or an RMSNorm (ops/norm.h).
struct NormRows {
  std::size_t columns;
  bool centred;  // LayerNorm; RMSNorm subtracts no mean
  float eps;
  const float* x;
  const float* weight;          // [columns]
  const float* bias = nullptr;  // [columns]; may be absent
  float* result = nullptr;      // may be absent in the backward pass
  float* statistics = nullptr;  // [rows, 2]: mean and 1 / deviation; written by the forward pass
};

/// Normalises the rows [first, last).
void normalize(const NormRows& rows, std::size_t first, std::size_t last);

/// Gradients of the rows' result and of its inputs.
struct NormGradients {
  const float* result;
  const float* passed = nullptr;  // gradient of x along another path, added; may be absent
  float* x = nullptr;             // may be absent
  float* weight = nullptr;        // [columns], accumulates over rows; may be absent
  float* bias = nullptr;          // likewise
};

void normalize_backward(const NormRows& rows, const NormGradients& gradients, std::size_t first,
                        std::size_t last);

/// Rows of a gated linear unit (Shazeer, 2020): f(gate) * value, side by side in a row of x [rows, 2
/// columns].
struct GatedRows {
  std::size_t columns;
  Pointwise f;
  const float* x;
};

/// result [rows, columns] of the rows [first, last).
void gate(const GatedRows& rows, float* result, std::size_t first, std::size_t last);

/// Their gradient [rows, 2 columns] from the result's.
void gate_backward(const GatedRows& rows, const float* result_gradient, float* gradient, std::size_t first,
                   std::size_t last);

/// Heads of queries or keys that rotary positions turn (Su et al., 2021): the pairs (x[i], x[i + size / 2])
/// of a head, by the angle of its token.
struct RotaryRows {
  std::size_t heads, size;  // of each token, and elements of each head
  const float *cos, *sin;   // of this token, [size / 2]
  bool backward;            // turns back
};

/// Turns a token's heads, `from_head` and `to_head` floats apart.
void rotate_heads(const RotaryRows& rows, const float* from, std::size_t from_head, float* to,
                  std::size_t to_head);

/// A row of logits [classes] and its target.
struct LogitsRow {
  float* logits;
  std::size_t classes;
  std::size_t target;
  float smoothing = 0;  // part of the target's weight that all classes share
};

/// -log softmax(logits)[target], or its label-smoothed mean.
double cross_entropy(const LogitsRow& row);

/// The same; overwrites the logits with their gradient times `scale`.
double cross_entropy_with_gradient(const LogitsRow& row, float scale);

/// Drops element i if the i-th word of Philox4x32-10 (Salmon et al., 2011) with this seed is below
/// `threshold`, and multiplies the others by `scale`.
struct DropoutMask {
  std::uint64_t seed;
  std::uint32_t threshold;  // rate * 2^32
  float scale;              // 1 / (1 - rate)
};

/// Number of elements that one counter per lane decides.
constexpr std::size_t kMaskBlock = 64;

/// Masks elements of x in the blocks [first, last) of `size` elements; `to` may be x.
void apply(const DropoutMask& mask, const float* x, float* to, std::size_t size, std::size_t first,
           std::size_t last);

}  // namespace zoo::kernels
