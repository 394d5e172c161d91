#include "apps/verbs/look/attention_weights.h"

#include "data/base/error.h"
#include "models/analysis/rollout.h"

namespace zoo {
namespace {

// One GB at four bytes each: fits a laptop's memory beside the model.
constexpr std::int64_t kMostWeights = 256'000'000;

void check_size(const char* flag, std::size_t tokens, const TransformerConfig& config) {
  const auto length = static_cast<std::int64_t>(tokens);
  const std::int64_t weights = config.num_layers * config.num_heads * length * length;
  if (weights > kMostWeights) {
    throw Error(flag, ": ", length, " tokens have ", weights, " attention weights; at most ", kMostWeights,
                " are kept, so give a shorter text");
  }
}

AttentionMaps maps_of(const std::string& name, const std::vector<at::Tensor>& layers,
                      const std::vector<std::string>& queries, const std::vector<std::string>& keys) {
  AttentionMaps maps{.name = name, .queries = queries, .keys = keys, .layers = layers.size()};
  for (const at::Tensor& layer : layers) {
    const at::Tensor weights = layer[0].to(at::kFloat).cpu().contiguous();  // [H, T, S]
    maps.heads = static_cast<std::size_t>(weights.size(0));
    const float* data = weights.const_data_ptr<float>();
    maps.weights.insert(maps.weights.end(), data, data + weights.numel());
  }
  return maps;
}

// Tokens that the tokenizer adds around a text; in an encoder-decoder's decoder, its start token.
std::vector<std::size_t> special_positions(const Encoding& encoding) {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < encoding.texts.size(); ++i)
    if (encoding.texts[i] < 0) positions.push_back(i);
  return positions;
}

// The rollout of a self-attention, as maps of one head.
AttentionMaps rollout_of(const std::string& name, const std::vector<at::Tensor>& layers,
                         const std::vector<std::string>& tokens) {
  std::vector<at::Tensor> maps;  // [B, 1, T, T] each
  for (const at::Tensor& layer : analysis::attention_rollout(layers).unbind(0))
    maps.push_back(layer.unsqueeze(1));
  return maps_of(name + "-rollout", maps, tokens, tokens);
}

}  // namespace

std::vector<AttentionMaps> attention_of(const TextModel& model, TextInputs read, bool rollout) {
  const TransformerConfig& config = model.model->config();
  check_size("--text", read.source.size(), config);
  check_size("--target", read.written.size(), config);
  read.inputs.output_attentions = true;
  const ModelOutput output = model.model->forward(read.inputs);
  const auto self = [&](const std::string& name, const std::vector<at::Tensor>& layers,
                        const std::vector<std::string>& tokens) {
    AttentionMaps maps = rollout ? rollout_of(name, layers, tokens) : maps_of(name, layers, tokens, tokens);
    maps.causal = name == "decoder";
    return maps;
  };
  const std::vector<std::size_t> added = special_positions(read.encoding), start{0};
  std::vector<AttentionMaps> all;
  const auto add = [&](AttentionMaps maps, const auto& queries, const auto& keys) {
    maps.special_queries = queries;
    maps.special_keys = keys;
    all.push_back(std::move(maps));
  };
  if (config.shape != Shape::kEncoderDecoder) {
    if (output.attentions.empty()) throw Error("--model: this model has no attention");
    add(self(config.shape == Shape::kEncoder ? "encoder" : "decoder", output.attentions, read.source), added,
        added);
    return all;
  }
  add(self("encoder", output.encoder_attentions, read.source), added, added);
  add(self("decoder", output.attentions, read.written), start, start);
  if (!rollout) add(maps_of("cross", output.cross_attentions, read.written, read.source), start, added);
  return all;
}

}  // namespace zoo
