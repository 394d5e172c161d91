#include "models/analysis/steering.h"

#include <ATen/ops/stack.h>

#include "models/analysis/residual_stream.h"
#include "models/layers/stack.h"

namespace zoo::analysis {
namespace {

at::Tensor mean_state(Model& model, const std::vector<ModelInputs>& texts, std::int64_t layer) {
  TORCH_CHECK(!texts.empty(), "a direction needs texts on both sides");
  std::vector<at::Tensor> states;
  for (const ModelInputs& text : texts) {
    const Run found = run(model, text);
    states.push_back(activation_at(model, found, steering(model, {}, layer, 0).site)[0][-1].to(at::kFloat));
  }
  return at::stack(states).mean(0);
}

}  // namespace

at::Tensor steering_direction(Model& model, const std::vector<ModelInputs>& toward,
                              const std::vector<ModelInputs>& away, std::int64_t layer) {
  return mean_state(model, toward, layer) - mean_state(model, away, layer);
}

Intervention steering(const Model& model, const at::Tensor& direction, std::int64_t layer, double strength) {
  return {.site = {.stack = head_stack(model).config().shape, .layer = layer},
          .value = direction.defined() ? direction * strength : direction,
          .adds = true};
}

}  // namespace zoo::analysis
