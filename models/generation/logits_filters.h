#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

namespace zoo {

/// Changes the logits of the next token before one is drawn. Takes and gives [B, V] float32; a token that
/// must not be drawn gets -inf.
class LogitsFilter {
 public:
  virtual ~LogitsFilter() = default;
  virtual at::Tensor apply(const at::Tensor& logits) const = 0;
};

/// Divides by `temperature`: below 1 sharper, above 1 flatter. Throws Error unless it is positive.
class TemperatureFilter : public LogitsFilter {
 public:
  explicit TemperatureFilter(double temperature);
  at::Tensor apply(const at::Tensor& logits) const override;

 private:
  double temperature_;
};

/// Keeps the k largest (Fan et al., 2018) and, as Hugging Face, every token that ties with the k-th.
/// Throws Error unless k is positive.
class TopKFilter : public LogitsFilter {
 public:
  explicit TopKFilter(std::int64_t k);
  at::Tensor apply(const at::Tensor& logits) const override;

 private:
  std::int64_t k_;
};

/// Nucleus sampling (Holtzman et al., 2020): keeps the most probable tokens whose probabilities reach p. As
/// Hugging Face: in ascending order, tokens whose cumulative probability is at most 1 - p go, and the last
/// one never does. Throws Error unless 0 <= p <= 1.
class TopPFilter : public LogitsFilter {
 public:
  explicit TopPFilter(double p);
  at::Tensor apply(const at::Tensor& logits) const override;

 private:
  double p_;
};

using LogitsFilters = std::vector<std::unique_ptr<LogitsFilter>>;

/// What is applied one after the other.
struct FilterOptions {
  double temperature = 1.0;  // positive
  std::int64_t top_k = 0;    // 0: all
  double top_p = 1.0;        // 1: all
};

/// The filters that the options ask for, in Hugging Face's order: temperature, top-k, top-p.
/// Throws Error naming the option that is out of range.
LogitsFilters make_filters(const FilterOptions& options);

/// Applies them in order.
at::Tensor apply_filters(const LogitsFilters& filters, at::Tensor logits);

}  // namespace zoo
