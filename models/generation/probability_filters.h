#pragma once

/// @file
/// Use:
///
///     const zoo::LogitsFilters filters =
///         zoo::make_filters({.temperature = 0.7, .top_k = 40, .top_p = 0.95});
///     const at::Tensor filtered = zoo::apply_filters(filters, logits);  // [B, V]; forbidden tokens: -inf

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

}  // namespace zoo
