#include "models/layers/initial_weights.h"

#include "models/layers/norm.h"

namespace zoo {

void draw_normal(LinearImpl& linear, double std, at::Generator generator) {
  const at::NoGradGuard no_grad;
  linear.weight.normal_(0.0, std, std::move(generator));
  if (linear.bias.defined()) linear.bias.zero_();
}

void draw_normal(EmbeddingImpl& embedding, double std, at::Generator generator) {
  const at::NoGradGuard no_grad;
  embedding.weight.normal_(0.0, std, std::move(generator));
  if (embedding.padding_id() >= 0) embedding.weight[embedding.padding_id()].zero_();
}

void draw_all_normal(torch::nn::Module& module, double std, const at::Generator& generator) {
  for (const auto& part : module.modules()) {
    if (auto* linear = part->as<LinearImpl>()) draw_normal(*linear, std, generator);
    if (auto* embedding = part->as<EmbeddingImpl>()) draw_normal(*embedding, std, generator);
    if (auto* norm = part->as<NormImpl>()) norm->reset();
  }
}

}  // namespace zoo
