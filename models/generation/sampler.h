#pragma once

/// @file
/// Use:
///
///     const zoo::LogitsFilters filters =
///         zoo::make_filters({.temperature = 0.7, .top_k = 40, .top_p = 0.95});
///     const at::Tensor filtered = zoo::apply_filters(filters, logits);  // [B, V]; forbidden tokens: -inf
///
///     zoo::TokenSampler sampler({.temperature = 0.8, .top_p = 0.9, .seed = 7}, /*rows=*/1);
///     const zoo::TokenIds next = sampler.sample(logits, {0});  // an id for each row of logits [B, V]

#include <cstdint>
#include <random>
#include <vector>

#include "models/generation/logits_filters.h"

namespace zoo {

/// Divides by `temperature`: below 1 sharpens, above 1 flattens. Throws Error unless it is positive.
class TemperatureFilter : public LogitsFilter {
 public:
  explicit TemperatureFilter(double temperature);
  at::Tensor apply(const at::Tensor& logits, const RowHistories& rows) const override;

 private:
  double temperature_;
};

// At least `least` tokens remain, whatever the probabilities: beams that sample need more than one.

/// Keeps the k largest (Fan et al., 2018) and, like Hugging Face, every token that ties with the k-th.
/// Throws Error unless k is positive.
class TopKFilter : public LogitsFilter {
 public:
  explicit TopKFilter(std::int64_t k, std::int64_t least = 1);
  at::Tensor apply(const at::Tensor& logits, const RowHistories& rows) const override;

 private:
  std::int64_t k_;
};

/// Nucleus sampling (Holtzman et al., 2020): keeps the most probable tokens whose probabilities reach p. Like
/// Hugging Face, removes tokens in ascending order while their cumulative probability is at most 1 - p, and
/// never the last `least`. Throws Error unless 0 <= p <= 1.
class TopPFilter : public LogitsFilter {
 public:
  explicit TopPFilter(double p, std::int64_t least = 1);
  at::Tensor apply(const at::Tensor& logits, const RowHistories& rows) const override;

 private:
  double p_;
  std::int64_t least_;
};

/// Keeps tokens whose probability is at least p times the largest (Nguyen et al., 2024). Throws Error unless
/// 0 <= p <= 1.
class MinPFilter : public LogitsFilter {
 public:
  explicit MinPFilter(double p, std::int64_t least = 1);
  at::Tensor apply(const at::Tensor& logits, const RowHistories& rows) const override;

 private:
  double p_;
  std::int64_t least_;
};

/// Locally typical sampling (Meister et al., 2023): keeps the tokens whose information is nearest to the
/// distribution's entropy, until their probabilities reach `mass`. Throws Error unless 0 < mass < 1.
class TypicalFilter : public LogitsFilter {
 public:
  explicit TypicalFilter(double mass, std::int64_t least = 1);
  at::Tensor apply(const at::Tensor& logits, const RowHistories& rows) const override;

 private:
  double mass_;
  std::int64_t least_;
};

/// Filters in order of application.
struct FilterOptions {
  double temperature = 1.0;  // positive
  std::int64_t top_k = 0;    // 0: all
  double top_p = 1.0;        // 1: all
  double min_p = 0.0;        // 0: all
  double typical_p = 1.0;    // 1: all
  std::int64_t least = 1;    // tokens that every filter keeps
};

/// Makes the filters that the options ask for, in Hugging Face's order: temperature, top-k, top-p, min-p,
/// typical. Throws Error naming the option that is out of range.
LogitsFilters make_filters(const FilterOptions& options);

/// Options for choosing the next token.
struct SamplingOptions {
  double temperature = 1.0;  // 0: greedy, which ignores the rest
  std::int64_t top_k = 0;    // 0: all
  double top_p = 1.0;        // 1: all
  double min_p = 0.0;        // 0: all
  double typical_p = 1.0;    // 1: all
  std::uint64_t seed = 1337;
};

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
  /// the exponentials of the scores: the highest after adding Gumbel noise to each (Kool et al., 2019). In
  /// CPU memory.
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
