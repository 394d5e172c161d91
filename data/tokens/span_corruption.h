#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/random/random_stream.h"
#include "tokenizer/encoding.h"

namespace zoo {

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

/// Inputs: the text with sentinels for hidden spans. Targets: these and what they hide. Both end in eos_id.
CorruptedText corrupt_spans(std::span<const std::int64_t> tokens, const NoiseSpans& spans,
                            const SpanCorruptionOptions& options);

}  // namespace zoo
