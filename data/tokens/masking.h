#pragma once

/// @file
/// Use:
///
///     zoo::RandomStream random(/*seed=*/1, {});
///     const auto masks = zoo::draw_masks(words, {.mask_id = 103, .vocab_size = 30522}, random);
///     zoo::apply_masks(masks, /*mask_id=*/103, row, labels);
///
///     const zoo::SpanCorruptionOptions spans{.sentinels = sentinels};
///     const auto drawn = zoo::draw_noise_spans(zoo::corrupted_lengths(tokens.size(), spans), random);
///     const auto [inputs, targets] = zoo::corrupt_spans(tokens, drawn, spans);

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

/// Applies the masks: changes ids; labels become the original ids at the chosen positions and -100 elsewhere.
/// All spans have the same length.
void apply_masks(std::span<const TokenMask> masks, TokenId mask_id, std::span<std::int64_t> ids,
                 std::span<std::int64_t> labels);

/// T5's span corruption (Raffel et al., 2020, sections 3.1.4 and 3.3.4).
struct SpanCorruptionOptions {
  double noise_density = 0.15;    // the share of hidden tokens
  double mean_span_length = 3.0;  // of a hidden span
  TokenIds sentinels;             // one for each hidden span: "<extra_id_0>", "<extra_id_1>", …
  TokenId eos_id = 1;             // ends inputs and targets
};

/// The number of tokens in a row of raw text, and the lengths that follow from it.
struct SpanCorruptionLengths {
  std::int64_t tokens = 0, inputs = 0, targets = 0, spans = 0;
};

/// The lengths for rows of `tokens` tokens, at least 2.
SpanCorruptionLengths corrupted_lengths(std::int64_t tokens, const SpanCorruptionOptions& options);

/// The longest rows whose inputs have at most `inputs` tokens: 568 tokens give 512 inputs and 114 targets.
/// Throws Error if `inputs` is too small for any row or there are fewer sentinels than spans.
SpanCorruptionLengths lengths_for_inputs(std::int64_t inputs, const SpanCorruptionOptions& options);

/// Lengths of alternating spans: kept[0], hidden[0], kept[1], …; all positive.
struct NoiseSpans {
  std::vector<std::int64_t> kept, hidden;
};

/// Uniform over all divisions of the row into these numbers of spans.
NoiseSpans draw_noise_spans(const SpanCorruptionLengths& lengths, RandomStream& random);

struct CorruptedText {
  std::vector<std::int64_t> inputs, targets;
};

/// Inputs: the text with a sentinel for each hidden span. Targets: each sentinel and the tokens it hides.
/// Both end in eos_id.
CorruptedText corrupt_spans(std::span<const std::int64_t> tokens, const NoiseSpans& spans,
                            const SpanCorruptionOptions& options);

}  // namespace zoo
