// mBART (Liu et al., 2020): BART with norms before the sublayers and after each stack. A text's language is
// its last token, and the first that the decoder writes.

#include "models/families/kinds/bart_kind.h"

namespace zoo::family::mbart {

TransformerConfig base() {
  TransformerConfig config = bart_base();
  config.norm_placement = NormPlacement::kPre;
  config.decoder_start_token_id = -1;
  config.eos_token_id = 2;
  config.shifted_labels = ShiftedLabels::kLastLabel;
  return config;
}

TransformerConfig large(std::int64_t vocabulary) {
  TransformerConfig config = bart_sized(base(), {vocabulary, 1024, 12, 16, 4096});
  config.embedding_scale = 0;
  return config;
}

Family family() {
  return {
      .model_type = "mbart",
      .description = "mBART (Liu et al., 2020): multilingual BART, pre-LN",
      .heads = concatenated(bart_heads("MBart"), bart_classifiers("MBart")),
      .base = base(),
      .keys = {"mBART", concatenated(bart_keys(), bart_head_keys(2))},
      .presets = {{"mbart-large-cc25", "mBART of 25 languages", large(250027)},
                  {"mbart-large-50", "mBART of 50 languages", large(250054)}},
      .build = build_encoder_decoder,
      .weight_table = bart_weights,
  };
}

}  // namespace zoo::family::mbart
