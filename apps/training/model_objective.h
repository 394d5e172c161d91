#pragma once

/// @file
/// Use:
///
///     zoo::ModelObjective objective(model, batches, zoo::make_metric(zoo::Task::kLm, {}));
///     const zoo::Batch batch = objective.training(/*micro_step=*/0);
///     batch.loss().backward();

#include <memory>
#include <optional>

#include "apps/training/disagreement_loss.h"
#include "apps/training/distillation_loss.h"
#include "apps/training/metrics/task_metrics.h"
#include "apps/training/objective.h"
#include "models/model.h"

namespace zoo {

/// A model of the zoo on batches. Label smoothing, class weights, penalties and the loss that balances
/// experts apply to training only; evaluation reports the loss without them.
class ModelObjective final : public Objective {
 public:
  /// `metric` may be null. `batches` must outlive the objective.
  ModelObjective(std::shared_ptr<Model> model, Batches& batches, std::unique_ptr<Metric> metric = nullptr,
                 LossOptions loss = {});

  /// Adds a penalty on similar heads to the training loss. Throws Error as DisagreementLoss does.
  void penalize(Disagreement kind, double weight) { disagreement_ = DisagreementLoss(*model_, kind, weight); }

  /// Trains a language model with this loss instead, without a penalty; the metrics get its divergence, of
  /// several ranks that of rank 0's batches.
  void distill(DistillationLoss loss) { distillation_ = std::move(loss); }

  torch::nn::Module& module() override { return *model_; }
  Batch training(std::int64_t micro_step) override;
  Batch evaluation(Split split, std::int64_t index) override;
  std::int64_t evaluation_batches(Split split) const override { return batches_.evaluation_batches(split); }
  std::string first_bad_tensor(std::int64_t micro_step) override;
  std::vector<double> attention_logit_maxima(std::int64_t micro_step) override;
  std::vector<Score> take_training_scores() override {
    return distillation_ ? distillation_->take_scores() : std::vector<Score>();
  }
  std::optional<std::vector<double*>> totals() override;
  std::vector<Score> take_scores(double loss) override;

 private:
  std::shared_ptr<Model> model_;
  Batches& batches_;
  std::unique_ptr<Metric> metric_;
  std::optional<DisagreementLoss> disagreement_;
  std::optional<DistillationLoss> distillation_;
  LossOptions loss_;
};

}  // namespace zoo
