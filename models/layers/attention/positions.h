#pragma once

/// @file
/// Use:
///
///     const auto table = zoo::RotaryTable::make(at::arange(8), /*head_dim=*/64, /*theta=*/10000.0);
///     const at::Tensor rotated = table.rotate(q);  // [B, H, 8, 64]
///     const at::Tensor distances = zoo::relative_distances(/*queries=*/8, /*keys=*/8, at::kCPU);
///     const at::Tensor bias = zoo::alibi_bias(distances, /*num_heads=*/4);              // [1, 4, 8, 8]
///     const at::Tensor buckets = zoo::t5_buckets(distances, {.bidirectional = false});  // [8, 8]

#include <ATen/core/Tensor.h>

#include "models/layers/transformer_config.h"

namespace zoo {

/// Sinusoidal positional encoding (Vaswani et al., 2017, section 3.5), [positions, hidden_size]:
/// PE[p, 2i] = sin(p / 10000^(2i / hidden_size)), PE[p, 2i + 1] = cos of the same; for kHalves, PE[p, i] and
/// PE[p, hidden_size / 2 + i]; for kFairseq there, of p / 10000^(i / (hidden_size / 2 - 1)). Throws
/// c10::Error for an odd hidden_size.
at::Tensor sinusoidal_positions(std::int64_t positions, std::int64_t hidden_size,
                                SinusoidOrder order = SinusoidOrder::kInterleaved);

/// Angles of rotary positions, position * theta^(-2i / D), and what their cosines and sines are multiplied by
/// (YaRN and LongRoPE; 1 for the others).
struct RotaryAngles {
  at::Tensor angles;  // [T, D / 2] or [B, T, D / 2], float32
  double factor = 1;

  /// As RotaryTable::make, of a model's layers with, or without, a sliding window.
  static RotaryAngles make(const at::Tensor& positions, const TransformerConfig& config, bool window,
                           std::int64_t length = 0);
};

/// Rotary position embedding (Su et al., 2021) over the head dimension D: rotates the pair (x[i], x[i + D/2])
/// by the angle position * theta^(-2i / D), so that q_m . k_n depends only on m - n. Pairs dimensions as
/// Llama does. `scaling` lowers the angles for longer contexts; where it depends on a sequence's length, each
/// sequence has frequencies of its own. If a head has more than D dimensions, the others stay as they are.
struct RotaryTable {
  at::Tensor cos, sin;  // [T, D] or [B, 1, T, D], each half repeated

  /// positions [T] or [B, T] (integers), on the device of the table. `length` is that of the sequences, if
  /// the scaling depends on it; 0: each one's largest position + 1.
  static RotaryTable make(const at::Tensor& positions, std::int64_t head_dim, double theta,
                          const RopeScaling& scaling = {}, std::int64_t length = 0);

  /// The table of a model's layers with, or without, a sliding window.
  static RotaryTable make(const at::Tensor& positions, const TransformerConfig& config, bool window,
                          std::int64_t length = 0);

  /// Rotates the first D dimensions of x [B, H, T, at least D].
  at::Tensor rotate(const at::Tensor& x) const;
};

/// Throws c10::Error if a sequence whose first `past` keys are in a cache grows to `length` positions, and so
/// past the original context of kLongRope: those keys have the angles of the shorter one.
void check_longrope(const RopeScaling& scaling, std::size_t past, std::size_t length);

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
