#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/plots/attention_maps.h"
#include "apps/verbs/text/text_model.h"
#include "models/generation/generation_config.h"

namespace zoo {

/// What the model reads.
struct AttentionTexts {
  std::string text;
  std::optional<std::string> text_pair;  // a second text for an encoder
  std::optional<std::string> target;     // what an encoder-decoder's decoder has written; none: it writes
  std::int64_t max_new_tokens = 32;      // the most that it writes
};

/// The attention of a model on a text: of an encoder or a decoder its own, of an encoder-decoder that of the
/// encoder, of the decoder and from the decoder to the encoder ("cross").
/// Throws UsageError for a text that this model has no use for, Error naming the flag for one that is empty
/// or longer than the model can read, and for a model without attention.
std::vector<AttentionMaps> attention_of(const TextModel& model, const AttentionTexts& texts,
                                        const GenerationDefaults& defaults);

}  // namespace zoo
