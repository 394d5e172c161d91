#pragma once

#include <memory>

#include "models/generation/token_loop.h"

namespace zoo {

/// generate() with beam search: num_return_sequences beams per prompt, best first. Idea: keep the num_beams
/// hypotheses with the highest log-probability; at each step, score all continuations of all of them, move
/// those that end to a list of finished beams, and continue the best of the others. The result is complete
/// only after the last step. Throws Error as generate() does.
std::unique_ptr<TokenLoop> beam_loop(GenerationTask& task);

}  // namespace zoo
