#include "models/analysis/sweep.h"

#include <ATen/ops/empty.h>

#include "models/layers/stack.h"

namespace zoo::analysis {
namespace {

std::int64_t layers_of(const Model& model, Shape stack) {
  const ModelParts parts = model.parts();
  const auto& found = stack == Shape::kEncoder ? parts.encoder : parts.decoder;
  TORCH_CHECK(found, "the model has no ", stack == Shape::kEncoder ? "encoder" : "decoder");
  return found->config().num_layers;
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
  const std::int64_t layers = layers_of(model, options.stack);
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

}  // namespace zoo::analysis
