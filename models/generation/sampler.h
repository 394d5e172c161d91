#pragma once

/// @file
/// Use:
///
///     const auto filters = zoo::make_filters({.temperature = 0.7, .top_k = 40, .top_p = 0.95});
///     const at::Tensor filtered = zoo::apply_filters(filters, logits);  // [B, V]; forbidden tokens: -inf
///     zoo::TokenSampler sampler({.temperature = 0.8, .top_p = 0.9, .seed = 7}, /*rows=*/1);
///     const zoo::TokenIds next = sampler.sample(logits, {0});  // an id for each row of logits [B, V]

#include <cstdint>
#include <random>
#include <vector>

#include "models/generation/logits_filters.h"

namespace zoo {

struct SamplingOptions {
  double temperature = 1.0;  // 0: greedy, which ignores the rest
  std::int64_t top_k = 0;    // 0: all
  double top_p = 1.0;        // 1: all
  double min_p = 0.0;        // 0: all
  double typical_p = 1.0;    // 1: all
  std::uint64_t seed = 1337;
};

/// Makes the filters that the options ask for, in Hugging Face's order: temperature, which must be positive
/// here, top-k, top-p, min-p, typical. Each keeps `least` tokens, whatever the probabilities: beams that
/// sample need more than one. Throws Error naming the option that is out of range.
LogitsFilters make_filters(const SamplingOptions& options, std::int64_t least = 1);

/// Chooses tokens. Each row has its own random generator, made from the seed and the row's number: the same
/// seed gives the same ids, whatever else is in the batch or draws from LibTorch's generator.
class TokenSampler {
 public:
  /// Each filter keeps `least` tokens. Throws Error naming the option that is out of range.
  TokenSampler(const SamplingOptions& options, std::size_t rows, std::int64_t least = 1);

  /// Returns one id per row of logits [B, V]. Greedy: the largest logit, of equal ones the lowest id.
  /// Sampling: a draw from the softmax of the filtered logits. rows[b] is the number of row b. Throws Error
  /// if the logits are not finite or every token is forbidden.
  TokenIds sample(const at::Tensor& logits, const std::vector<std::size_t>& rows);

  /// The logits [B, V] after the filters.
  at::Tensor filtered(const at::Tensor& logits) const { return apply_filters(filters_, logits); }

  /// Indices of `count` of the scores [N], drawn for row number `row` without replacement, in proportion to
  /// the exponentials of the scores: the highest with Gumbel noise (Kool et al., 2019). In CPU memory.
  at::Tensor draw_places(const at::Tensor& scores, std::int64_t count, std::size_t row);

  /// Sampling distribution: the softmax [B, V] of the filtered logits in CPU memory; for greedy, 1 at the
  /// chosen token. Throws Error as sample() does.
  at::Tensor distribution(const at::Tensor& logits) const;

  /// Draws an id for row number `row` from weights [V] with any sum, for example distribution().
  TokenId draw(const at::Tensor& weights, std::size_t row);

  /// Next random number in [0, 1) of row number `row`.
  double uniform(std::size_t row);

 private:
  bool greedy_;
  LogitsFilters filters_;
  std::vector<std::mt19937_64> generators_;
};

}  // namespace zoo
