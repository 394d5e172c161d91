#include "apps/training/layer_norms.h"

#include <algorithm>
#include <cmath>

namespace zoo {
namespace {

// The parameter's name up to its first number, or else without its last part. LoRA's names join the parts of
// the weight's name by '_'.
std::string layer_of(const std::string& parameter) {
  const char* separators = "._";
  for (std::size_t at = 0; (at = parameter.find_first_of(separators, at)) != std::string::npos; ++at) {
    const std::size_t end = std::min(parameter.find_first_of(separators, at + 1), parameter.size());
    if (end > at + 1 && parameter.find_first_not_of("0123456789", at + 1) >= end)
      return parameter.substr(0, end);
  }
  return parameter.substr(0, parameter.rfind('.'));
}

double squared_norm(const at::Tensor& x) { return std::pow(x.norm(2, at::kDouble).item<double>(), 2); }

}  // namespace

LayerMeasure::LayerMeasure(const NamedTensors& parameters) : parameters_(parameters) {
  for (const auto& [name, parameter] : parameters) {
    before_.push_back(parameter.detach().clone());
    gradients_.push_back(parameter.grad().defined() ? squared_norm(parameter.grad()) : 0);
  }
}

std::vector<LayerNorms> LayerMeasure::norms() const {
  std::vector<LayerNorms> layers;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor weight = parameters_[i].second.detach();
    const std::string name = layer_of(parameters_[i].first);
    auto layer = std::ranges::find(layers, name, &LayerNorms::layer);
    if (layer == layers.end()) layer = layers.insert(layer, {.layer = name});
    layer->gradient += gradients_[i];
    layer->weight += squared_norm(weight);
    layer->update += squared_norm(weight - before_[i]);
  }
  for (LayerNorms& each : layers)
    for (double* norm : {&each.gradient, &each.weight, &each.update}) *norm = std::sqrt(*norm);
  return layers;
}

}  // namespace zoo
