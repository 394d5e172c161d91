#include "models/analysis/residual_stream.h"

#include <string>

#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include "models/layers/stack.h"

namespace zoo::analysis {

TransformerStackImpl& head_stack(const Model& model) {
  const ModelParts parts = model.parts();
  TORCH_CHECK(
      parts.embeddings && (parts.decoder || parts.encoder),
      "this model has no layers to look into: its weights are packed, or it is not a stack of layers");
  return parts.decoder ? *parts.decoder : *parts.encoder;
}

Run run(Model& model, ModelInputs inputs) {
  head_stack(model);
  inputs.output_hidden_states = inputs.output_activations = true;
  Run result{.output = model.forward(inputs)};
  result.stream = result.output.hidden_states;
  result.stream.back() = result.output.activations.back().residual;
  return result;
}

at::Tensor activation_at(const Model& model, const Run& run, const Site& site) {
  const bool of_head = site.stack == head_stack(model).config().shape;
  const auto& layers = of_head ? run.output.activations : run.output.encoder_activations;
  const auto count = static_cast<std::int64_t>(layers.size());
  TORCH_CHECK(site.layer >= 0 && site.layer < count, "layer ", site.layer, " of the ",
              site.stack == Shape::kEncoder ? "encoder" : "decoder", " was asked for, which has ", count);
  const at::Tensor output = layers[static_cast<std::size_t>(site.layer)].at(site);
  TORCH_CHECK(output.defined(), "the model's layers have no such part", site.head < 0 ? "" : " or no head ",
              site.head < 0 ? "" : std::to_string(site.head));
  return output;
}

at::Tensor stream_norms(const Run& run) {
  std::vector<at::Tensor> norms;
  for (const at::Tensor& state : run.stream)
    norms.push_back(at::linalg_vector_norm(state.to(at::kFloat), 2, at::IntArrayRef{-1}));
  return at::stack(norms);
}

}  // namespace zoo::analysis
