#pragma once

/// @file
/// Use:
///
///     const at::Tensor distances = zoo::relative_distances(/*queries=*/8, /*keys=*/8, at::kCPU);
///     const at::Tensor bias = zoo::alibi_bias(distances, /*num_heads=*/4);              // [1, 4, 8, 8]
///     const at::Tensor buckets = zoo::t5_buckets(distances, {.bidirectional = false});  // [8, 8]

#include <ATen/core/Tensor.h>

namespace zoo {

/// Key position - query position, [T, S] int64. The queries are the last T of S positions.
at::Tensor relative_distances(std::int64_t queries, std::int64_t keys, const at::Device& device);

/// Parameters of T5's buckets.
struct BucketOptions {
  std::int64_t buckets = 32;        // both directions together
  std::int64_t max_distance = 128;  // from there on all distances share the last bucket
  bool bidirectional = true;        // false: keys never come after the query
};

/// Bucket of each distance (Raffel et al., 2020, section 2.1, and their code): in each direction half of the
/// buckets hold one distance each, the others logarithmically growing ranges. Any shape, int64.
at::Tensor t5_buckets(const at::Tensor& distances, const BucketOptions& options);

/// ALiBi's slope of each head, [H] (Press et al., 2022, section 3): 2^(-8 i / H), i = 1 … H, if H is a power
/// of two; otherwise the slopes of the next lower power of two, then every other slope of the next higher.
at::Tensor alibi_slopes(std::int64_t num_heads);

/// -slope * |distance| for each head: [1, H, T, S] on the distances' device, float32.
at::Tensor alibi_bias(const at::Tensor& distances, std::int64_t num_heads);

}  // namespace zoo
