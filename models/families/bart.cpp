#include "models/families/kinds/bart_kind.h"

namespace zoo::family::bart {

TransformerConfig base() {
  TransformerConfig config = bart_base();
  config.eos_token_id = 2;
  return config;
}

TransformerConfig distilbart() {
  TransformerConfig config = bart_sized(base(), {50264, 1024, 12, 16, 4096});
  config.num_decoder_layers = 6;
  return config;
}

Family family() {
  return {
      .model_type = "bart",
      .description = "BART (Lewis et al., 2020): encoder-decoder, post-LN, learned positions",
      .heads = concatenated(bart_heads("Bart"), bart_classifiers("Bart")),
      .base = base(),
      .keys = {"BART", concatenated(bart_keys(), bart_head_keys(3))},
      .presets = {{"bart-base", "BART base", bart_sized(base(), {50265, 768, 6, 12, 3072})},
                  {"bart-large", "BART large", bart_sized(base(), {50265, 1024, 12, 16, 4096})},
                  {"distilbart-cnn-12-6", "DistilBART, six layers in its decoder", distilbart()}},
      .build = build_encoder_decoder,
      .weight_table = bart_weights,
  };
}

}  // namespace zoo::family::bart
