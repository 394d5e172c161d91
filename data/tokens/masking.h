#pragma once

/// @file
/// Use:
///
///     zoo::RandomStream random(/*seed=*/1, {});
///     const auto masks = zoo::draw_masks(words, {.mask_id = 103, .vocab_size = 30522}, random);
///     zoo::apply_masks(masks, /*mask_id=*/103, row, labels);

#include <cstdint>
#include <span>
#include <vector>

#include "data/random/random_stream.h"
#include "tokenizer/encoding.h"

namespace zoo {

/// Masking for a masked language model (Devlin et al., 2019, section 3.1 and appendix C.2).
struct MaskingOptions {
  double probability = 0.15;  // of choosing a token
  double mask_share = 0.8;    // of the chosen: replaced by mask_id
  double random_share = 0.1;  // of the chosen: replaced by a random token; the rest stay
  bool whole_words = false;   // chooses all tokens of a word together
  TokenId mask_id = 0;
  std::int64_t vocab_size = 0;  // random tokens are below it
};

/// The action for one token.
struct TokenMask {
  enum class Action : std::int8_t { kNone, kMask, kRandom, kKeep } action = Action::kNone;
  TokenId random_id = 0;
};

/// Draws the masks of a row of tokens. `words` has the index of each token's word: neighbours with the same
/// index are one word; -1 (special tokens, padding) is never chosen. By default each token is chosen
/// independently. With whole_words, words are chosen in random order while they fit into the probability's
/// share of the tokens, rounded and at least 1.
std::vector<TokenMask> draw_masks(std::span<const std::int32_t> words, const MaskingOptions& options,
                                  RandomStream& random);

/// Changes ids; labels become the original ids at the chosen positions, else -100. All have the same length.
void apply_masks(std::span<const TokenMask> masks, TokenId mask_id, std::span<std::int64_t> ids,
                 std::span<std::int64_t> labels);

}  // namespace zoo
