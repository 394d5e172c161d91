#pragma once

#include <ATen/core/Tensor.h>

namespace zoo::kernels {

/// True if causal_self_attention supports this [B, T, 3C] projection: float32 in the memory of a CPU with
/// training kernels, and sequences so short that a head's score matrix fits in the cache.
bool has_short_attention(const at::Tensor& qkv, at::IntArrayRef documents = {});

/// Causal multi-head self-attention of short sequences on the CPU, forward and backward: qkv [B, T, 3C] holds
/// queries, keys and values side by side; returns [B, T, C]. Equals scaled_dot_product_attention with a
/// causal mask and no dropout. Idea: one thread computes one head, whose score matrix fits in its cache,
/// without copies and without the masked half. Under autocast to bfloat16, products round their factors to
/// bfloat16 if the CPU can multiply them. `documents` are the lengths of sequences that share rows
/// (AttentionMask::documents); empty: each row is one.
at::Tensor causal_self_attention(const at::Tensor& qkv, std::int64_t num_heads,
                                 at::IntArrayRef documents = {});

}  // namespace zoo::kernels
