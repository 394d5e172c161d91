#pragma once

#include <ATen/core/Tensor.h>

namespace zoo {

/// Where the keys stand, as seen by the queries: [T, S] of key position - query position (int64). The queries
/// are the last T of S positions.
at::Tensor relative_distances(std::int64_t queries, std::int64_t keys, const at::Device& device);

/// What tells T5's buckets from one another.
struct BucketOptions {
  std::int64_t buckets = 32;        // of both directions together
  std::int64_t max_distance = 128;  // from there on all distances share the last bucket
  bool bidirectional = true;        // false: the keys are never behind the query
};

/// The bucket of each distance (Raffel et al., 2020, section 2.1, and their code): in each direction half of
/// the buckets hold one distance each, the other half logarithmically growing ranges. Any shape, int64.
at::Tensor t5_buckets(const at::Tensor& distances, const BucketOptions& options);

/// ALiBi's slope of each head (Press et al., 2022, section 3): 2^(-8 i / H), i = 1 … H, when H is a power of
/// two; otherwise those of the next lower power of two, and then every other one of the next higher. [H]
at::Tensor alibi_slopes(std::int64_t num_heads);

/// -slope * |distance| for each head: [1, H, T, S] on the distances' device, float32.
at::Tensor alibi_bias(const at::Tensor& distances, std::int64_t num_heads);

}  // namespace zoo
