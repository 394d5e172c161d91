#pragma once

#include <functional>
#include <vector>

#include "models/generation/decoding_session.h"
#include "models/generation/sampler.h"
#include "models/model.h"

namespace zoo {

struct GenerationOptions {
  std::int64_t max_new_tokens = 200;  // for each row, at least 1
  SamplingOptions sampling;
  TokenIds eos_token_ids;                    // a row ends with the first of them
  std::int64_t decoder_start_token_id = -1;  // what an encoder-decoder begins with; -1: what its config says
};

struct GenerationResult {
  /// New tokens only, a list for each prompt; an end token closes its row.
  std::vector<TokenIds> ids;
  double seconds_prefill = 0;  // reading the prompts and choosing the first token
  double seconds_decode = 0;   // the tokens after it

  std::int64_t token_count() const;
  double tokens_per_second() const;  // of both times; 0 where no time was taken
};

/// Called for every new token at once, with the number of its row; false ends the generation of all rows.
using TokenCallback = std::function<bool(std::size_t row, std::int64_t id)>;

/// Continues each prompt with a decoder, whatever its weights are stored as. Rows of different lengths are
/// continued as each would be alone, and a row that has ended leaves the others; equal prompts are read once.
/// An encoder-decoder reads the prompts with its encoder, and its decoder begins with decoder_start_token_id.
///
/// A model with learned or sinusoidal positions sees at most max_positions tokens. When a row grows beyond
/// that, the last half of max_positions of its tokens is kept and read anew: the context slides in jumps,
/// where nanoGPT moves it by one token and reads all of it for every token, and Hugging Face fails.
///
/// Throws Error for an empty prompt, an id outside the vocabulary (naming both), a prompt longer than
/// max_positions (naming both lengths), options out of range and a start token that nobody names.
GenerationResult generate(DecodingModel& model, const std::vector<TokenIds>& prompts,
                          const GenerationOptions& options, const TokenCallback& on_token = {});

/// The same with a model of modules, which is in evaluation mode meanwhile.
GenerationResult generate(Model& model, const std::vector<TokenIds>& prompts,
                          const GenerationOptions& options, const TokenCallback& on_token = {});

}  // namespace zoo
