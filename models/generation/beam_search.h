#pragma once

#include <memory>

#include "models/generation/token_loop.h"

namespace zoo {

/// generate() with beam search: num_return_sequences beams per prompt, best first. The result is there when
/// it has finished. Throws Error as generate() does.
std::unique_ptr<TokenLoop> beam_loop(GenerationTask& task);

}  // namespace zoo
