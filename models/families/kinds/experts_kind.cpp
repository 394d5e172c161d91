#include "models/families/kinds/experts_kind.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace zoo {
namespace {

using C = TransformerConfig;

constexpr const char* kStep = "decoder_sparse_step";
constexpr const char* kDense = "mlp_only_layers";

void read_layers(const ConfigReader& reader, C& config) {
  const std::int64_t step = reader.get_int(kStep, 1);
  if (step < 1) reader.refuse(kStep, "expected a positive number");
  const nlohmann::json dense = reader.has(kDense) ? reader.at(kDense) : nlohmann::json::array();
  if (!dense.is_array() || !std::ranges::all_of(dense, &nlohmann::json::is_number_integer))
    reader.refuse(kDense, "expected a list of layers");
  config.expert_layers = by_layer(config.num_layers, [&](std::int64_t i) {
    return (i + 1) % step == 0 && std::find(dense.begin(), dense.end(), i) == dense.end();
  });
}

void write_layers(const C& config, nlohmann::json& json) {
  json[kStep] = 1;
  json[kDense] = nlohmann::json::array();
  for (std::int64_t i = 0; i < config.num_layers; ++i)
    if (config.num_experts > 0 && !config.has_experts(i)) json[kDense].push_back(i);
}

}  // namespace

std::vector<ConfigKey> router_keys() {
  return {optional_key("num_experts_per_tok", &C::experts_per_token),
          optional_key("output_router_logits", &C::router_loss),
          optional_key("router_aux_loss_coef", &C::router_loss_weight)};
}

ConfigKey num_experts_key(const std::string& name) {
  ConfigKey key = optional_key(name, &C::num_experts);
  key.read = [](const ConfigReader& reader, C& config) {
    for (const char* each : {"num_local_experts", "num_experts"})
      config.num_experts = reader.get_int(each, config.num_experts);
  };
  return key;
}

std::vector<ConfigKey> qwen_expert_keys() {
  return {optional_key("moe_intermediate_size", &C::expert_size),
          choice_key("norm_topk_prob", &C::expert_weights, ExpertWeights::kOfChosen, ExpertWeights::kOfAll),
          {.name = kDense, .read = read_layers, .write = write_layers, .by_layer = true},
          ignored_keys({"sliding_window"})};
}

WeightTable llama_weights_with_experts(const C& config, const std::string& block, const ExpertNames& names) {
  WeightTable table = llama_weights(config);
  const std::string expert = "layers.{}." + block + ".experts.", joined = "layers.{}.mlp.experts.";
  const std::string router = block + ".gate.weight";
  WeightName up{.ours = "stack.blocks.{}.experts.up.weight",
                .joined = joined + "gate_up_proj",
                .experts = config.num_experts};
  WeightName down{.ours = "stack.blocks.{}.experts.down.weight",
                  .joined = joined + "down_proj",
                  .experts = config.num_experts};
  for (std::int64_t e = 0; e < config.num_experts; ++e) {
    const std::string one = expert + std::to_string(e) + ".";
    up.theirs.push_back(one + names.gate + ".weight");
    up.theirs.push_back(one + names.up + ".weight");
    down.theirs.push_back(one + names.down + ".weight");
  }
  table.names.push_back({"stack.blocks.{}.experts.router.weight", {"layers.{}." + router}});
  if (config.num_experts == 0) return table;
  table.names.push_back(std::move(up));
  table.names.push_back(std::move(down));
  if (block != "mlp") table.renamed.emplace_back(router, "mlp.gate.weight");
  return table;
}

}  // namespace zoo
