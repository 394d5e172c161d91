#include "models/generation/graphs/graphed_steps.h"

#include <algorithm>
#include <bit>

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/util/ScopeExit.h>

#include "models/generation/graphs/device_graph.h"

namespace zoo {
namespace {

// Whether positions act through the embedding, or through rotations that do not depend on the length.
bool positions_are_lookups(const TransformerConfig& config) {
  switch (config.position) {
    case PositionKind::kNone:
    case PositionKind::kLearned:
    case PositionKind::kSinusoidal: return true;
    case PositionKind::kRotary:
      return config.rope_scaling.kind == RopeScalingKind::kNone ||
             config.rope_scaling.kind == RopeScalingKind::kLinear ||
             config.rope_scaling.kind == RopeScalingKind::kLlama3;
    default: return false;
  }
}

// Recording costs about as much as this many steps.
constexpr std::int64_t kStepsBefore = 4;
// Each recorded step reads all positions that it may see, so it sees few at first.
constexpr std::int64_t kFirstSeen = 256;

}  // namespace

bool FixedStep::supports(const TransformerConfig& config, std::int64_t seen) {
  return config.shape == Shape::kDecoder && !config.cross_attention && config.num_experts == 0 &&
         config.attention == AttentionKind::kFull && positions_are_lookups(config) &&
         (config.sliding_window == 0 || config.sliding_window >= seen);
}

FixedStep::FixedStep(Model& model, KeyValueCache& cache, const std::vector<std::int64_t>& begins,
                     std::int64_t seen)
    : model_(model), cache_(cache), seen_(seen) {
  const auto options = at::TensorOptions().dtype(at::kLong).device(cache.device());
  begins_ = at::tensor(begins, at::kLong).unsqueeze(1).to(options.device());
  ids_ = at::zeros_like(begins_);
  position_ = at::zeros({1}, options);
  indices_ = at::arange(seen, options);
  cache.clear_until(seen);
}

void FixedStep::set(const TokenIds& ids, std::int64_t position) {
  ids_.copy_(at::tensor(ids, at::kLong).unsqueeze(1));
  position_.fill_(position);
}

void FixedStep::run() {
  cache_.fix(position_, seen_);
  const auto unfixed = c10::make_scope_exit([this] { cache_.unfix(); });
  ModelInputs inputs{.input_ids = ids_, .cache = &cache_, .last_logits_only = true};
  inputs.attention_mask = indices_.ge(begins_).logical_and_(indices_.le(position_));
  if (model_.config().takes_positions()) inputs.position_ids = position_ - begins_;
  logits_ = model_.forward(inputs).logits.select(1, -1).to(at::kFloat);
}

GraphedSteps::GraphedSteps(Model& model, KeyValueCache& cache)
    : model_(model),
      cache_(cache),
      possible_(can_record(cache.device()) && FixedStep::supports(model.config(), kFirstSeen)) {}

at::Tensor GraphedSteps::step(const TokenIds& ids, const std::vector<std::int64_t>& begins) {
  if (begins != begins_ || moves_ != cache_.moves()) {
    launch_ = nullptr;
    begins_ = begins;
    moves_ = cache_.moves();
    calm_ = 0;
  }
  if (++calm_ <= kStepsBefore) return {};
  const std::int64_t position = cache_.length();
  const bool records = !launch_ || position >= seen_;
  if (records) {
    launch_ = nullptr;
    seen_ = std::min(cache_.capacity(), std::max(kFirstSeen, static_cast<std::int64_t>(std::bit_ceil(
                                                                 static_cast<std::uint64_t>(position) + 1))));
    possible_ = FixedStep::supports(model_.config(), seen_);
    if (!possible_) return {};
    step_.emplace(model_, cache_, begins, seen_);
  }
  step_->set(ids, position);
  try {
    if (records) launch_ = recorded(cache_.device(), [this] { step_->run(); });
  } catch (const c10::Error&) {  // the device or a library refuses: the usual way gives the same logits
    possible_ = false;
    return {};
  }
  launch_();
  cache_.advance(1);
  return step_->logits();
}

}  // namespace zoo
