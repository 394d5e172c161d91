#include "models/analysis/ablation.h"

namespace zoo::analysis {
namespace {

// Which positions of a stack's sequence count, [B, T]; undefined: all.
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

}  // namespace

std::vector<Intervention> ablated(Model& model, const ModelInputs& inputs, const std::vector<Site>& sites,
                                  Ablation ablation) {
  std::vector<Intervention> interventions;
  for (const Site& site : sites) {
    TORCH_CHECK(ablation == Ablation::kZero || site.part != LayerPart::kResidual,
                "a whole layer is ablated by leaving it out: it has no mean");
    interventions.push_back({.site = site});
  }
  if (ablation == Ablation::kZero || sites.empty()) return interventions;
  const Run unchanged = run(model, inputs);
  for (Intervention& change : interventions) {
    const at::Tensor values = activation_at(model, unchanged, change.site);
    change.value = mean_over_positions(values, mask_of(inputs, model, change.site.stack));
  }
  return interventions;
}

}  // namespace zoo::analysis
