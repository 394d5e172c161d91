#pragma once

#include "models/generation/choosing.h"

namespace zoo {

/// What a beam search has found for one prompt.
struct FoundBeam {
  TokenIds ids;
  std::vector<double> log_probabilities;  // of each token, if they were asked for
  double score = 0;                       // the sum of the filtered ones, divided as length_penalty says
};

/// generate() with beams: for each prompt num_return_sequences of them, the best first. Fewer where what is
/// forbidden leaves no more. `first_step` is called when the prompts have been read. Throws Error as
/// generate() does.
std::vector<std::vector<FoundBeam>> beam_search(DecodingModel& model, const std::vector<TokenIds>& prompts,
                                                const GenerationOptions& options,
                                                const std::function<void()>& first_step);

}  // namespace zoo
