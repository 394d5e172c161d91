// PEGASUS (Zhang et al., 2020): a pre-LN encoder-decoder with sinusoidal positions, trained to write the
// sentences that summarise a text.

#include "models/families/kinds/bart_kind.h"

namespace zoo::family::pegasus {

TransformerConfig base() {
  TransformerConfig config = bart_base();
  config.norm_placement = NormPlacement::kPre;
  config.position = PositionKind::kSinusoidal;
  config.sinusoid_order = SinusoidOrder::kHalves;
  config.position_offset = 0;
  config.embedding_norm = false;
  config.pad_token_id = config.decoder_start_token_id = 0;
  return config;
}

TransformerConfig large(std::int64_t positions) {
  TransformerConfig config = bart_sized(base(), {96103, 1024, 16, 16, 4096});
  config.activation = Activation::kRelu;
  config.attention_dropout = config.activation_dropout = 0.1;
  config.embedding_scale = 0;
  config.max_positions = positions;
  return config;
}

Family family() {
  return {
      .model_type = "pegasus",
      .description = "PEGASUS (Zhang et al., 2020): encoder-decoder, pre-LN, sinusoidal positions",
      .heads = bart_heads("Pegasus"),
      .base = base(),
      .keys = {"PEGASUS", concatenated({bart_keys(), {ignored_keys({"classifier_dropout"})}})},
      .presets = {{"pegasus-large", "PEGASUS large", large(1024)},
                  {"pegasus-xsum", "PEGASUS for summaries of one sentence", large(512)}},
      .build = build_encoder_decoder,
      .weight_table = bart_weights,
  };
}

}  // namespace zoo::family::pegasus
