#pragma once

#include <map>
#include <memory>
#include <vector>

#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include "data/base/error.h"
#include "models/generation/decoding_session.h"
#include "tests/support/catch.h"

namespace zoo::test {

// A language whose next token depends on the last one alone: chances[last][next].
using Chances = std::vector<std::vector<double>>;

class ChainSession : public DecodingSession {
 public:
  ChainSession(const Chances& chances, std::size_t rows) : chances_(chances), rows_(rows) {}

  at::Tensor read(const std::vector<TokenIds>& tokens, Logits wanted) override {
    std::vector<at::Tensor> all;
    for (std::size_t row = 0; row < tokens.size(); ++row) {
      std::vector<at::Tensor> steps;
      for (const std::int64_t id : tokens[row]) {
        rows_.at(row).push_back(id);
        steps.push_back(at::tensor(chances_[static_cast<std::size_t>(id)]).log().to(at::kFloat));
      }
      all.push_back(wanted == Logits::kLast ? steps.back() : at::stack(steps));
    }
    return at::stack(all);
  }
  void select(const std::vector<std::int64_t>& rows) override {
    std::vector<TokenIds> chosen;
    for (const std::int64_t row : rows) chosen.push_back(rows_.at(static_cast<std::size_t>(row)));
    rows_ = chosen;
  }
  void rewind(std::int64_t row, std::int64_t length) override {
    rows_.at(static_cast<std::size_t>(row)).resize(static_cast<std::size_t>(length));
  }
  std::int64_t rows() const override { return static_cast<std::int64_t>(rows_.size()); }
  std::int64_t length(std::int64_t row) const override {
    return static_cast<std::int64_t>(rows_.at(static_cast<std::size_t>(row)).size());
  }

 private:
  const Chances& chances_;
  std::vector<TokenIds> rows_;
};

class Chain : public DecodingModel {
 public:
  explicit Chain(Chances chances) : chances_(std::move(chances)) {
    config_.vocab_size = static_cast<std::int64_t>(chances_.size());
    config_.position = PositionKind::kRotary;
  }
  const TransformerConfig& config() const override { return config_; }
  std::unique_ptr<DecodingSession> begin(std::int64_t rows, std::int64_t) override {
    return std::make_unique<ChainSession>(chances_, static_cast<std::size_t>(rows));
  }
  std::unique_ptr<DecodingSession> begin(const std::vector<TokenIds>&, std::int64_t) override {
    throw Error("a chain has no encoder");
  }

 private:
  Chances chances_;
  TransformerConfig config_;
};

inline const Chances kLanguage{
    {0.1, 0.2, 0.3, 0.4}, {0.4, 0.3, 0.2, 0.1}, {0.05, 0.55, 0.3, 0.1}, {0.25, 0.05, 0.6, 0.1}};
inline const Chances kDraft{
    {0.4, 0.1, 0.1, 0.4}, {0.25, 0.25, 0.25, 0.25}, {0.6, 0.2, 0.1, 0.1}, {0.1, 0.1, 0.1, 0.7}};

// The chi-square of how often each text was drawn, against its probability; a text without one must not be.
inline double chi_square(const std::map<TokenIds, int>& counts, const std::map<TokenIds, double>& chances,
                         int draws) {
  double sum = 0;
  for (const auto& [ids, count] : counts) REQUIRE(chances.count(ids) == 1);
  for (const auto& [ids, chance] : chances) {
    const auto found = counts.find(ids);
    const double expected = chance * draws, count = found == counts.end() ? 0 : found->second;
    sum += (count - expected) * (count - expected) / expected;
  }
  return sum;
}

inline std::map<TokenIds, int> drawn(const std::vector<TokenIds>& rows) {
  std::map<TokenIds, int> counts;
  for (const TokenIds& row : rows) ++counts[row];
  return counts;
}

}  // namespace zoo::test
