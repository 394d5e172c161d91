#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/random/random_stream.h"
#include "tokenizer/encoding.h"

namespace zoo {

/// How tokens are hidden from a masked language model (Devlin et al., 2019, section 3.1 and appendix C.2).
struct MaskingOptions {
  double probability = 0.15;  // of a token to be chosen
  double mask_share = 0.8;    // of the chosen: replaced by mask_id
  double random_share = 0.1;  // of the chosen: by any token; the rest stay as they are
  bool whole_words = false;   // the tokens of a word are chosen together
  TokenId mask_id = 0;
  std::int64_t vocab_size = 0;  // random tokens are below it
};

/// What becomes of one token.
struct TokenMask {
  enum class Action : std::int8_t { kNone, kMask, kRandom, kKeep } action = Action::kNone;
  TokenId random_id = 0;
};

/// Draws for a row of tokens. Those of word -1, special tokens and padding, are left alone; otherwise tokens
/// of equal, neighbouring numbers are a word. Without whole_words a token is chosen with the probability,
/// independently of the others; with them words in a random order until no further one fits into the
/// probability's share of the tokens, which is rounded and at least 1.
std::vector<TokenMask> draw_masks(std::span<const std::int32_t> words, const MaskingOptions& options,
                                  RandomStream& random);

/// Applies them: ids change, labels become what stood at the chosen places, and -100 elsewhere. All spans are
/// of one length.
void apply_masks(std::span<const TokenMask> masks, TokenId mask_id, std::span<std::int64_t> ids,
                 std::span<std::int64_t> labels);

}  // namespace zoo
