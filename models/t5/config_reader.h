#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "models/layers/transformer_config.h"

namespace zoo::t5 {

/// Reads Hugging Face's T5Config as transformers 4 and 5 write it. Whether logits are scaled and whether the
/// output projection is tied are two things: release 4 says both with `tie_word_embeddings`, release 5 the
/// first with `scale_decoder_outputs` and the second by what the file holds. "T5EncoderModel" among the
/// architectures makes an encoder. Throws Error naming the key and `source`.
TransformerConfig read_config(const nlohmann::json& json, const std::string& source);

/// Throws Error for what T5Config has no key for.
nlohmann::json write_config(const TransformerConfig& config);

}  // namespace zoo::t5
