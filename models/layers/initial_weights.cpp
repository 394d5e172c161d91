#include "models/layers/initial_weights.h"

#include <cmath>

namespace zoo {
namespace {

void initialize(EmbeddingImpl& table, double std, const at::Generator& generator) {
  table.weight.normal_(0.0, std, generator);
  if (table.padding_id() >= 0) table.weight[table.padding_id()].zero_();
}

// Queries carry the factor 1 / sqrt(D) that unscaled scores lack.
void draw_by_width(const std::string& name, const at::Tensor& weight, const TransformerConfig& config,
                   const at::Generator& generator) {
  const auto width = static_cast<double>(weight.size(1)), head = static_cast<double>(config.head_size());
  const std::int64_t queries = name == "attention.qkv"       ? config.num_heads * config.head_size()
                               : name == "cross_attention.q" ? weight.size(0)
                                                             : 0;
  if (queries > 0)
    weight.slice(0, 0, queries).normal_(0.0, config.initializer_range / std::sqrt(width * head), generator);
  if (queries < weight.size(0))
    weight.slice(0, queries).normal_(0.0, config.initializer_range / std::sqrt(width), generator);
}

// Standard deviation of tables inside a stack.
double table_std(const TransformerConfig& config) {
  const bool by_width = config.initial_weights == InitialWeights::kByWidth;
  return config.initializer_range / (by_width ? std::sqrt(static_cast<double>(config.hidden_size)) : 1.0);
}

void initialize(BlockImpl& block, const TransformerConfig& config, const at::Generator& generator) {
  const double std = config.initializer_range;
  const double residual_std = std / std::sqrt(2.0 * static_cast<double>(config.num_layers));
  for (const auto& entry : block.named_modules("", /*include_self=*/false)) {
    const std::string& name = entry.key();
    const auto& part = entry.value();
    if (auto* norm = part->as<NormImpl>()) norm->reset();
    if (auto* table = part->as<EmbeddingImpl>()) initialize(*table, table_std(config), generator);
    auto* linear = part->as<LinearImpl>();
    if (linear == nullptr) continue;
    if (config.initial_weights == InitialWeights::kByWidth) {
      draw_by_width(name, linear->weight, config, generator);
    } else {
      const bool ends_residual = name.ends_with(".out") || name.ends_with(".down");
      const bool scaled = config.initial_weights == InitialWeights::kScaledResiduals && ends_residual;
      linear->weight.normal_(0.0, scaled ? residual_std : std, generator);
      if (config.initial_weights == InitialWeights::kZeroResiduals && ends_residual) linear->weight.zero_();
    }
    if (linear->bias.defined()) linear->bias.zero_();
  }
}

}  // namespace

void initialize(torch::nn::Module& module, double std, const at::Generator& generator) {
  const at::NoGradGuard no_grad;
  for (const auto& part : module.modules()) {
    if (auto* norm = part->as<NormImpl>()) norm->reset();
    if (auto* table = part->as<EmbeddingImpl>()) initialize(*table, std, generator);
    auto* linear = part->as<LinearImpl>();
    if (linear == nullptr) continue;
    linear->weight.normal_(0.0, std, generator);
    if (linear->bias.defined()) linear->bias.zero_();
  }
}

void initialize(TransformerStackImpl& stack, const TransformerConfig& config,
                const at::Generator& generator) {
  const at::NoGradGuard no_grad;
  for (Embedding table : {stack.position_bias, stack.distance_vectors})
    if (table) initialize(*table, table_std(config), generator);
  if (stack.distance_norm) stack.distance_norm->reset();
  for (const auto& block : *stack.blocks) initialize(*block->as<BlockImpl>(), config, generator);
  if (stack.final_norm) stack.final_norm->reset();
}

}  // namespace zoo
