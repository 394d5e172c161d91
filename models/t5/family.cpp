#include "models/t5/family.h"

#include <cmath>

#include "data/base/error.h"
#include "models/formats/weight_files.h"
#include "models/t5/config_reader.h"
#include "models/t5/t5.h"
#include "models/t5/weight_names.h"

namespace zoo::t5 {
namespace {

struct Size {
  std::int64_t hidden, layers, heads, inner, head_dim = 64;
};

TransformerConfig t5_config(const Size& size) {
  TransformerConfig config;
  config.shape = Shape::kEncoderDecoder;
  config.position = PositionKind::kT5Buckets;
  config.norm = NormKind::kRmsNorm;
  config.layer_norm_eps = 1e-6;
  config.activation = Activation::kRelu;
  config.attention_scale = 1.0;
  config.attention_bias = config.feed_forward_bias = config.norm_bias = false;
  config.vocab_size = 32128;
  config.max_positions = 512;
  config.hidden_size = size.hidden;
  config.num_layers = config.num_decoder_layers = size.layers;
  config.num_heads = size.heads;
  config.intermediate_size = size.inner;
  config.head_dim = size.head_dim;
  config.dropout = config.embedding_dropout = config.attention_dropout = 0.1;
  config.activation_dropout = config.final_dropout = 0.1;
  config.initializer_range = 1.0;
  config.pad_token_id = config.decoder_start_token_id = 0;
  config.logits_scale = 1.0 / std::sqrt(static_cast<double>(size.hidden));
  return config;
}

// Version 1.1 (the paper's repository): gated-GELU, an output projection of its own, which is not scaled.
TransformerConfig v1_1(TransformerConfig config) {
  config.activation = Activation::kGeGluTanh;
  config.tie_word_embeddings = false;
  config.logits_scale = 1.0;
  return config;
}

// For trying out on a CPU.
TransformerConfig tiny() {
  TransformerConfig config =
      v1_1(t5_config({.hidden = 128, .layers = 3, .heads = 4, .inner = 256, .head_dim = 32}));
  config.vocab_size = 1024;
  return config;
}

std::shared_ptr<Model> build(const TransformerConfig& config, Head head) {
  if (head != Head::kSeq2SeqLm && head != Head::kBase)
    throw Error("t5 has no ", name_of(head), " head (it has: seq2seq-lm, base)");
  if (config.shape != Shape::kEncoder) return std::make_shared<T5>(config, head);
  if (head != Head::kBase) throw Error("the encoder of a t5 has no ", name_of(head), " head (it has: base)");
  return std::make_shared<T5Encoder>(config);
}

// As transformers 5: a projection beside the embedding is one of its own unless the two are equal, whatever
// tie_word_embeddings says.
void complete_config(TransformerConfig& config, const WeightFiles& files) {
  const std::string projection = "lm_head.weight", embedding = "shared.weight";
  if (!config.tie_word_embeddings || !files.contains(projection) || !files.contains(embedding)) return;
  config.tie_word_embeddings = files.tensor(projection).equal(files.tensor(embedding));
}

}  // namespace

Family family() {
  const TransformerConfig small = t5_config({.hidden = 512, .layers = 8, .heads = 6, .inner = 1024});
  const TransformerConfig base = t5_config({.hidden = 768, .layers = 12, .heads = 12, .inner = 2048});
  const TransformerConfig large = t5_config({.hidden = 1024, .layers = 24, .heads = 16, .inner = 2816});
  return {
      .model_type = "t5",
      .description =
          "T5 (Raffel et al., 2020): encoder-decoder, pre-RMSNorm, bucketed relative positions, "
          "unscaled attention",
      .heads = {{Head::kSeq2SeqLm, "T5ForConditionalGeneration"},
                {Head::kBase, "T5Model"},
                {Head::kBase, "T5EncoderModel"}},
      .presets = {{"t5-small", "T5 small", t5_config({512, 6, 8, 2048})},
                  {"t5-base", "T5 base", t5_config({768, 12, 12, 3072})},
                  {"t5-large", "T5 large", t5_config({1024, 24, 16, 4096})},
                  {"t5-v1_1-small", "T5 1.1 small", v1_1(small)},
                  {"t5-v1_1-base", "T5 1.1 base", v1_1(base)},
                  {"t5-v1_1-large", "T5 1.1 large", v1_1(large)},
                  {"t5-tiny", "T5 1.1 for trying out on a CPU", tiny()}},
      .read_config = read_config,
      .write_config = write_config,
      .build = build,
      .weight_table = weight_table,
      .complete_config = complete_config,
  };
}

}  // namespace zoo::t5
