#include "models/analysis/sweep.h"

#include <optional>

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include "data/base/sizes.h"
#include "models/layers/stack.h"

namespace zoo::analysis {
namespace {

void check_mean(const Site& site, Ablation ablation) {
  TORCH_CHECK(ablation == Ablation::kZero || site.part != LayerPart::kResidual,
              "a whole layer is ablated by leaving it out: it has no mean");
}

// `clean` is used only for means.
Intervention ablated(const Model& model, const ModelInputs& inputs, const Run* clean, const Site& site) {
  if (clean == nullptr) return {.site = site};
  const at::Tensor values = activation_at(model, *clean, site);
  const bool second = model.config().shape == Shape::kEncoderDecoder && site.stack == Shape::kDecoder;
  const at::Tensor& mask = second ? inputs.decoder_attention_mask : inputs.attention_mask;
  return {.site = site, .value = mean_of_kept(values, mask).unsqueeze(1)};
}

void check_same_length(const char* name, const at::Tensor& clean, const at::Tensor& corrupted) {
  if (!clean.defined() && !corrupted.defined()) return;
  TORCH_CHECK(
      clean.defined() && corrupted.defined() && clean.sizes() == corrupted.sizes() && clean.size(0) == 1,
      "patching needs two inputs of one sequence and one length, got ", name, " ",
      clean.defined() ? clean.sizes() : at::IntArrayRef(), " and ",
      corrupted.defined() ? corrupted.sizes() : at::IntArrayRef());
}

}  // namespace

ModelInputs answering_inputs(const Model& model, const ModelInputs& inputs, LogitTarget& target) {
  ModelInputs answering = inputs;
  const at::Tensor& ids =
      model.config().shape == Shape::kEncoderDecoder ? inputs.decoder_input_ids : inputs.input_ids;
  const bool at_end = target.position < 0 || (ids.defined() && target.position == ids.size(1) - 1);
  if (!at_end || !model.parts().generates()) return answering;
  answering.last_logits_only = true;
  target.position = -1;
  return answering;
}

at::Tensor sweep(Model& model, const ModelInputs& inputs, const SweepOptions& options, std::int64_t columns,
                 const CellInterventions& interventions) {
  const ModelParts parts = model.parts();
  const bool of_encoder = options.stack == Shape::kEncoder;
  const auto& stack = of_encoder ? parts.encoder : parts.decoder;
  TORCH_CHECK(stack, "the model has no ", of_encoder ? "encoder" : "decoder");
  const std::int64_t layers = stack->config().num_layers;
  at::Tensor values = at::empty({layers, columns}, at::kDouble);
  ModelInputs changed = inputs;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const Site site{
          .stack = options.stack, .layer = layer, .part = options.part, .head = options.heads ? column : -1};
      changed.interventions = interventions(site, column);
      values[layer][column] = measure(model, model.forward(changed), options.target);
      if (options.progress) options.progress(layer * columns + column + 1, layers * columns);
    }
  }
  return values;
}

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

std::vector<Intervention> patches(const Model& model, const Run& clean, const std::vector<Site>& sites,
                                  const std::vector<std::int64_t>& positions) {
  std::vector<Intervention> changes;
  for (const Site& site : sites) {
    at::Tensor value = activation_at(model, clean, site);
    for (const std::int64_t position : positions)
      TORCH_CHECK(position >= 0 && position < value.size(1), "position ", position,
                  " is not in a sequence of ", value.size(1));
    if (!positions.empty()) value = value.index_select(1, at::tensor(positions).to(value.device()));
    changes.push_back({.site = site, .value = value, .positions = positions});
  }
  return changes;
}

PatchEffects patch_sweep(Model& model, const ModelInputs& clean, const ModelInputs& corrupted,
                         const SweepOptions& given) {
  check_same_length("input_ids", clean.input_ids, corrupted.input_ids);
  check_same_length("decoder_input_ids", clean.decoder_input_ids, corrupted.decoder_input_ids);
  SweepOptions options = given;
  const ModelInputs start = answering_inputs(model, corrupted, options.target);
  const Run source = run(model, answering_inputs(model, clean, options.target));
  const Site first{.stack = options.stack, .part = options.part, .head = options.heads ? 0 : -1};
  const auto length = static_cast<std::size_t>(activation_at(model, source, first).size(1));
  const auto places = options.positions.empty() ? indices_below<std::int64_t>(length) : options.positions;
  const std::int64_t columns = options.heads ? head_stack(model).config().num_heads : std::ssize(places);
  const auto cell = [&](const Site& site, std::int64_t column) {
    if (options.heads) return patches(model, source, {site}, options.positions);
    return patches(model, source, {site}, {places[static_cast<std::size_t>(column)]});
  };
  return {.clean = measure(model, source.output, options.target),
          .corrupted = measure(model, run(model, start).output, options.target),
          .patched = sweep(model, start, options, columns, cell)};
}

}  // namespace zoo::analysis
