#pragma once

#include <functional>

#include "apps/training/batches/batches.h"
#include "apps/training/metrics/task_metrics.h"
#include "apps/training/trainer.h"
#include "models/generation/decoding_session.h"

namespace zoo {

/// Rows of ids [B, T], as a DecodingSession reads them.
std::vector<TokenIds> rows_of(const at::Tensor& ids);

/// evaluate_split() for a packed decoder: the mean loss over `count` batches of the validation split, and the
/// metrics of `metric`. Adds "largest_logit_error": the largest difference between a logit of the first batch
/// and `exact`, the modules' logits for it, [B, T, V], if they are defined.
SplitEvaluation evaluate_packed(DecodingModel& model, Batches& batches, std::int64_t count, Metric& metric,
                                const at::Tensor& exact, const std::function<void(std::int64_t)>& on_step);

}  // namespace zoo
