#include "models/analysis/ablation.h"

#include <optional>

#include "models/layers/stack.h"

namespace zoo::analysis {
namespace {

// Mask of the unpadded positions of a stack's sequence, [B, T]; undefined: all.
at::Tensor mask_of(const ModelInputs& inputs, const Model& model, Shape stack) {
  const bool second = model.config().shape == Shape::kEncoderDecoder && stack == Shape::kDecoder;
  return second ? inputs.decoder_attention_mask : inputs.attention_mask;
}

// [B, T, W] to [B, 1, W].
at::Tensor mean_over_positions(const at::Tensor& values, const at::Tensor& mask) {
  if (!mask.defined()) return values.mean(1, /*keepdim=*/true);
  const at::Tensor kept = mask.to(values.device()).ne(0).unsqueeze(-1);
  const at::Tensor sum = values.masked_fill(kept.logical_not(), 0.0).sum(1, /*keepdim=*/true);
  return sum / kept.sum(1, /*keepdim=*/true).clamp_min(1);
}

void check_mean(const Site& site, Ablation ablation) {
  TORCH_CHECK(ablation == Ablation::kZero || site.part != LayerPart::kResidual,
              "a whole layer is ablated by leaving it out: it has no mean");
}

// `clean` is used only for means.
Intervention ablated(const Model& model, const ModelInputs& inputs, const Run* clean, const Site& site) {
  if (clean == nullptr) return {.site = site};
  const at::Tensor values = activation_at(model, *clean, site);
  return {.site = site, .value = mean_over_positions(values, mask_of(inputs, model, site.stack))};
}

}  // namespace

std::vector<Intervention> ablated(Model& model, const ModelInputs& inputs, const std::vector<Site>& sites,
                                  Ablation ablation) {
  for (const Site& site : sites) check_mean(site, ablation);
  std::optional<Run> clean;
  if (ablation == Ablation::kMean) clean = run(model, inputs);
  std::vector<Intervention> interventions;
  for (const Site& site : sites)
    interventions.push_back(ablated(model, inputs, clean ? &*clean : nullptr, site));
  return interventions;
}

AblationEffects ablation_sweep(Model& model, const ModelInputs& all, const SweepOptions& given,
                               Ablation ablation) {
  TORCH_CHECK(given.positions.empty(), "ablations are at all positions");
  check_mean({.part = given.part}, ablation);
  SweepOptions options = given;
  const ModelInputs inputs = answering_inputs(model, all, options.target);
  const Run whole = run(model, inputs);
  const auto cell = [&](const Site& site, std::int64_t) {
    return std::vector{ablated(model, inputs, ablation == Ablation::kMean ? &whole : nullptr, site)};
  };
  const std::int64_t columns = options.heads ? head_stack(model).config().num_heads : 1;
  return {.whole = measure(model, whole.output, options.target),
          .ablated = sweep(model, inputs, options, columns, cell)};
}

}  // namespace zoo::analysis
