#pragma once

#include "models/generation/logits_rules.h"

namespace zoo {

/// One beam found for a prompt.
struct FoundBeam {
  TokenIds ids;
  std::vector<double> log_probabilities;  // of each token, if asked for
  double score = 0;                       // sum of the filtered ones, divided as length_penalty says
};

/// generate() with beam search: num_return_sequences beams per prompt, best first; fewer if forbidden tokens
/// leave no more. Calls `first_step` after reading the prompts. Throws Error as generate() does.
std::vector<std::vector<FoundBeam>> beam_search(DecodingModel& model, const std::vector<TokenIds>& prompts,
                                                const GenerationOptions& options,
                                                const std::function<void()>& first_step);

}  // namespace zoo
