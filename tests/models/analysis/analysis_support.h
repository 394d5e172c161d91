#pragma once

#include <string>
#include <vector>

#include "models/analysis/residual_stream.h"
#include "tests/models/support.h"

namespace zoo::test {

/// A random model with inputs for it, of six tokens in each stack.
struct AnalysedModel {
  std::string name;
  std::shared_ptr<Model> model;
  ModelInputs inputs;

  const TransformerConfig& config() const { return analysis::head_stack(*model).config(); }
};

/// Language models whose blocks differ: GPT-2's, the younger decoders', the encoders', ALBERT with one block
/// for all layers, and the encoder-decoders.
inline std::vector<AnalysedModel> analysed_models(std::uint64_t seed = 7) {
  std::vector<AnalysedModel> all;
  const auto add = [&](const std::string& name, const std::string& family, const TransformerConfig& config,
                       Head head) {
    AnalysedModel one{name, random_model(family, config, head, seed), {}};
    one.inputs.input_ids = random_ids(config, 1, 6, seed + 1);
    if (config.shape == Shape::kEncoderDecoder)
      one.inputs.decoder_input_ids = random_ids(config, 1, 6, seed + 2);
    all.push_back(std::move(one));
  };
  TransformerConfig gpt = small_config();
  add("gpt2", "gpt2", gpt, Head::kCausalLm);
  gpt.head_dim = 4;
  gpt.num_heads = 4;
  gpt.num_kv_heads = 2;
  gpt.attention_output_bias = false;  // the heads' shares are then all of the attention's
  std::size_t form = 0;
  for (const TransformerConfig& config : younger_forms(gpt))
    add("younger form " + std::to_string(form++), "llama", config, Head::kCausalLm);
  for (const auto& [family, config] : small_encoders()) add(family, family, config, Head::kMaskedLm);
  TransformerConfig albert = small_encoder_config();
  albert.sharing = Sharing::kAllLayers;
  albert.embedding_size = 10;
  add("albert", "albert", albert, Head::kMaskedLm);
  for (const auto& [family, config] : small_encoder_decoders()) add(family, family, config, Head::kSeq2SeqLm);
  return all;
}

/// The sites of a layer: the residual stream, each sublayer and each head.
inline std::vector<Site> sites_of(const TransformerConfig& config, std::int64_t layer) {
  std::vector<LayerPart> parts{LayerPart::kAttention, LayerPart::kFeedForward};
  if (config.cross_attention) parts.push_back(LayerPart::kCrossAttention);
  std::vector<Site> sites{{.stack = config.shape, .layer = layer}};
  for (const LayerPart part : parts) {
    sites.push_back({.stack = config.shape, .layer = layer, .part = part});
    if (part == LayerPart::kFeedForward) continue;
    for (std::int64_t head = 0; head < config.num_heads; ++head)
      sites.push_back({.stack = config.shape, .layer = layer, .part = part, .head = head});
  }
  return sites;
}

}  // namespace zoo::test
