#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "models/generation/probability_filters.h"

namespace zoo {

/// How the next token is chosen.
struct SamplingOptions {
  double temperature = 1.0;  // 0: greedy, and the rest has no meaning
  std::int64_t top_k = 0;    // 0: all
  double top_p = 1.0;        // 1: all
  double min_p = 0.0;        // 0: all
  double typical_p = 1.0;    // 1: all
  std::uint64_t seed = 1337;
};

/// Chooses tokens. Each row draws from a generator of its own, made from the seed and the row's number: the
/// same seed gives the same ids, whatever else is in the batch or draws from LibTorch's own generator.
class TokenSampler {
 public:
  /// Throws Error naming the option that is out of range.
  TokenSampler(const SamplingOptions& options, std::size_t rows);

  /// One id for each row of logits [B, V]: the largest logit, of equal ones the lowest id, where sampling is
  /// greedy, else a draw from the softmax of the filtered logits. rows[b] is the number of row b. Throws
  /// Error if the logits hold no number to choose by, or every token is forbidden.
  std::vector<std::int64_t> sample(const at::Tensor& logits, const std::vector<std::size_t>& rows);

  /// What is drawn from: the softmax [B, V] of the filtered logits in CPU memory; where sampling is greedy, 1
  /// for the token that is chosen. Throws Error as sample() does.
  at::Tensor distribution(const at::Tensor& logits) const;

  /// A draw of row number `row` from weights [V] of any sum, as of distribution().
  std::int64_t draw(const at::Tensor& weights, std::size_t row);

  /// The next number in [0, 1) of row number `row`.
  double uniform(std::size_t row);

 private:
  bool greedy_;
  LogitsFilters filters_;
  std::vector<std::mt19937_64> generators_;
};

}  // namespace zoo
