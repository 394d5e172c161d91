#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/plots/attention_maps.h"
#include "apps/verbs/text/text_model.h"
#include "models/generation/generation_config.h"

namespace zoo {

/// Input texts of the model.
struct AttentionTexts {
  std::string text;
  std::optional<std::string> text_pair;  // second text of an encoder
  std::optional<std::string> target;     // decoder text of an encoder-decoder; none: generated
  std::int64_t max_new_tokens = 32;      // maximum length if generated
};

/// Attention of a model on a text: self-attention of an encoder or decoder; for an encoder-decoder that of
/// both, and the decoder's attention to the encoder ("cross"). Throws UsageError for a text that this model
/// does not take; Error naming the flag for an empty or too long text; Error for a model without attention.
std::vector<AttentionMaps> attention_of(const TextModel& model, const AttentionTexts& texts,
                                        const GenerationDefaults& defaults);

}  // namespace zoo
