#pragma once

#include <memory>
#include <span>
#include <utility>

#include "apps/training/batches/example_batches.h"
#include "apps/training/objective.h"
#include "apps/training/parallel/ranks.h"
#include "models/model.h"

namespace zoo {

/// What a row of a table adds to its batch.
struct RowCounts {
  double targets = 1;
  std::int64_t tokens = 0;  // also the length by which rows are batched
};

/// The training of a model on rows, of a struct derived from RowCounts, that the loss encodes as it likes.
template <class Row> class RowObjective : public Objective {
 public:
  RowObjective(std::shared_ptr<Model> model, Splits<Row> rows, const ExampleOrder::Options& options)
      : model_(std::move(model)),
        rows_(std::move(rows)),
        order_(lengths(rows_.train), lengths(rows_.val), options) {}

  torch::nn::Module& module() override { return *model_; }
  Batch training(std::int64_t micro_step) override {
    return batch(rows_.train, order_.training(micro_step), /*measured=*/false);
  }
  Batch evaluation(Split split, std::int64_t index) override {
    const bool train = split == Split::kTrain;
    return batch(train ? rows_.train : rows_.val, order_.evaluation(split, index), /*measured=*/!train);
  }
  void join(Ranks& ranks) override { ranks_ = &ranks; }
  std::int64_t evaluation_batches(Split split) const override { return order_.evaluation_batches(split); }

 protected:
  using Rows = std::vector<const Row*>;

  /// The mean loss [] of a batch. take_scores() takes the figures of those that are `measured`.
  virtual at::Tensor loss(const Rows& rows, bool measured) = 0;

  /// The ranks that share the batch; null in one process, and in evaluations, of which each has all.
  Ranks* sharing() const { return at::GradMode::is_enabled() ? ranks_ : nullptr; }

  std::shared_ptr<Model> model_;
  const Splits<Row> rows_;

 private:
  static std::vector<std::int64_t> lengths(const std::vector<Row>& rows) {
    std::vector<std::int64_t> lengths;
    for (const Row& row : rows) lengths.push_back(row.tokens);
    return lengths;
  }

  Batch batch(const std::vector<Row>& rows, std::span<const std::int64_t> numbers, bool measured) {
    Batch batch{.targets = 0};
    Rows picked;
    for (const std::int64_t number : numbers) {
      picked.push_back(&rows[static_cast<std::size_t>(number)]);
      batch.targets += picked.back()->targets;
      batch.tokens += picked.back()->tokens;
    }
    batch.loss = [this, picked = std::move(picked), measured] { return loss(picked, measured); };
    return batch;
  }

  ExampleOrder order_;
  Ranks* ranks_ = nullptr;
};

}  // namespace zoo
