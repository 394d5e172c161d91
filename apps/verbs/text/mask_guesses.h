#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "apps/verbs/text/text_model.h"

namespace zoo {

/// A token that a masked language model puts in the place of a mask.
struct MaskGuess {
  TokenId id;
  float probability;
};

/// A text with masks and what may stand there.
struct MaskedText {
  Encoding encoding;
  TokenId mask;
  std::vector<std::vector<MaskGuess>> guesses;  // for each mask, the most probable first
};

/// Throws Error if the tokenizer has no mask token or the text, as far as the model reads it, has none.
MaskedText guess_masks(const TextModel& model, const std::string& text, std::int64_t top_k);

/// The text with mask number `which` replaced by `guess`. Special tokens are left out if there is no other
/// mask to show.
std::string filled(const TextModel& model, const MaskedText& text, std::size_t which, TokenId guess);

/// {"text", "masks": [[{"token", "id", "score", "text"}, …], …]}
nlohmann::ordered_json describe_masks(const TextModel& model, const std::string& text,
                                      const MaskedText& masked);

}  // namespace zoo
