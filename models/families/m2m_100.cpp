// M2M-100 (Fan et al., 2021) and NLLB-200 (NLLB Team, 2022): a pre-LN encoder-decoder that translates between
// many languages. Its sinusoidal positions skip padding. A language's token begins the source, and is the
// first that the decoder writes.

#include "models/families/kinds/bart_kind.h"

namespace zoo::family::m2m_100 {

C base() {
  C config = bart_base();
  config.norm_placement = NormPlacement::kPre;
  config.position = PositionKind::kSinusoidal;
  config.sinusoid_order = SinusoidOrder::kFairseq;
  config.position_count = PositionCount::kNotPadding;
  config.position_offset = 0;
  config.activation = Activation::kRelu;
  config.embedding_norm = config.output_bias = false;
  config.embedding_scale = 0;
  config.attention_dropout = 0.1;
  config.layer_dropout = config.decoder_layer_dropout = 0.05;
  return config;
}

// Positions are computed, and no file holds them.
WeightTable weights(const C& config) {
  WeightTable table = bart_weights(config);
  std::erase_if(table.names, [](const WeightName& name) { return name.ours.ends_with("sinusoids"); });
  // Tables in the files of transformers 4.
  table.ignored = {"encoder.embed_positions.weights", "decoder.embed_positions.weights"};
  return table;
}

C sized(std::int64_t vocabulary, std::int64_t hidden, std::int64_t layers, std::int64_t inner) {
  return bart_sized(base(), {vocabulary, hidden, layers, 16, inner});
}

constexpr std::int64_t kM2m = 128112, kNllb = 256206;  // sizes of the published vocabularies

Family family() {
  return {
      .model_type = "m2m_100",
      .description =
          "M2M-100 (Fan et al., 2021) and NLLB-200 (NLLB Team, 2022): translation between many languages",
      .heads = bart_heads("M2M100"),
      .base = base(),
      .keys = {"M2M-100", concatenated(bart_keys(), {required_pad_token_key()})},
      .presets = {{"m2m100_418M", "M2M-100 of 418 million weights", sized(kM2m, 1024, 12, 4096)},
                  {"m2m100_1.2B", "M2M-100 of 1.2 billion weights", sized(kM2m, 1024, 24, 8192)},
                  {"nllb-200-distilled-600M", "NLLB-200, distilled", sized(kNllb, 1024, 12, 4096)},
                  {"nllb-200-distilled-1.3B", "NLLB-200, distilled", sized(kNllb, 1024, 24, 8192)},
                  {"nllb-200-3.3B", "NLLB-200", sized(kNllb, 2048, 24, 8192)}},
      .build = build_encoder_decoder,
      .weight_table = weights,
  };
}

}  // namespace zoo::family::m2m_100
