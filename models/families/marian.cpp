// Marian (Junczys-Dowmunt et al., 2018), as the OPUS-MT translators have it: the transformer of Vaswani et
// al. (2017) with SiLU. Source and target share their vocabulary.

#include "models/families/kinds/bart_kind.h"

namespace zoo::family::marian {

C base() {
  C config = bart_base();
  config.position = PositionKind::kSinusoidal;
  config.sinusoid_order = SinusoidOrder::kHalves;
  config.position_offset = 0;
  config.embedding_norm = false;
  config.pad_token_id = config.decoder_start_token_id = 58100;
  return config;
}

C opus_mt(std::int64_t vocabulary) {
  C config = bart_sized(base(), {vocabulary, 512, 6, 8, 2048});
  config.activation = Activation::kSilu;
  config.embedding_scale = 0;
  config.max_positions = 512;
  config.pad_token_id = config.decoder_start_token_id = vocabulary - 1;
  return config;
}

Family family() {
  return {
      .model_type = "marian",
      .description = "Marian (Junczys-Dowmunt et al., 2018): encoder-decoder, post-LN, sinusoidal positions",
      .heads = bart_heads("Marian", "MarianMTModel"),
      .base = base(),
      .keys = {"Marian",
               concatenated(bart_keys(), {same_size_key("decoder_vocab_size", &C::vocab_size, "vocab_size"),
                                          expected_key("share_encoder_decoder_embeddings", true),
                                          ignored_keys({"classifier_dropout"})})},
      .presets = {{"opus-mt-en-de", "OPUS-MT, English to German", opus_mt(58101)},
                  {"opus-mt-en-fr", "OPUS-MT, English to French", opus_mt(59514)}},
      .build = build_encoder_decoder,
      .weight_table = bart_weights,
  };
}

}  // namespace zoo::family::marian
