#pragma once

#include <functional>

#include "apps/training/batches/batches.h"
#include "apps/training/metrics/meters.h"
#include "apps/training/trainer.h"
#include "models/generation/decoding_session.h"

namespace zoo {

/// What evaluate_split() says of a decoder's modules, of one that is packed: the mean loss over `count`
/// batches of the validation split, and what `meter` makes of them. Beside it "largest_logit_error": how far
/// a logit of the first batch is from `exact`, what the modules gave for it, [B, T, V].
SplitEvaluation evaluate_packed(DecodingModel& model, Batches& batches, std::int64_t count, Meter& meter,
                                const at::Tensor& exact, const std::function<void(std::int64_t)>& on_step);

}  // namespace zoo
