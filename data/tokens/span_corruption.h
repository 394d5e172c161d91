#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/random/random_stream.h"
#include "tokenizer/encoding.h"

namespace zoo {

/// How spans of a text are hidden from T5 (Raffel et al., 2020, sections 3.1.4 and 3.3.4).
struct SpanCorruptionOptions {
  double noise_density = 0.15;     // the share of the tokens that is hidden
  double mean_span_length = 3.0;   // of a hidden span
  std::vector<TokenId> sentinels;  // one stands for each hidden span: "<extra_id_0>", "<extra_id_1>", …
  TokenId eos_id = 1;              // ends inputs and targets
};

/// How many tokens a row of raw text has, and what becomes of them.
struct SpanCorruptionLengths {
  std::int64_t tokens = 0, inputs = 0, targets = 0, spans = 0;
};

/// The lengths for rows of `tokens` tokens, at least 2.
SpanCorruptionLengths corrupted_lengths(std::int64_t tokens, const SpanCorruptionOptions& options);

/// The longest rows whose inputs have at most `inputs` tokens: 512 of them come from 568, which leave 114
/// targets. Throws Error if it is too short for any row or there are fewer sentinels than spans.
SpanCorruptionLengths lengths_for_inputs(std::int64_t inputs, const SpanCorruptionOptions& options);

/// Lengths of spans that alternate from the first kept one: kept[0], hidden[0], kept[1], …; all positive.
struct NoiseSpans {
  std::vector<std::int64_t> kept, hidden;
};

/// Every division of the row into its numbers of spans, kept and hidden each, is as likely.
NoiseSpans draw_noise_spans(const SpanCorruptionLengths& lengths, RandomStream& random);

struct CorruptedText {
  std::vector<std::int64_t> inputs, targets;
};

/// Inputs: the text with a sentinel in place of each hidden span. Targets: each sentinel and what it hides.
/// Both end in eos_id.
CorruptedText corrupt_spans(std::span<const std::int64_t> tokens, const NoiseSpans& spans,
                            const SpanCorruptionOptions& options);

}  // namespace zoo
