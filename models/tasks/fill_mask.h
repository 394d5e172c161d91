#pragma once

/// @file
/// Use:
///
///     const zoo::TextModel model = zoo::load_text_model(zoo::read_checkpoint_config("bert"), {});
///     const auto masks = zoo::fill_mask(model, {.text = "Paris is the [MASK] of France."});
///     std::cout << masks[0][0].text << "\n";  // the most probable guess for the first mask

#include <string>
#include <vector>

#include "models/tasks/text_model.h"

namespace zoo {

struct FillMaskRequest {
  std::string text;
  std::int64_t top_k = 5;  // guesses for each mask
};

struct MaskGuess {
  TokenId id = 0;
  float probability = 0.0F;
  std::string token;  // as the vocabulary writes it
  std::string text;   // with the guess in place; special tokens are left out if it has no other mask
};

/// For each mask of the text its guesses, the most probable first. Throws Error for another head and if
/// the text, as far as the model reads it, has no mask token; FieldError if the tokenizer has none and for a
/// negative top_k.
std::vector<std::vector<MaskGuess>> fill_mask(const TextModel& model, const FillMaskRequest& request);

}  // namespace zoo
